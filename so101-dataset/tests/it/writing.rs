//! The writer against our own reader.

use std::time::Duration;

use so101_dataset::check::{CheckOptions, check};
use so101_dataset::sidecar::table_key;
use so101_dataset::video::VideoReader;
use so101_dataset::{Dataset, DatasetWriter, Error, QUANTILES, SessionInfo, VectorStats, WriterOptions};
use so101_hal::{
    Action, CameraSpec, Degrees, EpisodeEnd, EpisodeSink, EpisodeStart, EpisodeTiming, Frame, JointVector,
    Observation, Percent, Timestamp,
};

use crate::recording::*;

fn options() -> WriterOptions {
    WriterOptions::default()
}

/// The typed error inside of a sink's boxed one.
fn typed(e: so101_hal::BoxError) -> Error {
    *e.downcast::<Error>().unwrap()
}

#[test]
fn what_was_added_is_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/set");
    dataset(&path, &spec(), 3);
    assert_eq!(names(path.parent().unwrap()), ["set"]);
    let set = Dataset::open(&path).unwrap();
    assert_eq!((set.info().fps, set.info().total_episodes, set.info().total_frames), (FPS, 3, 26));
    assert_eq!(set.tasks(), TASKS);
    assert!(set.missing_videos().is_empty());
    let mut index = 0;
    for e in 0..3 {
        let row = &set.episodes()[e as usize];
        assert_eq!(
            (row.length, row.data_file, row.tasks.as_slice()),
            (length(e), e, [TASKS[e as usize % 2].to_owned()].as_slice())
        );
        let table = set.rows(e).unwrap();
        for k in 0..length(e) {
            let at = k as usize;
            let want = joints(e, k, 0.3).to_row().map(|v| v as f32);
            assert_eq!(table.f32("action").unwrap()[at * 6..at * 6 + 6], want);
            let want = joints(e, k, 0.0).to_row().map(|v| v as f32);
            assert_eq!(table.f32("observation.state").unwrap()[at * 6..at * 6 + 6], want);
            assert_eq!(table.f32("timestamp").unwrap()[at], (k as f64 / f64::from(FPS)) as f32);
            let whole =
                ["frame_index", "episode_index", "index", "task_index"].map(|c| table.i64(c).unwrap()[at]);
            assert_eq!(whole, [k as i64, e as i64, index, e as i64 % 2]);
            index += 1;
        }
        for key in ["observation.images.main", "observation.images.gripper"] {
            let span = set.video_span(e, key).unwrap();
            assert_eq!((span.from_s, span.to_s), (0.0, length(e) as f64 / f64::from(FPS)));
            assert_eq!(VideoReader::open(&set.video_path(e, key).unwrap()).unwrap().frames(), length(e));
        }
    }
    let info = set.info().features.get("observation.images.main").unwrap().video_info().unwrap().clone();
    assert_eq!((info["video.codec"].as_str(), info["video.width"].as_u64()), (Some("h264"), Some(96)));
    assert_eq!(set.session_json("task.json").unwrap().unwrap()["frame"], "base");
}

#[test]
fn the_checker_finds_nothing_in_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    for (name, spec) in [("cameras", spec()), ("none", spec_without_cameras())] {
        let path = dir.path().join(name);
        dataset(&path, &spec, 4);
        let report = check(&path, &CheckOptions::default()).unwrap();
        assert!(report.passed && report.findings.is_empty(), "{name}: {:?}", report.findings);
    }
}

#[test]
fn the_sidecar_keeps_what_lerobot_has_no_place_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    dataset(&path, &spec(), 3);
    let set = Dataset::open(&path).unwrap();
    let sidecar = set.sidecar().unwrap().unwrap();
    assert_eq!(sidecar.recording().session.object.as_deref(), Some("yellow-large"));
    for e in 0..3 {
        let entry = sidecar.find(e, &table_key(&set.rows(e).unwrap())).unwrap();
        let want = (e, start(e).lux, start(e).seed, end(e).success);
        assert_eq!((entry.episode, entry.lux, entry.seed, entry.success), want);
        let record = sidecar.record(entry).unwrap();
        assert_eq!(record.observed_ns.len() as u64, length(e));
        assert_eq!(record.observed_ns[..2], [0, 33_333_333]);
        let gripper = &record.cameras["gripper"];
        assert_eq!((gripper.captured_ns[1], gripper.stale.as_slice()), (33_333_233, [3].as_slice()));
        assert_eq!(gripper.stats.frames(), length(e));
    }
}

#[test]
fn moments_of_actions_and_the_loops_timing_are_kept_where_they_were_measured() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let mut writer = DatasetWriter::create(&path, spec_without_cameras(), WriterOptions::default()).unwrap();
    let ms = |ms| Timestamp::from_start(Duration::from_millis(ms));
    let joints = JointVector::<Degrees>::from_row([1.0; 6]);
    let mut timing = EpisodeTiming::default();
    timing.bus_retries = 7;
    timing.alarms[2] = 0x20;
    for measured in [true, false] {
        writer.begin(&EpisodeStart { task: "wave".into(), ..EpisodeStart::default() }).unwrap();
        for row in 0..3 {
            let seen = Observation { at: ms(100 + 33 * row), joints, frames: Vec::new() };
            if measured || row == 1 {
                writer.add_acted(&seen, &Action { joints }, ms(104 + 33 * row)).unwrap();
            } else {
                writer.add(&seen, &Action { joints }).unwrap();
            }
        }
        writer.end(&EpisodeEnd { timing: measured.then_some(timing), ..EpisodeEnd::default() }).unwrap();
    }
    writer.finish().unwrap();
    let set = Dataset::open(&path).unwrap();
    let sidecar = set.sidecar().unwrap().unwrap();
    let [with, without] = sidecar.episodes() else { panic!("{:?}", sidecar.episodes()) };
    assert_eq!((with.timing, without.timing), (Some(timing), None));
    assert_eq!(sidecar.record(with).unwrap().acted_ns, [4_000_000, 37_000_000, 70_000_000]);
    // One moment among three rows would belong to no row.
    assert_eq!(sidecar.record(without).unwrap().acted_ns, [0; 0]);
    assert!(check(&path, &CheckOptions::default()).unwrap().passed);
}

#[test]
fn global_statistics_are_those_of_all_rows_and_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    dataset(&path, &spec(), 3);
    let set = Dataset::open(&path).unwrap();
    let stats = set.stats().unwrap().unwrap();
    let mut all: Vec<f32> = Vec::new();
    let mut episode_index: Vec<i64> = Vec::new();
    for e in 0..3 {
        all.extend_from_slice(set.rows(e).unwrap().f32("action").unwrap());
        episode_index.extend_from_slice(set.rows(e).unwrap().i64("episode_index").unwrap());
    }
    let near =
        |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
    for (feature, want) in [
        ("action", VectorStats::from_f32("action", 6, &all).unwrap().summary()),
        ("episode_index", VectorStats::from_i64("episode_index", &episode_index).unwrap().summary()),
    ] {
        let got = stats.get(feature).unwrap();
        for (name, values) in want.named() {
            assert!(near(got.get(name).unwrap(), values), "{feature} {name}");
        }
        assert_eq!(got.get("count").unwrap(), [want.count as f64]);
    }
    let camera = stats.get("observation.images.main").unwrap();
    assert_eq!(camera.get("count").unwrap(), [26.0]);
    assert_eq!(camera.get("max").unwrap()[2], 60.0 / 255.0);
    assert!(QUANTILES.iter().all(|(name, _)| camera.get(name).unwrap().len() == 3));
}

#[test]
fn the_same_episodes_give_the_same_bytes_in_one_session_or_in_three() {
    let dir = tempfile::tempdir().unwrap();
    let [once, again, resumed] = ["a", "b", "c"].map(|n| dir.path().join(n));
    dataset(&once, &spec(), 3);
    dataset(&again, &spec(), 3);
    assert_same_files(&once, &again, "two runs");
    for episode in 0..3 {
        // The first resume starts from nothing.
        let mut writer = DatasetWriter::resume(&resumed, spec(), options()).unwrap();
        assert_eq!(writer.episodes(), episode);
        writer.set_session_file("task.json", *b"{\"frame\": \"base\"}").unwrap();
        record(&mut writer, &spec(), episode);
        assert_eq!(writer.episodes(), episode + 1);
        assert_eq!(writer.finish().unwrap().saved[0].episode, episode);
    }
    assert_same_files(&once, &resumed, "resumed");
}

#[test]
fn the_folder_does_not_exist_before_the_first_episode_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let mut writer = DatasetWriter::create(&path, spec(), options()).unwrap();
    writer.set_session_file("host.jsonl", *b"{}\n").unwrap();
    writer.begin(&start(0)).unwrap();
    writer.add(&observation(&spec(), 0, 0), &Action { joints: joints(0, 0, 0.3) }).unwrap();
    assert!(!path.exists());
    let report = writer.finish().unwrap();
    assert_eq!((report.episodes, report.saved.len()), (0, 0));
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_discarded_episode_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let [plain, with_takes] = ["a", "b"].map(|n| dir.path().join(n));
    dataset(&plain, &spec(), 2);
    let mut writer = DatasetWriter::create(&with_takes, spec(), options()).unwrap();
    writer.set_session_file("task.json", *b"{\"frame\": \"base\"}").unwrap();
    for episode in 0..2 {
        writer.begin(&EpisodeStart { task: "a take that was no good".into(), ..start(7) }).unwrap();
        writer.add(&observation(&spec(), 7, 0), &Action { joints: joints(7, 0, 0.3) }).unwrap();
        assert_eq!(writer.open_rows(), Some(1));
        writer.discard().unwrap();
        record(&mut writer, &spec(), episode);
    }
    writer.finish().unwrap();
    assert_same_files(&plain, &with_takes, "discarded takes");
    assert_eq!(names(dir.path()), ["a", "b"]);
}

#[test]
fn rows_that_do_not_fit_are_refused_and_the_episode_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let mut writer = DatasetWriter::create(&path, spec(), options()).unwrap();
    writer.begin(&start(0)).unwrap();
    let good = observation(&spec(), 0, 0);
    let action = Action { joints: joints(0, 0, 0.3) };
    let mut bad_joint = good.clone();
    bad_joint.joints.body[4] = Degrees(f64::NAN);
    let bad_action = Action { joints: JointVector { gripper: Percent(1e39), ..action.joints } };
    let (mut one_camera, mut third_camera, mut small) = (good.clone(), good.clone(), good.clone());
    one_camera.frames.pop();
    third_camera.frames.push(good.frames[0].clone());
    let size = so101_hal::FrameSize::new(8, 8);
    small.frames[1].frame = Frame::new(size, vec![0; size.rgb_len()], 0, good.at).unwrap();
    let mut refused = |o, a| typed(writer.add(o, a).unwrap_err());
    let e = refused(&bad_joint, &action);
    assert!(
        matches!(&e, Error::NonFinite { feature, row: 0, dimension: 4, .. } if feature == "observation.state"),
        "{e}"
    );
    let e = refused(&good, &bad_action);
    assert!(matches!(&e, Error::NonFinite { feature, dimension: 5, .. } if feature == "action"), "{e}");
    assert!(matches!(refused(&one_camera, &action), Error::CameraSet { .. }));
    assert!(matches!(refused(&third_camera, &action), Error::CameraSet { .. }));
    assert!(matches!(refused(&small, &action), Error::FrameSize { .. }));
    assert_eq!(writer.open_rows(), Some(0));
    // The order of the pictures does not matter.
    let mut turned = good.clone();
    turned.frames.reverse();
    writer.add(&turned, &action).unwrap();
    for row in 1..length(0) {
        writer.add(&observation(&spec(), 0, row), &Action { joints: joints(0, row, 0.3) }).unwrap();
    }
    writer.end(&end(0)).unwrap();
    writer.finish().unwrap();
    let clean = dir.path().join("clean");
    dataset(&clean, &spec(), 1);
    std::fs::remove_file(clean.join("meta/so101/task.json")).unwrap();
    assert_same_files(&clean, &path, "refused rows");
}

#[test]
fn calls_out_of_order_are_refused_and_an_episode_without_rows_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = DatasetWriter::create(dir.path().join("set"), spec(), options()).unwrap();
    let row = (observation(&spec(), 0, 0), Action { joints: joints(0, 0, 0.3) });
    assert!(matches!(typed(writer.add(&row.0, &row.1).unwrap_err()), Error::EpisodeState { .. }));
    assert!(matches!(typed(writer.end(&EpisodeEnd::default()).unwrap_err()), Error::EpisodeState { .. }));
    assert!(matches!(typed(writer.discard().unwrap_err()), Error::EpisodeState { .. }));
    writer.begin(&start(0)).unwrap();
    assert!(matches!(typed(writer.begin(&start(0)).unwrap_err()), Error::EpisodeState { .. }));
    assert!(matches!(typed(writer.end(&EpisodeEnd::default()).unwrap_err()), Error::EmptyEpisode));
    assert_eq!((writer.open_rows(), writer.episodes()), (None, 0));
    assert_eq!(names(dir.path()), [".set.lock"]);
    for name in ["", "../x", "a/b", ".hidden", "recording.json", "episodes.jsonl"] {
        assert!(matches!(writer.set_session_file(name, []), Err(Error::Spec { .. })), "{name:?}");
    }
}

#[test]
fn a_new_dataset_takes_the_place_of_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    dataset(&path, &spec_without_cameras(), 1);
    let before = tree(&path);
    let refused = DatasetWriter::create(&path, spec_without_cameras(), options()).unwrap_err();
    assert!(
        matches!(&refused, Error::AlreadyExists { .. }) && refused.to_string().contains("--resume"),
        "{refused}"
    );
    for (what, make) in [("folder", true), ("file", false)] {
        let other = dir.path().join(what);
        if make {
            std::fs::create_dir(&other).unwrap();
        } else {
            std::fs::write(&other, "text").unwrap();
        }
        assert!(
            matches!(DatasetWriter::create(&other, spec(), options()), Err(Error::NotADataset { .. })),
            "{what}"
        );
        assert!(
            matches!(DatasetWriter::resume(&other, spec(), options()), Err(Error::NotADataset { .. })),
            "{what}"
        );
    }
    assert_eq!(tree(&path), before);
    assert_eq!(names(dir.path()), ["file", "folder", "set"]);
}

#[test]
fn resuming_as_something_else_is_refused_with_a_diff() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    dataset(&path, &spec(), 1);
    let before = tree(&path);
    let base = spec();
    for (what, other) in [
        ("fps", so101_dataset::DatasetSpec { fps: 60, ..base.clone() }),
        ("object", so101_dataset::DatasetSpec { session: SessionInfo::with_object("cube"), ..base.clone() }),
        ("robot_type", so101_dataset::DatasetSpec { robot_type: "koch".into(), ..base.clone() }),
        ("features", spec_without_cameras()),
        (
            "observation.images.main",
            so101_dataset::DatasetSpec {
                cameras: vec![CameraSpec::new("main", 64, 64), CameraSpec::new("gripper", 48, 32)],
                ..base
            },
        ),
    ] {
        match DatasetWriter::resume(&path, other, options()) {
            Err(Error::SpecMismatch { diff, .. }) => {
                assert_eq!(diff.0.iter().map(|d| d.what.as_str()).collect::<Vec<_>>(), [what]);
                assert!(diff.table().lines().count() == 2, "{}", diff.table());
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    assert_eq!(tree(&path), before);
}

#[test]
fn a_dataset_of_another_program_or_with_a_lost_video_is_not_added_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    dataset(&path, &spec(), 2);
    let video = path.join("videos/observation.images.main/chunk-000/file-001.mp4");
    let kept = dir.path().join("kept.mp4");
    std::fs::rename(&video, &kept).unwrap();
    assert!(matches!(DatasetWriter::resume(&path, spec(), options()), Err(Error::MissingFile { .. })));
    std::fs::rename(&kept, &video).unwrap();
    let lines = path.join("meta/so101/episodes.jsonl");
    let text = std::fs::read_to_string(&lines).unwrap();
    std::fs::write(&lines, text.lines().next().unwrap()).unwrap();
    let refused = DatasetWriter::resume(&path, spec(), options());
    assert!(matches!(refused, Err(Error::SidecarMissing { episode: 1, .. })), "{refused:?}");
    std::fs::remove_dir_all(path.join("meta/so101")).unwrap();
    let refused = DatasetWriter::resume(&path, spec(), options());
    assert!(matches!(refused, Err(Error::SidecarMissing { episode: 0, .. })), "{refused:?}");
}

#[test]
fn a_dataset_with_a_linked_folder_is_not_added_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    dataset(&path, &spec_without_cameras(), 1);
    let (data, elsewhere) = (path.join("data"), dir.path().join("elsewhere"));
    std::fs::rename(&data, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &data).unwrap();
    assert_eq!(Dataset::open(&path).unwrap().rows(0).unwrap().rows() as u64, length(0));
    let refused = DatasetWriter::resume(&path, spec_without_cameras(), options());
    assert!(matches!(&refused, Err(Error::LinkedFolder { path }) if *path == data), "{refused:?}");
}

#[test]
fn two_writers_cannot_have_one_dataset() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let first = DatasetWriter::create(&path, spec(), options()).unwrap();
    assert!(matches!(DatasetWriter::create(&path, spec(), options()), Err(Error::Locked { .. })));
    assert!(matches!(DatasetWriter::resume(&path, spec(), options()), Err(Error::Locked { .. })));
    drop(first);
    assert!(DatasetWriter::resume(&path, spec(), options()).is_ok());
}

#[test]
fn session_files_without_an_episode_are_written_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    dataset(&path, &spec_without_cameras(), 1);
    let mut writer = DatasetWriter::resume(&path, spec_without_cameras(), options()).unwrap();
    writer.set_session_file("host.jsonl", *b"{\"at\": 1}\n").unwrap();
    let report = writer.finish().unwrap();
    assert_eq!((report.saved.len(), report.episodes), (0, 1));
    assert_eq!(std::fs::read(path.join("meta/so101/host.jsonl")).unwrap(), b"{\"at\": 1}\n");
    assert_eq!(Dataset::open(&path).unwrap().episodes().len(), 1);
}

#[test]
fn saved_episodes_are_reported_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer =
        DatasetWriter::create(dir.path().join("set"), spec_without_cameras(), options()).unwrap();
    let mut seen = Vec::new();
    for episode in 0..4 {
        record(&mut writer, &spec_without_cameras(), episode);
        seen.extend(writer.drain_saved().unwrap());
    }
    seen.extend(writer.wait_saved().unwrap());
    assert!(writer.wait_saved().unwrap().is_empty() && writer.drain_saved().unwrap().is_empty());
    let figures: Vec<_> = seen.iter().map(|s| (s.episode, s.frames, s.success)).collect();
    assert_eq!(figures, (0..4).map(|e| (e, length(e), end(e).success)).collect::<Vec<_>>());
    assert_eq!(writer.finish().unwrap().episodes, 4);
}
