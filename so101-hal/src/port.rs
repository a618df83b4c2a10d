//! The bytes below the bus.

mod counting;
#[cfg(all(unix, feature = "std", any(feature = "serial", feature = "pty")))]
mod fd;
mod log;

pub use counting::{CountingPort, PortCalls};
#[cfg(all(unix, feature = "std", any(feature = "serial", feature = "pty")))]
pub use fd::FdPort;
pub use log::{RecordingPort, ReplayPort};

use alloc::boxed::Box;

use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// A half-duplex line to the servos. Implemented by [`SerialPort`](crate::serial::SerialPort) (feature `serial`), by
/// `FdPort` (any file descriptor, Unix), by
/// [`EmulatedPort`](crate::emulator::EmulatedPort), and by a recorded session, [`ReplayPort`].
///
/// Contract of one transaction: `discard_input`, `write_all`, then `read` until the reply is complete or a deadline,
/// taken once from `now`, has passed.
pub trait Port: Send {
    /// The present moment on this port's own monotonic clock, on which deadlines are counted.
    fn now(&self) -> Timestamp;

    /// Sends all bytes.
    ///
    /// # Errors
    /// When the port is gone.
    fn write_all(&mut self, bytes: &[u8]) -> Result<()>;

    /// Waits for bytes until `deadline` and returns how many came; 0 means that the deadline has passed. What has
    /// come already is returned even when the deadline is in the past.
    ///
    /// # Errors
    /// When the port is gone. A timeout is no error.
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize>;

    /// Throws away what has come and was not read.
    ///
    /// # Errors
    /// When the port is gone.
    fn discard_input(&mut self) -> Result<()>;

    /// A second handle that can only send, for an emergency stop from another thread; `None` where the port cannot be
    /// shared. It is of use until the port is opened again.
    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        None
    }

    /// Closes the device and opens the same one again, after it was unplugged.
    ///
    /// # Errors
    /// [`Error::NotReopenable`] where the port does not know how, and errors of opening it: the port then stays closed
    /// and this can be tried again.
    fn reopen(&mut self) -> Result<()> {
        Err(Error::NotReopenable)
    }
}

/// Sends while another thread holds the port: the way of an emergency stop past a busy bus.
pub trait EmergencyWriter: Send {
    /// Sends one packet at once, in the middle of whatever is under way.
    ///
    /// # Errors
    /// When the port is gone.
    fn write_frame(&mut self, frame: &[u8]) -> Result<()>;
}

impl<P: Port + ?Sized> Port for &mut P {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        (**self).write_all(bytes)
    }
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        (**self).read(buffer, deadline)
    }
    fn discard_input(&mut self) -> Result<()> {
        (**self).discard_input()
    }
    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        (**self).emergency_writer()
    }
    fn reopen(&mut self) -> Result<()> {
        (**self).reopen()
    }
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        (**self).write_all(bytes)
    }
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        (**self).read(buffer, deadline)
    }
    fn discard_input(&mut self) -> Result<()> {
        (**self).discard_input()
    }
    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        (**self).emergency_writer()
    }
    fn reopen(&mut self) -> Result<()> {
        (**self).reopen()
    }
}
