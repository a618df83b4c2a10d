//! Registers that are compared before they are written.

use crate::bus::ServoBus;
use crate::error::{Error, Result};
use crate::protocol::ServoId;
use crate::registers::Register;

/// How often a write whose reply got lost is tried.
const TRIES: u8 = 3;

/// Makes a register hold `value`: reads it, writes it only where it differs, and reads it back. A lost reply to the
/// write is no error when the value is there. Returns whether it was written.
///
/// EEPROM keeps it over a power cycle only while the register [`LOCK`](crate::registers::LOCK) is 0.
///
/// # Errors
/// [`Error::RegisterNotTaken`] where the servo keeps another value, [`Error::RegisterValue`], and errors of the bus.
pub fn ensure(
    bus: &mut (impl ServoBus + ?Sized),
    id: ServoId,
    register: &Register,
    value: i32,
) -> Result<bool> {
    let mut held = bus.read_register(id, register)?.value;
    if held == value {
        return Ok(false);
    }
    for _ in 0..TRIES {
        match bus.write_register(id, register, value) {
            Ok(_) | Err(Error::NoReply { .. }) => {}
            Err(e) => return Err(e),
        }
        held = bus.read_register(id, register)?.value;
        if held == value {
            return Ok(true);
        }
    }
    Err(Error::RegisterNotTaken { id: id.get(), register: register.name, value, held })
}
