//! The emulated world: a table, one object on it, and jaws that push it.
//!
//! The table is the plane z = 0 of the arm's base frame. Pushing is quasi-static and planar: where a jaw reaches into
//! the object's footprint below the object's top, the object gives way along the contact normal by the depth of the
//! overlap. Nothing else moves it, and it does not turn. That is enough for pictures that show what the arm did; it is
//! no physics, and nobody judges an emulated episode by it.

mod jaws;

use so101_hal::Radians;

pub use jaws::{JAW_PADS, Pad, jaw_pads};

/// What lies on the table.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSpec {
    /// Its name in the plan.
    pub name: String,
    /// Edges of the box: along its own x, y and z.
    pub size_m: [f64; 3],
    /// Mass.
    pub mass_kg: f64,
    /// Colour, each channel 0 to 1.
    pub rgb: [f64; 3],
}

/// Where it lies: the middle of its base on the table, base frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ObjectPose {
    /// Forward of the arm's base.
    pub x_m: f64,
    /// To the left of the arm's base.
    pub y_m: f64,
    /// Turn about the vertical, counter-clockwise from above.
    pub yaw: Radians,
}

/// The rectangle of table that an object covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    center_m: [f64; 2],
    half_m: [f64; 2],
    /// Direction of the object's own x axis.
    axis: [f64; 2],
}

/// The object on the table, and what has happened to it.
///
/// ```
/// use so101_hal::Radians;
/// use so101_support::plan::Plan;
/// use so101_support::scene::{ObjectPose, Pad, Scene};
/// let pose = ObjectPose { x_m: 0.25, y_m: 0.0, yaw: Radians(0.0) };
/// let mut scene = Scene::new(Plan::push_left().object().clone(), pose);
/// // A pad of 4 mm radius whose middle touches the face at y = -15 mm reaches 4 mm into the object.
/// scene.push(&[Pad { center_m: [0.25, -0.015, 0.01], radius_m: 0.004 }]);
/// assert!((scene.pose().y_m - 0.004).abs() < 1e-9);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    object: ObjectSpec,
    pose: ObjectPose,
}

impl ObjectSpec {
    /// The part of the table that it covers at `pose`.
    #[must_use]
    pub fn footprint(&self, pose: &ObjectPose) -> Footprint {
        Footprint {
            center_m: [pose.x_m, pose.y_m],
            half_m: [self.size_m[0] / 2.0, self.size_m[1] / 2.0],
            axis: [pose.yaw.0.cos(), pose.yaw.0.sin()],
        }
    }
}

impl Footprint {
    /// How far it reaches from its middle along the direction (x, y), a unit vector.
    #[must_use]
    pub fn half_extent_m(&self, direction: [f64; 2]) -> f64 {
        let [u, v] = self.local(direction);
        self.half_m[0] * u.abs() + self.half_m[1] * v.abs()
    }

    /// Distance of a point of the table from the rectangle, negative inside of it.
    #[must_use]
    pub fn distance_m(&self, point_m: [f64; 2]) -> f64 {
        self.nearest(point_m).0
    }

    /// Signed distance, and the unit direction from the point into the rectangle (where a pusher at the point pushes).
    fn nearest(&self, point_m: [f64; 2]) -> (f64, [f64; 2]) {
        let [u, v] = self.local([point_m[0] - self.center_m[0], point_m[1] - self.center_m[1]]);
        // Outward excess beyond the faces that this point is nearest to.
        let (eu, ev) = (u.abs() - self.half_m[0], v.abs() - self.half_m[1]);
        let (distance_m, inward) = if eu > 0.0 && ev > 0.0 {
            let corner_m = (eu * eu + ev * ev).sqrt();
            (corner_m, [-u.signum() * eu / corner_m, -v.signum() * ev / corner_m])
        } else if eu > ev {
            (eu, [-u.signum(), 0.0])
        } else {
            (ev, [0.0, -v.signum()])
        };
        let [c, s] = self.axis;
        (distance_m, [c * inward[0] - s * inward[1], s * inward[0] + c * inward[1]])
    }

    fn local(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [c, s] = self.axis;
        [c * x + s * y, c * y - s * x]
    }
}

impl Scene {
    /// Several pads may share a push; each pass resolves one after the other.
    const PASSES: usize = 4;

    /// An object at rest.
    #[must_use]
    pub fn new(object: ObjectSpec, pose: ObjectPose) -> Self {
        Self { object, pose }
    }

    /// What lies there.
    #[must_use]
    pub fn object(&self) -> &ObjectSpec {
        &self.object
    }

    /// Where it lies now.
    #[must_use]
    pub fn pose(&self) -> ObjectPose {
        self.pose
    }

    /// The table that it covers now.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        self.object.footprint(&self.pose)
    }

    /// Lets the object give way to jaws at these places.
    pub fn push(&mut self, pads: &[Pad]) {
        for _ in 0..Self::PASSES {
            let mut moved = false;
            for pad in pads.iter().filter(|p| p.lowest_m() < self.object.size_m[2]) {
                let (distance_m, inward) = self.footprint().nearest([pad.center_m[0], pad.center_m[1]]);
                let depth_m = pad.radius_m - distance_m;
                if depth_m > 0.0 {
                    self.pose.x_m += inward[0] * depth_m;
                    self.pose.y_m += inward[1] * depth_m;
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Shortest distance between the jaws and the object, seen from above; zero or less where they touch.
    #[must_use]
    pub fn jaw_distance_m(&self, pads: &[Pad]) -> f64 {
        let footprint = self.footprint();
        let gap_m = |p: &Pad| footprint.distance_m([p.center_m[0], p.center_m[1]]) - p.radius_m;
        pads.iter().map(gap_m).fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use proptest::prelude::*;

    fn scene(yaw_deg: f64) -> Scene {
        let pose = ObjectPose { x_m: 0.25, y_m: 0.01, yaw: Radians(yaw_deg.to_radians()) };
        Scene::new(Plan::push_left().object().clone(), pose)
    }

    #[test]
    fn yaw_turns_the_footprint() {
        for (yaw_deg, along_x_m, along_y_m) in [(0.0, 0.03, 0.015), (90.0, 0.015, 0.03), (180.0, 0.03, 0.015)]
        {
            let f = scene(yaw_deg).footprint();
            assert!((f.half_extent_m([1.0, 0.0]) - along_x_m).abs() < 1e-12);
            assert!((f.half_extent_m([0.0, 1.0]) - along_y_m).abs() < 1e-12);
        }
    }

    #[test]
    fn a_pad_above_the_object_or_beside_it_moves_nothing() {
        for center_m in [[0.25, 0.01, 0.036], [0.25, -0.03, 0.01], [0.30, 0.01, 0.01]] {
            let mut s = scene(0.0);
            s.push(&[Pad { center_m, radius_m: 0.004 }]);
            assert_eq!(s, scene(0.0), "{center_m:?}");
        }
    }

    #[test]
    fn a_push_against_a_face_moves_along_its_normal_by_the_overlap() {
        for yaw_deg in [0.0, 30.0, 90.0] {
            let mut s = scene(yaw_deg);
            let (sin, cos) = f64::to_radians(yaw_deg).sin_cos();
            // 14 mm to the -y side of the middle in the object's own frame, face at 15 mm.
            let at = [0.25 + sin * 0.014, 0.01 - cos * 0.014, 0.01];
            s.push(&[Pad { center_m: at, radius_m: 0.004 }]);
            let moved = [s.pose().x_m - 0.25, s.pose().y_m - 0.01];
            assert!(
                (moved[0] + sin * 0.005).abs() < 1e-12 && (moved[1] - cos * 0.005).abs() < 1e-12,
                "{moved:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_object_moves_only_when_touched_and_touches_nothing_after(
            x_m in 0.18..0.32_f64, y_m in -0.06..0.08_f64, z_m in 0.0..0.06_f64, yaw_deg in -180.0..180.0_f64,
        ) {
            let mut s = scene(yaw_deg);
            let pad = Pad { center_m: [x_m, y_m, z_m], radius_m: 0.004 };
            let gap_m = s.jaw_distance_m(&[pad]);
            let before = s.pose();
            s.push(&[pad]);
            prop_assert_eq!(s.pose() != before, gap_m < 0.0 && pad.lowest_m() < 0.03);
            prop_assert!(pad.lowest_m() >= 0.03 || s.jaw_distance_m(&[pad]) > -1e-12);
        }
    }
}
