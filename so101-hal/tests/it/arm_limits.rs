//! What a goal passes on its way to the servos.

use std::time::Duration;

use so101_hal::arm::{Clip, MotionLimits};
use so101_hal::convert::safe_goal;
use so101_hal::registers::GOAL_POSITION;
use so101_hal::{
    Calibration, Clock as _, Degrees, Error, JOINTS, JointVector, Percent, Rounding, Ticks, Timestamp,
};

use crate::arm_support::Rig;

fn at(body: f64, gripper: f64) -> JointVector<Degrees> {
    JointVector { body: [Degrees(body); 5], gripper: Percent(gripper) }
}

#[test]
fn a_goal_that_is_no_number_is_refused_with_nothing_sent() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let before = rig.servos.transactions();
    for i in 0..6 {
        for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut row = [0.0; 6];
            row[i] = v;
            let err = arm.send(&JointVector::<Degrees>::from_row(row), rig.clock.now()).unwrap_err();
            assert!(
                matches!(err, Error::NonFinite { what, .. } if what == JOINTS[i].feature_name()),
                "{err}"
            );
        }
    }
    assert_eq!(rig.servos.transactions(), before);
}

#[test]
fn what_send_returns_is_what_the_servos_were_told() {
    let rig = Rig::new();
    let calibration = Calibration::model();
    for (rounding, ticks) in [(Rounding::Truncate, 2161), (Rounding::Nearest, 2162)] {
        let mut arm = rig.armed(rig.unlimited().with_rounding(rounding));
        let sent = arm.send(&at(10.05, 33.3), rig.clock.now()).unwrap();
        let goals = rig.register(&GOAL_POSITION);
        assert_eq!(sent.ticks.map(|t| t.0), goals);
        assert_eq!(sent.joints, calibration.to_degrees(&goals.map(Ticks)).unwrap());
        assert!(!sent.is_clipped());
        // The middle of the wrist roll is at 2047.5, and 10.05 degrees are 114.32 ticks.
        assert_eq!(goals[4], ticks, "{rounding:?}");
    }
}

#[test]
fn goals_are_clamped_to_the_calibrated_range_and_the_joints_are_named() {
    let rig = Rig::new();
    let calibration = Calibration::model();
    for margin in [0, 20] {
        let limits = MotionLimits::unlimited().with_range_margin(Ticks(margin));
        let mut arm = rig.armed(rig.options().with_limits(limits));
        for (far, is_high) in [(1e30, true), (-1e30, false)] {
            let sent = arm.send(&at(far, far), rig.clock.now()).unwrap();
            let want = calibration
                .joints()
                .map(|c| Ticks(if is_high { c.range_max - margin } else { c.range_min + margin }));
            assert_eq!(rig.register(&GOAL_POSITION).map(Ticks), want);
            assert_eq!(sent.joints, calibration.to_degrees(&want).unwrap());
            assert_eq!(sent.clipped, [Clip::RANGE; 6]);
            rig.pass_ms(3000);
            assert_eq!(rig.servos.true_ticks(), want.map(|t| f64::from(t.0)));
        }
        let mut one = at(0.0, 50.0);
        one.body[2].0 = 140.0;
        let sent = arm.send(&one, rig.clock.now()).unwrap();
        let clipped: Vec<u8> = sent.clipped.iter().map(|c| c.bits()).collect();
        assert_eq!(clipped, [0, 0, Clip::RANGE.bits(), 0, 0, 0]);
    }
}

#[test]
fn the_servos_own_limits_count_too() {
    let rig = Rig::new();
    rig.servos.set_register(JOINTS[0], &so101_hal::registers::MAX_POSITION_LIMIT, 2500).unwrap();
    let mut arm = rig.armed(rig.unlimited());
    let sent = arm.send(&at(90.0, 50.0), rig.clock.now()).unwrap();
    assert_eq!((sent.ticks[0], sent.clipped[0]), (Ticks(2500), Clip::RANGE));
}

#[test]
fn the_largest_relative_target_is_lerobots_to_the_last_bit() {
    let max_step = JointVector { body: [Degrees(5.0); 5], gripper: Percent(2.0) };
    for goal in [at(-60.0, 100.0), at(3.0, 1.0), at(0.1, 0.0), at(170.0, 50.0)] {
        let rig = Rig::new();
        let options = rig.unlimited().with_max_relative_target(Degrees(5.0), Percent(2.0));
        let mut arm = rig.armed(options);
        let here = arm.read_joints().unwrap();
        let want = safe_goal(&goal, &here, &max_step).unwrap();
        let want = Calibration::model().to_ticks(&want, Rounding::Truncate).unwrap();
        let sent = arm.send(&goal, rig.clock.now()).unwrap();
        assert_eq!(sent.ticks, want);
        for ((clip, goal), (here, max)) in
            sent.clipped.iter().zip(goal.to_row()).zip(here.to_row().into_iter().zip(max_step.to_row()))
        {
            assert_eq!(clip.contains(Clip::RELATIVE), (goal - here).abs() > max);
        }
    }
}

#[test]
fn the_relative_target_counts_from_where_the_joint_is_now() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited().with_max_relative_target(Degrees(5.0), Percent(2.0)));
    arm.read_joints().unwrap();
    rig.servos.set_ticks(JOINTS[1], 2300.0);
    // The reading is older than 20 ms when the goal comes.
    rig.pass_ms(21);
    rig.servos.set_ticks(JOINTS[1], 2300.0);
    let sent = arm.send(&at(-90.0, 0.0), rig.clock.now()).unwrap();
    assert!((sent.ticks[1].0 - (2300 - 57)).abs() <= 1, "{:?}", sent.ticks[1]);
}

#[test]
fn a_goal_older_than_its_life_is_refused_and_so_is_one_of_another_clock() {
    let rig = Rig::new();
    let limits = MotionLimits::unlimited().with_goal_ttl(Duration::from_millis(250));
    let mut arm = rig.armed(rig.options().with_limits(limits));
    let goal = arm.read_joints().unwrap();
    let issued = rig.clock.now();
    rig.pass_ms(250);
    arm.send(&goal, issued).unwrap();
    rig.pass_ms(1);
    arm.update().unwrap();
    let before = rig.servos.transactions();
    let err = arm.send(&goal, issued).unwrap_err();
    assert_eq!(err.to_string(), "the goal is 251 ms old, goals live 250 ms: send goals when they are made");
    let ahead = rig.clock.now() + Duration::from_secs(60);
    assert!(matches!(arm.send(&goal, ahead), Err(Error::GoalFromFuture { .. })));
    assert_eq!(rig.servos.transactions(), before);
}

#[test]
fn a_far_goal_is_walked_to_at_the_limits_of_speed_and_acceleration_by_the_measured_time() {
    let rig = Rig::new();
    let limits = MotionLimits::unlimited().with_speed(1000.0, 10_000.0);
    let mut arm = rig.armed(rig.options().with_limits(limits));
    let start = arm.read_joints().unwrap();
    let goal = JointVector { body: start.body.map(|d| Degrees(d.0 + 40.0)), gripper: start.gripper };
    let (mut told, mut speed) = (rig.register(&GOAL_POSITION)[0], 0.0);
    let mut sends = 0;
    let mut last = rig.clock.now();
    loop {
        // Uneven periods, as a loaded machine has them.
        rig.pass_ms(if sends % 3 == 0 { 5 } else { 17 });
        let now = rig.clock.now();
        let dt_s = now.since(last).as_secs_f64();
        last = now;
        let sent = arm.send(&goal, now).unwrap();
        let step = f64::from(sent.ticks[0].0 - told);
        // A whole number of steps: half a step of rounding on either side.
        assert!(step <= 1000.0 * dt_s + 1.0 && step >= 0.0, "{step} in {dt_s}");
        assert!(step / dt_s <= speed + 10_000.0 * dt_s + 2.0 / dt_s, "{step} in {dt_s} after {speed}");
        told = sent.ticks[0].0;
        speed = step / dt_s;
        sends += 1;
        if !sent.is_clipped() {
            break;
        }
        assert!(sent.clipped[..5].iter().all(|c| c.contains(Clip::SPEED) || c.contains(Clip::ACCELERATION)));
        assert_eq!(sent.clipped[5], Clip::NONE);
    }
    // 455 ticks at 1000 a second.
    let took = last.since_start().as_secs_f64();
    assert!((0.45..0.62).contains(&took), "{took}");
}

#[test]
fn after_a_pause_a_goal_starts_from_rest_and_one_step_is_no_longer_than_a_tenth_of_a_second() {
    let rig = Rig::new();
    let limits = MotionLimits::unlimited().with_speed(1000.0, f64::INFINITY);
    let mut arm = rig.armed(rig.options().with_limits(limits));
    rig.pass_ms(5000);
    let here = rig.register(&GOAL_POSITION)[0];
    let sent = arm.send(&at(90.0, 50.0), rig.clock.now()).unwrap();
    assert_eq!(sent.ticks[0].0 - here, 100);
}

#[test]
fn slow_walks_do_not_stick_between_two_steps() {
    let rig = Rig::new();
    // A third of a step each millisecond.
    let limits = MotionLimits::unlimited().with_speed(333.0, f64::INFINITY);
    let mut arm = rig.armed(rig.options().with_limits(limits));
    let here = rig.register(&GOAL_POSITION)[0];
    for _ in 0..90 {
        rig.pass_ms(1);
        arm.send(&at(90.0, 50.0), rig.clock.now()).unwrap();
    }
    let walked = rig.register(&GOAL_POSITION)[0] - here;
    assert!((29..=31).contains(&walked), "{walked}");
}

#[test]
fn limits_that_make_no_sense_are_refused_before_anything_is_asked() {
    let rig = Rig::new();
    for (speed, acceleration) in [(-1.0, 1.0), (1.0, -1.0), (f64::NAN, 1.0)] {
        let limits = MotionLimits::default().with_speed(speed, acceleration);
        let options = rig.options().with_limits(limits);
        assert!(so101_hal::Arm::connect(rig.spy(), Calibration::model(), options).is_err());
    }
    let options = rig.options().with_max_relative_target(Degrees(-1.0), Percent(1.0));
    assert!(so101_hal::Arm::connect(rig.spy(), Calibration::model(), options).is_err());
    assert_eq!(rig.servos.transactions(), 0);
    assert_eq!(Timestamp::ZERO, rig.clock.now());
}
