//! What a calibration tells about how it was made.

use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use super::Calibration;
use super::plan::{LEROBOT_MIDDLE, MIDDLE, model_range};
use super::sweep::shaft_degrees;
use crate::convert::{MAX_TICK, SignBit};
use crate::joint::{JOINTS, JointId};
use crate::units::{Degrees, Ticks};

/// A range of a joint with stops that covers at least this much is the mark of a wrap inside the travel.
const NEARLY_A_TURN: i32 = 4000;

/// A middle off 2048 by more than this was not computed from the sweep.
const CENTRED: i32 = 2;

/// Where the old zero, the arm stretched out level, puts the middle of lift and elbow: -90 and 85 degrees.
const OLD_ZERO: [(JointId, f64); 2] = [(JointId::ShoulderLift, -90.0), (JointId::ElbowFlex, 84.5)];

/// How far from there still counts.
const OLD_ZERO_WITHIN_DEG: f64 = 25.0;

/// How a calibration was made, as its numbers tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CalibrationStyle {
    /// Every range is centred on 2048: the sweep came first, or the numbers are those of a model.
    SweepFirst,
    /// The middle pose came first, as LeRobot does it: the ranges are off 2048 by what the pose was off the middle.
    MidPoseFirst,
    /// The zero of lift and elbow is that of the arm stretched out level, as in the old calibration of the SO-100.
    OldZero,
    /// Nothing was ever calibrated: no offset, ranges of a whole turn.
    Factory,
}

/// Something about one joint of a calibration that will make trouble, or may.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StyleNote {
    /// The range of a joint with stops is nearly a whole turn: the wrap of the encoder was inside its travel when it was
    /// calibrated. Its angles jump, and its zero is anywhere.
    WrapInside {
        /// The joint.
        joint: JointId,
    },
    /// The range is much smaller than the model's.
    Narrow {
        /// The joint.
        joint: JointId,
        /// Its range.
        range: Degrees,
        /// The model's.
        model: Degrees,
    },
    /// The middle of the range is off 2048: the middle pose was that far off. Harmless by itself.
    OffCentre {
        /// The joint.
        joint: JointId,
        /// By how much.
        by: Degrees,
    },
    /// The offset fits no homing offset register (LeRobot: "Magnitude N exceeds 2047").
    OffsetTooLarge {
        /// The joint.
        joint: JointId,
        /// The offset.
        offset: Ticks,
    },
    /// The zero is that of the old calibration: add 90 degrees to lift, take 90 off elbow, or calibrate again.
    OldZero {
        /// The joint.
        joint: JointId,
        /// Where the middle of its range is.
        middle: Degrees,
    },
    /// The roll is not a full turn, as LeRobot's procedure would have it.
    RollNotFullTurn,
    /// The drive mode is 1, which LeRobot ignores in degrees.
    DriveMode {
        /// The joint.
        joint: JointId,
    },
}

impl StyleNote {
    /// Whether the arm has to be calibrated again.
    #[must_use]
    pub const fn is_serious(&self) -> bool {
        matches!(self, Self::WrapInside { .. } | Self::OffsetTooLarge { .. } | Self::OldZero { .. })
    }
}

impl fmt::Display for StyleNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrapInside { joint } => write!(
                f,
                "{joint} has nearly a whole turn for a range: the wrap of its encoder was inside its travel when it was \
                 calibrated; calibrate again, sweep first"
            ),
            Self::Narrow { joint, range, model } => {
                write!(f, "{joint} has a range of {range:.0}, the model {model:.0}: was a stop not reached?")
            }
            Self::OffCentre { joint, by } => {
                write!(f, "{joint}: the middle pose was {by:.0} off the middle of its travel")
            }
            Self::OffsetTooLarge { joint, offset } => write!(
                f,
                "{joint} has homing offset {}, which no servo can hold (-2047 to 2047): calibrate again",
                offset.0
            ),
            Self::OldZero { joint, middle } => write!(
                f,
                "{joint} has its middle at {middle:.0}: a zero of the old calibration (arm stretched out); calibrate again"
            ),
            Self::RollNotFullTurn => {
                f.write_str("wrist_roll is not a full turn (0 to 4095), as LeRobot has it")
            }
            Self::DriveMode { joint } => {
                write!(f, "{joint} has drive_mode 1, which LeRobot ignores in degrees: its sign may surprise")
            }
        }
    }
}

/// How this calibration was made, and what about it will make trouble.
///
/// ```
/// use so101_hal::Calibration;
/// use so101_hal::calibration::{CalibrationStyle, recognise};
/// let (style, notes) = recognise(&Calibration::model());
/// assert_eq!(style, CalibrationStyle::SweepFirst);
/// assert!(notes.is_empty());
/// ```
#[must_use]
pub fn recognise(calibration: &Calibration) -> (CalibrationStyle, Vec<StyleNote>) {
    let mut notes = Vec::new();
    let mut off_centre = false;
    let mut old = false;
    for joint in JOINTS {
        let c = calibration.get(joint);
        if c.homing_offset.unsigned_abs() > u32::from(SignBit::Bit11.max_magnitude()) {
            notes.push(StyleNote::OffsetTooLarge { joint, offset: Ticks(c.homing_offset) });
        }
        if c.drive_mode != 0 {
            notes.push(StyleNote::DriveMode { joint });
        }
        let span = c.range_max.saturating_sub(c.range_min);
        if joint == JointId::WristRoll {
            if (c.range_min, c.range_max) != (0, MAX_TICK) {
                notes.push(StyleNote::RollNotFullTurn);
            }
            continue;
        }
        if span >= NEARLY_A_TURN {
            notes.push(StyleNote::WrapInside { joint });
            continue;
        }
        let (range, model) = (shaft_degrees(Ticks(span)), model_range(joint));
        if range.0 < 0.75 * model.0 {
            notes.push(StyleNote::Narrow { joint, range, model });
        }
        // The gripper's percent are counted from its closed end: where its middle is does not matter.
        if joint == JointId::Gripper {
            continue;
        }
        let middle = c.range_min.saturating_add(c.range_max).div_euclid(2);
        let by = shaft_degrees(Ticks(middle - MIDDLE.0));
        if OLD_ZERO.iter().any(|(j, at)| *j == joint && (by.0 - at).abs() < OLD_ZERO_WITHIN_DEG) {
            old = true;
            notes.push(StyleNote::OldZero { joint, middle: by });
        } else if (middle - MIDDLE.0).abs() > CENTRED && (middle - LEROBOT_MIDDLE.0).abs() > CENTRED {
            off_centre = true;
            notes.push(StyleNote::OffCentre { joint, by });
        }
    }
    let factory =
        calibration.iter().all(|(_, c)| (c.homing_offset, c.range_min, c.range_max) == (0, 0, MAX_TICK));
    let style = match (factory, old, off_centre || notes.iter().any(StyleNote::is_serious)) {
        (true, ..) => CalibrationStyle::Factory,
        (_, true, _) => CalibrationStyle::OldZero,
        (.., true) => CalibrationStyle::MidPoseFirst,
        _ => CalibrationStyle::SweepFirst,
    };
    (style, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::JointCalibration;

    fn with(joint: JointId, change: impl Fn(&mut JointCalibration)) -> Calibration {
        let mut joints = *Calibration::model().joints();
        change(&mut joints[joint.index()]);
        Calibration::new(joints)
    }

    fn joint_of(notes: &[StyleNote]) -> &StyleNote {
        let [note] = notes else { panic!("{notes:?}") };
        note
    }

    #[test]
    fn a_range_of_nearly_a_turn_is_a_wrap_inside_the_travel() {
        let (style, notes) = recognise(&with(JointId::ElbowFlex, |c| (c.range_min, c.range_max) = (3, 4093)));
        assert_eq!(style, CalibrationStyle::MidPoseFirst);
        assert_eq!(*joint_of(&notes), StyleNote::WrapInside { joint: JointId::ElbowFlex });
        assert!(notes[0].is_serious());
    }

    #[test]
    fn the_homing_before_the_sweep_shows_in_the_middle() {
        let (style, notes) = recognise(&with(JointId::ShoulderPan, |c| {
            (c.homing_offset, c.range_min, c.range_max) = (-709, 741, 3344 - 120);
        }));
        assert_eq!(style, CalibrationStyle::MidPoseFirst);
        let StyleNote::OffCentre { joint: JointId::ShoulderPan, by } = joint_of(&notes) else {
            panic!("{notes:?}")
        };
        assert!((by.0 + 5.8).abs() < 0.1 && !notes[0].is_serious(), "{by}");
    }

    #[test]
    fn the_old_zero_of_lift_and_elbow_is_named() {
        let mut joints = *Calibration::model().joints();
        for (i, shift) in [(1, -1024), (2, 970)] {
            joints[i].range_min += shift;
            joints[i].range_max += shift;
        }
        // Limits of the old description: lift -190 to 10 deg, elbow -10 to 180 deg.
        let (style, notes) = recognise(&Calibration::new(joints));
        assert_eq!((style, notes.len()), (CalibrationStyle::OldZero, 2));
        assert!(notes[0].to_string().contains("old calibration"), "{}", notes[0]);
    }

    #[test]
    fn offsets_that_no_servo_holds_and_odd_rolls_are_named() {
        let (_, notes) = recognise(&with(JointId::Gripper, |c| c.homing_offset = -2709));
        assert!(notes[0].to_string().contains("-2709"), "{notes:?}");
        let (_, notes) = recognise(&with(JointId::WristRoll, |c| (c.range_min, c.range_max) = (200, 3900)));
        assert_eq!(notes, [StyleNote::RollNotFullTurn]);
        let (_, notes) = recognise(&with(JointId::WristFlex, |c| c.drive_mode = 1));
        assert_eq!(notes, [StyleNote::DriveMode { joint: JointId::WristFlex }]);
        let (_, notes) = recognise(&with(JointId::WristFlex, |c| (c.range_min, c.range_max) = (1700, 2396)));
        assert!(matches!(notes[..], [StyleNote::Narrow { .. }]), "{notes:?}");
    }

    #[test]
    fn servos_that_were_never_calibrated_are_told_apart() {
        let mut joints = *Calibration::model().joints();
        joints.iter_mut().for_each(|c| (c.homing_offset, c.range_min, c.range_max) = (0, 0, 4095));
        assert_eq!(recognise(&Calibration::new(joints)).0, CalibrationStyle::Factory);
    }
}
