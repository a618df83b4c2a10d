//! Runs the example programs the way a user does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A command for the example `name`, built by the same `cargo test` as this binary.
pub(crate) fn example(name: &str) -> Command {
    let exe = std::env::current_exe().expect("a test has an executable");
    let deps = exe.parent().expect("it lies in deps");
    let path = deps.parent().expect("deps lies in the profile's folder").join("examples").join(name);
    assert!(path.exists(), "example {name} is not built at {}: run the whole test command", path.display());
    let mut command = Command::new(path);
    command.env_remove("SO101_CRASH_AT").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// The recording program with what nearly every test wants: the emulated rig, few rows, a given place.
pub(crate) fn record(out: &Path, episodes: u32) -> Command {
    let mut c = example("record_push_left");
    c.args(["--rig", "emulated", "--fps", "10", "--seed", "7", "--episodes", &episodes.to_string(), "--out"])
        .arg(out);
    c
}

/// Runs a command that has to succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let out = command.output().expect("the program starts");
    assert!(out.status.success(), "{command:?}\n{}\n{}", stdout(&out), stderr(&out));
    out
}

/// What it printed on stdout.
pub(crate) fn stdout(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// What it printed on stderr.
pub(crate) fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Every file below `root` with its bytes, sorted by path.
pub(crate) fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("a folder of the set") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = std::fs::read(&path).expect("a file of the set");
                all.push((path.strip_prefix(root).expect("below root").to_owned(), bytes));
            }
        }
    }
    all.sort();
    all
}
