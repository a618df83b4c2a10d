//! Pictures.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrameSize {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl FrameSize {
    /// A size of `width` by `height` pixels.
    #[must_use]
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Bytes of an RGB picture of this size.
    #[must_use]
    pub const fn rgb_len(self) -> usize {
        self.width as usize * self.height as usize * 3
    }
}

impl core::fmt::Display for FrameSize {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// One picture: 8-bit RGB, rows from the top, no padding. Clones share the pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    size: FrameSize,
    rgb: Arc<Vec<u8>>,
    jpeg: Option<Arc<[u8]>>,
    /// Counts the pictures of its camera from 0: a gap is a lost picture, a repeat a stale one.
    pub sequence: u64,
    /// When the picture was taken.
    pub captured: Timestamp,
}

impl Frame {
    /// Takes `width * height * 3` bytes.
    ///
    /// # Errors
    /// [`Error::FrameLength`] when the number of bytes does not fit the size.
    pub fn new(size: FrameSize, rgb: Vec<u8>, sequence: u64, captured: Timestamp) -> Result<Self> {
        if rgb.len() != size.rgb_len() {
            return Err(Error::FrameLength { size, expected: size.rgb_len(), got: rgb.len() });
        }
        Ok(Self { size, rgb: Arc::new(rgb), jpeg: None, sequence, captured })
    }

    /// The same picture, with the JPEG file that the camera sent and that the pixels were decoded from.
    #[must_use]
    pub fn with_jpeg(mut self, jpeg: Arc<[u8]>) -> Self {
        self.jpeg = Some(jpeg);
        self
    }

    /// The JPEG file as the camera sent it, without padding; `None` from a camera that sends none.
    #[must_use]
    pub const fn jpeg(&self) -> Option<&Arc<[u8]>> {
        self.jpeg.as_ref()
    }

    /// Width and height.
    #[must_use]
    pub const fn size(&self) -> FrameSize {
        self.size
    }

    /// The pixels, `[height][width][r, g, b]`.
    #[must_use]
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The buffer, for use again, when this is the last clone.
    #[must_use]
    pub fn into_buffer(self) -> Option<Vec<u8>> {
        Arc::try_unwrap(self.rgb).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_the_wrong_length_is_refused_with_both_figures() {
        let err = Frame::new(FrameSize::new(4, 2), alloc::vec![0; 23], 0, Timestamp::ZERO).unwrap_err();
        assert!(matches!(err, Error::FrameLength { expected: 24, got: 23, .. }));
    }

    #[test]
    fn the_bytes_of_the_camera_stay_with_the_picture_and_its_clones() {
        let plain = Frame::new(FrameSize::new(1, 1), alloc::vec![1, 2, 3], 0, Timestamp::ZERO).unwrap();
        assert_eq!(plain.jpeg(), None);
        let kept = plain.with_jpeg(Arc::from([0xff, 0xd8].as_slice())).clone();
        assert_eq!(kept.jpeg().map(|j| &j[..]), Some([0xff, 0xd8].as_slice()));
    }

    #[test]
    fn the_buffer_comes_back_only_from_the_last_clone() {
        let frame = Frame::new(FrameSize::new(1, 1), alloc::vec![1, 2, 3], 0, Timestamp::ZERO).unwrap();
        let other = frame.clone();
        assert_eq!(frame.into_buffer(), None);
        assert_eq!(other.into_buffer(), Some(alloc::vec![1, 2, 3]));
    }
}
