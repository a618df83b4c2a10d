//! Convex solids of one colour with flat faces.

use super::geometry::{Rigid, Vec3, cross, dot, sub, unit};

/// The largest number of corners of one face.
pub(crate) const MAX_CORNERS: usize = 16;

/// A convex solid; its faces wind counter-clockwise seen from outside.
#[derive(Clone, Debug)]
pub(crate) struct Solid {
    pub(crate) vertices: Vec<Vec3>,
    pub(crate) faces: Vec<Face>,
    corners: Vec<u8>,
    pub(crate) rgb: Vec3,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Face {
    pub(crate) normal: Vec3,
    start: u16,
    len: u16,
}

/// A cross-section of a lofted part: a rectangle in x and y at a height z.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Station {
    pub(crate) z: f32,
    pub(crate) x: [f32; 2],
    pub(crate) y: [f32; 2],
}

impl Solid {
    /// A box of these half edges.
    pub(crate) fn cuboid(half: Vec3, at: &Rigid, rgb: Vec3) -> Self {
        let [x, y, z] = half;
        let section = |z| Station { z, x: [-x, x], y: [-y, y] };
        Self::frustum(section(-z), section(z), at, rgb)
    }

    /// Between two rectangles, the first one the lower.
    pub(crate) fn frustum(low: Station, high: Station, at: &Rigid, rgb: Vec3) -> Self {
        let ring = |s: Station| {
            [[s.x[0], s.y[0], s.z], [s.x[1], s.y[0], s.z], [s.x[1], s.y[1], s.z], [s.x[0], s.y[1], s.z]]
        };
        Self::between(&ring(low), &ring(high), at, rgb)
    }

    /// A cylinder about its frame's z axis, as a prism.
    pub(crate) fn cylinder(radius: f32, half_length: f32, at: &Rigid, rgb: Vec3) -> Self {
        // Corners of a regular dodecagon without a trigonometric function: cos 30 deg = sqrt(3) / 2.
        let c = 3.0_f32.sqrt() / 2.0;
        let turns = [(1.0, 0.0), (c, 0.5), (0.5, c)];
        let quarter = |q: usize, (x, y): (f32, f32)| match q {
            0 => (x, y),
            1 => (-y, x),
            2 => (-x, -y),
            _ => (y, -x),
        };
        let ring = |z: f32| -> Vec<Vec3> {
            (0..12)
                .map(|i| {
                    let (x, y) = quarter(i / 3, turns[i % 3]);
                    [radius * x, radius * y, z]
                })
                .collect()
        };
        Self::between(&ring(-half_length), &ring(half_length), at, rgb)
    }

    /// Two rings of equally many corners, both counter-clockwise seen from +z, and the sides between them.
    fn between(low: &[Vec3], high: &[Vec3], at: &Rigid, rgb: Vec3) -> Self {
        let n = low.len().min(MAX_CORNERS);
        let vertices: Vec<Vec3> = low[..n].iter().chain(&high[..n]).map(|&p| at.apply(p)).collect();
        let mut solid = Self { vertices, faces: Vec::new(), corners: Vec::new(), rgb };
        solid.face((0..n).rev());
        solid.face(n..2 * n);
        for i in 0..n {
            let j = (i + 1) % n;
            solid.face([i, j, n + j, n + i].into_iter());
        }
        solid
    }

    #[allow(clippy::cast_possible_truncation, reason = "a solid has at most 32 vertices and 18 faces of 16")]
    fn face(&mut self, corners: impl Iterator<Item = usize>) {
        let start = self.corners.len();
        self.corners.extend(corners.map(|i| i as u8));
        let [a, b, c] = [0, 1, 2].map(|i| self.vertices[usize::from(self.corners[start + i])]);
        let normal = unit(cross(sub(b, a), sub(c, a)));
        let len = (self.corners.len() - start) as u16;
        self.faces.push(Face { normal, start: start as u16, len });
    }

    /// Indices of a face's corners into [`Self::vertices`].
    pub(crate) fn corners(&self, face: &Face) -> &[u8] {
        let start = usize::from(face.start);
        &self.corners[start..start + usize::from(face.len)]
    }
}

/// A chain of frusta through these cross-sections.
pub(crate) fn loft(stations: &[Station], at: &Rigid, rgb: Vec3) -> Vec<Solid> {
    stations.windows(2).map(|pair| Solid::frustum(pair[0], pair[1], at, rgb)).collect()
}

/// How bright a face is: some light from everywhere, more from above, most from the lamp.
pub(crate) fn brightness(normal: Vec3, to_lamp: Vec3) -> f32 {
    0.54 + 0.06 * normal[2] + 0.38 * dot(normal, to_lamp).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_face_of_a_solid_looks_away_from_its_middle() {
        let at = Rigid::about_z(0.6, 0.8, [0.1, 0.2, 0.3]);
        let low = Station { z: -0.02, x: [-0.01, 0.03], y: [-0.01, 0.01] };
        let high = Station { z: 0.02, x: [0.0, 0.01], y: [-0.02, 0.02] };
        for s in [
            Solid::cuboid([0.01, 0.02, 0.03], &at, [1.0; 3]),
            Solid::cylinder(0.02, 0.01, &at, [1.0; 3]),
            Solid::frustum(low, high, &at, [1.0; 3]),
        ] {
            let n = s.vertices.len() as f32;
            let middle: Vec3 = std::array::from_fn(|i| s.vertices.iter().map(|v| v[i]).sum::<f32>() / n);
            for f in &s.faces {
                let on_face = s.vertices[usize::from(s.corners(f)[0])];
                assert!(dot(f.normal, sub(on_face, middle)) > 0.0);
                assert!((dot(f.normal, f.normal) - 1.0).abs() < 1e-5);
            }
        }
    }
}
