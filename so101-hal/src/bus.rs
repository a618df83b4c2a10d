//! The servo bus: requests and their replies over any [`Port`].

mod line;
mod replies;

pub use replies::{Reply, ReplyFault, SyncReplies};

use alloc::boxed::Box;
use core::time::Duration;

use line::{Ask, Line};

use crate::error::{Error, Result};
use crate::port::Port;
use crate::protocol::{Alarms, Block, Request, ServoId, SyncRow, Target};
use crate::registers::Register;

/// The most servos in one sync read.
pub const MAX_SYNC_IDS: usize = 16;

/// The most bytes in one read of one servo.
pub const MAX_BLOCK: usize = 64;

/// What a read returns beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The register's value, sign decoded.
    pub value: i32,
    /// What the servo reports beside it.
    pub alarms: Alarms,
}

/// Servos that can be asked and told. Implemented by [`Bus`] over any [`Port`].
///
/// Reads are tried once more at once when a reply is missing or damaged; writes are not, since a lost reply does not
/// say whether the write was carried out. Alarms come beside the data and are never errors.
pub trait ServoBus: Send {
    /// Asks one servo whether it is there.
    ///
    /// # Errors
    /// [`Error::NoReply`], and [`Error::PortIo`] when the port is gone.
    fn ping(&mut self, id: ServoId) -> Result<Alarms>;

    /// Reads `out.len()` bytes (1 to [`MAX_BLOCK`]) from `address` on.
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
        }
    )*};
}

forward_servo_bus!(&mut B, Box<B>);

/// Whether servos answer writes (register 8, response level).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteReplies {
    /// Level 1, the factory's: every write to one servo is answered.
    #[default]
    Expected,
    /// Level 0: writes are not answered.
    Absent,
}

/// Timing and retries of a [`Bus`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusOptions {
    /// How long a transaction may take beyond the time of its bytes on the wire at 1 Mbaud.
    pub reply_timeout: Duration,
    /// How often a read is tried again, at once, for the servos whose reply is missing or damaged.
    pub read_retries: u8,
    /// Silence on the wire that ends the wait for late replies after a timeout.
    pub quarantine_silence: Duration,
    /// Whether servos answer writes.
    pub write_replies: WriteReplies,
}

impl Default for BusOptions {
    /// 20 ms, one retry, 2 ms, replies expected.
    fn default() -> Self {
        Self {
            reply_timeout: Duration::from_millis(20),
            read_retries: 1,
            quarantine_silence: Duration::from_millis(2),
            write_replies: WriteReplies::Expected,
        }
    }
}

/// Counts since a [`Bus`] was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusStats {
    /// Requests sent, retries included.
    pub requests: u64,
    /// Reads tried again.
    pub retries: u64,
    /// Transactions that ended at their deadline.
    pub timeouts: u64,
    /// Damaged packets.
    pub damaged: u64,
    /// Whole packets that answered nothing: of another servo, of another length, or twice.
    pub unexpected: u64,
    /// Times that late replies were waited for before a request.
    pub quarantines: u64,
}

/// A bus of STS servos on a port.
///
/// Every transaction discards the input before its request, has one deadline, matches replies by id, length and
/// checksum in whatever order they come, and steps over noise. After a timeout a late reply could be taken for the
/// next one's; the next request waits for [`BusOptions::quarantine_silence`] first. Nothing is allocated.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::bus::ServoBus;
/// use so101_hal::emulator::{EmulatedServos, EmulatorOptions};
/// use so101_hal::protocol::ServoId;
/// use so101_hal::{VirtualClock, registers};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// let mut bus = servos.bus();
/// let reading = bus.read_register(ServoId::new(1)?, &registers::PRESENT_VOLTAGE)?;
/// assert_eq!((reading.value, reading.alarms.is_empty()), (74, true));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Bus<P: Port> {
    line: Line<P>,
    scratch: SyncReplies,
}

impl<P: Port> Bus<P> {
    /// A bus with the default timing.
    pub fn new(port: P) -> Self {
        Self::with_options(port, BusOptions::default())
    }

    /// A bus with its own timing.
    pub fn with_options(port: P, options: BusOptions) -> Self {
        Self { line: Line::new(port, options), scratch: SyncReplies::new() }
    }

    /// Counts since the bus was made.
    #[must_use]
    pub const fn stats(&self) -> BusStats {
        self.line.stats
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> &P {
        &self.line.port
    }

    /// Gives the port back.
    #[must_use]
    pub fn into_port(self) -> P {
        self.line.port
    }

    /// One servo, one reply.
    fn single(
        &mut self,
        request: &Request<'_>,
        id: ServoId,
        data_len: usize,
        retries: u8,
    ) -> Result<Reply<'_>> {
        self.scratch.begin(&[id], data_len);
        self.line.exchange_with_retries(&mut self.scratch, retries, Ask::One(request))?;
        let fault = match self.scratch.get(0) {
            Some((_, Ok(reply))) => return Ok(reply),
            Some((_, Err(fault))) => fault,
            None => ReplyFault::Missing,
        };
        Err(Error::NoReply { what: request.instruction().name(), id: id.get(), fault })
    }

    fn written(&mut self, request: &Request<'_>, id: ServoId) -> Result<Alarms> {
        match self.line.options.write_replies {
            WriteReplies::Expected => Ok(self.single(request, id, 0, 0)?.alarms),
            WriteReplies::Absent => self.line.send(request).map(|_| Alarms::NONE),
        }
    }
}

impl<P: Port> ServoBus for Bus<P> {
    fn ping(&mut self, id: ServoId) -> Result<Alarms> {
        let retries = self.line.options.read_retries;
        Ok(self.single(&Request::Ping(id.into()), id, 0, retries)?.alarms)
    }

    fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms> {
        let retries = self.line.options.read_retries;
        let block = Block::new(address, checked_block_len(out.len())?);
        let reply = self.single(&Request::Read(id, block), id, out.len(), retries)?;
        out.copy_from_slice(reply.data);
        Ok(reply.alarms)
    }

    fn write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.written(&Request::Write(id.into(), address, data), id)
    }

    fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.written(&Request::RegWrite(id.into(), address, data), id)
    }

    fn action(&mut self) -> Result<()> {
        self.line.send(&Request::Action(Target::All)).map(|_| ())
    }

    fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()> {
        checked_block_len(block.len_bytes())?;
        check_ids(ids)?;
        replies.begin(ids, block.len_bytes());
        let retries = self.line.options.read_retries;
        self.line.exchange_with_retries(replies, retries, Ask::Several(block))
    }

    fn sync_write(&mut self, address: u8, rows: &[SyncRow<'_>]) -> Result<()> {
        self.line.send(&Request::SyncWrite(address, rows)).map(|_| ())
    }

    fn broadcast_write(&mut self, address: u8, data: &[u8]) -> Result<()> {
        self.line.send(&Request::Write(Target::All, address, data)).map(|_| ())
    }
}

fn checked_block_len(len: usize) -> Result<u8> {
    match u8::try_from(len) {
        Ok(n) if (1..=MAX_BLOCK).contains(&len) => Ok(n),
        _ => Err(Error::BlockLength { len, max: MAX_BLOCK }),
    }
}

fn check_ids(ids: &[ServoId]) -> Result<()> {
    let twice = ids.iter().enumerate().any(|(i, id)| ids.iter().skip(i + 1).any(|other| other == id));
    if ids.is_empty() || ids.len() > MAX_SYNC_IDS || twice {
        return Err(Error::SyncIds { ids: ids.iter().map(|id| id.get()).collect(), max: MAX_SYNC_IDS });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
