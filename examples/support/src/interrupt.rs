//! Ctrl-C and SIGTERM: the first asks, the second insists.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use so101_hal::arm::EmergencyStop;
use so101_hal::safety::{Shutdown, Urgency};

use crate::error::Exit;

static REQUESTED: AtomicBool = AtomicBool::new(false);
/// What the second signal stops before the process ends.
static STOPS: Mutex<Vec<EmergencyStop>> = Mutex::new(Vec::new());
/// What the second signal puts in order before the process ends.
static LAST: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Installs the handler. The first signal only sets a flag that [`requested`] reads; the second switches off the torque
/// of every arm of [`stop_at_once`] and ends the process with exit code 130 (everything durable stays: a commit is one
/// rename).
///
/// # Errors
/// When the system refuses the handler.
pub fn install() -> Result<(), ctrlc::Error> {
    let shutdown = Shutdown::new();
    ctrlc::set_handler(move || {
        REQUESTED.store(true, Ordering::SeqCst);
        if shutdown.request() == Urgency::Immediate {
            second();
        }
        crate::cli::say(
            "stopping after this frame: the running episode is dropped, the others are kept (again to stop at once)",
        );
    })
}

/// From now on a second signal switches this arm's torque off, and so does a panic on any thread.
pub fn stop_at_once(stop: &EmergencyStop) {
    if let Ok(mut stops) = STOPS.lock() {
        stops.push(stop.clone());
    }
    so101_hal::safety::install_panic_hook(stop.clone());
}

/// From now on a second signal calls this before the process ends.
pub fn before_exit(last: fn()) {
    if let Ok(mut all) = LAST.lock() {
        all.push(last);
    }
}

/// Switches the torque of every arm of [`stop_at_once`] off, past whatever the program is doing.
pub fn stop_arms() {
    if let Ok(stops) = STOPS.try_lock() {
        for stop in stops.iter() {
            // One frame; it is sent again a little later, since it may meet a reply on the wire, and a goal that was
            // under way may follow it and switch the torque on again.
            for _ in 0..3 {
                let _ = stop.stop();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
}

#[allow(clippy::exit, reason = "the second Ctrl-C asks for exactly this")]
fn second() -> ! {
    stop_arms();
    if let Ok(last) = LAST.try_lock() {
        last.iter().for_each(|f| f());
    }
    std::process::exit(Exit::Interrupted as i32)
}

/// Whether somebody asked to stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
