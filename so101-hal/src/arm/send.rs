//! Goals on their way to the servos.

use super::inner::Core;
use super::limits::{Clip, Pace};
use super::{Arm, Armed};
use crate::bus::ServoBus;
use crate::calibration::JointCalibration;
use crate::clock::Timestamp;
use crate::convert::{finite, safe_goal};
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointVector};
use crate::math;
use crate::units::{Degrees, Ticks};

/// What became of a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// What the servos were told: body in LeRobot degrees, gripper in percent.
    pub joints: JointVector<Degrees>,
    /// The same in encoder steps, in joint order.
    pub ticks: [Ticks; 6],
    /// Why that is not the goal, for each joint.
    pub clipped: [Clip; 6],
}

impl Sent {
    /// Whether any joint was told something else than the goal (rounding to encoder steps apart).
    #[must_use]
    pub fn is_clipped(&self) -> bool {
        self.clipped.iter().any(|clip| !clip.is_empty())
    }
}

impl<B: ServoBus> Arm<B, Armed> {
    /// Sends a goal that was `issued` at a moment of [`ArmOptions::clock`](super::ArmOptions::clock), within all
    /// limits, and returns what the servos were told and why that differs.
    ///
    /// In this order: `max_relative_target` as LeRobot has it, the range of calibration and servo, and in encoder steps
    /// speed and acceleration (from the measured time since the last goal), then joints that are eased. State older
    /// than the watchdog allows is read again first.
    ///
    /// # Errors
    /// Nothing is sent with [`Error::NonFinite`], [`Error::EmergencyStopped`], [`Error::GoalExpired`],
    /// [`Error::GoalFromFuture`], [`Error::ArmDegraded`], [`Error::ArmHeld`], and [`Error::NoReply`] where the present
    /// position is needed. Errors of the port.
    pub fn send(&mut self, goal: &JointVector<Degrees>, issued: Timestamp) -> Result<Sent> {
        self.core.send(goal, issued)
    }
}

impl<B: ServoBus> Core<B> {
    fn send(&mut self, goal: &JointVector<Degrees>, issued: Timestamp) -> Result<Sent> {
        for (value, joint) in goal.to_row().into_iter().zip(JOINTS) {
            finite(joint.feature_name(), value)?;
        }
        self.check_stop()?;
        self.check_age(issued)?;
        self.refresh(self.options.watchdog.degraded_after)?;
        self.check_health()?;
        let mut clipped = [Clip::NONE; 6];
        let near = match self.options.max_relative_target {
            Some(max_step) => self.near_present(goal, &max_step, &mut clipped)?,
            None => *goal,
        };
        let wanted = self.in_range(&near, &mut clipped)?;
        // Reading may have taken long.
        self.check_age(issued)?;
        let ticks = self.drive(&wanted, &mut clipped)?;
        Ok(Sent { joints: self.calibration.to_degrees(&ticks)?, ticks, clipped })
    }

    fn check_age(&self, issued: Timestamp) -> Result<()> {
        let (now, ttl) = (self.now(), self.options.limits.goal_ttl);
        let (age, ahead) = (now.since(issued), issued.since(now));
        if age > ttl {
            return Err(Error::GoalExpired { age, ttl });
        }
        if ahead > ttl {
            return Err(Error::GoalFromFuture { ahead });
        }
        Ok(())
    }

    /// LeRobot's `ensure_safe_goal_position`, on the goal as it was given.
    fn near_present(
        &mut self,
        goal: &JointVector<Degrees>,
        max_step: &JointVector<Degrees>,
        clipped: &mut [Clip; 6],
    ) -> Result<JointVector<Degrees>> {
        self.refresh(self.options.present_age)?;
        let present = self.present()?;
        let near = safe_goal(goal, &present, max_step)?;
        let steps = goal.to_row().into_iter().zip(present.to_row()).zip(max_step.to_row());
        for (clip, ((goal, present), max_step)) in clipped.iter_mut().zip(steps) {
            if (goal - present).abs() > max_step {
                *clip |= Clip::RELATIVE;
            }
        }
        Ok(near)
    }

    /// The goal in encoder steps within the range.
    pub(super) fn in_range(
        &self,
        goal: &JointVector<Degrees>,
        clipped: &mut [Clip; 6],
    ) -> Result<[Ticks; 6]> {
        let mut inside = *goal;
        for (value, c) in inside.body.iter_mut().zip(self.calibration.joints()) {
            let (low, high) = (c.degrees(Ticks(c.range_min))?, c.degrees(Ticks(c.range_max))?);
            value.0 = value.0.clamp(low.0, high.0);
        }
        inside.gripper.0 = inside.gripper.0.clamp(0.0, 100.0);
        for ((clip, given), inside) in clipped.iter_mut().zip(goal.to_row()).zip(inside.to_row()) {
            if given != inside {
                *clip |= Clip::RANGE;
            }
        }
        let mut ticks = self.calibration.to_ticks(&inside, self.options.rounding)?;
        for (i, (ticks, c)) in ticks.iter_mut().zip(self.calibration.joints()).enumerate() {
            let (low, high) = self.range(i, c);
            let within = ticks.0.clamp(low, high);
            if within != ticks.0 {
                clipped[i] |= Clip::RANGE;
                ticks.0 = within;
            }
        }
        Ok(ticks)
    }

    /// Where joint `i` may be sent: the calibrated range, less the margin, as far as the servo's own limits let it.
    fn range(&self, i: usize, c: &JointCalibration) -> (i32, i32) {
        let margin = self.options.limits.range_margin.0.min((c.range_max - c.range_min) / 2);
        let (low, high) = (c.range_min + margin, c.range_max - margin);
        let (servo_low, servo_high) = self.reports[i].position_limits;
        // Both limits 0 is the servo's mode without end; limits beside the calibration are no limits of this arm.
        let (l, h) = (low.max(servo_low.0), high.min(servo_high.0));
        if servo_low < servo_high && l <= h { (l, h) } else { (low, high) }
    }

    /// Moves the goals towards `wanted` as far as time and limits allow, and tells the servos.
    pub(super) fn drive(&mut self, wanted: &[Ticks; 6], clipped: &mut [Clip; 6]) -> Result<[Ticks; 6]> {
        self.check_stop()?;
        let limits = &self.options.limits;
        let passed = self.now().since(self.told_at);
        let pace = Pace {
            dt_s: passed.min(limits.longest_step).as_secs_f64(),
            max_speed: limits.max_speed_ticks_s,
            max_acceleration: limits.max_acceleration_ticks_s2,
        };
        let has_paused = passed > limits.longest_step;
        let mut ticks = *wanted;
        for (i, ticks) in ticks.iter_mut().enumerate() {
            let track = &mut self.tracks[i];
            if has_paused {
                track.rest();
            }
            let clip = track.advance(f64::from(wanted[i].0), &pace);
            if !clip.is_empty() {
                // Between two goals that fit, so it fits.
                ticks.0 = math::round(track.at_ticks) as i32;
            }
            clipped[i] |= clip | self.ease(i, wanted[i], ticks);
        }
        self.write_goals(&ticks)?;
        // Pressed while the goals were on their way: they would switch the torque on again.
        self.check_stop()?;
        Ok(ticks)
    }
}
