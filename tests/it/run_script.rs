//! The `run` script on its own: arguments, messages and exit codes, with stand-ins for the tools that it looks for.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// What the script uses of a POSIX system.
const POSIX_TOOLS: [&str; 10] = ["awk", "cat", "date", "df", "dirname", "env", "id", "mkdir", "sed", "sh"];

fn run(args: &[&str], adjust: impl FnOnce(&mut Command)) -> Output {
    let mut c = Command::new("sh");
    c.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("run")).args(args);
    // With a MuJoCo of one's own the script does not look for it.
    c.env("MUJOCO_DYNAMIC_LINK_DIR", "/nowhere");
    adjust(&mut c);
    c.output().unwrap()
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// A folder for `PATH` with the POSIX tools and, as programs that do nothing, `stand_ins` with what they print.
fn path_with(stand_ins: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for tool in POSIX_TOOLS {
        let real = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap();
        std::os::unix::fs::symlink(String::from_utf8(real.stdout).unwrap().trim(), dir.path().join(tool))
            .unwrap();
    }
    for (name, prints) in stand_ins {
        let file = dir.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\necho '{prints}'\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    dir
}

const ALL_THERE: [(&str, &str); 7] = [
    ("uname", "x86_64"),
    ("cc", ""),
    ("nasm", ""),
    ("python3", ""),
    ("cargo", "cargo 1.95.0 (0000000 2026-01-01)"),
    ("cargo-nextest", ""),
    ("apt-get", "apt-get was called"),
];

fn setup_without(missing: &str) -> Output {
    let stand_ins: Vec<_> =
        ALL_THERE.into_iter().filter(|(name, _)| *name != missing && *name != "apt-get").collect();
    let path = path_with(&stand_ins);
    run(&["setup"], |c| {
        c.env("PATH", path.path()).env("HOME", path.path());
    })
}

#[test]
fn the_scripts_are_posix_sh_as_far_as_the_shell_can_tell() {
    for script in ["run", "tools/oracle/setup", "tools/setup_mujoco.sh"] {
        let out = Command::new("sh")
            .arg("-n")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
            .output()
            .unwrap();
        assert!(out.status.success(), "{script}: {}", stderr(&out));
    }
}

#[test]
fn help_names_every_command_and_goes_to_stdout() {
    let out = run(&["help"], |_| ());
    assert_eq!(out.status.code(), Some(0));
    let help = String::from_utf8(out.stdout).unwrap();
    for command in
        ["setup", "demo [ARGS]", "test [--full]", "bench [ARGS]", "oracle [PART...]", "docs", "help"]
    {
        assert!(help.contains(&format!("\n  {command} ")), "{command}\n{help}");
    }
    assert!(
        help.contains("exit codes: 0 done, 1 failed, 2 wrong usage, 3 something cannot be had"),
        "{help}"
    );
}

#[test]
fn wrong_usage_is_one_line_and_exit_code_2() {
    for args in [&["tset"][..], &["test", "--fast"], &["setup", "all"], &["docs", "x"], &["oracle", "policy"]]
    {
        let out = run(args, |_| ());
        assert_eq!(
            (out.status.code(), stderr(&out).lines().count()),
            (Some(2), 1),
            "{args:?}: {}",
            stderr(&out)
        );
    }
    assert_eq!(run(&[], |_| ()).status.code(), Some(2));
    let profile = run(&["demo"], |c| {
        c.env("SO101_PROFILE", "fast");
    });
    assert_eq!(profile.status.code(), Some(2), "{}", stderr(&profile));
}

#[test]
fn setup_is_silent_and_installs_nothing_when_all_is_there() {
    let path = path_with(&ALL_THERE);
    let out = run(&["setup"], |c| {
        c.env("PATH", path.path()).env("HOME", path.path());
    });
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{out:?}");
}

#[test]
fn what_setup_cannot_get_is_named_with_exit_code_3() {
    for (missing, says) in [("cc", "no C compiler"), ("nasm", "install nasm"), ("cargo", "rustup")] {
        let out = setup_without(missing);
        assert_eq!(out.status.code(), Some(3), "{missing}: {}", stderr(&out));
        assert!(stderr(&out).contains(says), "{missing}: {}", stderr(&out));
    }
}

#[test]
fn setup_goes_on_without_pip_and_says_so() {
    let out = setup_without("python3");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stderr(&out).contains("python3-pip"), "{}", stderr(&out));
}

#[test]
fn an_old_rust_is_refused_with_the_command_to_type() {
    let mut stand_ins = ALL_THERE;
    stand_ins[4].1 = "cargo 1.94.1 (0000000 2026-01-01)";
    let path = path_with(&stand_ins);
    let out = run(&["setup"], |c| {
        c.env("PATH", path.path()).env("HOME", path.path());
    });
    assert_eq!(out.status.code(), Some(3));
    assert!(stderr(&out).contains("rustup update"), "{}", stderr(&out));
}

#[test]
fn a_full_disk_stops_a_build_before_it_starts() {
    let path = path_with(&ALL_THERE);
    let target = path.path().join("target");
    let out = run(&["demo"], |c| {
        c.env("PATH", path.path()).env("HOME", path.path());
        c.env("CARGO_TARGET_DIR", &target).env("SO101_MIN_FREE_GB", "999999999");
    });
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(
        stderr(&out).contains("999999999 GB") && stderr(&out).contains(target.to_str().unwrap()),
        "{}",
        stderr(&out)
    );
}

#[test]
fn the_demo_passes_its_arguments_on_and_asks_for_a_rig_only_when_the_user_did_not() {
    let mut stand_ins = ALL_THERE;
    stand_ins[4].1 = "cargo 1.95.0 (0000000 2026-01-01)'\necho \"$*\" '";
    let path = path_with(&stand_ins);
    let demo = |args: &[&str], profile: &str| {
        let out = run(&[&["demo"], args].concat(), |c| {
            c.env("PATH", path.path())
                .env("HOME", path.path())
                .env("SO101_MIN_FREE_GB", "0")
                .env("SO101_PROFILE", profile);
        });
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().last().unwrap_or_default().trim().to_owned()
    };
    let program = "--example record_push_left --";
    assert_eq!(
        demo(&["--episodes", "2"], "dev"),
        format!("run --locked --profile=dev --features sim {program} --rig auto --episodes 2")
    );
    assert_eq!(
        demo(&["--rig=emulated"], "release"),
        format!("run --locked --release --features sim {program} --rig=emulated")
    );
}

#[test]
fn ci_calls_the_script_with_test_and_nothing_else() {
    let ci = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/run")).unwrap();
    let calls: Vec<&str> = ci.lines().filter(|l| l.contains("./run")).collect();
    assert_eq!(calls, ["exec ./run test"]);
}
