//! Time as the suite sees it: a monotonic clock that a simulated rig can replace.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A moment on a [`Clock`], as time since that clock's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(Duration);

impl Timestamp {
    /// The start of the clock.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// A moment this long after the start of the clock.
    #[must_use]
    pub const fn from_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// Time since the start of the clock.
    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Time from `earlier` to this moment, zero when `earlier` is the later of the two.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl core::ops::Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d))
    }
}

/// A monotonic clock with absolute deadlines.
///
/// Contract: `now` never goes back; after `sleep_until(t)` returns, `now() >= t`.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;

    /// Returns at `deadline`, or at once when it has passed.
    fn sleep_until(&self, deadline: Timestamp);
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
    fn sleep_until(&self, deadline: Timestamp) {
        (**self).sleep_until(deadline);
    }
}

/// Time that passes only when somebody sleeps: the clock of simulated and emulated rigs, and of tests.
///
/// Clones share one time line.
///
/// ```
/// use core::time::Duration;
/// use so101_hal::{Clock, Timestamp, VirtualClock};
/// let clock = VirtualClock::new();
/// clock.sleep_until(Timestamp::from_start(Duration::from_secs(3600))); // returns at once
/// assert_eq!(clock.now().since_start(), Duration::from_secs(3600));
/// ```
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    nanos: Arc<AtomicU64>,
}

impl VirtualClock {
    /// A clock at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp(Duration::from_nanos(self.nanos.load(Ordering::Acquire)))
    }
    fn sleep_until(&self, deadline: Timestamp) {
        let nanos = u64::try_from(deadline.0.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_max(nanos, Ordering::AcqRel);
    }
}

/// The machine's monotonic clock, counted from its construction.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

#[cfg(feature = "std")]
impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

#[cfg(feature = "std")]
impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "std")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.start.elapsed())
    }
    fn sleep_until(&self, deadline: Timestamp) {
        // `thread::sleep` may be woken early on some systems, never by contract of this trait.
        loop {
            let now = self.now();
            if now >= deadline {
                return;
            }
            std::thread::sleep(deadline.since(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_never_goes_back_and_is_shared_by_clones() {
        let a = VirtualClock::new();
        let b = a.clone();
        a.sleep_until(Timestamp::from_start(Duration::from_millis(5)));
        a.sleep_until(Timestamp::from_start(Duration::from_millis(2)));
        assert_eq!(b.now(), Timestamp::from_start(Duration::from_millis(5)));
    }

    #[cfg(feature = "std")]
    #[test]
    fn the_system_clock_is_at_or_past_a_deadline_it_slept_for() {
        let clock = SystemClock::new();
        let t = clock.now() + Duration::from_millis(2);
        clock.sleep_until(t);
        assert!(clock.now() >= t);
    }
}
