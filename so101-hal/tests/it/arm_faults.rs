//! Silence, wrong numbers, overloads, stalls and unplugged adapters: what the arm makes of them.

use std::time::Duration;

use so101_hal::arm::{Clip, Health, IncidentKind, MotionLimits, StallRule};
use so101_hal::emulator::{Fault, FaultRule};
use so101_hal::protocol::{Alarms, ServoId};
use so101_hal::registers::{self, GOAL_POSITION, TORQUE_ENABLE, TORQUE_LIMIT};
use so101_hal::{Arm, Calibration, Clock as _, Degrees, Error, JOINTS, JointId, Ticks};

use crate::arm_support::Rig;

/// Longer than the bus leaves a servo alone that it has given up on.
const BUS_QUARANTINE_MS: u64 = 300;

fn silence(rig: &Rig, index: usize) {
    rig.servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[index]));
}

#[test]
fn silence_of_one_joint_stops_the_goals_after_100_ms_and_they_go_on_when_it_answers() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let here = arm.read_joints().unwrap();
    silence(&rig, 3);
    let mut refused = false;
    for _ in 0..8 {
        arm.update().unwrap();
        let age = rig.clock.now().since(arm.states()[3].at);
        let is_good = age <= Duration::from_millis(100);
        assert_eq!(arm.health(), if is_good { Health::Good } else { Health::Degraded }, "{age:?}");
        let goals = rig.servos.transactions();
        match arm.send(&here, rig.clock.now()) {
            Ok(_) => assert!(is_good),
            Err(Error::ArmDegraded { joint: JointId::WristFlex, silent }) => {
                assert!(silent > Duration::from_millis(100) && rig.servos.transactions() >= goals);
                refused = true;
            }
            Err(e) => panic!("{e}"),
        }
        if rig.clock.now().since(arm.states()[3].at) > Duration::from_millis(350) {
            break;
        }
    }
    assert!(refused);
    rig.servos.clear_faults();
    rig.pass_ms(BUS_QUARANTINE_MS);
    arm.update().unwrap();
    assert_eq!(arm.health(), Health::Good);
    arm.send(&here, rig.clock.now()).unwrap();
}

#[test]
fn after_500_ms_the_arm_is_lost_and_only_resuming_brings_it_back_where_it_is() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let mut goal = arm.read_joints().unwrap();
    let sent = arm.send(&goal, rig.clock.now()).unwrap();
    silence(&rig, 0);
    let began = rig.clock.now();
    while arm.health() != Health::Lost {
        arm.update().unwrap();
        rig.pass_ms(10);
        assert!(rig.clock.now().since(began) < Duration::from_secs(2));
    }
    assert!(rig.clock.now().since(began) > Duration::from_millis(500));
    rig.servos.clear_faults();
    rig.pass_ms(BUS_QUARANTINE_MS);
    // Somebody has pushed the arm meanwhile; it answers again, and still follows nothing.
    rig.servos.set_ticks(JointId::ShoulderPan, 2111.0);
    arm.update().unwrap();
    assert_eq!(arm.health(), Health::Lost);
    goal.body[0].0 += 5.0;
    let err = arm.send(&goal, rig.clock.now()).unwrap_err();
    assert!(matches!(err, Error::ArmHeld { joint: JointId::ShoulderPan, .. }), "{err}");
    assert_eq!(rig.register(&GOAL_POSITION), sent.ticks.map(|t| t.0), "the servos hold what they were told");
    assert_eq!(rig.torques(), [1; 6]);
    rig.servos.set_ticks(JointId::ShoulderPan, 2111.0);
    arm.resume().unwrap();
    assert_eq!(rig.register(&GOAL_POSITION)[0], 2111);
    assert_eq!(arm.health(), Health::Good);
    goal.body[0] = arm.read_joints().unwrap().body[0];
    arm.send(&goal, rig.clock.now()).unwrap();
}

#[test]
fn resuming_needs_every_joint() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    silence(&rig, 5);
    while arm.health() != Health::Lost {
        arm.update().unwrap();
        rig.pass_ms(20);
    }
    assert!(matches!(arm.resume(), Err(Error::NoReply { id: 6, .. })));
    assert_eq!(arm.health(), Health::Lost);
}

#[test]
fn a_program_that_did_not_read_for_long_reads_before_it_sends() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let here = arm.read_joints().unwrap();
    rig.pass_ms(5000);
    arm.send(&here, rig.clock.now()).unwrap();
    assert_eq!(arm.states()[0].at, rig.clock.now());
    rig.pass_ms(5000);
    silence(&rig, 2);
    let err = arm.send(&here, rig.clock.now()).unwrap_err();
    assert!(matches!(err, Error::ArmDegraded { joint: JointId::ElbowFlex, .. }), "{err}");
}

#[test]
fn a_wrong_position_with_a_right_checksum_is_not_believed() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let here = arm.read_joints().unwrap();
    for ghost in [0.0, 1000.0, 4000.0] {
        rig.pass_ms(7);
        arm.bus_mut().seen.lock().unwrap().ghosts = vec![(JointId::ElbowFlex, ghost)];
        assert_eq!(arm.read_joints().unwrap(), here, "{ghost}");
    }
    assert_eq!(arm.states()[2].implausible, 3);
    assert_eq!(arm.states()[2].missed, 0);
}

#[test]
fn a_wrong_position_never_becomes_a_goal_when_torque_goes_on() {
    // Wrong in the first, or in the second of the two readings.
    for place in [0, 1] {
        let rig = Rig::new();
        let mut arm = rig.relaxed();
        let mut ghosts = vec![(JointId::WristRoll, 3000.0)];
        if place == 1 {
            // The last entry is shown first: a reading that changes nothing.
            ghosts.push((JointId::WristRoll, 2048.0));
        }
        arm.bus_mut().seen.lock().unwrap().ghosts = ghosts;
        let _held = arm.hold().unwrap();
        assert_eq!(rig.register(&GOAL_POSITION), [2048; 6]);
    }
}

#[test]
fn a_joint_that_was_really_moved_far_is_believed_at_once() {
    let rig = Rig::new();
    let mut arm = rig.relaxed();
    arm.update().unwrap();
    rig.servos.set_ticks(JointId::ShoulderPan, 3000.0);
    arm.update().unwrap();
    assert_eq!(arm.states()[0].telemetry.position, Ticks(3000));
    // Past the end of the encoder's turn is near.
    rig.servos.set_ticks(JointId::WristRoll, 4090.0);
    arm.update().unwrap();
    let asked = rig.servos.transactions();
    rig.servos.set_ticks(JointId::WristRoll, 4100.0);
    arm.update().unwrap();
    assert_eq!(arm.states()[4].telemetry.position, Ticks(4));
    assert_eq!(rig.servos.transactions(), asked + 1);
}

#[test]
fn an_alarm_that_has_gone_by_the_next_read_is_still_there_until_it_is_taken() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    assert_eq!(arm.take_alarms(), [Alarms::NONE; 6]);
    rig.servos.set_register(JointId::Gripper, &registers::PRESENT_VOLTAGE, 35).unwrap();
    arm.update().unwrap();
    rig.servos.set_register(JointId::Gripper, &registers::PRESENT_VOLTAGE, 74).unwrap();
    rig.servos.set_register(JointId::ElbowFlex, &registers::PRESENT_TEMPERATURE, 90).unwrap();
    arm.update().unwrap();
    rig.servos.set_register(JointId::ElbowFlex, &registers::PRESENT_TEMPERATURE, 30).unwrap();
    arm.update().unwrap();
    assert_eq!(arm.states().map(|s| s.alarms), [Alarms::NONE; 6]);
    let mut want = [Alarms::NONE; 6];
    want[5] = Alarms::VOLTAGE;
    want[2] = Alarms::HEAT;
    assert_eq!((*arm.alarms(), arm.take_alarms()), (want, want));
    assert_eq!(arm.take_alarms(), [Alarms::NONE; 6]);
}

/// The elbow against a stop 300 ticks before its goal.
fn against_a_stop(rig: &Rig) {
    rig.servos.set_stops(JointId::ElbowFlex, 0.0, 2100.0);
}

#[test]
fn an_overloaded_joint_rests_loses_torque_and_comes_back() {
    let rig = Rig::new();
    against_a_stop(&rig);
    let limits = MotionLimits::unlimited();
    let mut arm = rig.armed(rig.options().with_limits(limits));
    let mut goal = arm.read_joints().unwrap();
    goal.body[2] = Degrees(35.0);
    // The emulated servo starts its overload timer anew with every goal that it gets.
    arm.send(&goal, rig.clock.now()).unwrap();
    let mut seen = Vec::new();
    let mut rested = false;
    for _ in 0..300 {
        rig.pass_ms(20);
        arm.update().unwrap();
        seen.extend(arm.take_incidents());
        if matches!(seen.last().map(|i| i.kind), Some(IncidentKind::Overloaded)) {
            let sent = arm.send(&goal, rig.clock.now()).unwrap();
            // It rests where it was, whatever is asked.
            assert_eq!(sent.clipped[2], Clip::OVERLOAD);
            assert!((sent.ticks[2].0 - 2100).abs() <= 2, "{:?}", sent.ticks[2]);
            assert_eq!(sent.clipped[0], Clip::NONE);
            rested = true;
        }
        if seen.len() >= 2 {
            break;
        }
    }
    assert!(rested);
    let kinds: Vec<IncidentKind> = seen.iter().map(|i| i.kind).collect();
    let cleared = IncidentKind::Cleared { from_permille: 1000, to_permille: 750 };
    assert_eq!(kinds, [IncidentKind::Overloaded, cleared]);
    assert!(seen[1].at.since(seen[0].at) >= Duration::from_secs(1));
    assert_eq!((seen[0].joint, seen[0].position), (JointId::ElbowFlex, Ticks(2100)));
    assert_eq!(rig.register(&TORQUE_LIMIT), [1000, 1000, 750, 1000, 1000, 1000]);
    assert_eq!(rig.torques(), [1; 6]);
    assert!(arm.alarms()[2].contains(Alarms::OVERLOAD));

    // The limit is not raised while the arm is armed; between episodes it is, by a call of its own.
    let mut arm = arm.hold();
    let raised = arm.restore_torque_limits().unwrap();
    assert_eq!((raised.len(), raised[0].from, raised[0].to), (1, 750, 1000));
    assert_eq!(rig.register(&TORQUE_LIMIT), [1000; 6]);
    assert!(arm.restore_torque_limits().unwrap().is_empty());
}

#[test]
fn a_joint_that_pushes_against_something_is_eased_and_lets_go_with_its_goal() {
    let rig = Rig::new();
    against_a_stop(&rig);
    let rule = StallRule::new(300.0, Ticks(80), Duration::from_millis(500));
    let limits = MotionLimits::unlimited().with_stall(Some(rule), None);
    let mut arm = rig.armed(rig.options().with_limits(limits));
    let start = arm.read_joints().unwrap();
    let mut goal = start;
    goal.body[2] = Degrees(35.0);
    let began = rig.clock.now();
    let stalled = loop {
        rig.pass_ms(20);
        arm.update().unwrap();
        let sent = arm.send(&goal, rig.clock.now()).unwrap();
        if let Some(incident) = arm.take_incidents().pop() {
            assert_eq!((incident.kind, incident.joint), (IncidentKind::Stalled, JointId::ElbowFlex));
            assert!(incident.current_ma >= 300.0);
            break sent;
        }
        assert_eq!(sent.clipped[2], Clip::NONE);
        assert!(rig.clock.now().since(began) < Duration::from_secs(3));
    };
    assert!(rig.clock.now().since(began) >= Duration::from_millis(500));
    // It goes on pushing, with 80 steps and no more.
    assert_eq!((stalled.clipped[2], stalled.ticks[2]), (Clip::STALL, Ticks(2180)));
    for _ in 0..100 {
        rig.pass_ms(20);
        arm.update().unwrap();
        let sent = arm.send(&goal, rig.clock.now()).unwrap();
        assert_eq!((sent.clipped[2], sent.ticks[2]), (Clip::STALL, Ticks(2180)));
    }
    assert!(arm.take_incidents().is_empty(), "one stall is one incident, and no overload follows");
    // What was in the way is gone: it walks on. A goal nearby lets go altogether.
    rig.servos.set_stops(JointId::ElbowFlex, 0.0, 4095.0);
    rig.pass_ms(200);
    arm.update().unwrap();
    let sent = arm.send(&goal, rig.clock.now()).unwrap();
    assert!(sent.ticks[2].0 > 2200, "{:?}", sent.ticks[2]);
    arm.send(&start, rig.clock.now()).unwrap();
    rig.pass_ms(1000);
    arm.update().unwrap();
    let sent = arm.send(&start, rig.clock.now()).unwrap();
    assert_eq!(sent.clipped, [Clip::NONE; 6]);
    assert_eq!(
        sent.ticks[2],
        Calibration::model().to_ticks(&start, so101_hal::Rounding::Truncate).unwrap()[2]
    );
}

#[test]
fn the_same_arm_is_taken_up_again_after_an_unplug_and_another_one_is_not() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let goal = arm.read_joints().unwrap();
    rig.servos.set_ticks(JointId::ShoulderPan, 2100.0);
    arm.reconnect().unwrap();
    assert_eq!(rig.register(&GOAL_POSITION)[0], 2100, "nothing jumps");
    assert_eq!(rig.torques(), [1; 6]);
    assert_eq!(arm.health(), Health::Lost);
    assert!(matches!(arm.send(&goal, rig.clock.now()), Err(Error::ArmHeld { .. })));
    arm.resume().unwrap();
    arm.send(&goal, rig.clock.now()).unwrap();
    // The stop goes by the new line.
    arm.emergency_stop().stop().unwrap();
    assert_eq!(rig.torques(), [0; 6]);

    for (register, what) in [
        (registers::HOMING_OFFSET, "homing offset"),
        (registers::MIN_POSITION_LIMIT, "lower position limit"),
        (registers::MAX_POSITION_LIMIT, "upper position limit"),
    ] {
        let rig = Rig::new();
        let mut arm = rig.armed(rig.unlimited());
        rig.servos.set_register(JointId::WristFlex, &register, 1000).unwrap();
        let err = arm.reconnect().unwrap_err();
        assert!(
            matches!(err, Error::OtherArm { joint: JointId::WristFlex, id: 4, what: w, now: 1000, .. } if w == what),
            "{err}"
        );
        let goal = arm.read_joints().unwrap();
        assert!(matches!(arm.send(&goal, rig.clock.now()), Err(Error::ArmHeld { .. })));
    }
}

#[test]
fn reconnecting_does_not_energise_servos_that_have_lost_their_power() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    rig.servos.power_cycle();
    arm.reconnect().unwrap();
    assert_eq!(rig.torques(), [0; 6]);
    arm.resume().unwrap();
    assert_eq!(rig.torques(), [1; 6]);

    // A relaxed arm that somebody else has energised meanwhile is no relaxed arm.
    let mut arm = arm.relax().unwrap();
    rig.servos.set_register(JointId::Gripper, &TORQUE_ENABLE, 1).unwrap();
    let err = arm.reconnect().unwrap_err();
    assert!(matches!(&err, Error::TorqueFoundOn { ids } if ids == &[6]), "{err}");
    arm.torque_off().unwrap();
    arm.reconnect().unwrap();
}

#[test]
fn a_loss_of_power_while_nobody_reads_is_seen_before_the_next_goal_goes_out() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let goal = arm.read_joints().unwrap();
    rig.pass_ms(10_000);
    rig.servos.power_cycle();
    // It has sagged; all servos answer, and none says a word.
    rig.servos.set_ticks(JointId::ShoulderLift, 1500.0);
    let err = arm.send(&goal, rig.clock.now()).unwrap_err();
    assert!(matches!(err, Error::ArmHeld { .. }), "{err}");
    assert_eq!(rig.torques(), [0; 6]);
    arm.resume().unwrap();
    assert_eq!(rig.register(&GOAL_POSITION)[1], 1500, "nothing jumps");
}

#[test]
fn an_arm_that_was_not_looked_at_after_the_port_came_back_is_looked_at_before_it_is_energised() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    rig.servos.detach(JointId::WristRoll);
    assert!(arm.reconnect().is_err(), "a servo is missing");
    rig.servos.attach(JointId::WristRoll);
    rig.servos.set_register(JointId::WristFlex, &registers::HOMING_OFFSET, 700).unwrap();
    rig.servos.power_cycle();
    rig.pass_ms(BUS_QUARANTINE_MS);
    let err = arm.resume().unwrap_err();
    assert!(matches!(err, Error::OtherArm { joint: JointId::WristFlex, .. }), "{err}");
    assert_eq!(rig.torques(), [0; 6]);
    rig.servos.set_register(JointId::WristFlex, &registers::HOMING_OFFSET, 0).unwrap();
    arm.resume().unwrap();
    assert_eq!(rig.torques(), [1; 6]);
}

#[test]
fn a_servo_that_has_restarted_is_not_driven_until_the_operator_resumes() {
    // After silence, and with nothing but its voltage alarm.
    for is_silent in [true, false] {
        let rig = Rig::new();
        let mut arm = rig.armed(rig.unlimited());
        let goal = arm.read_joints().unwrap();
        if is_silent {
            silence(&rig, 1);
            arm.update().unwrap();
            rig.servos.clear_faults();
            rig.pass_ms(BUS_QUARANTINE_MS);
        } else {
            rig.servos.set_register(JointId::ShoulderLift, &registers::PRESENT_VOLTAGE, 35).unwrap();
        }
        // The supply has sagged: the servo is limp and the arm has sunk.
        rig.servos.set_register(JointId::ShoulderLift, &TORQUE_ENABLE, 0).unwrap();
        rig.servos.set_ticks(JointId::ShoulderLift, 1500.0);
        let err = loop {
            arm.update().unwrap();
            if let Err(e) = arm.send(&goal, rig.clock.now()) {
                break e;
            }
        };
        assert!(matches!(err, Error::ArmHeld { joint: JointId::ShoulderLift, .. }), "{err}");
        assert_eq!(arm.take_incidents()[0].kind, IncidentKind::TorqueLost);
        assert_eq!(rig.torques(), [1, 0, 1, 1, 1, 1], "no goal has energised it");
        arm.resume().unwrap();
        assert_eq!(rig.register(&GOAL_POSITION)[1], 1500);
        assert_eq!(rig.torques(), [1; 6]);
    }
}

#[test]
fn a_brown_out_of_the_whole_arm_energises_nothing_by_itself() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let goal = arm.read_joints().unwrap();
    rig.servos.brown_out();
    rig.servos.set_ticks(JointId::ElbowFlex, 1800.0);
    arm.update().unwrap();
    assert!(matches!(arm.send(&goal, rig.clock.now()), Err(Error::ArmHeld { .. })));
    assert_eq!(rig.torques(), [0; 6]);
    let incidents = arm.take_incidents();
    assert!(incidents.len() == 6 && incidents.iter().all(|i| i.kind == IncidentKind::TorqueLost));
    assert_eq!(arm.take_alarms(), [Alarms::VOLTAGE; 6]);
    arm.resume().unwrap();
    assert_eq!(rig.register(&GOAL_POSITION)[2], 1800);
}

#[test]
fn an_unplugged_adapter_is_an_error_a_lost_arm_and_after_replugging_the_same_arm() {
    let rig = Rig::new();
    let mut arm = rig.armed(rig.unlimited());
    let goal = arm.read_joints().unwrap();
    rig.servos.unplug();
    let pulled = rig.clock.now();
    while arm.health() != Health::Lost {
        assert!(matches!(arm.update(), Err(Error::PortIo { .. })));
        assert!(arm.send(&goal, rig.clock.now()).is_err() || arm.health() == Health::Good);
        assert!(rig.clock.now().since(pulled) < Duration::from_secs(2));
        rig.pass_ms(10);
    }
    assert!(arm.reconnect().is_err(), "it is still out");
    assert_eq!(rig.torques(), [1; 6], "the servos have heard nothing of it");
    rig.servos.replug();
    assert!(arm.update().is_err(), "the old port is gone for good");
    rig.servos.set_ticks(JointId::ShoulderPan, 2010.0);
    arm.reconnect().unwrap();
    assert_eq!(rig.register(&GOAL_POSITION)[0], 2010);
    assert!(matches!(arm.send(&goal, rig.clock.now()), Err(Error::ArmHeld { .. })));
    arm.resume().unwrap();
    let here = arm.read_joints().unwrap();
    arm.send(&here, rig.clock.now()).unwrap();
}

#[test]
fn on_a_line_with_every_fault_no_servo_is_ever_told_something_far_from_the_goal() {
    // Five faults at once, 4000 cycles: each reading and each goal is checked against the truth.
    for seed in [1, 2] {
        let clock = so101_hal::VirtualClock::new();
        let mut options = so101_hal::EmulatorOptions::default();
        options.seed = seed;
        let servos = so101_hal::EmulatedServos::new(std::sync::Arc::new(clock.clone()), options);
        servos.store_calibration(&Calibration::model()).unwrap();
        let options = so101_hal::ArmOptions::new(std::sync::Arc::new(clock.clone()));
        let found = Arm::connect(servos.bus(), Calibration::model(), options).unwrap();
        let mut arm = found.into_armed().unwrap();
        for fault in [Fault::Drop, Fault::BitFlip, Fault::Truncate, Fault::Duplicate, Fault::Junk] {
            servos.inject(FaultRule::always(fault).with_probability(0.02));
        }
        let start = servos.true_joints(&Calibration::model());
        for i in 0..2000_u32 {
            clock.sleep_until(clock.now() + Duration::from_millis(10));
            let before = servos.true_ticks();
            if arm.update().is_ok() && arm.health() == Health::Good {
                for ((state, a), b) in arm.states().iter().zip(before).zip(servos.true_ticks()) {
                    if state.missed == 0 {
                        let is = f64::from(state.telemetry.position.0);
                        assert!(is >= a.min(b) - 40.0 && is <= a.max(b) + 40.0, "{is} between {a} and {b}");
                    }
                }
            }
            let mut goal = start;
            goal.body[0].0 += 30.0 * f64::from(i).mul_add(0.02, 0.0).sin();
            match arm.send(&goal, clock.now()) {
                Ok(sent) => {
                    for joint in JOINTS {
                        if sent.clipped[joint.index()].contains(Clip::SILENT) {
                            continue;
                        }
                        let told = servos.register(joint, &GOAL_POSITION).unwrap();
                        assert_eq!(told, sent.ticks[joint.index()].0);
                    }
                }
                Err(Error::ArmDegraded { .. }) => {}
                Err(Error::ArmHeld { .. }) => arm.resume().unwrap_or(()),
                Err(e) => panic!("{e}"),
            }
        }
    }
}
