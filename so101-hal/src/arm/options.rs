//! How an arm behaves: limits of its motion, what counts as silence, what becomes of it at the end.

use alloc::sync::Arc;
use core::time::Duration;

use crate::clock::Clock;
use crate::convert::{Rounding, finite};
use crate::error::{Error, Result};
use crate::joint::JointVector;
use crate::units::{Degrees, Percent, Ticks};

/// What becomes of the torque when an energised arm is dropped without a word, a panic's unwinding included.
///
/// It concerns an arm that this driver has energised or steered: one that was found holding and only looked at stays
/// as it was found, unless its emergency stop was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnDrop {
    /// Torque off, read back and tried again as far as the bus still works: the arm sinks. A motor that nobody watches
    /// does not heat up.
    #[default]
    Relax,
    /// Nothing is sent: the servos hold their last goal until the power goes.
    Hold,
}

/// What a servo's homing offset that differs from the calibration's means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OffsetMismatch {
    /// The arm is refused: the positions mean something else than the calibration says.
    #[default]
    Refuse,
    /// The arm is taken; its angles are shifted by the difference.
    Accept,
}

/// When a joint that pushes against something is eased: much current and a large error for too long.
///
/// The rule follows the idea of LeRobot's pull request 4447; the numbers are chosen, not measured on an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StallRule {
    /// Motor current from which on the joint is taken to push, in milliamperes.
    pub current_ma: f64,
    /// Distance of goal and position from which on it is taken to push. An eased joint's goal is kept this far from
    /// its position, so that a gripper goes on gripping.
    pub error: Ticks,
    /// How long both have to last.
    pub after: Duration,
}

impl StallRule {
    /// 1 A and 7 degrees for half a second.
    pub const BODY: Self = Self { current_ma: 1000.0, error: Ticks(80), after: Duration::from_millis(500) };
    /// 0.5 A and 5 degrees for half a second.
    pub const GRIPPER: Self = Self { current_ma: 500.0, error: Ticks(60), after: Duration::from_millis(500) };

    /// A rule of its own.
    #[must_use]
    pub const fn new(current_ma: f64, error: Ticks, after: Duration) -> Self {
        Self { current_ma, error, after }
    }
}

/// Limits that every goal passes, in encoder steps and before it is encoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MotionLimits {
    /// Fastest change of a goal, encoder steps a second; infinity = no limit.
    pub max_speed_ticks_s: f64,
    /// Fastest gain in speed of a goal, encoder steps a second squared; infinity = no limit. Slowing down is not
    /// limited, so that no goal is ever overshot.
    pub max_acceleration_ticks_s2: f64,
    /// Distance that goals keep from both ends of the calibrated range.
    pub range_margin: Ticks,
    /// Older goals are refused.
    pub goal_ttl: Duration,
    /// The longest time that one step of a goal is reckoned with; after a longer pause a joint starts from rest.
    pub longest_step: Duration,
    /// When body joints count as stalled; `None` = never.
    pub body_stall: Option<StallRule>,
    /// When the gripper counts as stalled; `None` = never.
    pub gripper_stall: Option<StallRule>,
}

impl Default for MotionLimits {
    /// 2500 steps/s (220 degrees a second), 15 000 steps/s^2 (full speed within a sixth of a second), no margin, goals
    /// live 250 ms, steps of at most 100 ms, [`StallRule::BODY`] and [`StallRule::GRIPPER`].
    fn default() -> Self {
        Self {
            max_speed_ticks_s: 2500.0,
            max_acceleration_ticks_s2: 15_000.0,
            range_margin: Ticks(0),
            goal_ttl: Duration::from_millis(250),
            longest_step: Duration::from_millis(100),
            body_stall: Some(StallRule::BODY),
            gripper_stall: Some(StallRule::GRIPPER),
        }
    }
}

impl MotionLimits {
    /// Nothing but the calibrated range: for arms that no motor moves.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            max_speed_ticks_s: f64::INFINITY,
            max_acceleration_ticks_s2: f64::INFINITY,
            goal_ttl: Duration::MAX,
            body_stall: None,
            gripper_stall: None,
            ..Self::default()
        }
    }

    /// Another speed, and another acceleration.
    #[must_use]
    pub const fn with_speed(mut self, ticks_s: f64, acceleration_ticks_s2: f64) -> Self {
        self.max_speed_ticks_s = ticks_s;
        self.max_acceleration_ticks_s2 = acceleration_ticks_s2;
        self
    }

    /// Another life of goals.
    #[must_use]
    pub const fn with_goal_ttl(mut self, ttl: Duration) -> Self {
        self.goal_ttl = ttl;
        self
    }

    /// Another distance from the ends of the range.
    #[must_use]
    pub const fn with_range_margin(mut self, margin: Ticks) -> Self {
        self.range_margin = margin;
        self
    }

    /// Other stall rules, of the body joints and of the gripper.
    #[must_use]
    pub const fn with_stall(mut self, body: Option<StallRule>, gripper: Option<StallRule>) -> Self {
        self.body_stall = body;
        self.gripper_stall = gripper;
        self
    }

    pub(super) const fn stall_rule(&self, index: usize) -> Option<&StallRule> {
        if index < 5 { self.body_stall.as_ref() } else { self.gripper_stall.as_ref() }
    }

    fn validate(&self) -> Result<()> {
        let error_of = |rule: Option<StallRule>| rule.map_or(0.0, |rule| f64::from(rule.error.0));
        for (what, value) in [
            ("the largest speed", self.max_speed_ticks_s),
            ("the largest acceleration", self.max_acceleration_ticks_s2),
            ("the range margin", f64::from(self.range_margin.0)),
            ("the error of a stall rule", error_of(self.body_stall)),
            ("the error of a stall rule", error_of(self.gripper_stall)),
        ] {
            if value.is_nan() {
                return Err(Error::NonFinite { what, value });
            }
            if value < 0.0 {
                return Err(Error::Negative { what, value });
            }
        }
        Ok(())
    }
}

/// When missing state stops the goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watchdog {
    /// A joint silent for longer makes the arm [`Degraded`](super::Health::Degraded): nothing is sent until it answers.
    pub degraded_after: Duration,
    /// A joint silent for longer makes the arm [`Lost`](super::Health::Lost): it holds until the operator resumes.
    pub lost_after: Duration,
}

impl Default for Watchdog {
    /// 100 ms and 500 ms.
    fn default() -> Self {
        Self { degraded_after: Duration::from_millis(100), lost_after: Duration::from_millis(500) }
    }
}

/// How an overloaded joint is brought back.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OverloadPolicy {
    /// How long the joint rests at its present position before the overload is cleared.
    pub rest: Duration,
    /// What is left of the torque limit (register 48) afterwards, as a share. It is never raised by the driver itself,
    /// see [`Arm::restore_torque_limits`](super::Arm::restore_torque_limits).
    pub torque_share: f64,
    /// The limit is not lowered below this, in 0.1 %.
    pub least_torque_permille: u16,
    /// How often clearing is tried before the joint stays at rest.
    pub tries: u8,
}

impl Default for OverloadPolicy {
    /// One second, three quarters, 20 %, three tries.
    fn default() -> Self {
        Self { rest: Duration::from_secs(1), torque_share: 0.75, least_torque_permille: 200, tries: 3 }
    }
}

/// How an [`Arm`](super::Arm) behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ArmOptions {
    /// The clock on which goals are issued, and on which speeds and silence are measured: the one of the control loop.
    pub clock: Arc<dyn Clock>,
    /// LeRobot's `max_relative_target`: the most that a goal may differ from the present position, for each joint
    /// (body in degrees, gripper in percent). Costs one more read a goal where the last one is older than
    /// [`Self::present_age`]. `None` = no such limit.
    pub max_relative_target: Option<JointVector<Degrees>>,
    /// How old a reading may be to count as the present position.
    pub present_age: Duration,
    /// How goals become encoder steps; the default truncates as LeRobot does.
    pub rounding: Rounding,
    /// What becomes of the torque when the driver is dropped.
    pub on_drop: OnDrop,
    /// Whether another homing offset than the calibration's is taken.
    pub offset_mismatch: OffsetMismatch,
    /// Limits of the motion.
    pub limits: MotionLimits,
    /// When missing state stops the goals.
    pub watchdog: Watchdog,
    /// How an overloaded joint is brought back; `None` = the alarm is reported and nothing is done.
    pub overload: Option<OverloadPolicy>,
    /// How far outside of its calibrated range a joint may be when torque goes on: it would be driven back to it.
    pub start_margin: Ticks,
    /// How often switching the torque, or setting a register, is tried.
    pub tries: u8,
}

impl core::fmt::Debug for ArmOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ArmOptions")
            .field("max_relative_target", &self.max_relative_target)
            .field("rounding", &self.rounding)
            .field("on_drop", &self.on_drop)
            .field("offset_mismatch", &self.offset_mismatch)
            .field("limits", &self.limits)
            .field("watchdog", &self.watchdog)
            .field("overload", &self.overload)
            .finish_non_exhaustive()
    }
}

impl ArmOptions {
    /// The defaults on the clock of the program's control loop. Goals carry moments of this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            max_relative_target: None,
            present_age: Duration::from_millis(20),
            rounding: Rounding::default(),
            on_drop: OnDrop::default(),
            offset_mismatch: OffsetMismatch::default(),
            limits: MotionLimits::default(),
            watchdog: Watchdog::default(),
            overload: Some(OverloadPolicy::default()),
            start_margin: Ticks(64),
            tries: 3,
        }
    }

    /// The same step limit for all body joints, and one for the gripper.
    #[must_use]
    pub fn with_max_relative_target(mut self, body: Degrees, gripper: Percent) -> Self {
        self.max_relative_target = Some(JointVector { body: [body; 5], gripper });
        self
    }

    /// Other limits of the motion.
    #[must_use]
    pub fn with_limits(mut self, limits: MotionLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Another end.
    #[must_use]
    pub fn with_on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }

    /// Another rounding of goals.
    #[must_use]
    pub fn with_rounding(mut self, rounding: Rounding) -> Self {
        self.rounding = rounding;
        self
    }

    /// Another treatment of homing offsets that differ.
    #[must_use]
    pub fn with_offset_mismatch(mut self, mismatch: OffsetMismatch) -> Self {
        self.offset_mismatch = mismatch;
        self
    }

    /// Another treatment of overloaded joints.
    #[must_use]
    pub fn with_overload(mut self, overload: Option<OverloadPolicy>) -> Self {
        self.overload = overload;
        self
    }

    /// # Errors
    /// [`Error::NonFinite`] and [`Error::Negative`] for limits that make no sense.
    pub(super) fn validate(&self) -> Result<()> {
        self.limits.validate()?;
        for value in self.max_relative_target.iter().flat_map(JointVector::<Degrees>::to_row) {
            if finite("the largest relative target", value)? < 0.0 {
                return Err(Error::Negative { what: "the largest relative target", value });
            }
        }
        Ok(())
    }
}
