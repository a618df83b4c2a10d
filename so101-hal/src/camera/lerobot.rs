//! LeRobot's way to describe cameras, as people paste it:
//! `--robot.cameras="{ front: {type: opencv, index_or_path: 0, width: 640, height: 480, fps: 30} }"`.
//!
//! That is YAML's flow style (JSON is a part of it); this module reads braces, keys, and plain or quoted values, which is
//! all that camera descriptions use. The keys are those of LeRobot 0.6's `OpenCVCameraConfig`.
//!
//! ```
//! use so101_hal::camera::{CameraSource, lerobot};
//! let cameras = lerobot::parse("{ front: {type: opencv, index_or_path: 2, width: 320, height: 240, fps: 30}}")?;
//! assert_eq!(cameras[0].name, "front");
//! assert_eq!(cameras[0].source, CameraSource::V4l2("/dev/video2".into()));
//! # Ok::<(), so101_hal::Error>(())
//! ```

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::config::{CameraConfig, CameraSource, MAX_FPS, PixelFormat};
use crate::error::{Error, Result};

/// Keys of LeRobot that change nothing here: its thread waits for a first picture too, and pictures are RGB.
const IGNORED: &[&str] = &["warmup_s", "backend"];
/// Braces within braces: LeRobot has two levels.
const MAX_DEPTH: u32 = 4;

/// The cameras of a text such as `{ front: {type: opencv, index_or_path: 0, width: 640, height: 480, fps: 30} }`.
///
/// Size and rate that are missing are 640 x 480 at 30 (LeRobot leaves them to the camera then).
///
/// # Errors
/// [`Error::CameraConfig`] with the camera and key that cannot be used.
pub fn parse(text: &str) -> Result<Vec<CameraConfig>> {
    let mut reader = Reader { rest: text, depth: 0 };
    let Value::Map(cameras) = reader.value()? else {
        return Err(wrong("cameras are a list in braces: { NAME: {type: opencv, index_or_path: 0, ..} }"));
    };
    if !reader.rest.trim().is_empty() {
        return Err(wrong(format!("something stands behind the last brace: {}", reader.rest.trim())));
    }
    let mut configs: Vec<CameraConfig> = Vec::new();
    for (name, value) in cameras {
        let Value::Map(fields) = value else {
            return Err(wrong(format!(
                "camera {name} needs braces: {name}: {{type: opencv, index_or_path: 0, ..}}"
            )));
        };
        if configs.iter().any(|c| c.name == name) {
            return Err(wrong(format!("camera {name} is there twice")));
        }
        let config = camera(name, &fields)?;
        config.validate()?;
        configs.push(config);
    }
    Ok(configs)
}

fn camera(name: String, fields: &[(String, Value)]) -> Result<CameraConfig> {
    let mut config = CameraConfig::new(name, CameraSource::V4l2("/dev/video0".into()));
    let name = config.name.clone();
    let mut kind = None;
    let mut placed = false;
    for (key, value) in fields {
        let Value::Text(value) = value else {
            return Err(wrong(format!("camera {name}: {key} is no plain value")));
        };
        let unknown =
            |known: &str| wrong(format!("camera {name}: {key} is {value}, this program knows {known}"));
        let number = || value.parse::<u32>().map_err(|_| unknown("whole numbers there"));
        match key.as_str() {
            "type" => kind = Some(value.clone()),
            "index_or_path" => {
                placed = true;
                config.source = CameraSource::V4l2(match value.parse::<u32>() {
                    Ok(index) => format!("/dev/video{index}").into(),
                    Err(_) => value.into(),
                });
            }
            "width" => config.size.width = number()?,
            "height" => config.size.height = number()?,
            // LeRobot takes 30.0 too.
            "fps" => {
                let fps: f64 = value.parse().map_err(|_| unknown("numbers there"))?;
                if fps.fract() != 0.0 || !(1.0..=f64::from(MAX_FPS)).contains(&fps) {
                    return Err(unknown("whole rates from 1"));
                }
                config.fps = fps as u32;
            }
            "fourcc" => {
                config.format = match value.as_str() {
                    "MJPG" => PixelFormat::Mjpg,
                    "YUYV" | "YUY2" => PixelFormat::Yuyv,
                    "null" => PixelFormat::Auto,
                    _ => return Err(unknown("MJPG and YUYV")),
                }
            }
            "color_mode" if value == "rgb" => {}
            "color_mode" => return Err(unknown("rgb")),
            "rotation" if value == "0" || value == "NO_ROTATION" => {}
            "rotation" => return Err(unknown("0: turn the camera instead")),
            _ if IGNORED.contains(&key.as_str()) => {}
            _ => {
                return Err(wrong(format!(
                    "camera {name} has the unknown key {key}; known are type, index_or_path, width, height, fps, fourcc, \
                     color_mode, rotation, warmup_s, backend"
                )));
            }
        }
    }
    match kind.as_deref() {
        Some("opencv") => {}
        Some(other) => {
            return Err(wrong(format!(
                "camera {name} is of type {other}; this program has opencv, which is V4L2 here"
            )));
        }
        None => return Err(wrong(format!("camera {name} has no type: write type: opencv"))),
    }
    if !placed {
        return Err(wrong(format!("camera {name} has no index_or_path: find_cameras lists the paths")));
    }
    Ok(config)
}

fn wrong(what: impl Into<String>) -> Error {
    Error::CameraConfig { what: what.into() }
}

#[derive(Debug, PartialEq)]
enum Value {
    Text(String),
    Map(Vec<(String, Value)>),
}

struct Reader<'a> {
    rest: &'a str,
    depth: u32,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Value> {
        if !self.eat('{') {
            return self.text(&[',', '}']).map(Value::Text);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(wrong("too many braces within braces"));
        }
        let mut entries = Vec::new();
        while !self.eat('}') {
            let key = self.text(&[':', ',', '}', '{'])?;
            if key.is_empty() || !self.eat(':') {
                return Err(wrong(format!("a name and a colon are missing in front of: {}", self.near())));
            }
            entries.push((key, self.value()?));
            if !self.eat(',') && !self.rest.trim_start().starts_with('}') {
                return Err(wrong(format!(
                    "a comma or closing brace is missing in front of: {}",
                    self.near()
                )));
            }
        }
        self.depth -= 1;
        Ok(Value::Map(entries))
    }

    /// A plain or quoted text; a plain one ends in front of one of `ends`.
    fn text(&mut self, ends: &[char]) -> Result<String> {
        self.rest = self.rest.trim_start();
        for quote in ['"', '\''] {
            if let Some(inside) = self.rest.strip_prefix(quote) {
                let (text, rest) =
                    inside.split_once(quote).ok_or_else(|| wrong("a quotation mark does not close"))?;
                self.rest = rest;
                return Ok(text.to_string());
            }
        }
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(text.trim().to_string())
    }

    fn eat(&mut self, c: char) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn near(&self) -> String {
        let near: String = self.rest.trim_start().chars().take(20).collect();
        if near.is_empty() { "the end".to_string() } else { near }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_paste_is_understood() {
        let text = "{ front: {type: opencv, index_or_path: 0, width: 640, height: 480, fps: 30}, \
                     wrist: {type: opencv, index_or_path: /dev/v4l/by-id/usb-A:B-index0, width: 320, height: 240, fps: 15.0, \
                     fourcc: \"MJPG\", warmup_s: 2, color_mode: rgb, rotation: 0},}";
        let cameras = parse(text).unwrap();
        assert_eq!(cameras.len(), 2);
        let front = CameraConfig::new("front", CameraSource::V4l2("/dev/video0".into()));
        assert_eq!(cameras[0], front);
        assert_eq!(cameras[1].source, CameraSource::V4l2("/dev/v4l/by-id/usb-A:B-index0".into()));
        assert_eq!((cameras[1].fps, cameras[1].format), (15, PixelFormat::Mjpg));
        // JSON is the same, and an empty list is one.
        let json = r#"{"front":{"type":"opencv","index_or_path":0,"width":640,"height":480,"fps":30}}"#;
        assert_eq!(parse(json).unwrap(), cameras[..1]);
        assert_eq!(parse("{}").unwrap(), []);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (text, has) in [
            ("", "in braces"),
            ("front", "in braces"),
            ("{front}", "colon"),
            ("{front: 3}", "front needs braces"),
            ("{front: {}}", "no type"),
            ("{front: {type: opencv}}", "no index_or_path"),
            ("{front: {type: intelrealsense, index_or_path: 1}}", "intelrealsense"),
            ("{front: {type: opencv, index_or_path: 0, widht: 640}}", "widht"),
            ("{front: {type: opencv, index_or_path: 0, width: wide}}", "width is wide"),
            ("{front: {type: opencv, index_or_path: 0, width: 0}}", "0x480"),
            ("{front: {type: opencv, index_or_path: 0, fps: 29.97}}", "29.97"),
            ("{front: {type: opencv, index_or_path: 0, rotation: 90}}", "rotation"),
            ("{front: {type: opencv, index_or_path: 0, color_mode: bgr}}", "bgr"),
            ("{front: {type: opencv, index_or_path: 0 width: 3}}", "0 width"),
            ("{front: {type: opencv, index_or_path: 0}", "closing brace"),
            ("{front: {type: \"opencv, index_or_path: 0}}", "quotation mark"),
            ("{a: {type: opencv, index_or_path: 0}, a: {type: opencv, index_or_path: 1}}", "twice"),
            ("{a: {type: opencv, index_or_path: 0}} b", "behind the last brace"),
            ("{a:{a:{a:{a:{a:{}}}}}}", "too many braces"),
        ] {
            let err = parse(text).map(|c| format!("{c:?}")).unwrap_or_else(|e| e.to_string());
            assert!(err.contains(has), "{text}: {err}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[{}:, a\"'0-9]{0,60}") {
            let _ = parse(&text);
        }
    }
}
