//! Where the pictures of an mp4 lie and when they are shown.
//!
//! Nothing is trusted: a table is read only when its entries fit the box that holds it, the number of samples is
//! bounded by the size of the file, and every sample has to lie inside of it. So a hostile file costs at most about 32
//! times its own size in memory: one [`Sample`] for each byte, when all samples have one.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use so101_hal::FrameSize;

use super::SampleKind;
use crate::error::Result;
use crate::reader::files::open_regular;

mod boxes;

use boxes::{Body, Fault, child, children, required};

/// A LeRobot file holds 200 MB to 500 MB of pictures, its index about 1 MB.
const LARGEST_MOOV: u64 = 64 << 20;
/// 38 hours at 30 pictures a second.
const MOST_SAMPLES: u64 = 1 << 22;
/// A plain file has four or five boxes at the top.
const MOST_TOP_BOXES: usize = 4096;

/// Four letters that name a box or a codec, such as `avc1`, `av01`, `hev1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourCc(pub [u8; 4]);

impl core::fmt::Display for FourCc {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// One coded picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u32,
    /// When it is decoded, in ticks of [`Mp4Index::timescale`].
    pub dts_ticks: u64,
    /// How long it is shown, in ticks.
    pub duration_ticks: u32,
    /// Added to the decode time to give the time of showing (`ctts`), in ticks; not 0 where pictures are reordered.
    pub composition_ticks: i32,
    /// Whether decoding can start here.
    pub kind: SampleKind,
}

/// One entry of the edit list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// How long it lasts, in ticks of [`Mp4Index::movie_timescale`]; 0 where it lasts to the end.
    pub duration_ticks: u64,
    /// The media time at which it begins, in ticks of [`Mp4Index::timescale`]; -1 shows nothing.
    pub media_ticks: i64,
}

/// The index of the first video track of an mp4.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mp4Index {
    /// The codec's tag.
    pub codec: FourCc,
    /// The codec's own set-up record (the body of `avcC`, `av1C`, `hvcC`), empty where there is none.
    pub codec_config: Vec<u8>,
    /// The whole sample entry box, for a copy of the stream.
    pub(crate) entry: Vec<u8>,
    /// Size of the coded pictures.
    pub size: FrameSize,
    /// Ticks a second of the track.
    pub timescale: u32,
    /// Ticks a second of the edit list's durations.
    pub movie_timescale: u32,
    /// The pictures in the order of decoding.
    pub samples: Vec<Sample>,
    /// The edit list, mostly empty or of one entry.
    pub edits: Vec<Edit>,
}

impl Mp4Index {
    /// Reads the index of a file; the pictures themselves are not touched.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), also for what is no regular file; [`Error::Mp4`](crate::Error::Mp4) with the box that is missing, cut off or damaged.
    pub fn read(path: &Path) -> Result<Self> {
        let (mut file, length) = open_regular(path)?;
        read_from(&mut file, length).map_err(|e| e.with_path(path))
    }

    /// Reads the index of a file in memory; `path` is for messages.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        read_from(&mut io::Cursor::new(bytes), bytes.len() as u64).map_err(|e| e.with_path(path))
    }

    /// The duration of every picture where they are all alike, in ticks.
    #[must_use]
    pub fn frame_duration_ticks(&self) -> Option<u32> {
        let first = self.samples.first()?.duration_ticks;
        self.samples.iter().all(|s| s.duration_ticks == first).then_some(first)
    }

    /// When sample `i` is shown, in ticks, the edit list applied.
    #[must_use]
    pub fn pts_ticks(&self, i: usize) -> Option<i64> {
        let sample = self.samples.get(i)?;
        let media = i64::try_from(sample.dts_ticks).ok()?.checked_add(sample.composition_ticks.into())?;
        media.checked_add(self.edit_shift_ticks()?)
    }

    /// The numbers of the key frames, from 0.
    pub fn key_frames(&self) -> impl Iterator<Item = usize> + '_ {
        self.samples.iter().enumerate().filter(|(_, s)| s.kind == SampleKind::Key).map(|(i, _)| i)
    }

    /// The last key frame at or before sample `i`.
    #[must_use]
    pub fn key_frame_before(&self, i: usize) -> Option<usize> {
        self.samples.get(..=i)?.iter().rposition(|s| s.kind == SampleKind::Key)
    }

    /// Whether pictures are shown in another order than they are decoded (B-frames).
    #[must_use]
    pub fn is_reordered(&self) -> bool {
        let shown = |s: &Sample| s.dts_ticks as i64 + i64::from(s.composition_ticks);
        self.samples.windows(2).any(|pair| matches!(pair, [a, b] if shown(a) >= shown(b)))
    }

    /// What the edit list adds to media times: leading empty edits delay, the first other one skips.
    fn edit_shift_ticks(&self) -> Option<i64> {
        let mut delay_ticks: i64 = 0;
        for edit in &self.edits {
            if edit.media_ticks >= 0 {
                return delay_ticks.checked_sub(edit.media_ticks);
            }
            let delay = u128::from(edit.duration_ticks) * u128::from(self.timescale)
                / u128::from(self.movie_timescale);
            delay_ticks = delay_ticks.checked_add(i64::try_from(delay).ok()?)?;
        }
        Some(delay_ticks)
    }
}

fn read_from(source: &mut (impl Read + Seek), length: u64) -> Result<Mp4Index, Fault> {
    let (at, bytes) = find_moov(source, length)?;
    if bytes > LARGEST_MOOV {
        return Err(Fault::new("moov", format!("has {bytes} bytes, at most {LARGEST_MOOV} are accepted")));
    }
    let mut moov = vec![0; bytes as usize];
    source.seek(SeekFrom::Start(at))?;
    source.read_exact(&mut moov)?;
    parse_moov(&moov, length)
}

/// Walks over the boxes at the top: offset and length of the body of `moov`.
fn find_moov(source: &mut (impl Read + Seek), length: u64) -> Result<(u64, u64), Fault> {
    let mut at = 0;
    let mut found = None;
    for _ in 0..MOST_TOP_BOXES {
        if length - at < 8 {
            break;
        }
        let mut head = [0; 16];
        let head_bytes = (length - at).min(16) as usize;
        source.seek(SeekFrom::Start(at))?;
        source.read_exact(head.get_mut(..head_bytes).unwrap_or_default())?;
        let mut fields = Body::new("file", &head);
        let (short, kind) = (fields.u32()?, fields.four()?);
        let name = match &kind {
            b"moov" => "moov",
            b"mdat" => "mdat",
            b"ftyp" => "ftyp",
            b"moof" => {
                return Err(Fault::new("moof", "is there, fragmented files are not read: remux the file"));
            }
            _ => "file",
        };
        let (header, bytes) = match short {
            0 => (8, length - at),
            1 => (16, fields.u64()?),
            n => (8, u64::from(n)),
        };
        if bytes < header || bytes > length - at {
            let kind = FourCc(kind);
            return Err(Fault::new(
                name,
                format!("{kind} at byte {at} claims {bytes} bytes, {} are left", length - at),
            ));
        }
        if name == "moov" && found.is_none() {
            found = Some((at + header, bytes - header));
        }
        at += bytes;
    }
    found.ok_or_else(|| {
        Fault::new(
            "moov",
            "is missing: the file was cut off, was still being written, or is no mp4".to_owned(),
        )
    })
}

fn parse_moov(moov: &[u8], file_bytes: u64) -> Result<Mp4Index, Fault> {
    let (movie_timescale, _) = parse_times(required(moov, b"mvhd", "moov/mvhd")?, "moov/mvhd")?;
    if child(moov, b"mvex", "moov/mvex")?.is_some() {
        return Err(Fault::new("moov/mvex", "is there, fragmented files are not read: remux the file"));
    }
    for entry in children(moov, "moov") {
        let (kind, trak) = entry?;
        if kind != *b"trak" {
            continue;
        }
        let mdia = required(trak, b"mdia", "moov/trak/mdia")?;
        let mut hdlr = Body::new("moov/trak/mdia/hdlr", required(mdia, b"hdlr", "moov/trak/mdia/hdlr")?);
        hdlr.skip(8)?;
        if hdlr.four()? == *b"vide" {
            return parse_track(trak, mdia, movie_timescale, file_bytes);
        }
    }
    Err(Fault::new("moov/trak", "of a video is missing"))
}

/// The time scale and duration of `mvhd` and `mdhd`.
fn parse_times(body: &[u8], at: &'static str) -> Result<(u32, u64), Fault> {
    let mut body = Body::new(at, body);
    let version = body.version()?;
    let (timescale, duration) = if version == 1 {
        body.skip(16)?;
        (body.u32()?, body.u64()?)
    } else {
        body.skip(8)?;
        (body.u32()?, u64::from(body.u32()?))
    };
    if timescale == 0 {
        return Err(Fault::new(at, "has a time scale of 0"));
    }
    Ok((timescale, duration))
}

fn parse_track(trak: &[u8], mdia: &[u8], movie_timescale: u32, file_bytes: u64) -> Result<Mp4Index, Fault> {
    let (timescale, _) = parse_times(required(mdia, b"mdhd", "moov/trak/mdia/mdhd")?, "moov/trak/mdia/mdhd")?;
    let minf = required(mdia, b"minf", "moov/trak/mdia/minf")?;
    let stbl = required(minf, b"stbl", "stbl")?;
    let (codec, size, codec_config, entry) = parse_entry(required(stbl, b"stsd", "stbl/stsd")?)?;
    let mut samples = parse_sizes(stbl, file_bytes)?;
    parse_offsets(stbl, &mut samples, file_bytes)?;
    parse_durations(stbl, &mut samples)?;
    parse_composition(stbl, &mut samples)?;
    parse_keys(stbl, &mut samples)?;
    let edits = parse_edits(trak)?;
    Ok(Mp4Index { codec, codec_config, entry, size, timescale, movie_timescale, samples, edits })
}

/// The first sample description: codec, size, the codec's record, and all of it.
fn parse_entry(stsd: &[u8]) -> Result<(FourCc, FrameSize, Vec<u8>, Vec<u8>), Fault> {
    const AT: &str = "stbl/stsd";
    let mut body = Body::new(AT, stsd);
    body.version()?;
    let count = body.u32()?;
    if count != 1 {
        return Err(Fault::new(AT, format!("has {count} descriptions, 1 is expected")));
    }
    let (kind, entry) = children(body.rest(), AT).next().ok_or_else(|| Fault::new(AT, "is empty"))??;
    let mut whole = Vec::with_capacity(entry.len() + 8);
    super::moov::put_box(&mut whole, &kind, |out| out.extend(entry));
    let mut entry = Body::new(AT, entry);
    entry.skip(24)?;
    let size = FrameSize::new(entry.u16()?.into(), entry.u16()?.into());
    entry.skip(50)?;
    if size.width == 0 || size.height == 0 {
        return Err(Fault::new(AT, format!("has pictures of {size}")));
    }
    let mut record = Vec::new();
    for part in children(entry.rest(), AT) {
        // Writers may leave some bytes of padding behind the last box of an entry.
        let Ok((part, body)) = part else { break };
        if matches!(&part, b"avcC" | b"av1C" | b"hvcC" | b"vpcC") {
            record = body.to_vec();
            break;
        }
    }
    Ok((FourCc(kind), size, record, whole))
}

fn parse_sizes(stbl: &[u8], file_bytes: u64) -> Result<Vec<Sample>, Fault> {
    const AT: &str = "stbl/stsz";
    let mut body = Body::new(AT, required(stbl, b"stsz", AT)?);
    body.version()?;
    let (uniform, count) = (body.u32()?, u64::from(body.u32()?));
    // A sample has at least one byte, so the file bounds their number even where no table does.
    let most = MOST_SAMPLES.min(file_bytes / u64::from(uniform.max(1)));
    if count > most {
        return Err(Fault::new(
            AT,
            format!("has {count} samples, a file of {file_bytes} bytes holds at most {most}"),
        ));
    }
    let blank = |bytes| Sample {
        offset: 0,
        bytes,
        dts_ticks: 0,
        duration_ticks: 0,
        composition_ticks: 0,
        kind: SampleKind::Key,
    };
    if uniform != 0 {
        return Ok(vec![blank(uniform); count as usize]);
    }
    let table = body.entries::<4>(count)?;
    table.map(|mut entry| Ok(blank(entry.u32()?))).collect()
}

fn parse_offsets(stbl: &[u8], samples: &mut [Sample], file_bytes: u64) -> Result<(), Fault> {
    const AT: &str = "stbl/stsc";
    let chunks = parse_chunks(stbl)?;
    let mut body = Body::new(AT, required(stbl, b"stsc", AT)?);
    body.version()?;
    let count = u64::from(body.u32()?);
    let mut runs = Vec::new();
    for mut entry in body.entries::<12>(count)? {
        runs.push((entry.u32()?, entry.u32()?));
        let description = entry.u32()?;
        if description != 1 {
            return Err(Fault::new(AT, format!("names sample description {description}, 1 is expected")));
        }
    }
    if runs.first().is_some_and(|r| r.0 != 1) || runs.windows(2).any(|w| matches!(w, [a, b] if a.0 >= b.0)) {
        return Err(Fault::new(AT, "has chunk numbers out of order"));
    }
    let total = samples.len();
    let mut left = samples.iter_mut().enumerate();
    let mut runs = runs.into_iter().peekable();
    let mut per_chunk = 0;
    for (number, &chunk) in (1u32..).zip(&chunks) {
        if let Some(run) = runs.next_if(|r| r.0 == number) {
            per_chunk = run.1;
        }
        let mut offset = chunk;
        for _ in 0..per_chunk {
            let (i, sample) = left
                .next()
                .ok_or_else(|| Fault::new(AT, format!("places more samples than the {total} of stsz")))?;
            sample.offset = offset;
            offset = offset.saturating_add(sample.bytes.into());
            if sample.bytes == 0 || offset > file_bytes {
                let (from, bytes) = (sample.offset, sample.bytes);
                let problem =
                    format!("{i} lies at byte {from} with {bytes} bytes, the file has {file_bytes}");
                return Err(Fault::new("mdat sample", problem));
            }
        }
    }
    match left.next() {
        Some((i, _)) => Err(Fault::new(AT, format!("places {i} samples, stsz has {total}"))),
        None => Ok(()),
    }
}

fn parse_chunks(stbl: &[u8]) -> Result<Vec<u64>, Fault> {
    let (at, wide, body) = match child(stbl, b"stco", "stbl/stco")? {
        Some(body) => ("stbl/stco", false, body),
        None => ("stbl/co64", true, required(stbl, b"co64", "stbl/stco")?),
    };
    let mut body = Body::new(at, body);
    body.version()?;
    let count = u64::from(body.u32()?);
    if wide {
        body.entries::<8>(count)?.map(|mut entry| entry.u64()).collect()
    } else {
        body.entries::<4>(count)?.map(|mut entry| Ok(entry.u32()?.into())).collect()
    }
}

fn parse_durations(stbl: &[u8], samples: &mut [Sample]) -> Result<(), Fault> {
    let runs = parse_runs(required(stbl, b"stts", "stbl/stts")?, "stbl/stts", samples.len())?;
    let values = runs.iter().flat_map(|&(n, ticks)| core::iter::repeat_n(ticks, n as usize));
    let mut now: u64 = 0;
    for (sample, ticks) in samples.iter_mut().zip(values) {
        sample.dts_ticks = now;
        sample.duration_ticks = ticks;
        now += u64::from(ticks);
    }
    Ok(())
}

fn parse_composition(stbl: &[u8], samples: &mut [Sample]) -> Result<(), Fault> {
    let Some(body) = child(stbl, b"ctts", "stbl/ctts")? else { return Ok(()) };
    let runs = parse_runs(body, "stbl/ctts", samples.len())?;
    let values = runs.iter().flat_map(|&(n, ticks)| core::iter::repeat_n(ticks, n as usize));
    for (sample, ticks) in samples.iter_mut().zip(values) {
        // Version 0 is unsigned on paper; ffmpeg writes and reads both versions as signed.
        sample.composition_ticks = ticks.cast_signed();
    }
    Ok(())
}

/// A table of runs, `(samples, value)`, which has to cover each of the `total` samples once.
fn parse_runs(body: &[u8], at: &'static str, total: usize) -> Result<Vec<(u32, u32)>, Fault> {
    let mut body = Body::new(at, body);
    body.version()?;
    let count = u64::from(body.u32()?);
    let runs: Vec<(u32, u32)> = body
        .entries::<8>(count)?
        .map(|mut entry| Ok((entry.u32()?, entry.u32()?)))
        .collect::<Result<_, Fault>>()?;
    let covered: u64 = runs.iter().map(|r| u64::from(r.0)).sum();
    if covered != total as u64 {
        return Err(Fault::new(at, format!("covers {covered} samples, stsz has {total}")));
    }
    Ok(runs)
}

fn parse_keys(stbl: &[u8], samples: &mut [Sample]) -> Result<(), Fault> {
    const AT: &str = "stbl/stss";
    // Without the box every sample is a key frame.
    let Some(body) = child(stbl, b"stss", AT)? else { return Ok(()) };
    let mut body = Body::new(AT, body);
    body.version()?;
    let count = u64::from(body.u32()?);
    for sample in samples.iter_mut() {
        sample.kind = SampleKind::Delta;
    }
    let total = samples.len();
    let mut last = 0;
    for mut entry in body.entries::<4>(count)? {
        let number = entry.u32()?;
        let sample = samples.get_mut((number as usize).wrapping_sub(1)).filter(|_| number > last);
        let sample = sample.ok_or_else(|| {
            Fault::new(
                AT,
                format!("names sample {number} after {last}, numbers must rise and end at {total}"),
            )
        })?;
        sample.kind = SampleKind::Key;
        last = number;
    }
    Ok(())
}

fn parse_edits(trak: &[u8]) -> Result<Vec<Edit>, Fault> {
    const AT: &str = "moov/trak/edts/elst";
    let Some(edts) = child(trak, b"edts", "moov/trak/edts")? else { return Ok(Vec::new()) };
    let Some(elst) = child(edts, b"elst", AT)? else { return Ok(Vec::new()) };
    let mut body = Body::new(AT, elst);
    let version = body.version()?;
    let count = u64::from(body.u32()?);
    if version == 1 {
        let edit =
            |mut e: Body<'_>| Ok(Edit { duration_ticks: e.u64()?, media_ticks: e.u64()?.cast_signed() });
        body.entries::<20>(count)?.map(edit).collect()
    } else {
        let edit = |mut e: Body<'_>| {
            Ok(Edit { duration_ticks: e.u32()?.into(), media_ticks: e.u32()?.cast_signed().into() })
        };
        body.entries::<12>(count)?.map(edit).collect()
    }
}
