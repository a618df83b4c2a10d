//! LeRobot's conversions between encoder steps and the numbers that policies and datasets hold.
//!
//! Every formula does LeRobot's floating-point operations in LeRobot's order
//! (`lerobot/motors/motors_bus.py`, `MotorsBus._normalize` and `_unnormalize`, and `motors/encoding_utils.py` and
//! `robots/utils.py`, version 0.6.1), so that the results are equal to the last bit. With `min` and `max` the
//! calibrated range and `b` the steps clamped to it:
//!
//! | unit | from steps | to steps | `drive_mode` 1 |
//! |---|---|---|---|
//! | [`Degrees`] | `(raw - (min + max) / 2) * 360 / 4095`, not clamped | `v * 4095 / 360 + mid`, not clamped | ignored |
//! | [`Normalized`] | `(b - min) / (max - min) * 200 - 100` | `(v + 100) / 200 * (max - min) + min`, `v` clamped | negates |
//! | [`Percent`] | `(b - min) / (max - min) * 100` | `v / 100 * (max - min) + min`, `v` clamped | `100 - v` |
//!
//! A turn has 4096 steps, but LeRobot divides by the largest one, 4095; kept, since every dataset is written so.

use crate::calibration::{Calibration, JointCalibration};
use crate::error::{Error, Result};
use crate::joint::JointVector;
use crate::math;
use crate::units::{Degrees, Normalized, Percent, Ticks};

/// The largest position of an STS3215: LeRobot's `resolution - 1`.
pub const MAX_TICK: i32 = 4095;

/// Encoder steps of a whole turn.
pub(crate) const TURN: i32 = MAX_TICK + 1;

/// How a computed position becomes a whole number of encoder steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rounding {
    /// Toward zero, as Python's `int()` and so LeRobot: positions come out up to a step too low.
    #[default]
    Truncate,
    /// To the nearest step, halves away from zero: unbiased.
    Nearest,
}

impl Rounding {
    fn apply(self, id: u8, steps: f64) -> Result<Ticks> {
        let whole = match self {
            Self::Truncate => steps,
            Self::Nearest => math::round(steps),
        };
        if whole < f64::from(i32::MIN) || whole > f64::from(i32::MAX) {
            return Err(Error::TicksOverflow { id, steps });
        }
        Ok(Ticks(whole as i32))
    }
}

/// ```
/// use so101_hal::{Calibration, Degrees, JointId, Rounding, Ticks};
/// # fn main() -> so101_hal::Result<()> {
/// let calibration = Calibration::model();
/// let pan = calibration.get(JointId::ShoulderPan);
/// let goal = pan.ticks_from_degrees(Degrees(45.0), Rounding::Truncate)?;
/// assert_eq!(goal, Ticks(2559));
/// assert!((pan.degrees(goal)?.get() - 45.0).abs() <= 360.0 / 4095.0);
/// # Ok(()) }
/// ```
impl JointCalibration {
    /// Degrees from the middle of the calibrated range, LeRobot's `DEGREES`.
    ///
    /// # Errors
    /// [`Error::CalibrationRange`] and [`Error::DriveMode`] when this calibration is not usable.
    pub fn degrees(&self, raw: Ticks) -> Result<Degrees> {
        let (min, max) = self.checked_range()?;
        let mid = (min + max) / 2.0;
        Ok(Degrees((f64::from(raw.0) - mid) * 360.0 / f64::from(MAX_TICK)))
    }

    /// The inverse of [`Self::degrees`]; not clamped, so the result may lie outside of the calibrated range.
    ///
    /// # Errors
    /// [`Error::NonFinite`], [`Error::TicksOverflow`], and as [`Self::degrees`].
    pub fn ticks_from_degrees(&self, v: Degrees, rounding: Rounding) -> Result<Ticks> {
        let (min, max) = self.checked_range()?;
        let v = finite("a joint angle in degrees", v.0)?;
        let mid = (min + max) / 2.0;
        rounding.apply(self.id, (v * f64::from(MAX_TICK) / 360.0) + mid)
    }

    /// -100 to 100 over the calibrated range, LeRobot's `RANGE_M100_100`; positions outside are clamped.
    ///
    /// # Errors
    /// As [`Self::degrees`].
    pub fn normalized(&self, raw: Ticks) -> Result<Normalized> {
        let norm = ((self.fraction(raw)?) * 200.0) - 100.0;
        Ok(Normalized(if self.is_flipped() { -norm } else { norm }))
    }

    /// The inverse of [`Self::normalized`]; `v` is clamped to -100..=100.
    ///
    /// # Errors
    /// [`Error::NonFinite`], and as [`Self::degrees`].
    pub fn ticks_from_normalized(&self, v: Normalized, rounding: Rounding) -> Result<Ticks> {
        let (min, max) = self.checked_range()?;
        let v = finite("a normalised joint position", v.0)?;
        let bounded = (if self.is_flipped() { -v } else { v }).clamp(-100.0, 100.0);
        rounding.apply(self.id, ((bounded + 100.0) / 200.0) * (max - min) + min)
    }

    /// 0 to 100 over the calibrated range, LeRobot's `RANGE_0_100`; positions outside are clamped.
    ///
    /// # Errors
    /// As [`Self::degrees`].
    pub fn percent(&self, raw: Ticks) -> Result<Percent> {
        let norm = self.fraction(raw)? * 100.0;
        Ok(Percent(if self.is_flipped() { 100.0 - norm } else { norm }))
    }

    /// The inverse of [`Self::percent`]; `v` is clamped to 0..=100.
    ///
    /// # Errors
    /// [`Error::NonFinite`], and as [`Self::degrees`].
    pub fn ticks_from_percent(&self, v: Percent, rounding: Rounding) -> Result<Ticks> {
        let (min, max) = self.checked_range()?;
        let v = finite("a position in percent", v.0)?;
        let bounded = (if self.is_flipped() { 100.0 - v } else { v }).clamp(0.0, 100.0);
        rounding.apply(self.id, (bounded / 100.0) * (max - min) + min)
    }

    fn fraction(&self, raw: Ticks) -> Result<f64> {
        let (min, max) = self.checked_range()?;
        let bounded = f64::from(raw.0).clamp(min, max);
        Ok((bounded - min) / (max - min))
    }

    const fn is_flipped(&self) -> bool {
        self.drive_mode != 0
    }

    /// The range as numbers that the formulas use (exact), once it is known to make sense.
    fn checked_range(&self) -> Result<(f64, f64)> {
        self.validate()?;
        Ok((f64::from(self.range_min), f64::from(self.range_max)))
    }
}

impl Calibration {
    /// A raw reading as LeRobot's default observation: body joints in degrees, gripper in percent.
    ///
    /// # Errors
    /// As [`JointCalibration::degrees`].
    pub fn to_degrees(&self, raw: &[Ticks; 6]) -> Result<JointVector<Degrees>> {
        self.observation(raw, JointCalibration::degrees)
    }

    /// The inverse of [`Self::to_degrees`]: raw goal positions.
    ///
    /// # Errors
    /// As [`JointCalibration::ticks_from_degrees`].
    pub fn to_ticks(&self, q: &JointVector<Degrees>, rounding: Rounding) -> Result<[Ticks; 6]> {
        self.goal(q, rounding, JointCalibration::ticks_from_degrees)
    }

    /// A raw reading in LeRobot's `use_degrees=False` form: body joints -100 to 100, gripper in percent.
    ///
    /// # Errors
    /// As [`JointCalibration::normalized`].
    pub fn to_normalized(&self, raw: &[Ticks; 6]) -> Result<JointVector<Normalized>> {
        self.observation(raw, JointCalibration::normalized)
    }

    /// The inverse of [`Self::to_normalized`]: raw goal positions.
    ///
    /// # Errors
    /// As [`JointCalibration::ticks_from_normalized`].
    pub fn normalized_to_ticks(&self, q: &JointVector<Normalized>, rounding: Rounding) -> Result<[Ticks; 6]> {
        self.goal(q, rounding, JointCalibration::ticks_from_normalized)
    }

    fn observation<U>(
        &self,
        raw: &[Ticks; 6],
        body: impl Fn(&JointCalibration, Ticks) -> Result<U>,
    ) -> Result<JointVector<U>> {
        let [ca, cb, cc, cd, ce, cg] = self.joints();
        let [a, b, c, d, e, g] = *raw;
        Ok(JointVector {
            body: [body(ca, a)?, body(cb, b)?, body(cc, c)?, body(cd, d)?, body(ce, e)?],
            gripper: cg.percent(g)?,
        })
    }

    fn goal<U: Copy>(
        &self,
        q: &JointVector<U>,
        r: Rounding,
        body: impl Fn(&JointCalibration, U, Rounding) -> Result<Ticks>,
    ) -> Result<[Ticks; 6]> {
        let [ca, cb, cc, cd, ce, cg] = self.joints();
        let [a, b, c, d, e] = q.body;
        Ok([
            body(ca, a, r)?,
            body(cb, b, r)?,
            body(cc, c, r)?,
            body(cd, d, r)?,
            body(ce, e, r)?,
            cg.ticks_from_percent(q.gripper, r)?,
        ])
    }
}

/// LeRobot's `ensure_safe_goal_position` (`max_relative_target`): no joint is asked to go further than `max_step`
/// from where it is. Body joints in degrees, gripper in percent.
///
/// The goal is rebuilt as `present + step` even when nothing is clamped, as LeRobot does, so it may differ from
/// `goal` in the last bit.
///
/// # Errors
/// [`Error::NonFinite`], and [`Error::Negative`] for a negative `max_step`.
pub fn safe_goal(
    goal: &JointVector<Degrees>,
    present: &JointVector<Degrees>,
    max_step: &JointVector<Degrees>,
) -> Result<JointVector<Degrees>> {
    let mut out = goal.to_row();
    for ((goal, present), max_step) in out.iter_mut().zip(present.to_row()).zip(max_step.to_row()) {
        finite("a goal position", *goal)?;
        finite("a present position", present)?;
        if finite("the largest relative target", max_step)? < 0.0 {
            return Err(Error::Negative { what: "the largest relative target", value: max_step });
        }
        *goal = present + (*goal - present).min(max_step).max(-max_step);
    }
    Ok(JointVector::<Degrees>::from_row(out))
}

/// Which bit of a servo register holds the sign; the bits below hold the magnitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SignBit {
    /// Load and PWM.
    Bit10 = 10,
    /// Homing offset.
    Bit11 = 11,
    /// Positions and velocities.
    Bit15 = 15,
}

impl SignBit {
    /// The largest magnitude that fits.
    #[must_use]
    pub const fn max_magnitude(self) -> u16 {
        (1 << self as u8) - 1
    }

    /// The register's word for `value`.
    ///
    /// # Errors
    /// [`Error::Magnitude`] when the magnitude does not fit below the sign bit.
    ///
    /// ```
    /// use so101_hal::convert::SignBit;
    /// # fn main() -> so101_hal::Result<()> {
    /// assert_eq!(SignBit::Bit11.encode(-709)?, 0x0ac5);
    /// assert_eq!(SignBit::Bit11.decode(0x0ac5), -709);
    /// # Ok(()) }
    /// ```
    pub fn encode(self, value: i32) -> Result<u16> {
        let max = self.max_magnitude();
        match u16::try_from(value.unsigned_abs()) {
            Ok(magnitude) if magnitude <= max => Ok(u16::from(value < 0) << self as u8 | magnitude),
            _ => Err(Error::Magnitude { value, max }),
        }
    }

    /// The value of a register's word. Bits above the sign bit are ignored, as LeRobot does.
    #[must_use]
    pub const fn decode(self, word: u16) -> i32 {
        let magnitude = (word & self.max_magnitude()) as i32;
        if word >> self as u8 & 1 == 1 { -magnitude } else { magnitude }
    }
}

pub(crate) fn finite(what: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFinite { what, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn joint(drive_mode: u8, range_min: i32, range_max: i32) -> JointCalibration {
        JointCalibration { id: 3, drive_mode, homing_offset: 0, range_min, range_max }
    }

    #[test]
    fn an_empty_or_inverted_range_is_refused_with_its_ends() {
        for (min, max) in [(2000, 2000), (3000, 1000)] {
            let err = joint(0, min, max).percent(Ticks(5)).unwrap_err();
            assert!(matches!(err, Error::CalibrationRange { id: 3, min: a, max: b } if (a, b) == (min, max)));
        }
    }

    #[test]
    fn an_unknown_drive_mode_is_refused_in_every_unit() {
        let j = joint(2, 0, 4095);
        assert!(matches!(j.degrees(Ticks(0)), Err(Error::DriveMode { id: 3, drive_mode: 2 })));
        assert!(matches!(j.normalized(Ticks(0)), Err(Error::DriveMode { .. })));
        assert!(matches!(
            j.ticks_from_percent(Percent(1.0), Rounding::Nearest),
            Err(Error::DriveMode { .. })
        ));
    }

    #[test]
    fn numbers_that_are_no_position_are_refused() {
        let j = joint(0, 0, 4095);
        for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(
                j.ticks_from_degrees(Degrees(v), Rounding::Truncate),
                Err(Error::NonFinite { .. })
            ));
            assert!(matches!(
                j.ticks_from_normalized(Normalized(v), Rounding::Truncate),
                Err(Error::NonFinite { .. })
            ));
            assert!(matches!(
                j.ticks_from_percent(Percent(v), Rounding::Truncate),
                Err(Error::NonFinite { .. })
            ));
        }
        assert!(matches!(
            j.ticks_from_degrees(Degrees(1e12), Rounding::Nearest),
            Err(Error::TicksOverflow { .. })
        ));
    }

    #[test]
    fn a_magnitude_that_does_not_fit_is_refused() {
        assert!(matches!(SignBit::Bit11.encode(2048), Err(Error::Magnitude { value: 2048, max: 2047 })));
        assert!(matches!(SignBit::Bit15.encode(i32::MIN), Err(Error::Magnitude { .. })));
    }

    #[test]
    fn a_negative_or_missing_largest_step_is_refused() {
        let q = JointVector::<Degrees>::default();
        let bad = JointVector { body: [Degrees(1.0); 5], gripper: Percent(-1.0) };
        assert!(matches!(safe_goal(&q, &q, &bad), Err(Error::Negative { .. })));
        let nan = JointVector { body: [Degrees(f64::NAN); 5], gripper: Percent(1.0) };
        assert!(matches!(safe_goal(&nan, &q, &q), Err(Error::NonFinite { .. })));
    }

    proptest! {
        #[test]
        fn round_trips_stay_within_a_step(min in 0..4000_i32, span in 1..4000_i32, frac in 0.0..=1.0, drive in 0..=1_u8) {
            let j = joint(drive, min, min + span);
            let raw = Ticks(min + (f64::from(span) * frac) as i32);
            for (r, slack) in [(Rounding::Truncate, 1), (Rounding::Nearest, 0)] {
                let back = [
                    j.ticks_from_degrees(j.degrees(raw)?, r)?,
                    j.ticks_from_normalized(j.normalized(raw)?, r)?,
                    j.ticks_from_percent(j.percent(raw)?, r)?,
                ];
                prop_assert!(back.iter().all(|b| (b.0 - raw.0).abs() <= slack), "{raw} -> {back:?} with {r:?}");
            }
        }

        #[test]
        fn sign_magnitude_is_its_own_inverse(value in -32767..=32767_i32) {
            for bit in [SignBit::Bit10, SignBit::Bit11, SignBit::Bit15] {
                match bit.encode(value) {
                    Ok(word) => prop_assert_eq!(bit.decode(word), value),
                    Err(_) => prop_assert!(value.unsigned_abs() > u32::from(bit.max_magnitude())),
                }
            }
        }
    }
}
