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

#[cfg(feature = "sim")]
#[test]
fn sim_eval_says_what_it_does() {
    insta::assert_snapshot!("sim_eval", help("sim_eval"));
}
