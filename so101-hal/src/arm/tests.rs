use alloc::string::ToString as _;
use alloc::sync::Arc;
use alloc::vec;
use core::time::Duration;

use super::*;
use crate::clock::{Clock as _, VirtualClock};
use crate::emulator::{EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::joint::JointId;
use crate::protocol::Block;
use crate::registers::{GOAL_POSITION, HOMING_OFFSET, MODEL_NUMBER, PRESENT_VOLTAGE, TORQUE_ENABLE};

fn rig() -> (VirtualClock, EmulatedServos) {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    servos.store_calibration(&Calibration::model()).unwrap();
    (clock, servos)
}

fn torques(servos: &EmulatedServos) -> [i32; 6] {
    JOINTS.map(|j| servos.register(j, &TORQUE_ENABLE).unwrap())
}

fn goals(servos: &EmulatedServos) -> [Ticks; 6] {
    JOINTS.map(|j| Ticks(servos.register(j, &GOAL_POSITION).unwrap()))
}

fn at(body: f64, gripper: f64) -> JointVector<Degrees> {
    JointVector { body: [Degrees(body); 5], gripper: Percent(gripper) }
}

#[test]
fn connecting_holds_the_arm_where_it_is_with_torque_on() {
    let (clock, servos) = rig();
    for joint in JOINTS {
        servos.set_ticks(joint, 2500.0);
        servos.set_register(joint, &GOAL_POSITION, 1000).unwrap();
    }
    let mut arm = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap();
    assert_eq!(torques(&servos), [1; 6]);
    clock.sleep_until(clock.now() + Duration::from_secs(1));
    assert_eq!(servos.true_ticks(), [2500.0; 6]);
    let joints = arm.read_joints().unwrap();
    assert_eq!(joints, Calibration::model().to_degrees(&[Ticks(2500); 6]).unwrap());
}

/// Keeps the first register and the rows' bytes of every sync write, in order.
struct Recorder<B> {
    bus: B,
    written: Vec<(u8, Vec<Vec<u8>>)>,
}

impl<B: ServoBus> ServoBus for Recorder<B> {
    fn ping(&mut self, id: ServoId) -> Result<Alarms> {
        self.bus.ping(id)
    }
    fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms> {
        self.bus.read(id, address, out)
    }
    fn write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.bus.write(id, address, data)
    }
    fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.bus.reg_write(id, address, data)
    }
    fn action(&mut self) -> Result<()> {
        self.bus.action()
    }
    fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()> {
        self.bus.sync_read(block, ids, replies)
    }
    fn sync_write(&mut self, address: u8, rows: &[SyncRow<'_>]) -> Result<()> {
        self.written.push((address, rows.iter().map(|row| row.data.to_vec()).collect()));
        self.bus.sync_write(address, rows)
    }
    fn broadcast_write(&mut self, address: u8, data: &[u8]) -> Result<()> {
        self.bus.broadcast_write(address, data)
    }
}

#[test]
fn the_present_positions_are_the_goals_before_torque_goes_on() {
    let (_, servos) = rig();
    for (joint, ticks) in JOINTS.into_iter().zip([0x901, 0x902, 0x903, 0x904, 0x905, 0x906]) {
        servos.set_ticks(joint, f64::from(ticks));
    }
    let mut bus = Recorder { bus: servos.bus(), written: Vec::new() };
    drop(FollowerArm::connect(&mut bus, Calibration::model()).unwrap());
    let goals: Vec<Vec<u8>> = (1..=6).map(|low| vec![low, 9]).collect();
    let (on, off) = (vec![vec![1]; 6], vec![vec![0]; 6]);
    assert_eq!(bus.written, [(42, goals), (40, on), (40, off)]);
}

#[test]
fn connecting_as_found_writes_nothing() {
    let (_, servos) = rig();
    let options = ArmOptions::default().with_torque_at_start(TorqueAtStart::AsFound);
    let arm = FollowerArm::connect_with(servos.bus(), Calibration::model(), options).unwrap();
    assert_eq!(torques(&servos), [0; 6]);
    assert_eq!(servos.transactions(), 6 + 12);
    let report = &arm.reports()[3];
    assert_eq!((report.joint, report.id.get(), report.model), (JointId::WristFlex, 4, 777));
    assert_eq!((report.firmware, report.torque), ((3, 10), Torque::Off));
    assert_eq!((report.telemetry.voltage_dv, report.telemetry.temperature_c), (74, 30));
    assert_eq!(report.telemetry.position, Ticks(2048));
    for (report, c) in arm.reports().iter().zip(Calibration::model().joints()) {
        assert!(report.matches(c));
    }
    drop(arm);
    assert_eq!(servos.transactions(), 18);
}

#[test]
fn an_arm_that_is_not_whole_is_refused_and_the_servos_are_named() {
    let (_, servos) = rig();
    for id in [3, 5] {
        servos.inject(FaultRule::always(Fault::Drop).of(ServoId::new(id).unwrap()));
    }
    let err = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap_err();
    assert!(matches!(&err, Error::ServosSilent { ids } if ids == &[3, 5]), "{err}");

    let (_, servos) = rig();
    servos.set_register(JointId::ElbowFlex, &MODEL_NUMBER, 2825).unwrap();
    let err = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap_err();
    assert_eq!(err.to_string(), "servo 3 (elbow_flex) has model number 2825, expected 777 (STS3215)");
    assert_eq!(torques(&servos), [0; 6]);
}

#[test]
fn another_homing_offset_than_the_calibrations_is_refused_unless_accepted() {
    let (_, servos) = rig();
    servos.set_register(JointId::WristRoll, &HOMING_OFFSET, -89).unwrap();
    let err = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap_err();
    assert!(matches!(err, Error::HomingOffset { id: 5, servo: -89, calibration: 0, .. }), "{err}");
    let options = ArmOptions::default().with_offset_mismatch(OffsetMismatch::Accept);
    assert!(FollowerArm::connect_with(servos.bus(), Calibration::model(), options).is_ok());
}

#[test]
fn a_goal_that_is_no_number_is_refused_with_nothing_sent() {
    let (_, servos) = rig();
    let mut arm = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap();
    let before = servos.transactions();
    for i in 0..6 {
        for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut row = [0.0; 6];
            row[i] = v;
            let err = arm.send(&JointVector::<Degrees>::from_row(row)).unwrap_err();
            assert!(
                matches!(err, Error::NonFinite { what, .. } if what == JOINTS[i].feature_name()),
                "{err}"
            );
        }
    }
    assert_eq!(servos.transactions(), before);
}

#[test]
fn what_send_returns_is_what_the_servos_were_told() {
    let (_, servos) = rig();
    let calibration = Calibration::model();
    for (rounding, ticks) in [(Rounding::Truncate, 2161), (Rounding::Nearest, 2162)] {
        let options = ArmOptions::default().with_rounding(rounding);
        let mut arm = FollowerArm::connect_with(servos.bus(), calibration, options).unwrap();
        let sent = arm.send(&at(10.05, 33.3)).unwrap();
        assert_eq!(sent, calibration.to_degrees(&goals(&servos)).unwrap());
        // The middle of the wrist roll is at 2047.5, and 10.05 degrees are 114.32 ticks.
        assert_eq!(goals(&servos)[4], Ticks(ticks), "{rounding:?}");
    }
}

#[test]
fn goals_are_clamped_to_the_calibrated_range() {
    let (clock, servos) = rig();
    let calibration = Calibration::model();
    let mut arm = FollowerArm::connect(servos.bus(), calibration).unwrap();
    for (far, end) in [(1e30, "max"), (-1e30, "min")] {
        let sent = arm.send(&at(far, far)).unwrap();
        let want = calibration.joints().map(|c| Ticks(if end == "max" { c.range_max } else { c.range_min }));
        assert_eq!(goals(&servos), want);
        assert_eq!(sent, calibration.to_degrees(&want).unwrap());
        clock.sleep_until(clock.now() + Duration::from_secs(3));
        assert_eq!(servos.true_ticks(), want.map(|t| f64::from(t.0)));
    }
}

#[test]
fn the_largest_relative_target_is_counted_from_the_present_position() {
    let (_, servos) = rig();
    let options = ArmOptions::default()
        .with_max_relative_target(Degrees(5.0), Percent(2.0))
        .with_rounding(Rounding::Nearest);
    let mut arm = FollowerArm::connect_with(servos.bus(), Calibration::model(), options).unwrap();
    let here = arm.read_joints().unwrap();
    let sent = arm.send(&at(-60.0, 100.0)).unwrap();
    for (sent, here) in sent.body.iter().zip(here.body) {
        assert!((here.0 - sent.0 - 5.0).abs() < 0.05, "{here} to {sent}");
    }
    assert!((sent.gripper.0 - here.gripper.0 - 2.0).abs() < 0.05);
}

#[test]
fn a_silent_joint_leaves_the_others_fresh_and_is_counted() {
    let (_, servos) = rig();
    let mut arm = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap();
    servos.set_register(JointId::Gripper, &PRESENT_VOLTAGE, 35).unwrap();
    servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[2]));
    for n in 1..=2 {
        let err = arm.read_joints().unwrap_err();
        assert!(matches!(err, Error::NoReply { id: 3, .. }), "{err}");
        assert_eq!(arm.states().map(|s| s.missed), [0, 0, n, 0, 0, 0]);
    }
    assert_eq!(arm.states()[5].alarms, Alarms::VOLTAGE);
    assert_eq!(arm.states()[5].telemetry.voltage_dv, 35);
    servos.clear_faults();
    arm.read_joints().unwrap();
    assert_eq!(arm.states()[2].missed, 0);
}

#[test]
fn torque_off_is_proved_or_the_servos_are_named() {
    let (_, servos) = rig();
    let mut arm = FollowerArm::connect(servos.bus(), Calibration::model()).unwrap();
    servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[4]));
    let err = arm.torque_off().unwrap_err();
    assert!(matches!(&err, Error::Torque { ids, wanted: "off", tries: 3 } if ids == &[5]), "{err}");
    servos.clear_faults();
    arm.torque_off().unwrap();
    assert_eq!(torques(&servos), [0; 6]);
}

#[test]
fn dropping_the_arm_relaxes_it_unless_told_to_keep_the_torque() {
    let (_, servos) = rig();
    for (option, left) in [(TorqueAtDrop::Off, [0; 6]), (TorqueAtDrop::Keep, [1; 6])] {
        let options = ArmOptions::default().with_torque_at_drop(option);
        drop(FollowerArm::connect_with(servos.bus(), Calibration::model(), options).unwrap());
        assert_eq!(torques(&servos), left);
    }
}

#[test]
fn an_arm_that_cannot_be_energised_is_left_relaxed() {
    let (_, servos) = rig();
    let mut bus = servos.bus();
    // Servo 6 answers pings and single reads while connecting, but its torque cannot be read back.
    let calibration = Calibration::model();
    let options = ArmOptions::default().with_torque_at_start(TorqueAtStart::AsFound);
    let mut arm = FollowerArm::connect_with(&mut bus, calibration, options).unwrap();
    arm.update().unwrap();
    servos.inject(FaultRule::always(Fault::BadChecksum).of(ServoId::ARM[5]));
    assert!(arm.torque_on().is_err());
    servos.clear_faults();
    drop(arm);
    assert_eq!(torques(&servos), [0; 6]);
}
