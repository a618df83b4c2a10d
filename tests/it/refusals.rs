//! Bad input: one line with what, where and what to do; the documented exit code; no panic.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::programs::{example, record, stderr, succeed};

/// Runs, and returns exit code and stderr; anything that looks like a panic fails the test.
fn outcome(command: &mut Command) -> (i32, String) {
    let out = command.output().unwrap();
    let text = stderr(&out);
    assert!(!text.contains("panicked"), "{command:?}: {text}");
    (out.status.code().unwrap_or_else(|| panic!("{command:?} was killed: {text}")), text)
}

/// The error is the last line of stderr and the only one that says `error:`.
fn one_error_line(text: &str) -> &str {
    let errors: Vec<&str> = text.lines().filter(|l| l.starts_with("error:")).collect();
    assert_eq!(errors.len(), 1, "{text}");
    errors[0]
}

#[test]
fn usage_errors_exit_with_2_and_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::write(plain.join("notes.txt"), "mine").unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["--no-such-flag"], "--no-such-flag"),
        (&["--fps", "0"], "--fps"),
        (&["--episodes", "25"], "24 episodes"),
        (&["--lux", "100001"], "100000"),
        (&["--rig", "real"], "emulated"),
        (&["--rig", "walrus"], "possible values"),
        (&["--object", "teapot"], "yellow-large"),
        (&["--out", plain.to_str().unwrap()], "no dataset"),
        (&["--out", ".."], "name of a folder"),
    ];
    for (args, says) in cases {
        let mut c = example("record_push_left");
        c.current_dir(dir.path()).args(args);
        let (code, text) = outcome(&mut c);
        assert_eq!(code, 2, "{args:?}: {text}");
        assert!(text.contains(says), "{args:?} does not say {says:?}: {text}");
    }
    assert_eq!(std::fs::read_to_string(plain.join("notes.txt")).unwrap(), "mine");
    assert!(!dir.path().join("outputs").exists(), "a refused run leaves something");
}

#[test]
fn an_existing_set_is_only_continued_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    succeed(&mut record(&set, 1));
    let (code, text) = outcome(&mut record(&set, 1));
    assert_eq!(code, 2, "{text}");
    assert!(one_error_line(&text).contains("--resume"), "{text}");
}

#[test]
fn corrupt_input_exits_with_1_and_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    succeed(&mut record(&set, 1));
    type Damage = (&'static str, fn(&Path));
    let damage: [Damage; 3] = [
        ("meta/info.json", |p| std::fs::write(p, "{\"fps\": 10,").unwrap()),
        ("data/chunk-000/file-000.parquet", halve),
        ("videos/observation.images.main/chunk-000/file-000.mp4", halve),
    ];
    for (file, break_it) in damage {
        let copy = dir.path().join("copy");
        copy_tree(&set, &copy);
        break_it(&copy.join(file));
        for program in ["check_dataset", "dataset_info"] {
            if program == "dataset_info" && file.ends_with("mp4") {
                continue;
            }
            let (code, text) = outcome(example(program).arg(&copy));
            let said =
                format!("{text}{}", crate::programs::stdout(&example(program).arg(&copy).output().unwrap()));
            if program == "check_dataset" || file == "meta/info.json" {
                assert_eq!(code, 1, "{program} on a broken {file}: {said}");
                assert!(
                    said.contains(Path::new(file).file_name().unwrap().to_str().unwrap()),
                    "{program}: {said}"
                );
            }
        }
        let (code, text) = outcome(record(&copy, 2).arg("--resume"));
        assert_eq!(code, 1, "resume on a broken {file}: {text}");
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        assert!(one_error_line(&text).contains(name), "{text}");
        std::fs::remove_dir_all(&copy).unwrap();
    }
}

fn halve(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn copy_tree(from: &Path, to: &Path) {
    for (name, bytes) in crate::programs::files(from) {
        let path = to.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Runs `script` in a mount namespace of its own; `None` where the system does not allow that.
fn in_own_namespace(script: &str) -> Option<(i32, String)> {
    let possible = Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|o| o.status.success());
    possible.then(|| outcome(Command::new("unshare").args(["-m", "sh", "-c", script])))
}

#[test]
fn a_read_only_mount_is_refused_by_pre_flight_with_exit_code_3() {
    let dir = tempfile::tempdir().unwrap();
    let exe = record(&dir.path().join("set"), 1);
    let script = format!(
        "mount --bind {0} {0} && mount -o remount,ro,bind {0} && exec {1}",
        dir.path().display(),
        shell(&exe)
    );
    let Some((code, text)) = in_own_namespace(&script) else {
        println!("skipped: a read-only mount needs root and mount namespaces");
        return;
    };
    assert_eq!(code, 3, "{text}");
    assert!(one_error_line(&text).contains("cannot write there"), "{text}");
}

#[test]
fn a_disk_that_fills_while_recording_exits_with_1_and_keeps_what_was_saved() {
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    let keep = dir.path().join("keep");
    std::fs::create_dir(&disk).unwrap();
    let exe = record(&disk.join("set"), 24);
    let script = format!(
        "mount -t tmpfs -o size=2m none {disk} && {exe} > {out}; code=$?; cp -a {disk}/set {keep}; ls -A {disk} > {out}.left; exit $code",
        disk = disk.display(),
        exe = shell(&exe),
        out = dir.path().join("stdout").display(),
        keep = keep.display(),
    );
    let Some((code, text)) = in_own_namespace(&script) else {
        println!("skipped: a small tmpfs needs root and mount namespaces");
        return;
    };
    assert_eq!(code, 1, "{text}");
    let line = one_error_line(&text);
    assert!(line.contains("no space left") && line.contains("free some"), "{line}");
    let saved = std::fs::read_to_string(dir.path().join("stdout")).unwrap().matches("saved episode=").count();
    assert!(saved > 0, "nothing fitted, so nothing was tried: {text}");
    let left = std::fs::read_to_string(dir.path().join("stdout.left")).unwrap();
    let left: Vec<&str> = left.lines().filter(|n| !n.ends_with(".lock")).collect();
    assert_eq!(left, ["set"], "temporary folders stay behind");
    let report = so101_dataset::check::check(&keep, &so101_dataset::check::CheckOptions::default()).unwrap();
    assert!(report.passed, "{report}");
    let set = so101_dataset::Dataset::open(&keep).unwrap();
    assert!(set.info().total_episodes >= saved as u64);
}

fn shell(command: &Command) -> String {
    let quote = |s: &std::ffi::OsStr| format!("'{}'", s.to_string_lossy().replace('\'', "'\\''"));
    std::iter::once(command.get_program()).chain(command.get_args()).map(quote).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_disk_without_room_for_an_episode_is_refused_before_anything_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    for size in ["64k", "700k"] {
        let exe = record(&dir.path().join("set"), 24);
        let script = format!(
            "mount -t tmpfs -o size={size} none {0} && {1}; code=$?; ls -A {0} >&2; exit $code",
            dir.path().display(),
            shell(&exe)
        );
        let Some((code, text)) = in_own_namespace(&script) else {
            println!("skipped: a small tmpfs needs root and mount namespaces");
            return;
        };
        assert_eq!(code, 3, "{size}: {text}");
        assert!(one_error_line(&text).starts_with("error: pre-flight refused: "), "{size}: {text}");
        assert!(text.trim_end().ends_with(one_error_line(&text)), "{size}: something stays behind: {text}");
    }
}

/// A recorder that has saved one episode and goes on, and the lines that it prints from then on.
fn recorder_after_its_first_episode(path: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = record(path, 24).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("saved episode=0"));
    (child, lines)
}

/// What Ctrl-C does.
fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_what_was_saved_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let (mut child, lines) = recorder_after_its_first_episode(&path);
    // Both may be taken for one; the program has ended by itself then, with the same code.
    for _ in 0..2 {
        interrupt(&child);
    }
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report = so101_dataset::check::check(&path, &so101_dataset::check::CheckOptions::default()).unwrap();
    assert!(report.passed, "{report}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    succeed(record(&path, 3).arg("--resume"));
    let after = std::fs::read_dir(dir.path())
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with(".set."));
    assert_eq!(after.count(), 0, "what the kill left ({left:?}) is not cleaned up");
}

#[test]
fn the_first_ctrl_c_drops_the_running_episode_and_keeps_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let (mut child, lines) = recorder_after_its_first_episode(&path);
    interrupt(&child);
    let saved = 1 + lines.filter(|l| l.as_ref().unwrap().starts_with("saved")).count() as u64;
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let set = so101_dataset::Dataset::open(&path).unwrap();
    assert_eq!(set.info().total_episodes, saved);
    assert!(saved < 24);
    let report = so101_dataset::check::check(&path, &so101_dataset::check::CheckOptions::default()).unwrap();
    assert!(report.passed, "{report}");
}
