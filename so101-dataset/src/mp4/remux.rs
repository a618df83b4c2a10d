//! Stream copy: pictures of several files into a new one, not one of them encoded again.
//!
//! Parts begin at key frames. With LeRobot's key frame every second picture that is nearly always so, and where it is
//! not the error names the nearest place that is.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::moov::{Composition, Track};
use super::writer::{FTYP, MDAT_HEADER_BYTES};
use super::{Mp4Index, Mp4Summary, Order, SampleKind};
use crate::error::{Error, Result};

/// Pictures of one file, numbered in the order in which they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// The pictures.
    pub frames: Range<u64>,
}

impl Part {
    /// These pictures of a file.
    pub fn new(path: impl Into<PathBuf>, frames: Range<u64>) -> Self {
        Self { path: path.into(), frames }
    }
}

/// What is copied of a file.
struct Piece<'a> {
    part: &'a Part,
    index: &'a Mp4Index,
    /// Samples in the order of decoding.
    samples: Range<usize>,
    /// For each sample: its picture, counted from the first one of the part.
    pictures: Vec<u32>,
}

/// Writes the pictures of all parts, one after another, to a new file at `out`, which is durable when this returns.
///
/// Picture `k` of the new file is shown at exactly `k / fps`. The parts must have one codec, size and set-up record, and
/// a constant rate of `fps`.
///
/// ```no_run
/// use so101_dataset::mp4::remux::{Part, concat};
/// let parts = [Part::new("a.mp4", 0..90), Part::new("b.mp4", 30..60)];
/// let summary = concat(&parts, 30, "both.mp4".as_ref())?;
/// assert_eq!(summary.frames, 120);
/// # Ok::<(), so101_dataset::Error>(())
/// ```
///
/// # Errors
/// [`Error::NotAtKeyFrame`] for a part that cannot be cut out without encoding, [`Error::VideosDiffer`] for parts that
/// cannot be in one file, [`Error::NoSuchFrame`], [`Error::Mp4`] for a file that cannot be read, [`Error::VideoSetting`]
/// for another `fps` than 1 to 1000; [`Error::Io`], [`Error::DiskFull`]. `out` is gone after an error, unless it was
/// there before.
pub fn concat(parts: &[Part], fps: u32, out: &Path) -> Result<Mp4Summary> {
    // The rate of a single picture cannot be seen from its file.
    if !(1..=1000).contains(&fps) {
        return Err(Error::VideoSetting { setting: "fps", value: fps.into(), rule: "1 to 1000" });
    }
    let mut paths: Vec<&Path> = parts.iter().map(|p| p.path.as_path()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut indices = Vec::with_capacity(paths.len());
    for path in &paths {
        let index = Mp4Index::read(path)?;
        check_rate(&index, fps, path)?;
        let order = Order::of(&index);
        indices.push((index, order));
    }
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts {
        let index = paths.binary_search(&part.path.as_path()).ok().and_then(|i| indices.get(i));
        // Every part's path is in the list.
        let Some((index, order)) = index else { continue };
        pieces.push(Piece::of(part, index, order)?);
    }
    let nothing = || Error::Encode { frame: 0, problem: "no pictures to copy".into(), path: out.into() };
    let first = pieces.first().ok_or_else(nothing)?;
    for piece in &pieces {
        same_stream(first, piece)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(out);
    let mut file = file.map_err(|source| Error::write("create the video", out, source))?;
    let written = write(&pieces, first.index, fps, &mut file, out);
    if written.is_err() {
        // What is half written is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(out);
    }
    written
}

/// The pictures of a constant rate, at the places that `fps` gives them.
fn check_rate(index: &Mp4Index, fps: u32, path: &Path) -> Result<()> {
    let mut times: Vec<i64> = (0..index.samples.len()).filter_map(|i| index.pts_ticks(i)).collect();
    times.sort_unstable();
    let start = times.first().copied().unwrap_or(0);
    if times.len() != index.samples.len() {
        let problem = "its edit list moves pictures out of all time".to_owned();
        return Err(Error::VideosDiffer { problem, path: path.into() });
    }
    let off = times
        .iter()
        .enumerate()
        .find(|(k, t)| i128::from(**t - start) * i128::from(fps) != *k as i128 * i128::from(index.timescale));
    match off {
        None => Ok(()),
        Some((k, _)) => {
            let problem = format!("picture {k} is not shown {k}/{fps} s after the first");
            Err(Error::VideosDiffer { problem, path: path.into() })
        }
    }
}

impl<'a> Piece<'a> {
    fn of(part: &'a Part, index: &'a Mp4Index, order: &Order) -> Result<Self> {
        let frames = index.samples.len() as u64;
        let (from, to) = (part.frames.start, part.frames.end);
        if from >= to || to > frames {
            let frame = if to > frames { to.saturating_sub(1) } else { from };
            return Err(Error::NoSuchFrame { frame, frames, path: part.path.clone() });
        }
        let first = order.sample(usize::try_from(from).unwrap_or(usize::MAX));
        let samples = first..first + usize::try_from(to - from).unwrap_or(0);
        let is_key = index.samples.get(first).is_some_and(|s| s.kind == SampleKind::Key);
        // The samples of these pictures must be the next ones in the file: none of them needs another, none is missing.
        let picture = |sample: usize| order.picture(sample) as u64;
        let whole = samples.end <= index.samples.len()
            && samples.clone().all(|sample| part.frames.contains(&picture(sample)));
        if !is_key || !whole {
            let keys = index.key_frames().map(picture);
            let wrong = if is_key { to } else { from };
            let nearest = keys.chain([frames]).min_by_key(|k| k.abs_diff(wrong)).unwrap_or(0);
            return Err(Error::NotAtKeyFrame { frame: wrong, nearest, path: part.path.clone() });
        }
        let place = |sample| u32::try_from(picture(sample).saturating_sub(from)).unwrap_or(u32::MAX);
        let pictures = samples.clone().map(place).collect();
        Ok(Self { part, index, samples, pictures })
    }

    /// The most periods by which a picture is shown before its sample's turn.
    fn delay(&self) -> u32 {
        let early = (0..).zip(&self.pictures).map(|(i, picture): (u32, _)| i.saturating_sub(*picture));
        early.max().unwrap_or(0)
    }

    fn samples(&self) -> &'a [super::Sample] {
        self.index.samples.get(self.samples.clone()).unwrap_or_default()
    }
}

/// Both can be in one file: one decoder, set up once, reads them.
fn same_stream(a: &Piece<'_>, b: &Piece<'_>) -> Result<()> {
    let (x, y) = (a.index, b.index);
    let problem = if x.codec != y.codec {
        format!("its codec is {}, that of {} is {}", y.codec, a.part.path.display(), x.codec)
    } else if x.size != y.size {
        format!("its pictures are {}, those of {} are {}", y.size, a.part.path.display(), x.size)
    } else if x.codec_config != y.codec_config {
        format!("its encoder was set up differently from that of {}", a.part.path.display())
    } else {
        return Ok(());
    };
    Err(Error::VideosDiffer { problem, path: b.part.path.clone() })
}

fn write(pieces: &[Piece<'_>], like: &Mp4Index, fps: u32, file: &mut File, out: &Path) -> Result<Mp4Summary> {
    let (mut sample_bytes, mut keys, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let delay = pieces.iter().map(Piece::delay).max().unwrap_or(0);
    for piece in pieces {
        for ((i, sample), picture) in (0..).zip(piece.samples()).zip(&piece.pictures) {
            sample_bytes.push(sample.bytes);
            if sample.kind == SampleKind::Key {
                keys.push(sample_bytes.len() as u32);
            }
            // Never negative: the delay is the most that is missing.
            offsets.push((picture + delay).saturating_sub(i));
        }
    }
    let composition = Composition { offsets, delay };
    let reordered = composition.offsets.iter().any(|o| *o != 0);
    let media_bytes: u64 = sample_bytes.iter().map(|b| u64::from(*b)).sum();
    let track = Track {
        size: like.size,
        fps,
        entry: &like.entry,
        sample_bytes: &sample_bytes,
        keys: &keys,
        composition: Some(&composition).filter(|_| reordered),
    };
    let moov = track.moov(0).len() as u64;
    let media_at = FTYP.len() as u64 + moov + MDAT_HEADER_BYTES;
    let mut front = FTYP.to_vec();
    front.extend(track.moov(media_at));
    front.extend(1_u32.to_be_bytes());
    front.extend(b"mdat");
    front.extend((MDAT_HEADER_BYTES + media_bytes).to_be_bytes());
    let failed = |e| Error::write("write the video", out, e);
    file.write_all(&front).map_err(failed)?;
    let mut source: Option<(&Path, File)> = None;
    for piece in pieces {
        let path = piece.part.path.as_path();
        let from = match &mut source {
            Some((open, from)) if *open == path => from,
            _ => {
                let from = File::open(path).map_err(|e| Error::io("read the video", path, e))?;
                &mut source.insert((path, from)).1
            }
        };
        for run in runs(piece.samples()) {
            from.seek(SeekFrom::Start(run.start)).map_err(|e| Error::io("read the video", path, e))?;
            let n = run.end - run.start;
            // On Linux the kernel copies, file to file.
            let copied = std::io::copy(&mut (&*from).take(n), file).map_err(failed)?;
            if copied != n {
                let source = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                return Err(Error::io("read the video", path, source));
            }
        }
    }
    file.sync_all().map_err(failed)?;
    Ok(Mp4Summary { frames: sample_bytes.len() as u64, bytes: media_at + media_bytes })
}

/// Byte ranges of samples, neighbours joined.
fn runs(samples: &[super::Sample]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for sample in samples {
        let end = sample.offset + u64::from(sample.bytes);
        match runs.last_mut() {
            Some(run) if run.end == sample.offset => run.end = end,
            _ => runs.push(sample.offset..end),
        }
    }
    runs
}

#[cfg(test)]
#[cfg(feature = "video")]
mod tests;
