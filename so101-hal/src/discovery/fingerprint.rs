//! Which arm this is, by what its servos hold.
//!
//! Homing offsets and position limits come from a calibration, by hand, and no two are alike: they are in the servos'
//! EEPROM and in the calibration file. Nothing is written to read them.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::Serialize;

use crate::bus::{ServoBus, SyncReplies};
use crate::calibration::Calibration;
use crate::error::Result;
use crate::joint::{JOINTS, JointId};
use crate::protocol::{Block, ServoId};
use crate::registers::{self, Register};

/// The least number of servos that agree with a file for it to be called near.
const NEAR_SERVOS: usize = 3;

/// The block with both position limits.
const LIMITS: Block = Block::new(9, 4);

/// The block with `Max_Torque_Limit` to `P_Coefficient`.
const PROFILE: Block = Block::new(16, 6);

/// What one servo holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ServoPrint {
    /// Model number, 777 for an STS3215.
    pub model: u16,
    /// Homing offset in ticks.
    pub homing_offset: i32,
    /// Lower position limit in ticks.
    pub range_min: i32,
    /// Upper position limit in ticks.
    pub range_max: i32,
    /// Torque limit at power-on in 0.1 %.
    pub max_torque_permille: i32,
    /// Proportional gain of the position loop.
    pub p_gain: i32,
}

impl ServoPrint {
    /// What a servo holds that was never calibrated.
    const fn is_factory(&self) -> bool {
        self.homing_offset == 0 && self.range_min == 0 && self.range_max == 4095
    }
}

/// Which arm of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmRole {
    /// The arm that works.
    Follower,
    /// The arm that a hand moves.
    Leader,
}

/// What the six servos of an arm hold; `None` for those that did not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Fingerprint {
    /// In joint order.
    pub servos: [Option<ServoPrint>; 6],
}

impl Fingerprint {
    /// Servos that answered.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.servos.iter().flatten().count()
    }

    /// Which arm of a pair it is, by the registers that LeRobot writes into a follower when it connects: gain 16 in all
    /// joints, half the torque in the gripper. An arm that nobody has configured does not tell.
    #[must_use]
    pub fn likely_role(&self) -> Option<ArmRole> {
        let all: Vec<&ServoPrint> = self.servos.iter().flatten().collect();
        let gripper = self.servos[JointId::Gripper.index()]?;
        let follower = all.iter().all(|s| s.p_gain == 16) || gripper.max_torque_permille == 500;
        let factory = all.iter().all(|s| s.is_factory());
        match (follower, factory) {
            (true, _) => Some(ArmRole::Follower),
            (false, false) => Some(ArmRole::Leader),
            (false, true) => None,
        }
    }
}

/// Reads the fingerprint of the arm on a bus: 4 requests, nothing is written, torque stays as it is.
///
/// # Errors
/// When nothing can be asked at all; servos that do not answer are `None`.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::discovery::{Match, identify, match_calibration};
/// use so101_hal::{Calibration, EmulatedServos, EmulatorOptions, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// servos.store_calibration(&Calibration::model())?;
/// let print = identify(&mut servos.bus())?;
/// let known = [("blue arm".to_string(), Calibration::model())];
/// assert_eq!(match_calibration(&print, &known), Match::Exact { ids: vec!["blue arm".to_string()] });
/// # Ok(()) }
/// ```
pub fn identify(bus: &mut (impl ServoBus + ?Sized)) -> Result<Fingerprint> {
    let [mut models, mut limits, mut offsets, mut profiles] = [[[None; 2]; 6]; 4];
    read_all(bus, registers::MODEL_NUMBER.block(), &mut models, &[registers::MODEL_NUMBER])?;
    if models.iter().all(|m| m[0].is_none()) {
        return Ok(Fingerprint::default());
    }
    let (min, max) = (registers::MIN_POSITION_LIMIT, registers::MAX_POSITION_LIMIT);
    read_all(bus, LIMITS, &mut limits, &[min, max])?;
    read_all(bus, registers::HOMING_OFFSET.block(), &mut offsets, &[registers::HOMING_OFFSET])?;
    let (torque, gain) = (registers::MAX_TORQUE_LIMIT, registers::P_COEFFICIENT);
    read_all(bus, PROFILE, &mut profiles, &[torque, gain])?;
    let servos = core::array::from_fn(|i| {
        Some(ServoPrint {
            model: u16::try_from(models[i][0]?).ok()?,
            homing_offset: offsets[i][0]?,
            range_min: limits[i][0]?,
            range_max: limits[i][1]?,
            max_torque_permille: profiles[i][0]?,
            p_gain: profiles[i][1]?,
        })
    });
    Ok(Fingerprint { servos })
}

/// Values of up to two registers within one block of all six servos.
fn read_all(
    bus: &mut (impl ServoBus + ?Sized),
    block: Block,
    out: &mut [[Option<i32>; 2]; 6],
    wanted: &[Register],
) -> Result<()> {
    let mut replies = SyncReplies::new();
    bus.sync_read(block, &ServoId::ARM, &mut replies)?;
    for ((_, reply), row) in replies.iter().zip(out) {
        let Ok(reply) = reply else { continue };
        for (register, slot) in wanted.iter().zip(row) {
            let at = usize::from(register.address.saturating_sub(block.address));
            *slot = reply.data.get(at..).and_then(|bytes| register.decode(bytes).ok());
        }
    }
    Ok(())
}

/// What differs between a servo and a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DifferenceIn {
    /// `homing_offset`.
    HomingOffset,
    /// `range_min`.
    RangeMin,
    /// `range_max`.
    RangeMax,
    /// The servo did not answer.
    NoAnswer,
}

/// One difference between an arm and a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The joint.
    pub joint: JointId,
    /// Which value.
    pub what: DifferenceIn,
    /// What the servo has, ticks; 0 where it does not answer.
    pub servo: i32,
    /// What the file has, ticks.
    pub file: i32,
}

impl core::fmt::Display for Difference {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let what = match self.what {
            DifferenceIn::HomingOffset => "homing_offset",
            DifferenceIn::RangeMin => "range_min",
            DifferenceIn::RangeMax => "range_max",
            DifferenceIn::NoAnswer => return write!(f, "{}: the servo does not answer", self.joint),
        };
        write!(f, "{} {what}: servo {}, file {}", self.joint, self.servo, self.file)
    }
}

/// Which calibration an arm has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "match", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Match {
    /// All values are those of a file; of several where files are alike.
    Exact {
        /// Names of the files.
        ids: Vec<String>,
    },
    /// Most servos agree with this file: one was replaced or calibrated again, or does not answer.
    Near {
        /// Name of the file.
        id: String,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// The arm was never calibrated: its servos are as they left the factory.
    Uncalibrated,
    /// It is none of the known arms.
    Unknown,
    /// No servo answers: no power, or another device.
    Silent,
}

/// Finds the calibration of an arm among known ones, each with its name.
///
/// Ranges that every arm has (the full turn of wrist_roll) say nothing, so servos count by their homing offset there.
#[must_use]
pub fn match_calibration(print: &Fingerprint, known: &[(String, Calibration)]) -> Match {
    if print.answered() == 0 {
        return Match::Silent;
    }
    let compared: Vec<(&String, Vec<Difference>, usize)> = known
        .iter()
        .map(|(id, calibration)| {
            let differences = differences(print, calibration);
            let agreeing = agreeing_servos(print, calibration);
            (id, differences, agreeing)
        })
        .collect();
    let exact: Vec<String> =
        compared.iter().filter(|(_, d, _)| d.is_empty()).map(|(id, ..)| (*id).clone()).collect();
    if !exact.is_empty() {
        return Match::Exact { ids: exact };
    }
    let nearest =
        compared.into_iter().max_by_key(|(_, d, agreeing)| (*agreeing, core::cmp::Reverse(d.len())));
    match nearest {
        Some((id, differences, agreeing)) if agreeing >= NEAR_SERVOS => {
            Match::Near { id: id.to_string(), differences }
        }
        _ if print.servos.iter().flatten().all(ServoPrint::is_factory) => Match::Uncalibrated,
        _ => Match::Unknown,
    }
}

/// All values in which the servos and the file differ.
fn differences(print: &Fingerprint, calibration: &Calibration) -> Vec<Difference> {
    let mut found = Vec::new();
    for ((joint, file), servo) in calibration.iter().zip(&print.servos) {
        let Some(servo) = servo else {
            found.push(Difference {
                joint,
                what: DifferenceIn::NoAnswer,
                servo: 0,
                file: file.homing_offset,
            });
            continue;
        };
        for (what, servo, file) in [
            (DifferenceIn::HomingOffset, servo.homing_offset, file.homing_offset),
            (DifferenceIn::RangeMin, servo.range_min, file.range_min),
            (DifferenceIn::RangeMax, servo.range_max, file.range_max),
        ] {
            if servo != file {
                found.push(Difference { joint, what, servo, file });
            }
        }
    }
    found
}

/// Servos that hold what the file says, and not what every new servo holds.
fn agreeing_servos(print: &Fingerprint, calibration: &Calibration) -> usize {
    let pairs =
        JOINTS.iter().zip(&print.servos).filter_map(|(j, s)| Some((calibration.get(*j), s.as_ref()?)));
    pairs
        .filter(|(file, servo)| {
            let same = (servo.homing_offset, servo.range_min, servo.range_max)
                == (file.homing_offset, file.range_min, file.range_max);
            same && !servo.is_factory()
        })
        .count()
}

/// An arm that is not on the port where it was expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Misplaced {
    /// The arm that was expected.
    pub id: String,
    /// Where it was expected.
    pub expected_port: String,
    /// Where it was found, if anywhere.
    pub found_port: Option<String>,
}

/// Arms whose ports are not the expected ones: leader and follower swapped, most of all. `expected` and `found` hold
/// port and name of the arm.
///
/// ```
/// use so101_hal::discovery::misplaced;
/// let expected = [("/dev/ttyACM0", "leader"), ("/dev/ttyACM1", "follower")];
/// let found = [("/dev/ttyACM0", "follower"), ("/dev/ttyACM1", "leader")];
/// let swapped = misplaced(&expected, &found);
/// assert_eq!(swapped.len(), 2);
/// assert_eq!(swapped[0].found_port.as_deref(), Some("/dev/ttyACM1"));
/// ```
#[must_use]
pub fn misplaced(expected: &[(&str, &str)], found: &[(&str, &str)]) -> Vec<Misplaced> {
    expected
        .iter()
        .filter(|pair| !found.contains(pair))
        .map(|(port, id)| Misplaced {
            id: (*id).to_string(),
            expected_port: (*port).to_string(),
            found_port: found.iter().find(|(_, other)| other == id).map(|(port, _)| (*port).to_string()),
        })
        .collect()
}
