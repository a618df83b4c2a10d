//! One episode: observe, decide, act, record, wait for the next absolute deadline.

use std::sync::LazyLock;
use std::time::Duration;

use so101_dataset::DatasetWriter;
use so101_hal::{Action, Clock as _, EpisodeSink as _, Frame};

use crate::error::{Error, Result};
use crate::expert::{LeftOf, PushConfig, PushLeft};
use crate::interrupt;
use crate::loop_stats::{Laps, LoopStats};
use crate::plan::{EpisodeSetup, Home};

use super::rigs::Rig;

/// Moments of an episode that its contact sheet shows.
pub const SHEET_COLUMNS: usize = 6;

/// Rows after the demonstrator is done: the arm comes to rest in the recording.
const SETTLE: Duration = Duration::from_millis(300);

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The demonstrator came to its end, or the cap did.
    Done,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// The control loop of one episode.
pub struct EpisodeLoop<'a> {
    expert: PushLeft,
    setup: &'a EpisodeSetup,
    fps: u32,
    stats: LoopStats,
    samples: Vec<Vec<Frame>>,
}

impl<'a> EpisodeLoop<'a> {
    /// Plans the demonstration of `setup`.
    ///
    /// # Errors
    /// When the object lies where the arm cannot push it.
    pub fn new(home: &Home, setup: &'a EpisodeSetup, left_of: LeftOf, fps: u32) -> Result<Self> {
        let expert = PushLeft::new(home, setup, PushConfig::default().with_left_of(left_of))?;
        Ok(Self { expert, setup, fps, stats: LoopStats::default(), samples: Vec::new() })
    }

    /// Runs to the end of the demonstration or the plan's cap.
    ///
    /// # Errors
    /// Bus, camera and dataset errors; the episode is incomplete then.
    pub fn run(&mut self, rig: &mut dyn Rig, writer: &mut DatasetWriter) -> Result<Outcome> {
        let clock = rig.clock();
        let start = clock.now();
        let period = period(1, self.fps);
        let frames = periods(&self.expert, self.setup, self.fps);
        for i in 0..frames {
            if interrupt::requested() {
                return Ok(Outcome::Interrupted);
            }
            crash_hook(self.setup.index, i);
            let mut laps = Laps::start();
            let observation = rig.observe()?;
            self.stats.observe.push(laps.lap());
            let action = Action { joints: self.expert.goal(self::period(i, self.fps))?.joints };
            self.stats.decide.push(laps.lap());
            rig.act(&action)?;
            self.stats.act.push(laps.lap());
            // The row holds the action as it was decided, like LeRobot's recorder; a rig's limits do not change labels.
            writer.add(&observation, &action).map_err(Error::sink)?;
            self.stats.record.push(laps.lap());
            self.stats.total.push(laps.total());
            self.stats.overruns += u64::from(laps.total() > period);
            self.sample(i, frames, &observation.frames);
            clock.sleep_until(start + self::period(i + 1, self.fps));
        }
        Ok(Outcome::Done)
    }

    fn sample(&mut self, i: u32, frames: u32, seen: &[so101_hal::NamedFrame]) {
        let last = frames.saturating_sub(1).max(1);
        let columns = SHEET_COLUMNS as u32 - 1;
        if !(0..=columns).any(|c| c * last / columns == i) {
            return;
        }
        self.samples.resize_with(seen.len().max(self.samples.len()), Vec::new);
        for (row, named) in self.samples.iter_mut().zip(seen) {
            row.push(named.frame.clone());
        }
    }

    /// Loop times, and the sampled pictures of each camera.
    #[must_use]
    pub fn into_parts(self) -> (LoopStats, Vec<Vec<Frame>>) {
        (self.stats, self.samples)
    }
}

/// Control periods of an episode: the demonstration and a moment of rest, at most the plan's cap.
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
