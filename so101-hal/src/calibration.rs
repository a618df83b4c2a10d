//! The calibration of an arm: LeRobot's file, where it is kept, and the procedure that makes one.
//!
//! | what | where |
//! |---|---|
//! | [`Calibration`] | the values, and the file's text byte for byte |
//! | [`Calibration::load`], [`save`](Calibration::save), [`Folders`] | files, in LeRobot's folders of all ages |
//! | [`Calibrator`] | the procedure: sweep, reference pose, [`CalibrationPlan`], write and verify |
//! | [`recognise`] | how a calibration was made, and what about it will make trouble |
//! | [`PairOffset`] | what makes the roll of a leader and a follower agree |

mod eeprom;
#[cfg(feature = "std")]
mod file;
#[cfg(feature = "std")]
mod folders;
mod pair;
mod plan;
mod procedure;
mod style;
mod sweep;

pub use eeprom::ensure as ensure_register;
#[cfg(feature = "std")]
pub use file::{Existing, Saved};
#[cfg(feature = "std")]
pub use folders::{Folders, FoundCalibration};
pub use pair::PairOffset;
pub use plan::{
    CalibrationPlan, HomingOrder, JointReport, LEROBOT_MIDDLE, MIDDLE, SweepFault, SweepFaultKind, SweepNote,
    model_range, wrap_offset,
};
pub use procedure::{Calibrated, Calibrator, CalibratorOptions, ReferencePose, read_pose};
pub use style::{CalibrationStyle, StyleNote, recognise};
pub use sweep::{JointSweep, MAX_GAP, MAX_STEP, SampleOutcome, shaft_degrees};

/// Which arm of a pair a calibration is of.
pub use crate::discovery::ArmRole as Role;

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Write as _};

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId};

/// One motor of a LeRobot calibration file: where its zero is and how far it was moved by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointCalibration {
    /// Id of the servo on the bus.
    pub id: u8,
    /// 0, or 1 when the joint turns against the servo. LeRobot writes 0 and ignores it in degrees.
    pub drive_mode: u8,
    /// Homing offset register, in encoder steps: `position = encoder - homing_offset`.
    pub homing_offset: i32,
    /// Lowest position reached, in encoder steps.
    pub range_min: i32,
    /// Highest position reached, in encoder steps.
    pub range_max: i32,
}

impl JointCalibration {
    /// Checks that the conversions are defined: `range_min < range_max`, and `drive_mode` 0 or 1.
    ///
    /// # Errors
    /// [`Error::CalibrationRange`] or [`Error::DriveMode`].
    pub const fn validate(&self) -> Result<()> {
        if self.range_min >= self.range_max {
            return Err(Error::CalibrationRange { id: self.id, min: self.range_min, max: self.range_max });
        }
        if self.drive_mode > 1 {
            return Err(Error::DriveMode { id: self.id, drive_mode: self.drive_mode });
        }
        Ok(())
    }
}

/// The calibration of all six motors.
///
/// Its serde form is the object that LeRobot stores as
/// `calibration/robots/so_follower/<id>.json`: motor name to [`JointCalibration`], in joint order.
///
/// ```
/// use so101_hal::{Calibration, JointId};
/// # fn main() -> Result<(), serde_json::Error> {
/// let text = Calibration::model().to_json();
/// let read: Calibration = serde_json::from_str(&text)?;
/// assert_eq!(read.get(JointId::WristRoll).range_max, 4095);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Calibration {
    joints: [JointCalibration; 6],
}

impl Calibration {
    /// A calibration from one entry a joint, in the order of [`JOINTS`].
    #[must_use]
    pub const fn new(joints: [JointCalibration; 6]) -> Self {
        Self { joints }
    }

    /// An arm whose LeRobot degrees are the model's joint angles: each range is centred on the model's zero and covers
    /// the model's limits (within 0.03 deg), and the gripper's spans the jaw from pad contact to its upper limit.
    #[must_use]
    pub const fn model() -> Self {
        const fn joint(id: u8, range_min: i32, range_max: i32) -> JointCalibration {
            JointCalibration { id, drive_mode: 0, homing_offset: 0, range_min, range_max }
        }
        Self::new([
            joint(1, 796, 3299),
            joint(2, 910, 3185),
            joint(3, 946, 3149),
            joint(4, 967, 3128),
            joint(5, 0, 4095),
            joint(6, 2047, 3311),
        ])
    }

    /// The entry of a joint.
    #[must_use]
    pub const fn get(&self, joint: JointId) -> &JointCalibration {
        &self.joints[joint.index()]
    }

    /// All entries in the order of [`JOINTS`].
    #[must_use]
    pub const fn joints(&self) -> &[JointCalibration; 6] {
        &self.joints
    }

    /// All entries with their joints, in order.
    pub fn iter(&self) -> impl Iterator<Item = (JointId, &JointCalibration)> {
        JOINTS.into_iter().zip(&self.joints)
    }

    /// The text of LeRobot's calibration file, byte for byte: four spaces of indent, no newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::from("{");
        for (joint, c) in self.iter() {
            let comma = if joint == JointId::ShoulderPan { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{comma}\n    \"{joint}\": {{\n        \"id\": {},\n        \"drive_mode\": {},\n        \
                 \"homing_offset\": {},\n        \"range_min\": {},\n        \"range_max\": {}\n    }}",
                c.id, c.drive_mode, c.homing_offset, c.range_min, c.range_max
            );
        }
        text.push_str("\n}");
        text
    }
}

impl Serialize for Calibration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(JOINTS.len()))?;
        for (joint, entry) in self.iter() {
            map.serialize_entry(joint.name(), entry)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Calibration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CalibrationVisitor)
    }
}

struct CalibrationVisitor;

impl<'de> Visitor<'de> for CalibrationVisitor {
    type Value = Calibration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with an entry for each of the six motors of an SO-101")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Calibration, A::Error> {
        let mut found = [None; 6];
        while let Some(name) = map.next_key::<String>()? {
            let joint = JOINTS
                .into_iter()
                .find(|j| j.name() == name)
                .ok_or_else(|| A::Error::custom(format!("motor {name:?} is not one of an SO-101's six")))?;
            let entry: JointCalibration =
                map.next_value().map_err(|e| A::Error::custom(format!("motor {joint}: {e}")))?;
            if found[joint.index()].replace(entry).is_some() {
                return Err(A::Error::custom(format!("motor {joint} appears twice")));
            }
        }
        let take = |joint: JointId| {
            found[joint.index()]
                .ok_or_else(|| A::Error::custom(format!("motor {joint} is missing: calibrate all six")))
        };
        Ok(Calibration::new([
            take(JointId::ShoulderPan)?,
            take(JointId::ShoulderLift)?,
            take(JointId::ElbowFlex)?,
            take(JointId::WristFlex)?,
            take(JointId::WristRoll)?,
            take(JointId::Gripper)?,
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Calibration, String> {
        serde_json::from_str(text).map_err(|e| format!("{e}"))
    }

    #[test]
    fn a_missing_motor_is_named() {
        let text = Calibration::model().to_json().replace("\"wrist_flex\"", "\"wrist_flexx\"");
        assert!(parse(&text).unwrap_err().starts_with("motor \"wrist_flexx\" is not one of"));
        let start = text.find("    \"wrist_flexx\"").unwrap();
        let end = text.find("    \"wrist_roll\"").unwrap();
        let text = format!("{}{}", &text[..start], &text[end..]);
        assert!(parse(&text).unwrap_err().starts_with("motor wrist_flex is missing"));
    }

    #[test]
    fn an_unusable_entry_is_an_error_that_names_its_motor() {
        let good = Calibration::model().to_json();
        for (from, to, says) in [
            ("\"range_max\": 3299", "\"range_max\": \"far\"", "motor shoulder_pan: invalid type: string"),
            ("\"id\": 6", "\"id\": 600", "motor gripper: invalid value: integer `600`"),
            ("\"id\": 2,", "", "motor shoulder_lift: missing field `id`"),
            ("\"id\": 3", "\"idd\": 3", "motor elbow_flex: unknown field `idd`"),
            ("elbow_flex", "shoulder_pan", "motor shoulder_pan appears twice"),
        ] {
            let err = parse(&good.replace(from, to)).unwrap_err();
            assert!(err.starts_with(says) && err.contains("line"), "{err}");
        }
    }

    #[test]
    fn the_order_of_the_motors_in_the_file_does_not_matter() {
        let mut reversed = serde_json::Map::new();
        let serde_json::Value::Object(map) = serde_json::to_value(Calibration::model()).unwrap() else {
            panic!()
        };
        reversed.extend(map.into_iter().rev());
        let text = serde_json::to_string(&reversed).unwrap();
        assert!(text.starts_with("{\"gripper\""));
        assert_eq!(parse(&text), Ok(Calibration::model()));
    }
}
