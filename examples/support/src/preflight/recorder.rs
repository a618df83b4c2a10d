//! The items that need a dataset, an encoder or a disk.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use so101_dataset::video::{SimdReport, StreamConfig, VideoStream, round_trip, round_trip_of, simd_report};
use so101_dataset::{Dataset, DatasetSpec, Features};
use so101_hal::preflight::{Check, Item, Verdict};
use so101_hal::{CameraSpec, Frame};

use crate::error::{Error, Result};

/// Quality below which something is wrong with the encoder (its default settings give more than 40 dB on noise).
const LOWEST_PSNR_DB: f64 = 38.0;

/// What is written to measure the disk.
const SPEED_BYTES: usize = 16 << 20;

/// How long the encoder is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trial {
    /// A few pictures: for rigs whose time is simulated.
    #[default]
    Short,
    /// One second of video.
    Second,
}

/// Records and plays back a few pictures of the camera's size in `folder`.
///
/// # Errors
/// When the encoder or the disk refuses.
pub fn encoder(folder: &Path, spec: &CameraSpec, fps: u32) -> Result<Check> {
    encoder_trial(folder, spec, fps, Trial::Short)
}

/// Records and plays back pictures of the camera's size in `folder`.
///
/// # Errors
/// When the encoder or the disk refuses.
pub fn encoder_trial(folder: &Path, spec: &CameraSpec, fps: u32, trial: Trial) -> Result<Check> {
    let config = StreamConfig::default().with_fps(fps);
    let found = match trial {
        Trial::Short => round_trip(folder, spec, &config)?,
        Trial::Second => round_trip_of(folder, spec, &config, u64::from(fps))?,
    };
    Ok(judge_encoder(spec, found.frames, found.psnr_y_db))
}

/// Judges a round trip.
#[must_use]
pub fn judge_encoder(spec: &CameraSpec, frames: u64, psnr_y_db: f64) -> Check {
    let ok = frames > 0 && psnr_y_db >= LOWEST_PSNR_DB;
    Check::new(Item::EncoderRoundTrip, Verdict::fail_unless(ok))
        .of(&spec.name)
        .value(format!("{frames} frames back at {psnr_y_db:.1} dB"))
        .limit(format!(">= {LOWEST_PSNR_DB:.1} dB"))
        .advice("the encoder spoils pictures on this machine: build it again (cargo clean -p openh264-sys2)")
}

/// Whether the encoder was built with its assembly: without it, it takes twice the time.
#[must_use]
pub fn encoder_build() -> Check {
    judge_build(simd_report())
}

fn judge_build(found: SimdReport) -> Check {
    Check::new(Item::EncoderBuild, Verdict::warn_unless(found != SimdReport::Missing))
        .value(found.to_string())
        .advice("install nasm and build again: encoding takes twice the time without it")
}

/// Bytes that one picture of this camera takes, measured on `frame`. A still video compresses best, so this is a
/// lower bound.
///
/// # Errors
/// When the encoder or the disk refuses.
pub fn bytes_per_frame(folder: &Path, spec: &CameraSpec, frame: &Frame, fps: u32) -> Result<u64> {
    const FRAMES: u32 = 8;
    let path = folder.join(format!("{}.mp4", spec.name));
    let config = StreamConfig::default().with_fps(fps).with_frames_hint(FRAMES);
    let mut stream = VideoStream::spawn(&path, spec, &config)?;
    for _ in 0..FRAMES {
        stream.push(frame.clone())?;
    }
    let report = stream.finish()?;
    std::fs::remove_file(&path).map_err(|source| Error::Io { what: "remove", path, source })?;
    Ok(report.bytes.div_ceil(u64::from(FRAMES)))
}

/// Free space where the dataset will be, against what one episode and the whole session will take.
///
/// Too little for one episode fails; too little for the session twice over (a commit holds the old and the new
/// generation's small files for a moment, and people record more than they planned) warns.
///
/// # Errors
/// When the file system cannot be asked.
pub fn free_disk(folder: &Path, episode_bytes: u64, session_bytes: u64) -> Result<Check> {
    let asked = |source: rustix::io::Errno| Error::Io {
        what: "ask for free space at",
        path: folder.to_owned(),
        source: source.into(),
    };
    let fs = rustix::fs::statvfs(folder).map_err(asked)?;
    let free = fs.f_bavail.saturating_mul(fs.f_frsize);
    let verdict = match free {
        f if f < episode_bytes => Verdict::Fail,
        f if f < session_bytes.saturating_mul(2) => Verdict::Warn,
        _ => Verdict::Pass,
    };
    let limit = format!(
        ">= {} an episode, {} the session twice over",
        megabytes(episode_bytes),
        megabytes(session_bytes.saturating_mul(2))
    );
    Ok(Check::new(Item::FreeDisk, verdict)
        .value(megabytes(free))
        .limit(limit)
        .advice("make room, or record to another disk with --out"))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Writes and syncs a file in `folder`, and compares with the rate at which a session writes.
///
/// # Errors
/// When the disk refuses.
pub fn write_speed(folder: &Path, session_bytes_per_s: f64) -> Result<Check> {
    let path = folder.join(format!(".write-speed-{}", std::process::id()));
    let fault = |source| Error::Io { what: "write", path: path.clone(), source };
    let block: Vec<u8> = (0..1_u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let started = Instant::now();
    let written = std::fs::File::create(&path).and_then(|mut file| {
        for _ in 0..SPEED_BYTES / block.len() {
            file.write_all(&block)?;
        }
        file.sync_all()
    });
    let took = started.elapsed();
    let removed = std::fs::remove_file(&path);
    written.and(removed).map_err(fault)?;
    Ok(judge_speed(SPEED_BYTES as f64 / took.as_secs_f64(), session_bytes_per_s))
}

/// Judges a measured speed, both in bytes a second.
#[must_use]
pub fn judge_speed(disk_bytes_per_s: f64, session_bytes_per_s: f64) -> Check {
    let verdict = match disk_bytes_per_s {
        v if v >= 4.0 * session_bytes_per_s => Verdict::Pass,
        v if v >= session_bytes_per_s => Verdict::Warn,
        _ => Verdict::Fail,
    };
    Check::new(Item::WriteSpeed, verdict)
        .value(format!("{:.1} MB/s", disk_bytes_per_s / 1e6))
        .limit(format!(
            ">= {:.1} MB/s, {:.1} MB/s at least",
            4.0 * session_bytes_per_s / 1e6,
            session_bytes_per_s / 1e6
        ))
        .advice("the disk is slow: use a USB 3 disk or an SSD instead of a memory card, and end programs that write")
}

/// Whether the columns of a set that is gone on with are the session's; skipped where the set is a new one.
///
/// # Errors
/// When the set cannot be opened.
pub fn dataset_features(existing: Option<&Path>, session: &DatasetSpec) -> Result<Check> {
    let item = Item::DatasetFeatures;
    let Some(path) = existing else {
        return Ok(Check::skipped(item, "a new dataset"));
    };
    let set = Dataset::open(path)?;
    Ok(judge_features(set.info().fps, &set.info().features, session))
}

/// Judges the columns and the rate of a set against the session's.
#[must_use]
pub fn judge_features(fps: u32, features: &Features, session: &DatasetSpec) -> Check {
    let wanted = session.features();
    let mut wrong: Vec<String> = Vec::new();
    if fps != session.fps {
        wrong.push(format!("{fps} Hz in the set, {} Hz now", session.fps));
    }
    for (name, feature) in wanted.iter() {
        match features.get(name) {
            None => wrong.push(format!("{name} is not in the set")),
            Some(old) if old.shape != feature.shape => {
                wrong.push(format!("{name} is {:?} in the set, {:?} now", old.shape, feature.shape));
            }
            Some(old) if old.element_names() != feature.element_names() => {
                wrong.push(format!("{name} has other elements in the set"));
            }
            Some(_) => {}
        }
    }
    let missing = features.iter().filter(|(name, _)| wanted.get(name).is_none());
    wrong.extend(missing.map(|(name, _)| format!("{name} of the set is not recorded now")));
    let value =
        if wrong.is_empty() { format!("equal, {} columns", wanted.iter().count()) } else { wrong.join(", ") };
    Check::new(Item::DatasetFeatures, Verdict::fail_unless(wrong.is_empty()))
        .value(value)
        .advice("record with the cameras and the rate of the set, or start a new one with --out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_space_for_an_episode_fails_and_for_the_session_warns() {
        let dir = tempfile::tempdir().unwrap();
        let verdict = |episode, session| free_disk(dir.path(), episode, session).unwrap().verdict;
        assert_eq!(verdict(u64::MAX, u64::MAX), Verdict::Fail);
        assert_eq!(verdict(1, u64::MAX), Verdict::Warn);
        assert_eq!(verdict(1, 2), Verdict::Pass);
    }

    #[test]
    fn a_disk_that_is_slower_than_the_cameras_fails() {
        let verdict = |disk| judge_speed(disk, 2e6).verdict;
        assert_eq!(
            [verdict(8e6), verdict(7.9e6), verdict(1.9e6)],
            [Verdict::Pass, Verdict::Warn, Verdict::Fail]
        );
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(write_speed(dir.path(), 1.0).unwrap().verdict, Verdict::Pass);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_encoder_that_spoils_pictures_fails_and_one_without_assembly_warns() {
        let spec = CameraSpec::new("main", 64, 48);
        assert_eq!(judge_encoder(&spec, 30, 37.9).verdict, Verdict::Fail);
        assert_eq!(judge_encoder(&spec, 0, 60.0).verdict, Verdict::Fail);
        assert_eq!(judge_build(SimdReport::Missing).verdict, Verdict::Warn);
        let dir = tempfile::tempdir().unwrap();
        let check = encoder_trial(dir.path(), &spec, 30, Trial::Second).unwrap();
        assert!(check.verdict == Verdict::Pass && check.value.starts_with("30 frames back"), "{check:?}");
    }

    #[test]
    fn a_set_with_other_cameras_or_another_rate_is_told_apart() {
        let camera = |w| vec![CameraSpec::new("main", w, 48)];
        let set = DatasetSpec::so101(30, camera(64));
        let check = |session: &DatasetSpec| judge_features(set.fps, &set.features(), session);
        assert_eq!(check(&set).verdict, Verdict::Pass, "{:?}", check(&set));
        let other = check(&DatasetSpec::so101(25, camera(32)));
        assert_eq!(other.verdict, Verdict::Fail);
        assert!(other.value.contains("30 Hz in the set, 25 Hz now"), "{other:?}");
        assert!(other.value.contains("observation.images.main is [48, 64, 3] in the set"), "{other:?}");
        let blind = check(&DatasetSpec::so101(30, Vec::new()));
        assert!(blind.value.contains("observation.images.main of the set is not recorded now"), "{blind:?}");
        assert_eq!(dataset_features(None, &set).unwrap().verdict, Verdict::Skip);
    }
}
