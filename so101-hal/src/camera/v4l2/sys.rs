//! The kernel's calls themselves: the only `unsafe` of the cameras.
#![allow(unsafe_code, reason = "border to the kernel: ioctl and mmap")]

use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::vec::Vec;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::time::ClockId;

use super::abi::{Buffer, DQBUF, QBUF, Request};
use super::calls::{Calls, Errno, Ready};

/// A video device that is open.
#[derive(Debug)]
pub struct Device {
    fd: OwnedFd,
    buffers: Vec<Mapping>,
}

/// Memory of the driver in our address space.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// The kernel does not write to it: it was taken and not given back.
    ours: bool,
}

// SAFETY: the mapping belongs to this value alone, is reached through `&Device` for reading only, and any thread may read and
// unmap it.
unsafe impl Send for Mapping {}

impl Device {
    /// Opens a device without waiting for it.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = retry(|| rustix::fs::open(path, flags, Mode::empty()))?;
        Ok(Self { fd, buffers: Vec::new() })
    }

    /// One request whose structure is `T`.
    ///
    /// # Safety
    /// `T` has to be the structure that the kernel reads and writes for `code`.
    unsafe fn request<T: Copy>(&self, code: u32, argument: &mut T) -> Result<(), Errno> {
        retry(|| {
            // SAFETY: the caller vouches for the structure, which lives as long as the call.
            unsafe { rustix::ioctl::ioctl(&self.fd, Structure { code, argument }) }
        })
    }
}

impl Calls for Device {
    fn ioctl<R: Request>(&mut self, argument: &mut R::Argument) -> Result<(), Errno> {
        // SAFETY: `Request` is sealed; each of its implementations pairs a number of linux/videodev2.h with the structure that
        // the kernel has for it, and tests hold sizes and offsets to the kernel's. The structures have no pointers and are
        // valid for any bytes that the kernel writes.
        unsafe { self.request(R::CODE, argument) }
    }

    fn map(&mut self, index: u32, length: u32, offset: u32) -> Result<(), Errno> {
        if index as usize != self.buffers.len() || length == 0 {
            return Err(Errno::INVAL);
        }
        let length = length as usize;
        // SAFETY: the kernel chooses an address that nothing else uses; the file descriptor is a video device, whose buffers
        // may be mapped this way.
        let start = unsafe {
            rustix::mm::mmap(
                core::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &self.fd,
                u64::from(offset),
            )
        }
        .map_err(number)?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::INVAL)?;
        self.buffers.push(Mapping { start, length, ours: true });
        Ok(())
    }

    fn queue(&mut self, buffer: &mut Buffer) -> Result<(), Errno> {
        let index = buffer.index as usize;
        let mapping = self.buffers.get_mut(index).ok_or(Errno::INVAL)?;
        // From the call on the kernel may write, whatever the call says.
        mapping.ours = false;
        // SAFETY: `Buffer` is the structure of VIDIOC_QBUF.
        unsafe { self.request(QBUF, buffer) }
    }

    fn dequeue(&mut self, buffer: &mut Buffer) -> Result<(), Errno> {
        // SAFETY: `Buffer` is the structure of VIDIOC_DQBUF.
        unsafe { self.request(DQBUF, buffer) }?;
        self.buffers.get_mut(buffer.index as usize).ok_or(Errno::INVAL)?.ours = true;
        Ok(())
    }

    fn taken(&self, index: u32) -> Option<&[u8]> {
        let mapping = self.buffers.get(index as usize).filter(|m| m.ours)?;
        // SAFETY: the mapping is alive as long as `self`, has this length, and the kernel does not write to it until it is
        // queued, which takes `&mut self`.
        Some(unsafe { core::slice::from_raw_parts(mapping.start.as_ptr(), mapping.length) })
    }

    fn wait(&mut self, limit: Duration) -> Result<Ready, Errno> {
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        let mut fds = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&limit)) {
            Ok(0) => Ok(Ready::TimedOut),
            // A signal: the caller looks at the time and comes back.
            Ok(_) | Err(Os::INTR) => Ok(Ready::Yes),
            Err(e) => Err(number(e)),
        }
    }

    fn monotonic_now(&self) -> Duration {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        for mapping in self.buffers.drain(..) {
            // SAFETY: it was mapped with this start and length, and nothing borrows it: `taken` borrows the device.
            let _ = unsafe { rustix::mm::munmap(mapping.start.as_ptr().cast::<c_void>(), mapping.length) };
        }
    }
}

/// A request number that is known at run time only, with its structure.
struct Structure<'a, T> {
    code: u32,
    argument: &'a mut T,
}

// SAFETY: the pointer is to a structure that outlives the call; number and structure belong together by the contract of
// `Device::request`. The output is nothing but success.
unsafe impl<T: Copy> Ioctl for Structure<'_, T> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.code as Opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        core::ptr::from_mut(self.argument).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

fn number(e: Os) -> Errno {
    Errno(e.raw_os_error())
}

/// Signals do not end a call.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Os::INTR) => {}
            result => return result.map_err(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::v4l2::abi::{Capability, QueryCap};

    #[test]
    fn a_device_that_is_not_there_and_a_file_that_is_no_device_give_the_kernels_numbers() {
        assert_eq!(Device::open(Path::new("/dev/video-of-nobody")).err(), Some(Errno::NOENT));
        let mut null = Device::open(Path::new("/dev/null")).unwrap();
        assert_eq!(null.ioctl::<QueryCap>(&mut Capability::ZERO.clone()), Err(Errno::NOTTY));
        assert_eq!(null.map(0, 4096, 0).err(), Some(Errno::NODEV));
        assert_eq!(null.taken(0), None);
        assert_eq!(null.queue(&mut Buffer::ZERO.clone()), Err(Errno::INVAL));
        assert!(null.monotonic_now() > Duration::ZERO);
    }
}
