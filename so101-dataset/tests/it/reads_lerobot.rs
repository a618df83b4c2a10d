//! What the reader returns for sets written by LeRobot 0.6.1 equals what LeRobot returns.

use std::path::{Path, PathBuf};

use serde_json::Value;
use so101_dataset::window::{DEFAULT_TOLERANCE_S, WindowSpec, Windows};
use so101_dataset::{Column, DType, Dataset, Values};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn expected(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(fixture(&format!("{name}.expected.json"))).unwrap()).unwrap()
}

fn values(column: &Column) -> Vec<Value> {
    match column.values() {
        Values::Text(v) => v.iter().map(|s| Value::from(s.as_str())).collect(),
        Values::Bool(v) => v.iter().map(|b| Value::from(*b)).collect(),
        _ => column.to_f64().unwrap().into_iter().map(Value::from).collect(),
    }
}

#[test]
fn rows_equal_those_that_lerobot_reads() {
    for name in ["lerobot_h264", "lerobot_dtypes"] {
        let (set, expected) = (Dataset::open(fixture(name)).unwrap(), expected(name));
        for (feature, want) in expected["rows"].as_object().unwrap() {
            let want: Vec<&Value> =
                want.as_array().unwrap().iter().flat_map(|r| r.as_array().unwrap()).collect();
            let mut got = Vec::new();
            for episode in set.episodes() {
                got.extend(values(set.rows(episode.episode).unwrap().column(feature).unwrap()));
            }
            assert_eq!(got.len(), want.len(), "{name} {feature}");
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let same = match (got.as_f64(), want.as_f64()) {
                    (Some(a), Some(b)) => a == b,
                    _ => got == *want,
                };
                assert!(same, "{name} {feature} element {i}: {got}, LeRobot reads {want}");
            }
        }
    }
}

#[test]
fn episodes_and_tasks_equal_those_that_lerobot_reads() {
    for name in ["lerobot_h264", "lerobot_dtypes"] {
        let (set, expected) = (Dataset::open(fixture(name)).unwrap(), expected(name));
        assert_eq!(u64::from(set.info().fps), expected["fps"].as_u64().unwrap());
        let tasks: Vec<Value> = set.tasks().iter().map(|t| t.as_str().into()).collect();
        assert_eq!(Value::Array(tasks), expected["tasks"]);
        let episodes = expected["episodes"].as_array().unwrap();
        assert_eq!(set.episodes().len(), episodes.len());
        for (got, want) in set.episodes().iter().zip(episodes) {
            assert_eq!(want["episode_index"], got.episode);
            assert_eq!(want["length"], got.length);
            assert_eq!(want["dataset_from_index"], got.from_index);
            assert_eq!(want["dataset_to_index"], got.to_index);
            assert_eq!(want["tasks"], Value::from(got.tasks.clone()));
            for span in &got.videos {
                assert_eq!(want[format!("videos/{}/from_timestamp", span.key)], span.from_s);
                assert_eq!(want[format!("videos/{}/to_timestamp", span.key)], span.to_s);
            }
        }
        let mut texts = Vec::new();
        for episode in set.episodes() {
            let rows = set.rows_of(episode.episode, &["task_index"]).unwrap();
            texts.extend(
                rows.i64("task_index")
                    .unwrap()
                    .iter()
                    .map(|t| set.tasks()[usize::try_from(*t).unwrap()].clone()),
            );
        }
        assert_eq!(expected["task_of_row"], Value::from(texts));
    }
}

#[test]
fn statistics_equal_those_that_lerobot_reads() {
    for name in ["lerobot_h264", "lerobot_dtypes"] {
        let (set, expected) = (Dataset::open(fixture(name)).unwrap(), expected(name));
        let stats = set.stats().unwrap().unwrap();
        for (feature, want) in expected["stats"].as_object().unwrap() {
            for (statistic, want) in want.as_object().unwrap() {
                let got = stats.get(feature).unwrap().get(statistic).unwrap();
                assert_eq!(Value::from(got.to_vec()), *want, "{name} {feature} {statistic}");
            }
        }
        let episodes = set.episode_stats().unwrap();
        assert_eq!(episodes.len(), set.episodes().len());
        for (stats, row) in episodes.iter().zip(set.episodes()) {
            assert_eq!(stats.get("index").unwrap().get("min"), Some([row.from_index as f64].as_slice()));
            assert_eq!(stats.get("index").unwrap().get("count"), Some([row.length as f64].as_slice()));
        }
    }
}

#[test]
fn pictures_inside_the_table_come_out_as_the_bytes_of_a_png() {
    let set = Dataset::open(fixture("lerobot_dtypes")).unwrap();
    let rows = set.rows(1).unwrap();
    let Values::Image(pictures) = rows.column("observation.images.thumb").unwrap().values() else {
        unreachable!()
    };
    assert_eq!(pictures.len(), 6);
    assert!(pictures.iter().all(|p| p.starts_with(b"\x89PNG\r\n")));
}

#[test]
fn a_column_is_asked_for_by_its_own_type() {
    let set = Dataset::open(fixture("lerobot_dtypes")).unwrap();
    let rows = set.rows(0).unwrap();
    assert_eq!(set.info().features.get("pose").unwrap().dtype, DType::Float32);
    assert_eq!(rows.f32("pose").unwrap().len(), 5 * 16);
    assert!(rows.f32("action").unwrap_err().to_string().starts_with("column action is not of float32"));
    let message = rows.i64("actoin").unwrap_err().to_string();
    assert!(
        message.starts_with("no data feature \"actoin\", there are observation.state, action,"),
        "{message}"
    );
    assert!(set.rows(2).unwrap_err().to_string().starts_with("episode 2 asked for, the dataset has 2"));
}

#[test]
fn absent_videos_are_listed_and_do_not_keep_the_set_from_opening() {
    let copy = tempfile::tempdir().unwrap();
    crate::planting::copy_tree(&fixture("lerobot_h264"), copy.path());
    let set = Dataset::open(copy.path()).unwrap();
    assert_eq!(set.missing_videos(), [] as [PathBuf; 0]);
    std::fs::remove_dir_all(copy.path().join("videos")).unwrap();
    let set = Dataset::open(copy.path()).unwrap();
    let expected = copy.path().join("videos/observation.images.main/chunk-000/file-000.mp4");
    assert_eq!(set.missing_videos(), std::slice::from_ref(&expected));
    assert_eq!(set.video_path(2, "observation.images.main").unwrap(), expected);
    assert_eq!(set.video_span(2, "observation.images.main").unwrap().first_frame(30), 21);
    assert_eq!(set.rows(0).unwrap().rows(), 12);
}

#[test]
fn the_real_recording_opens_without_its_videos() {
    let Some(root) = std::env::var_os("SO101_REAL_DATA") else {
        println!("skipped: SO101_REAL_DATA is not set");
        return;
    };
    let set = Dataset::open(&root).unwrap();
    assert_eq!((set.episodes().len(), set.info().total_frames), (4, 1492));
    assert_eq!(set.missing_videos().len(), 2);
    assert_eq!(set.tasks().len(), 1);
    assert!(!set.tasks()[0].is_empty());
    let frames: usize = set.episodes().iter().map(|e| set.rows(e.episode).unwrap().rows()).sum();
    assert_eq!(frames, 1492);
    let action = set.rows(3).unwrap();
    assert_eq!(action.f32("action").unwrap().len(), 6 * action.rows());
}

#[test]
fn windows_with_their_padding_equal_lerobots_items() {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(fixture("lerobot_h264.windows.json")).unwrap()).unwrap();
    let deltas = serde_json::from_value(expected["delta_timestamps"].clone()).unwrap();
    let spec = WindowSpec::from_delta_timestamps(&deltas, 30, DEFAULT_TOLERANCE_S).unwrap();
    let set = std::sync::Arc::new(Dataset::open(fixture("lerobot_h264")).unwrap());
    let windows = Windows::new(set, &spec).unwrap();
    let items = expected["items"].as_array().unwrap();
    assert_eq!(windows.len(), items.len() as u64);
    let mut window = windows.get(0).unwrap();
    // Backwards, so that what a window leaves behind in the buffers would be seen.
    for (index, item) in items.iter().enumerate().rev() {
        windows.read(index as u64, &mut window).unwrap();
        let mut seen = 0;
        for column in &window.columns {
            let got: Vec<f64> = match column.values {
                Values::F32(ref v) => v.iter().map(|v| f64::from(*v)).collect(),
                Values::I64(ref v) => v.iter().map(|v| *v as f64).collect(),
                _ => unreachable!(),
            };
            let want = |key: &str| serde_json::from_value::<Vec<Value>>(item[key].clone()).unwrap();
            let want_values: Vec<f64> = want(&column.name).iter().map(|v| v.as_f64().unwrap()).collect();
            assert_eq!(got, want_values, "row {index}, {}", column.name);
            if let Some(pad) = &column.is_pad {
                let key = format!("{}_is_pad", column.name);
                assert_eq!(Value::from(pad.clone()), Value::from(want(&key)), "row {index}, {key}");
                seen += 1;
            }
            seen += 1;
        }
        assert_eq!(seen, item.as_object().unwrap().len(), "row {index}");
    }
    assert!(windows.get(windows.len()).is_err());
}
