//! Rigid transforms.

use crate::math::{atan2, sqrt};
use crate::units::Radians;

/// Where a frame is: `base_from_x` takes coordinates in x to coordinates in the base.
///
/// ```
/// use so101_hal::kinematics::Pose;
/// let quarter_turn = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
/// let base_from_tool = Pose { position_m: [0.1, 0.0, 0.0], rotation: quarter_turn };
/// assert_eq!(base_from_tool.point([0.02, 0.0, 0.0]), [0.1, 0.02, 0.0]);
/// assert_eq!(base_from_tool.compose(&base_from_tool.inverse()), Pose::IDENTITY);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Origin of the frame.
    pub position_m: [f64; 3],
    /// Rotation matrix, `rotation[row][column]`; its columns are the axes of the frame.
    pub rotation: [[f64; 3]; 3],
}

impl Pose {
    /// No motion.
    pub const IDENTITY: Self =
        Self { position_m: [0.0; 3], rotation: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] };

    /// Coordinates of a point of this frame in the parent's.
    #[must_use]
    pub fn point(&self, point_m: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = self.direction(point_m);
        let [px, py, pz] = self.position_m;
        [x + px, y + py, z + pz]
    }

    /// Components of a direction of this frame in the parent's.
    #[must_use]
    pub fn direction(&self, v: [f64; 3]) -> [f64; 3] {
        self.rotation.map(|row| dot(row, v))
    }

    /// `a_from_b.compose(&b_from_c)` is `a_from_c`.
    #[must_use]
    pub fn compose(&self, inner: &Self) -> Self {
        let [x, y, z] = [0, 1, 2].map(|column| self.direction(inner.axis(column)));
        Self {
            position_m: self.point(inner.position_m),
            rotation: [[x[0], y[0], z[0]], [x[1], y[1], z[1]], [x[2], y[2], z[2]]],
        }
    }

    /// `b_from_a` of `a_from_b`.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let rotation = [self.axis(0), self.axis(1), self.axis(2)];
        Self { position_m: rotation.map(|row| -dot(row, self.position_m)), rotation }
    }

    /// Axis x, y or z (0, 1, 2) of this frame in the parent's; z for larger numbers.
    #[must_use]
    pub const fn axis(&self, index: usize) -> [f64; 3] {
        let [a, b, c] = &self.rotation;
        let i = if index < 2 { index } else { 2 };
        [a[i], b[i], c[i]]
    }

    /// The rotation as a unit quaternion w, x, y, z with w >= 0.
    #[must_use]
    pub fn quat_wxyz(&self) -> [f64; 4] {
        // Shepperd's method: divide by the largest component.
        let [[a, b, c], [d, e, f], [g, h, i]] = self.rotation;
        let (w, x, y, z) = (a + e + i, a - e - i, e - a - i, i - a - e);
        let q = if w >= x && w >= y && w >= z {
            [1.0 + w, h - f, c - g, d - b]
        } else if x >= y && x >= z {
            [h - f, 1.0 + x, b + d, c + g]
        } else if y >= z {
            [c - g, b + d, 1.0 + y, f + h]
        } else {
            [d - b, c + g, f + h, 1.0 + z]
        };
        let scale = if q[0] < 0.0 { -1.0 } else { 1.0 } / sqrt(q.iter().map(|v| v * v).sum());
        q.map(|v| v * scale)
    }

    /// Distance of the origins.
    #[must_use]
    pub fn distance_m(&self, other: &Self) -> f64 {
        let [x, y, z] = self.position_m;
        let [a, b, c] = other.position_m;
        norm([x - a, y - b, z - c])
    }

    /// The smallest angle that turns one orientation into the other; accurate also for tiny angles.
    #[must_use]
    pub fn angle_to(&self, other: &Self) -> Radians {
        let [a, b, c] = [self.axis(0), self.axis(1), self.axis(2)];
        let [x, y, z] = [other.axis(0), other.axis(1), other.axis(2)];
        let twice_sine = [dot(c, y) - dot(b, z), dot(a, z) - dot(c, x), dot(b, x) - dot(a, y)];
        Radians(atan2(norm(twice_sine), dot(a, x) + dot(b, y) + dot(c, z) - 1.0))
    }
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn norm(a: [f64; 3]) -> f64 {
    sqrt(dot(a, a))
}

pub(super) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
