//! The registers of the arm's servos, read without writing anything.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::bus::{ReplyFault, ServoBus};
use crate::calibration::Calibration;
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId};
use crate::protocol::{Alarms, ServoId};
use crate::registers::{self, Register, Telemetry};

use super::item::Item;
use super::report::{Check, Verdict};

/// Bytes of a servo's memory that have names.
const MEMORY_LEN: usize = 87;

/// The blocks of the memory, first address and length: EEPROM, control and measurements, factory values. Addresses
/// between them have no meaning on an STS3215.
const BLOCKS: [(u8, usize); 3] = [(0, 40), (40, 33), (80, 7)];

/// Every register of one servo at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServoMemory {
    id: ServoId,
    bytes: [u8; MEMORY_LEN],
    alarms: Alarms,
}

impl ServoMemory {
    /// Reads a servo's whole memory with three requests.
    ///
    /// # Errors
    /// [`Error::NoReply`], and when the port is gone.
    pub fn read(bus: &mut (impl ServoBus + ?Sized), id: ServoId) -> Result<Self> {
        let mut bytes = [0; MEMORY_LEN];
        let mut alarms = Alarms::NONE;
        for (address, len) in BLOCKS {
            let first = usize::from(address);
            alarms |= bus.read(id, address, &mut bytes[first..first + len])?;
        }
        Ok(Self { id, bytes, alarms })
    }

    /// The id that answered.
    #[must_use]
    pub const fn id(&self) -> ServoId {
        self.id
    }

    /// A register's value, sign decoded; 0 for a register that was not read.
    #[must_use]
    pub fn value(&self, register: &Register) -> i32 {
        let bytes = self.bytes.get(usize::from(register.address)..).unwrap_or(&[]);
        register.decode(bytes).unwrap_or(0)
    }

    /// Firmware, the numbers before and behind the point.
    #[must_use]
    pub const fn firmware(&self) -> (u8, u8) {
        (self.bytes[0], self.bytes[1])
    }

    /// What changes while the arm moves.
    #[must_use]
    pub fn telemetry(&self) -> Telemetry {
        let mut block = [0; Telemetry::LEN];
        let first = usize::from(registers::TELEMETRY.address);
        block.copy_from_slice(&self.bytes[first..first + Telemetry::LEN]);
        Telemetry::from_bytes(&block)
    }

    /// The alarms of the error byte and of the status register.
    #[must_use]
    pub fn alarms(&self) -> Alarms {
        self.alarms | self.telemetry().status
    }
}

/// One place of the arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// The joint.
    pub joint: JointId,
    /// The id that its servo should have.
    pub id: ServoId,
    /// Its registers, or why there are none.
    pub memory: Result<ServoMemory, ReplyFault>,
}

/// The registers of all six servos, as far as they answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// In joint order.
    pub servos: Vec<Surveyed>,
}

impl Survey {
    /// Reads the servos that a calibration names. A servo that does not answer is a part of the result.
    ///
    /// # Errors
    /// [`Error::ServoId`] for a calibration with an impossible id, and when the port is gone.
    pub fn read(bus: &mut (impl ServoBus + ?Sized), calibration: &Calibration) -> Result<Self> {
        let mut servos = Vec::with_capacity(JOINTS.len());
        for (joint, c) in calibration.iter() {
            let id = ServoId::new(c.id)?;
            let memory = match ServoMemory::read(bus, id) {
                Ok(memory) => Ok(memory),
                Err(Error::NoReply { fault, .. }) => Err(fault),
                Err(e) => return Err(e),
            };
            servos.push(Surveyed { joint, id, memory });
        }
        Ok(Self { servos })
    }

    /// The servos that answered.
    pub fn answering(&self) -> impl Iterator<Item = (JointId, &ServoMemory)> {
        self.servos.iter().filter_map(|s| Some((s.joint, s.memory.as_ref().ok()?)))
    }

    /// The ids of the servos that did not answer.
    pub fn silent(&self) -> impl Iterator<Item = ServoId> {
        self.servos.iter().filter(|s| s.memory.is_err()).map(|s| s.id)
    }

    /// The ids of all six.
    #[must_use]
    pub fn ids(&self) -> Vec<ServoId> {
        self.servos.iter().map(|s| s.id).collect()
    }

    /// Judges the servos that answered one by one; the check is as bad as the worst of them and names those that did
    /// not pass.
    pub(super) fn judge(&self, item: Item, mut each: impl FnMut(JointId, &ServoMemory) -> Finding) -> Check {
        let found: Vec<(JointId, ServoId, Finding)> =
            self.answering().map(|(joint, m)| (joint, m.id, each(joint, m))).collect();
        combine(item, &found)
    }
}

/// What was found at one servo.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) value: String,
    pub(super) verdict: Verdict,
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn new(value: impl Into<String>, verdict: Verdict, advice: impl Into<String>) -> Self {
        Self { value: value.into(), verdict, advice: advice.into() }
    }
}

/// One check of what was found at several servos.
pub(super) fn combine(item: Item, found: &[(JointId, ServoId, Finding)]) -> Check {
    let Some(worst) = found.iter().map(|(_, _, f)| f.verdict).max() else {
        return Check::skipped(item, "no servo answers");
    };
    let mut value = String::new();
    let mut advice: Vec<&str> = Vec::new();
    let first = found.first().map(|(_, _, f)| f.value.as_str());
    let alike = found.iter().all(|(_, _, f)| Some(f.value.as_str()) == first);
    if worst <= Verdict::Pass && alike {
        value.push_str(first.unwrap_or_default());
    } else {
        for (joint, id, f) in found {
            if worst > Verdict::Pass && f.verdict <= Verdict::Pass {
                continue;
            }
            let comma = if value.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = match worst {
                Verdict::Skip | Verdict::Pass => write!(value, "{comma}{}", f.value),
                Verdict::Warn | Verdict::Fail => write!(value, "{comma}servo {id} ({joint}): {}", f.value),
            };
            if !f.advice.is_empty() && !advice.contains(&f.advice.as_str()) {
                advice.push(&f.advice);
            }
        }
    }
    Check::new(item, worst).value(value).advice(advice.join("; "))
}
