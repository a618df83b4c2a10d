//! `record` on an arm in real time: emulated servos behind a pseudo-terminal stand for the arm, drawn pictures for its
//! cameras.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use so101_dataset::Dataset;
use so101_dataset::check::{CheckOptions, check};
use so101_hal::emulator::pty::PtyFrontEnd;
use so101_hal::{Calibration, EmulatedServos, EmulatorOptions, JOINTS, SystemClock, host, registers};

use crate::programs::{example, stderr, stdout, succeed};

const CAMERAS: &str =
    "[[cameras]]\nname = \"front\"\nsource = { synthetic = {} }\nwidth = 64\nheight = 48\nfps = 10\n";

/// What a busy computer makes of an arm and a camera: no test is to depend on it.
const BUSY: &str = "bus_p99,bus_gap,bus_errors,camera_rate,camera_jitter,camera_drops";

/// An arm on a port, its calibration file, and a folder for sets.
struct Bench {
    dir: tempfile::TempDir,
    servos: EmulatedServos,
    front: PtyFrontEnd,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let servos = EmulatedServos::new(Arc::new(SystemClock::new()), EmulatorOptions::default());
        servos.store_calibration(&Calibration::model()).unwrap();
        let front = PtyFrontEnd::serve(servos.clone(), None).unwrap();
        std::fs::write(dir.path().join("arm.json"), serde_json::to_string(&Calibration::model()).unwrap())
            .unwrap();
        std::fs::write(dir.path().join("cameras.toml"), CAMERAS).unwrap();
        Self { dir, servos, front }
    }

    fn set(&self) -> PathBuf {
        self.dir.path().join("set")
    }

    /// Short episodes of a plan on the port.
    fn record(&self, episodes: u32) -> Command {
        let mut c = example("record");
        c.args(["--rig", "real", "--port", self.front.path(), "--accept", BUSY, "--plan"]);
        c.arg(plan("pick_place"));
        c.arg("--calibration").arg(self.dir.path().join("arm.json"));
        c.arg("--cameras").arg(self.dir.path().join("cameras.toml")).arg("--out").arg(self.set());
        c.args([
            "--episodes",
            &episodes.to_string(),
            "--fps",
            "10",
            "--episode-s",
            "1.2",
            "--home-speed",
            "180",
        ]);
        c
    }

    fn torque(&self) -> [i32; 6] {
        JOINTS.map(|j| self.servos.register(j, &registers::TORQUE_ENABLE).unwrap())
    }

    /// The set is sound and has this many episodes.
    fn require_episodes(&self, n: usize) -> Dataset {
        let report = check(self.set(), &CheckOptions::default()).unwrap();
        assert!(report.passed, "{:?}", report.findings);
        let set = Dataset::open(self.set()).unwrap();
        assert_eq!(set.episodes().len(), n);
        set
    }
}

fn plan(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tasks").join(format!("{name}.toml"))
}

/// Waits for what another process does; the limit only ends a test that hangs.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}: it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An episode's pictures are on their way to the disk: rows are being recorded.
fn records(set: &Path) -> bool {
    let staging = std::fs::read_dir(set.parent().unwrap()).unwrap().flatten();
    staging.into_iter().any(|e| e.file_name().to_string_lossy().starts_with(".set.rec-"))
}

fn interrupt(child: &Child) {
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
}

#[test]
fn an_episode_of_a_real_arm_is_a_sound_set_with_the_measured_time_of_everything() {
    let bench = Bench::new();
    let out = succeed(bench.record(1).args(["--teleop", "scripted", "--yes", "--reset-s", "0"]));
    assert_eq!(stdout(&out), format!("saved episode=0 frames=12 success=none\n{}\n", bench.set().display()));
    assert_eq!(bench.torque(), [0; 6], "the arm is relaxed at the end");

    let set = bench.require_episodes(1);
    let sidecar = set.sidecar().unwrap().unwrap();
    let entry = &sidecar.episodes()[0];
    let record = sidecar.record(entry).unwrap();
    let lengths =
        [record.observed_ns.len(), record.acted_ns.len(), record.cameras["front"].captured_ns.len()];
    assert_eq!(lengths, [12; 3]);
    assert!(record.acted_ns.iter().zip(&record.observed_ns).all(|(acted, seen)| acted >= seen));
    let timing = entry.timing.unwrap();
    assert!(timing.bus_cycles > 12 && timing.alarms == [0; 6], "{timing:?}");
    // The arm goes where it is told: from home to the place of the object.
    let table = set.rows(0).unwrap();
    let state = table.f32("observation.state").unwrap();
    let lift = |row: usize| state[row * 6 + 1];
    assert!((lift(11) - lift(0)).abs() > 3.0, "{} to {}", lift(0), lift(11));

    let facts = set.session_json("rig.json").unwrap().unwrap();
    assert_eq!(facts["calibration"]["joints"]["gripper"]["id"], 6);
    assert_eq!(facts["cameras"][0]["config"]["name"], "front");
    let task = set.session_json("task.json").unwrap().unwrap();
    assert_eq!((task["rig"].as_str(), task["props"][0]["name"].as_str()), (Some("real"), Some("box")));
    let log = std::fs::read(bench.set().join("meta/so101/host.jsonl")).unwrap();
    let session: serde_json::Value =
        serde_json::from_slice(log.split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert!(session["episodes"][0]["control"]["read"]["samples"].as_u64() > Some(12), "{session}");
    let stages = host::parse(&log);
    assert_eq!(stages.starts.len(), 1);
    let line = &stages.lines[0].1;
    assert!(
        ["observe_bus", "policy", "act", "record", "total"].iter().all(|s| line.stages.contains_key(*s)),
        "{line:?}"
    );
    assert_eq!(line.episode, Some(0));
}

#[test]
fn ctrl_c_drops_the_running_episode_keeps_the_others_and_relaxes_the_arm() {
    let bench = Bench::new();
    let mut command = bench.record(9);
    command.args(["--teleop", "scripted", "--yes", "--reset-s", "0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("saved episode=0 "), "{first}");
    wait_until("the next episode", || records(&bench.set()));
    assert_eq!(bench.torque(), [1; 6]);
    interrupt(&child);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(bench.torque(), [0; 6]);
    let saved = 1 + lines.map_while(Result::ok).filter(|l| l.starts_with("saved")).count();
    bench.require_episodes(saved);
}

#[test]
fn a_second_ctrl_c_relaxes_the_arm_at_once() {
    let bench = Bench::new();
    let mut command = bench.record(1);
    // So slow a way home that nobody waits for its end.
    command.args(["--teleop", "scripted", "--yes", "--reset-s", "0", "--home-speed", "0.5"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    wait_until("the arm holds", || bench.torque() == [1; 6]);
    interrupt(&child);
    assert!(lines.any(|l| l.starts_with("stopping after this frame")));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(bench.torque(), [0; 6]);
}

#[test]
fn a_killed_recorder_leaves_the_arm_at_its_last_goal_and_the_set_whole() {
    let bench = Bench::new();
    let mut command = bench.record(9);
    command.args(["--teleop", "scripted", "--yes", "--reset-s", "0"]).env("SO101_CRASH_AT", "frame:1:9");
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), None, "{}", stderr(&out));
    assert_eq!(bench.torque(), [1; 6], "a servo holds its last goal until somebody relaxes it");
    bench.require_episodes(1);
    // The next run takes the arm as it finds it.
    succeed(bench.record(2).args(["--teleop", "scripted", "--yes", "--reset-s", "0", "--resume"]));
    assert_eq!(bench.torque(), [0; 6]);
    bench.require_episodes(2);
}

#[test]
fn the_operators_keys_begin_judge_and_repeat_an_episode() {
    let bench = Bench::new();
    let mut command = bench.record(1);
    command.args(["--teleop", "scripted", "--judge"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    let mut said = Vec::new();
    let answers = [
        ("the arm goes to the plan's home", "\n"),
        ("episode 0: put orange-cube at", "\n"),
        ("did it succeed?", "r"),
        ("episode 0 again", ""),
        ("episode 0: put orange-cube at", "n"),
        ("did it succeed?", "y"),
    ];
    let mut answers = answers.iter().peekable();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        if let Some((_, key)) = answers.next_if(|(says, _)| line.starts_with(says)) {
            keys.write_all(key.as_bytes()).unwrap();
            keys.flush().unwrap();
        }
        said.push(line);
    }
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && answers.peek().is_none(), "{said:#?}");
    assert!(stdout(&out).starts_with("saved episode=0 frames=12 success=true\n"), "{}", stdout(&out));
    assert_eq!(bench.torque(), [0; 6]);
    bench.require_episodes(1);
}

#[test]
fn nothing_moves_before_somebody_has_said_yes_and_what_is_missing_is_said() {
    let bench = Bench::new();
    let refused = |command: &mut Command, code: i32, says: &[&str]| {
        let out = command.output().unwrap();
        let text = stderr(&out);
        assert_eq!(out.status.code(), Some(code), "{text}");
        assert!(says.iter().all(|s| text.contains(s)), "{text}");
        assert_eq!(bench.torque(), [0; 6]);
        assert!(!bench.set().exists());
    };
    refused(&mut bench.record(1), 2, &["who drives the arm?", "--teleop leader"]);
    refused(bench.record(1).args(["--teleop", "expert"]), 2, &["only push-left has a demonstrator"]);
    refused(bench.record(1).args(["--teleop", "leader"]), 2, &["--leader-port"]);
    refused(
        bench.record(1).args(["--teleop", "scripted"]),
        3,
        &["nobody said that the arm may move", "--yes"],
    );
    refused(
        bench.record(1).args(["--teleop", "scripted", "--yes", "--home-speed", "0"]),
        2,
        &["--home-speed 0"],
    );
    let mut no_calibration = example("record");
    no_calibration.args(["--task", "wave", "--teleop", "scripted", "--port", bench.front.path()]);
    refused(no_calibration.current_dir(bench.dir.path()), 2, &["--id NAME or --calibration FILE"]);
    // What the pre-flight finds keeps the torque off.
    bench.servos.set_register(JOINTS[2], &registers::PRESENT_TEMPERATURE, 64).unwrap();
    refused(bench.record(1).args(["--teleop", "scripted", "--yes"]), 3, &["elbow_flex", "64 C"]);
}

#[test]
fn push_left_is_recorded_on_a_real_arm_too_by_a_pasted_command_line_of_lerobot() {
    let bench = Bench::new();
    let dir = bench.dir.path().display();
    let mut command = example("record_push_left");
    command.args([
        "--robot.type=so101_follower",
        &format!("--robot.port={}", bench.front.path()),
        "--robot.id=arm",
        &format!("--robot.calibration_dir={dir}"),
        "--dataset.num_episodes=1",
        "--dataset.fps=10",
        "--dataset.single_task=push the box to the left",
        "--dataset.episode_time_s=1",
        "--dataset.reset_time_s=0",
        &format!("--dataset.root={dir}/set"),
        "--dataset.push_to_hub=false",
        "--teleop",
        "expert",
        "--home-speed",
        "180",
        "--accept",
        BUSY,
        "--yes",
    ]);
    succeed(&mut command);
    let set = bench.require_episodes(1);
    assert_eq!(set.tasks(), ["push the box to the left"]);
    assert_eq!(bench.torque(), [0; 6]);

    let out = example("record").arg("--robot.prot=x").output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(stderr(&out).contains("the nearest is --robot.port"), "{}", stderr(&out));
}

#[test]
fn keys_drive_an_emulated_arm_in_real_time() {
    let dir = tempfile::tempdir().unwrap();
    let set = dir.path().join("set");
    let mut command = example("record");
    command.args([
        "--rig",
        "emulated",
        "--teleop",
        "keyboard",
        "--task",
        "wave",
        "--episodes",
        "1",
        "--fps",
        "10",
    ]);
    command.args(["--episode-s", "4", "--home-speed", "180", "--yes", "--reset-s", "0", "--out"]).arg(&set);
    std::fs::write(dir.path().join("cameras.toml"), CAMERAS).unwrap();
    command.args(["--accept", BUSY, "--cameras"]).arg(dir.path().join("cameras.toml"));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    wait_until("the episode", || records(&set));
    keys.write_all(b"ffffff").unwrap();
    keys.flush().unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let table = Dataset::open(&set).unwrap();
    let rows = table.rows(0).unwrap();
    let action = rows.f32("action").unwrap();
    // Six steps of 5 mm down turn shoulder and elbow.
    let moved: f32 = (0..5).map(|j| (action[action.len() - 6 + j] - action[j]).abs()).sum();
    assert!(moved > 2.0, "{moved}");
}
