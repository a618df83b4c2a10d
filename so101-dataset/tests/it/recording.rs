//! Small recordings that the tests of the writer share: every value is a formula of episode, row and camera.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use so101_dataset::{DatasetSpec, DatasetWriter, SessionInfo, WriterOptions};
use so101_hal::{
    Action, CameraSpec, Degrees, EpisodeEnd, EpisodeSink, EpisodeStart, Frame, JointVector, Lux, NamedFrame,
    Observation, Timestamp,
};

pub(crate) const FPS: u32 = 30;
pub(crate) const TASKS: [&str; 2] = ["push the object to the left", "pick the cube"];

pub(crate) fn spec() -> DatasetSpec {
    let cameras = vec![CameraSpec::new("main", 96, 64), CameraSpec::new("gripper", 48, 32)];
    DatasetSpec { session: SessionInfo::with_object("yellow-large"), ..DatasetSpec::so101(FPS, cameras) }
}

pub(crate) fn spec_without_cameras() -> DatasetSpec {
    DatasetSpec { cameras: Vec::new(), ..spec() }
}

/// Rows of episode `episode`.
pub(crate) fn length(episode: u64) -> u64 {
    [9, 5, 12][(episode % 3) as usize] + episode / 3
}

pub(crate) fn joints(episode: u64, row: u64, shift: f64) -> JointVector<Degrees> {
    let t = row as f64 * 0.3 + episode as f64 * 1.7 + shift;
    JointVector::<Degrees>::from_row(std::array::from_fn(|j| 30.0 * (t + j as f64).sin() + 2.0 * j as f64))
}

pub(crate) fn observation(spec: &DatasetSpec, episode: u64, row: u64) -> Observation {
    let at = Timestamp::from_start(Duration::from_nanos(1_000_000_000 * episode + 33_333_333 * row + 500));
    let frames = spec.cameras.iter().enumerate().map(|(k, camera)| {
        let (w, h) = (camera.size.width as usize, camera.size.height as usize);
        let rgb = (0..w * h)
            .flat_map(|i| {
                let (x, y) = (i % w, i / w);
                [(x * 2 + row as usize * 5) as u8, (y * 3 + 20 * episode as usize) as u8, (60 + k * 90) as u8]
            })
            .collect();
        let captured =
            Timestamp::from_start(at.since_start().saturating_sub(Duration::from_nanos(k as u64 * 100)));
        let frame =
            Frame::new(camera.size, rgb, row / 2 * 2 + row % 2 * u64::from(row != 3), captured).unwrap();
        NamedFrame { camera: Arc::from(camera.name.as_str()), frame }
    });
    Observation { at, joints: joints(episode, row, 0.0), frames: frames.collect() }
}

pub(crate) fn start(episode: u64) -> EpisodeStart {
    EpisodeStart {
        task: TASKS[(episode % 2) as usize].into(),
        lux: (episode != 1).then_some(Lux(80.0 + episode as f64)),
        object: Some("yellow-large".into()),
        seed: Some(episode * 7),
    }
}

pub(crate) fn end(episode: u64) -> EpisodeEnd {
    EpisodeEnd { success: [None, Some(true), Some(false)][(episode % 3) as usize], note: None, timing: None }
}

/// Hands one episode over.
pub(crate) fn record(writer: &mut DatasetWriter, spec: &DatasetSpec, episode: u64) {
    writer.begin(&start(episode)).unwrap();
    for row in 0..length(episode) {
        writer.add(&observation(spec, episode, row), &Action { joints: joints(episode, row, 0.3) }).unwrap();
    }
    writer.end(&end(episode)).unwrap();
}

/// A new dataset of this many episodes.
pub(crate) fn dataset(path: &Path, spec: &DatasetSpec, episodes: u64) {
    let mut writer = DatasetWriter::create(path, spec.clone(), WriterOptions::default()).unwrap();
    writer.set_session_file("task.json", *b"{\"frame\": \"base\"}").unwrap();
    for episode in 0..episodes {
        record(&mut writer, spec, episode);
    }
    let report = writer.finish().unwrap();
    assert_eq!((report.episodes, report.frames), (episodes, (0..episodes).map(length).sum()));
}

/// Path and content of every file below a folder.
pub(crate) fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(dir: &Path, base: &Path, out: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, base, out);
            } else {
                out.insert(path.strip_prefix(base).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(dir, dir, &mut out);
    out
}

/// Asserts that two datasets have the same files with the same bytes; names those that differ.
pub(crate) fn assert_same_files(a: &Path, b: &Path, what: &str) {
    let (a, b) = (tree(a), tree(b));
    let names = |t: &BTreeMap<PathBuf, Vec<u8>>| t.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&a), names(&b), "{what}");
    let differ: Vec<_> = a.iter().filter(|(p, bytes)| b.get(*p) != Some(bytes)).map(|(p, _)| p).collect();
    assert!(differ.is_empty(), "{what}: {differ:?} differ");
}

/// Names in a folder, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
