//! How fast the hand moves when the joints do.

use super::geometry::{FOREARM_M, PAN_X_M, ROLL_LATERAL_M, SHOULDER_R_M, SHOULDER_Z_M, UPPER_M};
use super::pose::cross;
use super::{Kinematics, add, bent};
use crate::math::sin_cos;
use crate::units::Radians;

/// The geometric Jacobian of the TCP in the base frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jacobian {
    /// Rows x, y, z; a column for each body joint: velocity of the TCP in m/s at 1 rad/s.
    pub linear_m_per_rad: [[f64; 5]; 3],
    /// Rows x, y, z; a column for each body joint: angular velocity at 1 rad/s, which is the joint's axis.
    pub angular: [[f64; 5]; 3],
}

impl Jacobian {
    /// The six rows x, y, z (m/rad), wx, wy, wz (rad/rad).
    #[must_use]
    pub const fn rows(&self) -> [[f64; 5]; 6] {
        let [x, y, z] = self.linear_m_per_rad;
        let [wx, wy, wz] = self.angular;
        [x, y, z, wx, wy, wz]
    }
}

impl Kinematics {
    /// The Jacobian at joint angles `q`.
    #[must_use]
    pub fn jacobian(&self, q: &[Radians; 5]) -> Jacobian {
        let (s1, c1) = sin_cos(-q[0].0);
        let (s2, c2) = sin_cos(q[1].0);
        let (s23, c23) = sin_cos(q[1].0 + q[2].0);
        let (st, ct) = sin_cos(q[1].0 + q[2].0 + q[3].0);
        let shoulder = [SHOULDER_R_M, SHOULDER_Z_M];
        let elbow = add(shoulder, bent(UPPER_M, s2, c2));
        let wrist = add(elbow, bent(FOREARM_M, s23, c23));
        let in_base =
            |[r, z]: [f64; 2], lateral: f64| [PAN_X_M + r * c1 - lateral * s1, r * s1 + lateral * c1, z];
        let left = [-s1, c1, 0.0];
        let axes = [[0.0, 0.0, -1.0], left, left, left, [-c1 * ct, -s1 * ct, st]];
        let points = [
            [PAN_X_M, 0.0, 0.0],
            in_base(shoulder, 0.0),
            in_base(elbow, 0.0),
            in_base(wrist, 0.0),
            in_base(wrist, ROLL_LATERAL_M),
        ];
        let tcp = self.fk(q).position_m;
        let mut jacobian = Jacobian { linear_m_per_rad: [[0.0; 5]; 3], angular: [[0.0; 5]; 3] };
        for (joint, (axis, point)) in axes.into_iter().zip(points).enumerate() {
            let arm = [tcp[0] - point[0], tcp[1] - point[1], tcp[2] - point[2]];
            let velocity = cross(axis, arm);
            for row in 0..3 {
                jacobian.linear_m_per_rad[row][joint] = velocity[row];
                jacobian.angular[row][joint] = axis[row];
            }
        }
        jacobian
    }
}
