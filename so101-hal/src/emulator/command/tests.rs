use alloc::sync::Arc;

use super::super::EmulatorOptions;
use super::*;
use crate::bus::{ServoBus as _, SyncReplies};
use crate::clock::{Clock as _, VirtualClock};
use crate::port::Port as _;

fn servos() -> (EmulatedServos, VirtualClock) {
    let clock = VirtualClock::new();
    (EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default()), clock)
}

fn id(n: u8) -> ServoId {
    ServoId::new(n).unwrap()
}

#[test]
fn every_command_of_the_help_is_understood() {
    let (servos, _) = servos();
    for line in [
        "drop 0.1",
        "trunc 0.1 3",
        "badck 1 gripper",
        "bitflip 0 1",
        "junk 0.5",
        "dup 0.5",
        "swap 0.5 2",
        "echo 0.5",
        "late 0.2 20 3",
        "err 1 0x20 3",
        "clear",
        "hand 3 2100",
        "hold 3 2100",
        "brown 0.1 3",
        "block 3",
        "unblock elbow_flex",
        "stops 3 100 4000",
        "load 3 -200",
        "volt all 74",
        "volt 2 35",
        "temp 2 61",
        "power off",
        "power on",
        "power cycle",
        "brownout",
        "unplug",
        "replug",
        "detach 2",
        "attach 2",
        "id 2 7",
        "set 2 P_Coefficient 16",
        "get 2 P_Coefficient",
        "dump",
        "dump 4",
        "help",
        "",
    ] {
        servos.command(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    assert_eq!(servos.command("dump").unwrap().lines().count(), 6);
    assert_eq!(servos.command("get 2 ID").unwrap(), "7");
}

#[test]
fn what_is_no_command_is_named_and_changes_nothing() {
    let (servos, _) = servos();
    let before = servos.command("dump").unwrap();
    for (line, says) in [
        ("jump 1", "jump is no command"),
        ("drop", "PROBABILITY is missing"),
        ("drop 1.5", "PROBABILITY is 1.5"),
        ("drop NaN", "PROBABILITY is NaN"),
        ("drop 1 7", "SERVO is 7"),
        ("drop 1 3 4", "4 is one word too many"),
        ("stops 3 5 4", "MIN is above MAX"),
        ("set 3 Goal 1", "Goal is no register"),
        ("set 3 Goal_Position 99999", "VALUE is 99999"),
        ("power maybe", "power maybe is not"),
    ] {
        let error = servos.command(line).unwrap_err().to_string();
        assert!(error.contains(says) && error.ends_with(line), "{error}");
    }
    assert_eq!(servos.command("dump").unwrap(), before);
    assert!(servos.bus().ping(id(3)).is_ok());
}

#[test]
fn an_alarm_on_the_line_comes_with_good_data() {
    let (servos, _) = servos();
    servos.command("err 1 32 3").unwrap();
    let mut bus = servos.bus();
    let reading = bus.read_register(id(3), &registers::PRESENT_POSITION).unwrap();
    assert_eq!((reading.value, reading.alarms), (2048, Alarms::OVERLOAD));
    assert!(bus.ping(id(2)).unwrap().is_empty());
}

#[test]
fn swapped_replies_come_in_another_order_and_are_told_apart_by_their_ids() {
    let (servos, _) = servos();
    servos.command("hand 3 3000").unwrap();
    servos.command("swap 1 3").unwrap();
    let mut port = servos.port();
    port.write_all(&[0xff, 0xff, 0xfe, 6, 0x82, 56, 2, 3, 4, 0x38]).unwrap();
    let mut bytes = [0; 64];
    let now = port.now();
    let n = port.read(&mut bytes, now).unwrap();
    assert_eq!((n, bytes[2], bytes[10]), (16, 4, 3));
    let mut replies = SyncReplies::new();
    servos.bus().sync_read(registers::PRESENT_POSITION.block(), &[id(3), id(4)], &mut replies).unwrap();
    assert_eq!(replies.get(0).unwrap().1.unwrap().data, 3000_u16.to_le_bytes());
}

#[test]
fn an_echo_comes_before_the_reply() {
    let (servos, _) = servos();
    servos.command("echo 1").unwrap();
    let mut port = servos.port();
    let ping = [0xff, 0xff, 1, 2, 1, 0xfb];
    port.write_all(&ping).unwrap();
    let mut bytes = [0; 64];
    let now = port.now();
    let n = port.read(&mut bytes, now).unwrap();
    assert_eq!((n, &bytes[..6], &bytes[6..12]), (12, &ping[..], &[0xff, 0xff, 1, 2, 0, 0xfc][..]));
}

#[test]
fn two_servos_with_one_id_damage_each_others_replies_and_both_carry_writes_out() {
    let (servos, _) = servos();
    servos.command("id 2 3").unwrap();
    let mut bus = servos.bus();
    assert!(bus.ping(id(3)).is_err());
    assert!(bus.ping(id(2)).is_err());
    assert!(bus.ping(id(4)).is_ok());
    let _ = bus.write_register(id(3), &registers::P_COEFFICIENT, 17);
    assert_eq!(servos.command("get 2 P_Coefficient").unwrap(), "17");
    assert_eq!(servos.command("get 3 P_Coefficient").unwrap(), "17");
}

#[test]
fn a_servo_hears_its_own_baud_rate_only() {
    let (servos, _) = servos();
    servos.command("set 5 Baud_Rate 1").unwrap();
    assert!(servos.bus().ping(id(5)).is_err());
    let mut port = servos.port();
    port.set_baud(500_000);
    let mut bus = crate::bus::Bus::new(port);
    assert!(bus.ping(id(5)).is_ok());
    assert!(bus.ping(id(4)).is_err());
}

#[test]
fn an_unplugged_adapter_is_an_error_until_it_is_opened_again_and_the_servos_go_on() {
    let (servos, clock) = servos();
    let mut port = servos.port();
    crate::bus::Bus::new(&mut port).write_register(id(1), &registers::GOAL_POSITION, 3000).unwrap();
    servos.unplug();
    assert!(!servos.is_plugged_in());
    assert!(matches!(port.write_all(&[0]), Err(Error::PortIo { doing: "write to", .. })));
    assert!(matches!(port.discard_input(), Err(Error::PortIo { .. })));
    assert!(matches!(port.reopen(), Err(Error::PortNotFound { .. })));
    servos.replug();
    // The old handle is of the plug before.
    let now = port.now();
    assert!(matches!(port.read(&mut [0; 8], now), Err(Error::PortIo { .. })));
    port.reopen().unwrap();
    clock.sleep_until(clock.now() + Duration::from_secs(2));
    let reading = crate::bus::Bus::new(port).read_register(id(1), &registers::PRESENT_POSITION).unwrap();
    assert_eq!(reading.value, 3000);
}

#[test]
fn without_supply_nobody_answers_and_a_brown_out_takes_the_torque() {
    let (servos, _) = servos();
    let mut bus = servos.bus();
    bus.write_register(id(1), &registers::TORQUE_ENABLE, 1).unwrap();
    servos.brown_out();
    let reading = bus.read_register(id(1), &registers::TORQUE_ENABLE).unwrap();
    assert_eq!((reading.value, reading.alarms), (0, Alarms::VOLTAGE));
    servos.command("volt all 74").unwrap();
    assert!(bus.ping(id(1)).unwrap().is_empty());
    servos.power_off();
    assert!(bus.ping(id(1)).is_err());
    servos.power_on();
    assert!(bus.ping(id(1)).is_ok());
}

#[test]
fn a_blocked_servo_pushes_until_it_overloads_and_one_that_is_let_go_arrives() {
    let (servos, clock) = servos();
    let mut bus = servos.bus();
    servos.block(JointId::Gripper);
    bus.write_register(id(6), &registers::GOAL_POSITION, 3000).unwrap();
    clock.sleep_until(clock.now() + Duration::from_secs(1));
    let load = bus.read_register(id(6), &registers::PRESENT_LOAD).unwrap();
    assert!(load.value > 900 && load.alarms.is_empty(), "{load:?}");
    clock.sleep_until(clock.now() + Duration::from_secs(2));
    let position = bus.read_register(id(6), &registers::PRESENT_POSITION).unwrap();
    assert_eq!((position.value, position.alarms), (2048, Alarms::OVERLOAD));
    servos.unblock(JointId::Gripper);
    bus.write_register(id(6), &registers::GOAL_POSITION, 3000).unwrap();
    clock.sleep_until(clock.now() + Duration::from_secs(2));
    assert_eq!(bus.read_register(id(6), &registers::PRESENT_POSITION).unwrap().value, 3000);
}

#[test]
fn on_a_timed_wire_the_telemetry_of_six_servos_takes_what_its_bytes_take() {
    let clock = VirtualClock::new();
    let options = EmulatorOptions { wire: super::super::WireTiming::AtBaud, ..EmulatorOptions::default() };
    let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
    let mut bus = servos.bus();
    let mut replies = SyncReplies::new();
    let mut took = |servos: &EmulatedServos| {
        let start = clock.now();
        bus.sync_read(registers::TELEMETRY, &ServoId::ARM, &mut replies).unwrap();
        assert!(replies.iter().all(|(_, r)| r.is_ok()));
        let _ = servos;
        clock.now().since(start).as_micros()
    };
    // 14 bytes there, six times 21 back, and the factory's return delay of 500 us for each.
    assert_eq!(took(&servos), 140 + 6 * (210 + 500));
    for n in 1..=6 {
        servos.command(&format!("set {n} Return_Delay_Time 0")).unwrap();
    }
    assert_eq!(took(&servos), 140 + 6 * 210);
}

#[test]
fn habits_are_a_choice() {
    let clock = VirtualClock::new();
    let mut options = EmulatorOptions::default();
    options.habits.goal_switches_torque_on = false;
    options.habits.present_is_goal_at_torque_on = false;
    let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
    let mut bus = servos.bus();
    bus.write_register(id(1), &registers::GOAL_POSITION, 3000).unwrap();
    assert_eq!(bus.read_register(id(1), &registers::TORQUE_ENABLE).unwrap().value, 0);
    bus.write_register(id(1), &registers::TORQUE_ENABLE, 1).unwrap();
    // It jumps to the goal of before.
    clock.sleep_until(clock.now() + Duration::from_secs(2));
    assert_eq!(bus.read_register(id(1), &registers::PRESENT_POSITION).unwrap().value, 3000);
}
