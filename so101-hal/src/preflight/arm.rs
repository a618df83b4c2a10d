//! Calibration, torque and pose of the arm.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::arm::Torque;
use crate::calibration::Calibration;
use crate::convert::TURN;
use crate::error::Result;
use crate::joint::{JOINTS, JointId, JointVector};
use crate::protocol::ServoId;
use crate::registers;
use crate::units::{Degrees, Ticks};

use super::item::Item;
use super::limits::Limits;
use super::memory::{Finding, Survey, combine};
use super::report::{Check, Verdict};

/// What [`pose`] compares with.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PoseOptions {
    /// Figures to judge by.
    pub limits: Limits,
    /// Where the arm stood at the start of the episodes before.
    pub reference: Option<JointVector<Degrees>>,
}

impl PoseOptions {
    /// The pose that the arm should start in.
    #[must_use]
    pub const fn with_reference(mut self, joints: JointVector<Degrees>) -> Self {
        self.reference = Some(joints);
        self
    }
}

/// Whether the servos' EEPROM holds the calibration: offsets and position limits.
#[must_use]
pub fn calibration_equal(survey: &Survey, calibration: &Calibration) -> Check {
    let found: Vec<(JointId, ServoId, Finding)> = survey
        .answering()
        .map(|(joint, m)| {
            let c = calibration.get(joint);
            let offset = m.value(&registers::HOMING_OFFSET);
            let (min, max) = (m.value(&registers::MIN_POSITION_LIMIT), m.value(&registers::MAX_POSITION_LIMIT));
            let finding = if offset != c.homing_offset {
                Finding::new(
                    format!("offset {offset}, file {}", c.homing_offset),
                    Verdict::Fail,
                    "positions mean something else than the file says: give the file of this arm, write the file to \
                     the servos, or calibrate again",
                )
            } else if (min, max) != (c.range_min, c.range_max) {
                Finding::new(
                    format!("limits {min} to {max}, file {} to {}", c.range_min, c.range_max),
                    Verdict::Warn,
                    "write the calibration to the servos (calibrate does)",
                )
            } else {
                Finding::new("equal", Verdict::Pass, String::new())
            };
            (joint, m.id(), finding)
        })
        .collect();
    combine(Item::CalibrationEqual, &found)
}

/// Another calibration file of the same arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationFile {
    /// Where it is.
    pub path: String,
    /// When it was changed, seconds since 1970.
    pub modified_unix_s: u64,
}

/// Whether the file in use is the newest of this arm's.
#[must_use]
pub fn calibration_newest(used: &CalibrationFile, others: &[CalibrationFile]) -> Check {
    let newer = others.iter().filter(|o| o.path != used.path && o.modified_unix_s > used.modified_unix_s);
    match newer.max_by_key(|o| o.modified_unix_s) {
        None => Check::new(Item::CalibrationNewest, Verdict::Pass).value(used.path.clone()),
        Some(newer) => Check::new(Item::CalibrationNewest, Verdict::Warn)
            .value(format!("{} is newer than {}", newer.path, used.path))
            .advice("remove the old file, or name the right one with --calibration"),
    }
}

/// Whether the motors are as expected, or at least all in the same state.
#[must_use]
pub fn torque_state(survey: &Survey, expected: Option<Torque>) -> Check {
    let of = |m: &super::ServoMemory| {
        Torque::from_register(u8::try_from(m.value(&registers::TORQUE_ENABLE)).unwrap_or(u8::MAX))
    };
    let states: Vec<Torque> = survey.answering().map(|(_, m)| of(m)).collect();
    let mixed = states.iter().any(|s| Some(s) != states.first());
    let limit = expected.map_or_else(
        || Item::TorqueState.limit().to_string(),
        |wanted| format!("{} in all servos", word(wanted)),
    );
    survey
        .judge(Item::TorqueState, |_, m| {
            let state = of(m);
            match expected {
                Some(wanted) if state != wanted => {
                    let advice = match wanted {
                        Torque::Off => "something left the motors on: hold the arm, then relax it",
                        _ => "the arm is limp where it should hold itself: check for alarms, then switch it on again",
                    };
                    Finding::new(word(state), Verdict::Fail, advice)
                }
                None if mixed => {
                    Finding::new(word(state), Verdict::Warn, "some joints are stiff, some limp: relax or hold all")
                }
                _ => Finding::new(word(state), Verdict::Pass, String::new()),
            }
        })
        .limit(limit)
}

fn word(torque: Torque) -> String {
    match torque {
        Torque::Off => "off".to_string(),
        Torque::On => "on".to_string(),
        Torque::Other(value) => format!("damped ({value})"),
    }
}

/// Where the joints are: in their ranges, away from the wrap, at the reference pose.
///
/// # Errors
/// A calibration that is not usable.
pub fn pose(survey: &Survey, calibration: &Calibration, options: &PoseOptions) -> Result<Vec<Check>> {
    let limits = &options.limits;
    let position = |m: &super::ServoMemory| m.telemetry().position;
    let range = survey.judge(Item::JointRange, |joint, m| {
        let (ticks, c) = (position(m).0, calibration.get(joint));
        let beyond = degrees(c.range_min.saturating_sub(ticks).max(ticks.saturating_sub(c.range_max)).max(0));
        let verdict = if beyond == 0.0 {
            Verdict::Pass
        } else if beyond < limits.margin.0 {
            Verdict::Warn
        } else {
            Verdict::Fail
        };
        let value = match verdict {
            Verdict::Pass => "inside".to_string(),
            _ => format!("{beyond:.1} deg beyond ({ticks} of {} to {})", c.range_min, c.range_max),
        };
        Finding::new(
            value,
            verdict,
            "move the joint into its range by hand; where it cannot reach it, calibrate again",
        )
    });
    let wrap = survey.judge(Item::JointWrap, |_, m| {
        let within = position(m).0.rem_euclid(TURN);
        let distance = degrees(within.min(TURN - within));
        let verdict = Verdict::fail_unless(distance > limits.margin.0);
        let value = match verdict {
            Verdict::Pass => format!("{distance:.0} deg"),
            _ => format!("{distance:.1} deg"),
        };
        let advice = "a step further and the position jumps by a turn: move the joint away by hand; where its range \
                      holds the wrap, calibrate again";
        Finding::new(value, verdict, advice)
    });
    let present = joints(survey, calibration)?;
    let start = match (&options.reference, present) {
        (None, _) => Check::skipped(Item::StartPose, "no reference pose given"),
        (_, None) => Check::skipped(Item::StartPose, "not all servos answer"),
        (Some(reference), Some(present)) => start_pose(&present, reference, limits),
    };
    Ok(alloc::vec![range, nearest_wrap(wrap, survey), start])
}

/// The figures of all joints say less than the smallest.
fn nearest_wrap(check: Check, survey: &Survey) -> Check {
    if check.verdict != Verdict::Pass {
        return check;
    }
    let distances = survey.answering().map(|(_, m)| {
        let within = m.telemetry().position.0.rem_euclid(TURN);
        within.min(TURN - within)
    });
    let least = degrees(distances.min().unwrap_or(0));
    check.value(format!("{least:.0} deg at least"))
}

fn degrees(ticks: i32) -> f64 {
    f64::from(ticks) * 360.0 / f64::from(TURN)
}

/// The joints of a survey that has all of them.
///
/// # Errors
/// A calibration that is not usable.
pub fn joints(survey: &Survey, calibration: &Calibration) -> Result<Option<JointVector<Degrees>>> {
    let mut ticks = [Ticks(0); 6];
    if survey.answering().count() < JOINTS.len() {
        return Ok(None);
    }
    for (joint, m) in survey.answering() {
        ticks[joint.index()] = m.telemetry().position;
    }
    calibration.to_degrees(&ticks).map(Some)
}

/// Whether an arm stands at the reference pose.
#[must_use]
pub fn start_pose(
    present: &JointVector<Degrees>,
    reference: &JointVector<Degrees>,
    limits: &Limits,
) -> Check {
    let (body, gripper) = (limits.start_tolerance.0, limits.start_gripper_tolerance.0);
    let advice = "move the arm to the pose that the episodes before started in";
    gaps(Item::StartPose, present, reference, [body, gripper])
        .limit(format!("within {body} deg, gripper {gripper} % of the reference"))
        .advice(advice)
}

/// Whether leader and follower stand alike, so that coupling them does not make the follower jump.
#[must_use]
pub fn leader_pose(leader: &JointVector<Degrees>, follower: &JointVector<Degrees>, limits: &Limits) -> Check {
    let (body, gripper) = (limits.leader_gap.0, limits.leader_gripper_gap.0);
    let advice = "bring the leader to the follower's pose before they are coupled; where both look alike, calibrate \
                  the pair again with a common reference pose";
    gaps(Item::LeaderPose, leader, follower, [body, gripper])
        .limit(format!("body {body} deg, gripper {gripper} % apart at most"))
        .advice(advice)
}

fn gaps(item: Item, a: &JointVector<Degrees>, b: &JointVector<Degrees>, [body, gripper]: [f64; 2]) -> Check {
    let gaps = a.to_row().into_iter().zip(b.to_row()).map(|(a, b)| (a - b).abs());
    let mut worst = 0.0_f64;
    let mut far: Vec<String> = Vec::new();
    for (joint, gap) in JOINTS.into_iter().zip(gaps) {
        let (limit, unit) = if joint == JointId::Gripper { (gripper, "%") } else { (body, "deg") };
        if joint != JointId::Gripper {
            worst = worst.max(gap);
        }
        // NaN is far.
        if gap > limit || gap.is_nan() {
            far.push(format!("{joint}: {gap:.1} {unit} apart"));
        }
    }
    let value = if far.is_empty() { format!("{worst:.1} deg apart at most") } else { far.join(", ") };
    Check::new(item, Verdict::fail_unless(far.is_empty())).value(value)
}
