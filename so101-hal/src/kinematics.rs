//! Kinematics of the SO-101: where the hand is, and which joint angles bring it somewhere.
//!
//! Everything is in closed form, in `f64`, without allocation, and equal on every run. The base frame has x forward,
//! y to the left and z up, with its origin in the middle of the base's bottom. Joint angles are those of the official
//! model with the new calibration, in radians; a real arm's LeRobot degrees equal them only as far as its
//! calibration does.
//!
//! With `f = phase - q5` (wrist_roll), `pitch = q2 + q3 + q4` (the approach below the horizontal) and a tool centre
//! point `(gx, gy, gz)` of the gripper link, the hand is, in the vertical plane through the pan axis that the arm lies
//! in,
//!
//! ```text
//! u       = gx cos f + gy sin f                                        (off the roll axis, upward)
//! lateral = -0.0001778 + gy cos f - gx sin f                           (out of the plane, to the left)
//! forward = 0.0303992 + 0.028 c2 + 0.11257 s2 + 0.1349 c23 + 0.0052 s23 + L cos pitch + u sin pitch
//! up      = 0.1166 - 0.028 s2 + 0.11257 c2 - 0.1349 s23 + 0.0052 c23 - L sin pitch + u cos pitch
//! ```
//!
//! with `L = 0.0611 - gz`; the plane is turned by `-q1` about the pan axis at x = 0.0388353.
//!
//! ```
//! use so101_hal::kinematics::{Kinematics, Tcp};
//! use so101_hal::Radians;
//! # fn main() -> so101_hal::Result<()> {
//! let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
//! // Fingertip 25 cm in front of the base, 5 cm above the table, pointing steeply down.
//! let solutions = arm.ik([0.25, 0.0, 0.05], Radians(1.3), Radians(0.0))?;
//! let q = solutions.first().q;
//! assert!((arm.fk(&q).position_m[2] - 0.05).abs() < 1e-9);
//! // The same pose again, now from its position and orientation alone.
//! let again = arm.ik_pose(&arm.fk(&q))?;
//! assert!(again.iter().any(|s| (s.q[1].0 - q[1].0).abs() < 1e-9));
//! # Ok(()) }
//! ```

mod geometry;
mod gripper;
pub mod ik;
mod jacobian;
mod links;
mod pose;
mod solution;
mod tcp;
#[cfg(test)]
mod tests;

pub use geometry::{JAW_CONTACT, JAW_LIMITS, LIMITS, Limits, PAN_X_M, ROLL_PHASE_RAD};
pub use gripper::{GripperMap, aperture_m, jaw_from_aperture};
pub use ik::LIMIT_TOLERANCE;
pub use jacobian::Jacobian;
pub use links::LinkPoses;
pub use pose::Pose;
pub use solution::{Elbow, Facing, IkSolution, Solutions, Unreachable};
pub use tcp::Tcp;

use crate::math::sin_cos;
use crate::units::Radians;
use geometry::{FOREARM_M, ROLL_LATERAL_M, SHOULDER_R_M, SHOULDER_Z_M, UPPER_M, WRIST_M};

/// The kinematics of the arm with a chosen tool centre point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kinematics {
    tcp: Tcp,
    /// From the wrist axis to the TCP, along the approach.
    reach_m: f64,
}

/// Where the TCP is in the plane of the arm: across the roll axis.
#[derive(Clone, Copy)]
struct Hand {
    /// Out of the plane, to the left.
    lateral_m: f64,
    /// Above the roll axis when the approach is horizontal.
    up_m: f64,
}

impl Kinematics {
    /// Kinematics of `tcp`. The choice is not a detail: the two usual points are 19.9 mm apart.
    #[must_use]
    pub const fn new(tcp: Tcp) -> Self {
        Self { tcp, reach_m: WRIST_M - tcp.offset_m()[2] }
    }

    /// The tool centre point.
    #[must_use]
    pub const fn tcp(&self) -> &Tcp {
        &self.tcp
    }

    /// Forward kinematics: `base_from_tcp` at joint angles `q`.
    ///
    /// The angles are not limited; NaN gives NaN.
    #[must_use]
    pub fn fk(&self, q: &[Radians; 5]) -> Pose {
        let (s1, c1) = sin_cos(-q[0].0);
        let (s2, c2) = sin_cos(q[1].0);
        let (s23, c23) = sin_cos(q[1].0 + q[2].0);
        let (st, ct) = sin_cos(q[1].0 + q[2].0 + q[3].0);
        let (sf, cf) = sin_cos(ROLL_PHASE_RAD - q[4].0);
        let hand = self.hand(sf, cf);
        let wrist = add(add([SHOULDER_R_M, SHOULDER_Z_M], bent(UPPER_M, s2, c2)), bent(FOREARM_M, s23, c23));
        let [r, z] = add(wrist, bent([self.reach_m, hand.up_m], st, ct));
        // The tool's x and y in (forward, lateral, up); its z is the approach (ct, 0, -st).
        let (x, y) = ([-st * cf, sf, -ct * cf], [st * sf, cf, ct * sf]);
        Pose {
            position_m: [PAN_X_M + r * c1 - hand.lateral_m * s1, r * s1 + hand.lateral_m * c1, z],
            rotation: [
                [c1 * x[0] - s1 * x[1], c1 * y[0] - s1 * y[1], c1 * ct],
                [s1 * x[0] + c1 * x[1], s1 * y[0] + c1 * y[1], s1 * ct],
                [x[2], y[2], -st],
            ],
        }
    }

    /// The approach's angle below the horizontal at joint angles `q`: 90 deg points straight down.
    #[must_use]
    pub fn pitch(q: &[Radians; 5]) -> Radians {
        Radians(q[1].0 + q[2].0 + q[3].0)
    }

    fn hand(&self, sin_f: f64, cos_f: f64) -> Hand {
        let [gx, gy, _] = self.tcp.offset_m();
        Hand { lateral_m: ROLL_LATERAL_M + gy * cos_f - gx * sin_f, up_m: gx * cos_f + gy * sin_f }
    }
}

/// A vector of the arm's plane (forward, up), bent forward and down by an angle with this sine and cosine.
fn bent([forward, up]: [f64; 2], sin: f64, cos: f64) -> [f64; 2] {
    [forward * cos + up * sin, up * cos - forward * sin]
}

fn add(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

fn sub(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}
