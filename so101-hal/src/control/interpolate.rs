//! From a slow stream of goals to a smooth fast one.

use core::time::Duration;

use crate::clock::Timestamp;
use crate::joint::JointVector;
use crate::units::{Degrees, Percent};

/// Goes in a straight line, in joint space, from where the arm was told to be to the latest goal, and takes as long
/// as the next goal is expected to take.
///
/// With goals every 33 ms the arm follows one period behind them, without steps at the goals' rate. A point on a
/// segment lies between its ends: there is no overshoot, and nothing outside of the goals' own hull is ever sent. When
/// no goal follows, the last one is reached and kept.
///
/// ```
/// use core::time::Duration;
/// use so101_hal::control::Interpolator;
/// use so101_hal::{Degrees, JointVector, Timestamp};
/// let ms = |ms| Timestamp::from_start(Duration::from_millis(ms));
/// let mut path = Interpolator::new(JointVector::default(), Duration::from_millis(30));
/// path.retarget(&JointVector::<Degrees>::from_row([3.0; 6]), ms(100));
/// assert_eq!(path.at(ms(110)).to_row()[0], 1.0);
/// assert_eq!(path.at(ms(500)).to_row()[0], 3.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interpolator {
    from: JointVector<Degrees>,
    to: JointVector<Degrees>,
    start: Timestamp,
    span: Duration,
    /// What a stream of goals is expected to have between two of them.
    period: Duration,
    last_goal: Option<Timestamp>,
}

impl Interpolator {
    /// At rest at `pose`; goals are expected every `period` until their own pace is known.
    #[must_use]
    pub fn new(pose: JointVector<Degrees>, period: Duration) -> Self {
        Self { from: pose, to: pose, start: Timestamp::ZERO, span: period, period, last_goal: None }
    }

    /// A new goal came at `now`. The way to it begins where the old one is at this moment.
    ///
    /// The time between this goal and the one before is how long it will take, from half to twice the expected
    /// period: two goals at once make no jump, and a pause makes no crawl.
    pub fn retarget(&mut self, goal: &JointVector<Degrees>, now: Timestamp) {
        self.from = self.at(now);
        self.to = *goal;
        self.span = match self.last_goal {
            Some(last) => now.since(last).clamp(self.period / 2, self.period * 2),
            None => self.period,
        };
        self.start = now;
        self.last_goal = Some(now);
    }

    /// Comes to rest at `pose`, and knows no pace of goals any more.
    pub fn rest_at(&mut self, pose: JointVector<Degrees>) {
        *self = Self::new(pose, self.period);
    }

    /// Where the arm shall be at `now`.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> JointVector<Degrees> {
        if self.arrived(now) {
            return self.to;
        }
        let share = now.since(self.start).as_secs_f64() / self.span.as_secs_f64();
        let mix = |a: f64, b: f64| {
            // The last bit of rounding must not lead past an end.
            (a + share * (b - a)).clamp(a.min(b), a.max(b))
        };
        let (from, to) = (&self.from.body, &self.to.body);
        JointVector {
            body: core::array::from_fn(|i| Degrees(mix(from[i].0, to[i].0))),
            gripper: Percent(mix(self.from.gripper.0, self.to.gripper.0)),
        }
    }

    /// Whether the latest goal is reached at `now`.
    #[must_use]
    pub fn arrived(&self, now: Timestamp) -> bool {
        self.span.is_zero() || now.since(self.start) >= self.span
    }

    /// The latest goal, or where it rests.
    #[must_use]
    pub const fn goal(&self) -> JointVector<Degrees> {
        self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Timestamp {
        Timestamp::from_start(Duration::from_millis(ms))
    }

    fn pose(v: f64) -> JointVector<Degrees> {
        JointVector::<Degrees>::from_row([v, -v, 2.0 * v, v / 3.0, 0.0, v])
    }

    #[test]
    fn a_steady_stream_becomes_a_line_one_period_behind() {
        let mut path = Interpolator::new(pose(0.0), Duration::from_millis(30));
        let mut steps = Vec::new();
        let mut last = 0.0;
        for k in 0..300_u64 {
            if k % 5 == 0 {
                path.retarget(&pose((k + 5) as f64), ms(k * 6));
            }
            let v = path.at(ms(k * 6)).to_row()[0];
            assert!((v - k as f64).abs() < 1e-9, "{k}: {v}");
            steps.push(v - last);
            last = v;
        }
        assert!(steps[2..].iter().all(|s| (s - 1.0).abs() < 1e-9), "every step has the same size");
    }

    #[test]
    fn a_pause_makes_no_crawl_and_a_burst_no_jump() {
        let mut path = Interpolator::new(pose(0.0), Duration::from_millis(30));
        path.retarget(&pose(1.0), ms(0));
        path.retarget(&pose(2.0), ms(10_000));
        assert!(path.arrived(ms(10_060)) && !path.arrived(ms(10_059)));
        path.retarget(&pose(9.0), ms(10_060));
        path.retarget(&pose(10.0), ms(10_060));
        assert!(path.arrived(ms(10_075)) && !path.arrived(ms(10_074)));
    }

    #[test]
    fn at_rest_nothing_moves_and_the_next_goal_starts_there() {
        let mut path = Interpolator::new(pose(0.0), Duration::from_millis(30));
        path.retarget(&pose(9.0), ms(0));
        path.rest_at(pose(3.0));
        assert_eq!(path.at(ms(15)), pose(3.0));
        path.retarget(&pose(6.0), ms(20));
        assert_eq!((path.at(ms(20)), path.at(ms(50))), (pose(3.0), pose(6.0)));
    }

    proptest! {
        #[test]
        fn no_setpoint_lies_outside_of_the_goals_whatever_their_pace(
            goals in prop::collection::vec((-180.0..180.0_f64, 0_u64..200), 1..40),
            step in 1_u64..20,
        ) {
            let mut path = Interpolator::new(pose(0.0), Duration::from_millis(33));
            let (mut low, mut high, mut now) = (0.0_f64, 0.0_f64, 0);
            for (goal, pause) in goals {
                path.retarget(&pose(goal), ms(now));
                (low, high) = (low.min(goal), high.max(goal));
                let until = now + pause;
                while now <= until {
                    let v = path.at(ms(now)).to_row()[0];
                    prop_assert!((low..=high).contains(&v), "{v} is not in {low} to {high}");
                    now += step;
                }
            }
        }
    }
}
