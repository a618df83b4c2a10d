//! Forward kinematics against pinocchio's, and the link frames against a plain reading of the URDF.

use serde::Deserialize;
use so101_hal::Radians;
use so101_hal::kinematics::{Kinematics, LIMITS, LinkPoses, Pose, Tcp};

/// What the URDF's rounded angles may cost.
const POSITION_M: f64 = 1e-5;
const ROTATION: f64 = 3e-5;

#[derive(Deserialize)]
struct Oracle {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    q_rad: [f64; 5],
    tcp_position_m: [f64; 3],
    tcp_quat_wxyz: [f64; 4],
    pinch_position_m: [f64; 3],
}

fn rotation([w, x, y, z]: [f64; 4]) -> [[f64; 3]; 3] {
    [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
}

#[test]
fn forward_kinematics_agrees_with_pinocchio() {
    let oracle: Oracle = serde_json::from_str(include_str!("../fixtures/fk_oracle.json")).unwrap();
    assert_eq!(oracle.cases.len(), 20);
    for case in oracle.cases {
        let q = case.q_rad.map(Radians);
        let want = Pose { position_m: case.tcp_position_m, rotation: rotation(case.tcp_quat_wxyz) };
        let got = Kinematics::new(Tcp::LEROBOT_FINGERTIP).fk(&q);
        assert!(got.distance_m(&want) < POSITION_M, "{q:?}: {got:?}");
        assert!(got.angle_to(&want).get() < ROTATION, "{q:?}: {got:?}");
        let pinch = Kinematics::new(Tcp::PINCH).fk(&q);
        let want = Pose { position_m: case.pinch_position_m, ..pinch };
        assert!(pinch.distance_m(&want) < POSITION_M, "{q:?}: {pinch:?}");
        assert!(pinch.angle_to(&got).get() < 1e-12, "all tool frames have the same axes");
    }
}

/// A link's frame in its parent at joint angle zero, as in the URDF: xyz, rpy (here with exact quarter turns).
type Joint = ([f64; 3], [f64; 3]);

const T: f64 = std::f64::consts::FRAC_PI_2;
const URDF: [Joint; 6] = [
    ([0.038_835_3, 0.0, 0.0624], [2.0 * T, 0.0, -2.0 * T]),
    ([-0.030_399_2, -0.018_277_8, -0.0542], [-T, -T, 0.0]),
    ([-0.112_57, -0.028, 0.0], [0.0, 0.0, T]),
    ([-0.1349, 0.0052, 0.0], [0.0, 0.0, -T]),
    ([0.0, -0.0611, 0.0181], [T, 0.048_679_5, 2.0 * T]),
    ([0.0202, 0.0188, -0.0234], [T, 0.0, 0.0]),
];

fn turn(axis: usize, angle: f64) -> Pose {
    let (s, c) = angle.sin_cos();
    let rotation = match axis {
        0 => [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]],
        1 => [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]],
        _ => [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]],
    };
    Pose { position_m: [0.0; 3], rotation }
}

/// Frames of all six links by the definition of a URDF: translate, Rz(yaw) Ry(pitch) Rx(roll), then Rz(q).
fn chain(q: &[Radians; 5], jaw: Radians) -> [Pose; 6] {
    let angles = [q[0], q[1], q[2], q[3], q[4], jaw];
    let mut base_from = Pose::IDENTITY;
    let mut i = 0;
    URDF.map(|(position_m, [roll, pitch, yaw])| {
        let rpy = turn(2, yaw).compose(&turn(1, pitch)).compose(&turn(0, roll));
        base_from = base_from.compose(&Pose { position_m, ..rpy }).compose(&turn(2, angles[i].get()));
        i += 1;
        base_from
    })
}

/// A spread of joint angles over the limits without a random number: golden-ratio steps per joint.
fn spread(n: usize) -> [Radians; 5] {
    let mut k = 0.0;
    LIMITS.map(|l| {
        k += 1.0;
        let t = (n as f64 * (0.618_033_988_749_894_9_f64).powf(k) + 0.1 * k).fract();
        Radians(l.lower.0 + (l.upper.0 - l.lower.0) * t)
    })
}

#[test]
fn link_frames_are_those_of_the_urdf() {
    for n in 0..300 {
        let (q, jaw) = (spread(n), Radians(-0.19 + 0.006 * n as f64));
        let LinkPoses { shoulder, upper_arm, lower_arm, wrist, gripper, jaw: moving } =
            Kinematics::links(&q, jaw);
        let ours = [shoulder, upper_arm, lower_arm, wrist, gripper, moving];
        for (got, want) in ours.iter().zip(chain(&q, jaw)) {
            assert!(got.distance_m(&want) < 1e-12 && got.angle_to(&want).get() < 1e-12, "{got:?} {want:?}");
        }
    }
}

#[test]
fn the_closed_form_is_the_gripper_link_with_the_tool_centre_point() {
    let custom = Tcp::custom("knuckle", [0.01, 0.02, -0.03]).unwrap();
    for n in 0..300 {
        let q = spread(n);
        for tcp in [Tcp::LEROBOT_FINGERTIP, Tcp::PINCH, custom] {
            let want = Kinematics::links(&q, Radians(0.0)).gripper.compose(&tcp.gripper_from_tcp());
            let got = Kinematics::new(tcp).fk(&q);
            assert!(got.distance_m(&want) < 1e-12 && got.angle_to(&want).get() < 1e-12, "{got:?} {want:?}");
        }
    }
}

#[test]
fn the_two_usual_tool_centre_points_are_two_centimetres_apart() {
    let q = [Radians(0.0); 5];
    let [a, b] = [Tcp::LEROBOT_FINGERTIP, Tcp::PINCH].map(|tcp| Kinematics::new(tcp).fk(&q));
    assert!((a.distance_m(&b) - 0.0199).abs() < 1e-6);
}
