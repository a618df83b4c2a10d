#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use so101_hal::emulator::{Fault, FaultRule};
use so101_hal::registers::Register;
use so101_hal::{EmulatedServos, EmulatorOptions, JOINTS, JointId, VirtualClock, registers};

use super::*;
use crate::preflight::program::follower_registers;

fn arm() -> (EmulatedServos, VirtualClock) {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    servos.store_calibration(&Calibration::model()).unwrap();
    follower_registers(&servos).unwrap();
    (servos, clock)
}

fn diagnose((servos, clock): &(EmulatedServos, VirtualClock)) -> Diagnosis {
    let mut source = scan::Source::Emulated(servos.clone(), Arc::new(clock.clone()));
    let heard = scan::every_rate(&mut source, scan::Ids::Near).unwrap();
    look(&mut servos.bus(), clock, &heard).unwrap()
}

#[track_caller]
fn finds(spoil: impl FnOnce(&EmulatedServos), id: &str, what: &str, todo: &str) {
    let arm = arm();
    spoil(&arm.0);
    let found = diagnose(&arm);
    let hit = found.findings.iter().find(|f| f.id == id);
    let Some(f) = hit else { panic!("no finding {id}: {:?}", found.findings) };
    assert!(f.what.contains(what), "{f:?}");
    assert!(f.todo.contains(todo), "{f:?}");
}

fn set(joint: JointId, register: &'static Register, value: i32) -> impl FnOnce(&EmulatedServos) {
    move |servos| servos.set_register(joint, register, value).unwrap()
}

#[test]
fn an_arm_in_order_has_no_findings_and_its_dump_has_every_register() {
    let found = diagnose(&arm());
    assert_eq!(found.findings, []);
    let text = found.to_text();
    assert!(text.contains("1000000 baud  1, 2, 3, 4, 5, 6"), "{text}");
    assert!(text.contains("findings\n  none"), "{text}");
    for register in registers::TABLE {
        let name = register.name.replace("Velocity_closed_loop_", "Velocity_");
        assert!(text.contains(&name), "{name}");
    }
    let json = found.to_json();
    assert_eq!(json["servos"][2]["registers"]["Model_Number"], 777);
    assert_eq!(json["heard"][0]["ids"], serde_json::json!([1, 2, 3, 4, 5, 6]));
}

#[test]
fn a_chain_that_is_dead_behind_a_servo_is_named() {
    let dead = |s: &EmulatedServos| {
        for id in [4, 5, 6] {
            s.inject(FaultRule::always(Fault::Drop).of(ServoId::new(id).unwrap()));
        }
    };
    finds(dead, "chain", "the chain is dead after id 3", "cable behind servo 3");
    finds(|s| s.inject(FaultRule::always(Fault::Drop)), "chain", "no servo answers", "supply");
}

#[test]
fn two_servos_with_one_id_are_found_and_the_missing_one_is_explained() {
    let arm = arm();
    arm.0.set_register(JointId::ElbowFlex, &registers::ID, 2).unwrap();
    let found = diagnose(&arm);
    let of = |id| found.findings.iter().find(|f| f.id == id).unwrap();
    assert!(of("shared_id").what.contains("two servos share id 2"), "{:?}", found.findings);
    assert!(of("chain").what.contains("no answer of servo 3"), "{:?}", found.findings);
    assert!(of("chain").todo.contains("servo 2 answer twice"), "{:?}", found.findings);
}

#[test]
fn each_pain_of_the_field_is_found_and_says_what_to_do() {
    use JointId::{ElbowFlex, Gripper, ShoulderLift, ShoulderPan, WristFlex};
    finds(
        |s| s.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[4]).with_probability(0.3)),
        "packet_errors",
        "servo 5: ",
        "press its plugs in",
    );
    finds(set(Gripper, &registers::ID, 9), "stray_id", "servo 9", "setup_motors");
    finds(
        set(ElbowFlex, &registers::MIN_VOLTAGE_LIMIT, 95),
        "voltage_variant",
        "a 12 V variant on 7.4 V",
        "12 V",
    );
    finds(
        set(WristFlex, &registers::FIRMWARE_MINOR, 9),
        "firmware_equal",
        "servo 4 (wrist_flex): 3.9",
        "version",
    );
    finds(set(Gripper, &registers::TORQUE_LIMIT, 1000), "gripper_limits", "torque 1000", "48");
    finds(set(ShoulderPan, &registers::PRESENT_VOLTAGE, 38), "voltage_idle", "3.8 V of 4.0", "too low");
    finds(set(ShoulderPan, &registers::PRESENT_VOLTAGE, 38), "alarm", "voltage", "measure the supply");
    finds(set(ShoulderLift, &registers::PHASE, 0x1c), "phase_bit_4", "set (0x1c)", "calibrate");
    finds(set(ShoulderLift, &registers::LOCK, 0), "eeprom_unlocked", "servo 2 (shoulder_lift)", "LeRobot");
}

#[test]
fn stiff_limp_and_lagging_servos_are_told_apart() {
    let hold = |s: &EmulatedServos, phase: i32, goal: i32, limit: i32| {
        s.set_stops(JointId::WristFlex, 0.0, 2048.0);
        for (register, value) in [
            (&registers::PHASE, phase),
            (&registers::TORQUE_ENABLE, 1),
            (&registers::TORQUE_LIMIT, limit),
            (&registers::GOAL_POSITION, goal),
        ] {
            s.set_register(JointId::WristFlex, register, value).unwrap();
        }
    };
    finds(|s| hold(s, 12, 2100, 1000), "tracking_error", "holds 52 steps", "dead band");
    finds(|s| hold(s, 4, 2100, 1000), "speed_zero", "stands still", "register 46");
    finds(|s| hold(s, 12, 2048, 0), "torque_limit", "limp", "register 48");
}

#[test]
fn faults_stand_before_notes() {
    let arm = arm();
    for joint in JOINTS {
        arm.0.set_register(joint, &registers::LOCK, 0).unwrap();
    }
    arm.0.set_register(JointId::ShoulderPan, &registers::OPERATING_MODE, 1).unwrap();
    let found = diagnose(&arm).findings;
    assert_eq!(found[0].severity, Severity::Fault, "{found:?}");
    assert!(found.windows(2).all(|w| w[0].severity <= w[1].severity));
}
