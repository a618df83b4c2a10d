use alloc::string::ToString as _;
use alloc::sync::Arc;
use alloc::vec;
use core::time::Duration;

use super::*;
use crate::bus::SyncReplies;
use crate::clock::{Clock as _, VirtualClock};
use crate::emulator::{EmulatedBus, EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::joint::{JOINTS, JointId};
use crate::protocol::{Block, ServoId, SyncRow};
use crate::registers::{GOAL_POSITION, HOMING_OFFSET, MODEL_NUMBER, PRESENT_VOLTAGE, TORQUE_ENABLE};
use crate::units::Ticks;

struct Rig {
    clock: VirtualClock,
    servos: EmulatedServos,
}

impl Rig {
    fn new() -> Self {
        let clock = VirtualClock::new();
        let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
        servos.store_calibration(&Calibration::model()).unwrap();
        Self { clock, servos }
    }

    fn options(&self) -> ArmOptions {
        ArmOptions::new(Arc::new(self.clock.clone())).with_limits(MotionLimits::unlimited())
    }

    fn found(&self) -> FoundArm<EmulatedBus> {
        Arm::connect(self.servos.bus(), Calibration::model(), self.options()).unwrap()
    }

    fn relaxed(&self) -> Arm<EmulatedBus, Relaxed> {
        let FoundArm::Relaxed(arm) = self.found() else { panic!("the servos are on") };
        arm
    }

    fn armed(&self) -> Arm<EmulatedBus, Armed> {
        self.found().into_armed().unwrap()
    }

    fn register(&self, register: &crate::registers::Register) -> [i32; 6] {
        JOINTS.map(|j| self.servos.register(j, register).unwrap())
    }

    fn torques(&self) -> [i32; 6] {
        self.register(&TORQUE_ENABLE)
    }

    fn pass(&self, time: Duration) {
        self.clock.sleep_until(self.clock.now() + time);
    }
}

/// Keeps the first register and the bytes of every write, in order.
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
        self.written.push((address, vec![data.to_vec()]));
        self.bus.write(id, address, data)
    }
    fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.written.push((address, vec![data.to_vec()]));
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
        self.written.push((address, vec![data.to_vec()]));
        self.bus.broadcast_write(address, data)
    }
}

#[test]
fn connecting_to_a_limp_arm_writes_nothing_and_neither_does_dropping_it() {
    let rig = Rig::new();
    let mut bus = Recorder { bus: rig.servos.bus(), written: Vec::new() };
    let found = Arm::connect(&mut bus, Calibration::model(), rig.options()).unwrap();
    let report = &found.reports()[3];
    assert_eq!((report.joint, report.id.get(), report.model), (JointId::WristFlex, 4, 777));
    assert_eq!((report.firmware, report.torque), ((3, 10), Torque::Off));
    assert_eq!((report.telemetry.voltage_dv, report.telemetry.temperature_c), (74, 30));
    assert_eq!(report.telemetry.position, Ticks(2048));
    for (report, c) in found.reports().iter().zip(Calibration::model().joints()) {
        assert!(report.matches(c));
    }
    assert!(matches!(found, FoundArm::Relaxed(_)));
    drop(found);
    assert!(bus.written.is_empty(), "{:?}", bus.written);
    assert_eq!(rig.servos.transactions(), 6 + 12);
}

#[test]
fn an_arm_found_holding_goes_on_holding_until_it_is_steered() {
    let rig = Rig::new();
    rig.armed().finish(&Ending::Hold).unwrap();
    assert_eq!(rig.torques(), [1; 6]);

    let found = rig.found();
    assert!(matches!(found, FoundArm::Holding(_)));
    drop(found);
    assert_eq!(rig.torques(), [1; 6]);

    let mut bus = Recorder { bus: rig.servos.bus(), written: Vec::new() };
    let found = Arm::connect(&mut bus, Calibration::model(), rig.options()).unwrap();
    drop(found.into_holding().unwrap());
    assert!(bus.written.is_empty(), "{:?}", bus.written);

    drop(rig.armed());
    assert_eq!(rig.torques(), [0; 6]);
}

#[test]
fn where_only_some_motors_are_on_all_are_gripped_where_they_are() {
    let rig = Rig::new();
    rig.servos.set_ticks(JointId::ElbowFlex, 2300.0);
    rig.servos.bus().write_register(ServoId::ARM[1], &TORQUE_ENABLE, 1).unwrap();
    let FoundArm::Holding(arm) = rig.found() else { panic!("a motor is on") };
    let err = arm.arm().unwrap_err().error;
    assert!(matches!(&err, Error::Torque { ids, wanted: "on", .. } if ids == &[1, 3, 4, 5, 6]), "{err}");
    let arm = rig.found().into_armed().unwrap();
    assert_eq!(rig.torques(), [1; 6]);
    assert_eq!(rig.register(&GOAL_POSITION), [2048, 2048, 2300, 2048, 2048, 2048]);
    drop(arm);
}

#[test]
fn holding_keeps_the_arm_where_it_is() {
    let rig = Rig::new();
    for joint in JOINTS {
        rig.servos.set_ticks(joint, 2500.0);
        rig.servos.set_register(joint, &GOAL_POSITION, 1000).unwrap();
    }
    let mut arm = rig.relaxed().hold().unwrap();
    assert_eq!(rig.torques(), [1; 6]);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.servos.true_ticks(), [2500.0; 6]);
    let joints = arm.read_joints().unwrap();
    assert_eq!(joints, Calibration::model().to_degrees(&[Ticks(2500); 6]).unwrap());
}

#[test]
fn the_present_positions_are_the_goals_before_torque_goes_on() {
    let rig = Rig::new();
    for (joint, ticks) in JOINTS.into_iter().zip([0x901, 0x902, 0x903, 0x904, 0x905, 0x906]) {
        rig.servos.set_ticks(joint, f64::from(ticks));
    }
    let mut bus = Recorder { bus: rig.servos.bus(), written: Vec::new() };
    drop(Arm::connect(&mut bus, Calibration::model(), rig.options()).unwrap().into_holding().unwrap());
    let goals: Vec<Vec<u8>> = (1..=6).map(|low| vec![low, 9]).collect();
    let (on, off) = (vec![vec![1]; 6], vec![vec![0]; 6]);
    assert_eq!(bus.written, [(42, goals), (40, on), (40, off)]);
}

#[test]
fn an_arm_that_is_not_whole_is_refused_and_the_servos_are_named() {
    let rig = Rig::new();
    for id in [3, 5] {
        rig.servos.inject(FaultRule::always(Fault::Drop).of(ServoId::new(id).unwrap()));
    }
    let err = Arm::connect(rig.servos.bus(), Calibration::model(), rig.options()).unwrap_err();
    assert!(matches!(&err, Error::ServosSilent { ids } if ids == &[3, 5]), "{err}");

    let rig = Rig::new();
    rig.servos.set_register(JointId::ElbowFlex, &MODEL_NUMBER, 2825).unwrap();
    let err = Arm::connect(rig.servos.bus(), Calibration::model(), rig.options()).unwrap_err();
    assert_eq!(err.to_string(), "servo 3 (elbow_flex) has model number 2825, expected 777 (STS3215)");
    assert_eq!(rig.torques(), [0; 6]);
}

#[test]
fn another_homing_offset_than_the_calibrations_is_refused_unless_accepted() {
    let rig = Rig::new();
    rig.servos.set_register(JointId::WristRoll, &HOMING_OFFSET, -89).unwrap();
    let err = Arm::connect(rig.servos.bus(), Calibration::model(), rig.options()).unwrap_err();
    assert!(matches!(err, Error::HomingOffset { id: 5, servo: -89, calibration: 0, .. }), "{err}");
    let options = rig.options().with_offset_mismatch(OffsetMismatch::Accept);
    assert!(Arm::connect(rig.servos.bus(), Calibration::model(), options).is_ok());
}

#[test]
fn a_joint_far_outside_of_its_range_is_not_energised() {
    let rig = Rig::new();
    rig.servos.set_ticks(JointId::ShoulderLift, 910.0 - 65.0);
    let refused = rig.relaxed().hold().unwrap_err();
    assert!(matches!(refused.error, Error::OutsideRange { id: 2, position: 845, min: 910, .. }), "{refused}");
    assert_eq!(rig.torques(), [0; 6]);
    rig.servos.set_ticks(JointId::ShoulderLift, 910.0 - 60.0);
    refused.arm.hold().unwrap();
}

#[test]
fn a_silent_joint_leaves_the_others_fresh_and_is_counted() {
    let rig = Rig::new();
    let mut arm = rig.armed();
    rig.servos.set_register(JointId::Gripper, &PRESENT_VOLTAGE, 35).unwrap();
    rig.servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[2]));
    for n in 1..=2 {
        let err = arm.read_joints().unwrap_err();
        assert!(matches!(err, Error::NoReply { id: 3, .. }), "{err}");
        assert_eq!(arm.states().map(|s| s.missed), [0, 0, n, 0, 0, 0]);
        assert!(arm.states()[2].at < arm.states()[1].at);
    }
    assert_eq!(arm.states()[5].alarms, Alarms::VOLTAGE);
    assert_eq!(arm.states()[5].telemetry.voltage_dv, 35);
    rig.servos.clear_faults();
    arm.read_joints().unwrap();
    assert_eq!(arm.states()[2].missed, 0);
}

#[test]
fn torque_off_is_proved_or_the_servos_are_named_and_the_arm_comes_back() {
    let rig = Rig::new();
    rig.servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[4]));
    rig.servos.clear_faults();
    let arm = rig.armed();
    rig.servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[4]));
    let refused = arm.relax().unwrap_err();
    let err = &refused.error;
    assert!(matches!(err, Error::Torque { ids, wanted: "off", tries: 3 } if ids == &[5]), "{err}");
    rig.servos.clear_faults();
    let mut arm = refused.arm.relax().unwrap();
    assert_eq!(rig.torques(), [0; 6]);
    assert_eq!(arm.read_torque().unwrap(), [Torque::Off; 6]);
}

#[test]
fn dropping_the_arm_relaxes_it_unless_told_to_hold() {
    for (on_drop, left) in [(OnDrop::Relax, [0; 6]), (OnDrop::Hold, [1; 6])] {
        let rig = Rig::new();
        let options = rig.options().with_on_drop(on_drop);
        let found = Arm::connect(rig.servos.bus(), Calibration::model(), options).unwrap();
        drop(found.into_armed().unwrap());
        assert_eq!(rig.torques(), left, "{on_drop:?}");
    }
}

#[test]
fn an_arm_that_cannot_be_energised_is_left_relaxed() {
    let rig = Rig::new();
    let arm = rig.relaxed();
    // Servo 6 has answered while connecting; what it holds cannot be read now.
    rig.servos.inject(FaultRule::always(Fault::BadChecksum).of(ServoId::ARM[5]));
    let refused = arm.hold().unwrap_err();
    assert!(matches!(refused.error, Error::NoReply { id: 6, .. }), "{refused}");
    drop(refused);
    rig.servos.clear_faults();
    assert_eq!(rig.torques(), [0; 6]);
}

#[test]
fn each_state_has_one_name_and_one_torque() {
    let states =
        [(Relaxed::NAME, Relaxed::TORQUE), (Holding::NAME, Holding::TORQUE), (Armed::NAME, Armed::TORQUE)];
    assert_eq!(states, [("relaxed", Torque::Off), ("holding", Torque::On), ("armed", Torque::On)]);
    let rig = Rig::new();
    assert!(alloc::format!("{:?}", rig.armed()).contains("armed"));
}

#[test]
fn an_armed_arm_that_is_to_hold_keeps_its_goals_where_it_has_arrived_and_stops_where_not() {
    let rig = Rig::new();
    let mut arm = rig.armed();
    let mut goal = arm.read_joints().unwrap();
    goal.body[0].0 += 2.0;
    goal.body[2].0 += 60.0;
    let sent = arm.send(&goal, rig.clock.now()).unwrap();
    rig.pass(Duration::from_millis(100));
    let arm = arm.hold();
    let goals = rig.register(&GOAL_POSITION);
    assert_eq!(goals[0], sent.ticks[0].0);
    assert_eq!(goals[2], arm.states()[2].telemetry.position.0);
    assert!(goals[2] < sent.ticks[2].0 - 100, "{goals:?}");
}

#[test]
fn a_ramp_arrives_smoothly_at_the_asked_speed() {
    let rig = Rig::new();
    let mut arm = rig.found().into_holding().unwrap();
    let here = arm.read_joints().unwrap();
    let mut to = here;
    to.body[1].0 -= 45.0;
    to.body[3].0 += 30.0;
    let before = rig.clock.now();
    arm.ramp_to(&Ramp::new(to, 30.0)).unwrap();
    // The blend's fastest moment is the asked speed, its mean two thirds of it.
    let took = rig.clock.now().since(before).as_secs_f64();
    assert!((2.2..2.6).contains(&took), "{took}");
    let there = arm.read_joints().unwrap();
    for (is, wanted) in there.body.iter().zip(to.body) {
        assert!((is.0 - wanted.0).abs() < 3.0, "{is} {wanted}");
    }
    rig.pass(Duration::from_secs(1));
    let there = arm.read_joints().unwrap();
    assert!((there.body[1].0 - to.body[1].0).abs() < 0.1);
    for speed in [0.0, -3.0, f64::NAN] {
        assert!(arm.ramp_to(&Ramp::new(to, speed)).is_err());
    }
}

#[test]
fn finishing_relaxes_holds_or_ramps_first() {
    let rest = Calibration::model().to_degrees(&[Ticks(2200); 6]).unwrap();
    for (ending, torque, moved) in [
        (Ending::Relax, [0; 6], false),
        (Ending::Hold, [1; 6], false),
        (Ending::RampThenRelax(Ramp::new(rest, 60.0)), [0; 6], true),
    ] {
        let rig = Rig::new();
        rig.armed().finish(&ending).unwrap();
        assert_eq!(rig.torques(), torque, "{ending:?}");
        let is_there = rig.servos.true_ticks().iter().all(|t| (t - 2200.0).abs() <= 40.0);
        assert_eq!(is_there, moved, "{ending:?}");
    }
}
