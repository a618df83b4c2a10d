//! Why a loop was too slow: reads the seconds of a loop log, finds the slow ones, compares them with the log's own
//! healthy seconds, and names stage and cause.
//!
//! A cause is believed for two things together: its own sign is stronger than in the healthy seconds (a flag, a clock,
//! pages from swap, lost pictures), and the stages that it slows have grown. A sign that was there all the time
//! explains nothing: a processor at 80 degrees that kept its clock has not throttled, and a clock that fell while the
//! loop waited for a camera fell because there was nothing to do. Confidence is a heuristic number, 0 to 1.

mod baseline;
mod causes;
mod text;

use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use serde::Serialize;

use super::line::{LoopLine, ParsedLog};
use baseline::{Second, seconds};

/// Why a loop stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StallCause {
    /// Heat makes the processor slow itself down.
    Thermal,
    /// The supply is too weak, and the firmware caps the clock.
    Power,
    /// The clock is low without heat: governor, or a limit that somebody has set.
    Clock,
    /// Memory runs out: pages go to swap and come back.
    Memory,
    /// Other programs take the processor.
    Load,
    /// A camera delivers late, or loses pictures.
    Camera,
    /// Servos answer late, damaged or not at all.
    Bus,
    /// The disk is too slow for what is written.
    Disk,
    /// The policy itself needs longer than before, and nothing else does.
    Policy,
    /// The log does not say.
    Unknown,
}

impl StallCause {
    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Thermal => "thermal",
            Self::Power => "power",
            Self::Clock => "clock",
            Self::Memory => "memory",
            Self::Load => "load",
            Self::Camera => "camera",
            Self::Bus => "bus",
            Self::Disk => "disk",
            Self::Policy => "policy",
            Self::Unknown => "unknown",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Thermal => {
                "cool the processor: active cooler, free air around the case; or give it less to do (fewer pixels, \
                 lower fps, encode on fewer threads)"
            }
            Self::Power => {
                "use the supply that the board asks for (a Raspberry Pi 5 needs 5 V 5 A) on a short cable, and feed the \
                 servos and cameras from another one"
            }
            Self::Clock => {
                "let the clock rise: set the governor to performance (cpupower frequency-set -g performance) and look for \
                 a limit in scaling_max_freq or arm_freq of config.txt"
            }
            Self::Memory => {
                "free memory: close other programs, load a smaller policy (half precision), shorten the encoder's queue; \
                 swap on an SD card makes it worse"
            }
            Self::Load => "stop what else runs (see top), or bind it to other cores with taskset",
            Self::Camera => {
                "give each camera a USB controller of its own, take MJPG instead of YUYV, lock the exposure below the \
                 period, try another cable"
            }
            Self::Bus => {
                "check the servo cables, their supply and doubled ids (the diagnose example); keep the adapter off a \
                 shared hub"
            }
            Self::Disk => {
                "record to an SSD instead of an SD card or network share, free space, choose a faster encoder preset"
            }
            Self::Policy => {
                "use a smaller policy or longer action chunks, or run it on another computer and send it the pictures"
            }
            Self::Unknown => {
                "record with the host probe switched on (some of its files were absent) and look at what else ran at \
                 that time"
            }
        }
    }
}

/// One possible cause of one stall.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Attribution {
    /// What it is.
    pub cause: StallCause,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// The figures that speak for it.
    pub evidence: Vec<String>,
    /// What to do about it.
    pub advice: &'static str,
}

/// How much longer a stage took than in the healthy seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageGrowth {
    /// The stage's name in the log.
    pub stage: String,
    /// Its median in healthy seconds, milliseconds.
    pub healthy_p50_ms: f64,
    /// Its 99th percentile in healthy seconds, milliseconds.
    pub healthy_p99_ms: f64,
    /// Its median in the stall, milliseconds.
    pub p50_ms: f64,
    /// Its 99th percentile in the stall, milliseconds.
    pub p99_ms: f64,
    /// Its share of the time that all stages of the loop have gained, 0 to 1; `None` for work of another thread.
    pub share: Option<f64>,
}

/// A stretch of slow seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stall {
    /// Session of the log, from 1.
    pub session: usize,
    /// Its beginning on the loop's clock, seconds.
    pub from_s: f64,
    /// Its end, seconds.
    pub to_s: f64,
    /// The episodes that it touched.
    pub episodes: Vec<u64>,
    /// Periods that were too long.
    pub overruns: u64,
    /// Periods in which a picture was stale or lost.
    pub missed_frames: u64,
    /// The stage that gained most, then the others that gained.
    pub stages: Vec<StageGrowth>,
    /// The likeliest cause first. Never empty.
    pub causes: Vec<Attribution>,
}

/// What a log says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Seconds in the log.
    pub seconds: usize,
    /// Seconds without overrun or missed picture; what the others were compared with.
    pub healthy_seconds: usize,
    /// The cause of most overruns; `None` where nothing stalled.
    pub cause: Option<StallCause>,
    /// Each cause with its share of the stalled time, 0 to 1.
    pub shares: BTreeMap<StallCause, f64>,
    /// The stalls in order of time.
    pub stalls: Vec<Stall>,
    /// What makes these figures less sure.
    pub notes: Vec<String>,
}

impl Diagnosis {
    /// The causes by their share of the stalled time.
    #[must_use]
    pub fn causes(&self) -> Vec<StallCause> {
        let mut causes: Vec<(StallCause, f64)> = self.shares.iter().map(|(c, s)| (*c, *s)).collect();
        causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        causes.into_iter().map(|(cause, _)| cause).collect()
    }
}

/// When a second counts as slow, and which causes are told.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StallOptions {
    /// Share of too long periods from which a second is slow.
    pub overrun_share: f64,
    /// Share of periods without a new picture from which a second is slow.
    pub missed_frame_share: f64,
    /// Healthy seconds that a stall may span.
    pub merge_gap: usize,
    /// The least confidence of a cause that is told.
    pub least_confidence: f64,
}

impl Default for StallOptions {
    /// Any overrun, every tenth picture, two seconds, 0.3.
    fn default() -> Self {
        Self { overrun_share: 1e-9, missed_frame_share: 0.1, merge_gap: 2, least_confidence: 0.3 }
    }
}

/// Finds the stalls of a log and says why they happened.
///
/// ```
/// use so101_hal::host::{self, stall};
/// let healthy = br#"{"kind":"loop","t_s":1,"span_s":1,"cycles":30,"period_ms":33.3,"stages":{}}"#;
/// let found = stall::diagnose(&host::parse(healthy), &stall::StallOptions::default());
/// assert_eq!((found.cause, found.seconds), (None, 1));
/// println!("{found}");
/// ```
#[must_use]
pub fn diagnose(log: &ParsedLog, options: &StallOptions) -> Diagnosis {
    let seconds = seconds(&log.lines, options);
    let healthy: Vec<&Second<'_>> = seconds.iter().filter(|s| !s.slow).collect();
    let slow = seconds.len() - healthy.len();
    let mut notes = Vec::new();
    let base = baseline::Baseline::of(&seconds, &mut notes);
    let stalls: Vec<Stall> = groups(&seconds, options.merge_gap)
        .into_iter()
        .map(|group| causes::explain(group, &base, options))
        .collect();
    let mut shares = BTreeMap::new();
    for stall in &stalls {
        let Some(first) = stall.causes.first() else { continue };
        *shares.entry(first.cause).or_insert(0.0) += stall.overruns.max(1) as f64;
    }
    let all: f64 = shares.values().sum();
    shares.values_mut().for_each(|s| *s = (*s / all * 1e3).round() / 1e3);
    let cause = shares.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(cause, _)| *cause);
    if log.skipped > 0 {
        notes.push(std::format!("{} lines are no lines of a loop log and were left out", log.skipped));
    }
    Diagnosis { seconds: seconds.len(), healthy_seconds: seconds.len() - slow, cause, shares, stalls, notes }
}

/// Stretches of slow seconds of one session, across short healthy gaps.
fn groups<'s, 'l>(seconds: &'s [Second<'l>], merge_gap: usize) -> Vec<&'s [Second<'l>]> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (i, second) in seconds.iter().enumerate().filter(|(_, s)| s.slow) {
        match found.last_mut() {
            Some((first, end)) if i - *end <= merge_gap && same_session(seconds, *first, second) => {
                *end = i + 1;
            }
            _ => found.push((i, i + 1)),
        }
    }
    found.into_iter().filter_map(|(from, to)| seconds.get(from..to)).collect()
}

fn same_session(seconds: &[Second<'_>], first: usize, other: &Second<'_>) -> bool {
    seconds.get(first).is_some_and(|s| s.session == other.session)
}

/// Periods in which a camera had nothing new, or lost something.
fn missed_frames(line: &LoopLine) -> u64 {
    line.counters_of("stale.").saturating_add(line.counters_of("dropped."))
}
