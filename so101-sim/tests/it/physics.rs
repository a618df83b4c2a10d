//! The model in MuJoCo against the kinematics, and how it behaves.

use so101_hal::kinematics::{Kinematics, LIMITS, Tcp};
use so101_hal::{Degrees, JointVector, Percent, Radians};
use so101_sim::{Error, HandPoint, ObjectState, Placement, Scene, Start, StepPlan, World};

fn plan() -> StepPlan {
    StepPlan::for_rate(30).unwrap()
}

fn bare() -> World {
    World::new(&Scene::default(), plan()).unwrap()
}

/// The push scene with one more element.
fn push_text(element: &str) -> String {
    let text = Scene::push_table().without_cameras().mjcf(plan()).unwrap();
    text.replacen("<worldbody>", &format!("{element}<worldbody>"), 1)
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// SplitMix64, numbers in 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[test]
fn both_points_of_the_hand_agree_with_the_closed_form_on_1000_random_configurations() {
    let mut world = bare();
    let mut random = Random(7);
    let mut worst: f64 = 0.0;
    for _ in 0..1000 {
        let q = LIMITS.map(|l| Radians(l.lower.0 + random.next() * (l.upper.0 - l.lower.0)));
        let joints = JointVector { body: q.map(Degrees::from), gripper: Percent(100.0 * random.next()) };
        world.reset(&Start { joints, object: None }).unwrap();
        for (point, tcp) in [(HandPoint::Fingertip, Tcp::LEROBOT_FINGERTIP), (HandPoint::Pinch, Tcp::PINCH)] {
            let expected = Kinematics::new(tcp).fk(&q).position_m;
            worst = worst.max(distance(world.hand_m(point), expected));
        }
    }
    assert!(worst < 1e-6, "{worst} m");
}

#[test]
fn gravity_pulls_the_hand_down_by_less_than_a_millimetre_at_zero_pose() {
    let mut world = bare();
    world.reset(&Start::default()).unwrap();
    let before = world.hand_m(HandPoint::Fingertip);
    world.steps(600).unwrap();
    let after = world.hand_m(HandPoint::Fingertip);
    let sag = distance(before, after);
    // The servo is a spring: none at all would mean that gravity is off.
    assert!((1e-4..1e-3).contains(&sag) && after[2] < before[2], "{} mm", 1e3 * sag);
}

#[test]
fn an_object_stays_where_it_was_put_while_the_hand_is_away() {
    let scene = Scene::push_table().without_cameras();
    let mut world = World::new(&scene, plan()).unwrap();
    for yaw in [0.0, 0.7, std::f64::consts::FRAC_PI_2] {
        let object = Some(Placement { x_m: 0.28, y_m: -0.06, yaw: Radians(yaw) });
        world.reset(&Start { object, ..Start::default() }).unwrap();
        let start = world.object().unwrap();
        let mut fastest: f64 = 0.0;
        // It falls for one step before the contacts carry it.
        let mut watch =
            |at_s: f64, o: &ObjectState| fastest = fastest.max(if at_s > 0.1 { o.speed_m_s } else { 0.0 });
        world.steps_watched(3000, &mut watch).unwrap();
        let end = world.object().unwrap();
        assert!(distance(start.position_m, end.position_m) < 3e-4, "{start:?} {end:?}");
        assert!((end.yaw().0 - yaw).abs() < 1e-4 && end.tilt().0 < 1e-3, "{end:?}");
        assert!(fastest < 1e-3, "{fastest} m/s");
    }
}

#[test]
fn a_servo_reaches_its_goal_within_a_second_and_holds_it() {
    let mut world = bare();
    let goal = JointVector::<Degrees>::from_row([20.0, -30.0, 40.0, 50.0, -60.0, 70.0]);
    world.reset(&Start::default()).unwrap();
    assert_eq!(world.set_goal(&goal).unwrap(), goal);
    world.steps(300).unwrap();
    for (got, want) in world.joints().to_row().into_iter().zip(goal.to_row()) {
        assert!((got - want).abs() < 0.2, "{:?}", world.joints());
    }
}

#[test]
fn goals_are_limited_and_what_was_set_is_told() {
    let mut world = bare();
    let far = JointVector::<Degrees>::from_row([200.0, 0.0, 0.0, 0.0, 0.0, 150.0]);
    let set = world.set_goal(&far).unwrap().to_row();
    assert!((set[0] - 110.0).abs() < 0.01 && (set[5] - 100.0).abs() < 1e-9, "{set:?}");
    let nan = JointVector::<Degrees>::from_row([f64::NAN, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert!(matches!(world.set_goal(&nan), Err(Error::NonFinite { .. })));
}

#[test]
fn closed_jaws_reach_zero_percent_and_do_not_press_on_each_other() {
    let scene = Scene::push_table().without_cameras();
    let mut world = World::new(&scene, plan()).unwrap();
    let closed = JointVector { gripper: Percent(0.0), ..JointVector::default() };
    let object = Some(Placement { x_m: 0.25, ..Placement::default() });
    world.reset(&Start { joints: closed, object }).unwrap();
    world.steps(300).unwrap();
    assert!(world.joints().gripper.0.abs() < 0.1, "{:?}", world.joints());
}

#[test]
fn the_same_goals_give_the_same_bits() {
    let run = || {
        let scene = Scene::push_table().without_cameras();
        let mut world = World::new(&scene, plan()).unwrap();
        let object = Some(Placement { x_m: 0.22, y_m: 0.02, yaw: Radians(0.3) });
        world.reset(&Start { object, ..Start::default() }).unwrap();
        for k in 0..60 {
            let s = f64::from(k);
            world.set_goal(&JointVector::<Degrees>::from_row([s, s, 0.5 * s, s, 0.0, 50.0])).unwrap();
            world.steps(10).unwrap();
        }
        (world.joints().to_row().map(f64::to_bits), world.object().unwrap().position_m.map(f64::to_bits))
    };
    assert_eq!(run(), run());
}

#[test]
fn a_reset_world_repeats_itself() {
    let scene = Scene::push_table().without_cameras();
    let mut world = World::new(&scene, plan()).unwrap();
    let start = Start { object: Some(Placement { x_m: 0.25, ..Placement::default() }), ..Start::default() };
    let mut run = || {
        world.reset(&start).unwrap();
        world.set_goal(&JointVector::<Degrees>::from_row([30.0, 60.0, 20.0, 10.0, 5.0, 40.0])).unwrap();
        world.steps(200).unwrap();
        (world.joints(), world.object())
    };
    let first = run();
    assert_eq!(run(), first);
}

#[test]
fn bad_models_and_bad_starts_are_errors_that_say_why() {
    let text = |r: Result<World, Error>| r.unwrap_err().to_string();
    let broken = text(World::from_mjcf("<mujoco><worldbody><geom/></worldbody></mujoco>", plan(), 0.0));
    assert!(broken.contains("mjcf refused by mujoco"), "{broken}");
    let empty = text(World::from_mjcf("", plan(), 0.0));
    assert!(empty.contains("mjcf refused"), "{empty}");
    let nameless = text(World::from_mjcf("<mujoco/>", plan(), 0.0));
    assert!(nameless.contains("no joint named \"shoulder_pan\""), "{nameless}");
    let huge = "<mujoco><visual><global offwidth=\"100000\"/></visual></mujoco>";
    assert!(text(World::from_mjcf(huge, plan(), 0.0)).contains("offscreen buffer of 100000"));
    assert!(text(World::from_mjcf("<mujoco/>\0", plan(), 0.0)).contains("NUL"));
    // MuJoCo would end the process at the first step with the second of these.
    for (memory, says) in [("1K", "out of memory"), ("20K", "arena of 20480 bytes"), ("1048575", "or more")] {
        let cramped = push_text(&format!("<size memory=\"{memory}\"/>"));
        let refused = text(World::from_mjcf(&cramped, plan(), 0.015));
        assert!(refused.contains(says), "{refused}");
    }

    let mut world = bare();
    let object = Some(Placement::default());
    assert!(matches!(world.reset(&Start { object, ..Start::default() }), Err(Error::Object { .. })));
    let mut world = World::new(&Scene::push_table().without_cameras(), plan()).unwrap();
    assert!(matches!(world.reset(&Start::default()), Err(Error::Object { .. })));
    let object = Some(Placement { x_m: f64::NAN, ..Placement::default() });
    assert!(matches!(world.reset(&Start { object, ..Start::default() }), Err(Error::NonFinite { .. })));
}

#[test]
fn a_world_that_diverges_says_so_until_it_is_reset() {
    // A mass and gains that no step size can hold.
    let text = Scene::default().mjcf(plan()).unwrap().replace("kp=\"998.22\"", "kp=\"3e3\"");
    let text = text.replace("integrator=\"implicitfast\"", "integrator=\"Euler\"");
    let text = text.replace("armature=\"0.028\"", "armature=\"1e-9\"").replace("-2.94 2.94", "-1e15 1e15");
    let mut world = World::from_mjcf(&text, plan(), 0.0).unwrap();
    world.reset(&Start::default()).unwrap();
    world.set_goal(&JointVector::<Degrees>::from_row([90.0, 90.0, 90.0, 90.0, 90.0, 90.0])).unwrap();
    let Err(Error::Diverged { at_s, .. }) = world.steps(3000) else { panic!("it holds") };
    // Not MuJoCo's clock, which is back at zero.
    assert!(at_s > 0.0 && at_s.to_bits() == world.time_s().to_bits(), "{at_s} s");
    assert!(matches!(world.steps(1), Err(Error::Diverged { .. })));
    world.reset(&Start::default()).unwrap();
}

#[test]
fn the_smallest_arena_that_is_accepted_carries_the_push_scene() {
    let mut world = World::from_mjcf(&push_text("<size memory=\"1M\"/>"), plan(), 0.015).unwrap();
    let down = JointVector::<Degrees>::from_row([0.0, 100.0, -90.0, 90.0, 0.0, 0.0]);
    let object = Some(Placement { x_m: 0.25, ..Placement::default() });
    world.reset(&Start { object, ..Start::default() }).unwrap();
    world.set_goal(&down).unwrap();
    world.steps(600).unwrap();
}
