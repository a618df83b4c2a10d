//! The log of stage times beside a session: lines for `meta/so101/host.jsonl`, which `diagnose_stall` reads.

use std::time::Duration;

use so101_hal::bus::BusStats;
use so101_hal::host::{Counter, LoopLog, LoopLogOptions, Stage};
use so101_hal::{CameraSpec, Timestamp};

use super::rigs::Rig;

/// A [`LoopLog`] in memory. A log that cannot be written never stops a recording.
#[derive(Debug)]
pub struct SessionLog {
    log: Option<LoopLog<Vec<u8>>>,
}

impl SessionLog {
    /// Begins, for rows at this rate and these cameras.
    #[must_use]
    pub fn start(fps: u32, cameras: &[CameraSpec]) -> Self {
        let mut options = LoopLogOptions::default();
        options.period = Duration::from_secs(1) / fps.max(1);
        options.cameras = cameras.iter().map(|c| c.name.clone()).collect();
        let log = LoopLog::start(Vec::new(), options).inspect_err(|e| tracing::warn!("no loop log: {e}"));
        Self { log: log.ok() }
    }

    /// No log.
    #[must_use]
    pub const fn none() -> Self {
        Self { log: None }
    }

    /// From now on rows belong to this episode.
    pub fn begin(&mut self, episode: u32, bus: Option<BusStats>) {
        if let Some(log) = &mut self.log {
            log.set_episode(Some(episode.into()));
            if let Some(bus) = bus {
                log.bus(bus);
            }
        }
    }

    /// Rows belong to no episode.
    pub fn end(&mut self) {
        if let Some(log) = &mut self.log {
            log.set_episode(None);
        }
    }

    /// How long the stages of a row took. A rig with a control loop tells how long its bus and cameras took.
    pub(super) fn stages(&mut self, rig: &dyn Rig, times: &[(Stage, Duration)]) {
        let Some(log) = &mut self.log else { return };
        for &(stage, time) in times {
            let bus = (stage == Stage::ObserveBus).then(|| rig.last_bus_read()).flatten();
            log.stage(stage, bus.unwrap_or(time));
        }
        for (i, time) in rig.camera_times().iter().enumerate() {
            log.stage(Stage::Camera(i), *time);
        }
        if let Some(bus) = rig.bus_stats() {
            log.bus(bus);
        }
    }

    /// Something happened `n` times.
    pub(super) fn count(&mut self, counter: Counter, n: u64) {
        if let Some(log) = &mut self.log {
            log.count(counter, n);
        }
    }

    /// A row is done.
    pub(super) fn end_row(&mut self, now: Timestamp, work: Duration) {
        if let Some(log) = &mut self.log {
            log.end_cycle(now, work);
        }
    }

    /// An episode became durable.
    pub(super) fn committed(&mut self, time: Duration) {
        if let Some(log) = &mut self.log {
            log.stage(Stage::DiskCommit, time);
        }
    }

    /// All lines.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let ended = self.log.take().map(LoopLog::finish);
        ended.and_then(|bytes| bytes.inspect_err(|e| tracing::warn!("{e}")).ok()).unwrap_or_default()
    }
}
