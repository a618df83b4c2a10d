//! How far a joint was moved by hand, counted over the wrap of its encoder.

use core::time::Duration;

use crate::clock::Timestamp;
use crate::convert::TURN;
use crate::units::{Degrees, Ticks};

/// A step between two samples from here on is not trusted: a joint that moves a quarter of a turn in 20 ms does not do
/// so by hand, and from half a turn on the direction cannot be told.
pub const MAX_STEP: Ticks = Ticks(TURN / 4);

/// A joint that was not read for longer than this may have moved anywhere.
pub const MAX_GAP: Duration = Duration::from_millis(250);

/// What became of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleOutcome {
    /// It continues the sweep.
    Followed,
    /// It is too far from the one before, or too long after it: the sweep of this joint has to begin again.
    Jumped,
}

/// The sweep of one joint: where it is, and the ends that it has seen, in encoder steps that do not wrap.
///
/// ```
/// use so101_hal::calibration::JointSweep;
/// use so101_hal::{Ticks, Timestamp};
/// let mut sweep = JointSweep::new(Ticks(4090), Timestamp::ZERO);
/// sweep.feed(Ticks(10), Timestamp::ZERO); // over the wrap, not back by almost a turn
/// assert_eq!((sweep.now(), sweep.swept()), (Ticks(4106), Ticks(16)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointSweep {
    raw: i32,
    now: i32,
    min: i32,
    max: i32,
    at: Timestamp,
    samples: u32,
    missed: u32,
    jumps: u32,
}

impl JointSweep {
    /// A sweep that begins at this reading of the position register.
    #[must_use]
    pub const fn new(reading: Ticks, at: Timestamp) -> Self {
        let raw = reading.0.rem_euclid(TURN);
        Self { raw, now: raw, min: raw, max: raw, at, samples: 1, missed: 0, jumps: 0 }
    }

    /// Takes the next reading. The way from the last one is the shorter of the two around the turn.
    pub fn feed(&mut self, reading: Ticks, at: Timestamp) -> SampleOutcome {
        let raw = reading.0.rem_euclid(TURN);
        let step = (raw - self.raw + TURN / 2).rem_euclid(TURN) - TURN / 2;
        let unseen = at.since(self.at) > MAX_GAP && self.missed > 0;
        let jumped = step.abs() >= MAX_STEP.0 || unseen;
        self.raw = raw;
        self.now = self.now.saturating_add(step);
        self.min = self.min.min(self.now);
        self.max = self.max.max(self.now);
        self.at = at;
        self.samples = self.samples.saturating_add(1);
        self.missed = 0;
        if jumped {
            self.jumps = self.jumps.saturating_add(1);
            return SampleOutcome::Jumped;
        }
        SampleOutcome::Followed
    }

    /// Notes that the joint did not answer.
    pub const fn miss(&mut self) {
        self.missed = self.missed.saturating_add(1);
    }

    /// Begins again where the joint is; positions go on being counted from the same zero.
    pub const fn restart(&mut self) {
        (self.min, self.max) = (self.now, self.now);
        (self.samples, self.jumps) = (1, 0);
    }

    /// Begins again, in the turn in which the joint is nearest to `anchor`: after jumps, whole turns may have been
    /// miscounted.
    pub(super) const fn restart_near(&mut self, anchor: i32) {
        self.now = anchor + (self.raw - anchor + TURN / 2).rem_euclid(TURN) - TURN / 2;
        self.restart();
    }

    /// Where the joint is.
    #[must_use]
    pub const fn now(&self) -> Ticks {
        Ticks(self.now)
    }

    /// The lowest position so far.
    #[must_use]
    pub const fn min(&self) -> Ticks {
        Ticks(self.min)
    }

    /// The highest position so far.
    #[must_use]
    pub const fn max(&self) -> Ticks {
        Ticks(self.max)
    }

    /// From the lowest to the highest position.
    #[must_use]
    pub const fn swept(&self) -> Ticks {
        Ticks(self.max.saturating_sub(self.min))
    }

    /// Readings since the sweep began.
    #[must_use]
    pub const fn samples(&self) -> u32 {
        self.samples
    }

    /// Readings that did not come since the last one that did.
    #[must_use]
    pub const fn missed(&self) -> u32 {
        self.missed
    }

    /// Readings that did not continue the sweep: with one, its ends are not to be trusted.
    #[must_use]
    pub const fn jumps(&self) -> u32 {
        self.jumps
    }
}

/// An angle of the shaft; a turn has 4096 steps (LeRobot's joint degrees divide by 4095).
#[must_use]
pub fn shaft_degrees(steps: Ticks) -> Degrees {
    Degrees(f64::from(steps.0) * 360.0 / f64::from(TURN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const T0: Timestamp = Timestamp::ZERO;

    #[test]
    fn a_step_of_a_quarter_turn_is_a_jump_and_a_restart_forgets_it() {
        for (from, to, jumps) in [(0, 1023, 0), (0, 1024, 1), (0, 2048, 1), (100, 3172, 1), (100, 3173, 0)] {
            let mut sweep = JointSweep::new(Ticks(from), T0);
            sweep.feed(Ticks(to), T0);
            assert_eq!(sweep.jumps(), jumps, "{from} to {to}");
            sweep.restart();
            assert_eq!((sweep.jumps(), sweep.now().0.rem_euclid(TURN), sweep.swept()), (0, to, Ticks(0)));
            sweep.restart_near(9000);
            assert!((sweep.now().0 - 9000).abs() <= 2048 && sweep.now().0.rem_euclid(TURN) == to);
        }
    }

    #[test]
    fn a_long_silence_is_a_jump_and_a_short_one_is_not() {
        for (ms, outcome) in [(200, SampleOutcome::Followed), (300, SampleOutcome::Jumped)] {
            let mut sweep = JointSweep::new(Ticks(7), T0);
            sweep.miss();
            assert_eq!(sweep.missed(), 1);
            assert_eq!(sweep.feed(Ticks(8), T0 + Duration::from_millis(ms)), outcome);
            assert_eq!(sweep.missed(), 0);
        }
    }

    proptest! {
        #[test]
        fn any_path_of_small_steps_is_followed_over_any_number_of_turns(
            start in 0..TURN,
            steps in prop::collection::vec(-1023..=1023_i32, 1..60),
        ) {
            let mut sweep = JointSweep::new(Ticks(start), T0);
            let (mut at, mut min, mut max) = (start, start, start);
            for step in steps {
                at += step;
                (min, max) = (min.min(at), max.max(at));
                prop_assert_eq!(sweep.feed(Ticks(at.rem_euclid(TURN)), T0), SampleOutcome::Followed);
            }
            prop_assert_eq!((sweep.now().0, sweep.min().0, sweep.max().0), (at, min, max));
        }
    }
}
