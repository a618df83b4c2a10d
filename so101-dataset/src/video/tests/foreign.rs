//! Files of other encoders: every picture is bit for bit the one that ffmpeg decodes, in whatever order it is asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// CRC-32 (ISO 3309) of a picture's planes.
fn crc32(picture: &I420) -> u32 {
    let (u, v) = picture.chroma();
    let bytes = picture.luma().iter().chain(u).chain(v);
    !bytes.fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 })
    })
}

fn expected() -> BTreeMap<String, Vec<u32>> {
    let files: BTreeMap<String, Vec<u32>> =
        serde_json::from_slice(&std::fs::read(fixtures().join("frames.expected.json")).unwrap()).unwrap();
    let is_av1 = |name: &str| name.contains("av1");
    files.into_iter().filter(|(name, _)| cfg!(feature = "av1") || !is_av1(name)).collect()
}

#[test]
fn pictures_of_x264_and_of_svt_av1_are_those_of_ffmpeg_bit_for_bit() {
    for (name, hashes) in expected() {
        let mut video = VideoReader::open(&fixtures().join(&name)).unwrap();
        assert_eq!(video.frames(), hashes.len() as u64, "{name}");
        let mut picture = I420::new(video.size()).unwrap();
        for (i, hash) in hashes.iter().enumerate() {
            video.frame_yuv(i as u64, &mut picture).unwrap();
            assert_eq!(crc32(&picture), *hash, "{name}, picture {i}");
        }
        // Each once; what a file with B-frames keeps back until its end comes out at once, and only one is wanted then.
        let again = if video.index().is_reordered() { 8 } else { 0 };
        let n = hashes.len() as u64;
        assert!((n..=n + again).contains(&video.pictures_decoded()), "{name}: {}", video.pictures_decoded());
    }
}

#[test]
fn pictures_asked_for_in_any_order_are_the_same() {
    for (name, hashes) in expected() {
        // The big ones would take long in a test.
        if name.contains("lerobot_av1/videos/observation.images.main") {
            continue;
        }
        let mut video = VideoReader::open(&fixtures().join(&name)).unwrap();
        let mut picture = I420::new(video.size()).unwrap();
        let n = hashes.len();
        // Every step size once, forwards and backwards: 17 is prime to all lengths here.
        let jumps = (0..n).map(|i| i * 17 % n).chain((0..n).rev().step_by(3)).chain([0, n - 1, n - 1, 0]);
        for i in jumps {
            video.frame_yuv(i as u64, &mut picture).unwrap();
            assert_eq!(crc32(&picture), hashes[i], "{name}, picture {i}");
        }
    }
}

#[test]
fn every_picture_of_every_file_counts_as_decodable() {
    for (name, hashes) in expected() {
        let report = count_decodable(&fixtures().join(&name)).unwrap();
        assert_eq!((report.frames, report.decoded), (hashes.len() as u64, hashes.len() as u64), "{name}");
        assert!(report.first_failure.is_none(), "{name}: {:?}", report.first_failure);
    }
}

#[test]
fn damaged_foreign_files_are_errors_and_never_wrong_sizes_or_panics() {
    for name in ["mp4/x264_g10_bf3.mp4", "mp4/svtav1.mp4"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mp4");
        let whole = std::fs::read(fixtures().join(name)).unwrap();
        let index = Mp4Index::read(&fixtures().join(name)).unwrap();
        if name.contains("av1") && !cfg!(feature = "av1") {
            continue;
        }
        for (i, sample) in index.samples.iter().enumerate() {
            let mut bytes = whole.clone();
            let (from, n) = (sample.offset as usize, sample.bytes as usize);
            for (k, byte) in bytes[from..from + n].iter_mut().enumerate() {
                *byte ^= (k * 31 + i) as u8 | 1;
            }
            std::fs::write(&path, &bytes).unwrap();
            let report = count_decodable(&path).unwrap();
            assert!(report.decoded <= report.frames, "{name}, sample {i}");
            let mut video = VideoReader::open(&path).unwrap();
            for frame in 0..video.frames() {
                if let Ok(picture) = video.frame(frame) {
                    assert_eq!(picture.size(), index.size);
                }
            }
        }
    }
}
