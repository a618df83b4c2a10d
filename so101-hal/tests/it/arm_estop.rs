//! The emergency stop: from any thread, latched, and never undone by a goal that was under way.

use so101_hal::emulator::{Fault, FaultRule};
use so101_hal::protocol::ServoId;
use so101_hal::{Arm, Calibration, Clock as _, EmergencyStop, Error};

use crate::arm_support::Rig;

#[test]
fn one_frame_from_another_thread_switches_all_motors_off_and_latches() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let stop = arm.emergency_stop();
    let before = rig.servos.transactions();
    std::thread::spawn(move || stop.stop()).join().unwrap().unwrap();
    assert_eq!(rig.torques(), [0; 6]);
    assert_eq!(rig.servos.transactions(), before + 1);

    let here = arm.read_joints().unwrap();
    for _ in 0..3 {
        assert!(matches!(arm.send(&here, rig.clock.now()), Err(Error::EmergencyStopped)));
    }
    assert_eq!(rig.torques(), [0; 6]);
    assert!(arm.emergency_stop().stopped());
}

#[test]
fn only_the_operator_opens_the_latch_and_only_on_a_relaxed_arm() {
    let rig = Rig::new();
    let arm = rig.armed(rig.unlimited());
    let stop = arm.emergency_stop();
    stop.stop().unwrap();
    let holding = arm.hold();
    let refused = holding.arm().unwrap_err();
    assert!(matches!(refused.error, Error::EmergencyStopped));
    let mut refused = *refused.arm;
    assert!(matches!(refused.resume(), Err(Error::EmergencyStopped)));
    let relaxed = refused.relax().unwrap();
    let refused = relaxed.hold().unwrap_err();
    assert!(matches!(refused.error, Error::EmergencyStopped));
    assert_eq!(rig.torques(), [0; 6]);
    let mut relaxed = *refused.arm;
    relaxed.release_stop().unwrap();
    assert!(!stop.stopped());
    let mut arm = relaxed.hold().unwrap().arm().unwrap();
    let here = arm.read_joints().unwrap();
    arm.send(&here, rig.clock.now()).unwrap();
    assert_eq!(rig.torques(), [1; 6]);
    // And it works a second time.
    stop.stop().unwrap();
    assert!(arm.send(&here, rig.clock.now()).is_err());
    assert_eq!(rig.torques(), [0; 6]);
}

#[test]
fn a_goal_that_was_under_way_does_not_switch_the_torque_on_again() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let here = arm.read_joints().unwrap();
    let stop = arm.emergency_stop();
    // Pressed before the goals leave, its frame overtaken by them: the servos take a goal as torque on.
    let servos = rig.servos.clone();
    arm.bus_mut().seen.lock().unwrap().after_goals = Some(Box::new(move || {
        stop.stop().unwrap();
        use so101_hal::ServoBus as _;
        servos.bus().write_register(ServoId::ARM[0], &so101_hal::registers::GOAL_POSITION, 2100).unwrap();
    }));
    assert!(matches!(arm.send(&here, rig.clock.now()), Err(Error::EmergencyStopped)));
    assert_eq!(rig.torques(), [0; 6]);
}

#[test]
fn the_arm_repeats_the_frame_until_it_has_read_the_torque_as_off() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    rig.servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[3]));
    arm.emergency_stop().stop().unwrap();
    let broadcasts = |arm: &mut Arm<_, _>| {
        let seen: &mut crate::arm_support::Spy = arm.bus_mut();
        seen.seen.lock().unwrap().writes.iter().filter(|(id, ..)| *id == 254).count()
    };
    for n in 1..=3 {
        arm.update().unwrap();
        assert_eq!(broadcasts(&mut arm), n);
    }
    rig.servos.clear_faults();
    for _ in 0..3 {
        arm.update().unwrap();
        assert_eq!(broadcasts(&mut arm), 4);
    }
}

#[test]
fn a_port_that_cannot_be_shared_says_so_and_the_arm_stops_at_its_next_call() {
    let rig = Rig::new();
    let mut spy = rig.spy();
    spy.has_writer = false;
    let found = Arm::connect(spy, Calibration::model(), rig.unlimited()).unwrap();
    let mut arm = found.into_armed().unwrap();
    let err = arm.emergency_stop().stop().unwrap_err();
    assert!(matches!(err, Error::EmergencyStopDeferred), "{err}");
    assert_eq!(rig.torques(), [1; 6]);
    arm.update().unwrap();
    assert_eq!(rig.torques(), [0; 6]);
    let here = arm.read_joints().unwrap();
    assert!(matches!(arm.send(&here, rig.clock.now()), Err(Error::EmergencyStopped)));
}

#[test]
fn a_stopped_arm_is_relaxed_when_dropped_even_if_it_was_to_hold() {
    let rig = Rig::new();
    let mut spy = rig.spy();
    spy.has_writer = false;
    let options = rig.unlimited().with_on_drop(so101_hal::arm::OnDrop::Hold);
    let arm = Arm::connect(spy, Calibration::model(), options).unwrap().into_armed().unwrap();
    assert!(arm.emergency_stop().stop().is_err());
    drop(arm);
    assert_eq!(rig.torques(), [0; 6]);
}

#[test]
fn a_stop_ends_a_ramp() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.options()).hold();
    let mut to = arm.read_joints().unwrap();
    to.body[0].0 = 90.0;
    let stop = arm.emergency_stop();
    arm.bus_mut().seen.lock().unwrap().after_goals = Some(Box::new(move || stop.stop().unwrap()));
    let err = arm.ramp_to(&so101_hal::arm::Ramp::new(to, 30.0)).unwrap_err();
    assert!(matches!(err, Error::EmergencyStopped), "{err}");
    assert_eq!(rig.torques(), [0; 6]);
}

#[test]
fn handles_go_from_thread_to_thread() {
    fn is_shared<T: Send + Sync + Clone + 'static>() {}
    is_shared::<EmergencyStop>();
    let rig = Rig::new();
    let stop = rig.armed(rig.unlimited()).emergency_stop();
    // The arm is gone; the line is not.
    let all: Vec<_> = (0..4).map(|_| stop.clone()).map(|s| std::thread::spawn(move || s.stop())).collect();
    assert!(all.into_iter().all(|t| t.join().unwrap().is_ok()));
}
