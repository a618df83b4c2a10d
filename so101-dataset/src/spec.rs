//! What a dataset is recorded as, and the comparison that guards adding to one.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use so101_hal::CameraSpec;

use crate::error::{Error, Result};
use crate::features::{DEFAULT_FEATURES, Features};
use crate::info::Info;

/// Unit of the five body joints in `action` and `observation.state`; the gripper is always 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BodyUnit {
    /// LeRobot's degrees from the middle of the calibrated range.
    #[default]
    Degrees,
    /// LeRobot's `RANGE_M100_100`.
    Normalized,
}

/// Units of the recorded numbers, which LeRobot's own files do not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Units {
    /// Of the five body joints.
    pub body_joints: BodyUnit,
    /// Of the gripper: `percent`, 0 closed.
    pub gripper: String,
}

impl Default for Units {
    fn default() -> Self {
        Self { body_joints: BodyUnit::default(), gripper: "percent".to_owned() }
    }
}

/// What stays the same over all sessions of a dataset, besides its features.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The object in the scene, by its name in the plan.
    pub object: Option<String>,
    /// Anything else that later sessions must match, such as the rig.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fixed: Map<String, Value>,
}

impl SessionInfo {
    /// A session with this object.
    pub fn with_object(object: impl Into<String>) -> Self {
        Self { object: Some(object.into()), fixed: Map::new() }
    }
}

/// Everything that a dataset is created with, and that recording into it again must match.
///
/// ```
/// use so101_dataset::DatasetSpec;
/// use so101_hal::CameraSpec;
/// let spec = DatasetSpec::so101(30, vec![CameraSpec::new("main", 640, 480)]);
/// assert_eq!(spec.robot_type, "so_follower");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetSpec {
    /// Rows and pictures a second.
    pub fps: u32,
    /// LeRobot's name of the robot.
    pub robot_type: String,
    /// Cameras, in the order of their columns.
    pub cameras: Vec<CameraSpec>,
    /// Units of the joint values.
    pub units: Units,
    /// What later sessions have to keep.
    pub session: SessionInfo,
}

impl DatasetSpec {
    /// An SO-101 (`so_follower`), joints in degrees.
    #[must_use]
    pub fn so101(fps: u32, cameras: Vec<CameraSpec>) -> Self {
        Self {
            fps,
            robot_type: "so_follower".to_owned(),
            cameras,
            units: Units::default(),
            session: SessionInfo::default(),
        }
    }

    /// The features: `action`, `observation.state`, the cameras, the five default columns.
    #[must_use]
    pub fn features(&self) -> Features {
        Features::so101(&self.cameras)
    }

    /// Checks the specification by itself.
    ///
    /// # Errors
    /// [`Error::Spec`] for 0 frames a second, no robot type, a camera without pixels, and camera names that are
    /// empty, used twice, or no part of a path.
    pub fn validate(&self) -> Result<()> {
        let fail = |what, value: &dyn core::fmt::Display, rule| {
            Err(Error::Spec { what, value: value.to_string(), rule })
        };
        if !(1..=1000).contains(&self.fps) {
            return fail("the frame rate", &self.fps, "1 to 1000 frames a second");
        }
        if self.robot_type.is_empty() {
            return fail("the robot type", &"empty", "a name such as so_follower");
        }
        for (i, camera) in self.cameras.iter().enumerate() {
            let name = camera.name.as_str();
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
                return fail("a camera's name", &format!("{name:?}"), "letters, digits, '_' and '-'");
            }
            if self.cameras.iter().take(i).any(|c| c.name == name) {
                return fail("a camera's name", &format!("{name:?} twice"), "used once");
            }
            if camera.size.width == 0 || camera.size.height == 0 {
                return fail("a camera's size", &camera.size, "at least one pixel");
            }
        }
        Ok(())
    }

    /// What of this specification the dataset contradicts; empty when recording may go on.
    #[must_use]
    pub(crate) fn diff(&self, info: &Info, recorded: &Recording) -> SpecDiff {
        let mut rows = Vec::new();
        let mut compare = |what: &str, dataset: String, asked: String| {
            if dataset != asked {
                rows.push(SpecDifference { what: what.to_owned(), dataset, asked });
            }
        };
        let show = |v: &Option<String>| v.clone().unwrap_or_else(|| "none".to_owned());
        compare("fps", info.fps.to_string(), self.fps.to_string());
        // `so101_follower` is what LeRobot called the same arm before 0.4.
        let alias =
            |name: &str| if name == "so101_follower" { "so_follower".to_owned() } else { name.to_owned() };
        compare("robot_type", alias(&show(&info.robot_type)), alias(&self.robot_type));
        compare(
            "unit of body joints",
            name_of(&recorded.units.body_joints),
            name_of(&self.units.body_joints),
        );
        compare("unit of the gripper", recorded.units.gripper.clone(), self.units.gripper.clone());
        compare("object", show(&recorded.session.object), show(&self.session.object));
        let fixed = (&recorded.session.fixed, &self.session.fixed);
        for key in fixed.0.keys().chain(fixed.1.keys().filter(|k| !fixed.0.contains_key(*k))) {
            let value =
                |m: &Map<String, Value>| m.get(key).map_or_else(|| "none".to_owned(), Value::to_string);
            compare(key, value(fixed.0), value(fixed.1));
        }
        let asked = self.features();
        let order = |f: &Features| {
            let own = f.iter().map(|(n, _)| n).filter(|n| !DEFAULT_FEATURES.contains(n));
            own.collect::<Vec<_>>().join(", ")
        };
        compare("features", order(&info.features), order(&asked));
        for (name, want) in asked.iter() {
            if let Some(have) = info.features.get(name) {
                let kind = |f: &crate::features::Feature| format!("{} {:?}", f.dtype, f.shape);
                compare(name, kind(have), kind(want));
                if have.element_names() != want.element_names() {
                    compare(&format!("names of {name}"), have.names.to_string(), want.names.to_string());
                }
            }
        }
        SpecDiff(rows)
    }
}

fn name_of(unit: &BodyUnit) -> String {
    match unit {
        BodyUnit::Degrees => "degrees",
        BodyUnit::Normalized => "normalized",
    }
    .to_owned()
}

/// `meta/so101/recording.json`: what LeRobot's files do not say about the whole dataset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Version of the sidecar's layout, 1.
    pub format: u32,
    /// Units of the joint values.
    pub units: Units,
    /// What all sessions share.
    pub session: SessionInfo,
}

impl Recording {
    /// Of a specification.
    #[must_use]
    pub fn of(spec: &DatasetSpec) -> Self {
        Self { format: 1, units: spec.units.clone(), session: spec.session.clone() }
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({ "format": self.format, "units": self.units, "session": self.session })
    }
}

/// One line of a [`SpecDiff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecDifference {
    /// What differs.
    pub what: String,
    /// The dataset's value.
    pub dataset: String,
    /// The value asked for.
    pub asked: String,
}

/// Where a recording does not fit a dataset. Displays as one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecDiff(pub Vec<SpecDifference>);

impl SpecDiff {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A table with the columns what, dataset, asked for; one line a difference, after a heading.
    #[must_use]
    pub fn table(&self) -> String {
        let heading = ["", "dataset", "asked for"];
        let rows: Vec<[&str; 3]> = std::iter::once(heading)
            .chain(self.0.iter().map(|d| [d.what.as_str(), d.dataset.as_str(), d.asked.as_str()]))
            .collect();
        let width = |column: usize| rows.iter().map(|r| r.get(column).map_or(0, |c| c.chars().count())).max();
        let (first, second) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
        let lines =
            rows.iter().map(|[a, b, c]| format!("{a:<first$}  {b:<second$}  {c}").trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl core::fmt::Display for SpecDiff {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "; " };
            write!(f, "{comma}{}: dataset {}, asked for {}", d.what, d.dataset, d.asked)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> DatasetSpec {
        DatasetSpec::so101(30, vec![CameraSpec::new("main", 64, 48), CameraSpec::new("gripper", 32, 24)])
    }

    #[test]
    fn a_specification_fits_the_dataset_that_it_made() {
        let info = Info::new(30, "so_follower", spec().features());
        assert_eq!(spec().diff(&info, &Recording::of(&spec())), SpecDiff::default());
    }

    #[test]
    fn every_difference_is_a_line_of_the_table() {
        let info = Info::new(30, "so_follower", spec().features());
        let mut asked = spec();
        asked.fps = 60;
        asked.session.object = Some("cube".into());
        asked.units.body_joints = BodyUnit::Normalized;
        asked.cameras = vec![CameraSpec::new("main", 128, 96)];
        let diff = asked.diff(&info, &Recording::of(&spec()));
        let what: Vec<_> = diff.0.iter().map(|d| d.what.as_str()).collect();
        assert_eq!(what, ["fps", "unit of body joints", "object", "features", "observation.images.main"]);
        let table = diff.table();
        assert!(table.contains("fps                      30"), "{table}");
        assert_eq!(table.lines().count(), 6);
        assert!(diff.to_string().starts_with("fps: dataset 30, asked for 60; unit of body joints"));
    }

    #[test]
    fn the_old_name_of_the_arm_is_the_same_arm() {
        let info = Info::new(30, "so101_follower", spec().features());
        assert!(spec().diff(&info, &Recording::of(&spec())).is_empty());
    }

    #[test]
    fn impossible_specifications_are_refused() {
        let with = |f: &dyn Fn(&mut DatasetSpec)| {
            let mut s = spec();
            f(&mut s);
            s
        };
        for (what, bad) in [
            ("fps 0", with(&|s| s.fps = 0)),
            ("a slash", with(&|s| s.cameras[0].name = "a/b".into())),
            ("no name", with(&|s| s.cameras[0].name = String::new())),
            ("a name twice", with(&|s| s.cameras[1].name = "main".into())),
            ("no pixels", with(&|s| s.cameras[1].size.width = 0)),
            ("no robot", with(&|s| s.robot_type.clear())),
        ] {
            assert!(matches!(bad.validate(), Err(Error::Spec { .. })), "{what}");
        }
        assert!(spec().validate().is_ok());
    }
}
