//! The lines of a loop log: one JSON object a line.
//!
//! | kind | when | holds |
//! |---|---|---|
//! | `start` | once a session | the host, the period, when it was |
//! | `loop` | once a second | stage times, counters, queue depth, a host sample |
//!
//! Lines of other kinds may stand between them and are stepped over.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{HostFacts, HostSample};

/// Longer lines are no lines of this log.
const MAX_LINE_BYTES: usize = 64 << 10;

/// How long one stage took within a line's span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// How often it ran.
    pub n: u32,
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
    /// Longest, milliseconds.
    pub max_ms: f64,
}

/// How full the queue in front of the encoder was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDepth {
    /// The most entries at once.
    pub max: u32,
    /// How many it holds.
    pub capacity: u32,
}

/// The first line of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StartLine {
    /// Wall clock at the start, seconds since 1970.
    pub unix_time_s: u64,
    /// What a period should last, milliseconds.
    pub period_ms: f64,
    /// Where it ran.
    pub host: HostFacts,
}

/// One second of a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopLine {
    /// End of the span on the loop's clock, seconds.
    pub t_s: f64,
    /// Length of the span, seconds.
    pub span_s: f64,
    /// The episode that was being recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode: Option<u64>,
    /// Periods that ended within the span.
    pub cycles: u32,
    /// What a period should last, milliseconds.
    pub period_ms: f64,
    /// Times by stage: `observe_bus`, `camera.NAME`, `decode`, `policy`, `teleop`, `act`, `record`, `encode_queue`,
    /// `disk_commit`, and `total`, the work of a whole period.
    pub stages: BTreeMap<String, StageTimes>,
    /// What happened within the span, where it happened at all: `overruns`, `bus_retries`, `bus_timeouts`,
    /// `bus_damaged`, `stale.NAME`, `dropped.NAME`, `lost_lines`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// The encoder's queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueDepth>,
    /// The computer at the end of the span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSample>,
}

impl LoopLine {
    /// A counter, 0 where it is not in the line.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Sum of the counters whose names begin so.
    #[must_use]
    pub fn counters_of(&self, prefix: &str) -> u64 {
        let of_prefix = self.counters.iter().filter(|(name, _)| name.starts_with(prefix));
        of_prefix.fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Whether its numbers can be reckoned with: times finite and not negative, a span and a period that last.
    fn is_sound(&self) -> bool {
        let good = |n: f64| (0.0..1e9).contains(&n);
        good(self.t_s)
            && good(self.span_s)
            && self.span_s > 0.0
            && good(self.period_ms)
            && self.period_ms > 0.0
            && self.stages.values().all(|s| good(s.p50_ms) && good(s.p99_ms) && good(s.max_ms))
    }
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LogLine {
    /// A session begins.
    Start(StartLine),
    /// A second of it.
    Loop(Box<LoopLine>),
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ParsedLog {
    /// The sessions' first lines.
    pub starts: Vec<StartLine>,
    /// The seconds, in the order of the file, each with the number of sessions that had begun before it.
    pub lines: Vec<(usize, LoopLine)>,
    /// Lines of other kinds, and lines that cannot be read: after a crash the last one may be cut.
    pub skipped: usize,
}

/// Reads a log. What cannot be read is counted, never an error: the log of a crash is the one that matters.
///
/// ```
/// use so101_hal::host;
/// let log = host::parse(br#"{"kind":"loop","t_s":1.0,"span_s":1.0,"cycles":30,"period_ms":33.3,"stages":{}}
/// {"kind":"loop","t_s":2.0,"sp"#);
/// assert_eq!((log.lines.len(), log.skipped), (1, 1));
/// ```
#[must_use]
pub fn parse(bytes: &[u8]) -> ParsedLog {
    let mut log = ParsedLog::default();
    for line in bytes.split(|b| *b == b'\n') {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let known = (line.len() <= MAX_LINE_BYTES).then(|| serde_json::from_slice::<LogLine>(line).ok());
        match known.flatten() {
            Some(LogLine::Start(start)) => log.starts.push(start),
            Some(LogLine::Loop(line)) if line.is_sound() => log.lines.push((log.starts.len(), *line)),
            _ => log.skipped += 1,
        }
    }
    log
}
