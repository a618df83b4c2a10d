//! The log that a control or recording loop writes beside its work.

use std::boxed::Box;
use std::io::Write;
use std::string::String;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::vec::Vec;

use super::aggregate::Aggregate;
use super::line::{LogLine, LoopLine, StartLine};
use super::{HostFacts, HostProbe};
use crate::bus::BusStats;
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// Lines that may wait for a slow disk before the next is thrown away.
const MAX_WAITING: usize = 16;

/// A stage of a loop whose time is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Reading the follower's joints.
    ObserveBus,
    /// Getting the picture of the camera with this place in [`LoopLogOptions::cameras`].
    Camera(usize),
    /// Decoding pictures.
    Decode,
    /// The policy, or a scripted demonstrator.
    Policy,
    /// Reading the leader.
    Teleop,
    /// Sending the goal.
    Act,
    /// Handing row and pictures to the dataset.
    Record,
    /// Waiting for room in the encoder's queue.
    EncodeQueue,
    /// Making an episode durable, on whichever thread.
    DiskCommit,
    /// All work of one period; [`LoopLog::end_cycle`] adds it.
    Total,
}

/// Something that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counter {
    /// Periods whose work took longer than the period; [`LoopLog::end_cycle`] adds them.
    Overruns,
    /// Requests on the bus that were sent again.
    BusRetries,
    /// Requests that no servo answered in time.
    BusTimeouts,
    /// Replies with a wrong checksum.
    BusDamaged,
    /// Periods in which this camera had no new picture.
    StaleFrames(usize),
    /// Pictures of this camera that its sequence numbers say were lost.
    DroppedFrames(usize),
}

/// What a [`LoopLog`] does when lines come faster than they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The line is lost and counted: a control loop waits for no disk.
    #[default]
    LoseLines,
    /// The loop waits: for simulated time, whose seconds pass in no time.
    Wait,
}

/// What a [`LoopLog`] writes, and how often.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoopLogOptions {
    /// What a period should last.
    pub period: Duration,
    /// Names of the cameras.
    pub cameras: Vec<String>,
    /// Time on the loop's clock from one line to the next.
    pub every: Duration,
    /// Whom to ask about the computer; `None` writes lines without it.
    pub probe: Option<HostProbe>,
    /// What happens when lines come faster than they are written.
    pub when_full: WhenFull,
}

impl Default for LoopLogOptions {
    /// 30 Hz, no cameras, a line a second, this computer, a loop that never waits.
    fn default() -> Self {
        Self {
            period: Duration::from_nanos(33_333_333),
            cameras: Vec::new(),
            every: Duration::from_secs(1),
            probe: Some(HostProbe::system()),
            when_full: WhenFull::LoseLines,
        }
    }
}

/// Collects the times of a loop and writes a line a second, from a thread of its own: the loop itself only stores
/// numbers.
///
/// ```
/// use core::time::Duration;
/// use so101_hal::Timestamp;
/// use so101_hal::host::{self, LoopLog, LoopLogOptions, Stage};
/// # fn main() -> so101_hal::Result<()> {
/// let mut log = LoopLog::start(Vec::new(), LoopLogOptions::default())?;
/// for i in 1..=60 {
///     log.stage(Stage::ObserveBus, Duration::from_millis(2));
///     log.end_cycle(Timestamp::from_start(i * Duration::from_millis(33)), Duration::from_millis(5));
/// }
/// let bytes = log.finish()?;
/// let log = host::parse(&bytes);
/// assert_eq!((log.starts.len(), log.skipped), (1, 0));
/// assert_eq!(log.lines[0].1.stages["observe_bus"].p50_ms, 2.0);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LoopLog<W: Write + Send + 'static> {
    period: Duration,
    every: Duration,
    cameras: usize,
    cycles_a_line: usize,
    span_start: Option<Timestamp>,
    last: Timestamp,
    episode: Option<u64>,
    current: Box<Aggregate>,
    bus_before: Option<BusStats>,
    lost_lines: u64,
    when_full: WhenFull,
    lines: Option<SyncSender<Span>>,
    writer: Option<JoinHandle<std::io::Result<W>>>,
}

/// What goes to the writing thread.
struct Span {
    end: Timestamp,
    length: Duration,
    episode: Option<u64>,
    lost_lines: u64,
    aggregate: Box<Aggregate>,
}

impl<W: Write + Send + 'static> LoopLog<W> {
    /// Starts the writing thread; the session's first line goes to `sink` at once.
    ///
    /// # Errors
    /// [`Error::LoopLog`] when the thread cannot be started.
    pub fn start(sink: W, options: LoopLogOptions) -> Result<Self> {
        let LoopLogOptions { period, cameras, every, probe, when_full } = options;
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let camera_count = cameras.len();
        let thread = WriterThread { sink, cameras, period, probe };
        let writer = std::thread::Builder::new()
            .name("loop-log".into())
            .spawn(move || thread.run(&receiver))
            .map_err(|e| Error::LoopLog { doing: "start the thread of", source: Box::new(e) })?;
        // A quarter more than fits in, so that a fast second needs no new memory.
        let cycles_a_line = (1.25 * every.as_secs_f64() / period.as_secs_f64().max(1e-4)) as usize + 1;
        let cycles_a_line = cycles_a_line.min(100_000);
        Ok(Self {
            period,
            every,
            cameras: camera_count,
            cycles_a_line,
            span_start: None,
            last: Timestamp::ZERO,
            episode: None,
            current: Box::new(Aggregate::new(camera_count, cycles_a_line)),
            bus_before: None,
            lost_lines: 0,
            when_full,
            lines: Some(sender),
            writer: Some(writer),
        })
    }

    /// From now on lines belong to this episode.
    pub fn set_episode(&mut self, episode: Option<u64>) {
        if self.episode != episode {
            self.end_span(self.last);
            // Time between episodes belongs to none of them.
            self.span_start = None;
        }
        self.episode = episode;
    }

    /// One run of a stage.
    pub fn stage(&mut self, stage: Stage, time: Duration) {
        self.current.stage(stage, time);
    }

    /// Something happened `n` times.
    pub fn count(&mut self, counter: Counter, n: u64) {
        self.current.count(counter, n);
    }

    /// What a bus has counted since it was made; the difference to the last call is added. The first call only takes
    /// note.
    pub fn bus(&mut self, stats: BusStats) {
        if let Some(before) = self.bus_before.replace(stats) {
            self.count(Counter::BusRetries, stats.retries.saturating_sub(before.retries));
            self.count(Counter::BusTimeouts, stats.timeouts.saturating_sub(before.timeouts));
            self.count(Counter::BusDamaged, stats.damaged.saturating_sub(before.damaged));
        }
    }

    /// How many entries the encoder's queue has, of how many.
    pub fn queue(&mut self, depth: usize, capacity: usize) {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.current.queue(number(depth), number(capacity));
    }

    /// A period's work is done at `now`, on the loop's own clock, and took `work`.
    pub fn end_cycle(&mut self, now: Timestamp, work: Duration) {
        let start = *self
            .span_start
            .get_or_insert(Timestamp::from_start(now.since_start().saturating_sub(work.max(self.period))));
        self.current.stage(Stage::Total, work);
        self.current.cycles += 1;
        if work > self.period {
            self.current.count(Counter::Overruns, 1);
        }
        self.last = now;
        // Half a period of slack: clocks that count whole periods end a second a hair before it.
        if now.since(start) + self.period / 2 >= self.every {
            self.end_span(now);
        }
    }

    /// Writes the last line and gives the sink back.
    ///
    /// # Errors
    /// [`Error::LoopLog`] when a line could not be written.
    pub fn finish(mut self) -> Result<W> {
        let ended = self.end();
        ended.map_err(|e| Error::LoopLog { doing: "write", source: Box::new(e) })
    }

    fn end_span(&mut self, end: Timestamp) {
        let Some(start) = self.span_start else { return };
        self.span_start = Some(end);
        if self.current.is_empty() {
            return;
        }
        let fresh = Box::new(Aggregate::new(self.cameras, self.cycles_a_line));
        let aggregate = core::mem::replace(&mut self.current, fresh);
        // What comes after the last whole line and before the next period, such as a commit, has a span too.
        let length = if end > start { end.since(start) } else { self.period };
        let span = Span { end, length, episode: self.episode, lost_lines: self.lost_lines, aggregate };
        self.lost_lines = 0;
        let Some(lines) = &self.lines else { return };
        let lost = match self.when_full {
            WhenFull::Wait => lines.send(span).err().map(|e| e.0),
            WhenFull::LoseLines => lines.try_send(span).err().map(|e| match e {
                TrySendError::Full(span) | TrySendError::Disconnected(span) => span,
            }),
        };
        // What is lost is said in the next line.
        if let Some(span) = lost {
            self.lost_lines = span.lost_lines.saturating_add(1);
        }
    }

    fn end(&mut self) -> std::io::Result<W> {
        // A commit that was reported after the last period.
        self.span_start
            .get_or_insert(Timestamp::from_start(self.last.since_start().saturating_sub(self.period)));
        self.last = self.last.max(Timestamp::from_start(self.period));
        // Nobody has a deadline any more.
        self.when_full = WhenFull::Wait;
        self.end_span(self.last);
        self.lines = None;
        let gone = || std::io::Error::other("its thread is gone");
        self.writer.take().ok_or_else(gone)?.join().map_err(|_| gone())?
    }
}

impl<W: Write + Send + 'static> Drop for LoopLog<W> {
    fn drop(&mut self) {
        if self.writer.is_some() {
            // Nobody is left to be told.
            let _ = self.end();
        }
    }
}

struct WriterThread<W> {
    sink: W,
    cameras: Vec<String>,
    period: Duration,
    probe: Option<HostProbe>,
}

impl<W: Write> WriterThread<W> {
    fn run(mut self, spans: &Receiver<Span>) -> std::io::Result<W> {
        let period_ms = millis(self.period);
        let start = StartLine {
            unix_time_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            period_ms,
            host: HostFacts::system(),
        };
        self.write(&LogLine::Start(start))?;
        while let Ok(mut span) = spans.recv() {
            let mut line = LoopLine {
                t_s: rounded(span.end.since_start().as_secs_f64()),
                span_s: rounded(span.length.as_secs_f64()),
                episode: span.episode,
                period_ms,
                host: self.probe.as_mut().map(HostProbe::sample),
                ..LoopLine::default()
            };
            span.aggregate.fill(&self.cameras, &mut line);
            if span.lost_lines > 0 {
                line.counters.insert("lost_lines".into(), span.lost_lines);
            }
            self.write(&LogLine::Loop(Box::new(line)))?;
        }
        self.sink.flush()?;
        Ok(self.sink)
    }

    /// One write a line, so that a killed process leaves whole lines.
    fn write(&mut self, line: &LogLine) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.sink.write_all(&bytes)
    }
}

fn millis(d: Duration) -> f64 {
    rounded(d.as_secs_f64() * 1e3)
}

/// To three digits behind the point: more only make lines long.
pub(super) fn rounded(n: f64) -> f64 {
    (n * 1e3).round() / 1e3
}
