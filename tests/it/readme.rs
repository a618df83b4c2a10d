//! The README's first command does what it says.

use std::path::Path;
use std::process::Command;

use so101_dataset::check::{CheckOptions, check};

use crate::programs::{stderr, stdout};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The first line of the README's first shell block that is no comment and neither clones nor changes folder.
fn first_command() -> String {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let block = readme.split("```sh\n").nth(1).expect("the README opens with a shell block");
    let lines = block.lines().map(str::trim);
    lines
        .take_while(|l| !l.starts_with("```"))
        .find(|l| l.starts_with("./run"))
        .expect("it names ./run")
        .to_owned()
}

#[test]
fn the_first_command_records_a_set_that_passes_every_check() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let line = first_command();
    let line = line.split('#').next().unwrap().trim();
    assert_eq!(line, "./run demo", "the README's first command");
    let out = Command::new("sh")
        .args(["-c", &format!("{line} --episodes 2 --out '{}'", set.display())])
        .current_dir(root())
        .env("SO101_PROFILE", "dev")
        .output()
        .unwrap();
    let (text, errors) = (stdout(&out), stderr(&out));
    assert!(out.status.success(), "{text}\n{errors}");
    assert_eq!(text.lines().last(), Some(set.to_str().unwrap()));
    assert_eq!(text.matches("saved episode=").count(), 2, "{text}");
    let report = check(&set, &CheckOptions::default()).unwrap();
    assert!(report.passed, "{report}");
}
