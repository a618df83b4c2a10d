//! The writer killed inside of a commit, and out of disk space: in child processes that run this very test binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use so101_dataset::{Dataset, DatasetWriter, Error, WriterOptions};

use crate::recording::*;

/// The state in which a kill leaves the dataset.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    Old,
    New,
}

/// How the generations change places.
#[derive(Clone, Copy, PartialEq)]
enum Route {
    Exchange,
    Journal,
}

/// Tells a child where to record, and how many episodes there shall be.
const CHILD: &str = "SO101_TEST_RECORD";
const EPISODES: u64 = 3;

/// Not a test of its own: what the children run. Prints a line for each episode once it is durable.
#[test]
fn child_that_records() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut writer = DatasetWriter::resume(path, spec(), WriterOptions::default()).unwrap();
    writer.set_session_file("task.json", *b"{\"frame\": \"base\"}").unwrap();
    for episode in writer.episodes()..EPISODES {
        record(&mut writer, &spec(), episode);
        for saved in writer.wait_saved().unwrap() {
            println!("\nsaved {}", saved.episode);
        }
    }
    writer.finish().unwrap();
}

/// By the running image: the file may be replaced by a build that goes on meanwhile.
fn this_binary() -> PathBuf {
    let image = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    if image.exists() || image.is_symlink() { image } else { std::env::current_exe().unwrap() }
}

fn child(path: &Path, crash_at: Option<&str>, route: Route) -> Output {
    let mut command = Command::new(this_binary());
    command.args(["--exact", "killed::child_that_records", "--nocapture"]).env(CHILD, path);
    if let Some(at) = crash_at {
        command.env("SO101_CRASH_AT", at);
    }
    if route == Route::Journal {
        command.env("SO101_SWAP", "journal");
    }
    command.output().unwrap()
}

fn saved_lines(output: &Output) -> u64 {
    String::from_utf8_lossy(&output.stdout).lines().filter(|l| l.starts_with("saved ")).count() as u64
}

/// Kills the K-th commit after a step; then the dataset has K - 1 or K episodes, and resuming completes it.
fn killed_at(step: &str, commit: u64, left: Left, route: Route, whole: &Path) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let at = format!("commit:{commit}:{step}");
    let output = child(&path, Some(&at), route);
    assert!(!output.status.success(), "{at} did not kill");
    let durable = if left == Left::New { commit } else { commit - 1 };
    if durable == 0 {
        assert!(matches!(Dataset::open(&path), Err(Error::NotADataset { .. })), "{at}");
    } else {
        let (set, reference) = (Dataset::open(&path).unwrap(), Dataset::open(whole).unwrap());
        assert_eq!(set.episodes().len() as u64, durable, "{at}");
        for e in 0..durable {
            let (a, b) = (set.rows(e).unwrap(), reference.rows(e).unwrap());
            assert_eq!(a.columns(), b.columns(), "{at}, episode {e}");
        }
        assert!(set.missing_videos().is_empty(), "{at}");
    }
    // Everything that was announced is there.
    assert!(saved_lines(&output) <= durable, "{at}");
    let rest = child(&path, None, route);
    assert!(rest.status.success(), "{at}: {}", String::from_utf8_lossy(&rest.stderr));
    assert_same_files(whole, &path, &at);
    assert_eq!(names(dir.path()), ["set"], "{at}");
}

#[test]
fn a_commit_killed_at_any_step_leaves_the_old_or_the_new_state() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    dataset(&whole, &spec(), EPISODES);
    for commit in [1, 2] {
        for (step, left) in [
            ("links", Left::Old),
            ("files", Left::Old),
            ("fsync", Left::Old),
            ("exchange-before", Left::Old),
            ("exchange-after", Left::New),
            ("cleanup", Left::New),
        ] {
            killed_at(step, commit, left, Route::Exchange, &whole);
        }
    }
}

#[test]
fn a_commit_by_journal_killed_at_any_step_leaves_the_old_or_the_new_state() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    dataset(&whole, &spec(), EPISODES);
    for (step, left) in [
        ("exchange-before", Left::Old),
        ("journal", Left::New),
        ("journal-between", Left::New),
        ("exchange-after", Left::New),
        ("cleanup", Left::New),
    ] {
        killed_at(step, 2, left, Route::Journal, &whole);
    }
    let unharmed = dir.path().join("unharmed");
    assert!(child(&unharmed, None, Route::Journal).status.success());
    assert_same_files(&whole, &unharmed, "journal without a kill");
}

#[test]
fn a_new_dataset_is_refused_where_a_kill_left_one_without_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    assert!(!child(&path, Some("commit:2:journal-between"), Route::Journal).status.success());
    assert!(!path.exists() && names(dir.path()).contains(&".set.journal".to_owned()));
    let refused = DatasetWriter::create(&path, spec(), WriterOptions::default());
    assert!(matches!(refused, Err(Error::AlreadyExists { .. })), "{refused:?}");
    assert_eq!(Dataset::open(&path).unwrap().episodes().len(), 2);
    assert_eq!(names(dir.path()), ["set"]);
}

/// Not a test of its own: records without end into a small file system until it is full.
#[test]
fn child_that_fills_the_disk() {
    use so101_hal::{Action, EpisodeEnd, EpisodeSink};
    let Some(folder) = std::env::var_os("SO101_TEST_FILL") else { return };
    let path = Path::new(&folder).join("set");
    let (spec, options) = (spec(), WriterOptions::default());
    let mut writer = DatasetWriter::create(&path, spec.clone(), options.clone()).unwrap();
    let (mut durable, mut refused) = (0, None);
    for episode in 0..10_000 {
        // Ever longer, so that the disk is full in the middle of an episode, too.
        let mut run = || {
            writer.begin(&start(episode))?;
            for row in 0..30 * (1 + episode) {
                writer
                    .add(&observation(&spec, episode, row), &Action { joints: joints(episode, row, 0.3) })?;
            }
            writer.end(&EpisodeEnd::default())
        };
        if let Err(e) = run() {
            refused = Some(*e.downcast::<Error>().unwrap());
            break;
        }
        match writer.wait_saved() {
            Ok(saved) => durable += saved.len() as u64,
            Err(e) => {
                refused = Some(e);
                break;
            }
        }
    }
    assert!(matches!(refused, Some(Error::DiskFull { .. })), "{refused:?}");
    drop(writer);
    let set = Dataset::open(&path).unwrap();
    assert!(durable > 0 && set.episodes().len() as u64 == durable);
    for e in 0..durable {
        set.rows(e).unwrap();
    }
    assert_eq!(names(Path::new(&folder)), ["set"]);
    println!("\nfilled after {durable} episodes: {}", refused.unwrap());
}

#[test]
fn a_full_disk_is_a_typed_error_and_costs_only_the_running_episode() {
    let dir = tempfile::tempdir().unwrap();
    for size in ["600k", "1m", "2m"] {
        let script = format!(
            "mount -t tmpfs -o size={size} tmpfs \"$SO101_TEST_FILL\" || exit 77; exec \"$0\" \"$@\""
        );
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .arg(this_binary())
            .args(["--exact", "killed::child_that_fills_the_disk", "--nocapture"])
            .env("SO101_TEST_FILL", dir.path())
            .output();
        match output {
            Ok(output) if output.status.success() => {
                assert!(String::from_utf8_lossy(&output.stdout).contains("filled after"), "{output:?}");
            }
            Ok(output) if output.status.code() == Some(101) => {
                panic!("{size}: {}", String::from_utf8_lossy(&output.stderr));
            }
            _ => println!("skipped: a small file system needs root, unshare and mount"),
        }
    }
}
