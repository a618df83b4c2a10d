//! From single periods to a line a second.

use std::collections::BTreeMap;
use std::string::{String, ToString as _};
use std::time::Duration;
use std::vec::Vec;

use super::line::{LoopLine, QueueDepth, StageTimes};
use super::log::{Counter, Stage};

/// Stages that are not cameras, in the order of their places.
const FIXED_STAGES: usize = 9;

/// Counters that are not of one camera.
const FIXED_COUNTERS: usize = 4;

/// What happened since the last line. Its vectors have room for all periods of a line from the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregate {
    stages: Vec<Vec<u32>>,
    counters: Vec<u64>,
    queue: Option<QueueDepth>,
    pub(super) cycles: u32,
}

impl Aggregate {
    pub(super) fn new(cameras: usize, cycles: usize) -> Self {
        Self {
            stages: std::vec![Vec::with_capacity(cycles); FIXED_STAGES + cameras],
            counters: std::vec![0; FIXED_COUNTERS + 2 * cameras],
            queue: None,
            cycles: 0,
        }
    }

    /// Adds a time. Of a camera that was not announced it goes nowhere.
    pub(super) fn stage(&mut self, stage: Stage, time: Duration) {
        let us = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        if let Some(times) = self.stages.get_mut(stage_place(stage)) {
            times.push(us);
        }
    }

    pub(super) fn count(&mut self, counter: Counter, n: u64) {
        let cameras = self.stages.len().saturating_sub(FIXED_STAGES);
        let place = match counter {
            Counter::Overruns => 0,
            Counter::BusRetries => 1,
            Counter::BusTimeouts => 2,
            Counter::BusDamaged => 3,
            Counter::StaleFrames(camera) if camera < cameras => FIXED_COUNTERS + camera,
            Counter::DroppedFrames(camera) if camera < cameras => FIXED_COUNTERS + cameras + camera,
            Counter::StaleFrames(_) | Counter::DroppedFrames(_) => return,
        };
        if let Some(sum) = self.counters.get_mut(place) {
            *sum = sum.saturating_add(n);
        }
    }

    pub(super) fn queue(&mut self, depth: u32, capacity: u32) {
        let max = self.queue.map_or(depth, |q| q.max.max(depth));
        self.queue = Some(QueueDepth { max, capacity });
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.cycles == 0 && self.stages.iter().all(Vec::is_empty) && self.counters.iter().all(|n| *n == 0)
    }

    /// The line's stages, counters and queue; the aggregate is sorted by it.
    pub(super) fn fill(&mut self, cameras: &[String], line: &mut LoopLine) {
        line.cycles = self.cycles;
        line.queue = self.queue;
        line.stages = BTreeMap::new();
        for (place, times) in self.stages.iter_mut().enumerate() {
            if let Some(figures) = figures(times) {
                line.stages.insert(stage_name(place, cameras), figures);
            }
        }
        for (place, n) in self.counters.iter().enumerate().filter(|(_, n)| **n > 0) {
            line.counters.insert(counter_name(place, cameras), *n);
        }
    }
}

fn stage_place(stage: Stage) -> usize {
    match stage {
        Stage::ObserveBus => 0,
        Stage::Decode => 1,
        Stage::Policy => 2,
        Stage::Teleop => 3,
        Stage::Act => 4,
        Stage::Record => 5,
        Stage::EncodeQueue => 6,
        Stage::DiskCommit => 7,
        Stage::Total => 8,
        Stage::Camera(camera) => FIXED_STAGES.saturating_add(camera),
    }
}

fn stage_name(place: usize, cameras: &[String]) -> String {
    let fixed = [
        "observe_bus",
        "decode",
        "policy",
        "teleop",
        "act",
        "record",
        "encode_queue",
        "disk_commit",
        "total",
    ];
    match fixed.get(place) {
        Some(name) => (*name).to_string(),
        None => camera_name("camera.", place - fixed.len(), cameras),
    }
}

fn counter_name(place: usize, cameras: &[String]) -> String {
    let fixed = ["overruns", "bus_retries", "bus_timeouts", "bus_damaged"];
    match fixed.get(place) {
        Some(name) => (*name).to_string(),
        None => {
            let place = place - fixed.len();
            match place.checked_sub(cameras.len()) {
                None => camera_name("stale.", place, cameras),
                Some(camera) => camera_name("dropped.", camera, cameras),
            }
        }
    }
}

fn camera_name(prefix: &str, camera: usize, cameras: &[String]) -> String {
    [prefix, cameras.get(camera).map_or("?", String::as_str)].concat()
}

/// Percentiles by nearest rank, rounded to microseconds.
fn figures(times_us: &mut [u32]) -> Option<StageTimes> {
    times_us.sort_unstable();
    let at = |share: f64| -> Option<f64> {
        let rank = (times_us.len() as f64 * share).ceil() as usize;
        times_us.get(rank.saturating_sub(1)).map(|us| f64::from(*us) / 1e3)
    };
    Some(StageTimes {
        n: u32::try_from(times_us.len()).unwrap_or(u32::MAX),
        p50_ms: at(0.5)?,
        p99_ms: at(0.99)?,
        max_ms: at(1.0)?,
    })
}
