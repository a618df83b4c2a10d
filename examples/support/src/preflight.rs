//! What is checked before the first frame: servos, cameras, encoder, disk. Printed as a table, stored with the dataset.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use so101_dataset::video::{SimdReport, StreamConfig, VideoStream, round_trip, simd_report};
use so101_hal::{CameraSpec, Clock, Frame, Observation, Robot};

use crate::error::{Error, Result};

/// Quality below which something is wrong with the encoder (its default settings give more than 40 dB on noise).
const LOWEST_PSNR_DB: f64 = 38.0;

/// Share by which a camera's rate may be off.
const RATE_TOLERANCE: f64 = 0.01;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within its limit.
    Pass,
    /// Worth knowing, no reason to stop.
    Warn,
    /// Recording would go wrong.
    Fail,
}

/// Whether a value is a fact of the rig or of the machine that records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Same rig and seed, same value: stored with the dataset.
    Rig,
    /// Differs from machine to machine and day to day: stored with the host's log only.
    Host,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was looked at.
    pub item: String,
    /// What was found.
    pub value: String,
    /// What is asked for.
    pub limit: String,
    /// The judgement.
    pub verdict: Verdict,
    #[serde(skip)]
    origin: Origin,
}

impl Check {
    /// A fact of the rig: `ok` passes, else it fails.
    pub fn rig(
        item: impl Into<String>,
        value: impl Into<String>,
        limit: impl Into<String>,
        ok: bool,
    ) -> Self {
        let verdict = if ok { Verdict::Pass } else { Verdict::Fail };
        Self { item: item.into(), value: value.into(), limit: limit.into(), verdict, origin: Origin::Rig }
    }

    /// A fact of the host.
    pub fn host(
        item: impl Into<String>,
        value: impl Into<String>,
        limit: impl Into<String>,
        verdict: Verdict,
    ) -> Self {
        Self { item: item.into(), value: value.into(), limit: limit.into(), verdict, origin: Origin::Host }
    }
}

/// All checks of a session.
#[derive(Clone, Debug, Default)]
pub struct Preflight {
    checks: Vec<Check>,
}

impl Preflight {
    /// Adds checks.
    pub fn extend(&mut self, checks: impl IntoIterator<Item = Check>) {
        self.checks.extend(checks);
    }

    /// All of them.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let width =
            |f: fn(&Check) -> &str| self.checks.iter().map(|c| f(c).chars().count()).max().unwrap_or(0);
        let (i, v, l) = (width(|c| &c.item), width(|c| &c.value), width(|c| &c.limit));
        let mut out = String::from("pre-flight\n");
        for c in &self.checks {
            let mark = match c.verdict {
                Verdict::Pass => "pass",
                Verdict::Warn => "WARN",
                Verdict::Fail => "FAIL",
            };
            let _ = writeln!(out, "  {mark}  {:i$}  {:v$}  {:l$}", c.item, c.value, c.limit);
        }
        out
    }

    /// What is stored with the dataset: facts of the host without their values, since same seed means same bytes.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let stored = self.checks.iter().map(|c| match c.origin {
            Origin::Rig => serde_json::json!(c),
            Origin::Host => {
                serde_json::json!({ "item": c.item, "verdict": c.verdict, "value": "see host.jsonl" })
            }
        });
        serde_json::json!({ "checks": stored.collect::<Vec<_>>() })
    }

    /// The host's facts, for the host's log.
    #[must_use]
    pub fn host_json(&self) -> serde_json::Value {
        serde_json::json!(self.checks.iter().filter(|c| c.origin == Origin::Host).collect::<Vec<_>>())
    }

    /// Nothing failed.
    ///
    /// # Errors
    /// [`Error::Refused`] naming every failed check.
    pub fn require(&self) -> Result<()> {
        let failed: Vec<String> = self
            .checks
            .iter()
            .filter(|c| c.verdict == Verdict::Fail)
            .map(|c| format!("{} is {}, asked for {}", c.item, c.value, c.limit))
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(Error::Refused(failed.join("; "))) }
    }
}

/// Looks through the robot's cameras: one picture each, of the declared size, and the next one a period later.
///
/// # Errors
/// When the robot cannot be observed at all.
pub fn cameras(robot: &mut dyn Robot, clock: &dyn Clock, fps: u32) -> Result<(Vec<Check>, Vec<Frame>)> {
    let first = robot.observe()?;
    clock.sleep_until(first.at + Duration::from_secs(1) / fps.max(1));
    let second = robot.observe()?;
    let mut checks = Vec::new();
    let mut frames = Vec::new();
    let find = |seen: &Observation, name: &str| {
        seen.frames.iter().find(|f| &*f.camera == name).map(|f| f.frame.clone())
    };
    for spec in &robot.description().cameras {
        let (before, after) = (find(&first, &spec.name), find(&second, &spec.name));
        let value = after.as_ref().map_or_else(|| "no picture".to_owned(), |f| f.size().to_string());
        let ok = after.as_ref().is_some_and(|f| f.size() == spec.size);
        checks.push(Check::rig(format!("camera {}", spec.name), value, spec.size.to_string(), ok));
        if let (Some(before), Some(after)) = (&before, &after) {
            let rate_hz = 1.0 / after.captured.since(before.captured).as_secs_f64();
            let ok = (rate_hz / f64::from(fps) - 1.0).abs() <= RATE_TOLERANCE
                && after.sequence == before.sequence + 1;
            let (value, limit) = (format!("{rate_hz:.2} Hz"), format!("{fps} Hz, none lost"));
            checks.push(Check::rig(format!("rate of {}", spec.name), value, limit, ok));
        }
        frames.extend(after);
    }
    Ok((checks, frames))
}

/// Records and plays back a few pictures of the camera's size in `folder`.
///
/// # Errors
/// When the encoder or the disk refuses.
pub fn encoder(folder: &Path, spec: &CameraSpec, fps: u32) -> Result<Check> {
    let found = round_trip(folder, spec, &StreamConfig::default().with_fps(fps))?;
    let value = format!("{} frames back at {:.1} dB", found.frames, found.psnr_y_db);
    let ok = found.frames > 0 && found.psnr_y_db >= LOWEST_PSNR_DB;
    Ok(Check::rig(format!("encoder {}", spec.name), value, format!(">= {LOWEST_PSNR_DB:.1} dB"), ok))
}

/// Whether the encoder was built with its assembly: without it, it takes twice the time.
#[must_use]
pub fn encoder_build() -> Check {
    let found = simd_report();
    let verdict = if found == SimdReport::Missing { Verdict::Warn } else { Verdict::Pass };
    Check::host("encoder build", found.to_string(), "with assembly", verdict)
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
    Ok(Check::host("free disk", megabytes(free), limit, verdict))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_check_refuses_and_is_named_and_warnings_do_not() {
        let mut p = Preflight::default();
        p.extend([Check::host("free disk", "3 MB", ">= 9 MB", Verdict::Warn)]);
        assert!(p.require().is_ok());
        p.extend([Check::rig("servo 3", "no answer", "model 777", false)]);
        let text = p.require().unwrap_err().to_string();
        assert!(text.contains("servo 3 is no answer, asked for model 777"), "{text}");
    }

    #[test]
    fn what_is_stored_holds_no_figure_of_the_host() {
        let mut p = Preflight::default();
        p.extend([Check::host("free disk", "31.5 MB", ">= 9 MB", Verdict::Pass)]);
        assert!(!p.to_json().to_string().contains("31.5"));
        assert!(p.host_json().to_string().contains("31.5"));
    }

    #[test]
    fn too_little_space_for_an_episode_fails_and_for_the_session_warns() {
        let dir = tempfile::tempdir().unwrap();
        let verdict = |episode, session| free_disk(dir.path(), episode, session).unwrap().verdict;
        assert_eq!(verdict(u64::MAX, u64::MAX), Verdict::Fail);
        assert_eq!(verdict(1, u64::MAX), Verdict::Warn);
        assert_eq!(verdict(1, 2), Verdict::Pass);
    }
}
