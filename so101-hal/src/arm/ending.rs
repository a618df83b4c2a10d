//! How an energised arm is left: ramped to rest, relaxed, or held.

use core::time::Duration;

use super::inner::Core;
use super::limits::Clip;
use super::options::OnDrop;
use super::{Arm, Armed, Holding};
use crate::bus::ServoBus;
use crate::clock::Clock as _;
use crate::convert::{MAX_TICK, finite};
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointVector};
use crate::math;
use crate::units::{Degrees, Ticks};

/// Time between two goals of a ramp.
const STEP: Duration = Duration::from_millis(20);
/// How long the joints may lag behind the end of a ramp.
const ARRIVAL: Duration = Duration::from_secs(1);
/// Close enough to the end of a ramp: what a gain of 16 leaves under load.
const ARRIVED: i32 = 40;

/// A movement to a pose.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ramp {
    /// Where to: body in LeRobot degrees, gripper in percent.
    pub to: JointVector<Degrees>,
    /// Speed of the fastest joint, in degrees a second; the others arrive with it.
    pub speed_deg_s: f64,
}

impl Ramp {
    /// To `to` at a speed.
    #[must_use]
    pub const fn new(to: JointVector<Degrees>, speed_deg_s: f64) -> Self {
        Self { to, speed_deg_s }
    }
}

/// How [`Arm::finish`] leaves an arm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Ending {
    /// Torque off where it is: the arm sinks.
    #[default]
    Relax,
    /// To a pose where it can sink without harm, then torque off.
    RampThenRelax(Ramp),
    /// Torque on: the arm holds until the power goes.
    Hold,
}

impl<B: ServoBus> Arm<B, Holding> {
    /// Moves to a pose, smoothly and within all limits, and returns when the arm has arrived (or a second after it
    /// should have). All telemetry is read on the way.
    ///
    /// # Errors
    /// The arm holds where it is with [`Error::EmergencyStopped`], [`Error::ArmDegraded`], [`Error::ArmHeld`], and
    /// when the port is gone. [`Error::NonFinite`] and [`Error::Negative`] for ramps that make no sense.
    pub fn ramp_to(&mut self, ramp: &Ramp) -> Result<()> {
        self.core.ramp(ramp)
    }

    /// Leaves the arm: the end of every program, and what it does on Ctrl-C and SIGTERM.
    ///
    /// # Errors
    /// A ramp that fails does not keep the torque on: its error comes after the arm was relaxed. [`Error::Torque`]
    /// with the servos whose torque is not known to be off, and when the port is gone.
    pub fn finish(mut self, ending: &Ending) -> Result<()> {
        let ramped = match ending {
            Ending::Hold => {
                self.core.options.on_drop = OnDrop::Hold;
                return Ok(());
            }
            Ending::RampThenRelax(ramp) => self.ramp_to(ramp),
            Ending::Relax => Ok(()),
        };
        self.relax()?;
        ramped
    }
}

impl<B: ServoBus> Arm<B, Armed> {
    /// [`Self::hold`](Arm::hold), then [`Arm::<B, Holding>::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(self, ending: &Ending) -> Result<()> {
        self.hold().finish(ending)
    }
}

impl<B: ServoBus> Core<B> {
    fn ramp(&mut self, ramp: &Ramp) -> Result<()> {
        for (value, joint) in ramp.to.to_row().into_iter().zip(JOINTS) {
            finite(joint.feature_name(), value)?;
        }
        if finite("the speed of a ramp", ramp.speed_deg_s)? <= 0.0 {
            return Err(Error::Negative { what: "the speed of a ramp", value: ramp.speed_deg_s });
        }
        self.check_stop()?;
        self.update()?;
        self.check_health()?;
        let from = match self.goals {
            Some(goals) => goals,
            None => self.positions(),
        };
        self.in_charge = true;
        self.settle_at(&from);
        let to = self.in_range(&ramp.to, &mut [Clip::NONE; 6])?;
        let furthest = from.iter().zip(&to).map(|(a, b)| (b.0 - a.0).abs()).max().unwrap_or(0);
        // The fastest moment of the blend below is half as fast again as its mean.
        let speed_ticks_s = ramp.speed_deg_s * f64::from(MAX_TICK) / 360.0;
        let duration_s = 1.5 * f64::from(furthest) / speed_ticks_s;
        self.follow(&from, &to, duration_s)?;
        self.await_arrival(&to)
    }

    fn follow(&mut self, from: &[Ticks; 6], to: &[Ticks; 6], duration_s: f64) -> Result<()> {
        let clock = alloc::sync::Arc::clone(&self.options.clock);
        let mut gone_s = 0.0;
        let mut last = clock.now();
        loop {
            clock.sleep_until(last + STEP);
            let now = clock.now();
            // Time that the program slept through is not made up for.
            gone_s += now.since(last).min(2 * STEP).as_secs_f64();
            last = now;
            self.update()?;
            self.check_health()?;
            let share = if gone_s >= duration_s { 1.0 } else { gone_s / duration_s };
            let blend = share * share * (3.0 - 2.0 * share);
            let mut wanted = *to;
            for ((wanted, from), to) in wanted.iter_mut().zip(from).zip(to) {
                // Between two goals that fit, so it fits.
                wanted.0 = math::round(f64::from(from.0) + blend * f64::from(to.0 - from.0)) as i32;
            }
            let mut clipped = [Clip::NONE; 6];
            self.drive(&wanted, &mut clipped)?;
            // Speed and acceleration may hold the end back for a few steps more; an eased joint does not.
            let is_late = |clip: &Clip| clip.contains(Clip::SPEED) || clip.contains(Clip::ACCELERATION);
            if share >= 1.0 && !clipped.iter().any(is_late) {
                return Ok(());
            }
        }
    }

    fn await_arrival(&mut self, to: &[Ticks; 6]) -> Result<()> {
        let clock = alloc::sync::Arc::clone(&self.options.clock);
        let deadline = clock.now() + ARRIVAL;
        loop {
            self.update()?;
            self.check_stop()?;
            let has_arrived = self.positions().iter().zip(to).all(|(is, to)| (is.0 - to.0).abs() <= ARRIVED);
            let now = clock.now();
            if has_arrived || now >= deadline {
                return Ok(());
            }
            clock.sleep_until(now + STEP);
        }
    }
}
