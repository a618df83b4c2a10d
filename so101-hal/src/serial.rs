//! Real serial ports, through the `serialport` crate.

#[cfg(not(unix))]
mod device;
#[cfg(unix)]
mod sys;

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use std::io::ErrorKind as IoErrorKind;
use std::path::Path;
use std::time::Duration;

use serialport::{DataBits, ErrorKind, FlowControl, Parity, StopBits};

use crate::clock::Timestamp;
use crate::discovery::{Discovery, PortInfo};
use crate::error::{Error, Result};
#[cfg(unix)]
use crate::port::FdPort;
use crate::port::{EmergencyWriter, Port};
use crate::registers::BaudRate;
#[cfg(not(unix))]
use device::DevicePort;

/// The baud rate of the servos as they leave the factory.
pub const BAUD_RATE: u32 = BaudRate::M1.bits_per_second();

/// A USB adapter on the servo bus: 8N1, for this program alone.
///
/// On Unix a transaction costs four system calls: discard, send, wait, read. After the adapter was unplugged,
/// [`Port::reopen`] finds the same one again, by its serial number or, where it has none, by its USB socket, whatever
/// its path is then.
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
#[derive(Debug)]
pub struct SerialPort {
    #[cfg(unix)]
    port: FdPort,
    #[cfg(not(unix))]
    port: DevicePort,
    path: String,
    baud: BaudRate,
    /// The adapter behind the path; `None` = no USB device.
    adapter: Option<PortInfo>,
}

impl SerialPort {
    /// Opens the port at `path`, such as `/dev/ttyACM0` or `/dev/serial/by-id/...`, at 1 Mbaud. Sends nothing.
    ///
    /// # Errors
    /// [`Error::PortNotFound`], [`Error::PortPermission`] (with what to do about it), [`Error::PortBusy`], and
    /// [`Error::PortIo`] for the rest.
    pub fn open(path: &str) -> Result<Self> {
        Self::open_at(path, BaudRate::M1)
    }

    /// Opens the port at another baud rate, to look for servos that were set to it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_at(path: &str, baud: BaudRate) -> Result<Self> {
        let adapter = Discovery::system().port(path).filter(|port| port.vid.is_some());
        Ok(Self { port: connect(path, baud)?, path: path.to_string(), baud, adapter })
    }

    /// Opens the adapter with this USB serial number, whatever its path.
    ///
    /// # Errors
    /// [`Error::AdapterGone`], and as [`Self::open`].
    pub fn open_by_usb_serial(serial: &str) -> Result<Self> {
        let ports = Discovery::system().ports();
        match ports.into_iter().find(|port| port.serial.as_deref() == Some(serial)) {
            Some(port) => Self::open(&port.path),
            None => {
                Err(Error::AdapterGone { serial: serial.to_string(), path: "no serial port".to_string() })
            }
        }
    }

    /// The path it was opened by, the newest after a reopening.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The USB adapter behind it; `None` = no USB device, a pseudo-terminal for example.
    #[must_use]
    pub const fn adapter(&self) -> Option<&PortInfo> {
        self.adapter.as_ref()
    }
}

impl Port for SerialPort {
    fn now(&self) -> Timestamp {
        self.port.now()
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.port.write_all(bytes)
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        self.port.read(buffer, deadline)
    }

    fn discard_input(&mut self) -> Result<()> {
        self.port.discard_input()
    }

    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        self.port.emergency_writer()
    }

    fn reopen(&mut self) -> Result<()> {
        // First of all the old device: it is open for this program alone, and its name is free only without it.
        self.port.close();
        let path = match &self.adapter {
            None => self.path.clone(),
            Some(adapter) => path_of(adapter, &self.path, &Discovery::system())?,
        };
        let fresh = connect(&path, self.baud)?;
        self.port.replace(fresh);
        self.path = path;
        Ok(())
    }
}

/// Where an adapter is now: at its old path if that still leads to it.
fn path_of(adapter: &PortInfo, old_path: &str, discovery: &Discovery) -> Result<String> {
    if discovery.port(old_path).is_some_and(|port| port.is_same_adapter(adapter)) {
        return Ok(old_path.to_string());
    }
    let ports = discovery.ports();
    match ports.into_iter().find(|port| port.is_same_adapter(adapter)) {
        Some(port) => Ok(port.path),
        None => Err(Error::AdapterGone {
            serial: adapter.serial.clone().unwrap_or_else(|| "unknown".to_string()),
            path: old_path.to_string(),
        }),
    }
}

fn builder(path: &str, baud: BaudRate) -> serialport::SerialPortBuilder {
    serialport::new(path, baud.bits_per_second())
        .data_bits(DataBits::Eight)
        .parity(Parity::None)
        .stop_bits(StopBits::One)
        .flow_control(FlowControl::None)
        .timeout(Duration::from_millis(20))
}

/// The crate knows how each system sets an odd speed; on Unix the bytes then go straight to the file descriptor.
#[cfg(unix)]
fn connect(path: &str, baud: BaudRate) -> Result<FdPort> {
    let device = serialport::TTYPort::open(&builder(path, baud)).map_err(|e| open_error(path, e))?;
    let fd = sys::into_fd(device);
    // The crate leaves it blocking: a device that takes nothing would hold a write, a stop's too, for ever.
    rustix::io::ioctl_fionbio(&fd, true).map_err(|e| Error::PortIo {
        doing: "set up",
        path: path.to_string(),
        source: Box::new(std::io::Error::from(e)),
    })?;
    Ok(FdPort::new(fd, path))
}

#[cfg(not(unix))]
fn connect(path: &str, baud: BaudRate) -> Result<DevicePort> {
    let device = builder(path, baud).open().map_err(|e| open_error(path, e))?;
    Ok(DevicePort::new(device, path))
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
mod tests;
