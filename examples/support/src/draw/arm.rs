//! What the drawn arm looks like: printed parts and servos as boxes, prisms and cylinders, each in the frame of the
//! link that carries it.
//!
//! Sizes follow the collision boxes of MuJoCo Menagerie's `robotstudio_so101` and the STS3215's case of
//! 45 x 25 x 35 mm; positions follow the joint origins of the official URDF.

use super::geometry::{Rigid, Vec3};
use super::solid::{Solid, Station, loft};

const PRINTED: Vec3 = [0.90, 0.36, 0.10];
const PRINTED_DARK: Vec3 = [0.76, 0.29, 0.09];
const SERVO: Vec3 = [0.13, 0.13, 0.15];
const METAL: Vec3 = [0.55, 0.56, 0.58];

/// Solids by link: base, shoulder, upper arm, lower arm, wrist, gripper, jaw.
#[derive(Clone, Debug)]
pub(crate) struct ArmShape {
    pub(crate) links: [Vec<Solid>; 7],
}

impl ArmShape {
    pub(crate) fn so101() -> Self {
        Self { links: [base(), shoulder(), upper_arm(), lower_arm(), wrist(), gripper(), jaw()] }
    }
}

fn cuboid(center: Vec3, half: Vec3, rgb: Vec3) -> Solid {
    Solid::cuboid(half, &shifted(center), rgb)
}

fn shifted(origin: Vec3) -> Rigid {
    Rigid { origin, ..Rigid::IDENTITY }
}

/// A cylinder along its link's z.
fn hub(center: Vec3, radius: f32, half_length: f32, rgb: Vec3) -> Solid {
    Solid::cylinder(radius, half_length, &shifted(center), rgb)
}

/// A cylinder along its link's y.
fn hub_y(center: Vec3, radius: f32, half_length: f32, rgb: Vec3) -> Solid {
    let rows = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]];
    Solid::cylinder(radius, half_length, &Rigid { rows, origin: center }, rgb)
}

fn base() -> Vec<Solid> {
    vec![
        cuboid([0.010, 0.0, 0.006], [0.056, 0.046, 0.006], PRINTED_DARK),
        cuboid([0.030, 0.0, 0.031], [0.030, 0.026, 0.019], PRINTED),
        cuboid([-0.024, 0.0, 0.024], [0.018, 0.030, 0.012], SERVO),
        cuboid([0.028, 0.0, 0.053], [0.0226, 0.0125, 0.004], SERVO),
    ]
}

/// x backward, y left, z down.
fn shoulder() -> Vec<Solid> {
    vec![
        hub([0.0, 0.0, -0.001], 0.026, 0.004, METAL),
        cuboid([-0.010, 0.0, -0.014], [0.030, 0.025, 0.009], PRINTED),
        cuboid([-0.0304, 0.0, -0.046], [0.0124, 0.0175, 0.0226], SERVO),
        cuboid([-0.012, 0.0, -0.036], [0.006, 0.022, 0.016], PRINTED_DARK),
    ]
}

/// x down, y backward, z left; the arm's middle plane is z = 18.3 mm.
fn upper_arm() -> Vec<Solid> {
    let mut parts = vec![
        hub([0.0, 0.0, 0.0183], 0.0165, 0.0245, PRINTED),
        hub([0.0, 0.0, 0.0183], 0.0090, 0.0265, METAL),
        cuboid([-0.1126, -0.0170, 0.0183], [0.0125, 0.0226, 0.0175], SERVO),
    ];
    let section = |z, y: [f32; 2], half: f32| Station { z, x: [-half, half], y };
    // Lofted along -x of the link: z of the loft is -x, its x is the link's z.
    let rows = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
    let at = Rigid { rows, origin: [0.0, 0.0, 0.0183] };
    parts.extend(loft(
        &[
            section(0.006, [-0.013, 0.013], 0.0240),
            section(0.050, [-0.014, 0.009], 0.0225),
            section(0.098, [-0.024, 0.004], 0.0215),
        ],
        &at,
        PRINTED,
    ));
    parts.push(cuboid([-0.1000, -0.0100, 0.0183], [0.004, 0.018, 0.0235], PRINTED_DARK));
    parts
}

/// x backward, y up, z left.
fn lower_arm() -> Vec<Solid> {
    let mut parts = vec![
        hub([0.0, 0.0, 0.0183], 0.0160, 0.0245, PRINTED),
        hub([0.0, 0.0, 0.0183], 0.0085, 0.0265, METAL),
        cuboid([-0.1210, 0.0052, 0.0183], [0.0226, 0.0125, 0.0175], SERVO),
    ];
    let section = |z, y: [f32; 2], half: f32| Station { z, x: [-half, half], y };
    let rows = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
    let at = Rigid { rows, origin: [0.0, 0.0, 0.0183] };
    parts.extend(loft(
        &[
            section(0.006, [-0.012, 0.012], 0.0235),
            section(0.060, [-0.009, 0.011], 0.0205),
            section(0.104, [-0.008, 0.016], 0.0205),
        ],
        &at,
        PRINTED,
    ));
    parts
}

/// x down, y backward, z left.
fn wrist() -> Vec<Solid> {
    vec![
        hub([0.0, 0.0, 0.0181], 0.0150, 0.0240, PRINTED),
        hub([0.0, 0.0, 0.0181], 0.0080, 0.0260, METAL),
        cuboid([0.0, -0.0200, 0.0181], [0.0130, 0.0110, 0.0240], PRINTED_DARK),
        cuboid([0.0, -0.0420, 0.0221], [0.0124, 0.0140, 0.0226], SERVO),
        hub_y([0.0, -0.0580, 0.0181], 0.0110, 0.0030, METAL),
    ]
}

/// z against the approach, x towards the moving jaw.
fn gripper() -> Vec<Solid> {
    let mut parts = vec![
        cuboid([-0.0060, 0.0, -0.0080], [0.0220, 0.0150, 0.0060], PRINTED_DARK),
        cuboid([0.0080, 0.0, -0.0260], [0.0226, 0.0124, 0.0130], SERVO),
        cuboid([-0.0225, 0.0, -0.0250], [0.0090, 0.0160, 0.0130], PRINTED),
    ];
    let section = |z, x: [f32; 2], half: f32| Station { z, x, y: [-half, half] };
    // From the tip up.
    parts.extend(loft(
        &[
            section(-0.1040, [-0.0112, -0.0080], 0.0035),
            section(-0.0905, [-0.0122, -0.0088], 0.0075),
            section(-0.0727, [-0.0140, -0.0100], 0.0105),
            section(-0.0530, [-0.0165, -0.0110], 0.0125),
            section(-0.0370, [-0.0310, -0.0120], 0.0150),
        ],
        &shifted([0.0; 3]),
        PRINTED,
    ));
    // Camera: a bracket, the board tilted by the camera's turn of -0.57 rad, its lens.
    let (sin, cos) = (-0.5396, 0.8419);
    let tilted = |origin| Rigid { rows: [[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]], origin };
    parts.push(cuboid([-0.0025, 0.0300, -0.0290], [0.0150, 0.0180, 0.0030], PRINTED_DARK));
    parts.push(Solid::cuboid([0.0160, 0.0160, 0.0030], &tilted([0.0, 0.0600, -0.0370]), SERVO));
    parts.push(Solid::cylinder(0.0065, 0.0030, &tilted([0.0, 0.0568, -0.0421]), METAL));
    parts
}

/// z along the joint's axis, y against the approach when closed.
fn jaw() -> Vec<Solid> {
    let mut parts = vec![
        hub([0.0, 0.0, 0.01875], 0.0120, 0.0165, PRINTED),
        hub([0.0, 0.0, 0.01875], 0.0080, 0.0185, METAL),
    ];
    let section = |z, x: [f32; 2], half: f32| Station { z, x, y: [-half, half] };
    // Lofted along y of the link: the loft's y is -z of the link.
    let rows = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]];
    let at = Rigid { rows, origin: [0.0, 0.0, 0.01875] };
    parts.extend(loft(
        &[
            section(-0.0790, [-0.0126, -0.0100], 0.0035),
            section(-0.0670, [-0.0112, -0.0070], 0.0070),
            section(-0.0480, [-0.0085, -0.0010], 0.0100),
            section(-0.0250, [-0.0050, 0.0065], 0.0120),
            section(0.0, [-0.0100, 0.0100], 0.0145),
        ],
        &at,
        PRINTED_DARK,
    ));
    parts
}
