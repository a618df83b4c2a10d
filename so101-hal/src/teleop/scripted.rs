//! A script: where the joints shall be at which time.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Teleoperator;
use super::coupling::{Coupling, CouplingOptions};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::joint::JointVector;
use crate::robot::Action;
use crate::units::Degrees;

/// Where the joints shall be at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Waypoint {
    /// Seconds from the start of the script.
    pub at_s: f64,
    /// The six joints in order: body in LeRobot degrees, gripper in percent.
    pub joints: [f64; 6],
}

impl Waypoint {
    /// A waypoint.
    #[must_use]
    pub fn new(at: Duration, joints: JointVector<Degrees>) -> Self {
        Self { at_s: at.as_secs_f64(), joints: joints.to_row() }
    }
}

/// A script as it is in a file. Any serde format will do; the examples read TOML and JSON.
///
/// ```
/// let script: so101_hal::teleop::Script = serde_json::from_str(
///     r#"{"name": "nod", "waypoint": [
///         {"at_s": 0.0, "joints": [0, 0, 0, 0, 0, 50]},
///         {"at_s": 1.5, "joints": [0, 0, 0, 20, 0, 50]}]}"#,
/// )?;
/// assert_eq!(script.waypoint.len(), 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Script {
    /// Its name.
    #[serde(default = "unnamed")]
    pub name: String,
    /// Waypoints with rising times, `[[waypoint]]` in TOML.
    pub waypoint: Vec<Waypoint>,
}

fn unnamed() -> String {
    "script".to_string()
}

#[cfg(feature = "std")]
impl Script {
    /// Reads a script from a JSON file.
    ///
    /// # Errors
    /// [`Error::Script`].
    pub fn load_json(path: &std::path::Path) -> Result<Self> {
        let fail = |source| Error::Script { path: path.display().to_string(), source };
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.into()))?;
        serde_json::from_str(&text).map_err(|e| fail(e.into()))
    }
}

enum Path {
    Waypoints(Vec<Waypoint>),
    Function(Box<dyn FnMut(Duration) -> JointVector<Degrees> + Send>),
}

/// Plays a script. Its time begins when the follower has been brought to its first pose, at a limited speed; after the
/// last waypoint the arm stays there.
///
/// See [`Teleoperator`] for an example.
pub struct Scripted {
    name: String,
    path: Path,
    approach: CouplingOptions,
    coupling: Option<Coupling>,
    /// When the script's own time began.
    started: Option<Timestamp>,
    finished: bool,
}

impl core::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Scripted")
            .field("name", &self.name)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

impl Scripted {
    /// Waypoints with straight lines in joint space between them.
    ///
    /// # Errors
    /// [`Error::Waypoint`] where there are none, times do not rise, or numbers are not finite.
    pub fn new(name: impl Into<String>, waypoints: Vec<Waypoint>) -> Result<Self> {
        let mut before = None;
        for (index, w) in waypoints.iter().enumerate() {
            if !w.at_s.is_finite() || w.joints.iter().any(|v| !v.is_finite()) {
                return Err(Error::Waypoint { index, what: "has a number that is not finite" });
            }
            if w.at_s < 0.0 || before.is_some_and(|b| w.at_s <= b) {
                return Err(Error::Waypoint { index, what: "is not later than the one before" });
            }
            before = Some(w.at_s);
        }
        if waypoints.is_empty() {
            return Err(Error::Waypoint { index: 0, what: "is missing: a script needs at least one" });
        }
        Ok(Self::with_path(name.into(), Path::Waypoints(waypoints)))
    }

    /// A script from a file.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_script(script: Script) -> Result<Self> {
        Self::new(script.name, script.waypoint)
    }

    /// A pose computed from the time since the start; it has no end.
    pub fn from_fn(
        name: impl Into<String>,
        pose: impl FnMut(Duration) -> JointVector<Degrees> + Send + 'static,
    ) -> Self {
        Self::with_path(name.into(), Path::Function(Box::new(pose)))
    }

    fn with_path(name: String, path: Path) -> Self {
        let approach = CouplingOptions::default().with_any_gap();
        Self { name, path, approach, coupling: None, started: None, finished: false }
    }

    /// Another way to the first pose: a largest distance, another speed.
    #[must_use]
    pub const fn with_approach(mut self, approach: CouplingOptions) -> Self {
        self.approach = approach;
        self
    }

    /// Where the script has the joints at a time of its own.
    fn pose(&mut self, at: Duration) -> JointVector<Degrees> {
        match &mut self.path {
            Path::Function(pose) => pose(at),
            Path::Waypoints(all) => interpolate(all, at.as_secs_f64()),
        }
    }

    fn length(&self) -> Option<Duration> {
        match &self.path {
            Path::Function(_) => None,
            Path::Waypoints(all) => {
                all.last().map(|w| Duration::try_from_secs_f64(w.at_s).unwrap_or(Duration::MAX))
            }
        }
    }
}

/// Waypoints are in order and there is one.
fn interpolate(all: &[Waypoint], at_s: f64) -> JointVector<Degrees> {
    let next = all.partition_point(|w| w.at_s <= at_s);
    let row = match (next.checked_sub(1).and_then(|i| all.get(i)), all.get(next)) {
        (Some(a), Some(b)) => {
            let share = (at_s - a.at_s) / (b.at_s - a.at_s);
            core::array::from_fn(|i| a.joints[i] + share * (b.joints[i] - a.joints[i]))
        }
        (Some(end), None) | (None, Some(end)) => end.joints,
        (None, None) => [0.0; 6],
    };
    JointVector::<Degrees>::from_row(row)
}

impl Teleoperator for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn engage(&mut self, follower: &JointVector<Degrees>) -> Result<()> {
        self.started = None;
        self.finished = false;
        let first = self.pose(Duration::ZERO);
        self.coupling = Some(Coupling::engage(&first, follower, self.approach)?);
        Ok(())
    }

    fn action(&mut self, at: Timestamp) -> Result<Action> {
        let Some(mut coupling) = self.coupling else {
            return Err(Error::NotEngaged { name: self.name.clone() });
        };
        let own_time = self.started.map_or(Duration::ZERO, |started| at.since(started));
        let wanted = self.pose(own_time);
        for v in wanted.to_row() {
            crate::convert::finite("a joint of a script", v)?;
        }
        let joints = coupling.follow(&wanted, at);
        if self.started.is_none() && coupling.is_caught_up() {
            self.started = Some(at);
        }
        self.coupling = Some(coupling);
        self.finished = self.started.is_some() && self.length().is_some_and(|length| own_time >= length);
        Ok(Action { joints })
    }

    fn is_finished(&self) -> bool {
        self.finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_start(Duration::from_millis(ms))
    }

    fn row(values: [f64; 6]) -> JointVector<Degrees> {
        JointVector::<Degrees>::from_row(values)
    }

    fn nod() -> Scripted {
        let w = |ms, wrist| Waypoint::new(Duration::from_millis(ms), row([0.0, 0.0, 0.0, wrist, 0.0, 50.0]));
        Scripted::new("nod", alloc::vec![w(0, 0.0), w(1000, 20.0), w(1500, 0.0)]).unwrap()
    }

    #[test]
    fn waypoints_are_met_at_their_times_with_straight_lines_between() {
        let mut teleop = nod();
        teleop.engage(&row([0.0, 0.0, 0.0, 0.0, 0.0, 50.0])).unwrap();
        for (ms, wrist, end) in [
            (100, 0.0, false),
            (600, 10.0, false),
            (1100, 20.0, false),
            (1350, 10.0, false),
            (1600, 0.0, true),
            (9000, 0.0, true),
        ] {
            let got = teleop.action(at(ms)).unwrap().joints.body[3].0;
            assert!((got - wrist).abs() < 1e-9, "{ms} ms: {got}");
            assert_eq!(teleop.is_finished(), end, "{ms} ms");
        }
    }

    #[test]
    fn the_script_waits_until_the_arm_has_been_brought_to_its_first_pose() {
        let mut teleop = nod();
        teleop.engage(&row([80.0, 0.0, 0.0, 0.0, 0.0, 50.0])).unwrap();
        assert_eq!(teleop.action(at(0)).unwrap().joints.body[0], Degrees(80.0));
        assert_eq!(teleop.action(at(1000)).unwrap().joints.to_row()[..4], [40.0, 0.0, 0.0, 0.0]);
        assert_eq!(teleop.action(at(2000)).unwrap().joints.to_row()[..4], [0.0, 0.0, 0.0, 0.0]);
        assert_eq!(teleop.action(at(2500)).unwrap().joints.body[3], Degrees(10.0));
    }

    #[test]
    fn an_approach_may_be_limited_and_a_script_begins_again_when_it_is_engaged_again() {
        let mut teleop = nod().with_approach(CouplingOptions::default());
        assert!(matches!(teleop.engage(&row([80.0, 0.0, 0.0, 0.0, 0.0, 50.0])), Err(Error::PoseGap { .. })));
        let home = row([0.0, 0.0, 0.0, 0.0, 0.0, 50.0]);
        for start in [0, 5000] {
            teleop.engage(&home).unwrap();
            teleop.action(at(start)).unwrap();
            assert_eq!(teleop.action(at(start + 500)).unwrap().joints.body[3], Degrees(10.0));
        }
    }

    #[test]
    fn a_function_is_asked_for_its_pose_and_its_nonsense_refused() {
        let mut teleop =
            Scripted::from_fn("circle", |t| row([10.0 * t.as_secs_f64(), 0.0, 0.0, 0.0, 0.0, 50.0]));
        teleop.engage(&row([0.0, 0.0, 0.0, 0.0, 0.0, 50.0])).unwrap();
        teleop.action(at(0)).unwrap();
        assert_eq!(teleop.action(at(1500)).unwrap().joints.body[0], Degrees(15.0));
        let mut bad = Scripted::from_fn("bad", |_| row([f64::NAN; 6]));
        assert!(matches!(bad.engage(&JointVector::default()), Err(Error::NonFinite { .. })));
        assert!(matches!(bad.action(at(0)), Err(Error::NotEngaged { .. })));
    }

    #[test]
    fn scripts_that_cannot_be_played_say_which_waypoint() {
        let w = |at_s, v| Waypoint { at_s, joints: [v; 6] };
        for (waypoints, index) in [
            (alloc::vec![], 0),
            (alloc::vec![w(0.0, 1.0), w(0.0, 2.0)], 1),
            (alloc::vec![w(-1.0, 1.0)], 0),
            (alloc::vec![w(0.0, 1.0), w(f64::NAN, 2.0)], 1),
            (alloc::vec![w(0.0, f64::INFINITY)], 0),
        ] {
            let err = Scripted::new("x", waypoints).unwrap_err();
            assert!(matches!(err, Error::Waypoint { index: i, .. } if i == index), "{err}");
        }
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_file_that_is_no_script_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wave.json");
        std::fs::write(&path, r#"{"waypoint": [{"at_s": 0, "joints": [0, 0, 0, 0, 0]}]}"#).unwrap();
        let err = Script::load_json(&path).unwrap_err();
        assert!(err.to_string().contains("wave.json"), "{err}");
    }
}
