//! The arm in numbers: links, masses, joints, servos.
//!
//! Kinematics, masses, inertias and limits are those of TheRobotStudio's `so101_new_calib` (SO-ARM100 repository,
//! Apache-2.0) with the rotations taken as exact multiples of a quarter turn, which is what
//! [`so101_hal::kinematics`] does too. Contact options are those of MuJoCo Menagerie's `robotstudio_so101`
//! (Apache-2.0); servo gains are Menagerie's for LeRobot's `P = 16`.

use so101_hal::JointId;

/// The small turn of the gripper about its roll axis, radians (`so101_new_calib`, joint `wrist_roll`).
const ROLL_PHASE_RAD: f64 = 0.048_679_5;

/// Position gain of a servo's goal, N m per radian.
pub(crate) const SERVO_KP: f64 = 998.22;
/// Velocity gain of a servo, N m s per radian.
pub(crate) const SERVO_KV: f64 = 2.731;
/// Largest torque of a servo, N m.
pub(crate) const SERVO_TORQUE_NM: f64 = 2.94;
/// Viscous damping at a joint, N m s per radian.
pub(crate) const JOINT_DAMPING: f64 = 0.60;
/// Dry friction at a joint, N m.
pub(crate) const JOINT_FRICTION_NM: f64 = 0.052;
/// Reflected inertia of a gear motor, kg m^2.
pub(crate) const JOINT_ARMATURE: f64 = 0.028;

/// A rigid part of the arm in the frame of its parent.
pub(crate) struct Link {
    pub(crate) name: &'static str,
    /// Joint that turns this link about its own z axis; the base has none.
    pub(crate) joint: Option<JointId>,
    /// Origin in the parent's frame, metres.
    pub(crate) pos_m: [f64; 3],
    /// Orientation in the parent's frame, w x y z, not normalised.
    pub(crate) quat: [f64; 4],
    pub(crate) mass_kg: f64,
    pub(crate) com_m: [f64; 3],
    /// Principal moments, kg m^2, and their frame, w x y z.
    pub(crate) inertia: [f64; 3],
    pub(crate) inertia_quat: [f64; 4],
}

/// From the base outwards; each link is the child of the one before, the jaw that of the gripper.
pub(crate) fn links() -> [Link; 7] {
    // Rz(pi) Ry(phase) Rx(pi / 2), the joint origin's roll-pitch-yaw.
    let (s, c) = (ROLL_PHASE_RAD / 2.0).sin_cos();
    [
        Link {
            name: "base",
            joint: None,
            pos_m: [0.0; 3],
            quat: [1.0, 0.0, 0.0, 0.0],
            mass_kg: 0.147,
            com_m: [0.013_717_9, -5.197e-5, 0.033_484_3],
            inertia: [1.361_268_777_6e-4, 1.318_072_790_4e-4, 1.132_328_432_2e-4],
            inertia_quat: [0.420_519_25, 0.558_762_53, 0.571_979_92, 0.428_703_81],
        },
        Link {
            name: "shoulder",
            joint: Some(JointId::ShoulderPan),
            pos_m: [0.038_835_3, 0.0, 0.0624],
            quat: [0.0, 0.0, 1.0, 0.0],
            mass_kg: 0.100_006,
            com_m: [-0.030_760_4, -1.667e-5, -0.025_271_3],
            inertia: [8.378_355_122e-5, 8.103_880_894e-5, 2.395_523_984e-5],
            inertia_quat: [0.999_864_57, 0.001_495_68, 0.009_708_4, 0.013_204_32],
        },
        Link {
            name: "upper_arm",
            joint: Some(JointId::ShoulderLift),
            pos_m: [-0.030_399_2, -0.018_277_8, -0.0542],
            quat: [1.0, -1.0, -1.0, -1.0],
            mass_kg: 0.103,
            com_m: [-0.089_847_1, -0.008_382_24, 0.018_408_9],
            inertia: [1.508_731_603_1e-4, 1.424_869_834e-4, 3.724_505_63e-5],
            inertia_quat: [0.453_194_72, 0.454_062_91, 0.541_891_1, 0.542_951_07],
        },
        Link {
            name: "lower_arm",
            joint: Some(JointId::ElbowFlex),
            pos_m: [-0.11257, -0.028, 0.0],
            quat: [1.0, 0.0, 0.0, 1.0],
            mass_kg: 0.104,
            com_m: [-0.098_070_1, 0.003_243_76, 0.018_283_1],
            inertia: [1.602_616_995_6e-4, 1.453_036_435_3e-4, 2.831_245_691e-5],
            inertia_quat: [0.510_729_29, 0.517_005_69, 0.487_966_36, 0.483_476_52],
        },
        Link {
            name: "wrist",
            joint: Some(JointId::WristFlex),
            pos_m: [-0.1349, 0.0052, 0.0],
            quat: [1.0, 0.0, 0.0, -1.0],
            mass_kg: 0.079,
            com_m: [-1.0331e-4, -0.038_614_3, 0.028_115_6],
            inertia: [3.682_647_935e-5, 2.744_737_721e-5, 1.894_344_344e-5],
            inertia_quat: [0.967_143_39, 0.254_226_29, 0.001_622_26, -0.000_146_31],
        },
        Link {
            name: "gripper",
            joint: Some(JointId::WristRoll),
            pos_m: [0.0, -0.0611, 0.0181],
            quat: [s, -s, c, c],
            mass_kg: 0.087,
            com_m: [2.1363e-4, 2.4514e-4, -0.025_187],
            inertia: [4.337_349_304e-5, 3.772_288_517e-5, 2.428_392_179e-5],
            inertia_quat: [0.600_717_38, 0.355_993_07, 0.358_629_95, 0.619_509_58],
        },
        Link {
            name: "jaw",
            joint: Some(JointId::Gripper),
            pos_m: JAW_ORIGIN_M,
            quat: [1.0, 1.0, 0.0, 0.0],
            mass_kg: 0.012,
            com_m: [-0.001_574_95, -0.030_024_4, 0.019_275_5],
            inertia: [6.635_823_975e-6, 5.290_920_121e-6, 1.865_225_904e-6],
            inertia_quat: [0.695_265_04, 0.717_965_04, -0.024_561_8, -0.023_009_7],
        },
    ]
}

/// The jaw's hinge in the gripper's frame, metres.
pub(crate) const JAW_ORIGIN_M: [f64; 3] = [0.0202, 0.0188, -0.0234];
