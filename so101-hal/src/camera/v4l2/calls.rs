//! The calls that a camera needs of the system.

use core::fmt;
use core::time::Duration;

use super::abi::{Buffer, Request};

pub(crate) mod sealed {
    /// Requests are those of [`super::super::abi`].
    pub trait Sealed {}
}

/// An error number of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted.
    pub const PERM: Self = Self(1);
    /// No such file.
    pub const NOENT: Self = Self(2);
    /// The device did not answer as it should.
    pub const IO: Self = Self(5);
    /// No such device, or address.
    pub const NXIO: Self = Self(6);
    /// Nothing there yet.
    pub const AGAIN: Self = Self(11);
    /// Permission denied.
    pub const ACCES: Self = Self(13);
    /// Somebody else uses it.
    pub const BUSY: Self = Self(16);
    /// No such device: unplugged.
    pub const NODEV: Self = Self(19);
    /// Not a value for this.
    pub const INVAL: Self = Self(22);
    /// This device does not know the request.
    pub const NOTTY: Self = Self(25);
    /// No room: on USB, no bandwidth.
    pub const NOSPC: Self = Self(28);
    /// Beyond the range.
    pub const RANGE: Self = Self(34);

    const NAMES: [(i32, &'static str); 15] = [
        (1, "EPERM"),
        (2, "ENOENT"),
        (4, "EINTR"),
        (5, "EIO"),
        (6, "ENXIO"),
        (11, "EAGAIN"),
        (12, "ENOMEM"),
        (13, "EACCES"),
        (16, "EBUSY"),
        (19, "ENODEV"),
        (22, "EINVAL"),
        (25, "ENOTTY"),
        (28, "ENOSPC"),
        (32, "EPIPE"),
        (34, "ERANGE"),
    ];

    /// Its name in C; `None` for those that cameras do not give.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }

    /// The number of a name in C.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(number, _)| Self(*number))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Errno {}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// There is something to take, or an error to learn of.
    Yes,
    /// The time is over.
    TimedOut,
}

/// The calls that a camera needs of the system, on a device that is open.
pub trait Calls: Send {
    /// One request: the structure goes in and comes back changed.
    ///
    /// # Errors
    /// The kernel's error number.
    fn ioctl<R: Request>(&mut self, argument: &mut R::Argument) -> Result<(), Errno>;

    /// Maps buffer `index` of `length` bytes, which lies at `offset`, into memory; called once for each, from 0.
    ///
    /// # Errors
    /// The kernel's error number.
    fn map(&mut self, index: u32, length: u32, offset: u32) -> Result<(), Errno>;

    /// Gives a buffer to the kernel (`VIDIOC_QBUF`), which may write to it from now on.
    ///
    /// # Errors
    /// The kernel's error number.
    fn queue(&mut self, buffer: &mut Buffer) -> Result<(), Errno>;

    /// Takes a filled buffer of the kernel (`VIDIOC_DQBUF`).
    ///
    /// # Errors
    /// [`Errno::AGAIN`] where there is none yet.
    fn dequeue(&mut self, buffer: &mut Buffer) -> Result<(), Errno>;

    /// The bytes of a buffer that was taken and not given back; `None` for others.
    fn taken(&self, index: u32) -> Option<&[u8]>;

    /// Waits until a filled buffer, or an error, can be taken.
    ///
    /// # Errors
    /// The kernel's error number.
    fn wait(&mut self, limit: Duration) -> Result<Ready, Errno>;

    /// The kernel's `CLOCK_MONOTONIC`, which stamps the pictures.
    fn monotonic_now(&self) -> Duration;
}
