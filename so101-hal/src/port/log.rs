//! A session on the bus as lines of text, and its playback.
//!
//! One line an event, in the order of the calls:
//!
//! ```text
//! 0.001250000 clear                     input thrown away
//! 0.001262000 tx ffff0104023802be       bytes sent
//! 0.002103000 rx ffff0104002508cd       bytes received
//! 0.022391000 silence                   a read that ended at its deadline
//! 0.022396000 now                       a look at the clock
//! ```
//!
//! The first column are seconds on the port's clock, after the call.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt::Write as _;
use core::time::Duration;

use super::{EmergencyWriter, Port};
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// Hands every event of the port inside to a function, as a line of text without its end.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use so101_hal::bus::{Bus, ServoBus};
/// use so101_hal::port::{RecordingPort, ReplayPort};
/// use so101_hal::{EmulatedServos, EmulatorOptions, ServoId, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let text = Arc::new(Mutex::new(String::new()));
/// let log = Arc::clone(&text);
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// let port = RecordingPort::new(servos.port(), move |line| {
///     let mut text = log.lock().unwrap();
///     text.push_str(line);
///     text.push('\n');
/// });
/// Bus::new(port).ping(ServoId::new(1)?)?;
///
/// let mut replay = Bus::new(ReplayPort::parse(&text.lock().unwrap())?);
/// assert!(replay.ping(ServoId::new(1)?)?.is_empty());
/// # Ok(()) }
/// ```
pub struct RecordingPort<P> {
    port: P,
    log: RefCell<Log>,
}

struct Log {
    sink: Box<dyn FnMut(&str) + Send>,
    /// The line being made, kept for its capacity.
    line: String,
    last: Option<Timestamp>,
}

impl<P: core::fmt::Debug> core::fmt::Debug for RecordingPort<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RecordingPort").field("port", &self.port).finish_non_exhaustive()
    }
}

impl<P: Port> RecordingPort<P> {
    /// Records every call from now on. What becomes of the lines, errors of a disk included, is up to `sink`.
    pub fn new(port: P, sink: impl FnMut(&str) + Send + 'static) -> Self {
        let log = Log { sink: Box::new(sink), line: String::with_capacity(600), last: None };
        Self { port, log: RefCell::new(log) }
    }

    /// Gives the port back.
    #[must_use]
    pub fn into_inner(self) -> P {
        self.port
    }

    fn note(&self, kind: Kind, bytes: &[u8]) -> Timestamp {
        let now = self.port.now();
        let mut log = self.log.borrow_mut();
        // A look at a clock that has not moved needs no line.
        if kind == Kind::Now && log.last == Some(now) {
            return now;
        }
        log.last = Some(now);
        let Log { sink, line, .. } = &mut *log;
        line.clear();
        let at = now.since_start();
        // Writing into a string cannot fail.
        let _ = write!(line, "{}.{:09} {}", at.as_secs(), at.subsec_nanos(), kind.name());
        if !bytes.is_empty() {
            line.push(' ');
            push_hex(line, bytes);
        }
        sink(line);
        now
    }
}

impl<P: Port> Port for RecordingPort<P> {
    fn now(&self) -> Timestamp {
        self.note(Kind::Now, &[])
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.port.write_all(bytes)?;
        self.note(Kind::Sent, bytes);
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        let n = self.port.read(buffer, deadline)?;
        match buffer.get(..n) {
            Some(bytes) if n > 0 => self.note(Kind::Received, bytes),
            _ => self.note(Kind::Silence, &[]),
        };
        Ok(n)
    }

    fn discard_input(&mut self) -> Result<()> {
        self.port.discard_input()?;
        self.note(Kind::Clear, &[]);
        Ok(())
    }

    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        self.port.emergency_writer()
    }

    fn reopen(&mut self) -> Result<()> {
        self.port.reopen()
    }
}

/// Plays a recorded session back: every call has to be the recorded one, and gets the recorded answer at the recorded
/// moment.
#[derive(Clone, Debug)]
pub struct ReplayPort {
    events: Vec<Event>,
    next: Cell<usize>,
    /// Bytes of the event at `next` that an earlier, smaller read has taken.
    taken: usize,
    now: Cell<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sent,
    Received,
    Silence,
    Clear,
    Now,
}

#[derive(Clone, Debug)]
struct Event {
    line: usize,
    at: Timestamp,
    kind: Kind,
    bytes: Vec<u8>,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Sent, Self::Received, Self::Silence, Self::Clear, Self::Now];

    const fn name(self) -> &'static str {
        match self {
            Self::Sent => "tx",
            Self::Received => "rx",
            Self::Silence => "silence",
            Self::Clear => "clear",
            Self::Now => "now",
        }
    }
}

impl ReplayPort {
    /// Reads the lines of a [`RecordingPort`]. Empty lines and those that begin with `#` do not count.
    ///
    /// # Errors
    /// [`Error::ReplayLine`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut events = Vec::new();
        for (i, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let line = i + 1;
            let event = Event::parse(line, text);
            events.push(event.ok_or_else(|| Error::ReplayLine { line, text: text.to_owned() })?);
        }
        Ok(Self { events, next: Cell::new(0), taken: 0, now: Cell::new(Timestamp::ZERO) })
    }

    /// Everything that was recorded has been played back.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.next.get() >= self.events.len()
    }

    fn event(&self) -> Option<&Event> {
        self.events.get(self.next.get())
    }

    fn diverged(&self, now: String) -> Error {
        let (line, recorded) = match self.event() {
            Some(event) => (event.line, describe(event.kind, &event.bytes)),
            None => (self.events.last().map_or(1, |e| e.line + 1), "nothing more".to_owned()),
        };
        Error::ReplayDiverged { line, recorded, now }
    }

    /// Passes the next event when it is of this kind.
    fn step(&self, kind: Kind) -> bool {
        let Some(event) = self.event().filter(|event| event.kind == kind) else { return false };
        self.now.set(event.at);
        self.next.set(self.next.get() + 1);
        true
    }

    /// Passes looks at the clock that are not repeated.
    fn pass_looks(&self) {
        while self.step(Kind::Now) {}
    }
}

impl Port for ReplayPort {
    fn now(&self) -> Timestamp {
        self.step(Kind::Now);
        self.now.get()
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.pass_looks();
        let same = self.event().is_some_and(|event| event.bytes == bytes);
        if same && self.step(Kind::Sent) { Ok(()) } else { Err(self.diverged(describe(Kind::Sent, bytes))) }
    }

    fn read(&mut self, buffer: &mut [u8], _deadline: Timestamp) -> Result<usize> {
        self.pass_looks();
        if self.step(Kind::Silence) {
            return Ok(0);
        }
        let Some(event) = self.event().filter(|event| event.kind == Kind::Received) else {
            return Err(self.diverged("a read".to_owned()));
        };
        let left = event.bytes.get(self.taken..).unwrap_or(&[]);
        let n = left.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(left) {
            *to = *from;
        }
        let is_through = self.taken + n >= event.bytes.len();
        self.now.set(event.at);
        self.taken += n;
        if is_through {
            self.next.set(self.next.get() + 1);
            self.taken = 0;
        }
        Ok(n)
    }

    fn discard_input(&mut self) -> Result<()> {
        self.pass_looks();
        if self.step(Kind::Clear) { Ok(()) } else { Err(self.diverged(describe(Kind::Clear, &[]))) }
    }
}

impl Event {
    fn parse(line: usize, text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let (secs, nanos) = words.next()?.split_once('.')?;
        if nanos.len() != 9 {
            return None;
        }
        let at = Timestamp::from_start(Duration::new(secs.parse().ok()?, nanos.parse().ok()?));
        let name = words.next()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name)?;
        let bytes = words.next().map_or(Some(Vec::new()), from_hex)?;
        let has_bytes = matches!(kind, Kind::Sent | Kind::Received);
        (words.next().is_none() && bytes.is_empty() != has_bytes).then_some(Self { line, at, kind, bytes })
    }
}

fn describe(kind: Kind, bytes: &[u8]) -> String {
    let mut text = format!("{} ", kind.name());
    push_hex(&mut text, bytes);
    text.trim_end().to_owned()
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16);
    text.as_bytes()
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => u8::try_from(16 * digit(high)? + digit(low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
