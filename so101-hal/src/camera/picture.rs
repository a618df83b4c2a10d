//! Pictures as they come from a device, before they are pixels.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::jpeg::{self, JpegFault};
use super::{CameraSpec, DeviceInfo};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameSize};

/// Buffers that are kept for use again; more are given back to the system.
const KEPT: usize = 6;

/// What a device sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// A JPEG file, as it came, without padding.
    Jpeg(Arc<[u8]>),
    /// Pixels.
    Frame(Frame),
    /// Something that is no picture, and why.
    Damaged(Arc<str>),
    /// A picture of another size than the camera's.
    OtherSize(FrameSize),
}

/// One delivery of a device. Clones share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Counts the deliveries of the device from 0, those included that never came.
    pub sequence: u64,
    /// When it was taken.
    pub captured: Timestamp,
    /// The bytes.
    pub content: Content,
}

/// A driver: gives one picture after another, each as the device delivered it.
///
/// Contract: `grab` waits for the next delivery; sequence numbers rise, a gap is a lost picture; errors are of the
/// device, while a delivery that is no picture is [`Content::Damaged`].
pub trait Source: Send {
    /// Name and size.
    fn spec(&self) -> &CameraSpec;

    /// The next delivery. Buffers for pixels come from `buffers`.
    ///
    /// # Errors
    /// When the device is gone or silent.
    fn grab(&mut self, buffers: &mut Buffers) -> Result<Picture>;

    /// The device behind it.
    fn device(&self) -> Option<&DeviceInfo> {
        None
    }
}

impl Picture {
    /// The pixels. A JPEG's bytes stay with the frame.
    ///
    /// # Errors
    /// [`Error::PictureDamaged`] and [`Error::CameraSize`].
    pub fn decode(self, camera: &CameraSpec, buffers: &mut Buffers) -> Result<Frame> {
        let Self { sequence, captured, content } = self;
        let damaged = |what: String| Error::PictureDamaged { camera: camera.name.clone(), sequence, what };
        let other_size = |got| Error::CameraSize { camera: camera.name.clone(), expected: camera.size, got };
        match content {
            Content::Frame(frame) if frame.size() == camera.size => Ok(frame),
            Content::Frame(frame) => Err(other_size(frame.size())),
            Content::OtherSize(got) => Err(other_size(got)),
            Content::Damaged(why) => Err(damaged(String::from(&*why))),
            Content::Jpeg(file) => {
                let mut rgb = buffers.take(camera.size.rgb_len());
                match jpeg::decode_into(&file, camera.size, &mut rgb) {
                    Ok(()) => Ok(Frame::new(camera.size, rgb, sequence, captured)?.with_jpeg(file)),
                    Err(fault) => {
                        buffers.give(rgb);
                        Err(match fault {
                            JpegFault::Size(got) => other_size(got),
                            JpegFault::Damaged(why) => damaged(why),
                        })
                    }
                }
            }
        }
    }

    /// The same delivery with its pixels, or with what is wrong with it.
    #[must_use]
    pub fn decoded(self, camera: &CameraSpec, buffers: &mut Buffers) -> Self {
        let Self { sequence, captured, .. } = self;
        let content = match self.decode(camera, buffers) {
            Ok(frame) => Content::Frame(frame),
            Err(Error::CameraSize { got, .. }) => Content::OtherSize(got),
            Err(Error::PictureDamaged { what, .. }) => Content::Damaged(what.into()),
            Err(other) => Content::Damaged(alloc::format!("{other}").into()),
        };
        Self { sequence, captured, content }
    }
}

/// Pixel buffers for use again, so that pictures that come and go need no new memory.
#[derive(Debug, Default)]
pub struct Buffers {
    free: Vec<Vec<u8>>,
}

impl Buffers {
    /// No buffers yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of this many bytes; their values are whatever they are.
    #[must_use]
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.resize(len, 0);
        buffer
    }

    /// A buffer that is no longer needed.
    pub fn give(&mut self, buffer: Vec<u8>) {
        if self.free.len() < KEPT {
            self.free.push(buffer);
        }
    }

    /// The buffer of a picture that is no longer needed, where nobody else has it.
    pub fn recycle(&mut self, picture: Picture) {
        if let Content::Frame(frame) = picture.content
            && let Some(buffer) = frame.into_buffer()
        {
            self.give(buffer);
        }
    }
}
