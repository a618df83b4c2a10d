use std::time::{Duration, Instant};

use super::*;
use crate::bus::{Bus, ServoBus as _};
use crate::clock::SystemClock;
use crate::emulator::EmulatorOptions;
use crate::port::FdPort;
use crate::protocol::ServoId;
use crate::registers;

fn servos() -> EmulatedServos {
    EmulatedServos::new(Arc::new(SystemClock::new()), EmulatorOptions::default())
}

/// Waits for something that another thread does, ten seconds at most.
fn eventually(mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_true() {
        assert!(Instant::now() < end, "it did not happen");
        std::thread::yield_now();
    }
}

#[test]
fn a_client_talks_to_the_servos_through_a_path() {
    let servos = servos();
    let front_end = PtyFrontEnd::serve(servos.clone(), None).unwrap();
    let mut bus = Bus::new(FdPort::open(front_end.path()).unwrap());
    let id = ServoId::new(4).unwrap();
    bus.write_register(id, &registers::P_COEFFICIENT, 16).unwrap();
    assert_eq!(bus.read_register(id, &registers::P_COEFFICIENT).unwrap().value, 16);
    assert_eq!(servos.command("get 4 P_Coefficient").unwrap(), "16");
}

#[test]
fn a_link_leads_to_the_port_also_after_it_was_unplugged_and_goes_away_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("arm");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    let servos = servos();
    let front_end = PtyFrontEnd::serve(servos.clone(), Some(&link)).unwrap();
    // A second one at the same place is refused, and the first one's link stays.
    let error = PtyFrontEnd::serve(servos.clone(), Some(&link)).unwrap_err();
    assert!(matches!(error, Error::Pty { doing: "take the place of", .. }), "{error}");
    let mut bus = Bus::new(FdPort::open(front_end.path()).unwrap());
    let id = ServoId::new(2).unwrap();
    bus.ping(id).unwrap();
    servos.unplug();
    eventually(|| bus.ping(id).is_err() && !link.exists());
    servos.replug();
    eventually(|| link.exists());
    eventually(|| bus.reopen().is_ok() && bus.ping(id).is_ok());
    drop(front_end);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "link and lock are gone");
}

#[test]
fn what_somebody_else_has_put_at_the_links_place_stays() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("arm");
    let device = folder.path().join("device");
    std::fs::write(&device, "precious").unwrap();
    let refused = |link: &Path| {
        let error = PtyFrontEnd::serve(servos(), Some(link)).unwrap_err();
        assert!(matches!(error, Error::Pty { doing: "take the place of", .. }), "{error}");
        assert!(!folder.path().join(".arm.lock").exists() && !folder.path().join(".device.lock").exists());
    };
    refused(&device);
    std::os::unix::fs::symlink(&device, &link).unwrap();
    refused(&link);
    assert_eq!(std::fs::read_to_string(&link).unwrap(), "precious");
    refused(Path::new("/"));
}

#[test]
fn a_link_that_a_killed_process_has_left_is_taken_over_even_when_its_terminal_lives() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("arm");
    // The number of its terminal has become another process's.
    let other = PtyFrontEnd::serve(servos(), None).unwrap();
    std::os::unix::fs::symlink(other.path(), &link).unwrap();
    std::fs::write(folder.path().join(".arm.lock"), "").unwrap();
    let front_end = PtyFrontEnd::serve(servos(), Some(&link)).unwrap();
    assert_ne!(std::fs::read_link(&link).unwrap(), Path::new(other.path()));
    Bus::new(FdPort::open(front_end.path()).unwrap()).ping(ServoId::new(1).unwrap()).unwrap();
}

#[test]
fn a_client_that_reads_nothing_does_not_stop_the_line() {
    use crate::port::Port as _;

    let servos = servos();
    let front_end = PtyFrontEnd::serve(servos.clone(), None).unwrap();
    let mut port = FdPort::open(front_end.path()).unwrap();
    // Read 120 bytes of servo 1: more replies than a terminal holds.
    let request = [0xff, 0xff, 1, 4, 2, 0, 120, 0x80];
    for n in 1..=200 {
        port.write_all(&request).unwrap();
        eventually(|| servos.transactions() == n);
    }
    port.discard_input().unwrap();
    drop(front_end);
}

#[test]
fn the_next_client_may_come_although_the_one_before_has_asked_to_be_alone() {
    let servos = servos();
    let front_end = PtyFrontEnd::serve(servos, None).unwrap();
    for _ in 0..3 {
        let mut bus = Bus::new(FdPort::open(front_end.path()).unwrap());
        assert!(matches!(FdPort::open(front_end.path()), Err(Error::PortBusy { .. })));
        bus.ping(ServoId::new(3).unwrap()).unwrap();
    }
}

#[test]
fn servos_with_another_baud_rate_than_the_client_do_not_hear_it() {
    let servos = servos();
    servos.command("set 3 Baud_Rate 1").unwrap();
    let front_end = PtyFrontEnd::serve(servos, None).unwrap();
    let mut bus = Bus::new(FdPort::open(front_end.path()).unwrap());
    let heard = |bus: &mut Bus<FdPort>| ServoId::ARM.map(|id| bus.ping(id).is_ok());
    assert_eq!(heard(&mut bus), [true, true, false, true, true, true]);
    drop(bus);
    let slow = std::fs::File::options().read(true).write(true).open(front_end.path()).unwrap();
    let mut settings = tcgetattr(&slow).unwrap();
    settings.set_speed(500_000).unwrap();
    tcsetattr(&slow, OptionalActions::Now, &settings).unwrap();
    let mut bus = Bus::new(FdPort::new(slow, "slow"));
    assert_eq!(heard(&mut bus), [false, false, true, false, false, false]);
}
