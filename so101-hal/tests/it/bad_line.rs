//! A line between bus and emulated servos that does everything lines do, from a seed, on virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use so101_hal::emulator::EmulatedPort;
use so101_hal::{Clock as _, Port, Result, Timestamp, VirtualClock};

/// How often what happens, of 1000 replies (echo and swap: of 1000 requests).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) bit_flip: u64,
    /// Two to four bytes are overwritten.
    pub(crate) burst: u64,
    pub(crate) drop: u64,
    /// The end is missing, from any byte on.
    pub(crate) truncate: u64,
    pub(crate) duplicate: u64,
    pub(crate) junk: u64,
    pub(crate) late: u64,
    pub(crate) echo: u64,
    pub(crate) swap: u64,
}

/// What has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Happened {
    pub(crate) bursts: u64,
    pub(crate) faults: u64,
}

pub(crate) struct BadLine {
    port: EmulatedPort,
    clock: VirtualClock,
    pub(crate) rates: Rates,
    /// Replies come at most this much later than they should.
    pub(crate) lateness: Duration,
    pub(crate) happened: Happened,
    dice: Dice,
    /// Requests and what came of them, for the message of a failed test.
    pub(crate) trace: VecDeque<String>,
    /// One wire: nothing overtakes.
    coming: VecDeque<(Timestamp, u8)>,
    last: Timestamp,
}

/// Xorshift (Marsaglia 2003).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn hits(&mut self, of_1000: u64) -> bool {
        self.below(1000) < of_1000
    }
}

impl BadLine {
    pub(crate) fn new(port: EmulatedPort, clock: VirtualClock, seed: u64) -> Self {
        Self {
            port,
            clock,
            rates: Rates::default(),
            lateness: Duration::from_millis(200),
            happened: Happened::default(),
            dice: Dice::new(seed),
            trace: VecDeque::new(),
            coming: VecDeque::new(),
            last: Timestamp::ZERO,
        }
    }

    fn replies_to(&mut self, request: &[u8]) -> Vec<Vec<u8>> {
        self.port.discard_input().unwrap();
        self.port.write_all(request).unwrap();
        let mut stream = Vec::new();
        let mut chunk = [0; 250];
        loop {
            let now = self.clock.now();
            let n = self.port.read(&mut chunk, now).unwrap();
            if n == 0 {
                break;
            }
            stream.extend_from_slice(&chunk[..n]);
        }
        let mut frames = Vec::new();
        while !stream.is_empty() {
            let rest = stream.split_off(usize::from(stream[3]) + 4);
            frames.push(std::mem::replace(&mut stream, rest));
        }
        frames
    }

    fn spoil(&mut self, mut frame: Vec<u8>) -> (Duration, Vec<u8>) {
        let rates = self.rates;
        let mut hit = |of_1000| {
            let hit = self.dice.hits(of_1000);
            self.happened.faults += u64::from(hit);
            hit
        };
        let faults = [rates.bit_flip, rates.burst, rates.truncate, rates.duplicate, rates.junk, rates.late];
        let [flip, burst, truncate, duplicate, junk, late] = faults.map(&mut hit);
        if hit(rates.drop) {
            return (Duration::ZERO, Vec::new());
        }
        if flip {
            let bit = self.dice.below(8 * frame.len() as u64);
            frame[bit as usize / 8] ^= 1 << (bit % 8);
        }
        if burst {
            self.happened.bursts += 1;
            for _ in 0..2 + self.dice.below(3) {
                let at = self.dice.below(frame.len() as u64) as usize;
                frame[at] = self.dice.below(256) as u8;
            }
        }
        if truncate {
            frame.truncate(self.dice.below(frame.len() as u64) as usize);
        }
        if duplicate {
            frame.extend_from_within(..);
        }
        if junk {
            let noise =
                (0..1 + self.dice.below(6)).map(|_| self.dice.below(256) as u8 | 0x81).collect::<Vec<u8>>();
            frame.splice(0..0, noise);
        }
        let micros = self.lateness.as_micros() as u64;
        let delay = if late { Duration::from_micros(self.dice.below(micros)) } else { Duration::ZERO };
        (delay, frame)
    }

    /// Sends; every reply comes this much later.
    pub(crate) fn write_late(&mut self, request: &[u8], delay: Duration) -> Result<()> {
        for frame in self.replies_to(request) {
            self.put(delay, &frame);
        }
        Ok(())
    }

    fn note(&mut self, line: String) {
        self.trace.push_back(line);
        if self.trace.len() > 60 {
            self.trace.pop_front();
        }
    }

    fn put(&mut self, delay: Duration, bytes: &[u8]) {
        for byte in bytes {
            self.last = self.last.max(self.clock.now() + delay) + Duration::from_micros(10);
            self.coming.push_back((self.last, *byte));
        }
    }
}

impl Port for BadLine {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn write_all(&mut self, request: &[u8]) -> Result<()> {
        let mut frames = self.replies_to(request);
        self.note(format!("{:?} request {request:02x?}", self.clock.now()));
        if self.dice.hits(self.rates.echo) {
            self.put(Duration::ZERO, request);
        }
        if frames.len() > 1 && self.dice.hits(self.rates.swap) {
            let (a, b) = (self.dice.below(frames.len() as u64), self.dice.below(frames.len() as u64));
            frames.swap(a as usize, b as usize);
        }
        for frame in frames {
            let good = frame.clone();
            let (delay, frame) = self.spoil(frame);
            if good != frame || !delay.is_zero() {
                self.note(format!("    {good:02x?} becomes {frame:02x?} after {delay:?}"));
            }
            self.put(Duration::from_micros(100) + delay, &frame);
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        let first = self.coming.front().map(|(at, _)| *at);
        match first {
            Some(at) if at <= deadline => self.clock.sleep_until(at),
            _ => {
                self.clock.sleep_until(deadline);
                return Ok(0);
            }
        }
        // Some of what is there by then, in a piece of any size.
        self.clock.sleep_until(self.clock.now() + Duration::from_micros(self.dice.below(300)));
        let now = self.clock.now();
        let there = self.coming.iter().take_while(|(at, _)| *at <= now).count().min(buffer.len());
        let n = if self.dice.hits(500) { there } else { 1 + self.dice.below(there as u64) as usize };
        for (to, (_, byte)) in buffer.iter_mut().zip(self.coming.drain(..n)) {
            *to = byte;
        }
        Ok(n)
    }

    fn discard_input(&mut self) -> Result<()> {
        let now = self.clock.now();
        let there = self.coming.iter().take_while(|(at, _)| *at <= now).count();
        self.coming.drain(..there);
        Ok(())
    }
}
