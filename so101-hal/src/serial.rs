//! Real serial ports, through the `serialport` crate.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use std::io::{ErrorKind as IoErrorKind, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use serialport::{ClearBuffer, DataBits, ErrorKind, FlowControl, Parity, SerialPort as Device, StopBits};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::port::Port;

/// The baud rate of the servos as they leave the factory.
pub const BAUD_RATE: u32 = 1_000_000;

/// A USB adapter on the servo bus: 1 Mbaud, 8N1, for this program alone.
///
/// ```no_run
/// use so101_hal::bus::{Bus, ServoBus};
/// use so101_hal::protocol::ServoId;
/// use so101_hal::serial::SerialPort;
/// # fn main() -> so101_hal::Result<()> {
/// let mut bus = Bus::new(SerialPort::open("/dev/ttyACM0")?);
/// println!("alarms of servo 1: {}", bus.ping(ServoId::new(1)?)?);
/// # Ok(()) }
/// ```
pub struct SerialPort {
    device: Box<dyn Device>,
    path: String,
    start: Instant,
}

impl core::fmt::Debug for SerialPort {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SerialPort").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SerialPort {
    /// Opens the port at `path`, such as `/dev/ttyACM0` or `/dev/serial/by-id/...`. Sends nothing.
    ///
    /// # Errors
    /// [`Error::PortNotFound`], [`Error::PortPermission`] (with what to do about it), [`Error::PortBusy`], and
    /// [`Error::PortIo`] for the rest.
    pub fn open(path: &str) -> Result<Self> {
        let device = serialport::new(path, BAUD_RATE)
            .data_bits(DataBits::Eight)
            .parity(Parity::None)
            .stop_bits(StopBits::One)
            .flow_control(FlowControl::None)
            .timeout(Duration::from_millis(20))
            .open()
            .map_err(|e| open_error(path, e))?;
        Ok(Self { device, path: path.to_string(), start: Instant::now() })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    fn io_error(
        &self,
        doing: &'static str,
        source: impl core::error::Error + Send + Sync + 'static,
    ) -> Error {
        Error::PortIo { doing, path: self.path.clone(), source: Box::new(source) }
    }
}

impl Port for SerialPort {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.device.write_all(bytes).map_err(|e| self.io_error("write to", e))
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        loop {
            let left = deadline.since(self.now());
            self.device.set_timeout(left).map_err(|e| self.io_error("set the timeout of", e))?;
            match self.device.read(buffer) {
                // A terminal that is at its end was closed at the other side.
                Ok(0) if !buffer.is_empty() => {
                    let gone = std::io::Error::from(IoErrorKind::UnexpectedEof);
                    return Err(self.io_error("read from", gone));
                }
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == IoErrorKind::TimedOut => {
                    // The device counts whole milliseconds.
                    if self.now() >= deadline {
                        return Ok(0);
                    }
                }
                Err(e) if e.kind() == IoErrorKind::Interrupted => {}
                Err(e) => return Err(self.io_error("read from", e)),
            }
        }
    }

    fn discard_input(&mut self) -> Result<()> {
        self.device.clear(ClearBuffer::Input).map_err(|e| self.io_error("clear", e))
    }
}

fn open_error(path: &str, e: serialport::Error) -> Error {
    let path_text = path.to_string();
    if !Path::new(path).exists() && cfg!(unix) {
        return Error::PortNotFound { path: path_text };
    }
    match e.kind() {
        ErrorKind::Io(IoErrorKind::PermissionDenied) => Error::PortPermission { path: path_text },
        ErrorKind::Io(IoErrorKind::NotFound) => Error::PortNotFound { path: path_text },
        // On Unix a lost race for the exclusive lock, elsewhere a missing port.
        ErrorKind::NoDevice if cfg!(unix) => Error::PortBusy { path: path_text },
        ErrorKind::NoDevice => Error::PortNotFound { path: path_text },
        _ => Error::PortIo { doing: "open", path: path_text, source: Box::new(e) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_not_there_is_named() {
        let err = SerialPort::open("/dev/ttyACM-none").unwrap_err();
        assert!(matches!(&err, Error::PortNotFound { path } if path == "/dev/ttyACM-none"), "{err:?}");
        assert!(err.to_string().ends_with("/dev/ttyACM-none"));
    }

    #[test]
    fn a_port_without_permission_says_what_to_do() {
        let denied = serialport::Error::new(ErrorKind::Io(IoErrorKind::PermissionDenied), "denied");
        let text = open_error("/dev/null", denied).to_string();
        assert!(text.contains("dialout") && text.contains("udev") && text.ends_with("/dev/null"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn bytes_pass_a_pseudo_terminal_and_a_deadline_ends_a_read() {
        let (mut master, slave) = serialport::TTYPort::pair().unwrap();
        let path = slave.name().unwrap();
        // The other end stays open, or the terminal would be at its end.
        let mut port = SerialPort::open(&path).unwrap();
        port.write_all(&[1, 2, 3]).unwrap();
        let mut got = [0; 3];
        std::io::Read::read_exact(&mut master, &mut got).unwrap();
        assert_eq!(got, [1, 2, 3]);

        std::io::Write::write_all(&mut master, &[9; 5]).unwrap();
        let mut buffer = [0; 8];
        let deadline = port.now() + Duration::from_secs(2);
        assert_eq!(port.read(&mut buffer, deadline).unwrap(), 5);
        let passed = port.now();
        assert_eq!(port.read(&mut buffer, passed).unwrap(), 0);

        std::io::Write::write_all(&mut master, &[7; 5]).unwrap();
        port.discard_input().unwrap();
        let passed = port.now();
        assert_eq!(port.read(&mut buffer, passed).unwrap(), 0);
        drop(slave);
    }
}
