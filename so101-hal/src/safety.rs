//! The end of a program, wanted or not: what it asks of an arm.
//!
//! The library installs no signal handler. A program's handler for Ctrl-C and SIGTERM calls [`Shutdown::request`]; its
//! loop looks at [`Shutdown::is_requested`] and leaves the arm with [`Arm::finish`](crate::arm::Arm::finish), ramped,
//! relaxed or held. A second signal means that this takes too long: the handler calls
//! [`EmergencyStop::stop`](crate::arm::EmergencyStop::stop), which is one frame and waits for nobody, and again some
//! milliseconds later before it ends the process: a goal that was under way may have followed the first frame.
//! `install_panic_hook` (with `std`) does the same for panics, before the stack unwinds.
//!
//! What each way of ending leaves behind is listed in [`arm`](crate::arm).

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, Ordering};

#[cfg(feature = "std")]
use crate::arm::EmergencyStop;

/// How urgently somebody wants the program to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Nobody does.
    #[default]
    None,
    /// In order: finish the step, leave the arm as asked.
    Requested,
    /// At once: torque off, nothing else.
    Immediate,
}

/// A flag that a signal handler raises and a loop looks at. Clones share it; raising it is safe in a signal handler.
///
/// ```
/// use so101_hal::safety::{Shutdown, Urgency};
/// let shutdown = Shutdown::new();
/// let handler = shutdown.clone();
/// assert_eq!(handler.request(), Urgency::Requested); // Ctrl-C
/// assert!(shutdown.is_requested());
/// assert_eq!(handler.request(), Urgency::Immediate); // Ctrl-C again: stop the arm with a broadcast
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    urgency: Arc<AtomicU8>,
}

impl Shutdown {
    /// Nobody wants to end.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks once more: the first time in order, from the second on at once. Returns what is asked for now.
    pub fn request(&self) -> Urgency {
        let before =
            self.urgency.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some(n.saturating_add(1)));
        Self::from_count(before.unwrap_or_default().saturating_add(1))
    }

    /// What is asked for.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        Self::from_count(self.urgency.load(Ordering::SeqCst))
    }

    /// Whether anybody wants to end.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.urgency() >= Urgency::Requested
    }

    const fn from_count(count: u8) -> Urgency {
        match count {
            0 => Urgency::None,
            1 => Urgency::Requested,
            _ => Urgency::Immediate,
        }
    }
}

/// From now on every panic of the program, on whatever thread, first stops this arm, then runs the hook that was
/// installed before. Unwinding drops the arm after that, which reads the torque back.
///
/// A panic that is caught stops the arm too: nobody knows what it has left undone. [`Arm::release_stop`] ends it.
///
/// [`Arm::release_stop`]: crate::arm::Arm::release_stop
#[cfg(feature = "std")]
pub fn install_panic_hook(stop: EmergencyStop) {
    let previous = std::panic::take_hook();
    std::panic::set_hook(alloc::boxed::Box::new(move |info| {
        // The panic is what gets reported; the arm's drop tries again.
        let _ = stop.stop();
        previous(info);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_asks_and_every_further_one_insists() {
        let shutdown = Shutdown::new();
        assert_eq!((shutdown.urgency(), shutdown.is_requested()), (Urgency::None, false));
        assert_eq!(shutdown.clone().request(), Urgency::Requested);
        assert!(shutdown.is_requested());
        for _ in 0..300 {
            assert_eq!(shutdown.request(), Urgency::Immediate);
        }
        assert_eq!(shutdown.urgency(), Urgency::Immediate);
    }
}
