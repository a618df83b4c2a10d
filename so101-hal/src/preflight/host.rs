//! The computer: clock, throttling, temperature.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::clock::Clock;

use super::item::Item;
use super::limits::Limits;
use super::report::{Check, Verdict};

/// Readings in the test of the clock.
const READINGS: u32 = 1000;

/// How far the monotonic clock may run from the wall clock while both are watched.
const STEP: Duration = Duration::from_millis(50);

/// What is known of the computer; what this machine cannot tell is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HostState {
    /// Whether the kernel's clock follows a time server.
    pub clock_synced: Option<bool>,
    /// The firmware's throttling flags: bits 0 to 3 now, 16 to 19 since the start (`vcgencmd get_throttled`).
    pub throttled: Option<u32>,
    /// Degrees Celsius.
    pub temperature_c: Option<f64>,
    /// What was seen of the clock.
    pub clock: Option<ClockFacts>,
}

#[cfg(feature = "std")]
impl HostState {
    /// What a sample of the computer tells; the clock is not a part of it.
    #[must_use]
    pub fn of(sample: &crate::host::HostSample) -> Self {
        let flags = match (sample.throttled, sample.supply_alarm) {
            (Some(flags), alarm) => Some(flags.0 | u32::from(alarm == Some(true))),
            (None, alarm) => alarm.map(u32::from),
        };
        Self { throttled: flags, temperature_c: sample.temperature_c, ..Self::default() }
    }
}

/// What a row of readings of a clock shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// Readings.
    pub readings: u32,
    /// Readings earlier than the one before.
    pub backward: u32,
    /// How far the wall clock moved otherwise than this clock; `None` where it was not watched.
    pub wall_drift: Option<Duration>,
}

impl ClockFacts {
    /// Reads a clock again and again. `wall` is the time since 1970, where there is a wall clock.
    #[must_use]
    pub fn watch(clock: &dyn Clock, mut wall: impl FnMut() -> Option<Duration>) -> Self {
        let mut facts = Self { readings: READINGS, ..Self::default() };
        let (start, wall_start) = (clock.now(), wall());
        let mut last = start;
        for _ in 0..READINGS {
            let now = clock.now();
            facts.backward += u32::from(now < last);
            last = now;
        }
        facts.wall_drift = wall_start.zip(wall()).map(|(from, to)| {
            let (passed, wall_passed) = (last.since(start), to.saturating_sub(from));
            passed.abs_diff(wall_passed)
        });
        facts
    }
}

/// Judges the computer.
#[must_use]
pub fn host(facts: &HostState, limits: &Limits) -> Vec<Check> {
    let unknown = |item| Check::skipped(item, "this machine does not say");
    alloc::vec![
        facts.clock_synced.map_or_else(|| unknown(Item::ClockSynced), clock_synced),
        facts.clock.as_ref().map_or_else(|| unknown(Item::ClockMonotonic), clock_monotonic),
        facts.throttled.map_or_else(|| unknown(Item::HostThrottling), throttling),
        facts.temperature_c.map_or_else(|| unknown(Item::HostTemperature), |c| temperature(c, limits)),
    ]
}

fn clock_synced(synced: bool) -> Check {
    Check::new(Item::ClockSynced, Verdict::warn_unless(synced))
        .value(if synced { "synchronised" } else { "not synchronised" })
        .advice("dates of the recording will be off: sudo timedatectl set-ntp true, and check the network")
}

fn clock_monotonic(facts: &ClockFacts) -> Check {
    let drift = facts.wall_drift.filter(|d| *d > STEP);
    let (verdict, value) = match (facts.backward, drift) {
        (0, None) => (Verdict::Pass, format!("{} readings in order", facts.readings)),
        (0, Some(d)) => (Verdict::Warn, format!("{} ms out of step with the wall clock", d.as_millis())),
        (n, _) => (Verdict::Fail, format!("{n} of {} readings go back", facts.readings)),
    };
    Check::new(Item::ClockMonotonic, verdict).value(value).advice(match verdict {
        Verdict::Warn => "the wall clock was set just now: wait until it is synchronised",
        _ => "frames and joints cannot be put in order with this clock: use another machine or kernel",
    })
}

/// Bits as `vcgencmd get_throttled` has them (Raspberry Pi documentation, "vcgencmd get_throttled").
fn throttling(flags: u32) -> Check {
    const NAMES: [(u32, &str); 4] = [
        (1, "undervoltage"),
        (1 << 1, "clock capped"),
        (1 << 2, "throttled"),
        (1 << 3, "soft temperature limit"),
    ];
    let names = |flags: u32| -> Vec<&str> {
        NAMES.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect()
    };
    let (now, before) = (names(flags), names(flags >> 16));
    let (verdict, value) = match (now.is_empty(), before.is_empty()) {
        (false, _) => (Verdict::Fail, format!("{} now", now.join(", "))),
        (true, false) => (Verdict::Warn, format!("{} since the start", before.join(", "))),
        (true, true) => (Verdict::Pass, String::from("none")),
    };
    let undervoltage = (flags | flags >> 16) & 1 != 0;
    Check::new(Item::HostThrottling, verdict).value(value).advice(if undervoltage {
        "the computer's supply is too weak: use the 27 W one of a Raspberry Pi 5 and feed the servos from another"
    } else {
        "the computer is too hot: give it a fan and air, run diagnose_stall on the loop's log"
    })
}

fn temperature(c: f64, limits: &Limits) -> Check {
    let [warn, fail] = limits.host_c;
    Check::new(Item::HostTemperature, Verdict::below(c, warn, fail))
        .value(format!("{c:.0} C"))
        .limit(format!("below {warn:.0} C, {fail:.0} C fails"))
        .advice("the computer slows down when it gets hotter: give it a fan and air")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use core::sync::atomic::{AtomicU64, Ordering};

    fn verdict(facts: &HostState, item: Item) -> (Verdict, String) {
        let all = host(facts, &Limits::default());
        let check = all.into_iter().find(|c| c.item == item).unwrap();
        (check.verdict, check.value)
    }

    #[test]
    fn throttling_now_fails_and_earlier_throttling_warns() {
        for (flags, expected, text) in [
            (0, Verdict::Pass, "none"),
            (0x5_0000, Verdict::Warn, "undervoltage, throttled since the start"),
            (0x5_0005, Verdict::Fail, "undervoltage, throttled now"),
            (0x8, Verdict::Fail, "soft temperature limit now"),
        ] {
            let facts = HostState { throttled: Some(flags), ..HostState::default() };
            assert_eq!(verdict(&facts, Item::HostThrottling), (expected, text.into()), "{flags:#x}");
        }
    }

    #[test]
    fn a_hot_computer_warns_then_fails() {
        for (c, expected) in [(74.9, Verdict::Pass), (75.0, Verdict::Warn), (83.0, Verdict::Fail)] {
            let facts = HostState { temperature_c: Some(c), ..HostState::default() };
            assert_eq!(verdict(&facts, Item::HostTemperature).0, expected, "{c}");
        }
    }

    #[test]
    fn a_clock_that_nobody_sets_warns_and_what_is_not_known_is_skipped() {
        let facts = HostState { clock_synced: Some(false), ..HostState::default() };
        assert_eq!(verdict(&facts, Item::ClockSynced).0, Verdict::Warn);
        assert_eq!(verdict(&facts, Item::HostThrottling).0, Verdict::Skip);
    }

    /// Jumps back by two at each third reading.
    struct Jumpy(AtomicU64);

    impl Clock for Jumpy {
        fn now(&self) -> Timestamp {
            let k = self.0.fetch_add(1, Ordering::Relaxed);
            Timestamp::from_start(Duration::from_millis(10 + k - if k % 3 == 2 { 2 } else { 0 }))
        }
        fn sleep_until(&self, _: Timestamp) {}
    }

    #[test]
    fn a_clock_that_goes_back_fails_and_one_out_of_step_warns() {
        let facts = ClockFacts::watch(&Jumpy(AtomicU64::new(0)), || None);
        let judged =
            |clock| verdict(&HostState { clock: Some(clock), ..HostState::default() }, Item::ClockMonotonic);
        assert!(facts.backward > 300, "{facts:?}");
        assert_eq!(judged(facts).0, Verdict::Fail);
        let mut walls = [0, 7200].into_iter();
        let stepped = ClockFacts::watch(&crate::VirtualClock::new(), || {
            Some(Duration::from_secs(walls.next().unwrap()))
        });
        assert_eq!(judged(stepped).0, Verdict::Warn);
        let steady = ClockFacts::watch(&crate::VirtualClock::new(), || None);
        assert_eq!(judged(steady).0, Verdict::Pass);
    }
}
