//! What the servos of an arm say about themselves, without moving them.

use alloc::vec::Vec;

use crate::bus::ServoBus;
use crate::calibration::{Calibration, JointCalibration};
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId};
use crate::protocol::{Alarms, ServoId};
use crate::registers::{self, Register, STS3215, Telemetry};
use crate::units::Ticks;

/// State of a servo's motor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Torque {
    /// Limp.
    Off,
    /// Holding or moving.
    On,
    /// Neither: damping, or a value unknown here.
    Other(u8),
}

impl Torque {
    /// From register 40.
    #[must_use]
    pub const fn from_register(value: u8) -> Self {
        match value {
            0 => Self::Off,
            1 => Self::On,
            other => Self::Other(other),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Other(_) => "damped",
        }
    }
}

/// What one servo said when it was asked before anything was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServoReport {
    /// The joint that it drives.
    pub joint: JointId,
    /// Its id.
    pub id: ServoId,
    /// Model number, 777 for an STS3215.
    pub model: u16,
    /// Firmware, the numbers before and behind the point.
    pub firmware: (u8, u8),
    /// Homing offset in its EEPROM.
    pub homing_offset: Ticks,
    /// Lowest and highest goal in its EEPROM.
    pub position_limits: (Ticks, Ticks),
    /// State of its motor.
    pub torque: Torque,
    /// Position, load, voltage, temperature and the rest.
    pub telemetry: Telemetry,
    /// What it reported beside its data.
    pub alarms: Alarms,
}

impl ServoReport {
    /// Whether homing offset and limits in the EEPROM are those of a calibration.
    #[must_use]
    pub const fn matches(&self, c: &JointCalibration) -> bool {
        self.homing_offset.0 == c.homing_offset
            && self.position_limits.0.0 == c.range_min
            && self.position_limits.1.0 == c.range_max
    }
}

/// Pings the six servos that a calibration names and reads their registers. Writes nothing, so it is safe on an arm
/// that somebody holds.
///
/// # Errors
/// [`Error::ServosSilent`] with every servo that does not answer, [`Error::ServoModel`], [`Error::ServoId`] for a
/// calibration with an impossible id, and errors of the bus.
pub fn inspect(bus: &mut (impl ServoBus + ?Sized), calibration: &Calibration) -> Result<[ServoReport; 6]> {
    let mut silent = Vec::new();
    for (_, c) in calibration.iter() {
        match bus.ping(ServoId::new(c.id)?) {
            Ok(_) => {}
            Err(Error::NoReply { id, .. }) => silent.push(id),
            Err(e) => return Err(e),
        }
    }
    if !silent.is_empty() {
        return Err(Error::ServosSilent { ids: silent });
    }
    let [a, b, c, d, e, g] = JOINTS;
    let mut report = |joint| report(bus, joint, calibration.get(joint).id);
    Ok([report(a)?, report(b)?, report(c)?, report(d)?, report(e)?, report(g)?])
}

fn report(bus: &mut (impl ServoBus + ?Sized), joint: JointId, id: u8) -> Result<ServoReport> {
    // Two reads: the EEPROM, then torque to current.
    const EEPROM_LEN: usize = 33;
    const RAM_FROM: u8 = registers::TORQUE_ENABLE.address;
    const RAM_LEN: usize = 31;

    let id = ServoId::new(id)?;
    let mut eeprom = [0; EEPROM_LEN];
    let mut ram = [0; RAM_LEN];
    bus.read(id, 0, &mut eeprom)?;
    let alarms = bus.read(id, RAM_FROM, &mut ram)?;

    let stored = |r: &Register| r.decode(eeprom.get(usize::from(r.address)..).unwrap_or(&[]));
    let model = stored(&registers::MODEL_NUMBER)? as u16;
    if model != STS3215 {
        return Err(Error::ServoModel { joint, id: id.get(), model, expected: STS3215 });
    }
    let mut telemetry = [0; Telemetry::LEN];
    telemetry.copy_from_slice(&ram[RAM_LEN - Telemetry::LEN..]);
    let telemetry = Telemetry::from_bytes(&telemetry);
    Ok(ServoReport {
        joint,
        id,
        model,
        firmware: (eeprom[0], eeprom[1]),
        homing_offset: Ticks(stored(&registers::HOMING_OFFSET)?),
        position_limits: (
            Ticks(stored(&registers::MIN_POSITION_LIMIT)?),
            Ticks(stored(&registers::MAX_POSITION_LIMIT)?),
        ),
        torque: Torque::from_register(ram[0]),
        telemetry,
        alarms: alarms | telemetry.status,
    })
}

/// The telemetry block ends the second read.
const _: () = assert!(registers::TELEMETRY.address as usize + Telemetry::LEN == 40 + 31);
