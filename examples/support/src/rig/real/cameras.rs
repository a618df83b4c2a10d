//! Which cameras a real rig has.

use std::path::Path;

use serde::Deserialize;
use so101_hal::camera::synthetic::SyntheticOptions;
use so101_hal::camera::{CameraConfig, CameraSource, lerobot};

use crate::error::{Error, Result};
use crate::plan::Plan;

/// A file of cameras.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CamerasFile {
    cameras: Vec<CameraConfig>,
}

/// The cameras of `--cameras`: LeRobot's text in braces, the word `synthetic` for drawn pictures in the sizes of the
/// plan's cameras, or a TOML file with `[[cameras]]`. Nothing = none.
///
/// # Errors
/// [`Error::Usage`] for a file or text that describes no cameras, or two of one name.
pub fn configs(asked: Option<&str>, plan: &Plan, fps: u32) -> Result<Vec<CameraConfig>> {
    let cameras = match asked.map(str::trim) {
        None | Some("") => Vec::new(),
        Some("synthetic") => plan
            .cameras()
            .iter()
            .map(|planned| {
                let source = CameraSource::Synthetic(SyntheticOptions::default());
                let mut config = CameraConfig::new(&planned.spec.name, source);
                config.size = planned.spec.size;
                config.fps = fps;
                config
            })
            .collect(),
        Some(text) if text.starts_with('{') => lerobot::parse(text)?,
        Some(path) => from_file(Path::new(path))?,
    };
    for (i, camera) in cameras.iter().enumerate() {
        camera.validate()?;
        if cameras.iter().take(i).any(|c| c.name == camera.name) {
            return Err(Error::Usage(format!("--cameras: two cameras are called {}", camera.name)));
        }
    }
    Ok(cameras)
}

fn from_file(path: &Path) -> Result<Vec<CameraConfig>> {
    let wrong = |what: String| {
        Error::Usage(format!(
            "--cameras: {what}; give a TOML file with [[cameras]], LeRobot's \"{{ front: {{type: opencv, ...}} }}\", or \
             synthetic: {}",
            path.display()
        ))
    };
    let size = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(wrong(format!("the file has {size} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    let file: CamerasFile = toml::from_str(&text).map_err(|e| wrong(e.message().replace('\n', "; ")))?;
    Ok(file.cameras)
}

#[cfg(test)]
mod tests {
    use super::*;
    use so101_hal::FrameSize;

    fn asked(text: &str) -> Result<Vec<CameraConfig>> {
        configs(Some(text), &Plan::push_left(), 20)
    }

    #[test]
    fn cameras_come_from_lerobots_text_from_a_file_or_are_drawn() {
        assert_eq!(configs(None, &Plan::push_left(), 20).unwrap(), []);
        let drawn = asked("synthetic").unwrap();
        let facts: Vec<_> = drawn.iter().map(|c| (c.name.as_str(), c.size, c.fps)).collect();
        assert_eq!(
            facts,
            [("main", FrameSize::new(640, 480), 20), ("gripper", FrameSize::new(320, 240), 20)]
        );
        let pasted =
            asked("{ front: {type: opencv, index_or_path: 0, width: 320, height: 240, fps: 15}}").unwrap();
        assert_eq!((pasted[0].name.as_str(), pasted[0].fps), ("front", 15));

        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cameras.toml");
        let one =
            "[[cameras]]\nname = \"side\"\nsource = { synthetic = {} }\nwidth = 64\nheight = 48\nfps = 10\n";
        std::fs::write(&file, one).unwrap();
        assert_eq!(asked(file.to_str().unwrap()).unwrap()[0].name, "side");
        std::fs::write(&file, format!("{one}{one}")).unwrap();
        assert!(
            asked(file.to_str().unwrap()).unwrap_err().to_string().contains("two cameras are called side")
        );
        std::fs::write(&file, one.replace("fps", "rate")).unwrap();
        let error = asked(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("rate") && error.contains("cameras.toml"), "{error}");
        assert!(matches!(asked("nowhere.toml"), Err(Error::Usage(_))));
    }
}
