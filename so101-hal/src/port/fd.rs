//! A port on any file descriptor: a terminal, a pseudo-terminal, a socket.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};

use super::{EmergencyWriter, Port};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::registers::BaudRate;

/// A port on a file descriptor, without anything between: one system call to send, one to wait, one to read.
///
/// ```no_run
/// use so101_hal::bus::{Bus, ServoBus};
/// use so101_hal::port::FdPort;
/// use so101_hal::protocol::ServoId;
/// # fn main() -> so101_hal::Result<()> {
/// let mut bus = Bus::new(FdPort::open("/dev/pts/3")?);
/// println!("alarms of servo 1: {}", bus.ping(ServoId::new(1)?)?);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FdPort {
    /// `None` after a reopening that did not succeed.
    fd: Option<OwnedFd>,
    name: String,
    origin: Origin,
    /// Terminals are flushed with one call; anything else is read until it is empty.
    input: Input,
    start: Instant,
    syscalls: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Path,
    Given,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Terminal,
    Stream,
}

impl FdPort {
    /// Opens a terminal or pseudo-terminal: raw, 1 Mbaud and for this program alone, as far as it knows of such
    /// things. Sends nothing.
    ///
    /// # Errors
    /// [`Error::PortNotFound`], [`Error::PortPermission`], [`Error::PortBusy`], and [`Error::PortIo`] for the rest.
    pub fn open(path: &str) -> Result<Self> {
        let fd = open_terminal(path)?;
        Ok(Self { origin: Origin::Path, ..Self::new(fd, path) })
    }

    /// Takes something that is open already, as it is. `name` stands in messages.
    pub fn new(fd: impl Into<OwnedFd>, name: &str) -> Self {
        let fd = fd.into();
        let input = if rustix::termios::isatty(&fd) { Input::Terminal } else { Input::Stream };
        Self {
            fd: Some(fd),
            name: name.to_string(),
            origin: Origin::Given,
            input,
            start: Instant::now(),
            syscalls: 0,
        }
    }

    /// The path or name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// System calls since the port was made.
    #[must_use]
    pub const fn syscalls(&self) -> u64 {
        self.syscalls
    }

    /// Takes another port's file descriptor; the clock and the count go on.
    #[cfg(feature = "serial")]
    pub(crate) fn replace(&mut self, fresh: Self) {
        self.fd = fresh.fd;
        self.name = fresh.name;
        self.input = fresh.input;
    }

    /// Closes the file descriptor; until another one is there every call is an error.
    pub(crate) fn close(&mut self) {
        if let Some(fd) = self.fd.take() {
            // An emergency writer keeps the device open, and with it what shuts others out, this port too.
            let _ = rustix::fs::flock(&fd, rustix::fs::FlockOperation::Unlock);
            let _ = rustix::termios::ioctl_tiocnxcl(&fd);
        }
    }

    fn fd(&self, doing: &'static str) -> Result<BorrowedFd<'_>> {
        match &self.fd {
            Some(fd) => Ok(fd.as_fd()),
            None => Err(io_error(doing, &self.name, Errno::NODEV)),
        }
    }

    /// Waits for input until the deadline; `false` when none came.
    fn wait(&mut self, deadline: Timestamp) -> Result<bool> {
        loop {
            let left = deadline.since(self.now());
            // A day is for ever on a bus.
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(86_400).min(86_400),
                tv_nsec: left.subsec_nanos().into(),
            };
            self.syscalls += 1;
            let fd = self.fd("wait for")?;
            let mut polled = [PollFd::new(&fd, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                // The kernel may wake a little early by its own clock, but then time is still left.
                Ok(0) if self.now() >= deadline => return Ok(false),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(e) => return Err(io_error("wait for", &self.name, e)),
            }
        }
    }
}

impl AsRawFd for FdPort {
    /// The file descriptor, -1 when it is closed.
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Port for FdPort {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        let calls =
            write_all(self.fd("write to")?, bytes).map_err(|e| io_error("write to", &self.name, e))?;
        self.syscalls += calls;
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.wait(deadline)? {
            self.syscalls += 1;
            match rustix::io::read(self.fd("read from")?, &mut *buffer) {
                // What is readable and has nothing to read was closed at the other side.
                Ok(0) => {
                    let gone = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                    return Err(Error::PortIo {
                        doing: "read from",
                        path: self.name.clone(),
                        source: Box::new(gone),
                    });
                }
                Ok(n) => return Ok(n),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(e) => return Err(io_error("read from", &self.name, e)),
            }
        }
        Ok(0)
    }

    fn discard_input(&mut self) -> Result<()> {
        self.syscalls += 1;
        match self.input {
            Input::Terminal => tcflush(self.fd("clear")?, QueueSelector::IFlush)
                .map_err(|e| io_error("clear", &self.name, e)),
            Input::Stream => {
                let past = Timestamp::ZERO;
                let mut chunk = [0; 256];
                while self.read(&mut chunk, past)? > 0 {}
                Ok(())
            }
        }
    }

    fn emergency_writer(&self) -> Option<Box<dyn EmergencyWriter>> {
        let fd = self.fd.as_ref()?.try_clone().ok()?;
        Some(Box::new(FdWriter { fd, name: self.name.clone() }))
    }

    fn reopen(&mut self) -> Result<()> {
        if self.origin == Origin::Given {
            return Err(Error::NotReopenable);
        }
        // Closed first: it is open for this program alone.
        self.close();
        self.fd = Some(open_terminal(&self.name)?);
        Ok(())
    }
}

/// A second handle to the same device.
struct FdWriter {
    fd: OwnedFd,
    name: String,
}

impl EmergencyWriter for FdWriter {
    fn write_frame(&mut self, frame: &[u8]) -> Result<()> {
        write_all(self.fd.as_fd(), frame).map_err(|e| io_error("write to", &self.name, e))?;
        Ok(())
    }
}

/// Sends all bytes; the number of calls that it took.
fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<u64, Errno> {
    let mut calls = 0;
    while !bytes.is_empty() {
        calls += 1;
        match rustix::io::write(fd, bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or(&[]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // A device that takes nothing for a second is gone.
                let second = Timespec { tv_sec: 1, tv_nsec: 0 };
                match poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&second)) {
                    Ok(0) => return Err(Errno::TIMEDOUT),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(e) => return Err(e),
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(calls)
}

fn open_terminal(path: &str) -> Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| open_error(path, e))?;
    rustix::fs::flock(&fd, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|e| open_error(path, e))?;
    // Pseudo-terminals of some systems know neither exclusive use nor this speed.
    let _ = rustix::termios::ioctl_tiocexcl(&fd);
    let mut settings = tcgetattr(&fd).map_err(|e| io_error("read the settings of", path, e))?;
    settings.make_raw();
    settings.control_modes |= rustix::termios::ControlModes::CREAD | rustix::termios::ControlModes::CLOCAL;
    let _ = settings.set_speed(BaudRate::M1.bits_per_second());
    tcsetattr(&fd, OptionalActions::Now, &settings).map_err(|e| io_error("set up", path, e))?;
    Ok(fd)
}

fn open_error(path: &str, e: Errno) -> Error {
    let path_text = path.to_string();
    match e {
        Errno::NOENT | Errno::NXIO | Errno::NODEV => Error::PortNotFound { path: path_text },
        Errno::ACCESS | Errno::PERM => Error::PortPermission { path: path_text },
        Errno::BUSY | Errno::WOULDBLOCK => Error::PortBusy { path: path_text },
        _ => io_error("open", path, e),
    }
}

fn io_error(doing: &'static str, path: &str, e: Errno) -> Error {
    Error::PortIo { doing, path: path.to_string(), source: Box::new(std::io::Error::from(e)) }
}

#[cfg(test)]
mod tests;
