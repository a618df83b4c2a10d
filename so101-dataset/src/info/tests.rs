use so101_hal::CameraSpec;

use super::*;

fn sample() -> Value {
    let info = Info::new(30, "so_follower", Features::so101(&[CameraSpec::new("main", 64, 48)]));
    serde_json::from_slice(&info.to_json_bytes()).unwrap()
}

fn parse(value: &Value) -> Result<Info> {
    Info::parse(value.to_string().as_bytes(), Path::new("set/meta/info.json"))
}

#[test]
fn keys_are_written_in_lerobots_order_and_indented_by_four() {
    let text = String::from_utf8(Info::new(30, "so_follower", Features::so101(&[])).to_json_bytes()).unwrap();
    let keys: Vec<_> = text
        .lines()
        .filter_map(|l| l.strip_prefix("    \"")?.split_once('"').map(|(key, _)| key.to_owned()))
        .collect();
    let expected = [
        "codebase_version",
        "fps",
        "features",
        "total_episodes",
        "total_frames",
        "total_tasks",
        "chunks_size",
        "data_files_size_in_mb",
        "video_files_size_in_mb",
        "data_path",
        "video_path",
        "robot_type",
        "splits",
    ];
    assert_eq!(keys, expected);
    assert!(
        text.contains("\"data_files_size_in_mb\": 100,") && text.contains("\"video_path\": null,"),
        "{text}"
    );
    assert!(text.contains("\"splits\": {\n        \"train\": \"0:0\"\n    }"), "{text}");
}

#[test]
fn unknown_keys_survive_a_round_trip_in_their_order() {
    let mut value = sample();
    value["tools"] = json!([{"type": "function"}]);
    value["zeta"] = json!(1);
    value["alpha"] = json!({"b": [1.5, "é"]});
    value["features"]["action"]["fps"] = json!(30);
    let info = parse(&value).unwrap();
    let back: Value = serde_json::from_slice(&info.to_json_bytes()).unwrap();
    assert_eq!(back, value);
    let keys: Vec<_> = back.as_object().unwrap().keys().rev().take(3).cloned().collect();
    assert_eq!(keys, ["alpha", "zeta", "tools"]);
}

#[test]
fn default_features_are_written_last_whatever_their_place() {
    let mut features = Features::new();
    features.insert_defaults();
    features.insert("action", crate::Feature::vector_f32(&["x"]));
    let value = features.to_value();
    let names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["action", "timestamp", "frame_index", "episode_index", "index", "task_index"]);
}

#[test]
fn malformed_files_are_named_by_key_or_position() {
    let cases: &[(&str, Value, &str)] = &[
        ("codebase_version", Value::Null, "key codebase_version is missing or null"),
        ("codebase_version", json!(3), "key codebase_version is 3"),
        ("codebase_version", json!("three"), "not a version"),
        (
            "codebase_version",
            json!("v1.6"),
            "dataset of version v1.6, only v2.0, v2.1 and v3.0 are known here: convert it",
        ),
        (
            "codebase_version",
            json!("v4.0"),
            "dataset of version v4.0, v3.0 is the newest known here: use a newer",
        ),
        ("storage_format", json!("lance"), "storage_format is \"lance\", only parquet"),
        ("storage_format", json!(7), "key storage_format is 7"),
        ("fps", Value::Null, "key fps is missing or null"),
        ("fps", json!(0), "key fps is 0"),
        ("fps", json!(29.97), "key fps is 29.97, not a whole number"),
        ("fps", json!(-30), "key fps is -30"),
        ("fps", json!("30"), "key fps is \"30\""),
        ("features", json!([]), "key features is not an object"),
        ("features", Value::Null, "key features is missing or null"),
        ("total_episodes", json!(-1), "key total_episodes is -1"),
        ("total_frames", json!(1e300), "key total_frames is 1e"),
        ("total_tasks", Value::Null, "key total_tasks is missing"),
        ("total_frames", json!(u64::MAX), "key total_frames is 18446744073709551615"),
        ("chunks_size", json!(0), "key chunks_size is 0"),
        ("data_files_size_in_mb", json!(-1), "key data_files_size_in_mb is -1"),
        ("data_path", Value::Null, "key data_path is missing"),
        ("data_path", json!("/etc/{file_index}"), "leads out of the dataset"),
        ("data_path", json!("../{file_index}.parquet"), "leads out of the dataset"),
        ("data_path", json!("data/{episode_index}.parquet"), "the field {episode_index} is unknown"),
        ("data_path", json!("data/{file_index:99999999d}"), "the format of"),
        ("data_path", json!("data/{file_index"), "a brace is not closed"),
        ("video_path", Value::Null, "but observation.images.main is a video"),
        ("video_path", json!(["x"]), "key video_path is [\"x\"]"),
        ("robot_type", json!(1), "key robot_type is 1"),
        ("splits", json!([]), "key splits is []"),
    ];
    for (key, bad, expected) in cases {
        let mut value = sample();
        value[*key] = bad.clone();
        let message = parse(&value).unwrap_err().to_string();
        assert!(message.contains(expected), "{key} = {bad}: {message}");
        assert!(message.ends_with(": set/meta/info.json") && !message.contains('\n'), "{message}");
    }
}

#[test]
fn bytes_that_are_no_json_object_are_refused_with_the_position() {
    let deep = "[".repeat(100_000);
    let cases: &[(&[u8], &str)] = &[
        (b"", "line 1 column 0 is not valid JSON"),
        (b"{\n\"fps\": 30,\n", "line 3 column 0"),
        (b"\xff\xfe{", "line 1 column 1"),
        (b"[1, 2]", "key (top) is not an object"),
        (deep.as_bytes(), "recursion limit exceeded"),
    ];
    for (bytes, expected) in cases {
        let message = Info::parse(bytes, Path::new("info.json")).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let large = vec![b' '; usize::try_from(MAX_INFO_BYTES).unwrap() + 1];
    assert!(matches!(Info::parse(&large, Path::new("x")), Err(Error::TooLarge { .. })));
}

#[test]
fn paths_follow_the_template() {
    let mut info = parse(&sample()).unwrap();
    assert_eq!(info.data_file(1, 1234).unwrap(), Path::new("data/chunk-001/file-1234.parquet"));
    assert_eq!(
        info.video_file("observation.images.main", 0, 2).unwrap(),
        Path::new("videos/observation.images.main/chunk-000/file-002.mp4")
    );
    info.video_path = None;
    assert!(info.video_file("k", 0, 0).is_err());
}

#[test]
fn whole_numbers_written_as_floats_are_taken() {
    let mut value = sample();
    value["fps"] = json!(30.0);
    value["data_files_size_in_mb"] = json!(0.02);
    let info = parse(&value).unwrap();
    assert_eq!((info.fps, info.data_files_size_in_mb), (30, 0.02));
}

proptest::proptest! {
    #[test]
    fn mutated_files_are_read_or_refused_but_never_panic(
        edits in proptest::collection::vec((0_usize..4096, proptest::prelude::any::<u8>()), 1..20),
        cut in 0_usize..4096,
    ) {
        let mut bytes = sample().to_string().into_bytes();
        for (at, byte) in edits {
            let n = bytes.len();
            bytes[at % n] = byte;
        }
        bytes.truncate(cut.max(1));
        if let Err(e) = Info::parse(&bytes, Path::new("info.json")) {
            proptest::prop_assert!(!e.to_string().contains('\n'));
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let _ = Info::parse(&bytes, Path::new("info.json"));
    }
}
