//! What is known of the device behind a camera.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::controls::ControlReport;

/// Where the capture times of a camera come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stamps {
    /// The kernel, when the exposure of the picture began.
    StartOfExposure,
    /// The kernel, when the last byte of the picture had come.
    EndOfFrame,
    /// This program, when it got the picture.
    #[default]
    Arrival,
}

/// The device behind a camera, with what was agreed with it: a part of a dataset's metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The path or name that it was opened by.
    pub path: Option<String>,
    /// Its driver, such as `uvcvideo`.
    pub driver: String,
    /// Its name.
    pub card: String,
    /// Where it is plugged in.
    pub bus: String,
    /// The pixel format that it delivers, such as `MJPG`.
    pub format: String,
    /// The pixel format that was asked for; empty = any.
    pub format_wanted: String,
    /// Pictures a second that it promises; `None` = it does not tell.
    pub fps: Option<f64>,
    /// Pictures a second that were asked for.
    pub fps_wanted: u32,
    /// Where capture times come from.
    pub stamps: Stamps,
    /// Each control that it has or that was asked for.
    pub controls: Vec<ControlReport>,
}

impl DeviceInfo {
    /// The controls that are not as they were wanted.
    pub fn refused(&self) -> impl Iterator<Item = &ControlReport> {
        self.controls.iter().filter(|c| !c.took())
    }
}
