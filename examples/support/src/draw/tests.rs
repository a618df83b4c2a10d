use super::*;
use crate::expert::{LeftOf, Phase, PushConfig, PushLeft};
use crate::plan::{Jitter, Plan};
use crate::scene::jaw_pads;
use so101_hal::kinematics::{GripperMap, Kinematics};
use so101_hal::{Degrees, FrameSize, JointVector, Radians};
use std::time::Duration;

fn links(joints: &JointVector<Degrees>) -> LinkPoses {
    Kinematics::links(&joints.body.map(Radians::from), GripperMap::model().jaw(joints.gripper).unwrap())
}

fn cameras(plan: &Plan, width: u32) -> [DrawnCamera; 2] {
    let size = FrameSize::new(width, width * 3 / 4);
    [0, 1].map(|i| {
        let mut camera = plan.cameras()[i].clone();
        camera.spec.size = size;
        DrawnCamera::new(&camera)
    })
}

/// Middle and number of the pixels that `is` takes.
fn blob(frame: &Frame, is: fn(&[u8]) -> bool) -> ([f64; 2], usize) {
    let width = frame.size().width as usize;
    let pixels = frame.rgb().chunks_exact(3).enumerate().filter(|(_, p)| is(p)).map(|(i, _)| i);
    let (mut sum, mut count) = ([0.0, 0.0], 0);
    for i in pixels {
        sum[0] += (i % width) as f64 + 0.5;
        sum[1] += (i / width) as f64 + 0.5;
        count += 1;
    }
    (sum.map(|s| s / f64::from(count.max(1))), count as usize)
}

fn yellow(p: &[u8]) -> bool {
    let [r, g, b] = [p[0], p[1], p[2]].map(f64::from);
    r > 80.0 && g > 0.75 * r && b < 0.35 * r
}

fn orange(p: &[u8]) -> bool {
    let [r, g, b] = [p[0], p[1], p[2]].map(f64::from);
    r > 60.0 && g < 0.6 * r && b < 0.35 * r
}

#[test]
fn at_home_the_object_is_seen_whole_by_the_main_camera_in_every_cell() {
    let plan = Plan::push_left();
    let [mut main, _] = cameras(&plan, 160);
    let home = links(&PushLeft::home(&plan.home(), LeftOf::Robot).unwrap());
    let away = Kinematics::links(&[-1.9, -1.7, 1.6, 0.0, 0.0].map(Radians), Radians(0.0));
    for (i, seed) in (0..8).zip(1..) {
        let setup = plan.episode(seed, i, Jitter::On).unwrap();
        let scene = Scene::new(setup.object, setup.pose);
        let (_, seen) = blob(&main.draw(&home, &scene, Timestamp::ZERO).unwrap(), yellow);
        let (_, alone) = blob(&main.draw(&away, &scene, Timestamp::ZERO).unwrap(), yellow);
        assert!(seen > 40 && seen == alone, "{i}: {seen} of {alone} pixels");
    }
}

#[test]
fn the_arm_is_in_the_main_picture_and_hardly_cut_at_home() {
    let plan = Plan::push_left();
    let [mut main, _] = cameras(&plan, 160);
    let home = links(&PushLeft::home(&plan.home(), LeftOf::Robot).unwrap());
    let setup = plan.episode(0, 0, Jitter::Off).unwrap();
    let frame = main.draw(&home, &Scene::new(setup.object, setup.pose), Timestamp::ZERO).unwrap();
    let (middle, count) = blob(&frame, orange);
    assert!(count > 400 && (middle[0] - 80.0).abs() < 8.0, "{middle:?} {count}");
    let border =
        |row: usize| frame.rgb()[3 * 160 * row..][..3 * 160].chunks_exact(3).filter(|p| orange(p)).count();
    assert_eq!((border(0), border(119)), (0, 0));
}

#[test]
fn the_object_goes_to_the_right_of_a_picture_that_faces_the_robot_when_it_goes_to_the_robots_left() {
    let plan = Plan::push_left();
    let [mut main, _] = cameras(&plan, 160);
    let home = links(&PushLeft::home(&plan.home(), LeftOf::Robot).unwrap());
    let setup = plan.episode(0, 0, Jitter::Off).unwrap();
    let mut at = |dy_m: f64| {
        let mut pose = setup.pose;
        pose.y_m += dy_m;
        let frame = main.draw(&home, &Scene::new(setup.object.clone(), pose), Timestamp::ZERO).unwrap();
        blob(&frame, yellow).0
    };
    let [before, after] = [at(0.0), at(0.1)];
    assert!(after[0] - before[0] > 15.0 && (after[1] - before[1]).abs() < 1.5, "{before:?} {after:?}");
}

#[test]
fn the_gripper_camera_sees_jaws_at_its_lower_edge_and_the_object_while_it_is_pushed() {
    let plan = Plan::push_left();
    let [_, mut gripper] = cameras(&plan, 160);
    for i in 0..8 {
        let setup = plan.episode(3, i, Jitter::On).unwrap();
        let mut scene = Scene::new(setup.object.clone(), setup.pose);
        let mut expert = PushLeft::new(&plan.home(), &setup, PushConfig::default()).unwrap();
        let mut at = Duration::ZERO;
        loop {
            let goal = expert.goal(at).unwrap();
            let links = links(&goal.joints);
            scene.push(&jaw_pads(&links));
            if at.as_millis().is_multiple_of(400) {
                let frame = gripper.draw(&links, &scene, Timestamp::ZERO).unwrap();
                let (jaws, jaw_pixels) = blob(&frame, orange);
                assert!(jaw_pixels > 100 && jaws[1] > 80.0, "{i} {at:?} {jaws:?} {jaw_pixels}");
                if matches!(goal.phase, Phase::Descend | Phase::Push) {
                    let (_, object_pixels) = blob(&frame, yellow);
                    assert!(object_pixels > 100, "{i} {at:?} {object_pixels}");
                }
            }
            if goal.phase == Phase::Done {
                break;
            }
            at += Duration::from_millis(10);
        }
    }
}

#[test]
fn sequence_numbers_count_and_buffers_that_came_back_are_used_again() {
    let plan = Plan::push_left();
    let [_, mut camera] = cameras(&plan, 32);
    let posture = Kinematics::links(&[Radians(0.0); 5], Radians(0.0));
    let setup = plan.episode(0, 0, Jitter::Off).unwrap();
    let scene = Scene::new(setup.object, setup.pose);
    let mut places = std::collections::BTreeSet::new();
    let mut first: Option<Frame> = None;
    for i in 0..40 {
        let frame = camera.draw(&posture, &scene, Timestamp::ZERO).unwrap();
        assert_eq!(frame.sequence, i);
        places.insert(frame.rgb().as_ptr() as usize);
        let reference = first.get_or_insert_with(|| frame.clone());
        assert_eq!(reference.rgb(), frame.rgb(), "a used buffer leaves no traces");
    }
    assert!(places.len() <= BUFFERS + 2, "{}", places.len());
}

#[test]
fn a_hull_has_the_corners_only() {
    let mut points = [[0.0, 0.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0], [0.0, 1.0], [0.5, 0.0], [0.0, 0.0]];
    let mut hull = Vec::new();
    convex_hull(&mut points, &mut hull);
    assert_eq!(hull, [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]);
    convex_hull(&mut [], &mut hull);
    assert!(hull.is_empty());
}
