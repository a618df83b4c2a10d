//! The H.264 encoder: pictures in, length-prefixed NAL units out.
//!
//! openh264 has no plain constant-quality mode in its safe interface; its buffer-based rate control with equal lower
//! and upper quantiser gives the same bits. Two of its defaults have to go: it may skip pictures, and it may add key
//! frames at scene changes.

use openh264::OpenH264API;
use openh264::encoder as h264;
use openh264::formats::YUVSlices;
use so101_hal::FrameSize;

use super::color::I420;
use super::{Complexity, EncoderConfig};
use crate::error::{Error, Result};
use crate::mp4::{AvcParameters, SampleKind};

/// Types of NAL units (ITU-T H.264, table 7-1).
const NAL_SPS: u8 = 7;
const NAL_PPS: u8 = 8;
/// Only the level in the stream follows from it; the quantiser is fixed.
const BITRATE_BPS: u32 = 8_000_000;

/// One encoder for one stream.
pub(super) struct Encoder {
    inner: h264::Encoder,
    size: FrameSize,
    parameters: AvcParameters,
    sample: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(size: FrameSize, fps: u32, config: &EncoderConfig) -> Result<Self> {
        check_settings(size, fps, config)?;
        let settings = h264::EncoderConfig::new()
            .usage_type(h264::UsageType::CameraVideoRealTime)
            .max_frame_rate(h264::FrameRate::from_hz(fps as f32))
            .intra_frame_period(h264::IntraFramePeriod::from_num_frames(config.gop_frames))
            .rate_control_mode(h264::RateControlMode::Bufferbased)
            .bitrate(h264::BitRate::from_bps(BITRATE_BPS))
            .qp(h264::QpRange::new(config.qp, config.qp))
            .complexity(match config.complexity {
                Complexity::Low => h264::Complexity::Low,
                Complexity::Medium => h264::Complexity::Medium,
                Complexity::High => h264::Complexity::High,
            })
            .num_threads(1)
            .skip_frames(false)
            .scene_change_detect(false)
            .adaptive_quantization(false)
            .background_detection(false)
            .vui(h264::VuiConfig::bt601());
        let inner = h264::Encoder::with_api_config(OpenH264API::from_source(), settings);
        let inner =
            inner.map_err(|_| Error::VideoSize { size, rule: "the encoder cannot be set up for it" })?;
        Ok(Self { inner, size, parameters: AvcParameters::default(), sample: Vec::new() })
    }

    /// The parameter sets, empty before the first picture.
    pub(super) const fn parameters(&self) -> &AvcParameters {
        &self.parameters
    }

    /// Encodes the next picture. `Err` holds what the encoder did.
    pub(super) fn encode(&mut self, picture: &I420) -> Result<(&[u8], SampleKind), String> {
        if picture.size() != self.size {
            return Err(format!("a picture of {} in a stream of {}", picture.size(), self.size));
        }
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let (u, v) = picture.chroma();
        let source = YUVSlices::new((picture.luma(), u, v), (width, height), (width, width / 2, width / 2));
        let stream = self.inner.encode(&source).map_err(|e| codec_problem(&e))?;
        let frame_type = stream.frame_type();
        self.sample.clear();
        for layer in (0..stream.num_layers()).filter_map(|i| stream.layer(i)) {
            for unit in (0..layer.nal_count()).filter_map(|i| layer.nal_unit(i)) {
                sort_unit(unit, &mut self.parameters, &mut self.sample)?;
            }
        }
        if self.sample.is_empty() {
            return Err(format!("the encoder skipped it, frame type {frame_type:?}"));
        }
        let kind = if frame_type == h264::FrameType::IDR { SampleKind::Key } else { SampleKind::Delta };
        Ok((&self.sample, kind))
    }
}

/// Whether the codec takes pictures of this size, at most 3840x2160 either way up.
pub(super) const fn is_within_level(size: FrameSize) -> bool {
    let (width, height) = (size.width, size.height);
    let (longer, shorter) = if width > height { (width, height) } else { (height, width) };
    longer <= 3840 && shorter <= 2160
}

/// Refuses what the library would clip, round or crash on.
fn check_settings(size: FrameSize, fps: u32, config: &EncoderConfig) -> Result<()> {
    let FrameSize { width, height } = size;
    let setting = |setting, value: u64, rule| Err(Error::VideoSetting { setting, value, rule });
    if width % 2 != 0 || height % 2 != 0 {
        return Err(Error::VideoSize { size, rule: "width and height must be even" });
    }
    if width.min(height) < 16 || !is_within_level(size) {
        return Err(Error::VideoSize { size, rule: "it must be 16x16 to 3840x2160" });
    }
    if !(1..=1000).contains(&fps) {
        return setting("fps", fps.into(), "1 to 1000");
    }
    if !(12..=51).contains(&config.qp) {
        return setting("qp", config.qp.into(), "12 to 51");
    }
    if !(1..=1000).contains(&config.gop_frames) {
        return setting("gop_frames", config.gop_frames.into(), "1 to 1000");
    }
    Ok(())
}

/// Parameter sets belong into the file's header, the rest into the sample, each with a length in front.
fn sort_unit(unit: &[u8], parameters: &mut AvcParameters, sample: &mut Vec<u8>) -> Result<(), String> {
    let body = unit.strip_prefix(&[0, 0, 0, 1]).or_else(|| unit.strip_prefix(&[0, 0, 1])).unwrap_or(unit);
    let Some(first) = body.first() else { return Ok(()) };
    let kept = match first & 0x1f {
        NAL_SPS => &mut parameters.sps,
        NAL_PPS => &mut parameters.pps,
        _ => {
            let length = u32::try_from(body.len()).map_err(|_| "a unit past 4 GiB".to_owned())?;
            sample.extend(length.to_be_bytes());
            sample.extend(body);
            return Ok(());
        }
    };
    if kept.is_empty() {
        kept.extend(body);
    } else if kept != body {
        return Err("the encoder changed its parameter sets within the stream".to_owned());
    }
    Ok(())
}

/// The library's message without its bookkeeping of codes.
pub(super) fn codec_problem(error: &openh264::Error) -> String {
    crate::error::one_line(&format!("openh264 code {}: {error}", error.native_code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_settings_out_of_range_are_refused_with_their_rule() {
        let ok = FrameSize::new(64, 48);
        let base = EncoderConfig::default();
        let refused = |size, fps, config: EncoderConfig| match Encoder::new(size, fps, &config) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{size} at {fps} with {config:?} was accepted"),
        };
        for (size, fps, config, message) in [
            (
                FrameSize::new(63, 48),
                30,
                base,
                "63x48 picture cannot be encoded, width and height must be even",
            ),
            (
                FrameSize::new(64, 47),
                30,
                base,
                "64x47 picture cannot be encoded, width and height must be even",
            ),
            (FrameSize::new(8, 8), 30, base, "8x8 picture cannot be encoded, it must be 16x16 to 3840x2160"),
            (FrameSize::new(4096, 64), 30, base, "4096x64 picture cannot be encoded, it must be 16x16"),
            (ok, 0, base, "encoder setting fps is 0, it must be 1 to 1000"),
            (ok, 30, base.with_qp(11), "encoder setting qp is 11, it must be 12 to 51"),
            (ok, 30, base.with_gop_frames(0), "encoder setting gop_frames is 0, it must be 1 to 1000"),
        ] {
            let text = refused(size, fps, config);
            assert!(text.contains(message), "{text}");
        }
    }

    #[test]
    fn parameter_sets_leave_the_sample_and_may_not_change() {
        let (mut parameters, mut sample) = (AvcParameters::default(), Vec::new());
        for unit in
            [&[0, 0, 0, 1, 0x67, 1][..], &[0, 0, 1, 0x68, 2], &[0, 0, 1, 0x65, 3], &[0, 0, 0, 1, 0x67, 1]]
        {
            sort_unit(unit, &mut parameters, &mut sample).unwrap();
        }
        assert_eq!(parameters, AvcParameters { sps: vec![0x67, 1], pps: vec![0x68, 2] });
        assert_eq!(sample, [0, 0, 0, 2, 0x65, 3]);
        assert!(
            sort_unit(&[0, 0, 1, 0x68, 9], &mut parameters, &mut sample).unwrap_err().contains("changed")
        );
    }
}
