use std::f64::consts::{FRAC_PI_2, PI};

use proptest::prelude::*;

use super::geometry::{FOREARM_ANGLE, UPPER_ANGLE};
use super::*;
use crate::error::Error;

type Q = [Radians; 5];

const TCPS: [Tcp; 2] = [Tcp::LEROBOT_FINGERTIP, Tcp::PINCH];

/// SplitMix64: a seeded sequence that needs no crate.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn q(&mut self) -> Q {
        LIMITS.map(|l| Radians(l.lower.0 + (l.upper.0 - l.lower.0) * self.unit()))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[((self.unit() * from.len() as f64) as usize).min(from.len() - 1)]
    }
}

/// The angle of the elbow at which upper arm and forearm are in line.
const STRAIGHT: f64 = FOREARM_ANGLE - UPPER_ANGLE;

fn in_limits(q: &Q) -> bool {
    LIMITS.iter().zip(q).all(|(l, q)| l.excess(*q).0 == 0.0)
}

/// Position, pitch and roll: the smallest worst error over the solutions, each in its own unit.
fn check_pitch_roll(arm: &Kinematics, q: &Q) -> Result<(), String> {
    let want = arm.fk(q);
    let solutions = arm
        .ik(want.position_m, Kinematics::pitch(q), q[4])
        .map_err(|e| format!("position, pitch and roll of {q:?}: {e}"))?;
    for s in solutions.iter() {
        let got = arm.fk(&s.q);
        let honest = (got.distance_m(&want) - s.position_error_m).abs() < 1e-12;
        let exact = s.position_error_m <= 1e-9 && s.rotation_error.0 <= 1e-7;
        if !in_limits(&s.q) || !honest || (s.clamped.0 < 1e-6 && !exact) {
            return Err(format!("position, pitch and roll of {q:?}: {s:?}"));
        }
    }
    let found = solutions.iter().any(|s| s.position_error_m <= 1e-9 && s.rotation_error.0 <= 1e-7);
    found
        .then_some(())
        .ok_or_else(|| format!("position, pitch and roll of {q:?}: none exact in {solutions:?}"))
}

/// The pose once in closed form, and once from the chain of links, which spoils its last digits.
fn check_pose(arm: &Kinematics, q: &Q) -> Result<(), String> {
    let chain = Kinematics::links(q, Radians(0.0)).gripper.compose(&arm.tcp().gripper_from_tcp());
    check_target(arm, q, &arm.fk(q))?;
    check_target(arm, q, &chain)
}

fn check_target(arm: &Kinematics, q: &Q, want: &Pose) -> Result<(), String> {
    let solutions = arm.ik_pose(want).map_err(|e| format!("pose of {q:?}: {e}"))?;
    for s in solutions.iter() {
        let got = arm.fk(&s.q);
        let honest = (got.distance_m(want), got.angle_to(want)) == (s.position_error_m, s.rotation_error);
        let exact = s.position_error_m <= 1e-9 && s.rotation_error.0 <= 1e-7;
        if !in_limits(&s.q) || !honest || (s.clamped.0 < 1e-6 && !exact) {
            return Err(format!("pose of {q:?}: {s:?}"));
        }
    }
    let found = solutions.iter().any(|s| s.position_error_m <= 1e-9 && s.rotation_error.0 <= 1e-7);
    found.then_some(()).ok_or_else(|| format!("pose of {q:?}: none exact in {solutions:?}"))
}

fn check_both(q: &Q) {
    for arm in TCPS.map(Kinematics::new) {
        for outcome in [check_pitch_roll(&arm, q), check_pose(&arm, q)] {
            assert_eq!(outcome, Ok(()));
        }
    }
}

#[test]
fn both_routes_solve_all_of_ten_thousand_random_poses() {
    let mut random = Random(1);
    let (mut position, mut rotation): (f64, f64) = (0.0, 0.0);
    for _ in 0..10_000 {
        let q = random.q();
        check_both(&q);
        // Beyond what the first route is asked for: one of its solutions also has the orientation, and is q itself.
        let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
        let want = arm.fk(&q);
        let solutions = arm.ik(want.position_m, Kinematics::pitch(&q), q[4]).unwrap();
        let best = solutions.nearest(&q).unwrap();
        position = position.max(arm.fk(&best.q).distance_m(&want));
        rotation = rotation.max(arm.fk(&best.q).angle_to(&want).0);
    }
    assert!(position <= 1e-9 && rotation <= 1e-7, "{position:e} m, {rotation:e} rad");
}

#[test]
fn every_corner_of_the_joint_ranges_is_solved() {
    let values = |i: usize| {
        let (lo, hi) = (LIMITS[i].lower.0, LIMITS[i].upper.0);
        let special = if i == 2 { STRAIGHT } else { 0.3 };
        [lo, hi, 0.0, special, lo + 1e-9, hi - 1e-9]
    };
    for n in 0..6_usize.pow(5) {
        let q = [0, 1, 2, 3, 4].map(|i| Radians(values(i)[n / 6_usize.pow(i as u32) % 6]));
        check_both(&q);
    }
}

#[test]
fn a_straight_elbow_is_solved_whatever_the_other_joints_do() {
    let mut random = Random(2);
    for _ in 0..3000 {
        let mut q = random.q();
        q[2].0 = STRAIGHT + random.pick(&[0.0, 1e-15, 1e-12, -1e-9, 1e-8, -1e-7, 1e-5, 1e-3]);
        if random.unit() < 0.5 {
            q[1] = random.pick(&[LIMITS[1].lower, LIMITS[1].upper]);
        }
        if random.unit() < 0.5 {
            q[3] = random.pick(&[LIMITS[3].lower, LIMITS[3].upper]);
        }
        check_both(&q);
    }
}

#[test]
fn a_vertical_approach_is_solved() {
    let mut random = Random(3);
    let mut tried = 0;
    while tried < 3000 {
        let mut q = random.q();
        let target = random.pick(&[FRAC_PI_2, -FRAC_PI_2])
            + random.pick(&[0.0, 1e-16, 1e-12, -1e-10, 1e-9, -1e-8, 1e-6, 1e-4, -1e-2]);
        q[3].0 = target - q[1].0 - q[2].0;
        if in_limits(&q) {
            check_both(&q);
            tried += 1;
        }
    }
}

/// Bends the lift until `f` is zero: bisection, `None` when it does not change its sign over the joint's range.
fn solve_lift(q: &Q, f: impl Fn(&Q) -> f64) -> Option<Q> {
    let with = |lift: f64| [q[0], Radians(lift), q[2], q[3], q[4]];
    let (mut lo, mut hi) = (LIMITS[1].lower.0, LIMITS[1].upper.0);
    let sign = f(&with(lo)) > 0.0;
    if (f(&with(hi)) > 0.0) == sign {
        return None;
    }
    for _ in 0..80 {
        let mid = 0.5 * (lo + hi);
        if (f(&with(mid)) > 0.0) == sign { lo = mid } else { hi = mid }
    }
    Some(with(lo))
}

#[test]
fn tcp_and_wrist_over_the_pan_axis_are_solved() {
    let mut random = Random(4);
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let forward = |q: &Q, p: [f64; 3]| (p[0] - geometry::PAN_X_M) * q[0].0.cos() - p[1] * q[0].0.sin();
    let mut tried = [0; 3];
    while tried.iter().any(|n| *n < 500) {
        let mut q = random.q();
        let offset = random.pick(&[0.0, 1e-15, 1e-12, 1e-9, -1e-7, 1e-5]);
        let over = |q: &Q| forward(q, arm.fk(q).position_m) - offset;
        let wrist_over = |q: &Q| forward(q, Kinematics::links(q, Radians(0.0)).wrist.position_m) - offset;
        let case = random.pick(&[0, 1, 2]);
        let solved = match case {
            // The TCP beside the axis, as the pose that an earlier solver lost; sometimes right on it.
            0 => {
                if random.unit() < 0.3 {
                    q[4].0 = 0.026_8;
                }
                solve_lift(&q, over)
            }
            // The wrist over the axis, any approach.
            1 => solve_lift(&q, wrist_over),
            // The same with a vertical approach: pan and roll are then nearly one axis.
            _ => solve_lift(&q, |q: &Q| {
                let flex = Radians(-FRAC_PI_2 - q[1].0 - q[2].0);
                wrist_over(&[q[0], q[1], q[2], flex, q[4]])
            })
            .map(|q| [q[0], q[1], q[2], Radians(-FRAC_PI_2 - q[1].0 - q[2].0), q[4]]),
        };
        if let Some(q) = solved.filter(in_limits) {
            check_both(&q);
            tried[case] += 1;
        }
    }
}

#[test]
fn the_pose_that_an_earlier_solver_lost_is_solved_with_the_descriptions_rounding() {
    let q = [
        0.774_428_650_604_102_9,
        -1.687_551_549_981_708,
        0.168_915_420_807_285_4,
        0.460_085_586_395_301_3,
        0.813_362_504_288_307_3,
    ]
    .map(Radians);
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    check_both(&q);
    // What the URDF's five-digit angles do to this pose.
    let mut rounded = arm.fk(&q);
    rounded.position_m[0] += 1.6e-6;
    rounded.position_m[1] -= 1.7e-6;
    let solutions = arm.ik_pose(&rounded).unwrap();
    let best = solutions.nearest(&q).unwrap();
    assert!(best.position_error_m < 1e-5 && best.rotation_error.0 < 3e-5, "{best:?}");
    assert!(best.q.iter().zip(&q).all(|(a, b)| (a.0 - b.0).abs() < 1e-4), "{best:?}");
}

#[test]
fn all_four_branches_are_found_and_each_reaches_the_target() {
    let arm = Kinematics::new(Tcp::PINCH);
    let mut most = 0;
    let mut random = Random(5);
    for _ in 0..2000 {
        let q = random.q();
        let want = arm.fk(&q);
        let solutions = arm.ik(want.position_m, Kinematics::pitch(&q), q[4]).unwrap();
        most = most.max(solutions.len());
        let branches: Vec<_> = solutions.iter().map(|s| (s.facing, s.elbow)).collect();
        assert!(branches.windows(2).all(|w| w[0] != w[1]));
        assert_eq!(solutions.iter().filter(|s| s.q == solutions.first().q).count(), 1);
    }
    assert!(most >= 3, "at most {most} branches");
}

#[test]
fn elbow_up_is_the_higher_elbow() {
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let solutions = arm.ik([0.30, 0.05, 0.10], Radians(0.6), Radians(0.0)).unwrap();
    let height = |e| {
        let s = solutions.iter().find(|s| (s.facing, s.elbow) == (Facing::Front, e));
        s.map(|s| Kinematics::links(&s.q, Radians(0.0)).lower_arm.position_m[2])
    };
    assert!(height(Elbow::Up) > height(Elbow::Down), "{solutions:?}");
}

#[test]
fn a_roll_a_full_turn_away_is_the_same_roll() {
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let ask = |roll, pitch| arm.ik([0.25, 0.1, 0.05], Radians(pitch), Radians(roll)).unwrap().first().q;
    let (a, b) = (ask(1.0, 1.2), ask(1.0 - 2.0 * PI, 1.2 + 4.0 * PI));
    assert!(a.iter().zip(&b).all(|(a, b)| (a.0 - b.0).abs() < 1e-12), "{a:?} {b:?}");
}

#[test]
fn a_joint_slightly_outside_is_clamped_and_says_what_it_costs() {
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    for joint in 0..5 {
        let mut q = [0.2, -0.3, 0.4, 0.5, 0.6].map(Radians);
        q[joint].0 = LIMITS[joint].upper.0 + 1e-4;
        let want = arm.fk(&q);
        let by_pose = *arm.ik_pose(&want).unwrap().nearest(&q).unwrap();
        let by_angles = *arm.ik(want.position_m, Kinematics::pitch(&q), q[4]).unwrap().nearest(&q).unwrap();
        for s in [by_pose, by_angles] {
            assert!(in_limits(&s.q) && s.position_error_m < 1e-4 && s.rotation_error.0 < 3e-4, "{s:?}");
            let cost = s.position_error_m + s.rotation_error.0;
            assert!(cost > 1e-6, "joint {joint}: {s:?}");
        }
        assert!((by_pose.clamped.0 - 1e-4).abs() < 1e-6, "joint {joint}: {by_pose:?}");
        q[joint].0 = LIMITS[joint].upper.0 + 1e-2;
        let nearest = arm.ik_pose(&arm.fk(&q)).map(|s| *s.nearest(&q).unwrap());
        assert!(nearest.is_err() || nearest.is_ok_and(|s| (s.q[joint].0 - q[joint].0).abs() > 0.01));
    }
}

#[test]
fn unreachable_targets_say_why() {
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let why = |p, pitch, roll| match arm.ik(p, Radians(pitch), Radians(roll)) {
        Err(Error::Unreachable { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    assert!(matches!(why([0.6, 0.0, 0.1], 0.0, 0.0), Unreachable::TooFar { by_m } if by_m > 0.1));
    // Pinned where roll puts the TCP 7.9 mm out of the plane.
    assert!(
        matches!(why([0.0389, 0.0, 0.3], -FRAC_PI_2, FRAC_PI_2), Unreachable::TooNear { by_m } if by_m < 0.01)
    );
    assert!(matches!(
        why([0.25, 0.0, 0.05], 1.3, 3.0),
        Unreachable::JointLimit { joint: crate::JointId::WristRoll, by } if (by.0 - (3.0 - 2.841_21)).abs() < 1e-9
    ));
    assert!(matches!(why([0.25, 0.0, 0.10], FRAC_PI_2, 0.0), Unreachable::JointLimit { .. }));
    // A yaw that five joints do not have.
    let q = [0.0, 0.2, 0.1, 0.3, 0.0].map(Radians);
    let mut pose = arm.fk(&q);
    let (s, c) = 0.1_f64.sin_cos();
    let yaw = Pose { position_m: [0.0; 3], rotation: [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]] };
    pose.rotation = yaw.compose(&pose).rotation;
    let err = arm.ik_pose(&pose).unwrap_err();
    assert!(matches!(err, Error::Unreachable { why: Unreachable::OffPlane { .. }, .. }), "{err}");
    assert!(format!("{err}").contains("out of the plane of the arm"), "{err}");
}

#[test]
fn matrices_that_are_no_rotation_are_refused() {
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let mut pose = arm.fk(&[Radians(0.1); 5]);
    pose.rotation[0] = pose.rotation[0].map(|v| -v);
    assert!(matches!(arm.ik_pose(&pose), Err(Error::NotARotation { .. })));
    pose.rotation = [[0.0; 3]; 3];
    assert!(matches!(arm.ik_pose(&pose), Err(Error::NotARotation { .. })));
}

#[test]
fn quaternions_turn_as_the_matrix_does() {
    let mut random = Random(6);
    for _ in 0..500 {
        let pose = Kinematics::new(Tcp::PINCH).fk(&random.q());
        let [w, x, y, z] = pose.quat_wxyz();
        let back = [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ];
        assert!(w >= 0.0 && pose.angle_to(&Pose { rotation: back, ..pose }).0 < 1e-14);
    }
}

#[test]
fn the_jacobian_is_the_derivative_of_the_pose() {
    let mut random = Random(7);
    const STEP: f64 = 1e-5;
    for arm in TCPS.map(Kinematics::new) {
        for _ in 0..200 {
            let q = random.q();
            let rows = arm.jacobian(&q).rows();
            for joint in 0..5 {
                let moved = |by: f64| {
                    let mut q = q;
                    q[joint].0 += by;
                    arm.fk(&q)
                };
                let (a, b) = (moved(-STEP), moved(STEP));
                let turn = b.compose(&Pose { position_m: [0.0; 3], rotation: a.rotation }.inverse()).rotation;
                let half = 0.5 / (2.0 * STEP);
                let difference = [
                    (b.position_m[0] - a.position_m[0]) / (2.0 * STEP),
                    (b.position_m[1] - a.position_m[1]) / (2.0 * STEP),
                    (b.position_m[2] - a.position_m[2]) / (2.0 * STEP),
                    (turn[2][1] - turn[1][2]) * half,
                    (turn[0][2] - turn[2][0]) * half,
                    (turn[1][0] - turn[0][1]) * half,
                ];
                for (row, want) in rows.iter().zip(difference) {
                    assert!((row[joint] - want).abs() < 1e-6, "joint {joint}: {} and {want}", row[joint]);
                }
            }
        }
    }
}

fn any_q() -> impl Strategy<Value = Q> {
    prop::array::uniform5(0.0..=1.0_f64).prop_map(|t| {
        let mut i = 0;
        t.map(|t| {
            let l = LIMITS[i];
            i += 1;
            Radians((l.lower.0 + (l.upper.0 - l.lower.0) * t).min(l.upper.0))
        })
    })
}

proptest! {
    #[test]
    fn inverse_undoes_forward(q in any_q()) {
        for arm in TCPS.map(Kinematics::new) {
            prop_assert_eq!(check_pitch_roll(&arm, &q), Ok(()));
            prop_assert_eq!(check_pose(&arm, &q), Ok(()));
        }
    }

    #[test]
    fn the_same_question_gets_the_same_answer_to_the_last_bit(q in any_q()) {
        let arm = Kinematics::new(Tcp::PINCH);
        let pose = arm.fk(&q);
        prop_assert_eq!(arm.ik_pose(&pose).unwrap(), arm.ik_pose(&pose).unwrap());
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused(which in 0..14_usize, bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY])) {
        let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
        let mut pose = arm.fk(&[Radians(0.1); 5]);
        let (mut pitch, mut roll) = (Radians(0.3), Radians(0.1));
        match which {
            0..3 => pose.position_m[which] = bad,
            3 => pitch = Radians(bad),
            4 => roll = Radians(bad),
            _ => pose.rotation[(which - 5) / 3][(which - 5) % 3] = bad,
        }
        if which < 5 {
            let refused = matches!(arm.ik(pose.position_m, pitch, roll), Err(Error::NonFinite { .. }));
            prop_assert!(refused);
        }
        if which != 3 && which != 4 {
            let refused = matches!(arm.ik_pose(&pose), Err(Error::NonFinite { .. }));
            prop_assert!(refused);
        }
        let offset = Tcp::custom("bad", [0.0, bad, 0.0]);
        let refused = matches!(offset, Err(Error::NonFinite { .. }));
        prop_assert!(refused);
        let solutions = arm.ik_pose(&arm.fk(&[Radians(0.1); 5])).unwrap();
        prop_assert!(solutions.nearest(&[Radians(bad); 5]).is_err());
    }
}
