use super::*;
use crate::emulator::{EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::{EmulatedBus, JointId, VirtualClock};
use alloc::sync::Arc;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_start(Duration::from_millis(ms))
}

fn servos() -> EmulatedServos {
    let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
    servos.store_calibration(&Calibration::model()).unwrap();
    servos
}

fn leader(servos: &EmulatedServos, options: LeaderOptions) -> Leader<EmulatedBus> {
    Leader::connect(servos.bus(), Calibration::model(), options).unwrap()
}

#[test]
fn connecting_makes_the_leader_limp_and_checks_that_it_is_the_calibrated_one() {
    let servos = servos();
    servos.set_register(JointId::ElbowFlex, &registers::TORQUE_ENABLE, 1).unwrap();
    leader(&servos, LeaderOptions::default());
    assert_eq!(servos.register(JointId::ElbowFlex, &registers::TORQUE_ENABLE).unwrap(), 0);
    servos.set_register(JointId::WristFlex, &registers::HOMING_OFFSET, 55).unwrap();
    let err = Leader::connect(servos.bus(), Calibration::model(), LeaderOptions::default()).unwrap_err();
    assert!(matches!(err, Error::HomingOffset { joint: JointId::WristFlex, servo: 55, .. }), "{err}");
}

#[test]
fn a_hand_on_the_leader_is_the_action_and_the_gripper_ends_at_100() {
    let servos = servos();
    let mut leader = leader(&servos, LeaderOptions::default());
    let pose = leader.read(at(0)).unwrap();
    leader.engage(&pose).unwrap();
    leader.action(at(0)).unwrap();
    servos.set_ticks(JointId::ShoulderPan, 2047.5 + 455.0);
    servos.set_ticks(JointId::Gripper, 3500.0);
    let action = leader.action(at(33)).unwrap().joints;
    assert!((action.body[0].0 - 40.0).abs() < 0.1, "{action:?}");
    assert_eq!(action.gripper.0, 100.0);
}

#[test]
fn a_leader_far_from_the_follower_refuses_with_joints_and_figures() {
    let servos = servos();
    servos.set_ticks(JointId::ShoulderLift, 2048.0 + 455.0);
    let mut leader = leader(&servos, LeaderOptions::default());
    let err = leader.engage(&JointVector::default()).unwrap_err().to_string();
    assert!(err.contains("shoulder_lift leader 40.0 follower 0.0 deg, at most 25 apart"), "{err}");
    assert!(matches!(leader.action(at(0)), Err(Error::NotEngaged { .. })));
}

#[test]
fn what_is_left_of_the_difference_is_taken_up_slowly() {
    let servos = servos();
    let mut leader = leader(&servos, LeaderOptions::default());
    let mut follower = leader.read(at(0)).unwrap();
    follower.body[1].0 += 12.0;
    leader.engage(&follower).unwrap();
    let first = leader.action(at(0)).unwrap().joints;
    assert_eq!(first, follower);
    let second = leader.action(at(50)).unwrap().joints;
    assert!((first.body[1].0 - second.body[1].0 - 2.0).abs() < 1e-9);
}

#[test]
fn the_offset_of_the_pair_is_applied_before_the_gap_is_judged() {
    let servos = servos();
    servos.set_ticks(JointId::WristRoll, 2047.5 + 1024.0);
    let mut follower = JointVector::<Degrees>::from_row([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let mut leader = leader(&servos, LeaderOptions::default());
    assert!(matches!(leader.engage(&follower), Err(Error::PoseGap { .. })));
    let pair = leader.measure_pair(&follower, at(0)).unwrap();
    assert!((pair.wrist_roll.0 + 90.0).abs() < 0.2, "{pair:?}");
    leader.engage(&follower).unwrap();
    follower = leader.action(at(0)).unwrap().joints;
    assert_eq!(follower.body[4], Degrees(0.0));
}

#[test]
fn a_joint_that_does_not_answer_keeps_its_place_until_it_is_too_old() {
    let servos = servos();
    let mut leader = leader(&servos, LeaderOptions::default());
    let pose = leader.read(at(0)).unwrap();
    leader.engage(&pose).unwrap();
    leader.action(at(1000)).unwrap();
    servos.set_ticks(JointId::ShoulderPan, 2200.0);
    servos.inject(FaultRule::always(Fault::Drop).of(ServoId::new(1).unwrap()));
    for ms in [1033, 1200] {
        let action = leader.action(at(ms)).unwrap().joints;
        assert_eq!(action.body[0], pose.body[0], "{ms}");
    }
    let err = leader.action(at(1201)).unwrap_err();
    assert!(matches!(&err, Error::LeaderStale { ids, age_ms: 201, limit_ms: 200 } if *ids == [1]), "{err}");
    servos.clear_faults();
    leader.action(at(1300)).unwrap();
}
