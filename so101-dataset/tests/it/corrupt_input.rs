//! Damaged datasets are refused by a typed error of one line that names the file; nothing panics.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use so101_dataset::check::{CheckOptions, check};
use so101_dataset::{Dataset, Error};

use crate::planting::Copy;
use crate::reads_lerobot::fixture;

const FILES: [&str; 4] = [
    "meta/info.json",
    "meta/tasks.parquet",
    "meta/episodes/chunk-000/file-000.parquet",
    "data/chunk-000/file-000.parquet",
];

/// Reads everything that there is to read.
fn read_all(root: &Path) -> Result<(), Error> {
    let set = Dataset::open(root)?;
    set.stats()?;
    set.episode_stats()?;
    set.sidecar()?;
    for episode in set.episodes() {
        set.rows(episode.episode)?;
    }
    Ok(())
}

fn assert_refused(root: &Path, file: &Path, what: &str) {
    let message = match read_all(root) {
        Err(e) => e.to_string(),
        Ok(()) => panic!("{what} was accepted"),
    };
    assert!(!message.contains('\n') && message.len() < 600, "{what}: {message}");
    let named = message.ends_with(&format!(": {}", file.display()))
        || message.ends_with(&format!(": {}", root.display()));
    assert!(named, "{what}: the message does not end with the path: {message}");
}

#[test]
fn a_file_cut_off_at_any_length_is_refused_by_its_name() {
    let copy = Copy::of(&fixture("lerobot_h264"));
    for name in FILES {
        let path = copy.path(name);
        let whole = std::fs::read(&path).unwrap();
        let near_the_end = (1..40).map(|n| whole.len() - n);
        let lengths = (0..whole.len()).step_by(whole.len() / 60 + 1).chain(near_the_end);
        for length in lengths {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_refused(&copy.root, &path, &format!("{name} of {length} bytes"));
        }
        std::fs::write(&path, &whole).unwrap();
    }
    read_all(&copy.root).unwrap();
}

#[test]
fn a_folder_in_place_of_a_file_is_refused_by_its_name() {
    for name in FILES {
        let copy = Copy::of(&fixture("lerobot_h264"));
        let path = copy.path(name);
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_refused(&copy.root, &path, name);
    }
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_and_not_waited_for() {
    for name in FILES.into_iter().chain(["video.mp4"]) {
        let copy = Copy::of(&fixture("lerobot_h264"));
        let path = copy.path(name);
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // In a thread, so that waiting for a writer to the pipe fails the test instead of stopping it.
        let (done, result) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            match name {
                "video.mp4" => {
                    let refused = so101_dataset::mp4::Mp4Index::read(&path);
                    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
                }
                _ => assert_refused(&copy.root, &path, name),
            }
            let _ = done.send(());
        });
        let waited = result.recv_timeout(std::time::Duration::from_secs(60));
        assert!(waited.is_ok(), "{name}: {waited:?}");
    }
}

#[test]
fn what_is_no_dataset_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(PathBuf, &str); 3] = [
        (dir.path().join("absent"), "no LeRobot dataset here, the folder does not exist"),
        (dir.path().to_owned(), "no LeRobot dataset here, meta/info.json is missing"),
        (fixture("make_fixtures.py"), "no LeRobot dataset here, it is a file, not a folder"),
    ];
    for (path, expected) in cases {
        for message in [
            Dataset::open(&path).map(drop).unwrap_err().to_string(),
            check(&path, &CheckOptions::default()).map(drop).unwrap_err().to_string(),
        ] {
            assert!(message.starts_with(expected), "{message}");
        }
    }
}

#[test]
fn tables_that_contradict_each_other_are_refused_by_both_figures() {
    let cases = [
        ("/total_frames", 29, "the number of rows in the data files is 28, total_frames says 29"),
        ("/total_episodes", 4, "the number of episode rows is 3, total_episodes says 4"),
        ("/total_tasks", 1, "the number of tasks is 2, total_tasks says 1"),
    ];
    for (pointer, value, expected) in cases {
        let copy = Copy::of(&fixture("lerobot_h264"));
        crate::planting::edit_json(&copy.path(FILES[0]), pointer, value.into());
        let message = Dataset::open(&copy.root).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn a_crashed_recording_of_lerobot_is_refused_and_reported() {
    // What LeRobot 0.6.1 leaves after a kill: info.json counts episodes, the footers were never written.
    let copy = Copy::of(&fixture("lerobot_h264"));
    std::fs::remove_dir_all(copy.path("meta/episodes")).unwrap();
    let data = copy.path(FILES[3]);
    let bytes = std::fs::read(&data).unwrap();
    std::fs::write(&data, &bytes[..4000]).unwrap();
    assert_refused(&copy.root, &copy.path("meta/episodes"), "a crash");
    let report = check(&copy.root, &CheckOptions::default()).unwrap();
    assert!(report.violates("episodes.unreadable") && report.violates("files.unreadable"), "{report}");
}

/// Changes some bytes of a file of a copy of `set`, reads all of it and checks it.
fn survives(set: &Path, name: &str, edits: &[(usize, u8)]) {
    let copy = Copy::of(set);
    let path = copy.path(name);
    let mut bytes = std::fs::read(&path).unwrap();
    for (at, byte) in edits {
        let n = bytes.len();
        bytes[at % n] = *byte;
    }
    std::fs::write(&path, bytes).unwrap();
    if let Err(e) = read_all(&copy.root) {
        assert!(!e.to_string().contains('\n'), "{e}");
    }
    if let Ok(report) = check(&copy.root, &CheckOptions::default()) {
        assert!(report.to_string().lines().count() < 200, "{report}");
    }
}

/// A set whose videos this build decodes, recorded once and laid out anew.
#[cfg(feature = "video")]
fn recorded() -> tempfile::TempDir {
    static FILES: std::sync::OnceLock<std::collections::BTreeMap<PathBuf, Vec<u8>>> =
        std::sync::OnceLock::new();
    let files = FILES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("set");
        crate::recording::dataset(&root, &crate::recording::spec(), 1);
        crate::recording::tree(&root)
    });
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    dir
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_table_of_episodes_never_panics(edits in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        survives(&fixture("lerobot_h264"), FILES[2], &edits);
    }

    #[test]
    fn mutated_rows_never_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        survives(&fixture("lerobot_dtypes"), FILES[3], &edits);
    }

    #[test]
    fn mutated_tasks_never_panic(edits in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        survives(&fixture("lerobot_h264"), FILES[1], &edits);
    }

    #[test]
    fn a_mutated_video_never_panics(edits in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        survives(&fixture("lerobot_h264"), "videos/observation.images.main/chunk-000/file-000.mp4", &edits);
    }
    #[cfg(feature = "video")]
    #[test]
    fn a_mutated_video_that_is_decoded_never_panics(edits in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        survives(recorded().path(), "videos/observation.images.main/chunk-000/file-000.mp4", &edits);
    }
}
