#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use so101_hal::preflight::Item;
use so101_hal::{Calibration, EmulatedServos, EmulatorOptions, VirtualClock};

use super::*;

#[test]
fn one_failed_check_refuses_and_is_named_and_warnings_do_not() {
    let mut p = Preflight::default();
    p.extend([Check::new(Item::FreeDisk, Verdict::Warn).value("3 MB")]);
    assert!(p.require().is_ok());
    let silent =
        Check::new(Item::ServosAnswer, Verdict::Fail).value("no answer of servo 3").advice("check its cable");
    p.extend([silent]);
    let text = p.require().unwrap_err().to_string();
    assert!(
        text.contains("six servos answer: no answer of servo 3") && text.contains("check its cable"),
        "{text}"
    );
}

#[test]
fn what_is_stored_holds_no_figure_of_the_host() {
    let mut p = Preflight::default();
    p.extend([Check::new(Item::FreeDisk, Verdict::Pass).value("31.5 MB")]);
    assert!(!p.to_json().to_string().contains("31.5"));
    assert!(p.host_json().to_string().contains("31.5"));
    assert!(p.full_json().to_string().contains("31.5"));
}

#[test]
fn an_emulated_arm_is_looked_at_in_one_call() {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    let calibration = Calibration::model();
    servos.store_calibration(&calibration).unwrap();
    let (checks, survey) = rig::arm(rig::ArmUnderTest::new(&mut servos.bus(), &clock, &calibration)).unwrap();
    assert!(checks.iter().all(|c| is_about_the_arm(c.item)));
    assert_eq!(survey.answering().count(), 6);
    assert!(checks.iter().all(|c| c.verdict != Verdict::Fail), "{checks:?}");
}

#[test]
fn the_newest_file_of_an_arm_is_found_beside_the_one_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let of = |folder: &str| dir.path().join(folder).join("arm.json");
    for folder in ["so_follower", "so101_follower"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
        std::fs::write(of(folder), "{}").unwrap();
    }
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::options().write(true).open(of("so_follower")).unwrap().set_modified(old).unwrap();
    let (used, others) = rig::calibration_files(&of("so_follower")).unwrap();
    assert_eq!(others.len(), 1);
    let check = so101_hal::preflight::arm::calibration_newest(&used, &others);
    assert_eq!(check.verdict, Verdict::Warn);
    assert!(check.value.starts_with(&of("so101_follower").display().to_string()), "{check:?}");
}
