//! Help texts are part of what people see: they change on purpose or not at all.

use crate::programs::{example, stdout, succeed};

fn help(name: &str) -> String {
    stdout(&succeed(example(name).arg("--help")))
}

#[test]
fn record_push_left_says_what_it_does() {
    insta::assert_snapshot!("record_push_left", help("record_push_left"));
}

#[test]
fn check_dataset_says_what_it_does() {
    insta::assert_snapshot!("check_dataset", help("check_dataset"));
}

#[test]
fn dataset_info_says_what_it_does() {
    insta::assert_snapshot!("dataset_info", help("dataset_info"));
}

#[test]
fn replay_says_what_it_does() {
    insta::assert_snapshot!("replay", help("replay"));
}

#[test]
fn sim_doctor_says_what_it_does() {
    insta::assert_snapshot!("sim_doctor", help("sim_doctor"));
}

#[test]
fn calibrate_says_what_it_does() {
    insta::assert_snapshot!("calibrate", help("calibrate"));
}

#[test]
fn diagnose_says_what_it_does() {
    insta::assert_snapshot!("diagnose", help("diagnose"));
}

#[test]
fn diagnose_stall_says_what_it_does() {
    insta::assert_snapshot!("diagnose_stall", help("diagnose_stall"));
}

#[test]
fn emulated_bus_says_what_it_does() {
    insta::assert_snapshot!("emulated_bus", help("emulated_bus"));
}

#[test]
fn find_cameras_says_what_it_does() {
    insta::assert_snapshot!("find_cameras", help("find_cameras"));
}

#[test]
fn find_joint_limits_says_what_it_does() {
    insta::assert_snapshot!("find_joint_limits", help("find_joint_limits"));
}

#[test]
fn find_port_says_what_it_does() {
    insta::assert_snapshot!("find_port", help("find_port"));
}

#[test]
fn preflight_says_what_it_does() {
    insta::assert_snapshot!("preflight", help("preflight"));
}

#[test]
fn record_says_what_it_does() {
    insta::assert_snapshot!("record", help("record"));
}

#[test]
fn setup_motors_says_what_it_does() {
    insta::assert_snapshot!("setup_motors", help("setup_motors"));
}

#[test]
fn teleoperate_says_what_it_does() {
    insta::assert_snapshot!("teleoperate", help("teleoperate"));
}

#[cfg(feature = "sim")]
#[test]
fn sim_eval_says_what_it_does() {
    insta::assert_snapshot!("sim_eval", help("sim_eval"));
}
