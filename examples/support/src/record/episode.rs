//! One episode: observe, decide, act, record, wait for the next absolute deadline.

mod samples;

use std::sync::LazyLock;
use std::time::Duration;

use so101_dataset::DatasetWriter;
use so101_hal::control::LoopCounters;
use so101_hal::host::{Counter, Stage};
use so101_hal::{Clock as _, EpisodeSink as _, EpisodeTiming, Frame, NamedFrame, Timestamp};

use self::samples::Samples;
use super::driver::{Driver, SETTLE};
use super::keys::{Operator, Wish};
use super::log::SessionLog;
use super::rigs::Rig;
use crate::error::{Error, Result};
use crate::expert::PushLeft;
use crate::interrupt;
use crate::loop_stats::{Laps, LoopStats};
use crate::plan::EpisodeSetup;

/// Moments of an episode that its contact sheet shows.
pub const SHEET_COLUMNS: usize = 6;

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The demonstrator came to its end, or the cap did, or the operator has seen enough.
    Done,
    /// The operator wants this episode and no more.
    Stop,
    /// The operator wants to record it again.
    Again,
    /// The operator has switched the torque off.
    Emergency,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// The control loop of one episode.
#[derive(Debug)]
pub struct EpisodeLoop<'a, 'd> {
    driver: Driver<'d>,
    setup: &'a EpisodeSetup,
    fps: u32,
    operator: Option<&'a mut Operator>,
    log: &'a mut SessionLog,
    stats: LoopStats,
    timing: EpisodeTiming,
    samples: Samples,
    seen: Seen,
}

/// What the row before was made of.
#[derive(Debug, Default)]
struct Seen {
    at: Option<Timestamp>,
    sequences: Vec<Option<u64>>,
}

/// What is left of a loop.
#[derive(Debug)]
pub struct Taken {
    /// How it ended.
    pub outcome: Outcome,
    /// Loop times.
    pub stats: LoopStats,
    /// How well it kept its time; `None` on a rig whose time is simulated.
    pub timing: Option<EpisodeTiming>,
    /// What the control loop counted meanwhile, where there is one.
    pub control: Option<LoopCounters>,
    /// A few pictures of each camera.
    pub samples: Vec<Vec<Frame>>,
}

impl<'a, 'd> EpisodeLoop<'a, 'd> {
    /// An episode of `setup` at `fps` rows a second.
    #[must_use]
    pub fn new(
        driver: Driver<'d>,
        setup: &'a EpisodeSetup,
        fps: u32,
        operator: Option<&'a mut Operator>,
        log: &'a mut SessionLog,
    ) -> Self {
        let frames = super::cap_frames(driver.duration(setup.cap), fps);
        let samples = match driver {
            Driver::Expert(_) | Driver::Visit(_) => Samples::of_known_length(frames),
            Driver::Teleop(_) => Samples::of_unknown_length(),
        };
        let (stats, timing, seen) = (LoopStats::default(), EpisodeTiming::default(), Seen::default());
        Self { driver, setup, fps, operator, log, stats, timing, samples, seen }
    }

    /// Runs to the end of the demonstration, the plan's cap or the operator's key.
    ///
    /// # Errors
    /// Bus, camera and dataset errors; the episode is incomplete then.
    pub fn run(mut self, rig: &mut dyn Rig, writer: &mut DatasetWriter) -> Result<Taken> {
        let before = rig.control();
        self.log.begin(self.setup.index, rig.bus_stats());
        let drops_before = rig.camera_drops();
        let outcome = self.rows(rig, writer)?;
        let mut timing = self.timing;
        for (i, (now, before)) in rig.camera_drops().into_iter().zip(drops_before).enumerate() {
            let dropped = now.saturating_sub(before);
            timing.dropped_frames += dropped;
            self.log.count(Counter::DroppedFrames(i), dropped);
        }
        self.log.end();
        let control = rig.control().zip(before).map(|(after, before)| after.since(&before));
        if let Some(counted) = &control {
            timing.bus_cycles = counted.cycles;
            timing.bus_overruns = counted.overruns;
            timing.bus_stale = counted.stale;
            timing.bus_retries = counted.retries;
            timing.bus_timeouts = counted.timeouts;
            timing.alarms = counted.alarms_seen().map(so101_hal::Alarms::bits);
        }
        let timing = rig.is_real_time().then_some(timing);
        let samples = self.samples.into_rows(SHEET_COLUMNS);
        Ok(Taken { outcome, stats: self.stats, timing, control, samples })
    }

    fn rows(&mut self, rig: &mut dyn Rig, writer: &mut DatasetWriter) -> Result<Outcome> {
        let clock = rig.clock();
        let start = clock.now();
        let frames = super::cap_frames(self.driver.duration(self.setup.cap), self.fps);
        for i in 0..frames {
            if interrupt::requested() {
                return Ok(Outcome::Interrupted);
            }
            match self.operator.as_mut().and_then(|o| o.wish()) {
                Some(Wish::Next) => return Ok(Outcome::Done),
                Some(Wish::Stop) => return Ok(Outcome::Stop),
                Some(Wish::Again) => return Ok(Outcome::Again),
                Some(Wish::Emergency) => {
                    rig.emergency_stop()?;
                    return Ok(Outcome::Emergency);
                }
                None => {}
            }
            crash_hook(self.setup.index, i);
            self.row(i, rig, writer)?;
            if self.driver.is_finished() {
                break;
            }
            clock.sleep_until(start + period(i + 1, self.fps));
        }
        Ok(Outcome::Done)
    }

    fn row(&mut self, i: u32, rig: &mut dyn Rig, writer: &mut DatasetWriter) -> Result<()> {
        let clock = rig.clock();
        let mut laps = Laps::start();
        let observation = rig.observe()?;
        let observe = laps.lap();
        let action = self.driver.action(period(i, self.fps), clock.now())?;
        let decide = laps.lap();
        rig.act(&action)?;
        let acted = clock.now();
        let act = laps.lap();
        // The row holds the action as it was decided, like LeRobot's recorder; a rig's limits do not change labels.
        if rig.is_real_time() {
            writer.add_acted(&observation, &action, acted).map_err(Error::sink)?;
        } else {
            writer.add(&observation, &action).map_err(Error::sink)?;
        }
        let record = laps.lap();
        for (stage, time) in [
            (&mut self.stats.observe, observe),
            (&mut self.stats.decide, decide),
            (&mut self.stats.act, act),
            (&mut self.stats.record, record),
            (&mut self.stats.total, laps.total()),
        ] {
            stage.push(time);
        }
        let late = laps.total() > period(1, self.fps);
        self.stats.overruns += u64::from(late);
        self.timing.overruns += u64::from(late);
        self.note(observation.at, &observation.frames);
        let deciding = if matches!(self.driver, Driver::Teleop(_)) { Stage::Teleop } else { Stage::Policy };
        self.log.stages(
            rig,
            &[(Stage::ObserveBus, observe), (deciding, decide), (Stage::Act, act), (Stage::Record, record)],
        );
        self.log.end_row(acted, laps.total());
        self.samples.take(i, &observation.frames);
        Ok(())
    }

    /// Counts what is the same as in the row before.
    fn note(&mut self, at: Timestamp, frames: &[NamedFrame]) {
        self.timing.stale_states += u64::from(self.seen.at.replace(at) == Some(at));
        self.seen.sequences.resize(frames.len(), None);
        for (i, (last, named)) in self.seen.sequences.iter_mut().zip(frames).enumerate() {
            if last.replace(named.frame.sequence) == Some(named.frame.sequence) {
                self.timing.stale_frames += 1;
                self.log.count(Counter::StaleFrames(i), 1);
            }
        }
    }
}

/// Control periods of an episode: the demonstration and a moment of rest, at most the plan's cap.
#[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "trials of the simulated rig"))]
pub(crate) fn periods(expert: &PushLeft, setup: &EpisodeSetup, fps: u32) -> u32 {
    super::cap_frames((expert.duration() + SETTLE).min(setup.cap), fps)
}

/// Time from the start of the loop to period `i`, without accumulated rounding.
pub(crate) fn period(i: u32, fps: u32) -> Duration {
    Duration::from_nanos(u64::from(i) * 1_000_000_000 / u64::from(fps.max(1)))
}

/// A test hook: `SO101_CRASH_AT=frame:E:F` kills this process (SIGKILL, as `kill -9` does) before frame F of episode E.
fn crash_hook(episode: u32, frame: u32) {
    static AT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SO101_CRASH_AT").ok());
    if AT.as_deref().is_some_and(|at| at == format!("frame:{episode}:{frame}")) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
