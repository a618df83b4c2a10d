//! Cameras.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::frame::{Frame, FrameSize};

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
}

impl<C: Camera + ?Sized> Camera for alloc::boxed::Box<C> {
    fn spec(&self) -> &CameraSpec {
        (**self).spec()
    }
    fn capture(&mut self) -> Result<Frame> {
        (**self).capture()
    }
}
