//! The running episode: rows in memory, pictures on their way into staged files.

use std::collections::BTreeMap;

use so101_hal::{Action, EpisodeEnd, EpisodeStart, Frame, Observation, Timestamp};

use super::WriterOptions;
use super::tracks::Tracks;
use crate::commit::{Place, TemporaryDir};
use crate::error::{Error, Result};
use crate::spec::DatasetSpec;

/// The two vectors that are recorded.
pub(super) const ACTION: &str = "action";
pub(super) const STATE: &str = "observation.state";
/// Numbers in each of them.
pub(super) const JOINT_COUNT: usize = 6;

/// The rows of an episode, and what the sidecar keeps beside them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Six numbers a row.
    pub action: Vec<f32>,
    /// Six numbers a row.
    pub state: Vec<f32>,
    /// When the joints were read, in ns since those of the first row.
    pub observed_ns: Vec<i64>,
    /// When the action was handed to the arm, on the same count, for the rows of which it is known.
    pub acted_ns: Vec<i64>,
    /// One a camera.
    pub cameras: Vec<CameraTimes>,
    first: Timestamp,
}

/// What one camera delivered.
#[derive(Debug)]
pub(super) struct CameraTimes {
    pub name: String,
    pub captured_ns: Vec<i64>,
    pub stale: Vec<u64>,
    last_sequence: Option<u64>,
}

impl Rows {
    pub(super) fn len(&self) -> u64 {
        self.observed_ns.len() as u64
    }
}

#[cfg(test)]
impl Rows {
    /// Rows of nothing but their number.
    pub(super) fn for_test(cameras: &[&str], rows: usize) -> Self {
        let camera = |name: &&str| CameraTimes {
            name: (*name).to_owned(),
            captured_ns: vec![0; rows],
            stale: Vec::new(),
            last_sequence: None,
        };
        Self { observed_ns: vec![0; rows], cameras: cameras.iter().map(camera).collect(), ..Self::default() }
    }
}

/// One row that fits.
pub(super) struct Row {
    action: [f32; JOINT_COUNT],
    state: [f32; JOINT_COUNT],
}

/// An episode between `begin` and `end`.
#[derive(Debug)]
pub(super) struct OpenEpisode {
    start: EpisodeStart,
    cameras: Vec<so101_hal::CameraSpec>,
    rows: Rows,
    // Before the folder: an encoder's file is closed and removed first.
    tracks: Tracks,
    staging: TemporaryDir,
}

/// An episode between `end` and its commit.
#[derive(Debug)]
pub(super) struct Job {
    pub start: EpisodeStart,
    pub end: EpisodeEnd,
    pub rows: Rows,
    pub tracks: Tracks,
    pub staging: TemporaryDir,
    pub session_files: BTreeMap<String, Vec<u8>>,
}

impl OpenEpisode {
    pub(super) fn begin(
        place: &Place,
        spec: &DatasetSpec,
        options: &WriterOptions,
        start: &EpisodeStart,
    ) -> Result<Self> {
        let staging = TemporaryDir::create(place, "rec-")?;
        let tracks = Tracks::spawn(staging.path(), &spec.cameras, spec.fps, options)?;
        // A control loop must not pay for growth.
        let hint = (options.episode_frames_hint as usize).min(1 << 16);
        let times = |name: &str| CameraTimes {
            name: name.to_owned(),
            captured_ns: Vec::with_capacity(hint),
            stale: Vec::new(),
            last_sequence: None,
        };
        let rows = Rows {
            action: Vec::with_capacity(hint * JOINT_COUNT),
            state: Vec::with_capacity(hint * JOINT_COUNT),
            observed_ns: Vec::with_capacity(hint),
            acted_ns: Vec::with_capacity(hint),
            cameras: spec.cameras.iter().map(|c| times(&c.name)).collect(),
            first: Timestamp::ZERO,
        };
        Ok(Self { start: start.clone(), cameras: spec.cameras.clone(), rows, tracks, staging })
    }

    pub(super) fn len(&self) -> u64 {
        self.rows.len()
    }

    /// Looks at everything before anything is kept.
    pub(super) fn check(&self, observation: &Observation, action: &Action) -> Result<Row> {
        let row = Row {
            action: self.finite(ACTION, action.joints.to_row())?,
            state: self.finite(STATE, observation.joints.to_row())?,
        };
        if observation.frames.len() != self.cameras.len() {
            return Err(self.other_cameras(observation));
        }
        for camera in &self.cameras {
            let frame = frame_of(observation, &camera.name).ok_or_else(|| self.other_cameras(observation))?;
            let (expected, got) = (camera.size, frame.size());
            if expected != got {
                return Err(Error::FrameSize { camera: camera.name.clone(), expected, got });
            }
        }
        Ok(row)
    }

    fn finite(&self, feature: &str, values: [f64; JOINT_COUNT]) -> Result<[f32; JOINT_COUNT]> {
        let narrow = values.map(|v| v as f32);
        match (0..).zip(values.iter().zip(&narrow)).find(|(_, (_, n))| !n.is_finite()) {
            None => Ok(narrow),
            Some((dimension, (value, _))) => Err(Error::NonFinite {
                feature: feature.to_owned(),
                row: self.len(),
                dimension,
                value: *value,
            }),
        }
    }

    fn other_cameras(&self, observation: &Observation) -> Error {
        Error::CameraSet {
            expected: self.cameras.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", "),
            got: observation.frames.iter().map(|f| &*f.camera).collect::<Vec<_>>().join(", "),
        }
    }

    /// Keeps a row that [`check`](Self::check) has passed.
    ///
    /// # Errors
    /// What stopped an encoder: the episode must be given up then.
    pub(super) fn push(
        &mut self,
        row: Row,
        observation: &Observation,
        acted: Option<Timestamp>,
    ) -> Result<()> {
        let number = self.len();
        let rows = &mut self.rows;
        if number == 0 {
            rows.first = observation.at;
        }
        for (i, times) in rows.cameras.iter_mut().enumerate() {
            let Some(frame) = frame_of(observation, &times.name) else { continue };
            self.tracks.push(i, frame.clone())?;
            times.captured_ns.push(ns_since(rows.first, frame.captured));
            if times.last_sequence.replace(frame.sequence) == Some(frame.sequence) {
                times.stale.push(number);
            }
        }
        rows.action.extend_from_slice(&row.action);
        rows.state.extend_from_slice(&row.state);
        rows.observed_ns.push(ns_since(rows.first, observation.at));
        rows.acted_ns.extend(acted.map(|at| ns_since(rows.first, at)));
        Ok(())
    }

    /// No more rows; does not wait for the encoders.
    pub(super) fn close(mut self, end: EpisodeEnd, session_files: BTreeMap<String, Vec<u8>>) -> Job {
        self.tracks.close_input();
        let Self { start, rows, tracks, staging, .. } = self;
        Job { start, end, rows, tracks, staging, session_files }
    }

    /// Leaves no trace.
    pub(super) fn discard(self) -> Result<()> {
        self.tracks.abort()?;
        self.staging.remove()
    }
}

/// The picture of one camera; at most a handful, so looking is cheaper than a map.
fn frame_of<'a>(observation: &'a Observation, camera: &str) -> Option<&'a Frame> {
    observation.frames.iter().find(|f| &*f.camera == camera).map(|f| &f.frame)
}

/// Negative for a moment before `zero`, such as a picture taken before the joints were read.
fn ns_since(zero: Timestamp, at: Timestamp) -> i64 {
    let (zero, at) = (zero.since_start().as_nanos(), at.since_start().as_nanos());
    let magnitude = i64::try_from(at.abs_diff(zero)).unwrap_or(i64::MAX);
    if at < zero { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_before_the_first_row_are_negative() {
        let at = |ms| Timestamp::from_start(Duration::from_millis(ms));
        assert_eq!((ns_since(at(5), at(7)), ns_since(at(5), at(3))), (2_000_000, -2_000_000));
    }
}
