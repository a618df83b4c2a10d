use so101_hal::{Calibration, JointCalibration};

use super::*;

fn other() -> Calibration {
    Calibration::new(Calibration::model().joints().map(|c| JointCalibration { homing_offset: 77, ..c }))
}

fn args(folder: &std::path::Path) -> FindPortArgs {
    std::fs::write(folder.join("blue.json"), Calibration::model().to_json()).unwrap();
    std::fs::write(folder.join("red.json"), other().to_json()).unwrap();
    FindPortArgs {
        rig: Some(HardwareRig::Emulated),
        calibration: Some(folder.to_owned()),
        ..FindPortArgs::default()
    }
}

#[test]
fn an_emulated_arm_is_named_by_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = args(dir.path());
    let known = known::read(args.calibration.as_deref()).unwrap();
    for (id, wanted) in [(None, "blue"), (Some("red"), "red")] {
        args.id = id.map(str::to_owned);
        let ports = look(&args, &Discovery::system(), &known).unwrap();
        let arm = ports[0].arm.as_ref().unwrap();
        assert_eq!((arm.answered, arm.id()), (6, Some(wanted)));
        let text = report::text(&ports, &known, true);
        assert!(text.contains(&format!("arm     {wanted}, exactly")), "{text}");
        let rule = report::udev(&ports);
        assert!(rule.contains(&format!("SYMLINK+=\"so101_{wanted}\"")), "{rule}");
    }
    args.id = Some("green".to_owned());
    assert!(matches!(look(&args, &Discovery::system(), &known), Err(Error::Usage(_))));
}

#[test]
fn a_folder_with_a_bad_file_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("torn.json"), "{").unwrap();
    let error = known::read(Some(dir.path())).unwrap_err();
    assert!(error.one_line().contains("torn.json"), "{}", error.one_line());
}

#[test]
fn swapped_arms_are_told_with_their_ports() {
    let found = |path: &str, id: &str| {
        let mut found = Found::new(PortInfo::new(path));
        found.arm = Some(FoundArm {
            fingerprint: Fingerprint::default(),
            answered: 6,
            role: None,
            calibration: Match::Exact { ids: vec![id.to_owned()] },
        });
        found
    };
    let ports = [found("/dev/a", "leader black"), found("/dev/b", "follower blue")];
    let mut args = FindPortArgs {
        identify: true,
        port: Some("/dev/a".to_owned()),
        id: Some("blue".to_owned()),
        leader_port: Some("/dev/b".to_owned()),
        leader_id: Some("black".to_owned()),
        ..FindPortArgs::default()
    };
    let wrong = misplaced(&args, &Discovery::system(), &ports).unwrap();
    let lines: Vec<String> = wrong.iter().map(report::misplaced).collect();
    assert_eq!(lines, ["blue is not on /dev/a but on /dev/b", "black is not on /dev/b but on /dev/a"]);
    (args.port, args.leader_port) = (args.leader_port, args.port);
    assert!(misplaced(&args, &Discovery::system(), &ports).unwrap().is_empty());
    args.identify = false;
    assert!(matches!(misplaced(&args, &Discovery::system(), &ports), Err(Error::Usage(_))));
}

#[test]
fn two_arms_of_one_kind_get_two_names() {
    let port = |path: &str, socket: &str| {
        let mut port = emulated_port();
        port.path = path.to_owned();
        port.serial = None;
        port.usb_socket = Some(socket.to_owned());
        Found::new(port)
    };
    let rules = report::udev(&[port("/dev/ttyUSB0", "1-1"), port("/dev/ttyUSB1", "1-2")]);
    assert!(rules.contains("KERNELS==\"1-1\", MODE=\"0666\", SYMLINK+=\"so101_arm\""), "{rules}");
    assert!(rules.contains("KERNELS==\"1-2\", MODE=\"0666\", SYMLINK+=\"so101_arm_2\""), "{rules}");
}
