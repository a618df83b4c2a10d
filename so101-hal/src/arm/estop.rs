//! The emergency stop: one frame from any thread, and a latch that only the operator opens.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use spin::Mutex;

use crate::error::{Error, Result};
use crate::port::EmergencyWriter;
use crate::protocol::{OVERHEAD, Request, Target};
use crate::registers::TORQUE_ENABLE;

/// How often a stop looks whether the line is free; a frame is sent in microseconds, and a stuck port must stop nobody.
const LINE_TRIES: u32 = 10_000;

/// Switches the torque of every servo off, from any thread and past whatever the bus is doing.
///
/// [`Self::stop`] closes a latch and sends one broadcast frame (`WRITE 40 = 0` to id 0xFE, 80 us on the wire). From
/// then on the arm refuses every goal with [`Error::EmergencyStopped`]; its next call repeats the frame and reads the
/// torque back, since a frame that meets a servo's reply on the wire may be lost. Only
/// [`Arm::release_stop`](super::Arm::release_stop) opens the latch, on a relaxed arm.
///
/// Clones share latch and line. A stop outlives its arm and does nothing then but send the frame, as long as the
/// port's device is there.
///
/// ```
/// # use std::sync::Arc;
/// # use so101_hal::arm::{Arm, ArmOptions};
/// # use so101_hal::{Calibration, Clock, EmulatedServos, EmulatorOptions, Error, JointVector, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// # let clock = VirtualClock::new();
/// # let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
/// # let options = ArmOptions::new(Arc::new(clock.clone()));
/// let mut arm = Arm::connect(servos.bus(), Calibration::model(), options)?.into_armed()?;
/// let stop = arm.emergency_stop();
/// std::thread::spawn(move || stop.stop()).join().ok();
/// let here = arm.read_joints()?;
/// assert!(matches!(arm.send(&here, clock.now()), Err(Error::EmergencyStopped)));
/// let mut relaxed = arm.relax()?;
/// relaxed.release_stop()?; // the operator says so
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct EmergencyStop {
    shared: Arc<Shared>,
}

struct Shared {
    latch: AtomicBool,
    writer: Mutex<Option<Box<dyn EmergencyWriter>>>,
}

impl core::fmt::Debug for EmergencyStop {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EmergencyStop").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}

impl EmergencyStop {
    pub(super) fn new(writer: Option<Box<dyn EmergencyWriter>>) -> Self {
        Self { shared: Arc::new(Shared { latch: AtomicBool::new(false), writer: Mutex::new(writer) }) }
    }

    /// Closes the latch and sends the frame. May be called again and again: every call sends.
    ///
    /// # Errors
    /// The latch is closed all the same: [`Error::EmergencyStopDeferred`] where the port cannot be shared, so that
    /// the frame goes out with the arm's next call, and errors of the port.
    pub fn stop(&self) -> Result<()> {
        self.shared.latch.store(true, Ordering::SeqCst);
        let mut frame = [0; OVERHEAD + 2];
        let n = Request::Write(Target::All, TORQUE_ENABLE.address, &[0]).encode(&mut frame)?;
        // Who holds the line sends this frame, or puts a new port in; the arm's next call repeats it in any case.
        let mut line = self.shared.writer.try_lock();
        for _ in 0..LINE_TRIES {
            if line.is_some() {
                break;
            }
            core::hint::spin_loop();
            line = self.shared.writer.try_lock();
        }
        match line.as_mut().and_then(|writer| writer.as_mut()) {
            Some(writer) => writer.write_frame(frame.get(..n).unwrap_or(&frame)),
            None => Err(Error::EmergencyStopDeferred),
        }
    }

    /// Whether the latch is closed.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.shared.latch.load(Ordering::SeqCst)
    }

    pub(super) fn release(&self) {
        self.shared.latch.store(false, Ordering::SeqCst);
    }

    /// The line of a port that was opened again.
    pub(super) fn replace_writer(&self, writer: Option<Box<dyn EmergencyWriter>>) {
        let before = core::mem::replace(&mut *self.shared.writer.lock(), writer);
        // Closing it may take a while, and nobody has to wait for that.
        drop(before);
    }
}
