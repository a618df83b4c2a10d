//! Lengths, angles and limits of the arm.
//!
//! Source: SO-ARM100, `Simulation/SO101/so101_new_calib.urdf` at commit fda892c. That file rounds its angles to five or
//! six digits; here they are exact multiples of a quarter turn (at most 4e-6 m and 2e-5 rad apart).

use crate::error::{Error, Result};
use crate::joint::JointId;
use crate::units::Radians;

/// The pan axis is vertical and stands this far in front of the base's origin.
pub const PAN_X_M: f64 = 0.038_835_3;
/// Distance of the lift axis from the pan axis.
pub(super) const SHOULDER_R_M: f64 = 0.030_399_2;
/// Height of the lift axis above the base's origin.
pub(super) const SHOULDER_Z_M: f64 = 0.062_4 + 0.054_2;
/// The roll axis runs beside the vertical plane of the pan axis, this far to its left.
pub(super) const ROLL_LATERAL_M: f64 = -0.018_277_8 + 0.018_1;
/// Upper arm, from lift axis to elbow axis, (forward, up) at zero lift; its length and its direction.
pub(super) const UPPER_M: [f64; 2] = [0.028, 0.112_57];
pub(super) const UPPER_LENGTH_M: f64 = 0.116_000_021_120_687_73;
pub(super) const UPPER_ANGLE: f64 = 1.327_009_433_614_800_2;
/// Forearm, from elbow axis to wrist axis, (forward, up) at zero lift and elbow; its length and its direction.
pub(super) const FOREARM_M: [f64; 2] = [0.134_9, 0.005_2];
pub(super) const FOREARM_LENGTH_M: f64 = 0.135_000_185_185_058_16;
pub(super) const FOREARM_ANGLE: f64 = 0.038_527_996_842_138_44;
/// From the wrist axis along the approach to the origin of the gripper link.
pub(super) const WRIST_M: f64 = 0.061_1;
/// The gripper link is turned by this about the roll axis at zero roll.
pub const ROLL_PHASE_RAD: f64 = 0.048_679_5;

/// The range of a joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Smallest angle.
    pub lower: Radians,
    /// Largest angle.
    pub upper: Radians,
}

impl Limits {
    const fn new(lower: f64, upper: f64) -> Self {
        Self { lower: Radians(lower), upper: Radians(upper) }
    }

    /// How far `q` lies outside: 0 within the range.
    #[must_use]
    pub const fn excess(&self, q: Radians) -> Radians {
        Radians((self.lower.0 - q.0).max(q.0 - self.upper.0).max(0.0))
    }

    /// The angle of the range that is nearest to `q`. NaN stays NaN.
    #[must_use]
    pub const fn clamp(&self, q: Radians) -> Radians {
        Radians(q.0.clamp(self.lower.0, self.upper.0))
    }
}

/// Limits of the five body joints of the model, in joint order.
pub const LIMITS: [Limits; 5] = [
    Limits::new(-1.919_86, 1.919_86),
    Limits::new(-1.745_33, 1.745_33),
    Limits::new(-1.69, 1.69),
    Limits::new(-1.658_06, 1.658_06),
    Limits::new(-2.743_85, 2.841_21),
];

/// Limits of the moving jaw of our model: from pad contact to fully open. The URDF's lower limit, -10 deg, leaves a
/// gap of 2 mm.
pub const JAW_LIMITS: Limits = Limits::new(JAW_CONTACT.0, 1.745_33);

/// The jaw's angle at which the pads touch, -11.2 deg (measured on the official meshes).
pub const JAW_CONTACT: Radians = Radians(-11.2_f64.to_radians());

/// Checks five finite joint angles.
pub(super) fn finite(what: &'static str, values: &[f64]) -> Result<()> {
    match values.iter().find(|v| !v.is_finite()) {
        Some(&value) => Err(Error::NonFinite { what, value }),
        None => Ok(()),
    }
}

/// The joint whose angle lies furthest outside of its limits, and by how much: 0 when all are inside.
pub(super) fn worst_excess(q: &[f64; 5]) -> (JointId, f64) {
    let mut worst = (JointId::ShoulderPan, 0.0);
    for ((limits, &q), joint) in LIMITS.iter().zip(q).zip(crate::joint::BODY_JOINTS) {
        let excess = limits.excess(Radians(q)).0;
        if excess > worst.1 {
            worst = (joint, excess);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_directions_follow_from_the_vectors() {
        for ([x, z], length, angle) in
            [(UPPER_M, UPPER_LENGTH_M, UPPER_ANGLE), (FOREARM_M, FOREARM_LENGTH_M, FOREARM_ANGLE)]
        {
            assert_eq!((x.hypot(z), z.atan2(x)), (length, angle));
        }
    }

    #[test]
    fn the_worst_joint_is_the_one_furthest_outside() {
        assert_eq!(worst_excess(&[0.0; 5]).1, 0.0);
        let (joint, by) = worst_excess(&[1.92, 0.0, -1.70, 0.0, 2.8]);
        assert!(joint == JointId::ElbowFlex && (by - 0.01).abs() < 1e-12);
    }
}
