//! Timing of a bus, and what it counts.

use core::time::Duration;

use crate::convert::TURN;

/// Whether servos answer writes (register 8, response level).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteReplies {
    /// Level 1, the factory's: every write to one servo is answered.
    #[default]
    Expected,
    /// Level 0: writes are not answered.
    Absent,
}

/// How far a position may have moved since it was last read before it is asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plausibility {
    /// The fastest that a joint moves, by hand too, in encoder steps a second.
    pub max_speed_ticks_s: u32,
    /// What is added for the uncertainty of the moments, in encoder steps.
    pub margin_ticks: u32,
}

impl Plausibility {
    /// Another speed, in encoder steps a second.
    #[must_use]
    pub const fn with_max_speed_ticks_s(self, max_speed_ticks_s: u32) -> Self {
        Self { max_speed_ticks_s, ..self }
    }

    /// Another margin, in encoder steps.
    #[must_use]
    pub const fn with_margin_ticks(self, margin_ticks: u32) -> Self {
        Self { margin_ticks, ..self }
    }

    /// Whether a servo can have come from one position to the other in this time, over the end of the turn too.
    #[must_use]
    pub fn can_move(&self, from_ticks: i32, to_ticks: i32, within: Duration) -> bool {
        let travel = u128::from(self.max_speed_ticks_s) * within.as_micros() / 1_000_000;
        let reach = u64::try_from(travel).unwrap_or(u64::MAX).saturating_add(self.margin_ticks.into());
        let distance = u64::from(to_ticks.abs_diff(from_ticks));
        let on_one_turn = (0..TURN).contains(&from_ticks) && (0..TURN).contains(&to_ticks);
        let shorter = if on_one_turn { distance.min(TURN as u64 - distance) } else { distance };
        shorter <= reach
    }
}

impl Default for Plausibility {
    /// 12000 steps a second (1050 degrees a second, three times what an STS3215 reaches at 7.4 V: a leader is moved by
    /// hand) and 128 steps.
    fn default() -> Self {
        Self { max_speed_ticks_s: 12_000, margin_ticks: 128 }
    }
}

/// Timing and retries of a [`Bus`](super::Bus).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusOptions {
    /// How long a transaction may take beyond the time of its bytes on the wire at 1 Mbaud.
    pub reply_timeout: Duration,
    /// How often a read is tried again, at once, for the servos whose reply is missing, damaged or implausible.
    pub read_retries: u8,
    /// Silence on the wire after a timeout, before anything else is sent.
    pub quarantine_silence: Duration,
    /// How late a reply may come, counted from its request, and still never be taken for another one's, even when its
    /// servo answers nothing in between; see [`Bus`](super::Bus).
    pub quarantine_window: Duration,
    /// Whether servos answer writes.
    pub write_replies: WriteReplies,
    /// When a position is asked for again; `None` = never.
    pub plausibility: Option<Plausibility>,
}

impl Default for BusOptions {
    /// 20 ms, one retry, 2 ms, 250 ms, replies expected, plausibility as its own default.
    fn default() -> Self {
        Self {
            reply_timeout: Duration::from_millis(20),
            read_retries: 1,
            quarantine_silence: Duration::from_millis(2),
            quarantine_window: Duration::from_millis(250),
            write_replies: WriteReplies::Expected,
            plausibility: Some(Plausibility::default()),
        }
    }
}

/// Counts since a [`Bus`](super::Bus) was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusStats {
    /// Requests sent, retries and barriers included.
    pub requests: u64,
    /// Reads tried again.
    pub retries: u64,
    /// Transactions that ended at their deadline.
    pub timeouts: u64,
    /// Damaged packets.
    pub damaged: u64,
    /// Whole packets that answered nothing: of another servo, of another length, or twice.
    pub unexpected: u64,
    /// Times that the wire had to fall silent before a request.
    pub quarantines: u64,
    /// Requests that only ask whether late replies of a servo are through.
    pub barriers: u64,
    /// Times that a servo was not asked, because its late replies might still come.
    pub not_asked: u64,
    /// Positions that no servo can have reached in the time.
    pub implausible: u64,
    /// Own requests that came back from the adapter, those aside that could have been replies just as well.
    pub echoes: u64,
}
