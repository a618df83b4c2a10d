//! A port that counts how it is used.

use alloc::boxed::Box;

use super::{EmergencyWriter, Port};
use crate::clock::Timestamp;
use crate::error::Result;

/// Calls of a [`CountingPort`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCalls {
    /// Writes: one system call each on a device.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Reads: two system calls each on a device, one that waits and one that reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Reads that ended at their deadline: one system call each.
    pub timeouts: u64,
    /// Times that the input was thrown away: one system call each.
    pub discards: u64,
}

impl PortCalls {
    /// What the calls cost an [`FdPort`](super::FdPort) or a [`SerialPort`](crate::serial::SerialPort) on Unix.
    #[must_use]
    pub const fn syscalls(&self) -> u64 {
        self.writes + 2 * self.reads - self.timeouts + self.discards
    }
}

/// Counts the calls of the port inside.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::bus::{Bus, ServoBus, SyncReplies};
/// use so101_hal::port::CountingPort;
/// use so101_hal::registers::TELEMETRY;
/// use so101_hal::{EmulatedServos, EmulatorOptions, ServoId, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// let mut bus = Bus::new(CountingPort::new(servos.port()));
/// bus.sync_read(TELEMETRY, &ServoId::ARM, &mut SyncReplies::new())?;
/// assert_eq!(bus.port().calls().syscalls(), 4); // discard, write, wait, read
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct CountingPort<P> {
    port: P,
    calls: PortCalls,
}

impl<P: Port> CountingPort<P> {
    /// Counts from zero.
    pub fn new(port: P) -> Self {
        Self { port, calls: PortCalls::default() }
    }

    /// The calls so far.
    #[must_use]
    pub const fn calls(&self) -> PortCalls {
        self.calls
    }

    /// The port inside.
    #[must_use]
    pub const fn inner(&self) -> &P {
        &self.port
    }

    /// Gives the port back.
    #[must_use]
    pub fn into_inner(self) -> P {
        self.port
    }
}

impl<P: Port> Port for CountingPort<P> {
    fn now(&self) -> Timestamp {
        self.port.now()
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.calls.writes += 1;
        self.calls.bytes_written += bytes.len() as u64;
        self.port.write_all(bytes)
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        self.calls.reads += 1;
        let n = self.port.read(buffer, deadline)?;
        self.calls.bytes_read += n as u64;
        self.calls.timeouts += u64::from(n == 0);
        Ok(n)
    }

    fn discard_input(&mut self) -> Result<()> {
        self.calls.discards += 1;
        self.port.discard_input()
    }

    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        self.port.emergency_writer()
    }

    fn reopen(&mut self) -> Result<()> {
        self.port.reopen()
    }
}
