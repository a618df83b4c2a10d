//! The index of a file with one video track, as bytes: `moov` and what is in it.

use so101_hal::FrameSize;

use super::TICKS_PER_FRAME;

/// No rotation, no scaling (ISO/IEC 14496-12, 8.2.2.3).
const UNITY_MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

/// Times of showing where they are not the times of decoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Composition {
    /// Added to the decode time of each sample, in periods.
    pub(super) offsets: Vec<u32>,
    /// Periods by which everything is shown too late, which the edit list takes away.
    pub(super) delay: u32,
}

/// What the index of a file says: samples of one period each, one after another from one place.
pub(super) struct Track<'a> {
    pub(super) size: FrameSize,
    pub(super) fps: u32,
    /// The whole sample entry box, such as `avc1`.
    pub(super) entry: &'a [u8],
    pub(super) sample_bytes: &'a [u32],
    /// Numbers of the key frames, from 1.
    pub(super) keys: &'a [u32],
    pub(super) composition: Option<&'a Composition>,
}

impl Track<'_> {
    /// The whole index. Its length does not depend on `chunk_at` within the first 4 GiB, where the samples begin.
    pub(super) fn moov(&self, chunk_at: u64) -> Vec<u8> {
        let timescale = self.fps * TICKS_PER_FRAME;
        let duration = self.sample_bytes.len() as u64 * u64::from(TICKS_PER_FRAME);
        let mut out = Vec::with_capacity(1024 + (self.sample_bytes.len() + self.keys.len()) * 4);
        put_box(&mut out, b"moov", |out| {
            put_box(out, b"mvhd", |out| {
                put_timed(out, timescale, duration, Header::Other);
                out.extend([0, 1, 0, 0, 1, 0]); // rate 1.0, volume 1.0
                out.extend([0; 10]);
                put_words(out, UNITY_MATRIX);
                out.extend([0; 24]);
                put_words(out, [2]); // next track
            });
            put_box(out, b"trak", |out| {
                put_box(out, b"tkhd", |out| {
                    put_timed(out, timescale, duration, Header::Track);
                    out.extend([0; 16]); // layer, group, volume
                    put_words(out, UNITY_MATRIX);
                    put_words(out, [self.size.width << 16, self.size.height << 16]);
                });
                if let Some(composition) = self.composition {
                    put_box(out, b"edts", |out| put_edit_list(out, duration, composition.delay));
                }
                put_box(out, b"mdia", |out| self.put_media(out, timescale, duration, chunk_at));
            });
        });
        out
    }

    fn put_media(&self, out: &mut Vec<u8>, timescale: u32, duration: u64, chunk_at: u64) {
        put_box(out, b"mdhd", |out| {
            put_timed(out, timescale, duration, Header::Other);
            out.extend([0x55, 0xc4, 0, 0]); // language "und", five bits a letter
        });
        put_box(out, b"hdlr", |out| {
            put_words(out, [0, 0]);
            out.extend(b"vide");
            out.extend([0; 12]);
            out.extend(b"VideoHandler\0");
        });
        put_box(out, b"minf", |out| {
            put_box(out, b"vmhd", |out| put_words(out, [1, 0, 0]));
            put_box(out, b"dinf", |out| {
                put_box(out, b"dref", |out| {
                    put_words(out, [0, 1]);
                    put_box(out, b"url ", |out| put_words(out, [1])); // flag 1: in this file
                });
            });
            put_box(out, b"stbl", |out| self.put_tables(out, chunk_at));
        });
    }

    fn put_tables(&self, out: &mut Vec<u8>, chunk_at: u64) {
        let count = self.sample_bytes.len() as u32;
        put_box(out, b"stsd", |out| {
            put_words(out, [0, 1]);
            out.extend(self.entry);
        });
        put_box(out, b"stts", |out| put_words(out, [0, 1, count, TICKS_PER_FRAME]));
        put_box(out, b"stss", |out| {
            put_words(out, [0, self.keys.len() as u32]);
            put_words(out, self.keys.iter().copied());
        });
        if let Some(composition) = self.composition {
            put_box(out, b"ctts", |out| put_composition(out, &composition.offsets));
        }
        put_box(out, b"stsc", |out| put_words(out, [0, 1, 1, count, 1]));
        put_box(out, b"stsz", |out| {
            put_words(out, [0, 0, count]);
            put_words(out, self.sample_bytes.iter().copied());
        });
        put_box(out, b"stco", |out| put_words(out, [0, 1, chunk_at as u32]));
    }
}

/// One edit that begins where the first picture is shown.
fn put_edit_list(out: &mut Vec<u8>, duration: u64, delay: u32) {
    put_box(out, b"elst", |out| {
        put_words(out, [1 << 24, 1]);
        out.extend(duration.to_be_bytes());
        out.extend(u64::from(delay * TICKS_PER_FRAME).to_be_bytes());
        put_words(out, [0x1_0000]); // rate 1.0
    });
}

/// Runs of equal offsets.
fn put_composition(out: &mut Vec<u8>, offsets: &[u32]) {
    let runs: Vec<&[u32]> = offsets.chunk_by(|a, b| a == b).collect();
    put_words(out, [0, runs.len() as u32]);
    for run in runs {
        let offset = run.first().copied().unwrap_or(0);
        put_words(out, [run.len() as u32, offset * TICKS_PER_FRAME]);
    }
}

/// Whether a timed header is that of a track, which has flags and an id in place of a time scale.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Other,
    Track,
}

/// Version 1 (64-bit) times: two zero dates, time scale or track id, duration.
fn put_timed(out: &mut Vec<u8>, timescale: u32, duration: u64, header: Header) {
    let flags = if header == Header::Track { 3 } else { 0 }; // enabled, in the movie
    put_words(out, [1 << 24 | flags, 0, 0, 0, 0]);
    match header {
        Header::Other => put_words(out, [timescale]),
        Header::Track => put_words(out, [1, 0]),
    }
    out.extend(duration.to_be_bytes());
}

pub(super) fn put_words(out: &mut Vec<u8>, words: impl IntoIterator<Item = u32>) {
    for word in words {
        out.extend(word.to_be_bytes());
    }
}

pub(super) fn put_box(out: &mut Vec<u8>, kind: &[u8; 4], body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; 4]);
    out.extend(kind);
    body(out);
    let bytes = (out.len() - start) as u32;
    if let Some(head) = out.get_mut(start..start + 4) {
        head.copy_from_slice(&bytes.to_be_bytes());
    }
}
