//! Pictures.

use std::sync::Arc;

use so101_hal::{Clock, Degrees, Frame, FrameSize, JointVector, Observation, Robot, VirtualClock};
use so101_sim::{Error, Placement, Scene, SimRobot, Start};

/// A pose with the hand up and behind the object.
const AWAY: [f64; 6] = [0.0, -60.0, 50.0, 60.0, 0.0, 30.0];

/// A robot with both cameras.
pub(crate) fn push_robot() -> Result<SimRobot, Error> {
    SimRobot::new(&Scene::push_table(), 30, Arc::new(VirtualClock::new()))
}

fn seen(x_m: f64, y_m: f64) -> Observation {
    let clock = VirtualClock::new();
    let mut robot = SimRobot::new(&Scene::push_table(), 30, Arc::new(clock.clone())).unwrap();
    let object = Some(Placement { x_m, y_m, ..Placement::default() });
    robot.reset(&Start { joints: JointVector::<Degrees>::from_row(AWAY), object }, None).unwrap();
    robot.observe().unwrap()
}

fn yellow(pixel: &[u8]) -> bool {
    let &[r, g, b] = pixel.first_chunk().unwrap();
    r > 90 && g > 80 && b < 60 && r >= g
}

/// Middle of the yellow pixels (column, row) and their number.
fn blob(frame: &Frame) -> (f64, f64, usize) {
    let width = frame.size().width as usize;
    let (mut x, mut y, mut n) = (0.0, 0.0, 0);
    for (i, _) in frame.rgb().chunks_exact(3).enumerate().filter(|(_, p)| yellow(p)) {
        (x, y, n) = (x + (i % width) as f64, y + (i / width) as f64, n + 1);
    }
    (x / n as f64, y / n as f64, n)
}

/// Where the main camera sees a point: pinhole with square pixels.
fn main_pixel(p: [f64; 3]) -> (f64, f64) {
    let (f, focal) = ((0.5_f64.hypot(0.4)), 240.0 / 22.5_f64.to_radians().tan());
    let (fx, fz) = (-0.5 / f, -0.4 / f);
    let d = [p[0] - 0.75, p[1], p[2] - 0.45];
    let depth = fx * d[0] + fz * d[2];
    let up = -fz * -d[0] - fx * d[2];
    (320.0 + focal * d[1] / depth, 240.0 - focal * up / depth)
}

#[test]
fn the_object_is_where_the_projection_says() {
    for (x, y) in [(0.22, -0.06), (0.28, 0.02), (0.25, 0.10)] {
        let seen = seen(x, y);
        let (col, row, n) = blob(&seen.frames[0].frame);
        let (u, v) = main_pixel([x, y, 0.015]);
        assert!(n > 400, "{n} yellow pixels");
        // The blob's middle is that of the visible faces, some pixels off the projected middle of the box.
        assert!(
            (col - u).abs() < 6.0 && (row - v).abs() < 10.0,
            "seen at {col:.1},{row:.1}, expected {u:.1},{v:.1}"
        );
    }
}

#[test]
fn pictures_have_their_cameras_sizes_names_and_times() {
    let seen = seen(0.25, 0.0);
    let got: Vec<_> = seen.frames.iter().map(|f| (&*f.camera, f.frame.size(), f.frame.sequence)).collect();
    assert_eq!(got, [("main", FrameSize::new(640, 480), 0), ("gripper", FrameSize::new(320, 240), 0)]);
    assert!(seen.frames.iter().all(|f| f.frame.captured == seen.at));
    // Both pictures show something: many colours, and the object in both.
    for frame in &seen.frames {
        let (.., n) = blob(&frame.frame);
        assert!(n > 100, "{} sees {n} yellow pixels", frame.camera);
    }
}

#[test]
fn two_robots_see_the_same_bytes() {
    let [a, b] = [seen(0.25, 0.0), seen(0.25, 0.0)];
    assert!(a == b);
}

#[test]
fn a_robot_can_move_to_another_thread() {
    let clock = VirtualClock::new();
    let mut robot = SimRobot::new(&Scene::push_table(), 30, Arc::new(clock.clone())).unwrap();
    let object = Some(Placement { x_m: 0.25, ..Placement::default() });
    robot.reset(&Start { object, ..Start::default() }, None).unwrap();
    let here = robot.observe().unwrap();
    let there = std::thread::spawn(move || robot.observe().unwrap()).join().unwrap();
    assert!(here.frames[0].frame.rgb() == there.frames[0].frame.rgb());
    assert_eq!(there.frames[0].frame.sequence, 1);
    assert_eq!(there.at, clock.now());
}

#[test]
fn a_picture_larger_than_the_buffer_is_an_error_not_an_abort() {
    let mut scene = Scene::push_table();
    scene.cameras[0].spec.size = FrameSize::new(5000, 480);
    let error = SimRobot::new(&scene, 30, Arc::new(VirtualClock::new())).unwrap_err();
    assert!(matches!(error, Error::CameraSize { .. }), "{error}");
}
