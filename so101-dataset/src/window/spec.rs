//! Which features a window has, at which steps.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::features::Features;

/// How far a relative time may be from a whole number of control periods, in seconds; LeRobot's default.
pub const DEFAULT_TOLERANCE_S: f64 = 1e-4;

/// Most steps of one feature.
const MAX_STEPS: usize = 100_000;

/// LeRobot's `delta_timestamps`: for each feature the times, in seconds, relative to a row.
pub type DeltaTimestamps = BTreeMap<String, Vec<f64>>;

/// Which features a window has, and at which steps relative to its row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSpec {
    /// Steps by feature.
    #[serde(default)]
    steps: BTreeMap<String, Vec<i64>>,
    /// The features that are wanted; `None` = all.
    #[serde(default)]
    only: Option<Vec<String>>,
}

impl WindowSpec {
    /// All features at the row alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A feature at these steps relative to the row: `0..50` for the next 50 from the row on, `[-1, 0]` for the row
    /// and the one before.
    #[must_use]
    pub fn with_steps(mut self, feature: impl Into<String>, steps: impl IntoIterator<Item = i64>) -> Self {
        self.steps.insert(feature.into(), steps.into_iter().collect());
        self
    }

    /// These features only.
    #[must_use]
    pub fn only(mut self, features: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only = Some(features.into_iter().map(Into::into).collect());
        self
    }

    /// From relative times, each of which must be a whole number of control periods within `tolerance_s`.
    ///
    /// # Errors
    /// [`Error::DeltaTimestamp`] with the feature and the time.
    pub fn from_delta_timestamps(deltas: &DeltaTimestamps, fps: u32, tolerance_s: f64) -> Result<Self> {
        let mut spec = Self::new();
        for (feature, times) in deltas {
            let mut steps = Vec::with_capacity(times.len());
            for time_s in times {
                let step = (time_s * f64::from(fps)).round();
                let off_s = (time_s - step / f64::from(fps.max(1))).abs();
                if !time_s.is_finite() || off_s > tolerance_s || step.abs() > 1e9 {
                    let (feature, time_s) = (feature.clone(), *time_s);
                    return Err(Error::DeltaTimestamp { feature, time_s, fps, tolerance_s });
                }
                steps.push(step as i64);
            }
            spec.steps.insert(feature.clone(), steps);
        }
        Ok(spec)
    }

    /// The steps of a feature, when it is wanted at several.
    #[must_use]
    pub fn steps(&self, feature: &str) -> Option<&[i64]> {
        self.steps.get(feature).map(Vec::as_slice)
    }

    pub(super) fn wants(&self, feature: &str) -> bool {
        let all = self.only.is_none();
        all || self.steps.contains_key(feature) || self.only.iter().flatten().any(|f| f == feature)
    }

    /// Every name must be one of the dataset's.
    pub(super) fn check(&self, features: &Features, root: &Path) -> Result<()> {
        for name in self.steps.keys().chain(self.only.iter().flatten()) {
            if features.get(name).is_none() {
                let known = features.iter().map(|(n, _)| n).collect::<Vec<_>>().join(", ");
                return Err(Error::NoSuchFeature {
                    kind: "window",
                    name: name.clone(),
                    known,
                    path: root.into(),
                });
            }
        }
        if let Some((name, steps)) = self.steps.iter().find(|(_, s)| s.is_empty() || s.len() > MAX_STEPS) {
            let problem = format!("is wanted at {} steps, 1 to {MAX_STEPS} make a window", steps.len());
            return Err(Error::column(name, problem, root));
        }
        Ok(())
    }
}
