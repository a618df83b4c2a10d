//! Where the jaws can touch an object.

use so101_hal::kinematics::{LinkPoses, Pose};

/// A ball at the surface of a jaw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pad {
    /// Its middle in the base frame.
    pub center_m: [f64; 3],
    /// Its radius.
    pub radius_m: f64,
}

impl Pad {
    /// Height of its lowest point above the table.
    #[must_use]
    pub fn lowest_m(&self) -> f64 {
        self.center_m[2] - self.radius_m
    }
}

/// Number of pads of both jaws.
pub const JAW_PADS: usize = 8;

/// Fixed jaw in the gripper link's frame: middle and radius. The balls lie inside of the tip spheres and boxes that
/// MuJoCo Menagerie's `robotstudio_so101` gives this jaw, and share its outer face.
const FIXED: [([f64; 3], f64); 5] = [
    ([-0.0085, 0.0, -0.1010], 0.0030),
    ([-0.0079, 0.0035, -0.0930], 0.0040),
    ([-0.0079, -0.0035, -0.0930], 0.0040),
    ([-0.0085, 0.0050, -0.0830], 0.0040),
    ([-0.0085, -0.0050, -0.0830], 0.0040),
];

/// Moving jaw in its own frame.
const MOVING: [([f64; 3], f64); 3] = [
    ([-0.0105, -0.0750, 0.01875], 0.0030),
    ([-0.0095, -0.0670, 0.02225], 0.0040),
    ([-0.0095, -0.0670, 0.01525], 0.0040),
];

/// The pads of both jaws at this posture of the arm.
#[must_use]
pub fn jaw_pads(links: &LinkPoses) -> [Pad; JAW_PADS] {
    let on =
        |link: &Pose, (center_m, radius_m): ([f64; 3], f64)| Pad { center_m: link.point(center_m), radius_m };
    let [a, b, c, d, e] = FIXED.map(|pad| on(&links.gripper, pad));
    let [f, g, h] = MOVING.map(|pad| on(&links.jaw, pad));
    [a, b, c, d, e, f, g, h]
}
