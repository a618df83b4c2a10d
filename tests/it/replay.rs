//! Replay of recorded episodes: what it reports, what it refuses, and the real recording.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use so101_dataset::{Dataset, DatasetSpec, DatasetWriter, WriterOptions};
use so101_hal::{
    Action, Calibration, Degrees, EpisodeEnd, EpisodeSink as _, EpisodeStart, JOINTS, JointVector,
    Observation, Timestamp,
};

use crate::programs::{example, record, stderr, stdout, succeed};

const RIGS: &[&str] = if cfg!(feature = "sim") { &["emulated", "sim"] } else { &["emulated"] };

/// A replay in a folder of its own, where the plot goes.
fn replay(set: &Path, dir: &Path, args: &[&str]) -> Command {
    let mut c = example("replay");
    c.current_dir(dir).arg(set).args(args);
    c
}

fn report(set: &Path, dir: &Path, args: &[&str]) -> Value {
    let out = succeed(replay(set, dir, args).arg("--json"));
    serde_json::from_str(&stdout(&out)).unwrap()
}

/// One figure of all six joints.
fn figures(report: &Value, difference: &str, figure: &str) -> [f64; 6] {
    std::array::from_fn(|i| report["joints"][i][difference][figure].as_f64().unwrap())
}

/// Rows of a set: states and actions.
type Rows = Vec<([f64; 6], [f64; 6])>;

fn rows(set: &Path, episode: u64) -> Rows {
    let table = Dataset::open(set).unwrap().rows(episode).unwrap();
    let column = |name: &str| -> Vec<[f64; 6]> { table.f64(name).unwrap().as_chunks().0.to_vec() };
    column("observation.state").into_iter().zip(column("action")).collect()
}

/// A set of one episode without pictures; without the sidecar nothing says its unit.
fn write(path: &Path, fps: u32, rows: &Rows, sidecar: bool) {
    let mut writer =
        DatasetWriter::create(path, DatasetSpec::so101(fps, vec![]), WriterOptions::default()).unwrap();
    writer.begin(&EpisodeStart { task: "wave".into(), ..Default::default() }).unwrap();
    for (state, action) in rows {
        let [joints, goal] = [*state, *action].map(JointVector::<Degrees>::from_row);
        let seen = Observation { at: Timestamp::ZERO, joints, frames: vec![] };
        writer.add(&seen, &Action { joints: goal }).unwrap();
    }
    writer.end(&EpisodeEnd::default()).unwrap();
    writer.finish().unwrap();
    if !sidecar {
        std::fs::remove_dir_all(path.join("meta/so101")).unwrap();
    }
}

/// A slow wave of all joints about zero, followed a period late.
fn wave(amplitude: f64) -> Rows {
    let at = |i: i32| {
        [0, 1, 2, 3, 4, 5].map(|j| if j == 5 { 30.0 } else { amplitude * (f64::from(i) / 10.0).sin() })
    };
    (0..60).map(|i| (at(i), at(i + 1))).collect()
}

#[test]
fn a_recording_of_the_emulated_arm_replays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    succeed(&mut record(&set, 2));
    for scene in ["empty", "task"] {
        let report = report(&set, dir.path(), &["--rig", "emulated", "--episode", "1", "--scene", scene]);
        assert_eq!(report["recorded_unit"], "degrees");
        assert_eq!(report["calibration_assumed"], false);
        // The same servos and the same goals: nothing but the step of an encoder is between them.
        let apart = figures(&report, "recorded_minus_simulated", "max");
        assert!(apart.iter().all(|v| *v < 0.2), "{scene}: {apart:?}");
        let png = dir.path().join(report["png"].as_str().unwrap());
        assert_eq!(png.file_name().unwrap(), "replay-set-episode-1.png");
        assert!(image::open(&png).unwrap().width() > 1000);
        let placed = report["notes"].to_string().contains("for seed 7, episode 1");
        assert_eq!(placed, scene == "task", "{}", report["notes"]);
    }
    let out = succeed(&mut replay(&set, dir.path(), &["--rig", "emulated", "--png", "here.png"]));
    let text = stdout(&out);
    assert!(text.contains("degrees (the set says so)") && text.contains("here.png"), "{text}");
    assert!(JOINTS.iter().all(|j| text.contains(j.name())), "{text}");
    assert!(dir.path().join("here.png").exists());
}

#[cfg(feature = "sim")]
#[test]
fn a_recorded_push_succeeds_again_in_the_simulated_scene() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let mut c = example("record_push_left");
    c.args(["--rig", "sim", "--fps", "10", "--seed", "7", "--episodes", "1", "--out"]).arg(&set);
    succeed(&mut c);
    let again = report(&set, dir.path(), &["--rig", "sim", "--scene", "task"]);
    assert_eq!(again["success"], true);
    let apart = figures(&again, "recorded_minus_simulated", "max");
    assert!(apart.iter().all(|v| *v < 0.01), "{apart:?}");
    let alone = report(&set, dir.path(), &["--rig", "sim"]);
    assert_eq!(alone["success"], Value::Null);
}

#[test]
fn ten_degrees_planted_on_one_recorded_joint_show_in_that_joint_only() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    succeed(&mut record(&set, 1));
    let clean = rows(&set, 0);
    for rig in RIGS {
        let args = ["--rig", rig, "--degrees"];
        let base = dir.path().join(format!("{rig}-base"));
        write(&base, 10, &clean, false);
        let base = figures(&report(&base, dir.path(), &args), "recorded_minus_simulated", "rms");
        for joint in 0..5 {
            let mut planted = clean.clone();
            // The first row is where the arm starts: with it the arm would begin with a jump.
            planted.iter_mut().skip(1).for_each(|(state, _)| state[joint] += 10.0);
            let set = dir.path().join(format!("{rig}-{joint}"));
            write(&set, 10, &planted, false);
            let seen = figures(&report(&set, dir.path(), &args), "recorded_minus_simulated", "rms");
            for i in 0..6 {
                let more = seen[i] - base[i];
                if i == joint {
                    assert!((7.0..=10.0).contains(&more), "{rig}, joint {joint}: {seen:?}, {base:?}");
                } else {
                    assert!(more.abs() < 1e-9, "{rig}, joint {joint}: {seen:?}, {base:?}");
                }
            }
        }
    }
}

#[test]
fn values_of_an_unknown_unit_are_refused_until_somebody_says_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("foreign");
    write(&set, 30, &wave(60.0), false);
    let file = dir.path().join("arm.json");
    std::fs::write(&file, Calibration::model().to_json()).unwrap();
    let out = replay(&set, dir.path(), &["--rig", "emulated"]).output().unwrap();
    assert_eq!((out.status.code(), stdout(&out)), (Some(2), String::new()));
    let text = stderr(&out);
    for says in
        ["error: all body joints stay within -100 to 100", "--calibration FILE", "--degrees", "foreign"]
    {
        assert!(text.contains(says), "{text}");
    }
    assert!(!dir.path().join("replay-foreign-episode-0.png").exists());

    let calibrated = report(&set, dir.path(), &["--rig", "emulated", "--calibration", "arm.json"]);
    assert_eq!(
        (&calibrated["recorded_unit"], &calibrated["calibration_assumed"]),
        (&"normalized".into(), &false.into())
    );
    let degrees = report(&set, dir.path(), &["--rig", "emulated", "--degrees"]);
    assert_eq!(degrees["recorded_unit"], "degrees");
    // 60 of 100 of wrist_roll's half turn are 108 deg, and those of shoulder_lift's 200 deg are 60 deg.
    let moved = |r: &Value, joint: usize| figures(r, "commanded_minus_simulated", "rms")[joint];
    assert!(moved(&calibrated, 4) > 1.4 * moved(&degrees, 4), "{calibrated} {degrees}");
    assert!(moved(&calibrated, 1) < 1.2 * moved(&degrees, 1), "{calibrated} {degrees}");
}

#[test]
fn contradictions_on_the_command_line_exit_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, beyond, unknown) =
        (dir.path().join("ours"), dir.path().join("beyond"), dir.path().join("unknown"));
    write(&ours, 30, &wave(60.0), true);
    write(&beyond, 30, &wave(101.0), false);
    write(&unknown, 30, &wave(60.0), false);
    std::fs::write(dir.path().join("arm.json"), Calibration::model().to_json()).unwrap();
    std::fs::write(
        dir.path().join("bad.json"),
        Calibration::model().to_json().replace("wrist_flex", "wrist"),
    )
    .unwrap();
    let cases: [(&Path, &[&str], &str); 7] = [
        (&ours, &["--calibration", "arm.json"], "the set says degrees"),
        (&beyond, &["--calibration", "arm.json"], "which means degrees"),
        (&unknown, &["--calibration", "bad.json"], "calibration bad.json: motor \"wrist\""),
        (&unknown, &["--calibration", "arm.json", "--degrees"], "cannot be used with"),
        (&ours, &["--episode", "1"], "episodes 0 to 0"),
        (&ours, &["--rig", "real"], "possible values"),
        (dir.path(), &[], "no LeRobot dataset here"),
    ];
    for (set, args, says) in cases {
        let out = replay(set, dir.path(), args).output().unwrap();
        let text = stderr(&out);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(says), "{args:?} does not say {says:?}: {text}");
    }
    let known = report(&beyond, dir.path(), &["--rig", "emulated"]);
    assert_eq!(known["recorded_unit"], "degrees");
    assert!(known["notes"].to_string().contains("elbow_flex is commanded beyond"), "{}", known["notes"]);
}

#[test]
fn a_start_outside_of_the_limits_is_clamped_and_said_on_every_rig() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    write(&set, 30, &vec![([150.0, -190.0, 170.0, 0.0, 0.0, 120.0], [0.0; 6]); 40], true);
    for rig in RIGS {
        let report = report(&set, dir.path(), &["--rig", rig]);
        let notes = report["notes"].to_string();
        for says in
            ["shoulder_pan is recorded at 150.0", "shoulder_lift is", "elbow_flex is", "gripper is recorded"]
        {
            assert!(notes.contains(says), "{rig}: {notes}");
        }
    }
}

#[test]
fn the_real_episodes_are_followed_within_two_degrees() {
    let Some(set) = std::env::var_os("SO101_REAL_DATA").map(PathBuf::from) else {
        println!("skipped: SO101_REAL_DATA is not set");
        return;
    };
    let calibration = set.join("../real_so101_v3.assumed_calibration.json").canonicalize().unwrap();
    let calibration = calibration.to_str().unwrap();
    let set = set.canonicalize().unwrap();
    let dir = tempfile::tempdir().unwrap();
    for rig in RIGS {
        for episode in ["0", "1", "2", "3"] {
            let args = ["--rig", rig, "--episode", episode, "--calibration", calibration];
            let report = report(&set, dir.path(), &args);
            assert_eq!(report["calibration_assumed"], true);
            // The first command of episode 0 is up to 40 deg away from the first state, and no arm follows a step within
            // a period: the figure counts from where a joint has caught up, which it has to do soon.
            let rms = figures(&report, "commanded_minus_simulated", "rms");
            for (i, figure) in rms.into_iter().take(5).enumerate() {
                let caught_up_s = report["joints"][i]["caught_up_after_s"].as_f64().unwrap();
                assert!(caught_up_s <= 0.5, "{rig}, episode {episode}, {}: {caught_up_s} s", JOINTS[i]);
                assert!(figure <= 2.0, "{rig}, episode {episode}, {}: {figure}", JOINTS[i]);
            }
        }
    }
}
