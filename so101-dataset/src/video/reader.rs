//! Pictures of a video by number.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use so101_hal::{Frame, FrameSize, Timestamp};

use super::decoder::{AvcRecord, Decoder, planes};
use super::encoder::is_within_level;
use crate::error::{Error, Result};
use crate::mp4::{Mp4Index, Sample};

/// A picture of a codec is smaller than its raw RGB many times over; more than this is no picture.
const LARGEST_SAMPLE_BYTES: u32 = 64 << 20;

/// Decodes an H.264 Baseline mp4, such as [`VideoStream`](super::VideoStream) writes, picture by picture.
///
/// Pictures asked for in order are decoded once each; a jump starts at the key frame before the picture. The decoder
/// stays warm, and the last picture is kept.
///
/// ```no_run
/// use so101_dataset::video::VideoReader;
/// let mut video = VideoReader::open("file-000.mp4".as_ref())?;
/// let frame = video.frame(41)?;
/// println!("{} at {:?}", frame.size(), frame.captured.since_start());
/// # Ok::<(), so101_dataset::Error>(())
/// ```
pub struct VideoReader {
    file: File,
    path: PathBuf,
    index: Mp4Index,
    decoder: Decoder,
    sample: Vec<u8>,
    /// The sample after which the decoder stands.
    decoded: Option<usize>,
    last: Option<(usize, Frame)>,
    pictures_decoded: u64,
}

impl VideoReader {
    /// Reads the file's index and sets up a decoder.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Mp4`]; [`Error::UnsupportedCodec`] for another codec (AV1, HEVC) and for H.264 other
    /// than Baseline, which may reorder pictures; [`Error::Decode`] for pictures larger than 3840x2160.
    pub fn open(path: &Path) -> Result<Self> {
        let index = Mp4Index::read(path)?;
        let unsupported = |codec| Error::UnsupportedCodec { codec, path: path.into() };
        let record = AvcRecord::of(&index).map_err(unsupported)?;
        let failed = |problem| Error::Decode { frame: 0, problem, path: path.into() };
        // The file's own word, and a picture takes so much memory before any is decoded.
        if !is_within_level(index.size) {
            return Err(failed(format!("pictures of {}, at most 3840x2160 are decoded", index.size)));
        }
        let decoder = Decoder::new(record, index.size).map_err(failed)?;
        let file = File::open(path).map_err(|e| Error::io("read the video", path, e))?;
        let (sample, decoded, last) = (Vec::new(), None, None);
        Ok(Self { file, path: path.into(), index, decoder, sample, decoded, last, pictures_decoded: 0 })
    }

    /// The file's index.
    #[must_use]
    pub const fn index(&self) -> &Mp4Index {
        &self.index
    }

    /// Pictures in the file.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.index.samples.len() as u64
    }

    /// Width and height of every picture.
    #[must_use]
    pub const fn size(&self) -> FrameSize {
        self.index.size
    }

    /// How many pictures have been decoded since the file was opened, those on the way to a wanted one included.
    #[must_use]
    pub const fn pictures_decoded(&self) -> u64 {
        self.pictures_decoded
    }

    /// Picture `frame`, from 0, as RGB; its capture time is its presentation time in the file.
    ///
    /// # Errors
    /// [`Error::NoSuchFrame`], [`Error::Decode`], [`Error::Io`]. The reader is usable afterwards.
    pub fn frame(&mut self, frame: u64) -> Result<Frame> {
        let frames = self.frames();
        let wanted = usize::try_from(frame).ok().filter(|_| frame < frames);
        let Some(wanted) = wanted else {
            return Err(Error::NoSuchFrame { frame, frames, path: self.path.clone() });
        };
        if let Some((_, last)) = self.last.as_ref().filter(|(i, _)| *i == wanted) {
            return Ok(last.clone());
        }
        self.last = None;
        let mut rgb = vec![0; self.index.size.rgb_len()];
        self.decode_up_to(wanted, &mut rgb)?;
        let seconds = self.pts(wanted);
        let picture = Frame::new(self.index.size, rgb, frame, Timestamp::from_start(seconds))
            .map_err(|e| Error::Decode { frame, problem: e.to_string(), path: self.path.clone() })?;
        self.last = Some((wanted, picture.clone()));
        Ok(picture)
    }

    fn pts(&self, i: usize) -> Duration {
        let ticks = self.index.pts_ticks(i).and_then(|t| u64::try_from(t).ok()).unwrap_or(0);
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.index.timescale);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn decode_up_to(&mut self, wanted: usize, rgb: &mut [u8]) -> Result<()> {
        let key = self.index.key_frame_before(wanted).ok_or_else(|| Error::Decode {
            frame: wanted as u64,
            problem: "no key frame comes before it".to_owned(),
            path: self.path.clone(),
        })?;
        // Go on from where the decoder stands when that is no further away than the key frame.
        let first = match self.decoded {
            Some(done) if done < wanted && done + 1 > key => done + 1,
            _ => key,
        };
        for i in first..=wanted {
            let out = (i == wanted).then_some(&mut *rgb);
            if let Err(error) = self.decode_one(i, out) {
                self.decoded = None;
                self.decoder.reset().map_err(|problem| self.decode_error(i, problem))?;
                return Err(error);
            }
            self.decoded = Some(i);
            self.pictures_decoded += 1;
        }
        Ok(())
    }

    fn decode_one(&mut self, i: usize, rgb: Option<&mut [u8]>) -> Result<()> {
        let Some(&sample) = self.index.samples.get(i) else {
            return Err(self.decode_error(i, "it is not in the index".to_owned()));
        };
        self.load(i, &sample)?;
        let (frame, size) = (i as u64, self.index.size);
        let failed = |problem| Error::Decode { frame, problem, path: self.path.clone() };
        let picture = self.decoder.decode(&self.sample, sample.kind).map_err(failed)?;
        match rgb {
            Some(rgb) => planes(&picture, size).write_rgb(rgb),
            None => Ok(()),
        }
    }

    fn load(&mut self, i: usize, sample: &Sample) -> Result<()> {
        if sample.bytes > LARGEST_SAMPLE_BYTES {
            return Err(self.decode_error(i, format!("it has {} bytes", sample.bytes)));
        }
        self.sample.resize(sample.bytes as usize, 0);
        let mut read = || {
            self.file.seek(SeekFrom::Start(sample.offset))?;
            self.file.read_exact(&mut self.sample)
        };
        read().map_err(|e| Error::io("read the video", &self.path, e))
    }

    fn decode_error(&self, i: usize, problem: String) -> Error {
        Error::Decode { frame: i as u64, problem, path: self.path.clone() }
    }
}

/// How many pictures of a file can be decoded.
#[derive(Debug)]
#[non_exhaustive]
pub struct DecodeReport {
    /// Pictures that the index lists.
    pub frames: u64,
    /// Pictures that came out of the decoder.
    pub decoded: u64,
    /// The first one that did not, and why.
    pub first_failure: Option<Error>,
}

/// Decodes every picture of a file, without converting colours, and counts those that come out.
///
/// # Errors
/// As [`VideoReader::open`]; a picture that cannot be decoded is reported, not an error.
pub fn count_decodable(path: &Path) -> Result<DecodeReport> {
    let mut video = VideoReader::open(path)?;
    let mut report = DecodeReport { frames: video.frames(), decoded: 0, first_failure: None };
    let mut broken = false;
    for i in 0..video.index.samples.len() {
        // Behind a damaged picture everything up to the next key frame is wrong too.
        broken &= video.index.samples.get(i).is_some_and(|s| s.kind != crate::mp4::SampleKind::Key);
        if broken {
            continue;
        }
        match video.decode_one(i, None) {
            Ok(()) => report.decoded += 1,
            Err(error) => {
                broken = true;
                video.decoder.reset().map_err(|problem| video.decode_error(i, problem))?;
                report.first_failure.get_or_insert(error);
            }
        }
    }
    Ok(report)
}
