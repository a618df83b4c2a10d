//! Vectors and rigid transforms of the rasteriser, single precision.

use so101_hal::kinematics::Pose;

pub(crate) type Vec3 = [f32; 3];

pub(crate) fn dot(a: Vec3, b: Vec3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Of length one; a vector of no length stays as it is.
pub(crate) fn unit(a: Vec3) -> Vec3 {
    let length = dot(a, a).sqrt();
    if length > 0.0 { a.map(|v| v / length) } else { a }
}

/// Rotation and translation: maps coordinates of one frame to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rigid {
    /// Rows of the rotation.
    pub(crate) rows: [Vec3; 3],
    /// Translation, metres.
    pub(crate) origin: Vec3,
}

impl Rigid {
    pub(crate) const IDENTITY: Self =
        Self { rows: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], origin: [0.0; 3] };

    /// A turn about z by the angle of this cosine and sine, then a shift.
    pub(crate) fn about_z(cos: f32, sin: f32, origin: Vec3) -> Self {
        Self { rows: [[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]], origin }
    }

    pub(crate) fn rotate(&self, v: Vec3) -> Vec3 {
        self.rows.map(|row| dot(row, v))
    }

    pub(crate) fn apply(&self, p: Vec3) -> Vec3 {
        let r = self.rotate(p);
        [r[0] + self.origin[0], r[1] + self.origin[1], r[2] + self.origin[2]]
    }

    /// First `inner`, then this.
    pub(crate) fn compose(&self, inner: &Self) -> Self {
        let column = |j: usize| self.rotate([inner.rows[0][j], inner.rows[1][j], inner.rows[2][j]]);
        let (x, y, z) = (column(0), column(1), column(2));
        let row = |i: usize| [x[i], y[i], z[i]];
        Self { rows: [row(0), row(1), row(2)], origin: self.apply(inner.origin) }
    }

    pub(crate) fn inverse(&self) -> Self {
        let r = &self.rows;
        let row = |j: usize| [r[0][j], r[1][j], r[2][j]];
        let rows = [row(0), row(1), row(2)];
        Self { rows, origin: rows.map(|row| -dot(row, self.origin)) }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "pictures need no more than single precision")]
pub(crate) fn single<const N: usize>(v: [f64; N]) -> [f32; N] {
    v.map(|x| x as f32)
}

impl From<&Pose> for Rigid {
    fn from(pose: &Pose) -> Self {
        Self { rows: pose.rotation.map(single), origin: single(pose.position_m) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_undoes_and_composition_applies_the_inner_one_first() {
        let a = Rigid::about_z(0.6, 0.8, [1.0, 2.0, 3.0]);
        let b =
            Rigid { rows: [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]], origin: [0.5, 0.0, -1.0] };
        let p = [0.3, -0.2, 0.7];
        let near = |u: Vec3, v: Vec3| sub(u, v).iter().all(|d| d.abs() < 1e-6);
        assert!(near(a.compose(&b).apply(p), a.apply(b.apply(p))));
        assert!(near(a.inverse().apply(a.apply(p)), p));
    }
}
