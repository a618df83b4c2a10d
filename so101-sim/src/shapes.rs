//! What the arm looks like and what it touches with: boxes, cylinders and capsules, no meshes.
//!
//! The official meshes have 320,000 faces and cost a software renderer 100 ms a picture; these shapes cost 1 ms. Sizes
//! and places follow the printed parts and servos of the real arm to a few millimetres. The jaws end in flat box pads,
//! parallel to each other when the gripper is closed: friction grasps on convex hulls of the meshes slip.

use crate::arm::JAW_ORIGIN_M;

/// What a part is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Printed plastic.
    Printed,
    /// A servo's case.
    Servo,
    /// A printed circuit board.
    Board,
    /// The rubber of the jaw pads.
    Pad,
}

impl Paint {
    pub(crate) const fn material(self) -> &'static str {
        match self {
            Self::Printed => "printed",
            Self::Servo => "servo",
            Self::Board => "board",
            Self::Pad => "pad",
        }
    }
}

/// Whether other bodies feel a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Seen only.
    Ghost,
    /// Collides with table and objects, with the contact options of a link.
    Solid,
    /// Collides with the contact options of a jaw: higher friction, all six directions.
    Grip,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// Half sizes, mm.
    Box([f64; 3]),
    /// Radius and half length along the local z, mm.
    Cylinder(f64, f64),
    /// Radius and half length of the straight part along the local z, mm.
    Capsule(f64, f64),
}

/// One primitive in the frame of its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) link: &'static str,
    pub(crate) form: Form,
    pub(crate) center_mm: [f64; 3],
    /// Turn about the link's x, y and z axes (one of them at most), degrees.
    pub(crate) turn_deg: [f64; 3],
    pub(crate) paint: Paint,
    pub(crate) touch: Touch,
    pub(crate) name: Option<&'static str>,
}

const fn shape(link: &'static str, form: Form, center_mm: [f64; 3], paint: Paint, touch: Touch) -> Shape {
    Shape { link, form, center_mm, turn_deg: [0.0; 3], paint, touch, name: None }
}

impl Shape {
    const fn turned(mut self, turn_deg: [f64; 3]) -> Self {
        self.turn_deg = turn_deg;
        self
    }
    const fn named(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }
}

use Form::{Box as B, Capsule as K, Cylinder as C};
use Paint::{Board, Pad, Printed, Servo};
use Touch::{Ghost, Grip, Solid};

const ALONG_X: [f64; 3] = [0.0, 90.0, 0.0];
const ALONG_Y: [f64; 3] = [90.0, 0.0, 0.0];

/// Everything but the pads.
const PARTS: &[Shape] = &[
    // base: stepped foot, tower with the pan servo, controller board on the back
    shape("base", B([43.0, 36.0, 10.0]), [21.0, 0.0, 10.0], Printed, Solid),
    shape("base", B([22.0, 55.0, 6.0]), [12.0, 0.0, 6.0], Printed, Solid),
    shape("base", B([28.0, 23.0, 24.0]), [-1.0, 1.0, 43.0], Printed, Solid),
    shape("base", B([23.0, 12.4, 20.0]), [30.0, 0.0, 44.0], Servo, Ghost),
    shape("base", B([3.0, 25.0, 21.0]), [-30.0, 0.0, 47.0], Board, Ghost),
    // shoulder: bracket around the pan servo, holder and servo of the lift axis
    shape("shoulder", B([30.0, 17.0, 4.0]), [-14.0, 0.0, 41.0], Printed, Ghost),
    shape("shoulder", B([26.0, 20.0, 4.5]), [-22.0, 0.0, -10.0], Printed, Ghost),
    shape("shoulder", B([8.0, 20.0, 26.0]), [-39.5, 0.0, 15.0], Printed, Solid),
    shape("shoulder", B([17.0, 25.0, 15.0]), [-31.0, 1.0, -25.0], Printed, Solid),
    shape("shoulder", B([12.4, 19.0, 20.0]), [-30.4, 0.0, -46.0], Servo, Ghost),
    shape("shoulder", C(10.5, 23.0), [-30.4, 0.0, -54.2], Servo, Ghost).turned(ALONG_Y),
    shape("shoulder", C(11.0, 6.0), [0.0, 0.0, -10.0], Servo, Ghost),
    // upper arm: two cheeks and a web, the elbow servo at its end
    shape("upper_arm", B([69.0, 11.0, 4.5]), [-59.0, 0.0, -8.5], Printed, Ghost),
    shape("upper_arm", B([69.0, 11.0, 4.5]), [-59.0, 0.0, 45.5], Printed, Ghost),
    shape("upper_arm", B([36.0, 9.0, 23.0]), [-63.0, 0.0, 18.5], Printed, Solid),
    shape("upper_arm", C(11.0, 4.5), [0.0, 0.0, -8.5], Printed, Ghost),
    shape("upper_arm", C(11.0, 4.5), [0.0, 0.0, 45.5], Printed, Ghost),
    shape("upper_arm", B([12.4, 22.5, 19.5]), [-112.6, -15.5, 18.2], Servo, Solid),
    // forearm
    shape("lower_arm", B([46.0, 10.5, 4.5]), [-46.0, 0.0, -7.5], Printed, Ghost),
    shape("lower_arm", B([46.0, 10.5, 4.5]), [-46.0, 0.0, 45.0], Printed, Ghost),
    shape("lower_arm", B([36.0, 9.0, 23.0]), [-60.0, 0.0, 18.5], Printed, Solid),
    shape("lower_arm", C(11.0, 4.5), [0.0, 0.0, -7.5], Printed, Ghost),
    shape("lower_arm", C(11.0, 4.5), [0.0, 0.0, 45.0], Printed, Ghost),
    shape("lower_arm", B([13.0, 17.0, 26.0]), [-103.0, 4.0, 19.5], Printed, Solid),
    shape("lower_arm", B([20.0, 12.4, 19.5]), [-125.0, 5.2, 18.2], Servo, Solid),
    // wrist: fork around the flex servo's horns, the roll servo inside
    shape("wrist", B([11.0, 22.0, 3.5]), [0.0, -10.0, -6.0], Printed, Ghost),
    shape("wrist", B([11.0, 22.0, 3.5]), [0.0, -10.0, 43.0], Printed, Ghost),
    shape("wrist", B([16.0, 20.0, 18.0]), [-1.0, -44.0, 9.0], Printed, Solid),
    shape("wrist", B([12.4, 19.5, 22.5]), [0.0, -43.0, 30.6], Servo, Solid),
    // hand: plate, jaw servo and its holder, fixed jaw
    shape("gripper", C(20.0, 4.0), [0.0, 0.0, -4.5], Printed, Ghost),
    shape("gripper", B([20.0, 17.0, 14.0]), [-13.0, -1.0, -24.0], Printed, Solid),
    shape("gripper", B([20.0, 19.5, 12.4]), [10.0, 0.5, -23.4], Servo, Solid),
    shape("gripper", B([7.0, 11.0, 20.0]), [-22.5, 0.0, -53.0], Printed, Grip).turned([0.0, -14.0, 0.0]),
    shape("gripper", B([4.2, 8.0, 19.0]), [-14.6, 0.0, -84.5], Printed, Grip).turned([0.0, -9.0, 0.0]),
    // camera: plate, board and lens, above the hand on its +y side
    shape("gripper", B([14.0, 18.0, 2.0]), [0.0, 33.0, -28.0], Printed, Ghost).turned([-32.7, 0.0, 0.0]),
    shape("gripper", B([16.0, 16.0, 2.5]), [0.0, 59.0, -38.6], Board, Ghost).turned([-32.7, 0.0, 0.0]),
    // moving jaw: knuckle around its servo, finger
    shape("jaw", B([9.0, 10.0, 22.0]), [0.0, -1.0, 18.8], Printed, Ghost),
    shape("jaw", B([8.0, 17.0, 11.0]), [1.0, -24.0, 18.8], Printed, Grip).turned([0.0, 0.0, 6.0]),
    shape("jaw", B([5.0, 23.0, 8.0]), [-3.0, -57.0, 18.8], Printed, Grip).turned([0.0, 0.0, -11.0]),
];

/// Face of the fixed pad in the gripper's x, mm: the tool centre point of the fingertip lies on it.
const FIXED_FACE_MM: f64 = -7.9;
/// Free play between the pads in the closed position, mm, so that closing on nothing presses on nothing.
const CLOSED_PLAY_MM: f64 = 0.2;
/// Half thickness, half width and half length of a pad, mm.
const PAD_HALF_MM: [f64; 3] = [1.5, 6.0, 14.0];
/// Middle of a pad along the gripper's z, mm.
const PAD_Z_MM: f64 = -90.0;

/// All primitives of the arm, the pads placed for jaws that meet at `contact_rad`.
pub(crate) fn shapes(contact_rad: f64) -> Vec<Shape> {
    let mut all = PARTS.to_vec();
    let [t, w, l] = PAD_HALF_MM;
    let fixed = [FIXED_FACE_MM - t, 0.0, PAD_Z_MM];
    all.push(shape("gripper", B([t, w, l]), fixed, Pad, Grip).named("fixed_pad"));
    // The moving pad is the fixed pad's mirror image in the closed position, carried into the jaw's frame there: jaw x
    // is the gripper's x and jaw y its z, turned by the contact angle about the jaw's z (the gripper's -y).
    let (s, c) = contact_rad.sin_cos();
    let dx = FIXED_FACE_MM + CLOSED_PLAY_MM + t - 1e3 * JAW_ORIGIN_M[0];
    let dz = PAD_Z_MM - 1e3 * JAW_ORIGIN_M[2];
    let center = [c * dx + s * dz, c * dz - s * dx, 1e3 * JAW_ORIGIN_M[1]];
    let pad = shape("jaw", B([t, l, w]), center, Pad, Grip).named("moving_pad");
    all.push(pad.turned([0.0, 0.0, -contact_rad.to_degrees()]));
    // Horn of the jaw servo, and the lens, whose glass is the camera's viewpoint.
    all.push(shape("jaw", C(9.0, 23.0), [0.0, 0.0, 18.8], Servo, Ghost));
    all.push(shape("gripper", C(6.0, 3.0), [0.0, 57.5, -41.0], Servo, Ghost).turned([-32.7, 0.0, 0.0]));
    let screw = shape("base", K(2.5, 20.0), [62.0, 0.0, 8.0], Servo, Ghost);
    all.push(screw.turned(ALONG_Y));
    all.push(shape("wrist", C(5.0, 17.0), [0.0, -43.0, 30.0], Servo, Ghost).turned(ALONG_X));
    all
}
