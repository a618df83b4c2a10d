//! From a sweep to homing offsets and ranges, and what there is to say about it. Arithmetic only.
//!
//! A servo shows `position = encoder - homing_offset`, within one turn. The range that was swept, unwrapped, is from
//! `u_min` to `u_max`; its middle shall read 2048:
//!
//! ```text
//! homing_offset = wrap((u_min + u_max) div 2 - 2048)     wrap: into -2047..=2047, -2048 becomes -2047
//! range         = u_min .. u_max, shifted so that the middle is 2048 (2047 where -2048 became -2047)
//! ```
//!
//! LeRobot takes the offset first, `reading in the middle pose - 2047`, and sweeps then; where the pose was far from the
//! middle, the travel crosses the wrap, and the range comes out as the whole turn.

use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use super::sweep::{JointSweep, shaft_degrees};
use super::{Calibration, JointCalibration};
use crate::convert::{MAX_TICK, TURN};
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId};
use crate::kinematics::{JAW_LIMITS, LIMITS, Limits};
use crate::units::{Degrees, Ticks};

/// What the middle of a range reads.
pub const MIDDLE: Ticks = Ticks(2048);

/// What LeRobot makes the middle pose read: `int(4095 / 2)`.
pub const LEROBOT_MIDDLE: Ticks = Ticks(2047);

/// A sweep below this share of the model's range is worth a note.
const NOTED_SHARE: f64 = 0.9;

/// A sweep above this share of the model's range is worth a note.
const LONG_SHARE: f64 = 1.3;

/// A roll sweep below this share is no try to reach both ends.
const ROLL_TRIED_SHARE: f64 = 0.5;

/// What comes first, the sweep or the homing offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HomingOrder {
    /// Sweep first, then the offset that puts the middle of the sweep at 2048. No wrap lies in the travel.
    #[default]
    SweepFirst,
    /// LeRobot's: the offset from a pose that the operator takes for the middle, then the sweep.
    MidPoseFirst,
}

/// What is wrong with the sweep of one joint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SweepFaultKind {
    /// It was not moved through enough of its range.
    TooSmall {
        /// How far it was moved.
        swept: Degrees,
        /// How far it has to be.
        needed: Degrees,
    },
    /// It turned by a whole turn or more.
    FullTurn {
        /// How far it was moved.
        swept: Degrees,
    },
    /// Readings were too far apart to be told from a turn the other way.
    Jumped {
        /// How many.
        jumps: u32,
    },
    /// It does not answer.
    Silent {
        /// Readings in a row that did not come.
        missed: u32,
    },
    /// The wrap of the encoder lies within the travel, since the middle pose was not in the middle.
    WrapInside {
        /// How far the pose was from the middle of the travel.
        off_middle: Degrees,
    },
}

/// A joint whose sweep cannot be used, and why.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SweepFault {
    /// The joint.
    pub joint: JointId,
    /// What is wrong.
    #[serde(flatten)]
    pub kind: SweepFaultKind,
}

impl fmt::Display for SweepFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joint = self.joint;
        match self.kind {
            SweepFaultKind::TooSmall { swept, needed } => write!(
                f,
                "{joint} was moved by {swept:.0}, at least {needed:.0} are needed: move it to both of its stops"
            ),
            SweepFaultKind::FullTurn { swept } => write!(
                f,
                "{joint} was moved by {swept:.0}, a turn or more: it has no stops, check its horn screw and that the \
                 cable is on the right servo"
            ),
            SweepFaultKind::Jumped { jumps } => write!(
                f,
                "{joint} moved by a quarter of a turn or more between readings ({jumps} times): sweep it again, slower"
            ),
            SweepFaultKind::Silent { missed } => {
                write!(
                    f,
                    "{joint} has not answered {missed} times in a row: check its cable, then sweep it again"
                )
            }
            SweepFaultKind::WrapInside { off_middle } => write!(
                f,
                "{joint} crosses the wrap of its encoder, since the middle pose was {off_middle:.0} off the middle of \
                 its travel: take the pose again, or sweep first"
            ),
        }
    }
}

/// Something to know about a joint that does not forbid the calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SweepNote {
    /// Less than the model's range: a stop was not reached, or something is in the way.
    Short {
        /// How much is missing.
        missing: Degrees,
    },
    /// Much more than the model's range.
    Long {
        /// How much is too much.
        excess: Degrees,
    },
    /// The roll's travel crosses the wrap, so its reading jumps by a turn there.
    RollWraps {
        /// How much of the travel lies beyond the wrap.
        beyond: Degrees,
    },
    /// The roll was not moved to both ends; it is taken as a full turn, so this costs nothing.
    RollNotSwept,
    /// No reference pose was given for the roll: its zero is where it was when the sweep ended.
    RollZeroByChance,
    /// LeRobot's middle pose was this far off the middle of the travel.
    MidPoseOff {
        /// How far.
        by: Degrees,
    },
}

impl fmt::Display for SweepNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { missing } => {
                write!(f, "{missing:.0} less than the model's range: was a stop not reached?")
            }
            Self::Long { excess } => write!(f, "{excess:.0} more than the model's range: is a stop missing?"),
            Self::RollWraps { beyond } => {
                write!(
                    f,
                    "its reading jumps by a turn {beyond:.0} before a stop: take a reference nearer to the middle"
                )
            }
            Self::RollNotSwept => f.write_str("not moved to both ends, taken as a full turn"),
            Self::RollZeroByChance => f.write_str("zero is where it was at the end: give a reference pose"),
            Self::MidPoseOff { by } => write!(f, "the middle pose was {by:.0} off the middle of its travel"),
        }
    }
}

/// What a calibration says about one joint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JointReport {
    /// The joint.
    pub joint: JointId,
    /// How far it was moved.
    pub swept: Degrees,
    /// The model's range.
    pub model: Degrees,
    /// By how much the middle of the sweep may be off the model's: half of what sweep and model differ by, as when only
    /// one stop was missed. A bound, not a measurement.
    pub middle_within: Degrees,
    /// By how much the middle of the sweep is off the model's, measured in a reference pose of the whole arm: the
    /// model's angle where the joint reads zero.
    pub middle_measured: Option<Degrees>,
    /// What there is to know.
    pub notes: Vec<SweepNote>,
}

/// A calibration that was computed but not written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CalibrationPlan {
    /// What goes into the servos and into the file.
    pub calibration: Calibration,
    /// What it says about each joint, in joint order.
    pub report: [JointReport; 6],
}

/// Where a joint was in a reference pose of the arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReferencePoint {
    /// Unwrapped position of the sweep.
    pub(super) at: i32,
    /// The model's angle in that pose; `None` for joints that the pose says nothing about.
    pub(super) model: Option<Degrees>,
}

/// What the arithmetic needs of one joint.
#[derive(Clone, Copy, Debug)]
pub(super) struct JointInput {
    pub(super) joint: JointId,
    pub(super) id: u8,
    pub(super) sweep: JointSweep,
    pub(super) reference: Option<ReferencePoint>,
    pub(super) mid_pose: Option<i32>,
}

/// The model's range of a joint; the roll's is that between its stops.
#[must_use]
pub fn model_range(joint: JointId) -> Degrees {
    let limits = model_limits(joint);
    Degrees((limits.upper.0 - limits.lower.0).to_degrees())
}

fn model_limits(joint: JointId) -> Limits {
    LIMITS.get(joint.index()).copied().unwrap_or(JAW_LIMITS)
}

/// An offset within the register: sign bit 11, so -2047 to 2047.
///
/// ```
/// use so101_hal::calibration::wrap_offset;
/// assert_eq!([wrap_offset(2047), wrap_offset(2048), wrap_offset(4095)], [2047, -2047, -1]);
/// ```
#[must_use]
pub const fn wrap_offset(offset: i32) -> i32 {
    let wrapped = (offset.rem_euclid(TURN) + TURN / 2) % TURN - TURN / 2;
    if wrapped == -TURN / 2 { -TURN / 2 + 1 } else { wrapped }
}

/// Computes all joints, or says what is wrong with all that are wrong.
pub(super) fn plan(inputs: &[JointInput; 6], order: HomingOrder, min_share: f64) -> Result<CalibrationPlan> {
    let mut faults: Vec<SweepFault> = Vec::new();
    let mut joints =
        [JointCalibration { id: 0, drive_mode: 0, homing_offset: 0, range_min: 0, range_max: 0 }; 6];
    for (input, slot) in inputs.iter().zip(&mut joints) {
        match plan_joint(input, order, min_share) {
            Ok(planned) => *slot = planned,
            Err(kind) => faults.push(SweepFault { joint: input.joint, kind }),
        }
    }
    if !faults.is_empty() {
        return Err(Error::Sweep { faults });
    }
    Ok(CalibrationPlan {
        calibration: Calibration::new(joints),
        report: inputs.each_ref().map(|input| report(input, order)),
    })
}

fn plan_joint(
    input: &JointInput,
    order: HomingOrder,
    min_share: f64,
) -> Result<JointCalibration, SweepFaultKind> {
    let JointInput { joint, id, sweep, .. } = *input;
    if sweep.missed() > 0 {
        return Err(SweepFaultKind::Silent { missed: sweep.missed() });
    }
    let entry = |homing_offset, range_min, range_max| JointCalibration {
        id,
        drive_mode: 0,
        homing_offset,
        range_min,
        range_max,
    };
    if joint == JointId::WristRoll {
        let zero = roll_zero(input, order);
        return Ok(entry(wrap_offset(zero), 0, MAX_TICK));
    }
    if sweep.jumps() > 0 {
        return Err(SweepFaultKind::Jumped { jumps: sweep.jumps() });
    }
    let (swept, needed) = (shaft_degrees(sweep.swept()), Degrees(model_range(joint).0 * min_share));
    if swept < needed {
        return Err(SweepFaultKind::TooSmall { swept, needed });
    }
    if sweep.swept().0 >= MAX_TICK {
        return Err(SweepFaultKind::FullTurn { swept });
    }
    let offset = match (order, input.mid_pose) {
        (HomingOrder::MidPoseFirst, Some(pose)) => pose - LEROBOT_MIDDLE.0,
        _ => middle(&sweep) - MIDDLE.0,
    };
    let homing_offset = wrap_offset(offset);
    let position = |u: i32| u - offset + wrap_shift(offset);
    let (min, max) = (position(sweep.min().0), position(sweep.max().0));
    if min < 0 || max > MAX_TICK {
        let off_middle = shaft_degrees(Ticks(MIDDLE.0 - (min + max) / 2));
        return Err(SweepFaultKind::WrapInside { off_middle });
    }
    Ok(entry(homing_offset, min, max))
}

/// The middle of a sweep, rounded down.
fn middle(sweep: &JointSweep) -> i32 {
    (sweep.min().0 + sweep.max().0).div_euclid(2)
}

/// By how much positions are off since -2048 became -2047: their shift, within one turn.
fn wrap_shift(offset: i32) -> i32 {
    (offset - wrap_offset(offset) + TURN / 2).rem_euclid(TURN) - TURN / 2
}

/// What has to be taken off the roll's reading so that the reference pose reads 2048 (LeRobot: the middle pose 2047).
fn roll_zero(input: &JointInput, order: HomingOrder) -> i32 {
    match (order, input.mid_pose, input.reference) {
        (HomingOrder::MidPoseFirst, Some(pose), _) => pose - LEROBOT_MIDDLE.0,
        (_, _, Some(reference)) => reference.at - MIDDLE.0,
        _ => input.sweep.now().0 - MIDDLE.0,
    }
}

fn report(input: &JointInput, order: HomingOrder) -> JointReport {
    let JointInput { joint, sweep, reference, .. } = *input;
    let (swept, model) = (shaft_degrees(sweep.swept()), model_range(joint));
    let mut notes = Vec::new();
    let limits = model_limits(joint);
    let mut middle_measured = None;
    if joint == JointId::WristRoll {
        roll_notes(input, order, &mut notes);
    } else {
        if swept.0 < NOTED_SHARE * model.0 {
            notes.push(SweepNote::Short { missing: Degrees(model.0 - swept.0) });
        } else if swept.0 > LONG_SHARE * model.0 {
            notes.push(SweepNote::Long { excess: Degrees(swept.0 - model.0) });
        }
        if let (HomingOrder::MidPoseFirst, Some(pose)) = (order, input.mid_pose) {
            let by = shaft_degrees(Ticks(pose - middle(&sweep)));
            if by.0.abs() > 10.0 {
                notes.push(SweepNote::MidPoseOff { by });
            }
        }
        middle_measured = reference.and_then(|r| {
            let reading = shaft_degrees(Ticks(r.at - middle(&sweep)));
            let model_middle = (limits.lower.0 + limits.upper.0).to_degrees() / 2.0;
            Some(Degrees(r.model?.0 - reading.0 - model_middle))
        });
    }
    JointReport {
        joint,
        swept,
        model,
        middle_within: Degrees((model.0 - swept.0).abs() / 2.0),
        middle_measured,
        notes,
    }
}

fn roll_notes(input: &JointInput, order: HomingOrder, notes: &mut Vec<SweepNote>) {
    let sweep = &input.sweep;
    if input.reference.is_none() && input.mid_pose.is_none() {
        notes.push(SweepNote::RollZeroByChance);
    }
    if sweep.jumps() > 0
        || shaft_degrees(sweep.swept()).0 < ROLL_TRIED_SHARE * model_range(JointId::WristRoll).0
    {
        notes.push(SweepNote::RollNotSwept);
        return;
    }
    let zero = roll_zero(input, order);
    for beyond in [zero - sweep.min().0, sweep.max().0 - zero - MAX_TICK] {
        if beyond > 0 {
            notes.push(SweepNote::RollWraps { beyond: shaft_degrees(Ticks(beyond)) });
        }
    }
}

impl CalibrationPlan {
    /// The report as a table, one line a joint, with what there is to know below.
    #[must_use]
    pub fn table(&self) -> alloc::string::String {
        use core::fmt::Write as _;
        let mut out = alloc::string::String::from(
            "joint           offset   min   max     swept     model  middle off the model's\n",
        );
        for (joint, r) in JOINTS.into_iter().zip(&self.report) {
            let c = self.calibration.get(joint);
            let middle = match r.middle_measured {
                Some(by) => alloc::format!("{:+.1} deg, measured", by.0),
                None if joint == JointId::WristRoll => "its zero is the pose given".into(),
                None => alloc::format!("within {:.1} deg", r.middle_within.0),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{:<14} {:>7} {:>5} {:>5} {:>5.1} deg {:>5.1} deg  {middle}",
                joint.name(),
                c.homing_offset,
                c.range_min,
                c.range_max,
                r.swept.0,
                r.model.0,
            );
        }
        for r in &self.report {
            for note in &r.notes {
                let _ = writeln!(out, "note: {}: {note}", r.joint);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests;
