//! The plans of `tasks/`, recorded where nobody is needed.

use std::path::{Path, PathBuf};

use so101_dataset::Dataset;
use so101_dataset::check::{CheckOptions, check};
use so101_hal::kinematics::{Kinematics, Tcp};
use so101_hal::{Degrees, Radians};

use crate::programs::{example, files, stderr, stdout, succeed};

fn record(plan: &str, rig: &str, out: &Path) -> std::process::Command {
    let plan = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tasks").join(plan);
    let mut c = example("record");
    c.args(["--rig", rig, "--fps", "10", "--seed", "5", "--episodes", "2", "--plan"])
        .arg(plan)
        .arg("--out")
        .arg(out);
    c
}

/// Where the fingertip was nearest to the table, over all rows.
fn lowest(set: &Dataset, episode: u64) -> [f64; 3] {
    let table = set.rows(episode).unwrap();
    let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let rows = table.f32("action").unwrap().chunks_exact(6);
    let tips = rows.map(|r| {
        let q: [Radians; 5] = std::array::from_fn(|j| Degrees(f64::from(r[j])).into());
        arm.fk(&q).position_m
    });
    tips.min_by(|a, b| a[2].total_cmp(&b[2])).unwrap()
}

fn visits_the_places(rig: &str) {
    let dir = tempfile::tempdir().unwrap();
    for (plan, marks) in
        [("pick_place.toml", [[0.18, -0.11], [0.18, -0.11]]), ("stack.toml", [[0.20, -0.10], [0.20, -0.10]])]
    {
        let path = dir.path().join(plan);
        let out = succeed(&mut record(plan, rig, &path));
        assert!(
            stdout(&out).contains("saved episode=1 ") && !stdout(&out).contains("success=t"),
            "{}",
            stdout(&out)
        );
        let report = check(&path, &CheckOptions::default()).unwrap();
        assert!(report.passed, "{:?}", report.findings);
        let set = Dataset::open(&path).unwrap();
        for (episode, mark) in (0..).zip(marks) {
            let [x_m, y_m, z_m] = lowest(&set, episode);
            // Beside the mark by at most the plan's jitter.
            assert!((x_m - mark[0]).abs() < 0.012 && (y_m - mark[1]).abs() < 0.012, "{x_m} {y_m}");
            assert!(z_m > 0.06, "{z_m}: it looks and does not touch");
        }
    }
}

#[test]
fn a_plan_that_nobody_demonstrates_is_visited_by_the_emulated_arm() {
    visits_the_places("emulated");
}

#[cfg(feature = "sim")]
#[test]
fn a_plan_that_nobody_demonstrates_is_visited_by_the_simulated_arm_and_judged_by_nobody() {
    visits_the_places("sim");
}

#[test]
fn a_plan_recorded_twice_has_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| {
        let path = dir.path().join(name);
        succeed(&mut record("stack.toml", "emulated", &path));
        files(&path).into_iter().filter(|(name, _)| !name.ends_with("host.jsonl")).collect::<Vec<_>>()
    });
    assert!(a == b, "other files or bytes");
}

#[test]
fn a_recorder_without_a_plan_or_with_a_driver_that_cannot_be_says_what_to_do() {
    let cases: [(&[&str], &[&str]); 4] = [
        (&[], &["--plan tasks/pick_place.toml", "--task"]),
        (&["--rig", "sim", "--task", "wave", "--teleop", "keyboard"], &["drive an arm in real time"]),
        (&["--rig", "emulated", "--task", "wave", "--port", "/dev/x"], &["--port /dev/x is for --rig real"]),
        (
            &["--rig", "emulated", "--task", "wave", "--teleop", "expert"],
            &["only push-left has a demonstrator"],
        ),
    ];
    for (args, says) in cases {
        let out = example("record").args(args).output().unwrap();
        let text = stderr(&out);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {text}");
        assert!(says.iter().all(|s| text.contains(s)), "{args:?}: {text}");
    }
}
