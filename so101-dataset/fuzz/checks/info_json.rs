//! What must hold for any bytes in place of an info.json; shared by the fuzz target and the test that replays its corpus.

use std::path::Path;

use so101_dataset::Info;

/// Refused by one line, or read to something that is written and read back alike.
pub(crate) fn check(data: &[u8]) {
    match Info::parse(data, Path::new("info.json")) {
        Err(e) => {
            let message = e.to_string();
            assert!(!message.contains('\n'), "{message}");
            assert!(message.ends_with(": info.json"), "{message}");
        }
        Ok(info) => {
            let bytes = info.to_json_bytes();
            let back =
                Info::parse(&bytes, Path::new("info.json")).expect("what was read can be written and read");
            assert_eq!(back.to_json_bytes(), bytes, "writing is not stable");
            for path in [info.data_file(7, 1234), info.video_file("observation.images.main", 7, 1234)]
                .into_iter()
                .flatten()
            {
                assert!(path.is_relative() && !path.starts_with(".."), "{}", path.display());
            }
        }
    }
}
