//! The H.264 decoder: samples of an mp4 in, planes out.

use openh264::decoder as h264;
use openh264::formats::YUVSource;
use so101_hal::FrameSize;

use super::color::Planes;
use super::encoder::codec_problem;
use crate::mp4::{FourCc, Mp4Index, SampleKind};

const BASELINE: u8 = 66;
const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// What `avcC` says of a stream.
#[derive(Debug)]
pub(super) struct AvcRecord {
    /// Bytes of the length in front of each NAL unit, 1 to 4.
    length_bytes: usize,
    /// The parameter sets, each with a start code.
    parameter_sets: Vec<u8>,
}

impl AvcRecord {
    /// The record of a stream that this decoder takes; else the codec's name.
    ///
    /// Other profiles may hold B-frames, which come out late and in another order.
    pub(super) fn of(index: &Mp4Index) -> Result<Self, String> {
        if index.codec != FourCc(*b"avc1") {
            return Err(index.codec.to_string());
        }
        let record = Self::parse(&index.codec_config).ok_or("avc1 without a usable avcC box")?;
        match index.codec_config.get(1) {
            Some(&BASELINE) if !index.is_reordered() => Ok(record),
            Some(&BASELINE) => Err("avc1 with reordered pictures".to_owned()),
            profile => Err(format!("avc1 of profile {}", profile.copied().unwrap_or(0))),
        }
    }

    /// ISO/IEC 14496-15 section 5.3.3.1.2.
    fn parse(record: &[u8]) -> Option<Self> {
        let ([_, _, _, _, lengths, sets], rest) = record.split_first_chunk::<6>()?;
        let mut parameter_sets = Vec::new();
        let (&pictures, rest) = take_sets(rest, sets & 0x1f, &mut parameter_sets)?.split_first()?;
        take_sets(rest, pictures, &mut parameter_sets)?;
        Some(Self { length_bytes: usize::from(lengths & 3) + 1, parameter_sets })
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
pub(super) struct Decoder {
    inner: h264::Decoder,
    record: AvcRecord,
    size: FrameSize,
    byte_stream: Vec<u8>,
}

impl Decoder {
    pub(super) fn new(record: AvcRecord, size: FrameSize) -> Result<Self, String> {
        let inner = h264::Decoder::new().map_err(|e| codec_problem(&e))?;
        Ok(Self { inner, record, size, byte_stream: Vec::new() })
    }

    /// Forgets the state, as after an error.
    pub(super) fn reset(&mut self) -> Result<(), String> {
        self.inner = h264::Decoder::new().map_err(|e| codec_problem(&e))?;
        Ok(())
    }

    /// Decodes one sample; in a Baseline stream its picture comes out at once.
    pub(super) fn decode(&mut self, sample: &[u8], kind: SampleKind) -> Result<h264::DecodedYUV<'_>, String> {
        self.record.write_byte_stream(sample, kind, &mut self.byte_stream)?;
        let picture = self.inner.decode(&self.byte_stream).map_err(|e| codec_problem(&e))?;
        let picture = picture.ok_or("no picture came out")?;
        let (width, height) = picture.dimensions();
        if (width, height) != (self.size.width as usize, self.size.height as usize) {
            return Err(format!("a picture of {width}x{height} in a file of {}", self.size));
        }
        Ok(picture)
    }
}

/// The planes of a decoded picture.
pub(super) fn planes<'a>(picture: &'a h264::DecodedYUV<'_>, size: FrameSize) -> Planes<'a> {
    let (y_stride, u_stride, _) = picture.strides();
    let strides = (y_stride as u32, u_stride as u32);
    Planes { size, y: picture.y(), u: picture.u(), v: picture.v(), strides }
}
