//! A follower that is driven, and who drives it.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use so101_hal::arm::{EmergencyStop, Ending, FoundArm, Ramp, ServoProfile};
use so101_hal::bus::ServoBus;
use so101_hal::control::{ArmSnapshot, ControlCore, ControlHandle, ControlLoop, LoopConfig, LoopCounters};
use so101_hal::teleop::Teleoperator;
use so101_hal::{Arm, ArmOptions, Clock, Degrees, Holding, JointVector, Percent, Timestamp};

use super::Summary;
use crate::cli::say;
use crate::error::{Error, Result};
use crate::hardware::{ArmArgs, OpenBus, Pace, Role};

/// Speed of the way back to where the arm was found.
const RETURN_DEG_S: f64 = 30.0;

/// How a follower is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AtEnd {
    /// Slowly back to where it was found limp, then torque off
    #[default]
    Back,
    /// Torque off where it is: it sinks
    Relax,
    /// It holds
    Hold,
}

/// How a follower is driven.
#[derive(Clone, Copy, Debug, Default)]
pub struct FollowerOptions {
    /// LeRobot's `max_relative_target`: degrees, of the gripper percent.
    pub max_relative_target: Option<f64>,
    /// How it is left.
    pub at_end: AtEnd,
}

/// Whether a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// With the next period.
    On,
    /// Not any further.
    End,
}

/// One period.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// Time since the first action.
    pub since_start: Duration,
    /// Where the operator wants the joints.
    pub goal: JointVector<Degrees>,
    /// Where they are.
    pub snapshot: ArmSnapshot,
}

type Bus = Box<dyn ServoBus>;

/// The arm under its control loop: a thread in real time; without one where time is virtual, so that every run is equal.
enum Follower {
    Threaded(ControlHandle<Bus>),
    Stepped(Box<ControlCore<Bus>>),
    Gone,
}

/// A coupled pair.
pub struct Session {
    teleop: Box<dyn Teleoperator>,
    follower: Follower,
    clock: Arc<dyn Clock>,
    stop: EmergencyStop,
    found_at: JointVector<Degrees>,
    at_end: AtEnd,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("teleop", &self.teleop.name()).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens the follower, checks that the teleoperator is near enough, and energises it where it stands.
    ///
    /// # Errors
    /// [`Error::Refused`] where the two are too far apart; nothing was energised then. Errors of port and calibration.
    pub fn open(
        arm: &ArmArgs,
        pace: Pace,
        mut teleop: Box<dyn Teleoperator>,
        options: &FollowerOptions,
    ) -> Result<Self> {
        let (calibration, _) = arm.calibration(Role::Follower)?;
        let OpenBus { bus, clock, .. } = arm.open(Role::Follower, pace)?;
        let mut arm_options = ArmOptions::new(Arc::clone(&clock));
        if let Some(most) = options.max_relative_target {
            arm_options = arm_options.with_max_relative_target(Degrees(most), Percent(most));
        }
        let mut found = Arm::connect(bus, calibration, arm_options)?;
        let (found_at, at_end) = match &mut found {
            FoundArm::Relaxed(arm) => {
                arm.configure(&ServoProfile::follower())?;
                (arm.read_joints()?, options.at_end)
            }
            FoundArm::Holding(arm) => {
                say("the follower holds already: its registers stay as they are");
                // Where it holds is no place for a limp arm.
                let at_end = if options.at_end == AtEnd::Back { AtEnd::Hold } else { options.at_end };
                (arm.read_joints()?, at_end)
            }
        };
        teleop.engage(&found_at).map_err(|e| match e {
            gap @ so101_hal::Error::PoseGap { .. } => Error::Refused(gap.to_string()),
            other => other.into(),
        })?;
        let armed = found.into_armed()?;
        let stop = armed.emergency_stop();
        let config = LoopConfig::default();
        let follower = match pace {
            Pace::RealTime => Follower::Threaded(ControlLoop::spawn(armed, Arc::clone(&clock), config)?),
            Pace::Virtual => {
                Follower::Stepped(Box::new(ControlCore::new(armed, Arc::clone(&clock), config)?))
            }
        };
        Ok(Self { teleop, follower, clock, stop, found_at, at_end })
    }

    /// A handle that switches the follower's torque off from any thread.
    #[must_use]
    pub fn emergency_stop(&self) -> EmergencyStop {
        self.stop.clone()
    }

    /// Sends actions at a rate until `watch` says that it is enough, or the teleoperator is finished.
    ///
    /// # Errors
    /// Errors of the two arms.
    pub fn run(&mut self, fps: u32, mut watch: impl FnMut(&Seen) -> Goes) -> Result<Summary> {
        let period = Duration::from_secs(1) / fps.max(1);
        let start = self.clock.now();
        let (mut deadline, mut summary) = (start, Summary::default());
        loop {
            let now = self.clock.now();
            let goal = self.teleop.action(now)?.joints;
            self.follower.set_goal(&goal, now)?;
            let seen = Seen { since_start: now.since(start), goal, snapshot: self.follower.snapshot()? };
            summary.see(&seen);
            if watch(&seen) == Goes::End || self.teleop.is_finished() {
                break;
            }
            deadline = deadline + period;
            self.follower.sleep_until(deadline, self.clock.as_ref())?;
            let late = self.clock.now().since(deadline);
            if late > period / 2 {
                summary.late += 1;
                deadline = self.clock.now();
            }
        }
        let counters = self.follower.counters();
        (summary.bus_cycles, summary.overruns) = (counters.cycles, counters.overruns);
        Ok(summary)
    }

    /// Leaves the follower as the options say.
    ///
    /// # Errors
    /// Why the control loop ended, and errors of the bus.
    pub fn finish(mut self) -> Result<()> {
        let ending = match self.at_end {
            AtEnd::Back => Ending::RampThenRelax(Ramp::new(self.found_at, RETURN_DEG_S)),
            AtEnd::Relax => Ending::Relax,
            AtEnd::Hold => Ending::Hold,
        };
        match self.follower.stop()? {
            Some(arm) => Ok(arm.finish(&ending)?),
            None => Ok(()),
        }
    }
}

impl Follower {
    fn set_goal(&mut self, joints: &JointVector<Degrees>, at: Timestamp) -> Result<()> {
        match self {
            Self::Threaded(handle) => Ok(handle.set_goal(joints, at)?),
            Self::Stepped(core) => Ok(core.set_goal(joints, at)?),
            Self::Gone => Err(so101_hal::Error::LoopEnded.into()),
        }
    }

    fn snapshot(&self) -> Result<ArmSnapshot> {
        match self {
            Self::Threaded(handle) => Ok(handle.snapshot()?),
            Self::Stepped(core) => Ok(*core.snapshot()),
            Self::Gone => Err(so101_hal::Error::LoopEnded.into()),
        }
    }

    /// Sleeps; without a thread of its own the loop's cycles happen meanwhile.
    fn sleep_until(&mut self, deadline: Timestamp, clock: &dyn Clock) -> Result<()> {
        if let Self::Stepped(core) = self {
            while core.next_deadline() <= deadline {
                clock.sleep_until(core.next_deadline());
                core.cycle()?;
            }
        }
        clock.sleep_until(deadline);
        Ok(())
    }

    fn counters(&self) -> LoopCounters {
        match self {
            Self::Threaded(handle) => handle.stats(),
            Self::Stepped(core) => *core.counters(),
            Self::Gone => LoopCounters::default(),
        }
    }

    fn stop(&mut self) -> Result<Option<Arm<Bus, Holding>>> {
        match std::mem::replace(self, Self::Gone) {
            Self::Threaded(handle) => Ok(Some(handle.stop()?)),
            Self::Stepped(core) => Ok(Some(core.into_arm().hold())),
            Self::Gone => Ok(None),
        }
    }
}
