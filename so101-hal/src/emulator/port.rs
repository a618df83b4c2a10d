//! The line to the emulated servos.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use super::EmulatedServos;
use super::world::{Wire, WireTiming};
use crate::clock::{Clock as _, Timestamp};
use crate::error::{Error, Result};
use crate::port::{EmergencyWriter, Port};
use crate::protocol::FrameParser;

/// A [`Port`] whose other end are emulated servos. Waiting for a reply that does not come passes time on the
/// emulator's clock.
#[derive(Debug)]
pub struct EmulatedPort {
    servos: EmulatedServos,
    requests: FrameParser,
    line: Line,
    /// Which plugging-in of the adapter this port belongs to.
    plug: Option<u64>,
    baud: u32,
}

/// What the port is called in messages.
const NAME: &str = "emulated";

/// The usual rate.
pub(super) const BAUD: u32 = 1_000_000;

/// Why a port does not work.
#[derive(Debug)]
struct Unplugged;

impl core::fmt::Display for Unplugged {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the emulated adapter is unplugged")
    }
}

impl core::error::Error for Unplugged {}

/// Bytes under way to the host.
#[derive(Debug)]
struct Line {
    now: Timestamp,
    bytes: VecDeque<u8>,
    /// When each run of bytes arrives, in order of the bytes.
    runs: VecDeque<(Timestamp, usize)>,
    /// A byte's time on the wire.
    byte: Duration,
}

impl Wire for Line {
    fn put(&mut self, gap: Duration, delay: Duration, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // One wire: nothing overtakes what was sent before.
        let earliest = self.runs.back().map_or(self.now, |(at, _)| *at);
        self.bytes.extend(bytes);
        let wire = self.byte * u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let start = (earliest.max(self.now) + gap).max(self.now + delay);
        self.runs.push_back((start + wire, bytes.len()));
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
            byte: Duration::ZERO,
        };
        let plug = servos.world.lock().plug;
        let mut port = Self { servos, requests: FrameParser::new(), line, plug, baud: BAUD };
        port.set_baud(BAUD);
        port
    }

    /// Talks at another rate: only servos with this one in their register 6 hear it.
    pub fn set_baud(&mut self, bits_per_second: u32) {
        self.baud = bits_per_second;
        // Ten bits a byte: a start bit, eight of data, a stop bit.
        let byte = Duration::from_nanos(10_000_000_000 / u64::from(bits_per_second.max(1)));
        let timed = self.servos.world.lock().wire_timing() == WireTiming::AtBaud;
        self.line.byte = if timed { byte } else { Duration::ZERO };
    }

    /// The rate that it talks at.
    #[must_use]
    pub const fn baud(&self) -> u32 {
        self.baud
    }

    /// When the next bytes come that are under way.
    #[cfg(all(unix, feature = "std", any(feature = "serial", feature = "pty")))]
    pub(super) fn next_arrival(&self) -> Option<Timestamp> {
        self.line.runs.front().map(|(at, _)| *at)
    }

    fn plugged_in(&self, doing: &'static str) -> Result<()> {
        let plug = self.servos.world.lock().plug;
        if plug.is_some() && plug == self.plug {
            return Ok(());
        }
        Err(Error::PortIo { doing, path: NAME.into(), source: Box::new(Unplugged) })
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
        self.plugged_in("write to")?;
        let Self { servos, requests, line, baud, .. } = self;
        let sent = line.byte * u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        line.now = servos.clock.now() + sent;
        servos.with_world(|world| {
            world.echo(bytes, line);
            while !bytes.is_empty() {
                let taken = requests.push(bytes);
                bytes = &bytes[taken..];
                while let Some(item) = requests.next_packet() {
                    // A servo does not answer a damaged request.
                    if let Ok(request) = item {
                        world.handle(&request, *baud, line);
                    }
                }
            }
        });
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        self.plugged_in("read from")?;
        let mut n = self.line.arrived(self.now());
        if n == 0 {
            let next = self.line.runs.front().map(|(at, _)| *at).filter(|at| *at <= deadline);
            self.servos.clock.sleep_until(next.unwrap_or(deadline));
            n = self.line.arrived(self.now());
            // It may have been unplugged meanwhile.
            self.plugged_in("read from")?;
        }
        Ok(self.line.take(buffer, n))
    }

    fn discard_input(&mut self) -> Result<()> {
        self.plugged_in("clear")?;
        let mut n = self.line.arrived(self.now());
        let mut chunk = [0; 64];
        while n > 0 {
            n -= self.line.take(&mut chunk, n);
        }
        Ok(())
    }

    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        let mut writer = Self::new(self.servos.clone());
        writer.set_baud(self.baud);
        // Of use until the adapter is unplugged, as this port.
        writer.plug = self.plug;
        Some(Box::new(writer))
    }

    fn reopen(&mut self) -> Result<()> {
        let baud = self.baud;
        let mut fresh = Self::new(self.servos.clone());
        if fresh.plug.is_none() {
            return Err(Error::PortNotFound { path: NAME.into() });
        }
        fresh.set_baud(baud);
        *self = fresh;
        Ok(())
    }
}

/// A line of its own that nobody listens to.
impl EmergencyWriter for EmulatedPort {
    fn write_frame(&mut self, frame: &[u8]) -> Result<()> {
        self.write_all(frame)?;
        self.line.bytes.clear();
        self.line.runs.clear();
        Ok(())
    }
}
