//! Pictures of a video by number.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use so101_hal::{Frame, FrameSize, Timestamp};

use super::color::{I420, Planes};
use super::decoder::{Decoder, NoDecoder, Show};
use super::encoder::is_within_level;
use crate::error::{Error, Result};
use crate::mp4::{Mp4Index, Order, Sample};

/// A picture of a codec is smaller than its raw RGB many times over; more than this is no picture.
const LARGEST_SAMPLE_BYTES: u32 = 64 << 20;

/// Decodes an mp4 picture by picture: H.264 of [`VideoStream`](super::VideoStream) and of x264 (B-frames included), and
/// AV1 with the feature `av1`.
///
/// Pictures are numbered in the order in which they are shown. Those asked for in order are decoded once each; a jump
/// starts at the key frame before the picture. The decoder stays warm, and the last picture is kept.
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
    order: Order,
    /// Where the decoder stands; `None` where only a key frame can follow.
    at: Option<Position>,
    last: Option<(usize, Frame)>,
    pictures_decoded: u64,
}

/// Where a decoder stands in a file.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The sample that it gets next.
    sample: usize,
    /// The picture that comes out of it next.
    picture: usize,
}

impl VideoReader {
    /// Reads the file's index and sets up a decoder.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Mp4`]; [`Error::UnsupportedCodec`] for another codec (HEVC) and for profiles that are not
    /// 8-bit 4:2:0; [`Error::Decode`] for pictures larger than 3840x2160.
    pub fn open(path: &Path) -> Result<Self> {
        let index = Mp4Index::read(path)?;
        let failed = |problem| Error::Decode { frame: 0, problem, path: path.into() };
        // The file's own word, and a picture takes so much memory before any is decoded.
        if !is_within_level(index.size) {
            return Err(failed(format!("pictures of {}, at most 3840x2160 are decoded", index.size)));
        }
        let decoder = Decoder::of(&index).map_err(|why| match why {
            NoDecoder::Codec(codec) => Error::UnsupportedCodec { codec, path: path.into() },
            NoDecoder::Failed(problem) => failed(problem),
        })?;
        let file = File::open(path).map_err(|e| Error::io("read the video", path, e))?;
        let order = Order::of(&index);
        let (path, sample) = (path.into(), Vec::new());
        Ok(Self { file, path, index, decoder, sample, order, at: None, last: None, pictures_decoded: 0 })
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
        let wanted = self.place(frame)?;
        if let Some((_, last)) = self.last.as_ref().filter(|(i, _)| *i == wanted) {
            return Ok(last.clone());
        }
        self.last = None;
        let mut rgb = vec![0; self.index.size.rgb_len()];
        self.decode_up_to(wanted, &mut |picture| picture.write_rgb(&mut rgb))?;
        let seconds = self.pts(self.order.sample(wanted));
        let picture = Frame::new(self.index.size, rgb, frame, Timestamp::from_start(seconds))
            .map_err(|e| Error::Decode { frame, problem: e.to_string(), path: self.path.clone() })?;
        self.last = Some((wanted, picture.clone()));
        Ok(picture)
    }

    /// Picture `frame`, from 0, as the codec has it: the very bytes, before any conversion of colours.
    ///
    /// # Errors
    /// As [`Self::frame`]; [`Error::VideoSize`] when `into` is of another size.
    pub fn frame_yuv(&mut self, frame: u64, into: &mut I420) -> Result<()> {
        let wanted = self.place(frame)?;
        self.decode_up_to(wanted, &mut |picture| into.copy_from(picture))
    }

    fn place(&self, frame: u64) -> Result<usize> {
        let frames = self.frames();
        let wanted = usize::try_from(frame).ok().filter(|_| frame < frames);
        wanted.ok_or_else(|| Error::NoSuchFrame { frame, frames, path: self.path.clone() })
    }

    fn pts(&self, i: usize) -> Duration {
        let ticks = self.index.pts_ticks(i).and_then(|t| u64::try_from(t).ok()).unwrap_or(0);
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.index.timescale);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn decode_up_to(&mut self, wanted: usize, take: &mut dyn FnMut(&Planes<'_>) -> Result<()>) -> Result<()> {
        let holds = self.order.sample(wanted);
        let key = self.index.key_frame_before(holds).ok_or_else(|| Error::Decode {
            frame: wanted as u64,
            problem: "no key frame comes before it".to_owned(),
            path: self.path.clone(),
        })?;
        // Go on from where the decoder stands when that is no further away than the key frame.
        let mut at = match self.at.take() {
            Some(at) if at.picture <= wanted && at.sample > key => at,
            _ => {
                self.decoder.jump().map_err(|problem| self.decode_error(key, problem))?;
                Position { sample: key, picture: self.order.picture(key) }
            }
        };
        let mut taken = Ok(());
        while at.picture <= wanted {
            let before = at;
            let mut show = |picture: &Planes<'_>| {
                if at.picture == wanted {
                    taken = take(picture);
                }
                at.picture += 1;
            };
            let decoded = if before.sample < self.index.samples.len() {
                self.decode_one(before.sample, &mut show)
            } else {
                self.decoder.drain(&mut show).map_err(|problem| self.decode_error(holds, problem))
            };
            self.pictures_decoded += (at.picture - before.picture) as u64;
            if let Err(error) = decoded {
                self.decoder.reset().map_err(|problem| self.decode_error(before.sample, problem))?;
                return Err(error);
            }
            at.sample += 1;
            if before.sample >= self.index.samples.len() && at.picture <= wanted {
                return Err(self.decode_error(holds, "it did not come out of the decoder".to_owned()));
            }
        }
        taken?;
        // After the end of the file only a key frame can follow.
        self.at = Some(at).filter(|at| at.sample <= self.index.samples.len());
        Ok(())
    }

    fn decode_one(&mut self, i: usize, show: &mut Show<'_>) -> Result<()> {
        let Some(&sample) = self.index.samples.get(i) else {
            return Err(self.decode_error(i, "it is not in the index".to_owned()));
        };
        self.load(i, &sample)?;
        let (frame, path) = (self.order.picture(i) as u64, &self.path);
        let failed = |problem| Error::Decode { frame, problem, path: path.clone() };
        self.decoder.decode(&self.sample, sample.kind, show).map_err(failed)
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

    /// What is wrong with the picture of sample `i`.
    fn decode_error(&self, i: usize, problem: String) -> Error {
        Error::Decode { frame: self.order.picture(i) as u64, problem, path: self.path.clone() }
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
        let mut shown = 0;
        let decoded = video.decode_one(i, &mut |_| shown += 1);
        report.decoded += shown;
        if let Err(error) = decoded {
            broken = true;
            video.decoder.reset().map_err(|problem| video.decode_error(i, problem))?;
            report.first_failure.get_or_insert(error);
        }
    }
    let mut shown = 0;
    let drained = video.decoder.drain(&mut |_| shown += 1);
    report.decoded += shown;
    let last = video.order.sample(video.index.samples.len().saturating_sub(1));
    if let Err(problem) = drained {
        report.first_failure.get_or_insert(video.decode_error(last, problem));
    } else if report.decoded < report.frames && report.first_failure.is_none() {
        let problem = format!("{} of {} pictures came out of the decoder", report.decoded, report.frames);
        report.first_failure = Some(video.decode_error(last, problem));
    }
    Ok(report)
}
