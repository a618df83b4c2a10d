use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;
use crate::bus::{Bus, ServoBus as _, SyncReplies};
use crate::clock::SystemClock;
use crate::emulator::{EmulatedServos, EmulatorOptions};
use crate::protocol::ServoId;
use crate::registers::TELEMETRY;

/// The other end of a new pseudo-terminal, and its path.
fn terminal() -> (std::fs::File, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    (master.into(), path)
}

#[test]
fn a_transaction_costs_one_call_to_discard_to_send_to_wait_and_to_read() {
    let (mut master, path) = terminal();
    let mut port = FdPort::open(&path).unwrap();
    port.discard_input().unwrap();
    port.write_all(&[1, 2, 3]).unwrap();
    let mut got = [0; 3];
    master.read_exact(&mut got).unwrap();
    assert_eq!(got, [1, 2, 3]);
    // No byte has a meaning of its own to the terminal.
    let all: Vec<u8> = (0..=255).collect();
    master.write_all(&all).unwrap();
    let mut buffer = [0; 300];
    let deadline = port.now() + Duration::from_secs(5);
    assert_eq!(port.read(&mut buffer, deadline).unwrap(), 256);
    assert_eq!((&buffer[..256], port.syscalls()), (&all[..], 4));
    // What has come is returned even when the deadline has passed; what was discarded is not.
    master.write_all(&[7; 5]).unwrap();
    assert_eq!(port.read(&mut buffer, Timestamp::ZERO).unwrap(), 5);
    master.write_all(&[7; 5]).unwrap();
    port.discard_input().unwrap();
    assert_eq!(port.read(&mut buffer, Timestamp::ZERO).unwrap(), 0);
}

#[test]
fn a_terminal_is_for_one_program_and_one_that_is_not_there_is_named() {
    let (_master, path) = terminal();
    let first = FdPort::open(&path).unwrap();
    assert_eq!(first.name(), path);
    assert!(matches!(FdPort::open(&path), Err(Error::PortBusy { path: p }) if p == path));
    drop(first);
    FdPort::open(&path).unwrap();
    assert!(matches!(FdPort::open("/dev/pts/none"), Err(Error::PortNotFound { .. })));
}

#[test]
fn a_port_that_was_unplugged_is_an_error_until_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("arm");
    let name = link.to_str().unwrap();
    let (master, path) = terminal();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut port = FdPort::open(name).unwrap();
    drop(master);
    let mut buffer = [0; 8];
    let deadline = port.now() + Duration::from_secs(5);
    assert!(matches!(port.read(&mut buffer, deadline), Err(Error::PortIo { doing: "read from", .. })));
    std::fs::remove_file(&link).unwrap();
    assert!(matches!(port.reopen(), Err(Error::PortNotFound { .. })));
    assert!(matches!(port.write_all(&[1]), Err(Error::PortIo { doing: "write to", .. })));
    assert_eq!(port.as_raw_fd(), -1);

    let (mut master, path) = terminal();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    port.reopen().unwrap();
    port.emergency_writer().unwrap().write_frame(&[5, 6]).unwrap();
    let mut got = [0; 2];
    master.read_exact(&mut got).unwrap();
    assert_eq!(got, [5, 6]);
}

#[test]
fn any_file_descriptor_will_do() {
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    let mut port = FdPort::new(mine, "socket");
    port.write_all(&[1]).unwrap();
    let mut got = [0];
    theirs.read_exact(&mut got).unwrap();
    theirs.write_all(&[9; 600]).unwrap();
    port.discard_input().unwrap();
    let mut buffer = [0; 8];
    assert_eq!(port.read(&mut buffer, Timestamp::ZERO).unwrap(), 0);
    assert!(matches!(port.reopen(), Err(Error::NotReopenable)));
    drop(theirs);
    assert!(matches!(port.read(&mut buffer, Timestamp::ZERO), Err(Error::PortIo { .. })));
}

#[test]
fn the_servos_answer_over_a_file_descriptor() {
    let servos = EmulatedServos::new(Arc::new(SystemClock::new()), EmulatorOptions::default());
    let (mine, mut theirs) = UnixStream::pair().unwrap();
    let mut emulated = servos.port();
    let served = std::thread::spawn(move || {
        let mut bytes = [0; 256];
        while let Ok(n @ 1..) = theirs.read(&mut bytes) {
            emulated.write_all(&bytes[..n]).unwrap();
            let mut replies = [0; 512];
            let n = emulated.read(&mut replies, Timestamp::ZERO).unwrap();
            theirs.write_all(&replies[..n]).unwrap();
        }
    });
    let mut bus = Bus::new(FdPort::new(mine, "socket"));
    let mut replies = SyncReplies::new();
    for _ in 0..10 {
        bus.sync_read(TELEMETRY, &ServoId::ARM, &mut replies).unwrap();
        assert!(replies.is_complete());
    }
    assert_eq!(bus.stats().requests, 10);
    drop(bus);
    served.join().unwrap();
}
