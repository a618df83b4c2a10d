//! What a pattern of silent servos, damaged replies and ids means, in words.
//!
//! The servos hang on one chain: the board, then id 1 at the base, to id 6 at the gripper.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::bus::ReplyFault;
use crate::protocol::ServoId;

/// What is wrong with the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChainFault {
    /// Nobody answers.
    Dead,
    /// All servos up to this one answer, none behind it.
    DeadAfter(ServoId),
    /// These servos do not answer, others behind them do.
    Missing(Vec<ServoId>),
}

impl ChainFault {
    /// The fault that this pattern of answers means; `None` when all answer. In the order of the chain.
    #[must_use]
    pub fn find(answers: impl IntoIterator<Item = (ServoId, bool)>) -> Option<Self> {
        let answers: Vec<(ServoId, bool)> = answers.into_iter().collect();
        let silent: Vec<ServoId> = answers.iter().filter(|(_, a)| !a).map(|(id, _)| *id).collect();
        let heard = answers.len() - silent.len();
        if silent.is_empty() {
            return None;
        }
        if heard == 0 {
            return Some(Self::Dead);
        }
        let last_heard = answers.iter().rev().find(|(_, a)| *a).map(|(id, _)| *id);
        match last_heard {
            Some(id) if answers.iter().take(heard).all(|(_, a)| *a) => Some(Self::DeadAfter(id)),
            _ => Some(Self::Missing(silent)),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Dead => {
                "switch the supply on (the servos' LEDs flash once), check the plug between board and servo \
                           1 and that this is the arm's port; servos at another baud rate or id: run diagnose"
                    .to_string()
            }
            Self::DeadAfter(id) => format!(
                "check the cable behind servo {id} and the plug of the servo that follows; a new servo there still has \
                 id 1: run setup_motors"
            ),
            Self::Missing(ids) => format!(
                "servos behind {} answer, so the cable is whole: the id or the baud rate is another (run diagnose, \
                 then setup_motors with that servo alone), or the servo is broken",
                list(ids)
            ),
        }
    }
}

impl core::fmt::Display for ChainFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Dead => f.write_str("no servo answers"),
            Self::DeadAfter(id) => write!(f, "the chain is dead after id {id}"),
            Self::Missing(ids) => write!(f, "no answer of {}", list(ids)),
        }
    }
}

/// `servo 3` or `servos 3, 5`.
#[must_use]
pub fn list(ids: &[ServoId]) -> String {
    let numbers: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let noun = if ids.len() == 1 { "servo" } else { "servos" };
    format!("{noun} {}", numbers.join(", "))
}

/// How often one servo was asked and how it answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answers {
    /// The servo.
    pub id: ServoId,
    /// Single requests, none of them repeated.
    pub asked: u32,
    /// Requests that nobody answered.
    pub missing: u32,
    /// Requests whose reply was damaged.
    pub damaged: u32,
    /// Requests that more than one whole reply came to, or another servo's.
    pub extra: u32,
}

impl Answers {
    /// Nothing asked yet.
    #[must_use]
    pub const fn new(id: ServoId) -> Self {
        Self { id, asked: 0, missing: 0, damaged: 0, extra: 0 }
    }

    /// Counts a reply that cannot be used.
    pub(super) fn count(&mut self, fault: ReplyFault) {
        match fault {
            ReplyFault::Missing => self.missing += 1,
            // Whatever else is wrong with it: something came.
            _ => self.damaged += 1,
        }
    }

    /// What this pattern of answers means.
    #[must_use]
    pub const fn cause(&self) -> ErrorCause {
        if self.missing == self.asked {
            ErrorCause::Silent
        } else if self.extra > 0 || self.damaged >= 2 && self.damaged >= self.missing {
            ErrorCause::SharedId
        } else if self.damaged + self.missing > 0 {
            ErrorCause::BadContact
        } else {
            ErrorCause::None
        }
    }
}

/// Where damaged and missing replies come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCause {
    /// There are none.
    None,
    /// The servo never answers.
    Silent,
    /// Two servos answer at the same time.
    SharedId,
    /// Now and then a reply is lost or damaged.
    BadContact,
}

impl ErrorCause {
    /// What it means for this servo and what to do.
    #[must_use]
    pub fn advice(self, id: ServoId) -> String {
        match self {
            Self::None => String::new(),
            Self::Silent => format!("servo {id} is silent: check its cable, its power and its id"),
            Self::SharedId => format!(
                "two servos share id {id} and talk at once: unplug one of them and run setup_motors with the other \
                 alone"
            ),
            Self::BadContact => format!(
                "replies of servo {id} get lost: press its plugs in and those of its neighbours, check the supply \
                 under load, and keep the bus cable away from motor cables"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(answers: [bool; 6]) -> Option<ChainFault> {
        ChainFault::find(ServoId::ARM.into_iter().zip(answers))
    }

    #[test]
    fn a_pattern_of_answers_says_where_the_chain_is_broken() {
        let id = |n: usize| ServoId::ARM[n - 1];
        assert_eq!(pattern([true; 6]), None);
        assert_eq!(pattern([false; 6]), Some(ChainFault::Dead));
        assert_eq!(pattern([true, true, true, false, false, false]), Some(ChainFault::DeadAfter(id(3))));
        let hole = ChainFault::Missing(alloc::vec![id(2), id(5)]);
        assert_eq!(pattern([true, false, true, true, false, true]), Some(hole));
    }

    #[test]
    fn a_collision_is_told_from_a_bad_contact_by_damage_and_silence() {
        let answers =
            |missing, damaged, extra| Answers { id: ServoId::ARM[3], asked: 20, missing, damaged, extra };
        for (found, cause) in [
            (answers(0, 0, 0), ErrorCause::None),
            (answers(20, 0, 0), ErrorCause::Silent),
            (answers(0, 9, 0), ErrorCause::SharedId),
            (answers(0, 0, 10), ErrorCause::SharedId),
            (answers(6, 2, 0), ErrorCause::BadContact),
            (answers(0, 1, 0), ErrorCause::BadContact),
        ] {
            assert_eq!(found.cause(), cause, "{found:?}");
        }
    }
}
