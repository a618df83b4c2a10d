//! Uses so101-hal without its default features: values, calibration and kinematics, no standard library.
#![no_std]

use so101_hal::{Calibration, Degrees, JointVector, Percent, Result, Rounding};

/// Encoder steps of the pose with every joint at its middle and the gripper half open.
pub fn middle_pose_ticks() -> Result<[so101_hal::Ticks; 6]> {
    let pose = JointVector { body: [Degrees(0.0); 5], gripper: Percent(50.0) };
    Calibration::model().to_ticks(&pose, Rounding::Nearest)
}
