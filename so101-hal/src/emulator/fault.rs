//! What can go wrong on the emulated line.

use alloc::vec::Vec;
use core::time::Duration;

use crate::protocol::{Alarms, ServoId, checksum};

/// One way in which a reply goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It does not come.
    Drop,
    /// Its second half does not come.
    Truncate,
    /// Its checksum is wrong.
    BadChecksum,
    /// One bit of it is flipped.
    BitFlip,
    /// Noise comes before it.
    Junk,
    /// It comes twice.
    Duplicate,
    /// It comes this much later.
    Late(Duration),
    /// It carries these alarms, whatever the servo's own are; its data are good.
    Alarm(Alarms),
    /// In a sync read, it comes after that of the next servo in the list.
    Swap,
    /// The adapter sends the request back before any reply. Of no servo: [`FaultRule::servo`] does not matter.
    Echo,
    /// The servo's supply breaks down in the middle of it, as [`brown_out`](super::EmulatedServos::brown_out) does to all.
    BrownOut,
}

/// A fault, whom it befalls and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultRule {
    /// What happens.
    pub fault: Fault,
    /// To whose replies; `None` = to all.
    pub servo: Option<ServoId>,
    /// 0 never, 1 always; drawn for each reply from the emulator's seed.
    pub probability: f64,
}

impl FaultRule {
    /// A fault of every reply of every servo.
    #[must_use]
    pub const fn always(fault: Fault) -> Self {
        Self { fault, servo: None, probability: 1.0 }
    }

    /// The same for one servo alone.
    #[must_use]
    pub const fn of(self, servo: ServoId) -> Self {
        Self { servo: Some(servo), ..self }
    }

    /// The same with a chance of `probability`.
    #[must_use]
    pub const fn with_probability(self, probability: f64) -> Self {
        Self { probability, ..self }
    }
}

/// Pseudo-random numbers (xorshift, Marsaglia 2003): enough for faults, equal on every platform.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        // The generator stands still at zero, so the seed is spread and made odd.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn hits(&mut self, probability: f64) -> bool {
        // 53 bits: exact in an f64.
        ((self.next() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }
}

/// What befalls a reply beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mischief {
    /// It comes this much later.
    pub(super) delay: Duration,
    /// Its servo has lost its power.
    pub(super) browns_out: bool,
}

/// Lets every rule that hits `id` act on the packet.
pub(super) fn spoil(rules: &[FaultRule], dice: &mut Dice, id: u8, packet: &mut Vec<u8>) -> Mischief {
    let mut mischief = Mischief::default();
    for rule in rules {
        if matches!(rule.fault, Fault::Swap | Fault::Echo) {
            continue;
        }
        if rule.servo.is_some_and(|servo| servo.get() != id) || !dice.hits(rule.probability) {
            continue;
        }
        match rule.fault {
            Fault::Drop => packet.clear(),
            Fault::Truncate => packet.truncate(packet.len() / 2),
            Fault::BadChecksum => {
                if let Some(last) = packet.last_mut() {
                    *last ^= 0x5a;
                }
            }
            Fault::BitFlip => {
                let bit = dice.next();
                let at = (bit >> 8) as usize % packet.len().max(1);
                if let Some(byte) = packet.get_mut(at) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Fault::Junk => {
                packet.splice(0..0, [0xff, 0x00, 0x37, 0xff]);
            }
            Fault::Duplicate => packet.extend_from_within(..),
            Fault::Late(by) => mischief.delay += by,
            Fault::Alarm(alarms) => add_alarms(packet, alarms),
            // Those are not of one reply.
            Fault::Swap | Fault::Echo => {}
            Fault::BrownOut => {
                packet.truncate(packet.len() / 2);
                mischief.browns_out = true;
            }
        }
    }
    mischief
}

/// Whether a rule of this fault hits now; `id` is whose reply it is about.
pub(super) fn happens(rules: &[FaultRule], dice: &mut Dice, fault: Fault, id: Option<u8>) -> bool {
    let mut hit = false;
    for rule in rules.iter().filter(|r| r.fault == fault) {
        let concerned = id.is_none() || rule.servo.is_none_or(|servo| Some(servo.get()) == id);
        hit |= concerned && dice.hits(rule.probability);
    }
    hit
}

/// Sets bits of the status byte of a whole packet, with its checksum.
fn add_alarms(packet: &mut [u8], alarms: Alarms) {
    let [_, _, body @ .., last] = packet else { return };
    if *last != checksum(body) {
        return;
    }
    if let Some(status) = body.get_mut(2) {
        *status |= alarms.bits();
    }
    *last = checksum(body);
}
