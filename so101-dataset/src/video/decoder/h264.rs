//! H.264 by openh264: Baseline, Main and High, B-frames included.

use openh264::OpenH264API;
use openh264::decoder as h264;
use openh264::decoder::{DecoderConfig, Flush};
use openh264::formats::YUVSource;

use super::Show;
use crate::mp4::{FourCc, Mp4Index, SampleKind};
use crate::video::color::Planes;
use crate::video::encoder::codec_problem;

const BASELINE: u8 = 66;
/// Baseline, Main and High: 8-bit 4:2:0 without tools that only broadcast uses.
const PROFILES: [u8; 3] = [BASELINE, 77, 100];
const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// What `avcC` says of a stream.
#[derive(Debug)]
pub(in crate::video) struct AvcRecord {
    /// Bytes of the length in front of each NAL unit, 1 to 4.
    length_bytes: usize,
    /// The parameter sets, each with a start code.
    parameter_sets: Vec<u8>,
    /// Whether each sample gives its picture at once.
    at_once: bool,
}

impl AvcRecord {
    /// The record of a stream that this decoder takes; else the codec's name.
    pub(in crate::video) fn of(index: &Mp4Index) -> Result<Self, String> {
        if index.codec != FourCc(*b"avc1") {
            return Err(index.codec.to_string());
        }
        let record = Self::parse(&index.codec_config).ok_or("avc1 without a usable avcC box")?;
        match index.codec_config.get(1) {
            Some(profile) if PROFILES.contains(profile) => {
                Ok(Self { at_once: *profile == BASELINE && !index.is_reordered(), ..record })
            }
            profile => Err(format!("avc1 of profile {}", profile.copied().unwrap_or(0))),
        }
    }

    /// ISO/IEC 14496-15 section 5.3.3.1.2.
    fn parse(record: &[u8]) -> Option<Self> {
        let ([_, _, _, _, lengths, sets], rest) = record.split_first_chunk::<6>()?;
        let mut parameter_sets = Vec::new();
        let (&pictures, rest) = take_sets(rest, sets & 0x1f, &mut parameter_sets)?.split_first()?;
        take_sets(rest, pictures, &mut parameter_sets)?;
        Some(Self { length_bytes: usize::from(lengths & 3) + 1, parameter_sets, at_once: false })
    }

    /// The sample as a byte stream with start codes, the parameter sets in front of a key frame.
    fn write_byte_stream(&self, sample: &[u8], kind: SampleKind, out: &mut Vec<u8>) -> Result<(), String> {
        out.clear();
        if kind == SampleKind::Key {
            out.extend(&self.parameter_sets);
        }
        let mut rest = sample;
        while !rest.is_empty() {
            let unit = rest.split_at_checked(self.length_bytes).and_then(|(length, after)| {
                let length = length.iter().fold(0usize, |n, &byte| n << 8 | usize::from(byte));
                after.split_at_checked(length)
            });
            let (unit, after) = unit.ok_or("a unit is longer than its sample")?;
            out.extend(START_CODE);
            out.extend(unit);
            rest = after;
        }
        Ok(())
    }
}

/// Takes `count` parameter sets off the front, each with a length of two bytes.
fn take_sets<'a>(mut rest: &'a [u8], count: u8, out: &mut Vec<u8>) -> Option<&'a [u8]> {
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (set, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        out.extend(START_CODE);
        out.extend(set);
        rest = after;
    }
    Some(rest)
}

/// One warm decoder; its state is that after the last sample.
pub(in crate::video) struct H264 {
    inner: h264::Decoder,
    record: AvcRecord,
    byte_stream: Vec<u8>,
}

impl H264 {
    pub(in crate::video) fn new(record: AvcRecord) -> Result<Self, String> {
        Ok(Self { inner: open(record.at_once)?, record, byte_stream: Vec::new() })
    }

    pub(in crate::video) fn reset(&mut self) -> Result<(), String> {
        self.inner = open(self.record.at_once)?;
        Ok(())
    }

    /// Whether pictures are kept back that belong to an earlier place than the next key frame.
    pub(in crate::video) const fn keeps_pictures(&self) -> bool {
        !self.record.at_once
    }

    pub(in crate::video) fn decode(
        &mut self,
        sample: &[u8],
        kind: SampleKind,
        show: &mut Show<'_>,
    ) -> Result<(), String> {
        self.record.write_byte_stream(sample, kind, &mut self.byte_stream)?;
        match self.inner.decode(&self.byte_stream).map_err(|e| codec_problem(&e))? {
            Some(picture) => show(&planes(&picture)?),
            None if self.record.at_once => return Err("no picture came out".to_owned()),
            None => {}
        }
        Ok(())
    }

    /// Shows what is still kept back, at the end of the file.
    pub(in crate::video) fn drain(&mut self, show: &mut Show<'_>) -> Result<(), String> {
        for picture in self.inner.flush_remaining().map_err(|e| codec_problem(&e))? {
            show(&planes(&picture)?);
        }
        Ok(())
    }
}

fn open(at_once: bool) -> Result<h264::Decoder, String> {
    // Flushing after each sample gives reordered pictures in the wrong order, and fails after some of them.
    let flush = if at_once { Flush::Auto } else { Flush::NoFlush };
    let config = DecoderConfig::new().flush_after_decode(flush);
    h264::Decoder::with_api_config(OpenH264API::from_source(), config).map_err(|e| codec_problem(&e))
}

/// The planes of a decoded picture.
fn planes<'a>(picture: &'a h264::DecodedYUV<'_>) -> Result<Planes<'a>, String> {
    let (width, height) = picture.dimensions();
    let size = u32::try_from(width).ok().zip(u32::try_from(height).ok());
    let (width, height) = size.ok_or_else(|| format!("a picture of {width}x{height}"))?;
    let (y_stride, u_stride, _) = picture.strides();
    let strides = (y_stride as u32, u_stride as u32);
    let size = so101_hal::FrameSize::new(width, height);
    Ok(Planes { size, y: picture.y(), u: picture.u(), v: picture.v(), strides })
}
