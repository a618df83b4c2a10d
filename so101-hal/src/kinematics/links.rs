//! Frames of all links, joint by joint as the URDF has them.

use super::Kinematics;
use super::geometry::{FOREARM_M, PAN_X_M, SHOULDER_R_M, UPPER_M, WRIST_M};
use super::pose::Pose;
use crate::math::sin_cos;
use crate::units::Radians;

/// Where every moving link is: `base_from_<link>`, with the link frames of the official URDF (each has its joint's axis
/// as +z).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkPoses {
    /// `shoulder_link`, turned by shoulder_pan; z points down.
    pub shoulder: Pose,
    /// `upper_arm_link`, turned by shoulder_lift.
    pub upper_arm: Pose,
    /// `lower_arm_link`, turned by elbow_flex.
    pub lower_arm: Pose,
    /// `wrist_link`, turned by wrist_flex.
    pub wrist: Pose,
    /// `gripper_link` with the fixed finger, turned by wrist_roll; z points against the approach.
    pub gripper: Pose,
    /// `moving_jaw_so101_v1_link`, turned by the gripper joint.
    pub jaw: Pose,
}

const SIN_PHASE: f64 = 0.048_660_276_360_272_47;
const COS_PHASE: f64 = 0.998_815_387_098_407_7;

/// Parent from joint at angle zero: xyz and rpy of the URDF with exact quarter turns.
const BASE_FROM_SHOULDER: Pose = Pose {
    position_m: [PAN_X_M, 0.0, 0.0624],
    rotation: [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]],
};
const SHOULDER_FROM_UPPER_ARM: Pose = Pose {
    position_m: [-SHOULDER_R_M, -0.018_277_8, -0.054_2],
    rotation: [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
};
const UPPER_ARM_FROM_LOWER_ARM: Pose = Pose {
    position_m: [-UPPER_M[1], -UPPER_M[0], 0.0],
    rotation: [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
};
const LOWER_ARM_FROM_WRIST: Pose = Pose {
    position_m: [-FOREARM_M[0], FOREARM_M[1], 0.0],
    rotation: [[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
};
const WRIST_FROM_GRIPPER: Pose = Pose {
    position_m: [0.0, -WRIST_M, 0.018_1],
    rotation: [[-COS_PHASE, -SIN_PHASE, 0.0], [0.0, 0.0, 1.0], [-SIN_PHASE, COS_PHASE, 0.0]],
};
const GRIPPER_FROM_JAW: Pose = Pose {
    position_m: [0.0202, 0.0188, -0.0234],
    rotation: [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
};

impl Kinematics {
    /// The frames of all links, for drawing and for collision checks.
    ///
    /// `q` are the five body joints, `jaw` is the angle of the moving jaw (see
    /// [`GripperMap`](super::GripperMap)). Angles are not limited; NaN gives NaN.
    #[must_use]
    pub fn links(q: &[Radians; 5], jaw: Radians) -> LinkPoses {
        let [pan, lift, elbow, flex, roll] = *q;
        let shoulder = turned(&BASE_FROM_SHOULDER, pan);
        let upper_arm = shoulder.compose(&turned(&SHOULDER_FROM_UPPER_ARM, lift));
        let lower_arm = upper_arm.compose(&turned(&UPPER_ARM_FROM_LOWER_ARM, elbow));
        let wrist = lower_arm.compose(&turned(&LOWER_ARM_FROM_WRIST, flex));
        let gripper = wrist.compose(&turned(&WRIST_FROM_GRIPPER, roll));
        let jaw = gripper.compose(&turned(&GRIPPER_FROM_JAW, jaw));
        LinkPoses { shoulder, upper_arm, lower_arm, wrist, gripper, jaw }
    }
}

/// The joint's frame turned about its z.
fn turned(parent_from_joint: &Pose, angle: Radians) -> Pose {
    let (s, c) = sin_cos(angle.0);
    Pose {
        position_m: parent_from_joint.position_m,
        rotation: parent_from_joint.rotation.map(|[x, y, z]| [c * x + s * y, c * y - s * x, z]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::ROLL_PHASE_RAD;
    use super::{COS_PHASE, SIN_PHASE};

    #[test]
    fn sine_and_cosine_of_the_phase_are_written_to_the_last_digit() {
        assert!(
            (SIN_PHASE - ROLL_PHASE_RAD.sin()).abs() < 1e-17
                && (COS_PHASE - ROLL_PHASE_RAD.cos()).abs() < 2e-16
        );
    }
}
