use super::*;
use crate::emulator::{EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::{EmulatedBus, VirtualClock};
use alloc::sync::Arc;
use proptest::prelude::*;

/// Encoder position of each joint's lower stop, and the way to the upper one: the model's range.
fn stops(lows: [i32; 6]) -> [(i32, i32); 6] {
    core::array::from_fn(|i| (lows[i], lows[i] + (plan::model_range(JOINTS[i]).0 / 360.0 * 4096.0) as i32))
}

fn servos_at(start: [i32; 6]) -> EmulatedServos {
    let options = EmulatorOptions { start: start.map(Ticks), ..EmulatorOptions::default() };
    EmulatedServos::new(Arc::new(VirtualClock::new()), options)
}

/// A hand moves all joints to `to`, in encoder steps, while the procedure looks.
fn sweep(servos: &EmulatedServos, calibrator: &mut Calibrator<EmulatedBus>, to: [i32; 6]) {
    let from = servos.true_ticks();
    for step in 1..=40 {
        for (joint, (from, to)) in JOINTS.into_iter().zip(from.into_iter().zip(to)) {
            servos.set_ticks(joint, from + (f64::from(to) - from) * f64::from(step) / 40.0);
        }
        calibrator.sample().unwrap();
    }
}

fn registers_of(servos: &EmulatedServos) -> Vec<[i32; 6]> {
    let read = |j, r| servos.register(j, &r).unwrap();
    JOINTS
        .iter()
        .map(|j| {
            [
                read(*j, registers::HOMING_OFFSET),
                read(*j, registers::MIN_POSITION_LIMIT),
                read(*j, registers::MAX_POSITION_LIMIT),
                read(*j, registers::PHASE),
                read(*j, registers::OPERATING_MODE),
                read(*j, registers::LOCK),
            ]
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn wherever_the_horns_sit_the_middle_of_every_travel_reads_2048(lows in prop::array::uniform6(0..4096_i32)) {
        let stops = stops(lows);
        let middle = stops.map(|(low, high)| (low + high) / 2);
        let servos = servos_at(middle);
        // What an older procedure, or none, has left.
        for joint in JOINTS {
            servos.set_register(joint, &registers::HOMING_OFFSET, -709).unwrap();
            servos.set_register(joint, &registers::PHASE, 12 | i32::from(PHASE_MULTI_TURN)).unwrap();
            servos.set_register(joint, &registers::OPERATING_MODE, 1).unwrap();
        }
        let mut calibrator = Calibrator::begin(servos.bus(), CalibratorOptions::default()).unwrap();
        sweep(&servos, &mut calibrator, stops.map(|(low, _)| low));
        sweep(&servos, &mut calibrator, stops.map(|(_, high)| high));
        sweep(&servos, &mut calibrator, middle);
        calibrator.take_reference(ReferencePose::Roll).unwrap();
        let plan = calibrator.plan().unwrap();
        let done = calibrator.finish(&plan).unwrap();
        servos.power_cycle();
        for (i, (joint, c)) in done.calibration.iter().enumerate() {
            prop_assert_eq!(&registers_of(&servos)[i], &[c.homing_offset, c.range_min, c.range_max, 12, 0, 1]);
            let shown = servos.register(joint, &registers::PRESENT_POSITION).unwrap();
            prop_assert!((shown - 2048).abs() <= 1, "{} shows {}", joint, shown);
            if joint != JointId::WristRoll {
                prop_assert_eq!(c.range_max - c.range_min, stops[i].1 - stops[i].0);
            }
            prop_assert!(done.plan.report[i].notes.is_empty(), "{:?}", done.plan.report[i]);
        }
    }
}

#[test]
fn an_arm_with_torque_is_refused_before_anything_is_written() {
    let servos = servos_at([2048; 6]);
    servos.set_register(JointId::ShoulderLift, &registers::TORQUE_ENABLE, 1).unwrap();
    servos.set_register(JointId::ShoulderLift, &registers::HOMING_OFFSET, 77).unwrap();
    let before = registers_of(&servos);
    let err = Calibrator::begin(servos.bus(), CalibratorOptions::default()).unwrap_err();
    assert!(matches!(&err, Error::Energised { ids } if *ids == [2]), "{err}");
    assert_eq!(registers_of(&servos), before);
}

#[test]
fn a_procedure_that_is_given_up_puts_back_what_was_there() {
    for end in ["abort", "drop"] {
        let servos = servos_at([1000; 6]);
        servos.store_calibration(&Calibration::model()).unwrap();
        servos.set_register(JointId::WristFlex, &registers::PHASE, 12 | i32::from(PHASE_MULTI_TURN)).unwrap();
        servos.set_register(JointId::Gripper, &registers::HOMING_OFFSET, -33).unwrap();
        let before = registers_of(&servos);
        let mut calibrator = Calibrator::begin(servos.bus(), CalibratorOptions::default()).unwrap();
        calibrator.sample().unwrap();
        assert_ne!(registers_of(&servos), before);
        match end {
            "abort" => calibrator.abort().unwrap(),
            _ => drop(calibrator),
        }
        assert_eq!(registers_of(&servos), before, "{end}");
        servos.power_cycle();
        assert_eq!(registers_of(&servos), before, "{end}");
    }
}

#[test]
fn a_joint_that_fell_silent_or_jumped_has_to_be_swept_again() {
    let stops = stops([900; 6]);
    let servos = servos_at(stops.map(|(low, _)| low));
    let mut calibrator = Calibrator::begin(servos.bus(), CalibratorOptions::default()).unwrap();
    sweep(&servos, &mut calibrator, stops.map(|(_, high)| high));
    servos.set_ticks(JointId::ShoulderPan, f64::from(stops[0].1 - 1500));
    servos.inject(FaultRule::always(Fault::Drop).of(ServoId::new(3).unwrap()));
    calibrator.sample().unwrap();
    let Err(Error::Sweep { faults }) = calibrator.plan() else { panic!("such a sweep is taken") };
    let joints: Vec<JointId> = faults.iter().map(|f| f.joint).collect();
    assert_eq!(joints, [JointId::ShoulderPan, JointId::ElbowFlex]);
    let err = calibrator.take_reference(ReferencePose::Roll).unwrap_err();
    assert!(matches!(err, Error::NoReply { id: 3, .. }), "{err}");
    servos.clear_faults();
    calibrator.restart(JointId::ShoulderPan);
    sweep(&servos, &mut calibrator, stops.map(|(low, _)| low));
    sweep(&servos, &mut calibrator, stops.map(|(_, high)| high));
    calibrator.plan().unwrap();
}

#[test]
fn lerobots_order_needs_its_middle_pose_and_gives_lerobots_numbers() {
    let stops = stops([100, 500, 3000, 2500, 0, 4000]);
    let middle = stops.map(|(low, high)| (low + high) / 2);
    let servos = servos_at(middle);
    let options = CalibratorOptions::default().with_order(HomingOrder::MidPoseFirst);
    let mut calibrator = Calibrator::begin(servos.bus(), options).unwrap();
    assert!(matches!(calibrator.plan(), Err(Error::CalibrationStep { .. })));
    calibrator.take_mid_pose().unwrap();
    sweep(&servos, &mut calibrator, stops.map(|(low, _)| low));
    sweep(&servos, &mut calibrator, stops.map(|(_, high)| high));
    sweep(&servos, &mut calibrator, middle);
    let plan = calibrator.plan().unwrap();
    let done = calibrator.finish(&plan).unwrap();
    for (i, (joint, c)) in done.calibration.iter().enumerate() {
        // `_get_half_turn_homings`: reading less int(4095 / 2); the register holds it modulo a turn.
        assert_eq!((c.homing_offset - (middle[i] - 2047)).rem_euclid(4096), 0, "{joint}");
        assert_eq!(servos.register(joint, &registers::PRESENT_POSITION).unwrap(), 2047, "{joint}");
    }
}

#[test]
fn a_reference_pose_of_the_whole_arm_measures_the_middles_and_sets_the_roll() {
    let stops = stops([900; 6]);
    let middle = stops.map(|(low, high)| (low + high) / 2);
    let servos = servos_at(middle);
    let mut calibrator = Calibrator::begin(servos.bus(), CalibratorOptions::default()).unwrap();
    sweep(&servos, &mut calibrator, stops.map(|(low, _)| low));
    sweep(&servos, &mut calibrator, stops.map(|(_, high)| high));
    // The rest pose of this arm: pan at its middle, lift 60 deg below where the horn's middle has it, roll at 30 deg.
    let mut pose = middle;
    pose[1] = middle[1] - 683;
    sweep(&servos, &mut calibrator, pose);
    let angles = [0.0, -65.0, 0.0, 0.0, 30.0].map(|deg: f64| Radians(deg.to_radians()));
    calibrator.take_reference(ReferencePose::Arm(angles)).unwrap();
    let plan = calibrator.plan().unwrap();
    let lift = plan.report[1].middle_measured.unwrap();
    assert!((lift.0 + 5.0).abs() < 0.1, "{lift}");
    assert!(plan.report[0].middle_measured.unwrap().0.abs() < 0.1);
    let done = calibrator.finish(&plan).unwrap();
    let roll = servos.register(JointId::WristRoll, &registers::PRESENT_POSITION).unwrap();
    assert!((done.calibration.get(JointId::WristRoll).degrees(Ticks(roll)).unwrap().0 - 30.0).abs() < 0.1);
    let nan = [Radians(f64::NAN); 5];
    let mut again = Calibrator::begin(servos.bus(), CalibratorOptions::default()).unwrap();
    assert!(matches!(again.take_reference(ReferencePose::Arm(nan)), Err(Error::NonFinite { .. })));
}

#[test]
fn a_lost_reply_to_a_write_is_looked_at_again_and_a_deaf_register_is_an_error() {
    let servos = servos_at([2048; 6]);
    let id = ServoId::new(4).unwrap();
    let mut bus = servos.bus();
    // Every second reply is lost: the write's one too, in the end.
    servos.inject(FaultRule::always(Fault::Drop).with_probability(0.3));
    let mut done = 0;
    for value in 1..200 {
        match super::eeprom::ensure(&mut bus, id, &registers::HOMING_OFFSET, value) {
            Ok(written) => {
                assert!(written);
                assert_eq!(servos.register(JointId::WristFlex, &registers::HOMING_OFFSET).unwrap(), value);
                done += 1;
            }
            Err(e) => assert!(matches!(e, Error::NoReply { .. }), "{e}"),
        }
    }
    assert!(done > 100, "{done}");
    servos.clear_faults();
    // A read-only register stands for one that the servo does not take.
    let err = super::eeprom::ensure(&mut bus, id, &registers::PRESENT_VOLTAGE, 99).unwrap_err();
    assert!(matches!(err, Error::RegisterNotTaken { id: 4, value: 99, held: 74, .. }), "{err}");
}
