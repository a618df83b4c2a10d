//! Ctrl-C and SIGTERM: the first asks, the second insists.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Exit;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Installs the handler. The first signal only sets a flag that [`requested`] reads; the second ends the process at
/// once with exit code 130 (everything durable stays: a commit is one rename).
///
/// # Errors
/// When the system refuses the handler.
pub fn install() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if COUNT.fetch_add(1, Ordering::SeqCst) > 0 {
            second();
        }
        crate::cli::say(
            "stopping after this frame: the running episode is dropped, the others are kept (again to stop at once)",
        );
    })
}

#[allow(clippy::exit, reason = "the second Ctrl-C asks for exactly this")]
fn second() -> ! {
    std::process::exit(Exit::Interrupted as i32)
}

/// Whether somebody asked to stop.
#[must_use]
pub fn requested() -> bool {
    COUNT.load(Ordering::SeqCst) > 0
}
