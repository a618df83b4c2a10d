//! `find_port` on an emulated arm and on a copy of another computer's files.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use so101::hal::Calibration;

use crate::programs::{example, stderr, stdout, succeed};

/// The program without the calibrations and ports of this computer.
fn find_port(home: &Path) -> Command {
    let mut command = example("find_port");
    command.env("HF_LEROBOT_CALIBRATION", home).env_remove("HF_LEROBOT_HOME").env_remove("HF_HOME");
    command
}

#[test]
fn an_emulated_arm_is_found_and_known_by_lerobots_calibration_file() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("robots/so_follower");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("blue.json"), Calibration::model().to_json()).unwrap();
    fs::write(folder.join("torn.json"), "{").unwrap();
    let out = succeed(find_port(home.path()).args(["--rig", "emulated", "--json"]));
    let said: Value = serde_json::from_str(&stdout(&out)).unwrap();
    assert_eq!(said["ports"][0]["arm"]["calibration"]["ids"][0], "follower blue", "{said}");
    assert_eq!(said["ports"][0]["likelihood"], "likely");
    let text = stdout(&succeed(find_port(home.path()).args(["--rig", "emulated"])));
    assert!(text.contains("follower blue, exactly; its registers are a follower's"), "{text}");
    let rule = stdout(&succeed(find_port(home.path()).args(["--rig", "emulated", "--udev"])));
    assert!(
        rule.contains("ATTRS{idVendor}==\"1a86\"") && rule.contains("SYMLINK+=\"so101_follower\""),
        "{rule}"
    );
}

#[cfg(unix)]
#[test]
fn the_ports_of_another_computer_are_told_with_what_forbids_to_open_them() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let put = |file: &str, text: &str| {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let usb = "sys/devices/usb1/1-1";
    put(&format!("{usb}/idVendor"), "1a86\n");
    put(&format!("{usb}/idProduct"), "55d3\n");
    put(&format!("{usb}/serial"), "58FA083460\n");
    put(&format!("{usb}/1-1:1.0/uevent"), "");
    put("sys/class/tty/ttyACM0/uevent", "");
    symlink(root.join(format!("{usb}/1-1:1.0")), root.join("sys/class/tty/ttyACM0/device")).unwrap();
    put("dev/ttyACM0", "");
    put("proc/self/status", "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0\n");
    put("proc/4711/comm", "lerobot-record\n");
    fs::create_dir_all(root.join("proc/4711/fd")).unwrap();
    symlink("/dev/ttyACM0", root.join("proc/4711/fd/3")).unwrap();
    let home = tempfile::tempdir().unwrap();
    let text = stdout(&succeed(find_port(home.path()).arg("--root").arg(root)));
    for said in
        ["/dev/ttyACM0", "CH343 (1a86:55d3), serial 58FA083460", "held by lerobot-record (process 4711)"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let watched = succeed(find_port(home.path()).args(["--watch", "--seconds", "0"]).arg("--root").arg(root));
    assert_eq!(stdout(&watched), "");
}

#[test]
fn without_an_arm_the_code_is_1_and_a_wrong_key_names_the_nearest() {
    let nothing = tempfile::tempdir().unwrap();
    fs::create_dir_all(nothing.path().join("sys/class/tty")).unwrap();
    let out = find_port(nothing.path()).arg("--root").arg(nothing.path()).output().unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    assert!(stderr(&out).contains("--rig emulated"), "{}", stderr(&out));
    let out = find_port(nothing.path()).arg("--robot.prot=x").output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(stderr(&out).contains("--robot.port"), "{}", stderr(&out));
}
