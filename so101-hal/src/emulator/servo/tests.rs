use alloc::sync::Arc;
use core::time::Duration;

use super::super::{EmulatedBus, EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::bus::{ReplyFault, ServoBus as _, SyncReplies};
use crate::clock::{Clock as _, VirtualClock};
use crate::joint::JointId;
use crate::protocol::{Alarms, ServoId};
use crate::registers::{self, PRESENT_POSITION};

const PAN: JointId = JointId::ShoulderPan;
const ID: ServoId = ServoId::ARM[0];

struct Rig {
    clock: VirtualClock,
    servos: EmulatedServos,
    bus: EmulatedBus,
}

impl Rig {
    fn new(change: impl FnOnce(&mut EmulatorOptions)) -> Self {
        let clock = VirtualClock::new();
        let mut options = EmulatorOptions::default();
        change(&mut options);
        let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
        Self { bus: servos.bus(), clock, servos }
    }

    fn pass(&self, ms: u64) {
        self.clock.sleep_until(self.clock.now() + Duration::from_millis(ms));
    }

    fn set(&self, register: &registers::Register, value: i32) {
        self.servos.set_register(PAN, register, value).unwrap();
    }

    /// Pushes servo 1 against something for so long.
    fn push(&mut self, ms: u64) {
        self.servos.block(PAN);
        self.bus.write_register(ID, &registers::GOAL_POSITION, 3000).unwrap();
        self.pass(ms);
    }

    fn load_current_alarms(&mut self) -> (i32, i32, Alarms) {
        let load = self.bus.read_register(ID, &registers::PRESENT_LOAD).unwrap();
        let current = self.bus.read_register(ID, &registers::PRESENT_CURRENT).unwrap();
        (load.value, current.value, load.alarms)
    }
}

#[test]
fn after_an_overload_the_protective_torque_is_left_and_moves_nothing() {
    for (protective, left) in [(20, (200, 80)), (0, (0, 0)), (35, (350, 140))] {
        let mut rig = Rig::new(|_| {});
        rig.set(&registers::PROTECTIVE_TORQUE, protective);
        rig.push(1900);
        assert_eq!(rig.load_current_alarms(), (1000, 400, Alarms::NONE));
        rig.pass(200);
        assert_eq!(rig.load_current_alarms(), (left.0, left.1, Alarms::OVERLOAD));
        rig.servos.unblock(PAN);
        // Once by a long way, once in many small ones.
        for _ in 0..100 {
            rig.pass(10);
            let _ = rig.servos.true_ticks();
        }
        rig.pass(3_600_000);
        assert_eq!(rig.servos.true_ticks()[0], 2048.0);
        assert_eq!(rig.load_current_alarms(), (left.0, left.1, Alarms::OVERLOAD));
    }
}

#[test]
fn too_much_current_for_too_long_is_an_alarm_of_its_own() {
    let mut rig = Rig::new(|_| {});
    rig.set(&registers::PROTECTION_CURRENT, 250);
    rig.set(&registers::OVER_CURRENT_PROTECTION_TIME, 50);
    rig.push(490);
    assert_eq!(rig.load_current_alarms(), (1000, 400, Alarms::NONE));
    rig.pass(30);
    assert_eq!(rig.load_current_alarms(), (200, 80, Alarms::CURRENT));
    rig.bus.write_register(ID, &registers::TORQUE_ENABLE, 0).unwrap();
    assert_eq!(rig.load_current_alarms().2, Alarms::NONE);
    // Register 19 decides what takes the torque away.
    rig.set(&registers::UNLOADING_CONDITION, 0);
    rig.push(5000);
    assert_eq!(rig.load_current_alarms(), (1000, 400, Alarms::NONE));
}

#[test]
fn what_ends_an_overload_is_a_choice() {
    for goal_ends_it in [true, false] {
        let mut rig = Rig::new(|o| o.habits.goal_ends_overload = goal_ends_it);
        rig.push(2100);
        assert_eq!(rig.load_current_alarms().2, Alarms::OVERLOAD);
        rig.bus.write_register(ID, &registers::GOAL_POSITION, 2048).unwrap();
        assert_eq!(rig.load_current_alarms().2.is_empty(), goal_ends_it);
        rig.bus.write_register(ID, &registers::TORQUE_ENABLE, 0).unwrap();
        assert!(rig.load_current_alarms().2.is_empty());
    }
}

#[test]
fn a_brown_out_in_the_middle_of_a_reply_takes_its_end_and_the_registers_of_that_servo() {
    let mut rig = Rig::new(|_| {});
    for id in &ServoId::ARM[..2] {
        rig.bus.write_register(*id, &registers::TORQUE_ENABLE, 1).unwrap();
    }
    // Never stored: the EEPROM was locked.
    rig.bus.write_register(ID, &registers::HOMING_OFFSET, 100).unwrap();
    rig.servos.inject(FaultRule::always(Fault::BrownOut).of(ID));
    let mut replies = SyncReplies::new();
    rig.bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM, &mut replies).unwrap();
    assert!(replies.iter().all(|(id, reply)| reply.is_ok() == (id != ID)));
    rig.servos.clear_faults();
    let reading = rig.bus.read_register(ID, &registers::TORQUE_ENABLE).unwrap();
    assert_eq!((reading.value, reading.alarms), (0, Alarms::VOLTAGE));
    assert_eq!(rig.bus.read_register(ID, &registers::HOMING_OFFSET).unwrap().value, 0);
    assert_eq!(rig.bus.read_register(ServoId::ARM[1], &registers::TORQUE_ENABLE).unwrap().value, 1);
    rig.servos.set_voltage(PAN, 74);
    assert_eq!(rig.bus.ping(ID).unwrap(), Alarms::NONE);
}

#[test]
fn supply_and_heat_come_from_outside_and_survive_the_power() {
    let mut rig = Rig::new(|_| {});
    rig.servos.set_voltage(PAN, 35);
    rig.servos.set_temperature(PAN, 75);
    rig.servos.power_cycle();
    assert_eq!(rig.bus.ping(ID).unwrap(), Alarms::VOLTAGE | Alarms::HEAT);
    assert_eq!(rig.bus.read_register(ID, &registers::PRESENT_VOLTAGE).unwrap().value, 35);
}

#[test]
fn who_answers_behind_a_missing_servo_is_a_choice() {
    for all in [true, false] {
        let mut rig = Rig::new(|o| o.habits.answers_behind_a_missing_servo = all);
        rig.servos.detach(JointId::WristFlex);
        let mut replies = SyncReplies::new();
        rig.bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM, &mut replies).unwrap();
        let answers: Vec<bool> = replies.iter().map(|(_, reply)| reply.is_ok()).collect();
        assert_eq!(answers, [true, true, true, false, all, all]);
        assert_eq!(replies.get(3).unwrap().1, Err(ReplyFault::Missing));
        rig.servos.attach(JointId::WristFlex);
        rig.bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM, &mut replies).unwrap();
        assert!(replies.iter().all(|(_, reply)| reply.is_ok()));
    }
}

#[test]
fn a_hand_that_holds_on_is_stronger_than_the_servo() {
    let mut rig = Rig::new(|_| {});
    rig.bus.write_register(ID, &registers::TORQUE_ENABLE, 1).unwrap();
    rig.servos.hold(PAN, 2100.0);
    rig.pass(500);
    assert_eq!(rig.servos.true_ticks()[0], 2100.0);
    assert_eq!(rig.load_current_alarms().0, -6 * 52);
    rig.servos.unblock(PAN);
    rig.pass(500);
    assert_eq!(rig.servos.true_ticks()[0], 2048.0);
    // One that lets go at once is pulled back.
    rig.servos.set_ticks(PAN, 2100.0);
    rig.pass(500);
    assert_eq!(rig.servos.true_ticks()[0], 2048.0);
}

#[test]
fn ids_firmware_and_models_can_be_others() {
    let mut rig = Rig::new(|o| o.firmware = (3, 9));
    rig.servos.set_id(PAN, ServoId::new(21).unwrap());
    rig.set(&registers::MODEL_NUMBER, 2825);
    rig.servos.power_cycle();
    let id = ServoId::new(21).unwrap();
    assert!(rig.bus.ping(ID).is_err());
    assert_eq!(rig.bus.read_register(id, &registers::MODEL_NUMBER).unwrap().value, 2825);
    assert_eq!(rig.bus.read_register(id, &registers::FIRMWARE_MINOR).unwrap().value, 9);
}
