//! What a control loop counts, in fixed memory.

use core::time::Duration;

use serde::Serialize;

use crate::arm::JointState;
use crate::bus::BusStats;
use crate::protocol::Alarms;

/// Bounds of the classes: eight to an octave, from 1 us to about 8 s.
const CLASSES: usize = 8 * 23 + 1;
const A_OCTAVE: u32 = 8;

/// How long a stage took: counts in classes of 9 to 12 % width, so that percentiles cost no memory a cycle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct StageTimes {
    count: u64,
    sum_ns: u64,
    max: Duration,
    classes: [u32; CLASSES],
}

impl Default for StageTimes {
    fn default() -> Self {
        Self { count: 0, sum_ns: 0, max: Duration::ZERO, classes: [0; CLASSES] }
    }
}

impl core::fmt::Debug for StageTimes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StageTimes")
            .field("count", &self.count)
            .field("p50", &self.percentile(50))
            .field("p99", &self.percentile(99))
            .field("max", &self.max)
            .finish()
    }
}

impl StageTimes {
    /// Adds one duration.
    pub fn push(&mut self, time: Duration) {
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.max = self.max.max(time);
        if let Some(class) = self.classes.get_mut(class_of(time)) {
            *class = class.saturating_add(1);
        }
    }

    /// How many durations there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// Their mean; zero without any.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.checked_div(self.count).unwrap_or(0))
    }

    /// The upper bound of the class that this percentile (0 to 100) falls into, at most the longest; zero without
    /// any.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Duration {
        let rank = (self.count * u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        for (i, n) in self.classes.iter().enumerate() {
            seen += u64::from(*n);
            if seen >= rank {
                return upper_bound(i).min(self.max);
            }
        }
        self.max
    }

    /// What came after `earlier`, which is an older copy of this. The longest is that of all.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut out = *self;
        out.count = self.count.saturating_sub(earlier.count);
        out.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        for (class, before) in out.classes.iter_mut().zip(&earlier.classes) {
            *class = class.saturating_sub(*before);
        }
        let longest = out.classes.iter().rposition(|n| *n > 0).map_or(Duration::ZERO, upper_bound);
        out.max = out.max.min(longest);
        out
    }
}

/// Class of a duration: octaves of microseconds, each in eight equal parts.
fn class_of(time: Duration) -> usize {
    let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    if us < u64::from(A_OCTAVE) {
        return us as usize;
    }
    let octave = us.ilog2();
    let part = (us >> (octave - 3)) & 7;
    ((octave - 2) as usize * 8 + part as usize).min(CLASSES - 1)
}

fn upper_bound(class: usize) -> Duration {
    if class < 8 {
        return Duration::from_micros(class as u64 + 1);
    }
    if class == CLASSES - 1 {
        return Duration::MAX;
    }
    let (octave, part) = (class / 8 + 2, class as u64 % 8);
    Duration::from_micros((8 + part + 1) << (octave - 3))
}

impl Serialize for StageTimes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Figures {
            samples: u64,
            p50_ms: f64,
            p99_ms: f64,
            max_ms: f64,
        }
        let ms = |d: Duration| d.as_micros() as f64 / 1e3;
        Figures {
            samples: self.count,
            p50_ms: ms(self.percentile(50)),
            p99_ms: ms(self.percentile(99)),
            max_ms: ms(self.max),
        }
        .serialize(serializer)
    }
}

/// The alarms of a servo, each with the number of cycles in which it was raised: one that came and went between two
/// looks is still here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AlarmCounts([u64; 8]);

impl AlarmCounts {
    fn push(&mut self, alarms: Alarms) {
        for (bit, count) in self.0.iter_mut().enumerate() {
            *count += u64::from(alarms.bits() >> bit & 1);
        }
    }

    /// Every alarm that was raised at least once.
    #[must_use]
    pub fn seen(&self) -> Alarms {
        let set = self.0.iter().enumerate().filter(|(_, n)| **n > 0);
        Alarms::from_bits(set.fold(0, |bits, (bit, _)| bits | 1 << bit))
    }

    /// Cycles in which the one alarm `alarm` was raised.
    #[must_use]
    pub fn cycles(&self, alarm: Alarms) -> u64 {
        self.0.get(alarm.bits().trailing_zeros() as usize).copied().unwrap_or(0)
    }

    fn since(&self, earlier: &Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i].saturating_sub(earlier.0[i])))
    }
}

/// What a control loop has counted since it began; [`Self::since`] gives an episode's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LoopCounters {
    /// Cycles that ran.
    pub cycles: u64,
    /// Cycles whose work ended after the next one's deadline.
    pub overruns: u64,
    /// Deadlines that went by without a cycle, after an overrun or a late start.
    pub skipped: u64,
    /// Cycles in which at least one joint gave no new state.
    pub stale: u64,
    /// The same for each joint.
    pub stale_by_joint: [u64; 6],
    /// Requests that the bus sent again.
    pub retries: u64,
    /// Requests that were not answered in time.
    pub timeouts: u64,
    /// Damaged packets.
    pub damaged: u64,
    /// Cycles in which the port itself failed.
    pub port_errors: u64,
    /// Goals that came.
    pub goals: u64,
    /// Goals that grew old while they were followed: the arm stopped on its way.
    pub expired: u64,
    /// Setpoints that were sent.
    pub sent: u64,
    /// Setpoints that a limit of the arm changed.
    pub clipped: u64,
    /// Alarms of each joint.
    pub alarms: [AlarmCounts; 6],
    /// Reading the telemetry.
    pub read: StageTimes,
    /// The last time of reading it.
    pub last_read: Duration,
    /// Sending a setpoint.
    pub send: StageTimes,
    /// The whole cycle.
    pub total: StageTimes,
    /// How late a cycle began.
    pub late: StageTimes,
}

impl LoopCounters {
    /// Counts what the joints said in one cycle.
    pub(super) fn note_states(&mut self, states: &[JointState; 6]) {
        let mut any = false;
        for ((state, stale), alarms) in states.iter().zip(&mut self.stale_by_joint).zip(&mut self.alarms) {
            if state.missed > 0 {
                *stale += 1;
                any = true;
            } else {
                // An old answer's alarms were counted when it came.
                alarms.push(state.alarms);
            }
        }
        self.stale += u64::from(any);
    }

    /// Takes the bus's counts over, less those that it had before the loop began.
    pub(super) fn note_bus(&mut self, now: BusStats, before: BusStats) {
        self.retries = now.retries.saturating_sub(before.retries);
        self.timeouts = now.timeouts.saturating_sub(before.timeouts);
        self.damaged = now.damaged.saturating_sub(before.damaged);
    }

    /// Every alarm of every joint that was raised at least once.
    #[must_use]
    pub fn alarms_seen(&self) -> [Alarms; 6] {
        self.alarms.map(|a| a.seen())
    }

    /// What was counted after `earlier`, which is an older copy of this.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |a: u64, b: u64| a.saturating_sub(b);
        Self {
            cycles: less(self.cycles, earlier.cycles),
            overruns: less(self.overruns, earlier.overruns),
            skipped: less(self.skipped, earlier.skipped),
            stale: less(self.stale, earlier.stale),
            stale_by_joint: core::array::from_fn(|i| less(self.stale_by_joint[i], earlier.stale_by_joint[i])),
            retries: less(self.retries, earlier.retries),
            timeouts: less(self.timeouts, earlier.timeouts),
            damaged: less(self.damaged, earlier.damaged),
            port_errors: less(self.port_errors, earlier.port_errors),
            goals: less(self.goals, earlier.goals),
            expired: less(self.expired, earlier.expired),
            sent: less(self.sent, earlier.sent),
            clipped: less(self.clipped, earlier.clipped),
            alarms: core::array::from_fn(|i| self.alarms[i].since(&earlier.alarms[i])),
            read: self.read.since(&earlier.read),
            last_read: self.last_read,
            send: self.send.since(&earlier.send),
            total: self.total.since(&earlier.total),
            late: self.late.since(&earlier.late),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_hold_what_falls_into_them() {
        let mut last = 0;
        for us in (0..5000).chain((5000..10_000_000).step_by(997)) {
            let (time, class) = (Duration::from_micros(us), class_of(Duration::from_micros(us)));
            assert!(class >= last, "{us}");
            assert!(
                upper_bound(class) > time,
                "{us} us in class {class}, which ends at {:?}",
                upper_bound(class)
            );
            let width = upper_bound(class).as_secs_f64() / time.as_secs_f64().max(1e-6);
            assert!(us < 8 || class == CLASSES - 1 || width < 1.13, "{us}: {width}");
            last = class;
        }
        assert_eq!(class_of(Duration::MAX), CLASSES - 1);
    }

    #[test]
    fn percentiles_are_right_within_a_class_and_never_above_the_longest() {
        let mut times = StageTimes::default();
        assert_eq!((times.percentile(50), times.mean()), (Duration::ZERO, Duration::ZERO));
        for ms in 1..=100 {
            times.push(Duration::from_millis(ms));
        }
        let p = |percent| times.percentile(percent).as_secs_f64() * 1e3;
        assert!((50.0..56.5).contains(&p(50)) && (99.0..=100.0).contains(&p(99)), "{} {}", p(50), p(99));
        assert_eq!(
            (times.percentile(100), times.max()),
            (Duration::from_millis(100), Duration::from_millis(100))
        );
        assert_eq!(times.mean(), Duration::from_micros(50_500));
    }

    #[test]
    fn an_episodes_part_has_its_own_percentiles_and_counts() {
        let mut c = LoopCounters::default();
        c.total.push(Duration::from_secs(3));
        c.alarms[2].push(Alarms::HEAT);
        let before = c;
        c.cycles += 4;
        c.total.push(Duration::from_millis(1));
        c.alarms[1].push(Alarms::OVERLOAD | Alarms::VOLTAGE);
        let part = c.since(&before);
        assert_eq!((part.cycles, part.total.count()), (4, 1));
        assert!(part.total.max() < Duration::from_millis(2), "{:?}", part.total);
        assert_eq!(part.alarms_seen()[1], Alarms::OVERLOAD | Alarms::VOLTAGE);
        assert_eq!(part.alarms_seen()[2], Alarms::NONE);
        assert_eq!(c.alarms[1].cycles(Alarms::OVERLOAD), 1);
    }
}
