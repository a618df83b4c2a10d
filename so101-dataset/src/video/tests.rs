use std::path::Path;

use so101_hal::{CameraSpec, Frame, FrameSize, Timestamp};

use super::round_trip::psnr_db;
use super::*;
use crate::error::Error;
use crate::mp4::Mp4Index;

mod foreign;
mod queue;
mod scene;

use scene::{counter, noisy, plain};

fn camera(size: FrameSize) -> CameraSpec {
    CameraSpec { name: "main".to_owned(), size }
}

fn frame(size: FrameSize, rgb: Vec<u8>, i: u64) -> Frame {
    Frame::new(size, rgb, i, Timestamp::ZERO).unwrap()
}

/// Records `count` pictures of a scene.
fn record(path: &Path, size: FrameSize, count: u64, draw: fn(FrameSize, u64) -> Vec<u8>) -> VideoReport {
    let mut stream = VideoStream::spawn(path, &camera(size), &StreamConfig::default()).unwrap();
    for i in 0..count {
        stream.push(frame(size, draw(size, i), i)).unwrap();
    }
    stream.finish().unwrap()
}

#[test]
fn every_picture_comes_back_in_its_place_with_exact_times_and_a_key_frame_every_second_one() {
    for (w, h) in [(128, 96), (320, 240), (200, 150), (32, 32)] {
        let size = FrameSize::new(w, h);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mp4");
        let report = record(&path, size, 21, plain);
        assert_eq!((report.frames, report.repeated), (21, 0));
        assert_eq!(report.bytes, std::fs::metadata(&path).unwrap().len());
        assert!(report.encode_cpu > Duration::ZERO);

        let mut video = VideoReader::open(&path).unwrap();
        assert_eq!((video.frames(), video.size()), (21, size));
        let index = video.index();
        assert_eq!(index.key_frames().collect::<Vec<_>>(), (0..21).step_by(2).collect::<Vec<_>>(), "{size}");
        assert_eq!(index.timescale, 30 * 512);
        assert!((0..21).all(|i| index.pts_ticks(i) == Some(512 * i as i64)), "{size}");
        for i in 0..21 {
            let picture = video.frame(i).unwrap();
            assert_eq!(counter(size, picture.rgb()), i, "{size}");
            assert_eq!(picture.captured.since_start().as_nanos(), u128::from(i) * 1_000_000_000 / 30);
        }
        let decoded = count_decodable(&path).unwrap();
        assert_eq!((decoded.frames, decoded.decoded), (21, 21));
        assert!(decoded.first_failure.is_none());
    }
}

#[test]
fn a_noisy_scene_keeps_forty_decibels_of_luma() {
    let size = FrameSize::new(320, 240);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    record(&path, size, 8, noisy);
    let mut video = VideoReader::open(&path).unwrap();
    let (mut before, mut after) = (I420::new(size).unwrap(), I420::new(size).unwrap());
    let all_db: Vec<f64> = (0..8)
        .map(|i| {
            before.fill_from_rgb(&noisy(size, i)).unwrap();
            after.fill_from_rgb(video.frame(i).unwrap().rgb()).unwrap();
            psnr_db(before.luma(), after.luma())
        })
        .collect();
    let mean_db = all_db.iter().sum::<f64>() / 8.0;
    assert!(mean_db >= 40.0, "{mean_db:.2} dB: {all_db:.2?}");
}

#[test]
fn colours_come_back_without_a_shift() {
    let size = FrameSize::new(64, 48);
    for colour in [[0, 0, 0], [255, 255, 255], [200, 60, 40], [30, 180, 90], [20, 40, 220], [128, 128, 128]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mp4");
        let mut stream = VideoStream::spawn(&path, &camera(size), &StreamConfig::default()).unwrap();
        stream.push(frame(size, colour.repeat(64 * 48), 0)).unwrap();
        stream.finish().unwrap();
        let picture = VideoReader::open(&path).unwrap().frame(0).unwrap();
        for pixel in picture.rgb().chunks_exact(3) {
            let off = pixel.iter().zip(&colour).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
            assert!(off <= 3, "{colour:?} came back as {pixel:?}");
        }
    }
}

#[test]
fn two_recordings_of_the_same_pictures_are_equal_byte_for_byte() {
    let size = FrameSize::new(160, 120);
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.mp4"), folder.path().join("b.mp4"));
    let (first, second) = (record(&a, size, 12, noisy), record(&b, size, 12, noisy));
    assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
    assert_eq!((first.stats, first.info), (second.stats, second.info));
}

#[test]
fn pictures_in_order_are_decoded_once_each_and_jumps_start_at_the_key_frame() {
    let size = FrameSize::new(64, 48);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    record(&path, size, 12, plain);
    let mut video = VideoReader::open(&path).unwrap();
    (0..12).for_each(|i| assert_eq!(counter(size, video.frame(i).unwrap().rgb()), i));
    assert_eq!(video.pictures_decoded(), 12);
    // Wanted picture, and how many are decoded for it: again, key frame, its neighbour, an odd one, the one behind.
    for (i, cost) in [(11, 0), (4, 1), (5, 1), (5, 0), (9, 2), (8, 1), (3, 2), (4, 1), (1, 2)] {
        let before = video.pictures_decoded();
        assert_eq!(counter(size, video.frame(i).unwrap().rgb()), i);
        assert_eq!(video.pictures_decoded() - before, cost, "picture {i}");
    }
    assert!(matches!(video.frame(12), Err(Error::NoSuchFrame { frame: 12, frames: 12, .. })));
    assert!(matches!(video.frame(u64::MAX), Err(Error::NoSuchFrame { .. })));
}

#[test]
fn a_longer_distance_of_key_frames_is_kept() {
    let size = FrameSize::new(64, 48);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    let config =
        StreamConfig::default().with_fps(25).with_encoder(EncoderConfig::default().with_gop_frames(5));
    let mut stream = VideoStream::spawn(&path, &camera(size), &config).unwrap();
    (0..11).for_each(|i| stream.push(frame(size, noisy(size, i), i)).unwrap());
    let report = stream.finish().unwrap();
    let index = Mp4Index::read(&path).unwrap();
    assert_eq!(index.key_frames().collect::<Vec<_>>(), [0, 5, 10]);
    assert_eq!(index.timescale, 25 * 512);
    assert_eq!((&report.info["video.g"], &report.info["video.fps"]), (&5.into(), &25.into()));
}

#[test]
fn codecs_and_profiles_of_others_are_refused_by_name() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mp4");
    for (file, name) in [("hevc.mp4", "hev1")] {
        match VideoReader::open(&fixtures.join(file)).err() {
            Some(Error::UnsupportedCodec { codec, path }) => {
                assert_eq!(codec, name);
                assert!(path.ends_with(file));
            }
            other => panic!("{file}: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_claims_pictures_larger_than_the_codecs_is_refused_before_any_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    record(&path, FrameSize::new(64, 48), 2, plain);
    let whole = std::fs::read(&path).unwrap();
    // Width and height follow the 24 bytes behind the name of the sample entry.
    let at = whole.windows(4).rposition(|w| w == b"avc1").unwrap() + 4 + 24;
    assert_eq!(whole[at..at + 4], [0, 64, 0, 48]);
    for (size, refused) in [
        ((65535_u16, 65535_u16), true),
        ((3842, 2160), true),
        ((2162, 3840), true),
        ((3840, 2160), false),
        ((2160, 3840), false),
    ] {
        let mut bytes = whole.clone();
        bytes[at..at + 2].copy_from_slice(&size.0.to_be_bytes());
        bytes[at + 2..at + 4].copy_from_slice(&size.1.to_be_bytes());
        std::fs::write(&path, bytes).unwrap();
        let opened = VideoReader::open(&path);
        assert_eq!(matches!(opened, Err(Error::Decode { frame: 0, .. })), refused, "{size:?}");
    }
}

#[test]
fn damaged_pictures_are_counted_out_and_the_rest_still_decodes() {
    let size = FrameSize::new(64, 48);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mp4");
    record(&path, size, 10, noisy);
    let index = Mp4Index::read(&path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The length of the first unit of picture 4, a key frame: now it reaches past its sample.
    bytes[index.samples[4].offset as usize] = 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let report = count_decodable(&path).unwrap();
    assert_eq!((report.frames, report.decoded), (10, 8));
    assert!(
        matches!(report.first_failure, Some(Error::Decode { frame: 4, .. })),
        "{:?}",
        report.first_failure
    );
    let mut video = VideoReader::open(&path).unwrap();
    assert!(matches!(video.frame(5), Err(Error::Decode { frame: 4, .. })));
    assert_eq!(counter(size, video.frame(6).unwrap().rgb()), 6);
}

#[test]
fn statistics_are_those_of_the_source_pictures() {
    let size = FrameSize::new(64, 48);
    let folder = tempfile::tempdir().unwrap();
    let report = record(&folder.path().join("a.mp4"), size, 5, noisy);
    let mut direct = crate::image_stats::ImageStats::new();
    (0..5).for_each(|i| direct.add(size, &noisy(size, i)));
    assert_eq!(report.stats, direct);
}

#[test]
fn the_info_of_a_video_has_the_keys_and_values_that_lerobot_writes() {
    let info = video_info(FrameSize::new(640, 480), 30, &EncoderConfig::default());
    let text = serde_json::to_string(&info).unwrap();
    assert_eq!(
        text,
        r#"{"video.height":480,"video.width":640,"video.codec":"h264","video.pix_fmt":"yuv420p","video.fps":30,"video.channels":3,"has_audio":false,"video.g":2,"video.crf":22,"video.preset":null,"video.fast_decode":0,"video.video_backend":"pyav","video.extra_options":{},"is_depth_map":false}"#
    );
}

#[test]
fn a_round_trip_reports_its_quality_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = StreamConfig::default();
    let found = round_trip(folder.path(), &CameraSpec::new("gripper", 320, 240), &config).unwrap();
    assert_eq!(found.frames, 6);
    assert!(found.psnr_y_db >= 38.0, "{found:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(matches!(
        round_trip(folder.path(), &CameraSpec::new("gripper", 321, 240), &config),
        Err(Error::VideoSize { .. })
    ));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
