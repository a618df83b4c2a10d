//! The point of the hand that is meant when a position is given.

use super::geometry::finite;
use super::pose::Pose;
use crate::error::Result;

/// A tool centre point: a named point of the gripper link.
///
/// Every TCP has the same axes, those of LeRobot's `gripper_frame_link`: z is the approach (out of the fingers), y the
/// axis of the moving jaw's hinge, x completes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tcp {
    name: &'static str,
    offset_m: [f64; 3],
}

impl Tcp {
    /// LeRobot's: the tip of the fixed finger (`gripper_frame_link` of the official URDF).
    pub const LEROBOT_FINGERTIP: Self =
        Self { name: "lerobot_fingertip", offset_m: [-0.0079, -0.000_218_121, -0.098_127_4] };

    /// Between the jaws (the site `gripperframe` of MuJoCo Menagerie's model), 19.9 mm from the fingertip.
    pub const PINCH: Self = Self { name: "pinch", offset_m: [0.012, -0.000_218, -0.098_127] };

    /// Another point, in the gripper link's frame.
    ///
    /// # Errors
    /// [`Error::NonFinite`](crate::Error::NonFinite) when the offset is not finite.
    pub fn custom(name: &'static str, offset_m: [f64; 3]) -> Result<Self> {
        finite("the offset of a tool centre point", &offset_m)?;
        Ok(Self { name, offset_m })
    }

    /// Its name, for headers of files.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Where it is in the gripper link's frame.
    #[must_use]
    pub const fn offset_m(&self) -> [f64; 3] {
        self.offset_m
    }

    /// Its frame in the gripper link's.
    #[must_use]
    pub const fn gripper_from_tcp(&self) -> Pose {
        Pose { position_m: self.offset_m, rotation: [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]] }
    }
}
