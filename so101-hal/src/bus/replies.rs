//! The replies of several servos to one request, each with its own result.

use core::fmt;

use super::{MAX_BLOCK, MAX_SYNC_IDS};
use crate::clock::Timestamp;
use crate::protocol::{Alarms, Packet, ServoId};

/// Why a servo's reply cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplyFault {
    /// Nothing came before the deadline, or not all of it.
    Missing,
    /// It came with a wrong checksum, or so that its bytes can be read in two ways.
    Damaged,
    /// Nothing was asked: replies to earlier requests are overdue, and could be taken for the one to this.
    Quarantined,
    /// It came whole, with a position that the servo cannot have reached since its last one.
    Implausible,
}

impl fmt::Display for ReplyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "none came in time",
            Self::Damaged => "it is damaged",
            Self::Quarantined => "earlier ones are overdue and could be taken for it",
            Self::Implausible => "its position is out of reach",
        })
    }
}

/// A usable reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// What the servo reports beside its data.
    pub alarms: Alarms,
    /// As many bytes as the block that was asked for.
    pub data: &'a [u8],
}

/// Room for the replies to a sync read, to be used again and again.
#[derive(Clone, Debug)]
pub struct SyncReplies {
    block_len: usize,
    /// Bytes of data in the replies that are awaited, `block_len` or some more.
    awaited_len: usize,
    len: usize,
    received_at: Timestamp,
    slots: [Slot; MAX_SYNC_IDS],
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    id: ServoId,
    outcome: Result<Alarms, ReplyFault>,
    stage: Stage,
    data: [u8; MAX_BLOCK],
}

/// How far one servo's part of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It may be asked, again too.
    Open,
    /// It is not asked any more.
    GivenUp,
    /// Its reply counts.
    Approved,
}

const EMPTY: Slot =
    Slot { id: ServoId::ARM[0], outcome: Err(ReplyFault::Missing), stage: Stage::Open, data: [0; MAX_BLOCK] };

impl Slot {
    /// Nothing came that can be told from noise, and it is still asked.
    fn is_waiting(&self) -> bool {
        self.outcome == Err(ReplyFault::Missing) && self.stage == Stage::Open
    }
}

impl SyncReplies {
    /// No replies yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            block_len: 0,
            awaited_len: 0,
            len: 0,
            received_at: Timestamp::ZERO,
            slots: [EMPTY; MAX_SYNC_IDS],
        }
    }

    /// Number of servos asked.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Nobody was asked.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Every servo that was asked has given a usable reply.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.asked().iter().all(|slot| slot.outcome.is_ok())
    }

    /// The result of the servo at this place of the request.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(ServoId, Result<Reply<'_>, ReplyFault>)> {
        self.asked().get(index).map(|slot| self.result(slot))
    }

    /// When the last of them came, or was waited for in vain, on the clock of the bus
    /// ([`ServoBus::now`](super::ServoBus::now)).
    #[must_use]
    pub const fn received_at(&self) -> Timestamp {
        self.received_at
    }

    /// All results in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = (ServoId, Result<Reply<'_>, ReplyFault>)> {
        self.asked().iter().map(|slot| self.result(slot))
    }

    fn asked(&self) -> &[Slot] {
        &self.slots[..self.len]
    }

    fn result<'a>(&self, slot: &'a Slot) -> (ServoId, Result<Reply<'a>, ReplyFault>) {
        (slot.id, slot.outcome.map(|alarms| Reply { alarms, data: &slot.data[..self.block_len] }))
    }

    /// Starts a request; the caller has checked both lengths.
    pub(super) fn begin(&mut self, ids: &[ServoId], block_len: usize) {
        self.block_len = block_len.min(MAX_BLOCK);
        self.awaited_len = self.block_len;
        self.len = ids.len().min(MAX_SYNC_IDS);
        for (slot, id) in self.slots.iter_mut().zip(ids) {
            slot.id = *id;
            slot.outcome = Err(ReplyFault::Missing);
            slot.stage = Stage::Open;
        }
    }

    /// Waits again for the replies that cannot be used, of servos that are still asked.
    pub(super) fn wait_again(&mut self) {
        for slot in self.asked_mut() {
            if slot.outcome.is_err() && slot.stage == Stage::Open {
                slot.outcome = Err(ReplyFault::Missing);
            }
        }
    }

    /// Replies have this many bytes from now on, of which the block's are kept.
    pub(super) fn await_len(&mut self, len: usize) {
        self.awaited_len = len.max(self.block_len);
    }

    pub(super) const fn awaited_len(&self) -> usize {
        self.awaited_len
    }

    pub(super) const fn set_received_at(&mut self, at: Timestamp) {
        self.received_at = at;
    }

    /// One servo was asked, under its own id.
    pub(super) const fn is_for_one(&self) -> bool {
        self.len == 1
    }

    /// Servos that have sent nothing that can be told from noise.
    pub(super) fn waiting(&self) -> usize {
        self.asked().iter().filter(|slot| slot.is_waiting()).count()
    }

    pub(super) fn waiting_ids(&self) -> impl Iterator<Item = ServoId> {
        self.asked().iter().filter(|slot| slot.is_waiting()).map(|slot| slot.id)
    }

    pub(super) fn waiting_at(&self, place: usize) -> Option<ServoId> {
        self.asked().get(place).filter(|slot| slot.is_waiting()).map(|slot| slot.id)
    }

    pub(super) fn answered_ids(&self) -> impl Iterator<Item = ServoId> {
        self.asked().iter().filter(|slot| slot.outcome.is_ok()).map(|slot| slot.id)
    }

    pub(super) fn id_at(&self, place: usize) -> Option<ServoId> {
        self.asked().get(place).map(|slot| slot.id)
    }

    /// Whether this servo is asked at all.
    pub(super) fn asks(&self, id: u8) -> bool {
        self.asked().iter().any(|slot| slot.id.get() == id)
    }

    /// A reply that nobody has judged yet.
    pub(super) fn unjudged_at(&self, place: usize) -> Option<(ServoId, &[u8])> {
        let slot = self.asked().get(place)?;
        let is_new = slot.outcome.is_ok() && slot.stage == Stage::Open;
        is_new.then(|| (slot.id, &slot.data[..self.block_len]))
    }

    /// The reply at this place counts for good.
    pub(super) fn approve(&mut self, place: usize) {
        if let Some(slot) = self.asked_mut().get_mut(place) {
            slot.stage = Stage::Approved;
        }
    }

    /// The reply at this place does not count.
    pub(super) fn fail(&mut self, place: usize, fault: ReplyFault) {
        if let Some(slot) = self.asked_mut().get_mut(place) {
            slot.outcome = Err(fault);
        }
    }

    /// The servo at this place is not asked any more.
    pub(super) fn give_up(&mut self, place: usize, fault: ReplyFault) {
        if let Some(slot) = self.asked_mut().get_mut(place) {
            slot.outcome = Err(fault);
            slot.stage = Stage::GivenUp;
        }
    }

    /// Takes a packet that answers and returns its place; `None` when it does not. The first of two replies counts.
    pub(super) fn accept(&mut self, packet: &Packet<'_>) -> Option<usize> {
        if packet.params.len() != self.awaited_len {
            return None;
        }
        let data = packet.params.get(..self.block_len)?;
        let (place, slot) =
            self.asked_mut().iter_mut().enumerate().find(|(_, slot)| slot.id.get() == packet.id)?;
        if slot.outcome.is_ok() || slot.stage != Stage::Open {
            return None;
        }
        slot.outcome = Ok(packet.alarms());
        slot.data[..data.len()].copy_from_slice(data);
        Some(place)
    }

    /// Notes that a damaged packet named this servo.
    pub(super) fn damaged(&mut self, id: u8) {
        for slot in self.asked_mut() {
            if slot.id.get() == id && slot.outcome.is_err() && slot.stage == Stage::Open {
                slot.outcome = Err(ReplyFault::Damaged);
            }
        }
    }

    fn asked_mut(&mut self) -> &mut [Slot] {
        &mut self.slots[..self.len]
    }
}

impl Default for SyncReplies {
    fn default() -> Self {
        Self::new()
    }
}
