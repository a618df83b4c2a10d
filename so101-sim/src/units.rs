//! LeRobot's units to the model's joint angles and back.
//!
//! The simulated arm is calibrated as the model: a body joint's degrees are the model's degrees, and the gripper's
//! percent runs from pad contact (the lower limit of the model's jaw) to fully open.

use so101_hal::kinematics::{GripperMap, JAW_LIMITS, LIMITS, Limits};
use so101_hal::{Degrees, JOINTS, JointId, JointVector, Percent, Radians};

use crate::error::{Error, Result};

/// The range of a joint in the model.
pub(crate) fn joint_limits(joint: JointId) -> Limits {
    LIMITS.get(joint.index()).copied().unwrap_or(JAW_LIMITS)
}

/// Model angles in radians in the order of [`JOINTS`], clamped to the joints' limits.
///
/// # Errors
/// [`Error::NonFinite`] when one of the six is not finite.
pub(crate) fn to_model(q: &JointVector<Degrees>) -> Result<[f64; 6]> {
    let row = q.to_row();
    if let Some(value) = row.into_iter().find(|v| !v.is_finite()) {
        return Err(Error::NonFinite { what: "a joint goal", value });
    }
    let [a, b, c, d, e, gripper] = row;
    let jaw = GripperMap::model().jaw(Percent(gripper))?;
    let [a, b, c, d, e] = [a, b, c, d, e].map(|deg| Radians::from(Degrees(deg)));
    let mut rad = [a, b, c, d, e, jaw];
    for (angle, joint) in rad.iter_mut().zip(JOINTS) {
        *angle = joint_limits(joint).clamp(*angle);
    }
    Ok(rad.map(Radians::get))
}

/// The inverse of [`to_model`] within the limits; beyond them the percent runs on below 0 and above 100.
pub(crate) fn from_model(rad: &[f64; 6]) -> JointVector<Degrees> {
    let [a, b, c, d, e, jaw] = rad.map(Radians);
    // The state is finite: the engine checks every step.
    let gripper = GripperMap::model().percent(jaw).unwrap_or_default();
    JointVector { body: [a, b, c, d, e].map(Degrees::from), gripper }
}

#[cfg(test)]
mod tests {
    use super::*;
    use so101_hal::kinematics::JAW_CONTACT;

    #[test]
    fn degrees_are_the_models_and_zero_percent_is_pad_contact() {
        let q = JointVector::<Degrees>::from_row([10.0, -20.0, 30.0, -40.0, 50.0, 0.0]);
        let rad = to_model(&q).unwrap();
        assert!((rad[1] + 20.0_f64.to_radians()).abs() < 1e-15);
        assert_eq!(rad[5], JAW_CONTACT.0);
        let back = from_model(&rad).to_row();
        assert!(back.iter().zip(q.to_row()).all(|(a, b)| (a - b).abs() < 1e-12), "{back:?}");
    }

    #[test]
    fn goals_beyond_the_limits_are_clamped_and_nan_is_refused() {
        let far = JointVector::<Degrees>::from_row([500.0, -500.0, 500.0, -500.0, 500.0, 500.0]);
        let rad = to_model(&far).unwrap();
        for (angle, joint) in rad.iter().zip(JOINTS) {
            assert_eq!(joint_limits(joint).excess(Radians(*angle)).0, 0.0, "{joint}");
        }
        for i in 0..6 {
            let mut row = [0.0; 6];
            row[i] = f64::NAN;
            assert!(matches!(to_model(&JointVector::<Degrees>::from_row(row)), Err(Error::NonFinite { .. })));
        }
    }
}
