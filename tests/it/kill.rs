//! `kill -9` at ten seeded moments: nothing that was reported saved is lost, nothing unfinished is visible.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use so101_dataset::Dataset;
use so101_dataset::check::{CheckOptions, check};

use crate::programs::{record, succeed};

const EPISODES: u32 = 3;

/// Where a run dies.
enum Kill {
    /// Before frame F of episode E.
    Frame(u32, u32),
    /// Inside the K-th commit, at a named step.
    Commit(u32, &'static str),
    /// From outside, this many milliseconds after the first `saved` line.
    Outside(u64),
}

#[test]
fn ten_kills_lose_no_saved_episode_and_resume_ends_at_equal_values() {
    let dir = tempfile::tempdir().unwrap();
    let reference = dir.path().join("reference");
    succeed(&mut record(&reference, EPISODES));
    let want = contents(&reference);
    let kills = [
        Kill::Frame(0, 0),
        Kill::Frame(0, 31),
        Kill::Frame(1, 2),
        Kill::Frame(1, 47),
        Kill::Frame(2, 55),
        Kill::Commit(1, "exchange-before"),
        Kill::Commit(2, "exchange-before"),
        Kill::Commit(2, "exchange-after"),
        Kill::Outside(0),
        Kill::Outside(150),
    ];
    for (n, kill) in kills.iter().enumerate() {
        let path = dir.path().join(format!("killed-{n}"));
        let saved = run_and_kill(&path, kill);
        let found = if path.exists() { contents(&path) } else { BTreeMap::new() };
        for episode in &saved {
            assert!(
                found.contains_key(episode),
                "kill {n}: episode {episode} was reported saved and is gone"
            );
        }
        for (episode, content) in &found {
            assert_eq!(
                Some(content),
                want.get(episode),
                "kill {n}: episode {episode} differs from the uninterrupted run"
            );
        }
        if path.exists() {
            let report = check(&path, &CheckOptions::default()).unwrap();
            assert!(report.passed, "kill {n}: {report}");
        }
        succeed(record(&path, EPISODES).arg("--resume"));
        assert_eq!(contents(&path), want, "kill {n}: resume ends elsewhere");
        let left = std::fs::read_dir(dir.path())
            .unwrap()
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned());
        let left: Vec<String> = left
            .filter(|name| name.starts_with(&format!(".killed-{n}.")) && !name.ends_with(".lock"))
            .collect();
        assert!(left.is_empty(), "kill {n} leaves {left:?}");
    }
}

/// Runs until the kill; the episodes whose `saved` line was printed before.
fn run_and_kill(path: &Path, kill: &Kill) -> Vec<u64> {
    let mut command = record(path, EPISODES);
    match kill {
        Kill::Frame(e, f) => command.env("SO101_CRASH_AT", format!("frame:{e}:{f}")),
        Kill::Commit(k, step) => command.env("SO101_CRASH_AT", format!("commit:{k}:{step}")),
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
