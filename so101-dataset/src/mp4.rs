//! MP4 files with one video track: a streaming writer and an index of any file that LeRobot or ffmpeg made.
//!
//! The boxes are those of ISO/IEC 14496-12 (file format), 14496-14 (`mp4`) and 14496-15 (`avc1`, `avcC`). Both
//! directions are written out here: the writer has to patch a reserved `moov` in place, the reader has to bound
//! every allocation by the size of the file, and neither needs more than some fifteen boxes.
//!
//! [`Mp4Writer`] takes encoded pictures while they come and leaves a file whose index lies before the pictures.
//! [`Mp4Index`] says where each picture lies, when it is shown and which ones stand alone.

mod index;
mod moov;
mod order;
pub mod remux;
mod writer;

pub use index::{Edit, FourCc, Mp4Index, Sample};
pub(crate) use order::Order;
#[cfg(all(test, feature = "video"))]
pub(crate) use writer::Storage;
pub use writer::{AvcParameters, Mp4Config, Mp4Summary, Mp4Writer};

/// Ticks of the media time scale per picture, as in the files of ffmpeg's muxer: the time scale is `fps * 512`, so
/// that every presentation time is exactly `k / fps`.
pub const TICKS_PER_FRAME: u32 = 512;

/// Whether a sample can be decoded on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// A key frame: decoding can start here.
    Key,
    /// Needs the samples since the last key frame.
    Delta,
}

#[cfg(test)]
mod tests;
