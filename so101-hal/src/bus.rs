//! The servo bus: requests and their replies over any [`Port`].

mod incoming;
mod line;
mod options;
mod replies;
mod scan;
mod servo_bus;
mod servos;

pub use options::{BusOptions, BusStats, Plausibility, WriteReplies};
pub use replies::{Reply, ReplyFault, SyncReplies};
pub use scan::{FoundServo, scan};
pub use servo_bus::{Reading, ServoBus};

use alloc::boxed::Box;

use line::{Ask, Line};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::port::{EmergencyWriter, Port};
use crate::protocol::{Alarms, Block, Request, ServoId, SyncRow, Target};
use crate::registers;

/// The most servos in one sync read.
pub const MAX_SYNC_IDS: usize = 16;

/// The most bytes in one read of one servo.
pub const MAX_BLOCK: usize = 64;

/// A bus of STS servos on a port.
///
/// Every transaction discards the input before its request, has one deadline, matches replies by id, length and
/// checksum in whatever order they come, and steps over noise and over the own request where the adapter sends it back.
/// Nothing is allocated, and a sync read costs four system calls on a device (discard, send, wait, read), three when the
/// sync read before it brought exactly what it should.
///
/// # Late replies
/// A reply carries no sign of the request it belongs to, so one that comes after its deadline could be taken for the next
/// reply of the same servo and length. After a reply has not come, or came damaged:
///
/// 1. after a timeout the wire has to be silent for [`BusOptions::quarantine_silence`] before anything else is sent;
/// 2. a request whose reply would have the same length as an overdue one asks for a few bytes more, or is preceded by a
///    barrier: a read of a length that is not overdue. A servo answers in order and nothing on the line overtakes, so
///    with an answer that only the newest request can have, everything before it is through, however late;
/// 3. a servo that answers no barrier is not asked ([`ReplyFault::Quarantined`]) until
///    [`BusOptions::quarantine_window`] has passed since it was last asked.
///
/// So no wrong value is returned when every reply comes within the window or before the answer to a barrier. Beyond, when
/// a servo answers nothing for the whole window and then sends an old reply, that reply may be taken for the one to a new
/// request of the same length. The same holds for a copy of a reply that comes later than twice its time on the wire.
///
/// # Damage
/// The checksum has 8 bits: one flipped bit is always noticed, several in one packet pass in one of 256 cases. Positions
/// that a servo cannot have reached since it was last read ([`Plausibility`]) are asked for again, and believed when two
/// in a row agree.
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

    /// One servo, one reply; its data stay in the scratch.
    fn single(&mut self, request: &Request<'_>, id: ServoId, data_len: usize, retries: u8) -> Result<Alarms> {
        self.scratch.begin(&[id], data_len);
        self.line.ask(&mut self.scratch, retries, Ask::One(request))?;
        let fault = match self.scratch.get(0) {
            Some((_, Ok(reply))) => return Ok(reply.alarms),
            Some((_, Err(fault))) => fault,
            None => ReplyFault::Missing,
        };
        Err(Error::NoReply { what: request.instruction().name(), id: id.get(), fault })
    }

    /// A request that may have been carried out when its reply is lost, so it is not sent twice.
    fn written(&mut self, request: &Request<'_>, id: ServoId) -> Result<Alarms> {
        refuse_unknown_baud(request)?;
        if self.line.options.write_replies == WriteReplies::Absent {
            return self.line.tell(request).map(|()| Alarms::NONE);
        }
        // What is written may matter more than what is known about it afterwards: torque off, above all.
        if let Err(fault) = self.line.settle_doubt(id, 0)? {
            self.line.tell_unheard(request, id)?;
            return Err(Error::NoReply { what: request.instruction().name(), id: id.get(), fault });
        }
        self.single(request, id, 0, 0)
    }
}

impl<P: Port> ServoBus for Bus<P> {
    fn ping(&mut self, id: ServoId) -> Result<Alarms> {
        let retries = self.line.options.read_retries;
        match self.single(&Request::Ping(id.into()), id, 0, retries) {
            // A ping looks like its own reply with a voltage alarm; a read of the id does not.
            Err(Error::NoReply { .. }) if self.line.is_undecided() => {
                let block = registers::ID.block();
                self.single(&Request::Read(id, block), id, block.len_bytes(), retries)
            }
            outcome => outcome,
        }
    }

    fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms> {
        let retries = self.line.options.read_retries;
        let block = Block::new(address, checked_block_len(out.len())?);
        let (alarms, skip) = match self.single(&Request::Read(id, block), id, out.len(), retries) {
            // A read of two bytes looks like its own reply; a read of three does not.
            Err(Error::NoReply { .. }) if self.line.is_undecided() => {
                let before = u8::from(address > 0);
                let wider = Block::new(address - before, block.len + 1);
                let alarms = self.single(&Request::Read(id, wider), id, wider.len_bytes(), retries)?;
                (alarms, usize::from(before))
            }
            outcome => (outcome?, 0),
        };
        if let Some((_, Ok(reply))) = self.scratch.get(0) {
            for (to, from) in out.iter_mut().zip(reply.data.iter().skip(skip)) {
                *to = *from;
            }
        }
        Ok(alarms)
    }

    fn write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.written(&Request::Write(id.into(), address, data), id)
    }

    fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.written(&Request::RegWrite(id.into(), address, data), id)
    }

    fn action(&mut self) -> Result<()> {
        self.line.tell(&Request::Action(Target::All))
    }

    fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()> {
        checked_block_len(block.len_bytes())?;
        check_ids(ids)?;
        replies.begin(ids, block.len_bytes());
        let retries = self.line.options.read_retries;
        self.line.ask(replies, retries, Ask::Several(block))
    }

    fn sync_write(&mut self, address: u8, rows: &[SyncRow<'_>]) -> Result<()> {
        let request = Request::SyncWrite(address, rows);
        refuse_unknown_baud(&request)?;
        self.line.tell(&request)
    }

    fn broadcast_write(&mut self, address: u8, data: &[u8]) -> Result<()> {
        let request = Request::Write(Target::All, address, data);
        refuse_unknown_baud(&request)?;
        self.line.tell(&request)
    }

    fn reset(&mut self, id: ServoId) -> Result<Alarms> {
        self.written(&Request::Reset(id), id)
    }

    fn reboot(&mut self, id: ServoId) -> Result<Alarms> {
        self.written(&Request::Reboot(id), id)
    }

    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        self.line.port.emergency_writer()
    }

    fn reopen(&mut self) -> Result<()> {
        self.line.reopen()
    }

    fn stats(&self) -> BusStats {
        self.line.stats
    }

    fn now(&self) -> Timestamp {
        self.line.port.now()
    }
}

/// The tables of vendor and LeRobot disagree about baud codes above 4: a servo that got one could be lost.
fn refuse_unknown_baud(request: &Request<'_>) -> Result<()> {
    let check = |address: u8, data: &[u8]| {
        let at = registers::BAUD_RATE.address.checked_sub(address).map(usize::from);
        match at.and_then(|at| data.get(at)) {
            Some(code) => registers::BAUD_RATE.encode((*code).into()).map(|_| ()),
            None => Ok(()),
        }
    };
    match request {
        Request::Write(_, address, data) | Request::RegWrite(_, address, data) => check(*address, data),
        Request::SyncWrite(address, rows) => rows.iter().try_for_each(|row| check(*address, row.data)),
        _ => Ok(()),
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
