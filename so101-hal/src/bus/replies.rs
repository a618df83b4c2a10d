//! The replies of several servos to one request, each with its own result.

use core::fmt;

use super::{MAX_BLOCK, MAX_SYNC_IDS};
use crate::protocol::{Alarms, Packet, ServoId};

/// Why a servo's reply cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplyFault {
    /// Nothing came before the deadline, or not all of it.
    Missing,
    /// It came with a wrong checksum.
    Damaged,
}

impl fmt::Display for ReplyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "none came in time",
            Self::Damaged => "its checksum is wrong",
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
    len: usize,
    slots: [Slot; MAX_SYNC_IDS],
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    id: ServoId,
    outcome: Result<Alarms, ReplyFault>,
    data: [u8; MAX_BLOCK],
}

const EMPTY: Slot = Slot { id: ServoId::ARM[0], outcome: Err(ReplyFault::Missing), data: [0; MAX_BLOCK] };

impl SyncReplies {
    /// No replies yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { block_len: 0, len: 0, slots: [EMPTY; MAX_SYNC_IDS] }
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
        self.len = ids.len().min(MAX_SYNC_IDS);
        for (slot, id) in self.slots.iter_mut().zip(ids) {
            slot.id = *id;
            slot.outcome = Err(ReplyFault::Missing);
        }
    }

    /// Waits again for the replies that cannot be used.
    pub(super) fn retry(&mut self) {
        for slot in self.slots.iter_mut().take(self.len) {
            if slot.outcome.is_err() {
                slot.outcome = Err(ReplyFault::Missing);
            }
        }
    }

    pub(super) const fn block_len(&self) -> usize {
        self.block_len
    }

    /// Servos that have sent nothing that can be told from noise.
    pub(super) fn waiting(&self) -> usize {
        self.asked().iter().filter(|slot| slot.outcome == Err(ReplyFault::Missing)).count()
    }

    pub(super) fn unanswered(&self) -> impl Iterator<Item = ServoId> {
        self.asked().iter().filter(|slot| slot.outcome.is_err()).map(|slot| slot.id)
    }

    /// Takes a packet that answers; `false` when it does not. The first of two replies counts.
    pub(super) fn accept(&mut self, packet: &Packet<'_>) -> bool {
        if packet.params.len() != self.block_len {
            return false;
        }
        let slot = self.slots.iter_mut().take(self.len).find(|slot| slot.id.get() == packet.id);
        match slot {
            Some(slot) if slot.outcome.is_err() => {
                slot.outcome = Ok(packet.alarms());
                slot.data[..packet.params.len()].copy_from_slice(packet.params);
                true
            }
            _ => false,
        }
    }

    /// Notes that a damaged packet named this servo.
    pub(super) fn damaged(&mut self, id: u8) {
        for slot in self.slots.iter_mut().take(self.len) {
            if slot.id.get() == id && slot.outcome.is_err() {
                slot.outcome = Err(ReplyFault::Damaged);
            }
        }
    }
}

impl Default for SyncReplies {
    fn default() -> Self {
        Self::new()
    }
}
