//! The one place where a file descriptor changes its owner by number.
#![allow(unsafe_code, reason = "`serialport` hands its file descriptor out as a bare number only")]

use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};

/// Takes the file descriptor out of an open port, with all that was set up on it.
pub(super) fn into_fd(device: serialport::TTYPort) -> OwnedFd {
    let fd = device.into_raw_fd();
    // SAFETY: the port has given up the descriptor, which is open and now belongs to nobody else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}
