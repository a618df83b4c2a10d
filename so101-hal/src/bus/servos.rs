//! What the bus remembers of each servo: which of its replies are overdue, and where it was.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::Plausibility;
use crate::clock::Timestamp;
use crate::protocol::{BROADCAST_ID, Block, ServoId};
use crate::registers::ID;

/// The longest answer to a barrier. One asks for a number of bytes from the id register on that is not overdue; a ping
/// would do, but looks like its own reply when the servo has a voltage alarm.
const PROBES: u8 = 12;

#[derive(Debug)]
pub(super) struct Servos {
    known: Vec<Known>,
    /// Servos of which replies are overdue.
    overdue: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Lengths of replies that may still come, a bit each.
    lengths: u128,
    /// The last request without an answer.
    asked: Timestamp,
    position: Option<At>,
    /// A position that could not be believed; a second one beside it is.
    suspect: Option<At>,
}

#[derive(Clone, Copy, Debug)]
struct At {
    ticks: i32,
    at: Timestamp,
}

/// What a request of a certain reply length has to do about a servo first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Nothing: its reply can be no other's.
    None,
    /// Ask it for something whose reply has this many bytes.
    Probe(u8),
    /// Leave it alone for now: there is nothing left to ask that could not be taken for something overdue.
    Wait,
}

impl Servos {
    pub(super) fn new() -> Self {
        Self { known: vec![Known::default(); usize::from(BROADCAST_ID)], overdue: 0 }
    }

    /// Nothing is overdue.
    pub(super) const fn are_clear(&self) -> bool {
        self.overdue == 0
    }

    /// The longest reply that is overdue, in bytes of data.
    pub(super) fn longest_overdue(&self) -> usize {
        if self.are_clear() {
            return 0;
        }
        let all = self.known.iter().fold(0, |all, known| all | known.lengths);
        (u128::BITS - all.leading_zeros()).saturating_sub(1) as usize
    }

    /// A request was sent whose reply of `len` bytes has not come yet.
    pub(super) fn expect(&mut self, id: ServoId, len: usize, now: Timestamp) {
        if let Some(known) = self.known.get_mut(usize::from(id.get())) {
            self.overdue += usize::from(known.lengths == 0);
            known.lengths |= bit(len);
            known.asked = now;
        }
    }

    /// A reply came that can only be the one to the last request, so that nothing before it can come any more.
    pub(super) fn settle(&mut self, id: ServoId) {
        if let Some(known) = self.known.get_mut(usize::from(id.get()))
            && known.lengths != 0
        {
            known.lengths = 0;
            self.overdue -= 1;
        }
    }

    /// Whether a reply of `len` bytes could be an overdue one. What is older than `window` does not count any more.
    pub(super) fn doubt(&mut self, id: ServoId, len: usize, now: Timestamp, window: Duration) -> Doubt {
        let Some(known) = self.known.get(usize::from(id.get())) else { return Doubt::None };
        if known.lengths != 0 && now.since(known.asked) > window {
            self.settle(id);
            return Doubt::None;
        }
        if known.lengths & bit(len) == 0 {
            return Doubt::None;
        }
        let free = (1..=PROBES).find(|n| known.lengths & bit(usize::from(*n)) == 0);
        free.map_or(Doubt::Wait, Doubt::Probe)
    }

    /// Whether the servo can be there by now. A position that it cannot have reached is believed when a second one
    /// agrees with it: then it was moved by hand, or its zero.
    pub(super) fn believe(&mut self, id: ServoId, ticks: i32, at: Timestamp, rule: &Plausibility) -> bool {
        let Some(known) = self.known.get_mut(usize::from(id.get())) else { return true };
        let reachable = |from: Option<At>| from.map(|p| rule.can_move(p.ticks, ticks, at.since(p.at)));
        let new = Some(At { ticks, at });
        if reachable(known.position).unwrap_or(true) || reachable(known.suspect).unwrap_or(false) {
            known.position = new;
            known.suspect = None;
            true
        } else {
            known.suspect = new;
            false
        }
    }

    /// The servo's positions may mean something else from now on.
    pub(super) fn forget_position(&mut self, id: ServoId) {
        if let Some(known) = self.known.get_mut(usize::from(id.get())) {
            known.position = None;
            known.suspect = None;
        }
    }

    /// The same of all servos.
    pub(super) fn forget_positions(&mut self) {
        for known in &mut self.known {
            known.position = None;
            known.suspect = None;
        }
    }
}

/// The bytes to ask for instead of those of `block`, so that no reply can be an overdue one: as many, or up to
/// [`MAX_MORE`] more. `doubtful` says of which lengths there is doubt.
pub(super) fn undoubted(block: Block, mut doubtful: impl FnMut(usize) -> bool) -> Option<Block> {
    (0..=MAX_MORE)
        .map(|more| Block::new(block.address, block.len.saturating_add(more)))
        .take_while(|b| b.len == block.len || u16::from(b.address) + u16::from(b.len) <= MEMORY_END)
        .find(|b| !doubtful(b.len_bytes()))
}

/// How many more bytes than are needed may be asked for.
const MAX_MORE: u8 = 3;

/// The end of the registers that are known.
const MEMORY_END: u16 = 87;

/// The block of a probe whose reply has `len` bytes.
pub(super) const fn probe_block(len: u8) -> Block {
    Block::new(ID.address, len)
}

fn bit(len: usize) -> u128 {
    1_u128.checked_shl(u32::try_from(len).unwrap_or(u32::MAX)).unwrap_or(0)
}
