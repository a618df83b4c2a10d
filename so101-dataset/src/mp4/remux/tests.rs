use std::path::{Path, PathBuf};

use proptest::prelude::*;
use so101_hal::{CameraSpec, Frame, FrameSize, Timestamp};

use super::*;
use crate::video::{I420, StreamConfig, VideoReader, VideoStream};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The planes of every picture.
fn pictures(path: &Path) -> Vec<I420> {
    let mut video = VideoReader::open(path).unwrap();
    (0..video.frames())
        .map(|i| {
            let mut picture = I420::new(video.size()).unwrap();
            video.frame_yuv(i, &mut picture).unwrap();
            picture
        })
        .collect()
}

/// A video of ours whose pictures are all different.
fn record(path: &Path, size: FrameSize, count: u8, seed: u8) {
    let spec = CameraSpec { name: "main".to_owned(), size };
    let mut stream = VideoStream::spawn(path, &spec, &StreamConfig::default()).unwrap();
    for i in 0..count {
        let rgb = (0..size.rgb_len()).map(|p| (p as u8 / 3).wrapping_mul(seed) / 2 + 4 * i).collect();
        stream.push(Frame::new(size, rgb, i.into(), Timestamp::ZERO).unwrap()).unwrap();
    }
    stream.finish().unwrap();
}

/// Copies the parts and compares every picture and every time.
fn check(parts: &[Part], fps: u32) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.mp4");
    let summary = concat(parts, fps, &out).unwrap();
    let want: Vec<I420> = parts
        .iter()
        .flat_map(|p| {
            let all = pictures(&p.path);
            all[p.frames.start as usize..p.frames.end as usize].to_vec()
        })
        .collect();
    assert_eq!(summary.bytes, std::fs::metadata(&out).unwrap().len());
    assert_eq!(summary.frames, want.len() as u64);
    assert!(pictures(&out) == want, "{parts:?}");
    let index = Mp4Index::read(&out).unwrap();
    let mut times: Vec<i64> = (0..want.len()).map(|i| index.pts_ticks(i).unwrap()).collect();
    times.sort_unstable();
    assert_eq!(index.timescale, fps * 512);
    assert!((0..).zip(times).all(|(k, t): (i64, i64)| t == 512 * k), "{parts:?}");
}

#[test]
fn our_own_files_are_joined_and_cut_picture_for_picture() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.mp4"), folder.path().join("b.mp4"));
    record(&a, FrameSize::new(64, 48), 9, 3);
    record(&b, FrameSize::new(64, 48), 6, 5);
    check(&[Part::new(&a, 0..9)], 30);
    // An odd number of pictures first, so that key frames are at odd places; one file twice.
    check(&[Part::new(&a, 0..9), Part::new(&b, 2..5), Part::new(&a, 4..6)], 30);
}

#[test]
fn files_with_b_frames_and_av1_keep_every_picture_and_its_time() {
    check(
        &[
            Part::new(fixture("mp4/x264_g10_bf3.mp4"), 10..20),
            Part::new(fixture("mp4/x264_g10_bf3.mp4"), 0..34),
        ],
        30,
    );
    let resumed = "lerobot_resume/videos/observation.images.gripper/chunk-000";
    let parts = ["file-000.mp4", "file-001.mp4"].map(|f| fixture(resumed).join(f));
    check(&[Part::new(&parts[1], 0..40), Part::new(&parts[0], 0..96)], 30);
    if cfg!(feature = "av1") {
        let av1 = fixture("lerobot_av1/videos/observation.images.gripper/chunk-000/file-000.mp4");
        check(&[Part::new(&av1, 40..65), Part::new(&av1, 0..40)], 30);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_cut_is_exact_or_refused_with_a_place_that_works(from in 0_u64..34, n in 1_u64..34) {
        let path = fixture("mp4/x264_g10_bf3.mp4");
        let to = (from + n).min(34);
        let folder = tempfile::tempdir().unwrap();
        match concat(&[Part::new(&path, from..to)], 30, &folder.path().join("x.mp4")) {
            Ok(_) => check(&[Part::new(&path, from..to)], 30),
            Err(Error::NotAtKeyFrame { frame, nearest, .. }) => {
                prop_assert!(frame == from || frame == to);
                prop_assert!(!folder.path().join("x.mp4").exists());
                if nearest < 34 {
                    check(&[Part::new(&path, nearest..34)], 30);
                }
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}

#[test]
fn what_cannot_be_joined_is_refused_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    record(&path("a.mp4"), FrameSize::new(64, 48), 4, 3);
    record(&path("b.mp4"), FrameSize::new(32, 48), 4, 3);
    let x264 = fixture("mp4/x264_g30.mp4");
    let refused = |parts: &[Part], fps| concat(parts, fps, &path("out.mp4")).unwrap_err().to_string();
    let a = Part::new(path("a.mp4"), 0..4);
    for (error, says) in [
        (refused(&[a.clone(), Part::new(path("b.mp4"), 0..4)], 30), "its pictures are 32x48"),
        (refused(&[a.clone(), Part::new(&x264, 0..34)], 30), "set up differently"),
        (refused(std::slice::from_ref(&a), 25), "picture 1 is not shown 1/25 s"),
        (refused(&[Part::new(path("a.mp4"), 1..4)], 30), "picture 1 is no place to cut, picture 0 is"),
        (refused(&[Part::new(path("a.mp4"), 2..5)], 30), "4"),
        (refused(&[], 30), "no pictures to copy"),
    ] {
        assert!(error.contains(says), "{error}");
    }
    assert!(!path("out.mp4").exists());
    // A file that is there is not touched.
    std::fs::write(path("out.mp4"), "mine").unwrap();
    assert!(concat(&[a], 30, &path("out.mp4")).is_err());
    assert_eq!(std::fs::read(path("out.mp4")).unwrap(), b"mine");
}
