//! The programs that set an arm up and drive it, on emulated servos, the way a user runs them.

use std::path::Path;
use std::process::Command;

use so101::hal::calibration::{CalibrationStyle, recognise};
use so101::hal::{Calibration, JOINTS};

use crate::programs::{example, stderr, stdout, succeed};

/// A program on the emulated rig, with its calibrations below `root`.
fn emulated(name: &str, root: &Path) -> Command {
    let mut c = example(name);
    c.env("HF_LEROBOT_CALIBRATION", root).args(["--rig", "emulated"]);
    c
}

#[test]
fn a_calibration_goes_where_lerobot_looks_and_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("robots/so_follower/blue.json");
    // LeRobot's flags, pasted as they are.
    let out =
        succeed(emulated("calibrate", dir.path()).args(["--robot.type=so101_follower", "--robot.id=blue"]));
    let (said, told) = (stdout(&out), stderr(&out));
    assert!(said.ends_with(&format!("calibration: {}\n", file.display())), "{said}");
    assert!(JOINTS.iter().all(|j| said.contains(j.name())) && told.contains("of model"), "{said}{told}");
    let calibration = Calibration::load(&file).unwrap();
    assert_eq!(recognise(&calibration), (CalibrationStyle::SweepFirst, Vec::new()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), calibration.to_json());

    let out = succeed(emulated("calibrate", dir.path()).args(["--id", "blue", "--lerobot-order"]));
    assert!(stderr(&out).contains("made sweep first"), "{}", stderr(&out));
    assert!(stdout(&out).contains("backup: "), "{}", stdout(&out));
    assert_eq!(Calibration::load(&dir.path().join("robots/so_follower/blue.json.bak")).unwrap(), calibration);

    let out =
        succeed(emulated("calibrate", dir.path()).args(["--teleop.type=so101_leader", "--teleop.id=red"]));
    assert!(stdout(&out).contains("teleoperators/so_leader/red.json"), "{}", stdout(&out));
}

#[test]
fn without_a_name_nothing_is_saved_and_a_wrong_key_names_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let out = succeed(emulated("calibrate", dir.path()).arg("-q"));
    assert!(stdout(&out).contains("not saved"), "{}", stdout(&out));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let out = emulated("calibrate", dir.path()).arg("--robot.idd=blue").output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(stderr(&out).contains("--robot.id"), "{}", stderr(&out));
    let out = emulated("calibrate", dir.path()).args(["--id", "a/b"]).output().unwrap();
    assert_ne!(out.status.code(), Some(0));
    assert!(stderr(&out).contains("no name for an arm"), "{}", stderr(&out));
}

#[test]
fn six_motors_out_of_the_drawer_get_their_ids() {
    let dir = tempfile::tempdir().unwrap();
    let said = stdout(&succeed(emulated("setup_motors", dir.path()).arg("--robot.type=so101_follower")));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 7, "{said}");
    assert!(lines[0].starts_with("gripper: id 1 -> 6"), "{said}");
    assert!(lines[3].contains("7 -> 3, 500000 -> 1000000 baud"), "{said}");
    assert!(lines[5].contains("nothing written") && lines[6].starts_with("all six motors answer"), "{said}");
}

#[test]
fn an_emulated_pair_is_teleoperated_and_its_bounds_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let out = succeed(emulated("teleoperate", dir.path()).args([
        "--robot.type=so101_follower",
        "--teleop.type=so101_leader",
        "--fps=50",
        "--teleop_time_s=2",
    ]));
    let said = stdout(&out);
    assert!(said.starts_with("teleoperated seconds=2.00 actions=101 rate_hz=50.0 late=0"), "{said}");
    let limits = ["--teleop_time_s=7", "--warmup_time_s=1", "--urdf_path=x.urdf", "--json"];
    let out = succeed(emulated("find_joint_limits", dir.path()).args(limits));
    let bounds: serde_json::Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(bounds["samples"], 211);
    let pan = (bounds["min_pos"][0].as_f64().unwrap(), bounds["max_pos"][0].as_f64().unwrap());
    assert!((pan.0 + 25.0).abs() < 3.0 && (pan.1 - 35.0).abs() < 3.0, "{bounds}");
}

#[test]
fn a_pair_of_arms_gets_its_offset_and_uses_it() {
    let dir = tempfile::tempdir().unwrap();
    for (role, id) in [("follower", "f"), ("leader", "l")] {
        succeed(emulated("calibrate", dir.path()).args(["-q", "--role", role, "--id", id]));
    }
    let pair = ["--id", "f", "--leader-id", "l"];
    let said = stdout(&succeed(emulated("teleoperate", dir.path()).args(pair).arg("--measure-pair")));
    assert!(said.contains("so101_pairs/l--f.json"), "{said}");
    let out = succeed(emulated("teleoperate", dir.path()).args(pair).args(["--seconds", "1"]));
    assert!(stderr(&out).contains("as measured for this pair"), "{}", stderr(&out));
}
