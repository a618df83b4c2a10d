//! Sets that LeRobot wrote in its several layouts, from one closed formula: every layout reads as the formula says.
//!
//! The fixtures are v2.1 (a file an episode), the same set after LeRobot's own conversion, AV1 video, small files that
//! roll over, and a resumed recording.

use std::path::Path;

use so101_dataset::{Dataset, Version};

use crate::planting::Copy;
use crate::reads_lerobot::fixture;

const TASKS: [&str; 4] = [
    "push the object to the left",
    "pick the cube",
    "place the cube in the bowl",
    "a task first seen on resume",
];
const LAYOUTS: [&str; 5] =
    ["lerobot_v21", "lerobot_v21_converted", "lerobot_av1", "lerobot_rolling", "lerobot_resume"];

/// The six joints at row `i` of an episode; the action is the state of the next row.
fn state(episode: u64, i: usize) -> [f32; 6] {
    std::array::from_fn(|j| {
        let j = j as f64;
        (30.0 * (0.05 * i as f64 + j + 0.7 * episode as f64).sin() + 2.0 * j) as f32
    })
}

/// Equal to the last digit but one: the sine of two libraries may differ by that.
fn assert_same(found: &[f32], want: [f32; 6], at: &str) {
    for (found, want) in found.iter().zip(want) {
        assert!(
            (found - want).abs() <= 4.0 * f32::EPSILON * want.abs().max(1.0),
            "{at}: {found} is not {want}"
        );
    }
}

/// Checks the rows of a set against the formula; returns the number of episodes.
fn assert_formula(set: &Dataset, name: &str) -> u64 {
    let mut index = 0;
    for row in set.episodes() {
        let rows = set.rows(row.episode).unwrap();
        let (states, actions) = (rows.f32("observation.state").unwrap(), rows.f32("action").unwrap());
        let times = rows.f32("timestamp").unwrap();
        for i in 0..rows.rows() {
            let at = format!("{name}, episode {}, row {i}", row.episode);
            assert_same(&states[6 * i..6 * i + 6], state(row.episode, i), &at);
            assert_same(&actions[6 * i..6 * i + 6], state(row.episode, i + 1), &at);
            assert_eq!(times[i], (i as f64 / 30.0) as f32, "{at}");
            assert_eq!(rows.i64("frame_index").unwrap()[i], i as i64, "{at}");
            assert_eq!(rows.i64("episode_index").unwrap()[i], row.episode as i64, "{at}");
            assert_eq!(rows.i64("index").unwrap()[i], index, "{at}");
            index += 1;
        }
        assert!(row.tasks.iter().all(|t| TASKS.contains(&t.as_str())), "{name}: {:?}", row.tasks);
        assert_eq!(row.videos.len(), 2, "{name}");
    }
    assert_eq!(set.missing_videos(), &[] as &[std::path::PathBuf], "{name}");
    set.episodes().len() as u64
}

#[test]
fn every_layout_of_lerobot_reads_as_the_formula_that_it_was_made_from() {
    for name in LAYOUTS {
        let set = Dataset::open(fixture(name)).unwrap();
        assert_eq!(set.info().version() == Version::V21, name == "lerobot_v21", "{name}");
        assert!(assert_formula(&set, name) >= 3, "{name}");
    }
}

#[test]
fn a_set_of_v2_1_reads_like_its_conversion() {
    let (old, new) = (fixture("lerobot_v21"), fixture("lerobot_v21_converted"));
    let (old, new) = (Dataset::open(old).unwrap(), Dataset::open(new).unwrap());
    assert_eq!(old.tasks(), new.tasks());
    for (a, b) in old.episodes().iter().zip(new.episodes()) {
        let facts =
            |r: &so101_dataset::EpisodeRow| (r.episode, r.tasks.clone(), r.length, r.from_index, r.to_index);
        assert_eq!(facts(a), facts(b));
        assert_eq!(old.rows(a.episode).unwrap().columns(), new.rows(b.episode).unwrap().columns());
    }
    let (a, b) = (old.episode_stats().unwrap(), new.episode_stats().unwrap());
    for (a, b) in a.iter().zip(&b) {
        for statistic in ["min", "max", "mean", "std", "count"] {
            let of = |s: &so101_dataset::Stats| s.get("action").unwrap().get(statistic).map(<[f64]>::to_vec);
            assert_eq!(of(a), of(b), "{statistic}");
        }
    }
    let span = old.video_span(2, "observation.images.main").unwrap();
    assert_eq!((span.file, span.first_frame(30)), (2, 0));
    assert!(old.video_path(2, "observation.images.main").unwrap().ends_with("episode_000002.mp4"));
}

fn edit_text(path: &Path, edit: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, edit(&text)).unwrap();
}

#[test]
fn a_set_of_v2_0_has_statistics_of_the_whole_only() {
    let copy = Copy::of(&fixture("lerobot_v21"));
    std::fs::remove_file(copy.path("meta/episodes_stats.jsonl")).unwrap();
    edit_text(&copy.path("meta/info.json"), |t| t.replace("v2.1", "v2.0"));
    std::fs::write(copy.path("meta/stats.json"), r#"{"action": {"mean": [1, 2, 3, 4, 5, 6]}}"#).unwrap();
    let set = Dataset::open(&copy.root).unwrap();
    assert_eq!(set.info().version(), Version::V20);
    assert_formula(&set, "v2.0");
    assert_eq!(set.stats().unwrap().unwrap().get("action").unwrap().get("mean").unwrap()[5], 6.0);
    let stats = set.episode_stats().unwrap();
    assert_eq!((stats.len(), stats[0].features().count()), (set.episodes().len(), 0));
}

#[test]
fn damaged_lines_of_v2_1_are_named_with_their_file_and_line() {
    for (file, edit, says) in [
        ("meta/episodes.jsonl", ("\"length\": ", "\"length\": -"), "line 1: length"),
        (
            "meta/episodes.jsonl",
            ("\"episode_index\": 2", "\"episode_index\": \"two\""),
            "line 3: episode_index",
        ),
        ("meta/tasks.jsonl", ("{", "["), "line 1: (top)"),
        ("meta/tasks.jsonl", ("\"task\":", "\"tusk\":"), "line 1: task"),
        ("meta/info.json", ("\"total_episodes\": 4", "\"total_episodes\": 5"), "the number of episode rows"),
    ] {
        let copy = Copy::of(&fixture("lerobot_v21"));
        edit_text(&copy.path(file), |t| t.replace(edit.0, edit.1));
        let error = Dataset::open(&copy.root).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains(file), "{file}: {error}");
    }
    let copy = Copy::of(&fixture("lerobot_v21"));
    edit_text(&copy.path("meta/tasks.jsonl"), |t| t.repeat(2000));
    let error = Dataset::open(&copy.root).unwrap_err().to_string();
    assert!(error.contains("the number of lines"), "{error}");
    std::fs::remove_file(copy.path("meta/episodes.jsonl")).unwrap();
    edit_text(&copy.path("meta/tasks.jsonl"), |t| t.lines().take(3).collect::<Vec<_>>().join("\n"));
    let error = Dataset::open(&copy.root).unwrap_err().to_string();
    assert!(error.contains("the table of episodes"), "{error}");
}
