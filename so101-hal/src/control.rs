//! The control loop: a thread of its own for the bus, at a fixed rate, between a recorder and the arm.
//!
//! ```text
//! recorder, 30 Hz                  bus thread, 150 Hz                         servos
//!   set_goal ── latest goal ──►  interpolate ── limits ── send  ──────────►  goal position
//!   snapshot ◄── mailbox ──────  joints, alarms, health ── read ◄──────────  15 bytes of telemetry each
//! ```
//!
//! Every cycle begins at an absolute deadline, reads the whole telemetry, and goes one step from the last setpoint
//! towards the latest goal ([`Interpolator`]). A cycle that ends late is counted and the deadlines that it missed are
//! left out; they are never made up for in a burst. Neither side waits for the other: goals and snapshots are values
//! behind a lock that is held for the time of a copy.
//!
//! | what happens | what the loop does |
//! |---|---|
//! | no new goal for [`LoopConfig::goal_ttl`] | stops where the arm was told to be last ([`LoopState::Resting`]) |
//! | no state for 100 ms ([`Health::Degraded`](crate::arm::Health)) | sends nothing; goes on by itself when the arm answers again |
//! | no state for 500 ms ([`Health::Lost`](crate::arm::Health)) | sends nothing until [`ControlHandle::resume`], then starts from where the arm is |
//! | the port fails | the same, and opens it again; [`LoopConfig::give_up_after`] ends the loop with the port's error |
//! | emergency stop | sends nothing any more, reads on |
//! | an alarm | counts it for its joint ([`LoopCounters::alarms`]); it stays counted when it is gone |
//! | a panic in the thread | ends the loop; the arm is dropped, which relaxes or keeps it as its options say |
//!
//! How a loop ended is what the next [`ControlHandle::snapshot`] or [`ControlHandle::stop`] returns.
//!
//! [`ControlCore`] is the same loop without its thread, a call a cycle: on a virtual clock it is deterministic.

mod core;
mod counters;
mod interpolate;
#[cfg(feature = "std")]
mod thread;

pub use self::core::ControlCore;
pub use counters::{AlarmCounts, LoopCounters, StageTimes};
pub use interpolate::Interpolator;
#[cfg(feature = "std")]
pub use thread::{ControlHandle, ControlLoop};

use ::core::time::Duration;

use serde::Serialize;

use crate::arm::{Health, JointState};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::joint::JointVector;
use crate::units::Degrees;

/// Rates that a bus with six servos can be asked for.
const RATES_HZ: ::core::ops::RangeInclusive<f64> = 1.0..=500.0;

/// Pace and patience of a control loop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoopConfig {
    /// Cycles a second, 1 to 500; 100 to 200 suit a 1 Mbaud bus with six servos (2 ms a cycle on the wire).
    pub bus_hz: f64,
    /// What goals are expected to have between them until their pace is known.
    pub goal_period: Duration,
    /// A goal that is older is not followed any more.
    pub goal_ttl: Duration,
    /// Time between two tries to open a port that failed.
    pub reopen_every: Duration,
    /// How long the port may fail before the loop ends.
    pub give_up_after: Duration,
}

impl Default for LoopConfig {
    /// 150 Hz, goals at 30 Hz that live for 300 ms, a port that is tried every 0.5 s for 10 s.
    fn default() -> Self {
        Self {
            bus_hz: 150.0,
            goal_period: Duration::from_nanos(33_333_333),
            goal_ttl: Duration::from_millis(300),
            reopen_every: Duration::from_millis(500),
            give_up_after: Duration::from_secs(10),
        }
    }
}

impl LoopConfig {
    /// For goals at this rate.
    #[must_use]
    pub fn with_goals_at_hz(mut self, goals_hz: u32) -> Self {
        self.goal_period = Duration::from_secs(1) / goals_hz.max(1);
        self
    }

    /// Another rate of the bus.
    #[must_use]
    pub const fn with_bus_hz(mut self, bus_hz: f64) -> Self {
        self.bus_hz = bus_hz;
        self
    }

    /// Time between two deadlines.
    fn period(&self) -> Result<Duration> {
        if RATES_HZ.contains(&self.bus_hz) {
            Ok(Duration::from_secs_f64(1.0 / self.bus_hz))
        } else {
            Err(Error::LoopRate { bus_hz: self.bus_hz, min: *RATES_HZ.start(), max: *RATES_HZ.end() })
        }
    }
}

/// What the loop does with the arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopState {
    /// There is no goal, or it has grown old: the arm holds where it was told to be last.
    #[default]
    Resting,
    /// On the way to the latest goal, or there.
    Following,
    /// Joints do not answer at this moment; nothing is sent.
    Degraded,
    /// Joints did not answer for long; nothing is sent until somebody resumes.
    Lost,
    /// The emergency stop was used.
    Stopped,
}

/// The arm as of the last cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ArmSnapshot {
    /// Counts cycles that brought a whole new state, from 0: the same number twice is the same state.
    pub sequence: u64,
    /// When that state was read: the middle between request and last reply.
    pub at: Timestamp,
    /// Measured joints: LeRobot degrees, gripper percent. Of a joint that did not answer, the last that is known.
    pub joints: JointVector<Degrees>,
    /// What each joint said, alarms included.
    pub states: [JointState; 6],
    /// What was sent last, after all limits, and when; `None` before the first goal.
    pub sent: Option<(JointVector<Degrees>, Timestamp)>,
    /// What the loop does.
    pub state: LoopState,
    /// Whether the arm answers.
    pub health: Health,
}

impl ArmSnapshot {
    /// Whether every joint has answered in the last cycle.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.states.iter().all(|s| s.missed == 0)
    }
}

#[cfg(feature = "std")]
#[cfg(test)]
mod tests;
