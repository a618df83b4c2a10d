use std::path::{Path, PathBuf};

use proptest::prelude::*;
use so101_hal::FrameSize;

use super::*;
use crate::error::Error;

const SIZE: FrameSize = FrameSize::new(64, 48);

fn parameters() -> AvcParameters {
    AvcParameters { sps: vec![0x67, 66, 192, 30, 1, 2], pps: vec![0x68, 206, 60] }
}

/// `count` samples, key frames at even numbers; sample `i` is `i + 1` bytes of value `i`.
fn write(path: &Path, count: u32, hint: u32) -> Mp4Summary {
    let mut mp4 = Mp4Writer::create(path, &Mp4Config::new(SIZE, 30).with_frames_hint(hint)).unwrap();
    for i in 0..count {
        let kind = if i % 2 == 0 { SampleKind::Key } else { SampleKind::Delta };
        mp4.write_sample(&vec![i as u8; i as usize + 1], kind).unwrap();
    }
    mp4.finish(&parameters()).unwrap()
}

fn written(count: u32, hint: u32) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    let summary = write(&path, count, hint);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(summary, Mp4Summary { frames: count.into(), bytes: bytes.len() as u64 });
    bytes
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mp4").join(name)).unwrap()
}

fn index(bytes: &[u8]) -> crate::Result<Mp4Index> {
    Mp4Index::from_bytes(bytes, Path::new("set/videos/file-000.mp4"))
}

fn top_boxes(bytes: &[u8]) -> Vec<String> {
    let (mut at, mut kinds) = (0, Vec::new());
    while at < bytes.len() {
        let short = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        kinds.push(String::from_utf8(bytes[at + 4..at + 8].to_vec()).unwrap());
        at += match short {
            1 => u64::from_be_bytes(bytes[at + 8..at + 16].try_into().unwrap()) as usize,
            n => n as usize,
        };
    }
    assert_eq!(at, bytes.len(), "the boxes fill the file");
    kinds
}

#[test]
fn the_index_comes_first_when_it_fits_its_room_and_last_when_it_does_not() {
    for (count, hint, boxes) in [
        (5, 100, &["ftyp", "moov", "free", "mdat"][..]),
        (100, 100, &["ftyp", "moov", "free", "mdat"]),
        (500, 10, &["ftyp", "free", "mdat", "moov"]),
        (500, 0, &["ftyp", "free", "mdat", "moov"]),
    ] {
        assert_eq!(top_boxes(&written(count, hint)), boxes, "{count} samples, room for {hint}");
    }
}

#[test]
fn the_index_is_in_front_exactly_when_its_room_holds_it_and_a_free_box_or_nothing() {
    // The index grows by 4 or 8 bytes a sample, so both sides of the border are met, and the border itself.
    let room = 1024 + 50 * 4 + 25 * 4;
    let mut seen = [false; 3];
    for count in 60..140 {
        let bytes = written(count, 50);
        let moov = bytes.windows(4).position(|w| w == b"moov").unwrap() - 4;
        let moov_bytes = u32::from_be_bytes(bytes[moov..moov + 4].try_into().unwrap());
        let layout = top_boxes(&bytes);
        match room - i64::from(moov_bytes) {
            0 => assert_eq!(layout, ["ftyp", "moov", "mdat"]),
            left if left >= 8 => assert_eq!(layout, ["ftyp", "moov", "free", "mdat"]),
            _ => assert_eq!(layout, ["ftyp", "free", "mdat", "moov"]),
        }
        let left = room - i64::from(moov_bytes);
        seen[if left >= 8 {
            0
        } else if left > 0 {
            1
        } else {
            2
        }] = true;
        assert_eq!(index(&bytes).unwrap().samples.len(), count as usize);
    }
    assert!(seen[0] && seen[2], "{seen:?}");
}

#[test]
fn the_reader_finds_every_sample_that_the_writer_wrote_in_both_layouts() {
    for hint in [0, 1000] {
        let bytes = written(300, hint);
        let index = index(&bytes).unwrap();
        assert_eq!((index.codec, index.size, index.timescale), (FourCc(*b"avc1"), SIZE, 30 * 512));
        assert_eq!(
            index.codec_config,
            [&[1, 66, 192, 30, 255, 225, 0, 6][..], &parameters().sps, &[1, 0, 3], &parameters().pps]
                .concat()
        );
        assert_eq!(index.frame_duration_ticks(), Some(512));
        assert_eq!(index.samples.len(), 300);
        assert!(!index.is_reordered() && index.edits.is_empty());
        for (i, sample) in index.samples.iter().enumerate() {
            let (from, to) = (sample.offset as usize, sample.offset as usize + sample.bytes as usize);
            assert_eq!(&bytes[from..to], vec![i as u8; i + 1], "sample {i}");
            assert_eq!(index.pts_ticks(i), Some(512 * i as i64));
            assert_eq!(index.key_frame_before(i), Some(i / 2 * 2));
        }
        assert_eq!(index.key_frames().collect::<Vec<_>>(), (0..300).step_by(2).collect::<Vec<_>>());
    }
}

#[test]
fn the_same_samples_give_the_same_bytes() {
    assert_eq!(written(40, 60), written(40, 60));
}

#[test]
fn a_file_on_the_disk_and_its_bytes_give_the_same_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    write(&path, 7, 10);
    assert_eq!(Mp4Index::read(&path).unwrap(), index(&std::fs::read(&path).unwrap()).unwrap());
    assert!(matches!(Mp4Index::read(&folder.path().join("none.mp4")), Err(Error::Io { .. })));
}

#[test]
fn files_of_ffmpeg_give_codec_times_and_key_frames_as_pyav_reports_them() {
    // pts in ticks of 1/15360 s and key frames by PyAV 15, in the order of the file.
    for (name, codec, keys, pts, reordered) in [
        ("x264_bframes.mp4", b"avc1", &[0, 5][..], [0, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096], false),
        ("svtav1.mp4", b"av01", &[0, 2, 4, 6, 8], [0, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096], false),
        ("hevc.mp4", b"hev1", &[0, 1, 5], [0, 2048, 1024, 512, 1536, 4096, 3072, 2560, 3584], true),
    ] {
        let index = index(&fixture(name)).unwrap();
        assert_eq!((index.codec, index.size), (FourCc(*codec), FrameSize::new(64, 64)), "{name}");
        assert_eq!(index.key_frames().collect::<Vec<_>>(), keys, "{name}");
        assert_eq!((0..9).map(|i| index.pts_ticks(i).unwrap()).collect::<Vec<_>>(), pts, "{name}");
        assert_eq!(index.is_reordered(), reordered, "{name}");
        assert_eq!(index.frame_duration_ticks(), Some(512), "{name}");
        assert!(!index.codec_config.is_empty(), "{name}");
    }
    let first = index(&fixture("x264_bframes.mp4")).unwrap();
    assert_eq!(
        first.samples.iter().map(|s| (s.offset, s.bytes)).take(2).collect::<Vec<_>>(),
        [(48, 730), (778, 21)]
    );
    assert_eq!(first.samples[0].composition_ticks, 1024);
    assert_eq!(first.edits.len(), 1);
    assert_eq!(first.edits[0].media_ticks, 1024);
}

/// Puts `new` over the bytes that lie `skip` bytes after the first `kind`.
fn patched(mut bytes: Vec<u8>, kind: &[u8; 4], skip: usize, new: &[u8]) -> Vec<u8> {
    let at = bytes.windows(4).position(|w| w == kind).unwrap() + 4 + skip;
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn a_damaged_file_is_an_error_that_names_the_box_and_the_path() {
    let good = || written(6, 10);
    let uniform_billions = patched(patched(good(), b"stsz", 4, &1u32.to_be_bytes()), b"stsz", 8, &[255; 4]);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", vec![], "moov is missing"),
        ("text", b"this is no mp4 file at all".to_vec(), "claims"),
        ("cut in the pictures", good()[..good().len() - 4].to_vec(), "mdat mdat at byte"),
        ("cut at the end of ftyp", good()[..32].to_vec(), "moov is missing"),
        ("a box larger than the file", patched(good(), b"moov", 0, &[0x7f]), "moov/mvhd"),
        ("billions of samples without a table", uniform_billions, "stbl/stsz has 4294967295 samples"),
        ("billions of sizes", patched(good(), b"stsz", 8, &[255; 4]), "stbl/stsz has 4294967295 samples"),
        (
            "more sizes than the box holds",
            patched(good(), b"stsz", 8, &7u32.to_be_bytes()),
            "stbl/stsz claims 7",
        ),
        (
            "fewer sizes than samples",
            patched(good(), b"stsz", 8, &5u32.to_be_bytes()),
            "stbl/stsc places more",
        ),
        ("billions of runs", patched(good(), b"stts", 4, &[255; 4]), "stbl/stts claims 4294967295 entries"),
        ("a run too long", patched(good(), b"stts", 8, &[255; 4]), "stbl/stts covers 4294967295 samples"),
        ("key frame 0", patched(good(), b"stss", 8, &[0; 4]), "stbl/stss names sample 0"),
        (
            "a key frame past the end",
            patched(good(), b"stss", 16, &[9; 4]),
            "stbl/stss names sample 151587081",
        ),
        ("samples past the end", patched(good(), b"stco", 8, &[127; 4]), "sample 0 lies at byte 2139062143"),
        (
            "chunks out of order",
            patched(good(), b"stsc", 8, &[0, 0, 0, 2]),
            "stbl/stsc has chunk numbers out of order",
        ),
        (
            "a second description",
            patched(good(), b"stsc", 16, &[0, 0, 0, 2]),
            "stbl/stsc names sample description 2",
        ),
        ("an empty sample", patched(good(), b"stsz", 12, &[0; 4]), "mdat sample 0 lies at"),
        ("time scale 0", patched(good(), b"mdhd", 20, &[0; 4]), "moov/trak/mdia/mdhd has a time scale of 0"),
        ("a sound track", patched(good(), b"hdlr", 8, b"soun"), "moov/trak of a video is missing"),
        ("pictures of 0x48", patched(good(), b"stsd", 40, &[0, 0]), "stbl/stsd has pictures of 0x48"),
        (
            "a fragmented file",
            patched(good(), b"free", 0, &[]).iter().copied().chain(*b"\0\0\0\x08moof").collect(),
            "moof is there",
        ),
        ("no chunk table", patched(good(), b"stco", 0, &[]).tap(b"stco", b"xxxx"), "stbl/stco is missing"),
    ];
    for (name, bytes, message) in cases {
        let error = match index(&bytes) {
            Err(error @ Error::Mp4 { .. }) => error.to_string(),
            other => panic!("{name}: {other:?}"),
        };
        assert!(error.contains(message), "{name}: {error}");
        assert!(error.ends_with(": set/videos/file-000.mp4") && !error.contains('\n'), "{name}: {error}");
    }
}

trait Tap {
    fn tap(self, from: &[u8; 4], to: &[u8; 4]) -> Self;
}

impl Tap for Vec<u8> {
    /// Renames the first box of this kind.
    fn tap(mut self, from: &[u8; 4], to: &[u8; 4]) -> Self {
        let at = self.windows(4).position(|w| w == from).unwrap();
        self[at..at + 4].copy_from_slice(to);
        self
    }
}

#[test]
fn a_video_without_a_picture_or_with_an_empty_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    let open = || Mp4Writer::create(&path, &Mp4Config::new(SIZE, 30)).unwrap();
    assert!(matches!(open().finish(&parameters()), Err(Error::Encode { frame: 0, .. })));
    let mut mp4 = open();
    assert!(matches!(mp4.write_sample(&[], SampleKind::Key), Err(Error::Encode { frame: 0, .. })));
    mp4.write_sample(&[1], SampleKind::Key).unwrap();
    assert!(matches!(mp4.finish(&AvcParameters::default()), Err(Error::Encode { frame: 1, .. })));
}

#[test]
fn a_rate_or_size_that_no_mp4_holds_is_refused() {
    let create =
        |size, fps| Mp4Writer::create(&PathBuf::from("/nonexistent/a.mp4"), &Mp4Config::new(size, fps)).err();
    assert!(matches!(create(SIZE, 30), Some(Error::Io { .. })));
    let folder = tempfile::tempdir().unwrap();
    let create =
        |size, fps| Mp4Writer::create(&folder.path().join("a.mp4"), &Mp4Config::new(size, fps)).err();
    assert!(matches!(create(SIZE, 0), Some(Error::VideoSetting { setting: "fps", value: 0, .. })));
    assert!(matches!(create(SIZE, 1001), Some(Error::VideoSetting { .. })));
    assert!(matches!(create(FrameSize::new(0, 2), 30), Some(Error::VideoSize { .. })));
    assert!(matches!(create(FrameSize::new(2, 70_000), 30), Some(Error::VideoSize { .. })));
}

/// Whatever is read is inside the file, and asking for times does not overflow.
fn consistent(bytes: &[u8]) {
    if let Ok(index) = index(bytes) {
        for (i, sample) in index.samples.iter().enumerate() {
            assert!(sample.offset + u64::from(sample.bytes) <= bytes.len() as u64);
            let _ = (index.pts_ticks(i), index.key_frame_before(i));
        }
        let _ = (index.is_reordered(), index.frame_duration_ticks());
    }
}

#[test]
fn every_truncation_of_a_small_file_is_refused() {
    for hint in [0, 20] {
        let bytes = written(9, hint);
        for length in 0..bytes.len() {
            assert!(index(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn the_checked_in_corpus_is_read_without_a_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/mp4_index");
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        consistent(&std::fs::read(entry.unwrap().path()).unwrap());
        seeds += 1;
    }
    assert!(seeds >= 6, "{seeds} seeds");
}

proptest! {
    #[test]
    fn a_mutated_file_is_read_or_refused_and_never_panics(
        which in 0usize..5,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = match which {
            0 => written(20, 30),
            1 => written(20, 0),
            2 => fixture("x264_bframes.mp4"),
            3 => fixture("svtav1.mp4"),
            _ => fixture("hevc.mp4"),
        };
        // Half of the edits fall on the index itself, where they matter.
        let moov = bytes.windows(4).position(|w| w == b"moov").unwrap();
        for (k, (at, value)) in edits.iter().enumerate() {
            let from = if k % 2 == 0 { moov } else { 0 };
            let i = from + at.index((bytes.len() - from).min(900));
            bytes[i] = *value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        consistent(&bytes);
    }
}
