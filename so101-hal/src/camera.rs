//! Cameras: what one is, what it delivers and how good that is.
//!
//! | module | what it is |
//! |---|---|
//! | [`Camera`], [`CameraSpec`] | the trait that recording and rollout are written against |
//! | [`Controls`], [`ControlReport`] | exposure, gain, white balance, mains frequency, focus: locked, and read back |
//! | [`quality`] | mean luma, clipped share, focus measure, measured rate |
//! | [`framing`] | how far a camera was moved since a reference picture was taken |
//! | `config` | a camera as a file describes it, and [`open`] (feature `camera`, as all that follows) |
//! | `lerobot` | LeRobot's way to describe cameras, as people paste it |
//! | `list` | which cameras are plugged in |
//! | `v4l2` | cameras of Linux; its system calls are a trait, so that recorded replies stand for a device |
//! | `file`, `synthetic` | pictures from files, and drawn ones with faults at will: the doubles |
//! | `thread` | a driver thread and the newest picture of it, with its age |
//!
//! What was run on a device: nothing of `v4l2` yet, for want of one. It is tested against replies written down after the
//! kernel's `uvcvideo` driver, and its structures and request numbers against the kernel's headers; `nokhwa` is
//! type-checked only. See [`v4l2`] for how to record the replies of a real camera.

mod controls;
mod device;
pub mod framing;
pub mod quality;

#[cfg(feature = "camera")]
pub mod config;
#[cfg(feature = "camera")]
pub mod file;
#[cfg(feature = "camera")]
mod jpeg;
#[cfg(feature = "camera")]
pub mod lerobot;
#[cfg(feature = "camera")]
pub mod list;
#[cfg(feature = "nokhwa")]
pub mod nokhwa;
#[cfg(feature = "camera")]
mod picture;
#[cfg(feature = "camera")]
pub mod synthetic;
#[cfg(feature = "camera")]
pub mod thread;
#[cfg(feature = "camera")]
pub mod v4l2;
#[cfg(feature = "camera")]
mod yuyv;

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::frame::{Frame, FrameSize};

#[cfg(feature = "camera")]
pub use config::{CameraConfig, CameraSource, PixelFormat, open};
pub use controls::{Automatic, ControlRange, ControlReport, Controls, Setting};
pub use device::{DeviceInfo, Stamps};
#[cfg(feature = "camera")]
pub use file::FileCamera;
#[cfg(feature = "camera")]
pub use list::{CameraInfo, list_cameras};
#[cfg(feature = "camera")]
pub use picture::{Buffers, Content, Picture, Source};
#[cfg(feature = "camera")]
pub use synthetic::SyntheticCamera;
#[cfg(feature = "camera")]
pub use thread::{CameraStats, CameraThread, Decode, ThreadOptions};

/// What a camera is called and what it delivers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CameraSpec {
    /// Short name, such as `main` or `gripper`; the dataset column is `observation.images.NAME`.
    pub name: String,
    /// Size of every picture.
    #[serde(flatten)]
    pub size: FrameSize,
}

impl CameraSpec {
    /// A camera `name` of `width` by `height` pixels.
    pub fn new(name: impl Into<String>, width: u32, height: u32) -> Self {
        Self { name: name.into(), size: FrameSize::new(width, height) }
    }
}

/// A source of pictures of one size.
pub trait Camera: Send {
    /// Name and size.
    fn spec(&self) -> &CameraSpec;

    /// The picture of this moment (or the newest one, where a driver thread fills a mailbox; its sequence number
    /// and capture time say which).
    ///
    /// # Errors
    /// When the camera is gone or delivers something else than its specification.
    fn capture(&mut self) -> Result<Frame>;

    /// The device behind it, its format and its controls; `None` where there is no device.
    fn device(&self) -> Option<&DeviceInfo> {
        None
    }
}

impl<C: Camera + ?Sized> Camera for alloc::boxed::Box<C> {
    fn spec(&self) -> &CameraSpec {
        (**self).spec()
    }
    fn capture(&mut self) -> Result<Frame> {
        (**self).capture()
    }
    fn device(&self) -> Option<&DeviceInfo> {
        (**self).device()
    }
}
