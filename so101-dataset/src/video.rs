//! Video of a camera: encoded as H.264 while it is recorded, decoded by picture number.
//!
//! Encoding is Constrained Baseline H.264 by openh264 in constant quality with a key frame every second picture, as
//! LeRobot's own sets have it (policies read random pictures). Colour is BT.601 in limited range, which is what
//! LeRobot's decoders assume of a file that does not say, and the stream says it.
//!
//! [`VideoStream`] owns one thread per camera and an mp4 on the disk; [`VideoReader`] decodes such a file, and those
//! that LeRobot writes: H.264 of x264, B-frames included, and AV1 (feature `av1`). Presets of x264 beyond LeRobot's,
//! such as `veryslow`, use tools that openh264 gets wrong: re-encode such files with ffmpeg. Without the feature `video` only the settings and reports are here.

#[cfg(feature = "video")]
mod color;
#[cfg(feature = "video")]
mod decoder;
#[cfg(feature = "video")]
mod encoder;
#[cfg(feature = "video")]
mod reader;
#[cfg(feature = "video")]
mod round_trip;
mod simd;
#[cfg(feature = "video")]
mod stream;

use std::time::Duration;

use serde_json::{Map, Value, json};
use so101_hal::FrameSize;

#[cfg(feature = "video")]
pub use color::I420;
#[cfg(feature = "video")]
pub use reader::{DecodeReport, VideoReader, count_decodable};
#[cfg(feature = "video")]
pub use round_trip::{RoundTrip, round_trip, round_trip_of};
pub use simd::{SimdReport, simd_report};
#[cfg(feature = "video")]
pub use stream::VideoStream;

use crate::image_stats::ImageStats;

/// How much work the encoder puts into each picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Complexity {
    /// About a tenth faster, 3 % more bytes.
    Low,
    /// The default.
    #[default]
    Medium,
    /// Gives the bits of [`Medium`](Self::Medium) at constant quality.
    High,
}

/// Settings of the encoder.
///
/// ```
/// use so101_dataset::video::EncoderConfig;
/// let smaller = EncoderConfig::default().with_gop_frames(10);
/// assert_eq!((smaller.qp, smaller.gop_frames), (22, 10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncoderConfig {
    /// Constant quantiser, 12 (large, fine) to 51 (small, coarse). 22 keeps noisy scenes above 40 dB in luma.
    pub qp: u8,
    /// A key frame every so many pictures, from 1. Random access decodes up to this many pictures.
    pub gop_frames: u32,
    /// Work put into each picture.
    pub complexity: Complexity,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self { qp: 22, gop_frames: 2, complexity: Complexity::Medium }
    }
}

impl EncoderConfig {
    /// Sets the quantiser, 12 to 51.
    #[must_use]
    pub const fn with_qp(mut self, qp: u8) -> Self {
        self.qp = qp;
        self
    }

    /// Sets the distance of key frames, from 1.
    #[must_use]
    pub const fn with_gop_frames(mut self, frames: u32) -> Self {
        self.gop_frames = frames;
        self
    }

    /// Sets the work put into each picture.
    #[must_use]
    pub const fn with_complexity(mut self, complexity: Complexity) -> Self {
        self.complexity = complexity;
        self
    }
}

/// What happens to a picture when the queue to the encoder is full. No picture is ever lost silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// The control loop waits: right where time is simulated.
    #[default]
    Block,
    /// The picture before it is shown twice and the number of such pictures is reported, so that the video has a
    /// picture for every row and the control loop never waits: right where an arm moves.
    RepeatAndReport,
}

/// Settings of a [`VideoStream`](crate::video).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamConfig {
    /// Pictures a second.
    pub fps: u32,
    /// Settings of the encoder.
    pub encoder: EncoderConfig,
    /// Pictures that may wait for the encoder, from 1. Each waiting picture holds its pixels.
    pub queue_frames: usize,
    /// What happens when they wait already.
    pub overflow: Overflow,
    /// Pictures that are expected; the index of a video of up to this many comes first in its file.
    pub frames_hint: u32,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            fps: 30,
            encoder: EncoderConfig::default(),
            queue_frames: 30,
            overflow: Overflow::default(),
            frames_hint: 30 * 60,
        }
    }
}

impl StreamConfig {
    /// Sets the rate.
    #[must_use]
    pub const fn with_fps(mut self, fps: u32) -> Self {
        self.fps = fps;
        self
    }

    /// Sets the encoder.
    #[must_use]
    pub const fn with_encoder(mut self, encoder: EncoderConfig) -> Self {
        self.encoder = encoder;
        self
    }

    /// Sets the length of the queue and what happens when it is full.
    #[must_use]
    pub const fn with_queue(mut self, frames: usize, overflow: Overflow) -> Self {
        self.queue_frames = frames;
        self.overflow = overflow;
        self
    }

    /// Sets the expected number of pictures.
    #[must_use]
    pub const fn with_frames_hint(mut self, frames: u32) -> Self {
        self.frames_hint = frames;
        self
    }
}

/// What became of one camera's video.
#[derive(Debug)]
#[non_exhaustive]
pub struct VideoReport {
    /// Pictures in the file, repeated ones included: the number of [`VideoStream`](crate::video) pushes.
    pub frames: u64,
    /// Pictures that the queue had no room for; each shows the one before it.
    pub repeated: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Statistics of the pictures before encoding, one count a picture.
    pub stats: ImageStats,
    /// `info` of the video feature in info.json.
    pub info: Map<String, Value>,
    /// CPU time of the thread: colour conversion, statistics, encoding, writing.
    pub encode_cpu: Duration,
}

/// `info` of a video feature in info.json, with the keys and the order of LeRobot 0.6. LeRobot compares size, rate,
/// codec and pixel format when it merges sets; `video.crf` carries the quantiser.
#[must_use]
pub fn video_info(size: FrameSize, fps: u32, encoder: &EncoderConfig) -> Map<String, Value> {
    let pairs = [
        ("video.height", json!(size.height)),
        ("video.width", json!(size.width)),
        ("video.codec", json!("h264")),
        ("video.pix_fmt", json!("yuv420p")),
        ("video.fps", json!(fps)),
        ("video.channels", json!(3)),
        ("has_audio", json!(false)),
        ("video.g", json!(encoder.gop_frames)),
        ("video.crf", json!(encoder.qp)),
        ("video.preset", Value::Null),
        ("video.fast_decode", json!(0)),
        ("video.video_backend", json!("pyav")),
        ("video.extra_options", json!({})),
        ("is_depth_map", json!(false)),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
#[cfg(feature = "video")]
mod tests;
