//! The bytes below the bus.

use alloc::boxed::Box;

use crate::clock::Timestamp;
use crate::error::Result;

/// A half-duplex line to the servos. Implemented by [`SerialPort`](crate::serial::SerialPort) (feature `serial`) and
/// by [`EmulatedPort`](crate::emulator::EmulatedPort).
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
}
