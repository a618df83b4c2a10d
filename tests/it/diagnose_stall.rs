//! `diagnose_stall` on scripted logs, on a dataset's folder and on a loop of emulated servos.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::programs::{example, stderr, stdout, succeed};

fn log(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("so101-hal/tests/fixtures/host").join(format!("{name}.jsonl"))
}

#[test]
fn the_cause_of_each_scripted_log_is_the_first_word_of_its_diagnosis() {
    for cause in ["thermal", "clock", "memory", "camera", "bus", "disk"] {
        let out = example("diagnose_stall").arg(log(cause)).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{cause}: {}", stderr(&out));
        let text = stdout(&out);
        assert!(text.starts_with(&format!("cause: {cause} (10 of 32 seconds were slow)")), "{text}");
        assert!(text.contains("to do: "), "{text}");
        let out = example("diagnose_stall").arg(log(cause)).arg("--json").output().unwrap();
        let said: Value = serde_json::from_str(&stdout(&out)).unwrap();
        assert_eq!(said["diagnosis"]["cause"], cause);
        assert_eq!(said["sessions"][0]["host"]["model"], "Raspberry Pi 5 Model B Rev 1.0");
    }
}

#[test]
fn the_log_of_a_dataset_is_found_in_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let meta = dir.path().join("meta/so101");
    fs::create_dir_all(&meta).unwrap();
    let mut text = fs::read_to_string(log("healthy")).unwrap();
    // What recordings write beside it.
    text.push_str("{\"host\":{\"os\":\"linux\"},\"episodes\":[]}\n");
    fs::write(meta.join("host.jsonl"), text).unwrap();
    let out = succeed(example("diagnose_stall").arg(dir.path()));
    assert!(stdout(&out).starts_with("no stall in 32 seconds"), "{}", stdout(&out));
}

#[test]
fn a_loop_on_emulated_servos_that_lose_replies_is_diagnosed_as_the_bus() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("log.jsonl");
    let run = || {
        let out =
            example("diagnose_stall").args(["--rig", "emulated", "--keep"]).arg(&kept).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
        stdout(&out)
    };
    let text = run();
    assert!(text.starts_with("cause: bus ") && text.contains("requests without a reply in time"), "{text}");
    assert_eq!(run(), text, "simulated time is the same every time");
    assert_eq!(stdout(&example("diagnose_stall").arg(&kept).output().unwrap()), text);
}

#[test]
fn what_is_no_log_is_refused_with_what_to_give_instead() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("notes.txt");
    fs::write(&plain, "notes\n").unwrap();
    for (path, code, says) in [
        (plain.as_path(), 2, "no seconds of a loop"),
        (dir.path(), 1, "host.jsonl"),
        (Path::new("/nowhere/log"), 1, "/nowhere/log"),
    ] {
        let out = example("diagnose_stall").arg(path).output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{}", stderr(&out));
        assert!(stderr(&out).contains(says), "{}", stderr(&out));
    }
}
