//! A robot as recording, rollout and evaluation see it: something that can be observed and told where to go.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::camera::CameraSpec;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::frame::Frame;
use crate::joint::JointVector;
use crate::units::Degrees;

/// A picture with the name of the camera that took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFrame {
    /// [`CameraSpec::name`].
    pub camera: Arc<str>,
    /// The picture.
    pub frame: Frame,
}

/// Everything seen at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// When the joints were read.
    pub at: Timestamp,
    /// Measured joint positions: LeRobot degrees, gripper percent.
    pub joints: JointVector<Degrees>,
    /// One picture a camera, in the order of [`RobotDescription::cameras`].
    pub frames: Vec<NamedFrame>,
}

/// Where the joints shall go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action {
    /// Goal positions: LeRobot degrees, gripper percent.
    pub joints: JointVector<Degrees>,
}

/// What a robot is, for the dataset's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotDescription {
    /// LeRobot's name of the type, `so_follower` for every SO-101.
    pub robot_type: String,
    /// The rig behind it: `emulated`, `sim` or `real`.
    pub rig: String,
    /// Cameras, in the order of [`Observation::frames`].
    pub cameras: Vec<CameraSpec>,
}

/// The real arm, the emulated arm and the simulated arm.
///
/// One control period is `observe`, decide, `act`, and then the caller sleeps on the robot's
/// [`Clock`](crate::Clock) until the next absolute deadline; on a virtual clock that sleep is what moves the world.
pub trait Robot: Send {
    /// Type, rig and cameras. Constant over the life of the robot.
    fn description(&self) -> &RobotDescription;

    /// Reads the joints and takes one picture a camera.
    ///
    /// # Errors
    /// When a servo or a camera cannot be read; the robot keeps its last goal.
    fn observe(&mut self) -> Result<Observation>;

    /// Sends a goal and returns what was really sent, after limits and rounding.
    ///
    /// # Errors
    /// [`Error::NonFinite`](crate::Error::NonFinite) for NaN or infinite goals (nothing is sent), and bus errors.
    fn act(&mut self, action: &Action) -> Result<Action>;
}

impl<R: Robot + ?Sized> Robot for Box<R> {
    fn description(&self) -> &RobotDescription {
        (**self).description()
    }
    fn observe(&mut self) -> Result<Observation> {
        (**self).observe()
    }
    fn act(&mut self, action: &Action) -> Result<Action> {
        (**self).act(action)
    }
}
