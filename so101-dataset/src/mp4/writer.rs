//! Writing an mp4 while its pictures come.
//!
//! Layout: `ftyp`, then room for the index, then `mdat`. At the end the index (`moov`) goes into the room where it
//! fits, so that readers find it first and no byte of the pictures is copied; else it is appended. Both are valid.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use so101_hal::FrameSize;

use super::SampleKind;
use super::moov::{Track, put_box, put_words};
use crate::error::{Error, Result};

/// Fixed parts of `moov`, with the parameter sets of an H.264 stream (about 620 bytes), rounded up.
const MOOV_FIXED_BYTES: u64 = 1024;
/// A hint past this reserves no more room: 38 hours at 30 pictures a second.
const LARGEST_HINT: u32 = 1 << 22;
pub(super) const FTYP: &[u8] = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41";
pub(super) const MDAT_HEADER_BYTES: u64 = 16;

/// What an mp4 is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mp4Config {
    /// Size of every picture.
    pub size: FrameSize,
    /// Pictures per second, 1 to 1000.
    pub fps: u32,
    /// Pictures that are expected: room for an index of this many is reserved at the front.
    pub frames_hint: u32,
}

impl Mp4Config {
    /// Pictures of `size`, `fps` a second, with room for a minute of them.
    #[must_use]
    pub const fn new(size: FrameSize, fps: u32) -> Self {
        Self { size, fps, frames_hint: fps.saturating_mul(60) }
    }

    /// Reserves room for an index of this many pictures.
    #[must_use]
    pub const fn with_frames_hint(mut self, frames: u32) -> Self {
        self.frames_hint = frames;
        self
    }
}

/// The parameter sets of an H.264 Baseline stream, without start codes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AvcParameters {
    /// Sequence parameter set.
    pub sps: Vec<u8>,
    /// Picture parameter set.
    pub pps: Vec<u8>,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mp4Summary {
    /// Pictures in the file.
    pub frames: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Where the bytes go: a file, or in tests something that fails or waits.
pub(crate) trait Storage: Write + Seek + Send {
    /// Returns when the bytes are on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl Storage for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// Writes an mp4 of one H.264 track, picture by picture; the bytes depend on nothing but the arguments.
///
/// ```
/// use so101_dataset::mp4::{AvcParameters, Mp4Config, Mp4Index, Mp4Writer, SampleKind};
/// use so101_hal::FrameSize;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("two.mp4");
/// let mut mp4 = Mp4Writer::create(&path, &Mp4Config::new(FrameSize::new(64, 48), 30))?;
/// mp4.write_sample(&[0, 0, 0, 1, 0x65], SampleKind::Key)?;
/// mp4.write_sample(&[0, 0, 0, 1, 0x41], SampleKind::Delta)?;
/// mp4.finish(&AvcParameters { sps: vec![0x67, 66, 192, 30], pps: vec![0x68, 206] })?;
///
/// let index = Mp4Index::read(&path)?;
/// assert_eq!(index.samples.len(), 2);
/// assert_eq!(index.pts_ticks(1), Some(512)); // of 30 * 512 a second
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Mp4Writer {
    out: Box<dyn Storage>,
    path: PathBuf,
    config: Mp4Config,
    reserved_bytes: u64,
    media_bytes: u64,
    sample_bytes: Vec<u32>,
    keys: Vec<u32>,
}

impl Mp4Writer {
    /// Makes (or empties) the file and writes its front.
    ///
    /// # Errors
    /// A size or rate that an mp4 cannot hold, a file that cannot be made, a full disk.
    pub fn create(path: &Path, config: &Mp4Config) -> Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
        let file = file.map_err(|source| Error::write("create the video", path, source))?;
        Self::create_on(Box::new(file), path, config)
    }

    /// [`create`](Self::create) on any storage; `path` is for messages.
    pub(crate) fn create_on(out: Box<dyn Storage>, path: &Path, config: &Mp4Config) -> Result<Self> {
        let FrameSize { width, height } = config.size;
        let side = 1..=u32::from(u16::MAX);
        if !side.contains(&width) || !side.contains(&height) {
            return Err(Error::VideoSize { size: config.size, rule: "each side must be 1 to 65535" });
        }
        if !(1..=1000).contains(&config.fps) {
            return Err(Error::VideoSetting { setting: "fps", value: config.fps.into(), rule: "1 to 1000" });
        }
        let hint = config.frames_hint.min(LARGEST_HINT);
        let mut writer = Self {
            out,
            path: path.into(),
            config: config.clone(),
            // A size for every sample, a key frame for every second one at most.
            reserved_bytes: MOOV_FIXED_BYTES + u64::from(hint) * 4 + u64::from(hint.div_ceil(2)) * 4,
            media_bytes: 0,
            sample_bytes: Vec::with_capacity(hint as usize),
            keys: Vec::with_capacity(hint.div_ceil(2) as usize),
        };
        writer.write_front().map_err(|e| Error::write("write the video", path, e))?;
        Ok(writer)
    }

    /// Pictures written so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.sample_bytes.len() as u64
    }

    /// Adds one picture: its NAL units, each with a length of four bytes in front.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`]; an empty picture or one past 4 GiB.
    pub fn write_sample(&mut self, data: &[u8], kind: SampleKind) -> Result<()> {
        let bytes = u32::try_from(data.len()).ok().filter(|&n| n > 0);
        let Some(bytes) = bytes else {
            let problem = format!("an encoded picture of {} bytes", data.len());
            return Err(Error::Encode { frame: self.frames(), problem, path: self.path.clone() });
        };
        self.out.write_all(data).map_err(|e| Error::write("write the video", &self.path, e))?;
        self.media_bytes += u64::from(bytes);
        self.sample_bytes.push(bytes);
        if kind == SampleKind::Key {
            self.keys.push(self.sample_bytes.len() as u32);
        }
        Ok(())
    }

    /// Writes the index and returns when the file is on the disk.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Io`]; a video without a picture or without parameter sets.
    pub fn finish(mut self, parameters: &AvcParameters) -> Result<Mp4Summary> {
        let invalid = |frames, problem: &str| Error::Encode {
            frame: frames,
            problem: problem.to_owned(),
            path: self.path.clone(),
        };
        if self.sample_bytes.is_empty() {
            return Err(invalid(0, "the video holds no picture"));
        }
        let usable = |set: &[u8]| set.len() >= 2 && set.len() <= usize::from(u16::MAX);
        if !usable(&parameters.sps) || parameters.sps.len() < 4 || !usable(&parameters.pps) {
            return Err(invalid(self.frames(), "the encoder gave no parameter sets"));
        }
        let bytes =
            self.write_index(parameters).map_err(|e| Error::write("write the video", &self.path, e))?;
        Ok(Mp4Summary { frames: self.frames(), bytes })
    }

    fn write_front(&mut self) -> io::Result<()> {
        let mut front = FTYP.to_vec();
        front.extend(free_header(self.reserved_bytes));
        front.resize(FTYP.len() + self.reserved_bytes as usize, 0);
        front.extend(1u32.to_be_bytes());
        front.extend(b"mdat");
        front.extend(MDAT_HEADER_BYTES.to_be_bytes());
        self.out.write_all(&front)
    }

    fn write_index(&mut self, parameters: &AvcParameters) -> io::Result<u64> {
        let mdat_at = FTYP.len() as u64 + self.reserved_bytes;
        let moov = self.moov(mdat_at + MDAT_HEADER_BYTES, parameters);
        let moov_bytes = moov.len() as u64;
        let mut end = mdat_at + MDAT_HEADER_BYTES + self.media_bytes;
        let left = self.reserved_bytes.checked_sub(moov_bytes);
        // What is left must hold the header of a `free` box, or be nothing.
        if let Some(left) = left.filter(|&n| n == 0 || n >= 8) {
            self.out.seek(SeekFrom::Start(FTYP.len() as u64))?;
            self.out.write_all(&moov)?;
            if left > 0 {
                self.out.write_all(&free_header(left))?;
            }
        } else {
            self.out.seek(SeekFrom::Start(end))?;
            self.out.write_all(&moov)?;
            end += moov_bytes;
        }
        self.out.seek(SeekFrom::Start(mdat_at + 8))?;
        self.out.write_all(&(MDAT_HEADER_BYTES + self.media_bytes).to_be_bytes())?;
        self.out.flush()?;
        self.out.sync()?;
        Ok(end)
    }

    fn moov(&self, chunk_at: u64, parameters: &AvcParameters) -> Vec<u8> {
        let mut entry = Vec::with_capacity(256);
        put_box(&mut entry, b"avc1", |out| put_avc_entry(out, self.config.size, parameters));
        let track = Track {
            size: self.config.size,
            fps: self.config.fps,
            entry: &entry,
            sample_bytes: &self.sample_bytes,
            keys: &self.keys,
            composition: None,
        };
        track.moov(chunk_at)
    }
}

/// The body of `avc1`: ISO/IEC 14496-12 section 12.1.3, then `avcC` of 14496-15 section 5.3.3.1.
fn put_avc_entry(out: &mut Vec<u8>, size: FrameSize, avc: &AvcParameters) {
    out.extend([0, 0, 0, 0, 0, 0, 0, 1]); // reserved, data reference 1
    out.extend([0; 16]);
    out.extend((size.width as u16).to_be_bytes());
    out.extend((size.height as u16).to_be_bytes());
    put_words(out, [0x0048_0000, 0x0048_0000, 0]); // 72 dpi
    out.extend(1u16.to_be_bytes()); // pictures a sample
    out.extend([0; 32]); // compressor's name
    out.extend([0, 0x18, 0xff, 0xff]); // 24 bits deep, no colour table
    put_box(out, b"avcC", |out| {
        out.push(1);
        out.extend(avc.sps.iter().skip(1).take(3)); // profile, compatibility, level
        out.extend([0xff, 0xe1]); // lengths of four bytes, one sequence parameter set
        out.extend((avc.sps.len() as u16).to_be_bytes());
        out.extend(&avc.sps);
        out.push(1);
        out.extend((avc.pps.len() as u16).to_be_bytes());
        out.extend(&avc.pps);
    });
}

fn free_header(bytes: u64) -> [u8; 8] {
    let mut header = *b"\0\0\0\0free";
    header[..4].copy_from_slice(&(bytes as u32).to_be_bytes());
    header
}
