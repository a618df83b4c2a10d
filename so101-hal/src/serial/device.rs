//! A port through the `serialport` crate alone, where there are no file descriptors.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use std::io::{ErrorKind as IoErrorKind, Read as _, Write as _};
use std::time::Instant;

use serialport::{ClearBuffer, SerialPort as Device};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::port::{EmergencyWriter, Port};

pub(super) struct DevicePort {
    /// `None` after a reopening that did not succeed.
    device: Option<Box<dyn Device>>,
    path: String,
    start: Instant,
}

impl core::fmt::Debug for DevicePort {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DevicePort").field("path", &self.path).finish_non_exhaustive()
    }
}

impl DevicePort {
    pub(super) fn new(device: Box<dyn Device>, path: &str) -> Self {
        Self { device: Some(device), path: path.to_string(), start: Instant::now() }
    }

    /// Takes another port's device; the clock goes on.
    pub(super) fn replace(&mut self, fresh: Self) {
        self.device = fresh.device;
        self.path = fresh.path;
    }

    pub(super) fn close(&mut self) {
        self.device = None;
    }

    fn device(&mut self) -> Result<&mut Box<dyn Device>> {
        match &mut self.device {
            Some(device) => Ok(device),
            None => Err(io_error(&self.path, "use", std::io::Error::from(IoErrorKind::NotConnected))),
        }
    }
}

impl Port for DevicePort {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let outcome = self.device()?.write_all(bytes);
        outcome.map_err(|e| io_error(&self.path, "write to", e))
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        loop {
            let left = deadline.since(self.now());
            let outcome = self.device()?.set_timeout(left);
            outcome.map_err(|e| io_error(&self.path, "set the timeout of", e))?;
            match self.device()?.read(buffer) {
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == IoErrorKind::TimedOut => {
                    // The device counts whole milliseconds.
                    if self.now() >= deadline {
                        return Ok(0);
                    }
                }
                Err(e) if e.kind() == IoErrorKind::Interrupted => {}
                Err(e) => return Err(io_error(&self.path, "read from", e)),
            }
        }
    }

    fn discard_input(&mut self) -> Result<()> {
        let outcome = self.device()?.clear(ClearBuffer::Input);
        outcome.map_err(|e| io_error(&self.path, "clear", e))
    }

    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        let device = self.device.as_ref()?.try_clone().ok()?;
        Some(Box::new(DeviceWriter { device, path: self.path.clone() }))
    }
}

struct DeviceWriter {
    device: Box<dyn Device>,
    path: String,
}

impl EmergencyWriter for DeviceWriter {
    fn write_frame(&mut self, frame: &[u8]) -> Result<()> {
        self.device.write_all(frame).map_err(|e| io_error(&self.path, "write to", e))
    }
}

fn io_error(
    path: &str,
    doing: &'static str,
    source: impl core::error::Error + Send + Sync + 'static,
) -> Error {
    Error::PortIo { doing, path: path.to_string(), source: Box::new(source) }
}
