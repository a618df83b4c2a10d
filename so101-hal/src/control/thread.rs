//! The loop's thread, and the handle to it.

use std::any::Any;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::{String, ToString as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::core::{ControlCore, check_goal};
use super::counters::LoopCounters;
use super::{ArmSnapshot, LoopConfig};
use crate::arm::{Arm, Armed, EmergencyStop, Holding};
use crate::bus::ServoBus;
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::joint::JointVector;
use crate::units::Degrees;

/// Starts control loops.
#[derive(Clone, Copy, Debug)]
pub struct ControlLoop;

impl ControlLoop {
    /// Starts the thread. The clock has to be one on which time passes by itself, such as
    /// [`SystemClock`](crate::SystemClock); the same one as the recorder's and the cameras', so that their times
    /// compare.
    ///
    /// # Errors
    /// As [`ControlCore::new`], and [`Error::LoopThread`]; the arm is dropped then.
    pub fn spawn<B: ServoBus + 'static>(
        arm: Arm<B, Armed>,
        clock: Arc<dyn Clock>,
        config: LoopConfig,
    ) -> Result<ControlHandle<B>> {
        let emergency = arm.emergency_stop();
        let core = ControlCore::new(arm, Arc::clone(&clock), config)?;
        let shared = Arc::new(Shared {
            goal: Mutex::new(None),
            published: Mutex::new(Published { snapshot: *core.snapshot(), error: None, ended: false }),
            counters: Mutex::new(*core.counters()),
            resume: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("so101-control".to_string())
            .spawn(move || run(core, clock.as_ref(), &theirs))
            .map_err(|e| Error::LoopThread { source: Box::new(e) })?;
        Ok(ControlHandle { shared, emergency, thread: Some(thread) })
    }
}

#[derive(Clone, Copy)]
struct Goal {
    joints: JointVector<Degrees>,
    issued: Timestamp,
}

struct Published {
    snapshot: ArmSnapshot,
    /// Why the loop ended; the first who asks takes it.
    error: Option<Error>,
    ended: bool,
}

struct Shared {
    goal: Mutex<Option<Goal>>,
    published: Mutex<Published>,
    counters: Mutex<LoopCounters>,
    resume: AtomicBool,
    stop: AtomicBool,
}

/// Values behind these locks are copied in and out whole: a panic leaves no half of one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The loop's body. The arm comes back when it was asked to stop; after an error or a panic it is dropped, which
/// relaxes or keeps it as its options say.
fn run<B: ServoBus>(core: ControlCore<B>, clock: &dyn Clock, shared: &Shared) -> Option<Arm<B, Armed>> {
    let mut core = Some(core);
    let ended = catch_unwind(AssertUnwindSafe(|| match core.as_mut() {
        Some(core) => cycles(core, clock, shared),
        None => Ok(()),
    }));
    let error = match ended {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error),
        Err(panic) => Some(Error::LoopPanicked { what: message(panic.as_ref()) }),
    };
    let failed = error.is_some();
    let arm = core.take().map(ControlCore::into_arm);
    // First the arm, then the news: whoever hears of the end finds the arm as it will stay.
    let arm = if failed {
        drop(arm);
        None
    } else {
        arm
    };
    let mut published = lock(&shared.published);
    published.error = error;
    published.ended = true;
    arm
}

fn cycles<B: ServoBus>(core: &mut ControlCore<B>, clock: &dyn Clock, shared: &Shared) -> Result<()> {
    while !shared.stop.load(Ordering::Acquire) {
        clock.sleep_until(core.next_deadline());
        if shared.resume.swap(false, Ordering::AcqRel) {
            // Refused while the arm does not answer; its state says so.
            let _ = core.resume();
        }
        let goal = lock(&shared.goal).take();
        if let Some(Goal { joints, issued }) = goal {
            core.set_goal(&joints, issued)?;
        }
        let cycle = core.cycle();
        lock(&shared.published).snapshot = *core.snapshot();
        *lock(&shared.counters) = *core.counters();
        cycle?;
    }
    Ok(())
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_string())
}

/// A running control loop. Dropping it stops the loop and drops the arm, which relaxes or keeps it as its options
/// say; [`Self::stop`] gives the arm back.
pub struct ControlHandle<B: ServoBus> {
    shared: Arc<Shared>,
    emergency: EmergencyStop,
    thread: Option<JoinHandle<Option<Arm<B, Armed>>>>,
}

impl<B: ServoBus> std::fmt::Debug for ControlHandle<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlHandle").field("running", &self.thread.is_some()).finish_non_exhaustive()
    }
}

impl<B: ServoBus> ControlHandle<B> {
    /// The arm as of the last cycle.
    ///
    /// # Errors
    /// Why the loop ended, once; [`Error::LoopEnded`] from then on.
    pub fn snapshot(&self) -> Result<ArmSnapshot> {
        let mut published = lock(&self.shared.published);
        if published.ended {
            return Err(published.error.take().unwrap_or(Error::LoopEnded));
        }
        Ok(published.snapshot)
    }

    /// Where the arm shall go, decided at `issued` on the loop's clock; it replaces the goal before.
    ///
    /// # Errors
    /// [`Error::NonFinite`]: the goal before stays.
    pub fn set_goal(&self, joints: &JointVector<Degrees>, issued: Timestamp) -> Result<()> {
        check_goal(joints)?;
        *lock(&self.shared.goal) = Some(Goal { joints: *joints, issued });
        Ok(())
    }

    /// Lets a lost arm follow goals again, from where it is; nothing happens while it does not answer.
    pub fn resume(&self) {
        self.shared.resume.store(true, Ordering::Release);
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> LoopCounters {
        *lock(&self.shared.counters)
    }

    /// How long the last read of the telemetry took.
    #[must_use]
    pub fn last_read(&self) -> Duration {
        lock(&self.shared.counters).last_read
    }

    /// Switches the torque off from any thread, without waiting for the loop.
    #[must_use]
    pub fn emergency_stop(&self) -> EmergencyStop {
        self.emergency.clone()
    }

    /// Ends the loop after its running cycle and gives the arm back; it holds what it was told last.
    ///
    /// # Errors
    /// Why the loop ended before; the arm was dropped then.
    pub fn stop(mut self) -> Result<Arm<B, Holding>> {
        match self.join() {
            Some(arm) => Ok(arm.hold()),
            None => Err(lock(&self.shared.published).error.take().unwrap_or(Error::LoopEnded)),
        }
    }

    fn join(&mut self) -> Option<Arm<B, Armed>> {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.take()?.join().ok().flatten()
    }
}

impl<B: ServoBus> Drop for ControlHandle<B> {
    fn drop(&mut self) {
        drop(self.join());
    }
}
