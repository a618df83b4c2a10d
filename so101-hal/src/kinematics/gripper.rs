//! From LeRobot's gripper percent to the jaw's angle and the gap between the tips.

use super::geometry::{JAW_CONTACT, JAW_LIMITS, finite};
use crate::calibration::JointCalibration;
use crate::convert::MAX_TICK;
use crate::error::{Error, Result};
use crate::units::{Percent, Radians};

/// Distance of the two fingertips in millimetres by jaw angle in degrees: zero at pad contact, the rest measured on the
/// official meshes (SO-ARM100, commit fda892c).
const TIP_TO_TIP: [(f64, f64); 13] = [
    (-11.2, 0.0),
    (-10.0, 3.8),
    (0.0, 15.8),
    (10.0, 29.6),
    (20.0, 43.2),
    (30.0, 56.6),
    (40.0, 69.5),
    (50.0, 82.0),
    (60.0, 93.8),
    (70.0, 104.9),
    (80.0, 115.2),
    (90.0, 124.6),
    (100.0, 133.1),
];

/// A linear map between the gripper's percent and the angle of the jaw.
///
/// ```
/// use so101_hal::kinematics::{GripperMap, JAW_CONTACT, aperture_m};
/// use so101_hal::Percent;
/// # fn main() -> so101_hal::Result<()> {
/// let map = GripperMap::model();
/// assert_eq!(map.jaw(Percent(0.0))?, JAW_CONTACT);
/// assert_eq!(aperture_m(map.jaw(Percent(0.0))?)?, 0.0);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GripperMap {
    closed: Radians,
    span: Radians,
}

impl GripperMap {
    /// 0 % is where the pads touch, and the calibrated range of the servo says how far 100 % is:
    /// `contact + g / 100 * (range_max - range_min) * 360 / 4095` degrees. Right for an arm whose gripper was closed
    /// and opened fully when it was calibrated.
    ///
    /// # Errors
    /// [`Error::CalibrationRange`] and [`Error::DriveMode`] when the calibration is not usable.
    pub fn contact_anchored(gripper: &JointCalibration) -> Result<Self> {
        gripper.validate()?;
        let ticks = f64::from(gripper.range_max) - f64::from(gripper.range_min);
        Ok(Self { closed: JAW_CONTACT, span: Radians((ticks * 360.0 / f64::from(MAX_TICK)).to_radians()) })
    }

    /// Of our model: 0 % is pad contact and 100 % the upper limit of the jaw.
    #[must_use]
    pub const fn model() -> Self {
        Self { closed: JAW_LIMITS.lower, span: Radians(JAW_LIMITS.upper.0 - JAW_LIMITS.lower.0) }
    }

    /// The map that so101-nexus and leisaac use: 0 to 100 % over the URDF's limits, -10 to 100 deg, whatever the arm's
    /// calibration says. For data that was written with it.
    #[must_use]
    pub const fn so101_nexus() -> Self {
        const LOWER: f64 = -0.174_533;
        Self { closed: Radians(LOWER), span: Radians(1.745_33 - LOWER) }
    }

    /// The jaw's angle. Not clamped: beyond 0 to 100 % the line goes on.
    ///
    /// # Errors
    /// [`Error::NonFinite`].
    pub fn jaw(&self, opening: Percent) -> Result<Radians> {
        finite("a gripper opening in percent", &[opening.0])?;
        Ok(Radians(self.closed.0 + opening.0 / 100.0 * self.span.0))
    }

    /// The inverse of [`Self::jaw`].
    ///
    /// # Errors
    /// [`Error::NonFinite`].
    pub fn percent(&self, jaw: Radians) -> Result<Percent> {
        finite("a jaw angle", &[jaw.0])?;
        Ok(Percent((jaw.0 - self.closed.0) / self.span.0 * 100.0))
    }

    /// The gap between the fingertips at an opening; see [`aperture_m`].
    ///
    /// # Errors
    /// [`Error::NonFinite`].
    pub fn aperture_m(&self, opening: Percent) -> Result<f64> {
        aperture_m(self.jaw(opening)?)
    }

    /// The opening at which the fingertips are `aperture_m` apart; see [`jaw_from_aperture`].
    ///
    /// # Errors
    /// As [`jaw_from_aperture`].
    pub fn percent_from_aperture(&self, aperture_m: f64) -> Result<Percent> {
        self.percent(jaw_from_aperture(aperture_m)?)
    }
}

/// The gap between the tips of the two fingers at a jaw angle, in metres: 0 at and below pad contact, then rising
/// (linear between measured points; beyond 100 deg the last piece goes on).
///
/// # Errors
/// [`Error::NonFinite`].
pub fn aperture_m(jaw: Radians) -> Result<f64> {
    finite("a jaw angle", &[jaw.0])?;
    let table = TIP_TO_TIP.map(|(deg, mm)| (deg.to_radians(), mm * 1e-3));
    Ok(interpolate(&table, jaw.0).max(0.0))
}

/// The jaw angle at which the fingertips are `aperture_m` apart; the inverse of [`aperture_m`].
///
/// # Errors
/// [`Error::NonFinite`], and [`Error::Negative`] for a negative gap.
pub fn jaw_from_aperture(aperture_m: f64) -> Result<Radians> {
    finite("a gripper aperture in metres", &[aperture_m])?;
    if aperture_m < 0.0 {
        return Err(Error::Negative { what: "a gripper aperture in metres", value: aperture_m });
    }
    let table = TIP_TO_TIP.map(|(deg, mm)| (mm * 1e-3, deg.to_radians()));
    Ok(Radians(interpolate(&table, aperture_m)))
}

/// Linear between points of rising x; the first and last piece go on beyond the ends.
fn interpolate(points: &[(f64, f64); 13], x: f64) -> f64 {
    let next = points.iter().position(|p| x < p.0).unwrap_or(points.len()).clamp(1, points.len() - 1);
    let ((x0, y0), (x1, y1)) = (points[next - 1], points[next]);
    y0 + (x - x0) / (x1 - x0) * (y1 - y0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::Calibration;
    use crate::joint::JointId;
    use crate::units::Degrees;
    use proptest::prelude::*;

    #[test]
    fn the_gap_is_that_of_the_meshes_within_half_a_millimetre() {
        let degrees = [-11.2, -10.0, 0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0];
        let gaps_mm = [0.0, 3.8, 15.8, 29.6, 43.2, 56.6, 69.5, 82.0, 93.8, 104.9, 115.2, 124.6, 133.1];
        for (deg, mm) in degrees.into_iter().zip(gaps_mm) {
            let got = aperture_m(Degrees(deg).into()).unwrap() * 1e3;
            assert!((got - mm).abs() < 0.5, "{deg} deg: {got} mm, expected {mm}");
        }
        assert_eq!(aperture_m(Degrees(-30.0).into()).unwrap(), 0.0);
    }

    #[test]
    fn zero_percent_is_pad_contact_and_the_ticks_give_the_span() {
        let joint =
            JointCalibration { id: 6, drive_mode: 0, homing_offset: 0, range_min: 1926, range_max: 3376 };
        let map = GripperMap::contact_anchored(&joint).unwrap();
        assert_eq!(map.jaw(Percent(0.0)).unwrap(), JAW_CONTACT);
        let open = Degrees::from(map.jaw(Percent(100.0)).unwrap()).0;
        assert!((open - (-11.2 + 1450.0 * 360.0 / 4095.0)).abs() < 1e-9, "{open}");
        let half = Degrees::from(map.jaw(Percent(50.0)).unwrap()).0;
        assert!((half - (-11.2 + 725.0 * 360.0 / 4095.0)).abs() < 1e-9, "{half}");
    }

    #[test]
    fn the_models_calibration_and_the_models_map_agree_within_a_tenth_of_a_degree() {
        let calibration = Calibration::model();
        let from_ticks = GripperMap::contact_anchored(calibration.get(JointId::Gripper)).unwrap();
        for percent in [0.0, 50.0, 100.0] {
            let [a, b] = [from_ticks, GripperMap::model()].map(|m| m.jaw(Percent(percent)).unwrap());
            assert!((a.0 - b.0).abs() < 0.1_f64.to_radians());
            assert!(JAW_LIMITS.excess(a).0 == 0.0 && JAW_LIMITS.excess(b).0 < 1e-12);
        }
    }

    #[test]
    fn the_nexus_map_covers_the_limits_of_the_description() {
        let map = GripperMap::so101_nexus();
        let ends = [0.0, 100.0].map(|p| Degrees::from(map.jaw(Percent(p)).unwrap()).0);
        assert!((ends[0] + 10.0).abs() < 1e-4 && (ends[1] - 100.0).abs() < 1e-3, "{ends:?}");
    }

    #[test]
    fn numbers_that_are_no_opening_are_refused() {
        let map = GripperMap::model();
        assert!(matches!(map.jaw(Percent(f64::NAN)), Err(Error::NonFinite { .. })));
        assert!(matches!(map.percent(Radians(f64::INFINITY)), Err(Error::NonFinite { .. })));
        assert!(matches!(map.percent_from_aperture(-0.001), Err(Error::Negative { .. })));
        assert!(matches!(jaw_from_aperture(f64::NAN), Err(Error::NonFinite { .. })));
    }

    proptest! {
        #[test]
        fn percent_angle_and_aperture_are_inverse_and_rising(a in 0.0..120.0_f64, b in 0.0..120.0_f64) {
            let map = GripperMap::model();
            let gap = map.aperture_m(Percent(a))?;
            prop_assert!((map.percent_from_aperture(gap)?.0 - a).abs() < 1e-9);
            prop_assert!((map.percent(map.jaw(Percent(a))?)?.0 - a).abs() < 1e-9);
            if a < b {
                prop_assert!(gap < map.aperture_m(Percent(b))?);
            }
        }
    }
}
