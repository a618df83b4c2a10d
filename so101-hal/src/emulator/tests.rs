use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::bus::{BusOptions, ReplyFault, ServoBus as _, SyncReplies};
use crate::clock::{Timestamp, VirtualClock};
use crate::port::Port as _;
use crate::protocol::{Alarms, Block, Request, ServoId, SyncRow, Target};
use crate::registers::{
    ACCELERATION, GOAL_POSITION, GOAL_VELOCITY, HOMING_OFFSET, LOCK, MAX_POSITION_LIMIT, MAX_TORQUE_LIMIT,
    MODEL_NUMBER, PRESENT_LOAD, PRESENT_POSITION, PRESENT_TEMPERATURE, PRESENT_VOLTAGE, REGISTERED_WRITE,
    RESPONSE_STATUS_LEVEL, STATUS, TORQUE_ENABLE, TORQUE_LIMIT,
};

const PAN: JointId = JointId::ShoulderPan;
const ID: ServoId = ServoId::ARM[0];

fn rig() -> (VirtualClock, EmulatedServos, EmulatedBus) {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    let bus = servos.bus();
    (clock, servos, bus)
}

fn pass(clock: &VirtualClock, ms: u64) {
    clock.sleep_until(clock.now() + Duration::from_millis(ms));
}

#[test]
fn eeprom_writes_survive_the_power_only_while_unlocked() {
    let (_, servos, mut bus) = rig();
    bus.write_register(ID, &HOMING_OFFSET, -709).unwrap();
    assert_eq!(servos.register(PAN, &HOMING_OFFSET).unwrap(), -709);
    servos.power_cycle();
    assert_eq!(servos.register(PAN, &HOMING_OFFSET).unwrap(), 0);
    bus.write_register(ID, &LOCK, 0).unwrap();
    bus.write_register(ID, &HOMING_OFFSET, -709).unwrap();
    servos.power_cycle();
    assert_eq!(servos.register(PAN, &HOMING_OFFSET).unwrap(), -709);
    assert_eq!(servos.register(PAN, &LOCK).unwrap(), 1);
}

#[test]
fn the_present_position_is_the_encoder_less_the_homing_offset_within_one_turn() {
    let (_, servos, mut bus) = rig();
    for (offset, present) in [(0, 2048), (-709, 2757), (2047, 1), (-2047, 4095)] {
        bus.write_register(ID, &HOMING_OFFSET, offset).unwrap();
        assert_eq!(bus.read_register(ID, &PRESENT_POSITION).unwrap().value, present);
    }
    bus.write_register(ID, &HOMING_OFFSET, 1000).unwrap();
    servos.set_ticks(PAN, -10.0);
    assert_eq!(bus.read_register(ID, &PRESENT_POSITION).unwrap().value, 4086);
    assert_eq!(servos.true_ticks()[0], -10.0);
}

#[test]
fn enabling_torque_holds_the_arm_where_it_is_whatever_the_goal_was() {
    let (clock, servos, mut bus) = rig();
    servos.set_ticks(PAN, 1234.0);
    bus.write_register(ID, &TORQUE_ENABLE, 1).unwrap();
    assert_eq!(servos.register(PAN, &GOAL_POSITION).unwrap(), 1234);
    pass(&clock, 500);
    assert_eq!(servos.true_ticks()[0], 1234.0);
}

#[test]
fn a_goal_outside_the_limits_ends_at_the_limit() {
    let (clock, servos, mut bus) = rig();
    bus.write_register(ID, &MAX_POSITION_LIMIT, 2600).unwrap();
    bus.write_register(ID, &GOAL_POSITION, 4000).unwrap();
    assert_eq!(servos.register(PAN, &TORQUE_ENABLE).unwrap(), 1, "a goal write enables torque");
    pass(&clock, 3000);
    assert_eq!(servos.true_ticks()[0], 2600.0);
}

#[test]
fn velocity_and_acceleration_stay_within_their_registers() {
    let (clock, servos, mut bus) = rig();
    bus.write_register(ID, &ACCELERATION, 10).unwrap();
    bus.write_register(ID, &GOAL_VELOCITY, 300).unwrap();
    bus.write_register(ID, &GOAL_POSITION, 3000).unwrap();
    let mut velocities = [0.0; 2000];
    let mut last = servos.true_ticks()[0];
    for v in &mut velocities {
        pass(&clock, 1);
        let here = servos.true_ticks()[0];
        *v = (here - last) / 0.001;
        last = here;
    }
    let top = velocities.iter().fold(0.0, |a: f64, b| a.max(*b));
    assert!((299.0..=300.001).contains(&top), "{top}");
    let steepest = velocities.windows(2).fold(0.0, |a: f64, w| a.max((w[1] - w[0]).abs()));
    assert!(steepest <= 1.0 + 1e-6, "{steepest} ticks/s in 1 ms, allowed 1000 ticks/s^2");
}

#[test]
fn a_smooth_trajectory_at_30_hz_is_followed_within_a_few_degrees() {
    let (clock, servos, mut bus) = rig();
    let start = clock.now();
    let mut worst: f64 = 0.0;
    for i in 0..300_u32 {
        // +-60 degrees in 4 s: up to 94 degrees a second.
        let t = f64::from(i) / 30.0;
        let wanted = 2048.0 + 60.0 / 360.0 * 4096.0 * (t * core::f64::consts::TAU / 4.0).sin();
        bus.write_register(ID, &GOAL_POSITION, wanted.round() as i32).unwrap();
        worst = worst.max((servos.true_ticks()[0] - wanted).abs() * 360.0 / 4096.0);
        clock.sleep_until(start + Duration::from_nanos(u64::from(i + 1) * 33_333_333));
    }
    // The lag of 40 ms and half a control period.
    assert!(worst < 94.3 * 0.075, "{worst} degrees");
    assert!(worst > 94.3 * 0.030, "{worst} degrees: no servo is that good");
}

#[test]
fn motion_does_not_depend_on_how_often_somebody_looks() {
    let run = |looks: u64| {
        let (clock, servos, mut bus) = rig();
        bus.write_register(ID, &GOAL_POSITION, 3500).unwrap();
        for i in 1..=looks {
            clock.sleep_until(Timestamp::from_start(Duration::from_micros(333_333 * i / looks)));
            let _ = servos.true_ticks();
        }
        servos.true_ticks().map(f64::to_bits)
    };
    assert_eq!(run(1), run(1000));
    assert_eq!(run(1), run(7));
}

#[test]
fn a_servo_that_is_left_alone_for_a_day_is_where_it_was_sent() {
    let (clock, servos, mut bus) = rig();
    bus.write_register(ID, &GOAL_POSITION, 100).unwrap();
    pass(&clock, 86_400_000);
    assert_eq!(servos.true_ticks()[0], 100.0);
}

#[test]
fn pushing_against_a_stop_is_an_overload_until_torque_goes_off() {
    let (clock, servos, mut bus) = rig();
    servos.set_stops(PAN, 0.0, 2300.0);
    bus.write_register(ID, &GOAL_POSITION, 3000).unwrap();
    pass(&clock, 1900);
    let reading = bus.read_register(ID, &PRESENT_LOAD).unwrap();
    assert_eq!((reading.value, reading.alarms), (1000, Alarms::NONE));
    pass(&clock, 500);
    let reading = bus.read_register(ID, &PRESENT_LOAD).unwrap();
    assert_eq!((reading.value, reading.alarms), (200, Alarms::OVERLOAD), "the protective torque");
    assert_eq!(servos.true_ticks()[0], 2300.0);
    bus.write_register(ID, &TORQUE_ENABLE, 0).unwrap();
    assert_eq!(bus.read_register(ID, &STATUS).unwrap().value, 0);
}

#[test]
fn the_torque_limit_caps_the_load_and_starts_as_the_eeproms() {
    let (clock, servos, mut bus) = rig();
    servos.set_register(PAN, &MAX_TORQUE_LIMIT, 500).unwrap();
    assert_eq!(servos.register(PAN, &TORQUE_LIMIT).unwrap(), 1000);
    servos.power_cycle();
    assert_eq!(servos.register(PAN, &TORQUE_LIMIT).unwrap(), 500);
    servos.set_load(PAN, 900.0);
    bus.write_register(ID, &TORQUE_ENABLE, 1).unwrap();
    pass(&clock, 10);
    assert_eq!(bus.read_register(ID, &PRESENT_LOAD).unwrap().value, 500);
}

#[test]
fn voltage_and_temperature_out_of_their_limits_raise_alarms() {
    let (clock, servos, mut bus) = rig();
    for (volt, heat, alarms) in [
        (74, 30, Alarms::NONE),
        (39, 30, Alarms::VOLTAGE),
        (141, 71, Alarms::VOLTAGE | Alarms::HEAT),
        (74, 70, Alarms::NONE),
    ] {
        servos.set_register(PAN, &PRESENT_VOLTAGE, volt).unwrap();
        servos.set_register(PAN, &PRESENT_TEMPERATURE, heat).unwrap();
        pass(&clock, 5);
        assert_eq!(bus.ping(ID).unwrap(), alarms);
    }
}

#[test]
fn registered_writes_wait_for_the_action() {
    let (_, servos, mut bus) = rig();
    for id in &ServoId::ARM[..2] {
        bus.reg_write(*id, GOAL_POSITION.address, &[0, 4]).unwrap();
    }
    assert_eq!(servos.register(PAN, &GOAL_POSITION).unwrap(), 2048);
    assert_eq!(bus.read_register(ID, &REGISTERED_WRITE).unwrap().value, 1);
    bus.action().unwrap();
    assert_eq!(servos.register(PAN, &GOAL_POSITION).unwrap(), 1024);
    assert_eq!(servos.register(JointId::ShoulderLift, &GOAL_POSITION).unwrap(), 1024);
    assert_eq!(servos.register(JointId::ElbowFlex, &GOAL_POSITION).unwrap(), 2048);
    assert_eq!(bus.read_register(ID, &REGISTERED_WRITE).unwrap().value, 0);
}

#[test]
fn read_only_registers_ignore_writes() {
    let (_, servos, mut bus) = rig();
    bus.write(ID, 0, &[9; 5]).unwrap();
    bus.write(ID, 56, &[9; 15]).unwrap();
    assert_eq!(servos.register(PAN, &MODEL_NUMBER).unwrap(), 777);
    assert_eq!(servos.register(PAN, &PRESENT_POSITION).unwrap(), 2048);
    assert_eq!(servos.register(PAN, &PRESENT_VOLTAGE).unwrap(), 74);
}

#[test]
fn torque_128_makes_the_present_position_the_middle() {
    let (_, servos, mut bus) = rig();
    servos.set_ticks(PAN, 700.0);
    bus.write_register(ID, &TORQUE_ENABLE, 128).unwrap();
    assert_eq!(bus.read_register(ID, &PRESENT_POSITION).unwrap().value, 2048);
    servos.power_cycle();
    assert_eq!(servos.register(PAN, &HOMING_OFFSET).unwrap(), 700 - 2048);
}

#[test]
fn response_level_0_answers_reads_and_pings_alone() {
    let (_, servos, _) = rig();
    servos.set_register(PAN, &RESPONSE_STATUS_LEVEL, 0).unwrap();
    let mut port = servos.port();
    let mut ask = |request: Request<'_>| {
        let (mut out, mut got) = ([0; 32], [0; 64]);
        let n = request.encode(&mut out).unwrap();
        port.write_all(&out[..n]).unwrap();
        let now = port.now();
        port.read(&mut got, now).unwrap()
    };
    assert_eq!(ask(Request::Ping(ID.into())), 6);
    assert_eq!(ask(Request::Read(ID, Block::new(56, 2))), 8);
    assert_eq!(ask(Request::Write(ID.into(), 41, &[1])), 0);
    assert_eq!(ask(Request::RegWrite(ID.into(), 41, &[1])), 0);
    assert_eq!(ask(Request::Ping(Target::All)), 36);
    assert_eq!(ask(Request::Write(Target::All, 41, &[1])), 0);
    assert_eq!(ask(Request::Read(ID, Block::new(120, 20))), 6 + 8, "the memory ends at 128");
}

#[test]
fn reset_restores_the_factory_and_reboot_the_eeprom() {
    let (_, servos, mut bus) = rig();
    bus.write_register(ID, &LOCK, 0).unwrap();
    bus.write_register(ID, &HOMING_OFFSET, 5).unwrap();
    bus.write_register(ID, &TORQUE_ENABLE, 1).unwrap();
    let mut port = servos.port();
    let mut send = |request: Request<'_>| {
        let mut out = [0; 8];
        let n = request.encode(&mut out).unwrap();
        port.write_all(&out[..n]).unwrap();
    };
    send(Request::Reboot(ID));
    assert_eq!(servos.register(PAN, &TORQUE_ENABLE).unwrap(), 0);
    assert_eq!(servos.register(PAN, &HOMING_OFFSET).unwrap(), 5);
    send(Request::Reset(ID));
    assert_eq!(servos.register(PAN, &HOMING_OFFSET).unwrap(), 0);
}

#[test]
fn a_damaged_request_is_not_carried_out() {
    let (_, servos, _) = rig();
    let mut port = servos.port();
    port.write_all(&[0xff, 0xff, 1, 4, 3, 40, 1, 0]).unwrap();
    assert_eq!((servos.transactions(), servos.register(PAN, &TORQUE_ENABLE).unwrap()), (0, 0));
}

#[test]
fn true_joints_are_the_calibrations_degrees_between_two_ticks() {
    let (_, servos, _) = rig();
    let calibration = Calibration::model();
    servos.store_calibration(&calibration).unwrap();
    for (joint, c) in calibration.iter() {
        servos.set_ticks(joint, f64::from(c.range_min) + 0.5);
    }
    let joints = servos.true_joints(&calibration);
    let half = 0.5 * 360.0 / 4095.0;
    for (v, (_, c)) in joints.body.iter().zip(calibration.iter()) {
        let low = c.degrees(Ticks(c.range_min)).unwrap().get();
        assert!((v.get() - low - half).abs() < 1e-9);
    }
    let c = calibration.get(JointId::Gripper);
    assert!((joints.gripper.get() - 50.0 / f64::from(c.range_max - c.range_min)).abs() < 1e-9);
    assert_eq!(servos.register(JointId::Gripper, &MAX_POSITION_LIMIT).unwrap(), c.range_max);
}

#[test]
fn the_bus_never_returns_a_wrong_value_on_a_bad_line() {
    let faults = [
        Fault::Drop,
        Fault::Truncate,
        Fault::BadChecksum,
        Fault::BitFlip,
        Fault::Junk,
        Fault::Duplicate,
        Fault::Late(Duration::from_millis(15)),
    ];
    for (seed, fault) in (1..).zip(faults) {
        let clock = VirtualClock::new();
        let options = EmulatorOptions { seed, ..EmulatorOptions::default() };
        let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
        let mut bus = servos.bus();
        servos.inject(FaultRule::always(fault).with_probability(0.4));
        let (mut good, mut bad) = (0, 0);
        for cycle in 0..500_u16 {
            let truth: Vec<i32> =
                JOINTS.iter().map(|j| i32::from(cycle) * 7 + 13 * j.index() as i32).collect();
            for (joint, ticks) in JOINTS.into_iter().zip(&truth) {
                servos.set_ticks(joint, f64::from(*ticks));
            }
            let mut replies = SyncReplies::new();
            bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM, &mut replies).unwrap();
            for ((_, reply), truth) in replies.iter().zip(&truth) {
                match reply {
                    Ok(reply) => {
                        assert_eq!(PRESENT_POSITION.decode(reply.data).unwrap(), *truth, "{fault:?}");
                        good += 1;
                    }
                    Err(_) => bad += 1,
                }
            }
            // Another register of the same length, so that a stale position would be noticed.
            if let Ok(reading) = bus.read_register(ServoId::ARM[2], &GOAL_VELOCITY) {
                assert_eq!(reading.value, 0, "{fault:?}");
            }
            pass(&clock, 33);
        }
        let harmless = matches!(fault, Fault::Junk | Fault::Duplicate | Fault::Late(_));
        assert!(good > 2000 && (bad == 0) == harmless, "{fault:?}: {good} good, {bad} bad");
    }
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let run = |seed| {
        let options = EmulatorOptions { seed, ..EmulatorOptions::default() };
        let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), options);
        servos.inject(FaultRule::always(Fault::Drop).with_probability(0.5));
        let mut bus =
            Bus::with_options(servos.port(), BusOptions { read_retries: 0, ..BusOptions::default() });
        let mut replies = SyncReplies::new();
        let mut missing = Vec::new();
        for _ in 0..20 {
            bus.sync_read(Block::new(0, 1), &ServoId::ARM, &mut replies).unwrap();
            missing.extend(replies.iter().map(|(_, r)| r == Err(ReplyFault::Missing)));
        }
        missing
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn sync_writes_reach_each_servo_with_its_own_bytes() {
    let (_, servos, mut bus) = rig();
    let rows =
        [SyncRow { id: ServoId::ARM[4], data: &[1, 1] }, SyncRow { id: ServoId::ARM[0], data: &[2, 2] }];
    bus.sync_write(GOAL_POSITION.address, &rows).unwrap();
    assert_eq!(servos.register(JointId::WristRoll, &GOAL_POSITION).unwrap(), 0x101);
    assert_eq!(servos.register(PAN, &GOAL_POSITION).unwrap(), 0x202);
    assert_eq!(servos.register(JointId::Gripper, &GOAL_POSITION).unwrap(), 2048);
}
