use super::*;
use so101_hal::{JointId, Ticks};

fn emulated(dir: &std::path::Path) -> CalibrateArgs {
    CalibrateArgs {
        arm: ArmArgs {
            rig: Some(crate::hardware::HardwareRig::Emulated),
            calibration: Some(dir.join("arm.json")),
            ..ArmArgs::default()
        },
        verbosity: Verbosity { verbose: 0, quiet: true },
        ..CalibrateArgs::default()
    }
}

/// One session on emulated servos; returns them and the file.
fn calibrated(args: &CalibrateArgs) -> (so101_hal::EmulatedServos, Calibration) {
    let (servos, clock) = EmulatedHands::servos(false);
    let target = target(args, &Where::Emulated).unwrap();
    let mut hands = EmulatedHands::new(servos.clone());
    let exit = session(args, &mut servos.bus(), clock.as_ref(), &mut hands, target.clone()).unwrap();
    assert_eq!(exit, Exit::Ok);
    let calibration = Calibration::load(&target.unwrap()).unwrap();
    (servos, calibration)
}

#[test]
fn the_emulated_arm_is_calibrated_and_its_middles_read_2048_over_the_wrap_of_the_encoder() {
    let dir = tempfile::tempdir().unwrap();
    let (servos, calibration) = calibrated(&emulated(dir.path()));
    for (joint, c) in calibration.iter() {
        let shown = servos.register(joint, &registers::PRESENT_POSITION).unwrap();
        assert!((shown - 2048).abs() <= 1, "{joint} shows {shown}");
        assert_eq!(servos.register(joint, &registers::HOMING_OFFSET).unwrap(), c.homing_offset);
        if joint != JointId::WristRoll {
            let middle = c.degrees(Ticks(shown)).unwrap();
            assert!(middle.0.abs() < 0.2, "{joint}");
        }
    }
    assert_eq!(recognise(&calibration), (CalibrationStyle::SweepFirst, Vec::new()));
}

#[test]
fn lerobots_order_is_recognised_by_its_numbers_and_the_older_file_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = emulated(dir.path());
    let (_, first) = calibrated(&args);
    args.lerobot_order = true;
    let (_, second) = calibrated(&args);
    assert_eq!(recognise(&second).0, CalibrationStyle::MidPoseFirst);
    assert_eq!(Calibration::load(&dir.path().join("arm.json.bak")).unwrap(), first);
}

#[test]
fn the_reference_pose_of_the_whole_arm_measures_the_middles() {
    let dir = tempfile::tempdir().unwrap();
    let args = CalibrateArgs { reference: Reference::Arm, ..emulated(dir.path()) };
    let (servos, clock) = EmulatedHands::servos(false);
    let mut bus = servos.bus();
    let mut calibrator = Calibrator::begin(&mut bus, CalibratorOptions::default()).unwrap();
    let mut hands = EmulatedHands::new(servos.clone());
    let plan = measured(&args, &mut calibrator, clock.as_ref(), &mut hands).unwrap().unwrap();
    assert!(plan.report[..4].iter().all(|r| r.middle_measured.unwrap().0.abs() < 0.2), "{:?}", plan.report);
    assert!(plan.table().contains("measured"), "{}", plan.table());
}

#[test]
fn a_real_arm_needs_a_name_and_a_folder_too() {
    let port = Where::Port("/dev/x".to_owned());
    let dir = tempfile::tempdir().unwrap();
    let mut args = CalibrateArgs::default();
    assert!(matches!(target(&args, &port), Err(Error::Usage(m)) if m.contains("--id")));
    args.arm.calibration = Some(dir.path().to_owned());
    assert!(matches!(target(&args, &port), Err(Error::Usage(m)) if m.contains("--id")));
    args.arm.id = Some("blue".to_owned());
    assert_eq!(target(&args, &port).unwrap(), Some(dir.path().join("blue.json")));
    assert_eq!(target(&CalibrateArgs::default(), &Where::Emulated).unwrap(), None);
}

#[test]
fn an_arm_that_is_energised_is_relaxed_by_its_operator_first() {
    let (servos, clock) = EmulatedHands::servos(false);
    servos.set_register(JointId::ElbowFlex, &registers::TORQUE_ENABLE, 1).unwrap();
    assert!(relaxed(&mut servos.bus(), clock.as_ref(), &mut EmulatedHands::new(servos.clone())).unwrap());
    assert_eq!(servos.register(JointId::ElbowFlex, &registers::TORQUE_ENABLE).unwrap(), 0);
}
