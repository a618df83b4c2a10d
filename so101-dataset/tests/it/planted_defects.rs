//! Each defect, planted into a small dataset that passes, is found by the rule that is there for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use serde_json::{Value, json};
use so101_dataset::check::{CheckOptions, RULES, Severity, Videos, check};
use so101_dataset::mp4::{AvcParameters, Mp4Config, Mp4Index, Mp4Writer, SampleKind};

use crate::planting::{Copy, edit_column, edit_json, read_table, take_rows, write_table};
use crate::{reads_lerobot, recording};

const INFO: &str = "meta/info.json";
const STATS: &str = "meta/stats.json";
const MAIN: &str = "observation.images.main";

/// Three episodes as [`recording::dataset`] writes them: a data file, a metadata row and two mp4s each.
struct Set {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Set {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("set");
        recording::dataset(&root, &recording::spec(), 3);
        Self { _dir: dir, root }
    }

    fn copy(&self) -> Copy {
        Copy::of(&self.root)
    }
}

fn data(set: &Copy, episode: usize) -> PathBuf {
    set.path(&format!("data/chunk-000/file-{episode:03}.parquet"))
}

/// The file of the table of episodes that holds the row of `episode`, and the place of the row in it.
fn episodes_file(set: &Copy, episode: i64) -> (PathBuf, usize) {
    let mut files: Vec<_> =
        std::fs::read_dir(set.path("meta/episodes/chunk-000")).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for file in files {
        let table = read_table(&file);
        let numbers = table.column_by_name("episode_index").unwrap().as_primitive::<Int64Type>().clone();
        if let Some(row) = numbers.values().iter().position(|n| *n == episode) {
            return (file, row);
        }
    }
    panic!("no row of episode {episode}");
}

fn video(set: &Copy, episode: usize) -> PathBuf {
    set.path(&format!("videos/{MAIN}/chunk-000/file-{episode:03}.mp4"))
}

/// Adds `by` to one number of a column of scalars.
fn shift_i64(path: &Path, column: &str, row: usize, by: i64) {
    edit_column(path, column, |array| {
        let mut values = array.as_primitive::<Int64Type>().values().to_vec();
        values[row] += by;
        Arc::new(Int64Array::from(values))
    });
}

fn shift_f64(path: &Path, column: &str, row: usize, by: f64) {
    edit_column(path, column, |array| {
        let mut values = array.as_primitive::<Float64Type>().values().to_vec();
        values[row] += by;
        Arc::new(Float64Array::from(values))
    });
}

/// Sets one number of a column of vectors of float32.
fn set_f32(path: &Path, column: &str, element: usize, value: f32) {
    edit_column(path, column, |array| {
        let list = array.as_fixed_size_list();
        let mut values = list.values().as_primitive::<Float32Type>().values().to_vec();
        values[element] = value;
        let field = match list.data_type() {
            arrow_schema::DataType::FixedSizeList(field, _) => field.clone(),
            _ => unreachable!(),
        };
        Arc::new(FixedSizeListArray::new(
            field,
            list.value_length(),
            Arc::new(Float32Array::from(values)),
            None,
        ))
    });
}

/// Sets one statistic of a row of the table of episodes.
fn set_episode_stat(set: &Copy, episode: i64, column: &str, dimension: usize, value: f64) {
    let (path, row) = episodes_file(set, episode);
    edit_column(&path, column, |array| {
        let list = array.as_list::<i32>();
        let mut builder = ListBuilder::new(Float64Builder::new());
        for i in 0..list.len() {
            let mut values = list.value(i).as_primitive::<Float64Type>().values().to_vec();
            if i == row {
                values[dimension] = value;
            }
            builder.values().append_slice(&values);
            builder.append(true);
        }
        Arc::new(builder.finish()) as ArrayRef
    });
}

/// Writes an mp4 again: with other samples, or at another frame rate.
fn remux(path: &Path, fps: u32, edit: impl FnOnce(&mut Vec<(Vec<u8>, SampleKind)>)) {
    let bytes = std::fs::read(path).unwrap();
    let index = Mp4Index::from_bytes(&bytes, path).unwrap();
    let mut samples: Vec<_> = index
        .samples
        .iter()
        .map(|s| {
            let start = usize::try_from(s.offset).unwrap();
            (bytes[start..start + s.bytes as usize].to_vec(), s.kind)
        })
        .collect();
    edit(&mut samples);
    // avcC: five bytes, the number of SPS, length and bytes of one, the number of PPS, length and bytes of one.
    let record = &index.codec_config;
    let sps_len = usize::from(u16::from_be_bytes([record[6], record[7]]));
    let (sps, rest) = record[8..].split_at(sps_len);
    let pps_len = usize::from(u16::from_be_bytes([rest[1], rest[2]]));
    let parameters = AvcParameters { sps: sps.to_vec(), pps: rest[3..3 + pps_len].to_vec() };
    let mut writer = Mp4Writer::create(path, &Mp4Config::new(index.size, fps)).unwrap();
    for (data, kind) in samples {
        writer.write_sample(&data, kind).unwrap();
    }
    writer.finish(&parameters).unwrap();
}

/// Removes the pandas key from tasks.parquet, in the arrow schema and in the footer.
fn forget_pandas(path: &Path) {
    let batch = read_table(path);
    let schema = Arc::new(arrow_schema::Schema::new(batch.schema().fields().clone()));
    write_table(path, &RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap());
}

type Plant = fn(&Copy);

/// The defects: what is done, and the rule that has to find it.
const DEFECTS: &[(&str, &str, Plant)] = &[
    ("total_frames counts a row too many", "info.totals", |s| {
        edit_json(&s.path(INFO), "/total_frames", json!(27));
    }),
    ("total_episodes counts an episode too few", "info.totals", |s| {
        edit_json(&s.path(INFO), "/total_episodes", json!(2));
    }),
    ("timestamp is not declared", "features.defaults", |s| {
        edit_json(&s.path(INFO), "/features/timestamp/dtype", json!("float64"));
    }),
    ("a feature has another shape than its column", "features.shape", |s| {
        edit_json(&s.path(INFO), "/features/action/shape", json!([5]));
    }),
    ("a feature has another type than its column", "features.dtype", |s| {
        edit_json(&s.path(INFO), "/features/action/dtype", json!("int64"));
    }),
    ("a feature has no column", "features.missing", |s| {
        edit_json(&s.path(INFO), "/features/ghost", json!({"dtype": "bool", "shape": [1], "names": null}));
    }),
    ("a column is of no feature", "features.extra", |s| {
        edit_json(&s.path(INFO), "/features/action", Value::Null);
    }),
    ("two rows of tasks are swapped", "tasks.order", |s| take_rows(&s.path("meta/tasks.parquet"), &[1, 0])),
    ("a task text occurs twice", "tasks.unique", |s| {
        edit_column(&s.path("meta/tasks.parquet"), "task", |_| Arc::new(StringArray::from(vec!["a", "a"])));
    }),
    ("the task texts are no pandas index", "tasks.pandas", |s| forget_pandas(&s.path("meta/tasks.parquet"))),
    ("tasks.parquet is empty", "tasks.unreadable", |s| {
        std::fs::write(s.path("meta/tasks.parquet"), b"").unwrap();
    }),
    ("an episode begins a row late", "episodes.ranges", |s| {
        let (path, row) = episodes_file(s, 1);
        shift_i64(&path, "dataset_from_index", row, 1);
    }),
    ("an episode row occurs twice", "episodes.order", |s| {
        let (path, row) = episodes_file(s, 1);
        shift_i64(&path, "episode_index", row, -1);
    }),
    ("an episode lists another task than its rows have", "episodes.tasks", |s| {
        let (path, _) = episodes_file(s, 0);
        let rows = read_table(&path).num_rows();
        edit_column(&path, "tasks", |_| {
            let mut builder = ListBuilder::new(StringBuilder::new());
            for _ in 0..rows {
                builder.values().append_value("sweep the floor");
                builder.append(true);
            }
            Arc::new(builder.finish())
        });
    }),
    ("a data file is gone", "files.missing", |s| std::fs::remove_file(data(s, 1)).unwrap()),
    ("a data file is cut off", "files.unreadable", |s| {
        let bytes = std::fs::read(data(s, 1)).unwrap();
        std::fs::write(data(s, 1), &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("a data file belongs to no episode", "files.unreferenced", |s| {
        std::fs::copy(data(s, 0), s.path("data/chunk-000/file-009.parquet")).unwrap();
    }),
    ("an index is shifted", "rows.index", |s| shift_i64(&data(s, 1), "index", 2, 1)),
    ("a frame_index is repeated", "rows.frame_index", |s| shift_i64(&data(s, 1), "frame_index", 3, -1)),
    ("an episode_index is wrong", "rows.episode_index", |s| shift_i64(&data(s, 2), "episode_index", 0, -1)),
    ("a timestamp is 10 ms late", "rows.timestamp", |s| {
        edit_column(&data(s, 0), "timestamp", |array| {
            let mut values = array.as_primitive::<Float32Type>().values().to_vec();
            values[4] += 0.01;
            Arc::new(Float32Array::from(values))
        });
    }),
    ("a task_index is past the tasks", "rows.task_index", |s| shift_i64(&data(s, 1), "task_index", 4, 7)),
    ("an action is NaN", "rows.nonfinite", |s| set_f32(&data(s, 1), "action", 8, f32::NAN)),
    ("a global mean is wrong", "stats.values", |s| edit_json(&s.path(STATS), "/action/mean/2", json!(12.5))),
    ("a count is wrong", "stats.values", |s| edit_json(&s.path(STATS), "/index/count/0", json!(25))),
    ("an action changed after its statistics", "stats.values", |s| set_f32(&data(s, 2), "action", 8, 70.0)),
    ("a mean of an episode is wrong", "stats.values", |s| {
        set_episode_stat(s, 1, "stats/action/mean", 3, 99.0);
    }),
    ("a global quantile is wrong", "stats.quantiles", |s| {
        edit_json(&s.path(STATS), "/observation.state/q90/0", json!(-29.0));
    }),
    ("a statistic has a dimension too few", "stats.shape", |s| {
        edit_json(&s.path(STATS), "/action/std", json!([1, 2, 3, 4, 5]));
    }),
    ("a feature has no statistics", "stats.missing", |s| edit_json(&s.path(STATS), "/action", json!({}))),
    ("stats.json is cut off", "stats.unreadable", |s| {
        let bytes = std::fs::read(s.path(STATS)).unwrap();
        std::fs::write(s.path(STATS), &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("the mean of a camera is wrong", "stats.pictures", |s| {
        edit_json(&s.path(STATS), &format!("/{MAIN}/mean/0"), json!([[0.9]]));
    }),
    ("a video is gone", "video.missing", |s| std::fs::remove_file(video(s, 2)).unwrap()),
    ("a video is cut off", "video.unreadable", |s| {
        let bytes = std::fs::read(video(s, 1)).unwrap();
        std::fs::write(video(s, 1), &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("a video lacks a picture", "video.frames", |s| {
        remux(&video(s, 1), recording::FPS, |samples| drop(samples.pop()));
    }),
    ("a video has another size than info.json says", "video.size", |s| {
        edit_json(&s.path(INFO), &format!("/features/{MAIN}/shape"), json!([64, 128, 3]));
    }),
    ("a video runs at another frame rate", "video.timing", |s| remux(&video(s, 0), 25, |_| {})),
    ("a video begins without a key frame", "video.keygap", |s| {
        remux(&video(s, 0), recording::FPS, |samples| samples[0].1 = SampleKind::Delta);
    }),
    ("an episode's pictures are said to be a second later", "video.span", |s| {
        let (path, row) = episodes_file(s, 1);
        shift_f64(&path, &format!("videos/{MAIN}/from_timestamp"), row, 1.0);
    }),
    ("a picture is damaged", "video.decode", |s| {
        remux(&video(s, 2), recording::FPS, |samples| {
            // Keeps the length in front of the NAL unit and its header.
            samples[4].0.iter_mut().skip(6).for_each(|b| *b = 0xff);
        });
    }),
    ("the lines of the sidecar are no JSON", "sidecar.unreadable", |s| {
        std::fs::write(s.path("meta/so101/episodes.jsonl"), b"{\n").unwrap();
    }),
];

#[test]
fn each_planted_defect_is_found_by_its_rule() {
    let set = Set::new();
    assert!(DEFECTS.len() >= 12);
    for (what, rule, plant) in DEFECTS {
        assert!(RULES.iter().any(|r| r.id == *rule), "{rule} is no rule");
        let copy = set.copy();
        plant(&copy);
        match check(&copy.root, &CheckOptions::default()) {
            Ok(report) => {
                assert!(report.violates(rule) && !report.passed, "{what}: {rule} did not find it\n{report}");
            }
            Err(e) => panic!("{what}: {e}"),
        }
    }
}

#[test]
fn a_dataset_of_ours_passes_without_a_single_finding() {
    let set = Set::new();
    let report = check(&set.root, &CheckOptions::default()).unwrap();
    assert!(report.passed && report.findings.is_empty(), "{report}");
    assert_eq!((report.figures.pictures, report.figures.pictures_decoded), (52, 52));
    assert_eq!((report.figures.rows, report.figures.episodes, report.figures.max_key_gap), (26, 3, 2));
}

#[test]
fn sets_of_lerobot_pass_and_their_deviations_are_warnings() {
    for name in ["lerobot_h264", "lerobot_dtypes"] {
        let report = check(reads_lerobot::fixture(name), &CheckOptions::default()).unwrap();
        assert!(report.passed, "{report}");
        let quantiles = report.findings.iter().filter(|f| f.rule == "stats.quantiles");
        assert!(quantiles.clone().count() > 0, "{report}");
        assert!(quantiles.into_iter().all(|f| f.severity == Severity::Warning), "{report}");
    }
}

#[test]
fn rows_changed_by_another_program_make_the_sidecar_stale() {
    let set = Set::new();
    let copy = set.copy();
    set_f32(&data(&copy, 1), "observation.state", 0, 1.0);
    let report = check(&copy.root, &CheckOptions::default()).unwrap();
    let stale: Vec<_> = report.findings.iter().filter(|f| f.rule == "sidecar.stale").collect();
    assert_eq!(stale.len(), 2, "{report}");
    assert!(stale.iter().any(|f| f.episode == Some(1)), "{report}");
}

#[test]
fn strays_are_warned_of() {
    let set = Set::new();
    let copy = set.copy();
    std::fs::create_dir(copy.path("tmpabc")).unwrap();
    std::fs::create_dir(copy.path(".cache")).unwrap();
    std::fs::write(copy.path("data/chunk-000/notes.txt"), b"x").unwrap();
    std::fs::copy(video(&copy, 0), video(&copy, 9)).unwrap();
    let report = check(&copy.root, &CheckOptions::default()).unwrap();
    let mut strays: Vec<_> =
        report.findings.iter().filter(|f| f.rule == "layout.stray").map(|f| f.path.as_path()).collect();
    strays.sort();
    let video = format!("videos/{MAIN}/chunk-000/file-009.mp4");
    assert_eq!(strays, [Path::new("data/chunk-000/notes.txt"), Path::new("tmpabc"), Path::new(&video)]);
    assert!(report.passed);
}

#[test]
fn a_copy_of_the_tables_passes_only_when_asked_for() {
    let set = Set::new();
    let copy = set.copy();
    std::fs::remove_dir_all(copy.path("videos")).unwrap();
    let report = check(&copy.root, &CheckOptions::default()).unwrap();
    assert!(report.violates("video.missing"), "{report}");
    let tables = CheckOptions::default().with_videos(Videos::TablesOnly);
    let report = check(&copy.root, &tables).unwrap();
    assert!(report.passed && report.findings.is_empty(), "{report}");
}

#[test]
fn the_real_recording_passes_as_tables() {
    let Some(root) = std::env::var_os("SO101_REAL_DATA") else {
        println!("skipped: SO101_REAL_DATA is not set");
        return;
    };
    let report = check(&root, &CheckOptions::default().with_videos(Videos::TablesOnly)).unwrap();
    assert!(report.passed, "{report}");
    assert!(check(&root, &CheckOptions::default()).unwrap().violates("video.missing"));
}

#[test]
fn the_report_reads_as_a_line_a_finding_and_a_verdict() {
    let set = Set::new();
    let copy = set.copy();
    edit_json(&copy.path(INFO), "/total_tasks", json!(3));
    std::fs::remove_file(video(&copy, 2)).unwrap();
    let report = check(&copy.root, &CheckOptions::default()).unwrap();
    let text = report.to_string().replace(copy.root.to_str().unwrap(), "SET");
    let expected = "\
error    info.totals    total_tasks is 3, the tables hold 2: meta/info.json
error    video.missing  the video of 1 episodes does not exist: videos/observation.images.main/chunk-000/file-002.mp4
FAIL SET errors=2 warnings=0 episodes=3 rows=26 tasks=2 data_files=3 video_files=5 pictures=40 decoded=40 max_key_gap=2 statistics=";
    assert!(text.starts_with(expected), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["findings"][0]["rule"], "info.totals");
    assert_eq!((&json["passed"], &json["errors"]), (&json!(false), &json!(2)));
}
