//! The simulated arm behind the `Robot` trait.

use std::sync::Arc;
use std::time::Duration;

use so101_hal::{Action, Clock, Degrees, JointVector, Robot, Timestamp, VirtualClock};
use so101_sim::{Error, LeftOf, Placement, PushFailure, PushTask, Scene, SimRobot, Start};

fn at_tick(tick: u64) -> Timestamp {
    Timestamp::from_start(Duration::from_nanos(tick * 1_000_000_000 / 30))
}

fn robot(clock: &VirtualClock) -> SimRobot {
    let mut robot =
        SimRobot::new(&Scene::push_table().without_cameras(), 30, Arc::new(clock.clone())).unwrap();
    let object = Some(Placement { x_m: 0.28, y_m: 0.02, ..Placement::default() });
    robot.reset(&Start { object, ..Start::default() }, Some(PushTask::left_of(LeftOf::Robot))).unwrap();
    robot
}

#[test]
fn time_passes_only_when_the_clock_does() {
    let clock = VirtualClock::new();
    let mut robot = robot(&clock);
    let goal = Action { joints: JointVector::<Degrees>::from_row([20.0, 0.0, 0.0, 0.0, 0.0, 0.0]) };
    robot.act(&goal).unwrap();
    let still = robot.observe().unwrap();
    assert_eq!(robot.observe().unwrap().joints, still.joints);
    assert_eq!(robot.world().steps_done(), 0);
    clock.sleep_until(at_tick(1));
    let moved = robot.observe().unwrap();
    assert_eq!(robot.world().steps_done(), 10);
    assert!(moved.joints.body[0].0 > 0.1 && moved.at == at_tick(1), "{moved:?}");
}

#[test]
fn a_skipped_observation_changes_nothing() {
    let run = |observe: bool| {
        let clock = VirtualClock::new();
        let mut robot = robot(&clock);
        for tick in 1..30 {
            let pan = tick as f64;
            robot
                .act(&Action { joints: JointVector::<Degrees>::from_row([pan, 0.0, 0.0, 0.0, 0.0, 0.0]) })
                .unwrap();
            clock.sleep_until(at_tick(tick));
            if observe {
                robot.observe().unwrap();
            }
        }
        robot.observe().unwrap().joints
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_hand_that_stays_away_is_judged_as_too_short() {
    let clock = VirtualClock::new();
    let mut robot = robot(&clock);
    clock.sleep_until(at_tick(60));
    let verdict = robot.judge().unwrap().unwrap();
    assert_eq!(verdict.failure, Some(PushFailure::TooShort));
    assert!(verdict.moved_m.abs() < 1e-4, "{verdict:?}");
}

#[test]
fn goals_that_are_no_numbers_reach_no_servo() {
    let clock = VirtualClock::new();
    let mut robot = robot(&clock);
    let nan = Action { joints: JointVector::<Degrees>::from_row([0.0, f64::NAN, 0.0, 0.0, 0.0, 0.0]) };
    let error = robot.act(&nan).unwrap_err();
    assert!(matches!(error, so101_hal::Error::NonFinite { .. }), "{error}");
}

#[test]
fn a_task_needs_an_object() {
    let mut robot = SimRobot::new(&Scene::default(), 30, Arc::new(VirtualClock::new())).unwrap();
    let error = robot.reset(&Start::default(), Some(PushTask::default())).unwrap_err();
    assert!(matches!(error, Error::Object { .. }));
    assert!(matches!(
        SimRobot::new(&Scene::default(), 0, Arc::new(VirtualClock::new())),
        Err(Error::Rate { .. })
    ));
}

#[test]
fn a_second_episode_is_the_first_again_wherever_the_clock_is() {
    let clock = VirtualClock::new();
    let mut robot = robot(&clock);
    let start = Start { object: Some(Placement { x_m: 0.25, ..Placement::default() }), ..Start::default() };
    let mut episode = || {
        robot.reset(&start, None).unwrap();
        let began = clock.now();
        robot
            .act(&Action { joints: JointVector::<Degrees>::from_row([30.0, 20.0, 10.0, 0.0, 0.0, 50.0]) })
            .unwrap();
        clock.sleep_until(began + Duration::from_millis(500));
        (robot.observe().unwrap().joints, robot.world().steps_done(), robot.judge().unwrap())
    };
    let first = episode();
    assert_eq!(episode(), first);
    assert_eq!((first.1, first.2), (150, None));
}
