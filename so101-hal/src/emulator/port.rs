//! The line to the emulated servos.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::EmulatedServos;
use super::world::Wire;
use crate::clock::{Clock as _, Timestamp};
use crate::error::Result;
use crate::port::Port;
use crate::protocol::FrameParser;

/// A [`Port`] whose other end are emulated servos. Waiting for a reply that does not come passes time on the
/// emulator's clock.
#[derive(Debug)]
pub struct EmulatedPort {
    servos: EmulatedServos,
    requests: FrameParser,
    line: Line,
}

/// Bytes under way to the host.
#[derive(Debug)]
struct Line {
    now: Timestamp,
    bytes: VecDeque<u8>,
    /// When each run of bytes arrives, in order of the bytes.
    runs: VecDeque<(Timestamp, usize)>,
}

impl Wire for Line {
    fn put(&mut self, delay: Duration, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // One wire: nothing overtakes what was sent before.
        let earliest = self.runs.back().map_or(self.now, |(at, _)| *at);
        self.bytes.extend(bytes);
        self.runs.push_back((earliest.max(self.now + delay), bytes.len()));
    }
}

impl Line {
    /// Bytes that have come by `now`.
    fn arrived(&self, now: Timestamp) -> usize {
        self.runs.iter().take_while(|(at, _)| *at <= now).map(|(_, n)| n).sum()
    }

    /// Takes up to `buffer.len()` of the first `n` bytes.
    fn take(&mut self, buffer: &mut [u8], n: usize) -> usize {
        let n = n.min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.bytes.drain(..n)) {
            *to = from;
        }
        let mut left = n;
        while let Some((_, run)) = self.runs.front_mut() {
            let part = left.min(*run);
            *run -= part;
            left -= part;
            if *run > 0 {
                break;
            }
            self.runs.pop_front();
        }
        n
    }
}

impl EmulatedPort {
    pub(super) fn new(servos: EmulatedServos) -> Self {
        let line = Line {
            now: servos.clock.now(),
            bytes: VecDeque::with_capacity(1024),
            runs: VecDeque::with_capacity(64),
        };
        Self { servos, requests: FrameParser::new(), line }
    }

    /// The servos behind this line.
    #[must_use]
    pub const fn servos(&self) -> &EmulatedServos {
        &self.servos
    }
}

impl Port for EmulatedPort {
    fn now(&self) -> Timestamp {
        self.servos.clock.now()
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<()> {
        let Self { servos, requests, line } = self;
        line.now = servos.clock.now();
        servos.with_world(|world| {
            while !bytes.is_empty() {
                let taken = requests.push(bytes);
                bytes = &bytes[taken..];
                while let Some(item) = requests.next_packet() {
                    // A servo does not answer a damaged request.
                    if let Ok(request) = item {
                        world.handle(&request, line);
                    }
                }
            }
        });
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        let mut n = self.line.arrived(self.now());
        if n == 0 {
            let next = self.line.runs.front().map(|(at, _)| *at).filter(|at| *at <= deadline);
            self.servos.clock.sleep_until(next.unwrap_or(deadline));
            n = self.line.arrived(self.now());
        }
        Ok(self.line.take(buffer, n))
    }

    fn discard_input(&mut self) -> Result<()> {
        let mut n = self.line.arrived(self.now());
        let mut chunk = [0; 64];
        while n > 0 {
            n -= self.line.take(&mut chunk, n);
        }
        Ok(())
    }
}
