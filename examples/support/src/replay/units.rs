//! Which unit the recorded numbers have, and the numbers in degrees.

use std::path::{Path, PathBuf};

use so101_dataset::{BodyUnit, Dataset};
use so101_hal::{BODY_JOINTS, Calibration, Degrees, JOINTS, JointVector, Normalized, Rounding};

use super::ReplayArgs;
use crate::error::{Error, Result};

/// The two columns of six numbers.
const ACTION: &str = "action";
const STATE: &str = "observation.state";

/// Beyond this no number can be a normalised one.
const NORMALIZED_MAX: f64 = 100.0;

/// Unit of the recorded body joints, and who says so.
#[derive(Clone, Debug)]
pub(super) enum Unit {
    /// Degrees; the text says why.
    Degrees(&'static str),
    /// -100 to 100 over the ranges of a calibration.
    Normalized {
        /// The ranges.
        calibration: Box<Calibration>,
        /// Its file.
        file: PathBuf,
    },
}

impl Unit {
    /// Whether the calibration is somebody's guess: its file's name says so.
    pub(super) fn is_assumed(&self) -> bool {
        self.file().and_then(Path::file_name).is_some_and(|n| n.to_string_lossy().contains("assumed"))
    }

    /// The calibration's file.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Degrees(_) => None,
            Self::Normalized { file, .. } => Some(file),
        }
    }
}

/// Finds the unit out, and refuses to guess.
///
/// # Errors
/// [`Error::Usage`] where nothing says what the numbers mean, or where the command line contradicts the set.
pub(super) fn decide(set: &Dataset, args: &ReplayArgs) -> Result<Unit> {
    check_features(set)?;
    let root = set.root().display();
    let refuse = |text: String| Err(Error::Usage(format!("{text}: {root}")));
    let stated = set.sidecar()?.map(|s| s.recording().units.body_joints);
    match (stated, &args.calibration) {
        (Some(BodyUnit::Degrees), None) => Ok(Unit::Degrees("the set says so")),
        (Some(BodyUnit::Degrees), Some(_)) => {
            refuse("--calibration is for values from -100 to 100, but the set says degrees: leave it away".into())
        }
        (Some(BodyUnit::Normalized), _) if args.degrees => {
            refuse("--degrees: the set says that its joints are from -100 to 100: give --calibration FILE".into())
        }
        (Some(BodyUnit::Normalized), None) => refuse(
            "the set's joints are from -100 to 100, which are no angles without the arm's calibration: give \
             --calibration FILE, LeRobot's calibration/robots/so_follower/ID.json"
                .into(),
        ),
        (Some(BodyUnit::Normalized), Some(file)) => normalized(file),
        (Some(other), _) => refuse(format!("the set's unit {other:?} is not known to this version")),
        (None, None) if args.degrees => Ok(Unit::Degrees("--degrees")),
        (None, calibration) => match (beyond_normalized(set)?, calibration) {
            (Some(_), None) => Ok(Unit::Degrees("a body joint goes beyond 100")),
            (Some(found), Some(_)) => {
                refuse(format!("--calibration is for values from -100 to 100, but {found}: leave it away"))
            }
            (None, None) => refuse(
                "all body joints stay within -100 to 100, so these may be LeRobot's -100..100 as well as degrees: give \
                 --calibration FILE (LeRobot's calibration/robots/so_follower/ID.json) or --degrees"
                    .into(),
            ),
            (None, Some(file)) => normalized(file),
        },
    }
}

fn normalized(file: &Path) -> Result<Unit> {
    let text = std::fs::read_to_string(file).map_err(|source| Error::Io {
        what: "read calibration",
        path: file.to_owned(),
        source,
    })?;
    let unusable = |source| Error::Calibration { path: file.to_owned(), source };
    let calibration: Calibration = serde_json::from_str(&text).map_err(|e| unusable(e.into()))?;
    for joint in calibration.joints() {
        joint.validate().map_err(|e| unusable(e.into()))?;
    }
    Ok(Unit::Normalized { calibration: Box::new(calibration), file: file.to_owned() })
}

/// Refuses a set whose rows are not the six joints.
fn check_features(set: &Dataset) -> Result<()> {
    for name in [ACTION, STATE] {
        let features = &set.info().features;
        let fits = features.get(name).is_some_and(|f| {
            let names = f.element_names();
            let named = |n: &[&str]| n.iter().zip(JOINTS).all(|(n, joint)| n.contains(joint.name()));
            f.width() == JOINTS.len() && names.is_none_or(|n| n.len() != JOINTS.len() || named(&n))
        });
        if !fits {
            return Err(Error::Usage(format!(
                "{name} is not the six joints of an SO-101, shoulder_pan to gripper: replay joint recordings of one \
                 arm only: {}",
                set.root().display()
            )));
        }
    }
    Ok(())
}

/// A body joint somewhere in the set whose value no normalised one can have, in words.
fn beyond_normalized(set: &Dataset) -> Result<Option<String>> {
    for e in set.episodes() {
        let rows = set.rows_of(e.episode, &[ACTION, STATE])?;
        for name in [ACTION, STATE] {
            for row in rows.f64(name)?.chunks_exact(JOINTS.len()) {
                let found = BODY_JOINTS.into_iter().zip(row).find(|(_, v)| v.abs() > NORMALIZED_MAX);
                if let Some((joint, value)) = found {
                    return Ok(Some(format!(
                        "{joint} is {value:.1} in {name} of episode {}, which means degrees",
                        e.episode
                    )));
                }
            }
        }
    }
    Ok(None)
}

/// The numbers of one episode: degrees and gripper percent, as many actions as states, one at least.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// Goals.
    pub(super) actions: Vec<JointVector<Degrees>>,
    /// Measured positions.
    pub(super) states: Vec<JointVector<Degrees>>,
}

impl Recorded {
    /// Reads an episode.
    ///
    /// # Errors
    /// [`Error::Replay`] for no rows, or numbers that are not finite; errors of the dataset.
    pub(super) fn read(set: &Dataset, episode: u64, unit: &Unit) -> Result<Self> {
        let rows = set.rows_of(episode, &[ACTION, STATE])?;
        let fail = |what| Error::Replay { episode, what, path: set.root().to_owned() };
        let column = |name: &str| -> Result<Vec<JointVector<Degrees>>> {
            let values = rows.f64(name)?;
            let (rows, _) = values.as_chunks();
            let convert = |(i, row): (usize, &[f64; 6])| match row.iter().position(|v| !v.is_finite()) {
                Some(at) => Err(fail(format!(
                    "{name} of row {i} has {} for {}",
                    row.get(at).copied().unwrap_or(f64::NAN),
                    JOINTS.get(at).map_or("", |j| j.name())
                ))),
                None => in_degrees(*row, unit),
            };
            rows.iter().enumerate().map(convert).collect()
        };
        let (actions, states) = (column(ACTION)?, column(STATE)?);
        if actions.is_empty() || actions.len() != states.len() {
            return Err(fail(format!("it has {} actions and {} states", actions.len(), states.len())));
        }
        Ok(Self { actions, states })
    }
}

/// A row in degrees. The way through whole encoder steps is the one that the recorded numbers came.
fn in_degrees(row: [f64; 6], unit: &Unit) -> Result<JointVector<Degrees>> {
    match unit {
        Unit::Degrees(_) => Ok(JointVector::<Degrees>::from_row(row)),
        Unit::Normalized { calibration, .. } => {
            let recorded = JointVector::<Normalized>::from_row(row);
            let ticks = calibration.normalized_to_ticks(&recorded, Rounding::Nearest)?;
            let degrees = calibration.to_degrees(&ticks)?;
            // Percent needs no calibration and would only be rounded.
            Ok(JointVector { gripper: recorded.gripper, ..degrees })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_values_become_the_calibrations_degrees_and_the_gripper_stays_percent() {
        let unit = Unit::Normalized { calibration: Box::new(Calibration::model()), file: "a.json".into() };
        let q = in_degrees([100.0, -100.0, 0.0, 50.0, 0.0, 33.3], &unit).unwrap();
        // Half of each range: (3299 - 796) / 2, (3185 - 910) / 2 and half of (3128 - 967) / 2 steps of 360 / 4095 deg.
        for (got, want) in q.body.iter().zip([110.022, -100.0, 0.0, 47.495, 0.0]) {
            assert!((got.0 - want).abs() <= 0.045, "{got} is not {want}");
        }
        assert_eq!(q.gripper.0, 33.3);
    }

    #[test]
    fn only_the_files_own_name_marks_an_assumed_calibration() {
        for (file, assumed) in
            [("a/real.assumed_calibration.json", true), ("assumed/lab.json", false), ("lab.json", false)]
        {
            let unit = Unit::Normalized { calibration: Box::new(Calibration::model()), file: file.into() };
            assert_eq!(unit.is_assumed(), assumed, "{file}");
        }
        assert!(!Unit::Degrees("").is_assumed());
    }
}
