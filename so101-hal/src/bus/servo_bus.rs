//! What can be asked of servos and told to them.

use alloc::boxed::Box;

use super::{BusStats, SyncReplies};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::port::EmergencyWriter;
use crate::protocol::{Alarms, Block, ServoId, SyncRow};
use crate::registers::{self, Register};

/// What a read returns beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The register's value, sign decoded.
    pub value: i32,
    /// What the servo reports beside it.
    pub alarms: Alarms,
}

/// Servos that can be asked and told. Implemented by [`Bus`](super::Bus) over any [`Port`](crate::port::Port).
///
/// Reads are tried once more at once when a reply is missing or damaged; writes are not, since a lost reply does not
/// say whether the write was carried out. Alarms come beside the data and are never errors.
pub trait ServoBus: Send {
    /// Asks one servo whether it is there.
    ///
    /// # Errors
    /// [`Error::NoReply`], and [`Error::PortIo`] when the port is gone.
    fn ping(&mut self, id: ServoId) -> Result<Alarms>;

    /// Reads `out.len()` bytes (1 to [`MAX_BLOCK`](super::MAX_BLOCK)) from `address` on.
    ///
    /// # Errors
    /// As [`Self::ping`], and [`Error::BlockLength`].
    fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms>;

    /// Writes bytes from `address` on.
    ///
    /// # Errors
    /// As [`Self::ping`] (the write may have been carried out), and [`Error::PacketLength`].
    fn write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms>;

    /// Writes bytes that the servo keeps until [`Self::action`].
    ///
    /// # Errors
    /// As [`Self::write`].
    fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms>;

    /// Lets all servos carry out their kept writes at the same time. Nobody answers.
    ///
    /// # Errors
    /// [`Error::PortIo`] when the port is gone.
    fn action(&mut self) -> Result<()>;

    /// Reads the same block of several servos; each has its own result in `replies`, in the order of `ids`.
    ///
    /// # Errors
    /// Only when nothing can be asked at all: [`Error::BlockLength`], [`Error::SyncIds`], [`Error::PortIo`].
    fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()>;

    /// Writes bytes to several servos with one packet. Nobody answers.
    ///
    /// # Errors
    /// [`Error::SyncRows`], [`Error::PacketLength`], [`Error::PortIo`].
    fn sync_write(&mut self, address: u8, rows: &[SyncRow<'_>]) -> Result<()>;

    /// Writes the same bytes to every servo on the bus. Nobody answers.
    ///
    /// # Errors
    /// [`Error::PacketLength`], [`Error::PortIo`].
    fn broadcast_write(&mut self, address: u8, data: &[u8]) -> Result<()>;

    /// Back to the factory's registers, id excepted. Not verified on an STS3215.
    ///
    /// # Errors
    /// As [`Self::write`], and [`Error::NotSupported`] where the bus has no such request.
    fn reset(&mut self, _id: ServoId) -> Result<Alarms> {
        Err(Error::NotSupported { what: "a reset" })
    }

    /// Starts a servo again: torque off, registers from the EEPROM. Not verified on an STS3215.
    ///
    /// # Errors
    /// As [`Self::reset`].
    fn reboot(&mut self, _id: ServoId) -> Result<Alarms> {
        Err(Error::NotSupported { what: "a reboot" })
    }

    /// Makes the present position 2048 by writing 128 to the torque register: the servo rewrites its homing offset.
    /// The torque must be off.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn make_present_the_middle(&mut self, id: ServoId) -> Result<Alarms> {
        self.write(id, registers::TORQUE_ENABLE.address, &[registers::TORQUE_MAKE_MIDDLE])
    }

    /// A second handle that can only send, for an emergency stop from another thread; see
    /// [`Port::emergency_writer`](crate::port::Port::emergency_writer).
    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        None
    }

    /// Opens the same device again after it was unplugged; see [`Port::reopen`](crate::port::Port::reopen).
    ///
    /// # Errors
    /// [`Error::NotReopenable`], and errors of opening the port.
    fn reopen(&mut self) -> Result<()> {
        Err(Error::NotReopenable)
    }

    /// Counts since the bus was made.
    fn stats(&self) -> BusStats {
        BusStats::default()
    }

    /// The present moment on the clock of the bus, on which [`SyncReplies::received_at`] counts.
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }

    /// Reads one register.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_register(&mut self, id: ServoId, register: &Register) -> Result<Reading> {
        let mut bytes = [0; 2];
        let bytes = &mut bytes[..usize::from(register.size).min(2)];
        let alarms = self.read(id, register.address, bytes)?;
        Ok(Reading { value: register.decode(bytes)?, alarms })
    }

    /// Writes one register.
    ///
    /// # Errors
    /// As [`Self::write`], and [`Error::RegisterValue`].
    fn write_register(&mut self, id: ServoId, register: &Register, value: i32) -> Result<Alarms> {
        let bytes = register.encode(value)?;
        self.write(id, register.address, &bytes[..usize::from(register.size).min(2)])
    }
}

macro_rules! forward_servo_bus {
    ($($target:ty),*) => {$(
        impl<B: ServoBus + ?Sized> ServoBus for $target {
            fn ping(&mut self, id: ServoId) -> Result<Alarms> {
                (**self).ping(id)
            }
            fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms> {
                (**self).read(id, address, out)
            }
            fn write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
                (**self).write(id, address, data)
            }
            fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
                (**self).reg_write(id, address, data)
            }
            fn action(&mut self) -> Result<()> {
                (**self).action()
            }
            fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()> {
                (**self).sync_read(block, ids, replies)
            }
            fn sync_write(&mut self, address: u8, rows: &[SyncRow<'_>]) -> Result<()> {
                (**self).sync_write(address, rows)
            }
            fn broadcast_write(&mut self, address: u8, data: &[u8]) -> Result<()> {
                (**self).broadcast_write(address, data)
            }
            fn reset(&mut self, id: ServoId) -> Result<Alarms> {
                (**self).reset(id)
            }
            fn reboot(&mut self, id: ServoId) -> Result<Alarms> {
                (**self).reboot(id)
            }
            fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
                (**self).emergency_writer()
            }
            fn reopen(&mut self) -> Result<()> {
                (**self).reopen()
            }
            fn stats(&self) -> BusStats {
                (**self).stats()
            }
            fn now(&self) -> Timestamp {
                (**self).now()
            }
        }
    )*};
}

forward_servo_bus!(&mut B, Box<B>);
