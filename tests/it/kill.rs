//! `kill -9` at seeded moments: nothing that was reported saved is lost, nothing unfinished is visible.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use so101_dataset::Dataset;
use so101_dataset::check::{CheckOptions, check};

use crate::programs::{record, succeed};

const EPISODES: u32 = 3;
/// Rows of the shortest episode at 10 rows a second are more than this.
const ROWS: u32 = 50;
const SEED: u64 = 2;

/// Steps of a commit at which a run is killed: before the swap, right at it, after it.
const STEPS: [&str; 6] = ["links", "files", "fsync", "exchange-before", "exchange-after", "cleanup"];

/// Where a run dies.
#[derive(Debug)]
enum Kill {
    /// Before frame F of episode E.
    Frame(u32, u32),
    /// Inside the K-th commit, at a named step.
    Commit(u32, &'static str),
    /// The same where folders cannot be swapped in one step.
    Journal(u32, &'static str),
    /// From outside, this many milliseconds after the first `saved` line.
    Outside(u64),
}

/// Five kills between frames, three inside commits, one where folders cannot be swapped, two from outside.
fn kills(seed: u64) -> Vec<Kill> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(Kill::Frame(below(EPISODES.into()) as u32, below(ROWS.into()) as u32));
    }
    for _ in 0..3 {
        all.push(Kill::Commit(1 + below(EPISODES.into()) as u32, STEPS[below(STEPS.len() as u64) as usize]));
    }
    all.push(Kill::Journal(2, "journal-between"));
    all.push(Kill::Outside(0));
    all.push(Kill::Outside(below(120)));
    all
}

#[test]
fn seeded_kills_lose_no_saved_episode_and_resume_ends_at_equal_values() {
    let dir = tempfile::tempdir().unwrap();
    let reference = dir.path().join("reference");
    succeed(&mut record(&reference, EPISODES));
    let want = contents(&reference);
    for (n, kill) in kills(SEED).iter().enumerate() {
        let what = format!("seed {SEED}, kill {n}, {kill:?}");
        let path = dir.path().join(format!("killed-{n}"));
        let saved = run_and_kill(&path, kill);
        // Between its two renames a journalled commit has the set under another name; opening it brings it back.
        let exists = path.exists() || matches!(kill, Kill::Journal(..));
        let found = if exists { contents(&path) } else { BTreeMap::new() };
        for episode in &saved {
            assert!(found.contains_key(episode), "{what}: episode {episode} was reported saved and is gone");
        }
        for (episode, content) in &found {
            assert_eq!(Some(content), want.get(episode), "{what}: episode {episode} differs");
        }
        if exists {
            let report = check(&path, &CheckOptions::default()).unwrap();
            assert!(report.passed, "{what}: {report}");
        }
        succeed(record(&path, EPISODES).arg("--resume"));
        assert_eq!(contents(&path), want, "{what}: resume ends elsewhere");
        let beside = std::fs::read_dir(dir.path()).unwrap().flatten();
        let left: Vec<String> = beside
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(&format!(".killed-{n}.")))
            .collect();
        assert!(left.is_empty(), "{what} leaves {left:?}");
    }
}

#[test]
fn resume_works_at_once_after_a_kill_between_the_two_renames_of_a_journalled_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    run_and_kill(&path, &Kill::Journal(2, "journal-between"));
    assert!(!path.exists(), "the kill came elsewhere");
    succeed(record(&path, EPISODES).arg("--resume"));
    assert_eq!(contents(&path).len(), EPISODES as usize);
}

/// Runs until the kill; the episodes whose `saved` line was printed before.
fn run_and_kill(path: &Path, kill: &Kill) -> Vec<u64> {
    let mut command = record(path, EPISODES);
    match kill {
        Kill::Frame(e, f) => command.env("SO101_CRASH_AT", format!("frame:{e}:{f}")),
        Kill::Commit(k, step) => command.env("SO101_CRASH_AT", format!("commit:{k}:{step}")),
        Kill::Journal(k, step) => {
            command.env("SO101_CRASH_AT", format!("commit:{k}:{step}")).env("SO101_SWAP", "journal")
        }
        Kill::Outside(_) => &mut command,
    };
    let (saved, killed) = run(&mut command, if let Kill::Outside(ms) = kill { Some(*ms) } else { None });
    assert!(killed, "the run was to be killed and was not");
    saved
}

fn run(command: &mut Command, kill_after_first: Option<u64>) -> (Vec<u64>, bool) {
    use std::os::unix::process::ExitStatusExt as _;
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut saved = Vec::new();
    let pid = rustix::process::Pid::from_child(&child);
    for line in lines {
        let line = line.unwrap();
        if let Some(rest) = line.strip_prefix("saved episode=") {
            saved.push(rest.split(' ').next().unwrap().parse().unwrap());
            if let (1, Some(ms)) = (saved.len(), kill_after_first) {
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(ms));
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                });
            }
        }
    }
    let status = child.wait().unwrap();
    // The hook inside of a commit aborts, everything else is a real SIGKILL.
    (saved, matches!(status.signal(), Some(6 | 9)))
}

/// Actions, states and video bytes of one episode.
type Content = (Vec<f32>, Vec<f32>, Vec<Vec<u8>>);

fn contents(path: &Path) -> BTreeMap<u64, Content> {
    let set = Dataset::open(path).unwrap();
    let videos = |e: u64| -> Vec<PathBuf> {
        ["observation.images.main", "observation.images.gripper"]
            .iter()
            .map(|c| set.video_path(e, c).unwrap())
            .collect()
    };
    (0..set.info().total_episodes)
        .map(|e| {
            let rows = set.rows(e).unwrap();
            let bytes = videos(e).iter().map(|p| std::fs::read(p).unwrap()).collect();
            let column = |name: &str| rows.f32(name).unwrap().to_vec();
            (e, (column("action"), column("observation.state"), bytes))
        })
        .collect()
}
