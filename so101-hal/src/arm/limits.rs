//! What shortens a goal on its way to the servos, as arithmetic on encoder steps.

use core::fmt;

/// Why a joint was told something else than the goal that was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clip(u8);

impl Clip {
    /// It was told the goal.
    pub const NONE: Self = Self(0);
    /// The goal lies outside of the range of calibration and servo.
    pub const RANGE: Self = Self(1);
    /// LeRobot's `max_relative_target`: too far from the present position.
    pub const RELATIVE: Self = Self(1 << 1);
    /// Too fast.
    pub const SPEED: Self = Self(1 << 2);
    /// Too fast a start.
    pub const ACCELERATION: Self = Self(1 << 3);
    /// The joint pushes against something and is eased.
    pub const STALL: Self = Self(1 << 4);
    /// The joint recovers from an overload and holds.
    pub const OVERLOAD: Self = Self(1 << 5);
    /// The joint was silent and has not yet said whether its torque is still on; it was told nothing.
    pub const SILENT: Self = Self(1 << 6);

    const NAMES: [(Self, &'static str); 7] = [
        (Self::RANGE, "range"),
        (Self::RELATIVE, "relative target"),
        (Self::SPEED, "speed"),
        (Self::ACCELERATION, "acceleration"),
        (Self::STALL, "stall"),
        (Self::OVERLOAD, "overload"),
        (Self::SILENT, "silent"),
    ];

    /// The joint was told the goal.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All reasons of `other` are among these.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// One bit a reason, as the constants have them.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Names of the reasons.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(clip, _)| self.contains(*clip)).map(|(_, name)| name)
    }
}

impl core::ops::BitOr for Clip {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl core::ops::BitOrAssign for Clip {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// `none`, or the names joined by `+`.
impl fmt::Display for Clip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in self.names() {
            write!(f, "{separator}{name}")?;
            separator = "+";
        }
        if self.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

/// Where one joint's goal is on its way, finer than a step so that slow movements do not stick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Track {
    pub(super) at_ticks: f64,
    speed_ticks_s: f64,
}

/// How fast a goal may move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Time since the last goal.
    pub(super) dt_s: f64,
    pub(super) max_speed: f64,
    pub(super) max_acceleration: f64,
}

impl Track {
    /// At rest.
    pub(super) const fn resting(at_ticks: f64) -> Self {
        Self { at_ticks, speed_ticks_s: 0.0 }
    }

    /// After a pause the joint has come to rest.
    pub(super) const fn rest(&mut self) {
        self.speed_ticks_s = 0.0;
    }

    /// Moves towards `wanted` for the time of `pace` and says what held it back. It never goes beyond `wanted`: slowing
    /// down is not limited.
    pub(super) fn advance(&mut self, wanted: f64, pace: &Pace) -> Clip {
        let distance = wanted - self.at_ticks;
        let left = distance.abs();
        if left == 0.0 {
            self.speed_ticks_s = 0.0;
            return Clip::NONE;
        }
        let before = if self.speed_ticks_s * distance > 0.0 { self.speed_ticks_s.abs() } else { 0.0 };
        let by_acceleration = before + pace.max_acceleration * pace.dt_s;
        // Without a limit and without time the product is no number; there is then nothing that holds the joint back.
        let by_acceleration = if by_acceleration.is_nan() { f64::INFINITY } else { by_acceleration };
        let allowed = by_acceleration.min(pace.max_speed);
        let reach = if allowed.is_infinite() { f64::INFINITY } else { allowed * pace.dt_s };
        if reach >= left {
            self.at_ticks = wanted;
            self.speed_ticks_s = if pace.dt_s > 0.0 { distance / pace.dt_s } else { 0.0 };
            return Clip::NONE;
        }
        self.speed_ticks_s = allowed.copysign(distance);
        self.at_ticks += reach.copysign(distance);
        if by_acceleration < pace.max_speed { Clip::ACCELERATION } else { Clip::SPEED }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;
    use proptest::prelude::*;

    fn pace(dt_s: f64) -> Pace {
        Pace { dt_s, max_speed: 1000.0, max_acceleration: 10_000.0 }
    }

    #[test]
    fn reasons_have_names() {
        assert_eq!((Clip::RANGE | Clip::STALL).to_string(), "range+stall");
        assert_eq!(Clip::NONE.to_string(), "none");
    }

    #[test]
    fn a_far_goal_starts_gently_then_runs_at_the_largest_speed_then_lands_exactly() {
        let mut track = Track::resting(0.0);
        let mut seen = alloc::vec::Vec::new();
        let mut at = 0.0;
        while track.at_ticks != 300.0 {
            let clip = track.advance(300.0, &pace(0.02));
            seen.push((track.at_ticks - at, clip));
            at = track.at_ticks;
            assert!(seen.len() < 100);
        }
        // 200 steps/s more each 20 ms: 4, 8, 12, 16, then 20 a cycle.
        let steps: alloc::vec::Vec<f64> = seen.iter().map(|(d, _)| *d).collect();
        for (step, want) in steps.iter().zip([4.0, 8.0, 12.0, 16.0, 20.0, 20.0]) {
            assert!((step - want).abs() < 1e-9, "{steps:?}");
        }
        assert_eq!((seen[0].1, seen[6].1), (Clip::ACCELERATION, Clip::SPEED));
        assert_eq!(seen.last().unwrap().1, Clip::NONE);
    }

    #[test]
    fn no_limit_is_no_limit_even_within_no_time() {
        for dt_s in [0.0, 0.01] {
            let mut track = Track::resting(7.0);
            let free = Pace { dt_s, max_speed: f64::INFINITY, max_acceleration: f64::INFINITY };
            assert_eq!((track.advance(-4000.0, &free), track.at_ticks), (Clip::NONE, -4000.0));
        }
        let mut track = Track::resting(7.0);
        assert_eq!((track.advance(8.0, &pace(0.0)), track.at_ticks), (Clip::ACCELERATION, 7.0));
    }

    proptest! {
        #[test]
        fn speed_and_gain_in_speed_stay_within_their_limits_and_no_goal_is_overshot(
            goals in prop::collection::vec((-2000.0..2000.0_f64, 0.001..0.1_f64), 1..60),
        ) {
            let (mut track, mut speed) = (Track::resting(0.0), 0.0_f64);
            for (goal, dt_s) in goals {
                let from = track.at_ticks;
                let clip = track.advance(goal, &pace(dt_s));
                let now = (track.at_ticks - from) / dt_s;
                prop_assert!(now.abs() <= 1000.0 + 1e-6);
                let same_way = now * speed > 0.0;
                let gained = now.abs() - if same_way { speed.abs() } else { 0.0 };
                prop_assert!(gained <= 10_000.0 * dt_s + 1e-6, "{speed} to {now} in {dt_s}");
                prop_assert!((goal - from) * (goal - track.at_ticks) >= 0.0);
                prop_assert_eq!(clip.is_empty(), track.at_ticks == goal);
                speed = now;
            }
        }
    }
}
