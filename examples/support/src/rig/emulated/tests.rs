use super::*;
use crate::expert::{Phase, PushConfig};
use crate::plan::{Home, Jitter, PlannedCamera};
use proptest::prelude::*;
use so101_hal::FrameSize;

const HZ: u32 = 30;

fn period(i: u32) -> Duration {
    Duration::from_secs(i.into()) / HZ
}

/// What an episode looked like at each control period.
struct Seen {
    pose: ObjectPose,
    jaw_distance_m: f64,
    phase: Phase,
}

fn run(rig: &mut EmulatedRig, plan: &Plan, setup: &EpisodeSetup, left_of: LeftOf) -> Vec<Seen> {
    let config = PushConfig { left_of, ..PushConfig::default() };
    let mut expert = PushLeft::new(&plan.home(), setup, config).unwrap();
    rig.reset(setup).unwrap();
    let (clock, start) = (rig.clock(), rig.clock().now());
    let mut seen = Vec::new();
    for i in 0..=(expert.duration().as_secs_f64() * f64::from(HZ)).ceil() as u32 {
        rig.observe().unwrap();
        let goal = expert.goal(period(i)).unwrap();
        rig.act(&Action { joints: goal.joints }).unwrap();
        let (pose, jaw_distance_m) = (rig.object_pose(), rig.jaw_distance_m().unwrap());
        seen.push(Seen { pose, jaw_distance_m, phase: goal.phase });
        clock.sleep_until(start + period(i + 1));
    }
    seen
}

fn blind(left_of: LeftOf) -> (Plan, EmulatedRig) {
    let plan = Plan::push_left();
    let rig = EmulatedRig::new(&plan, left_of, Pictures::Off).unwrap();
    (plan, rig)
}

#[test]
fn every_cell_ends_80_mm_to_the_left_and_moves_only_under_the_jaw() {
    let (plan, mut rig) = blind(LeftOf::Robot);
    let marks = (0..8).map(|i| plan.episode(0, i, Jitter::Off).unwrap());
    let drawn = (1..=3).flat_map(|seed| (0..plan.episodes()).map(move |i| (seed, i)));
    let drawn = drawn.filter(|(seed, i)| (seed + u64::from(*i)).is_multiple_of(2));
    for setup in marks.chain(drawn.map(|(seed, i)| plan.episode(seed, i, Jitter::On).unwrap())) {
        let seen = run(&mut rig, &plan, &setup, LeftOf::Robot);
        let end = seen.last().unwrap();
        let (dx_m, dy_m) = (end.pose.x_m - setup.pose.x_m, end.pose.y_m - setup.pose.y_m);
        assert!((0.08..0.12).contains(&dy_m) && dx_m.abs() <= 0.04, "{dx_m} {dy_m} {setup:?}");
        for pair in seen.windows(2).filter(|pair| pair[0].pose != pair[1].pose) {
            assert!(pair[1].jaw_distance_m < 0.001, "{} {setup:?}", pair[1].jaw_distance_m);
            assert!(matches!(pair[1].phase, Phase::Push | Phase::Release), "{:?} {setup:?}", pair[1].phase);
        }
    }
}

#[test]
fn left_of_a_camera_ends_on_the_other_side() {
    let (plan, mut rig) = blind(LeftOf::Camera);
    for i in [1, 6] {
        let setup = plan.episode(4, i, Jitter::On).unwrap();
        let end = run(&mut rig, &plan, &setup, LeftOf::Camera).pop().unwrap();
        let (dx_m, dy_m) = (end.pose.x_m - setup.pose.x_m, end.pose.y_m - setup.pose.y_m);
        assert!((-0.12..=-0.08).contains(&dy_m) && dx_m.abs() <= 0.04, "{dx_m} {dy_m}");
    }
}

#[test]
fn a_sweep_that_nobody_watches_pushes_all_the_same() {
    let (plan, mut rig) = blind(LeftOf::Robot);
    let setup = plan.episode(0, 0, Jitter::Off).unwrap();
    let mut expert = PushLeft::new(&plan.home(), &setup, PushConfig::default()).unwrap();
    let mut last_of = |phase: Phase| {
        let goals = (0..8 * HZ).map(|i| expert.goal(period(i)).unwrap());
        goals.filter(|g| g.phase == phase).last().unwrap().joints
    };
    let [behind, pushed] = [Phase::Descend, Phase::Push].map(&mut last_of);
    rig.reset(&setup).unwrap();
    let clock = rig.clock();
    for joints in [behind, pushed] {
        rig.act(&Action { joints }).unwrap();
        // Far longer than a control period: from one look to the next the jaw passes the whole object.
        clock.sleep_until(clock.now() + Duration::from_secs(2));
    }
    rig.observe().unwrap();
    assert!(rig.object_pose().y_m - setup.pose.y_m > 0.08, "{:?}", rig.object_pose());
}

#[test]
fn with_the_hand_parked_away_the_object_stays() {
    let (plan, mut rig) = blind(LeftOf::Robot);
    let setup = plan.episode(2, 5, Jitter::On).unwrap();
    rig.reset(&setup).unwrap();
    let clock = rig.clock();
    let start = clock.now();
    for i in 1..=60 {
        let joints = rig.observe().unwrap().joints;
        rig.act(&Action { joints }).unwrap();
        clock.sleep_until(start + period(i));
        assert_eq!(rig.object_pose(), setup.pose);
    }
}

#[test]
fn a_reset_brings_the_arm_home_exactly_and_starts_a_whole_second() {
    let (plan, mut rig) = blind(LeftOf::Robot);
    let setup = plan.episode(0, 0, Jitter::On).unwrap();
    rig.reset(&setup).unwrap();
    let first = rig.observe().unwrap().joints;
    run(&mut rig, &plan, &setup, LeftOf::Robot);
    let before = rig.clock().now();
    rig.reset(&setup).unwrap();
    assert_eq!(rig.observe().unwrap().joints, first);
    let (now, whole) = (rig.clock().now().since_start(), before.since_start().as_secs() + 1);
    assert_eq!(now, Duration::from_secs(whole));
    let home: Home = plan.home();
    let [x_m, y_m, z_m] = rig.tcp_pose().position_m;
    let d_m = [x_m - home.fingertip_m[0], y_m - home.fingertip_m[1], z_m - home.fingertip_m[2]];
    assert!(d_m.iter().all(|d| d.abs() < 0.001), "{d_m:?}");
    assert_eq!(rig.object_pose(), setup.pose);
    rig.clock().sleep_until(before + Duration::from_secs(1));
    assert_eq!(rig.observe().unwrap().joints, first, "home is the goal as well");
}

/// The plan's cameras, small.
fn small(plan: &Plan) -> Vec<PlannedCamera> {
    let size = FrameSize::new(64, 48);
    plan.cameras()
        .iter()
        .map(|c| PlannedCamera { spec: CameraSpec { size, ..c.spec.clone() }, ..c.clone() })
        .collect()
}

#[test]
fn equal_episodes_give_equal_bytes_and_other_seeds_other_ones() {
    let plan = Plan::push_left();
    let record = |seed: u64| {
        let mut rig = EmulatedRig::new(&plan, LeftOf::Robot, Pictures::Off).unwrap();
        rig.cameras =
            small(&plan).iter().map(|c| (Arc::from(c.spec.name.as_str()), DrawnCamera::new(c))).collect();
        let setup = plan.episode(seed, 1, Jitter::On).unwrap();
        rig.reset(&setup).unwrap();
        let mut expert = PushLeft::new(&plan.home(), &setup, PushConfig::default()).unwrap();
        let clock = rig.clock();
        let start = clock.now();
        (0..20)
            .map(|i| {
                let seen = rig.observe().unwrap();
                rig.act(&Action { joints: expert.goal(period(6 * i)).unwrap().joints }).unwrap();
                clock.sleep_until(start + period(6 * (i + 1)));
                seen
            })
            .collect::<Vec<Observation>>()
    };
    let first = record(1);
    assert_eq!(first, record(1));
    let other = record(2);
    assert_ne!(first.last().unwrap().joints, other.last().unwrap().joints);
    assert_ne!(first[0].frames, other[0].frames);
}

#[test]
fn a_goal_that_is_no_number_is_refused_and_changes_nothing() {
    let (_, mut rig) = blind(LeftOf::Robot);
    let mut joints = rig.observe().unwrap().joints;
    joints.body[2] = Degrees(f64::NAN);
    assert!(matches!(rig.act(&Action { joints }), Err(so101_hal::Error::NonFinite { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_the_arm_does_an_object_that_moves_is_at_the_jaw(
        goals in prop::collection::vec((-40.0..40.0_f64, -30.0..60.0_f64, -30.0..40.0_f64, 20.0..95.0_f64), 3..6),
    ) {
        let (plan, mut rig) = blind(LeftOf::Robot);
        rig.reset(&plan.episode(0, 0, Jitter::On).unwrap()).unwrap();
        let clock = rig.clock();
        for (pan, lift, elbow, flex) in goals {
            let body = [pan, lift, elbow, flex, -87.0].map(Degrees);
            rig.act(&Action { joints: JointVector { body, gripper: Percent(10.0) } }).unwrap();
            // The hand swings at up to 2 m/s here: 4 ms after a touch the jaw is less than 15 mm away.
            for _ in 0..150 {
                let before = rig.object_pose();
                clock.sleep_until(clock.now() + Duration::from_millis(4));
                rig.observe().unwrap();
                prop_assert!(rig.object_pose() == before || rig.jaw_distance_m().unwrap() < 0.015);
            }
        }
    }
}
