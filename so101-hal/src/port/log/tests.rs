use alloc::string::ToString as _;
use alloc::sync::Arc;
use std::sync::Mutex;

use super::*;
use crate::bus::{Bus, ServoBus as _, SyncReplies};
use crate::clock::{Clock as _, VirtualClock};
use crate::emulator::{EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::protocol::ServoId;
use crate::registers::{PRESENT_VOLTAGE, TELEMETRY};

/// What a session on a bad line returns, reading by reading.
fn session<P: Port>(bus: &mut Bus<P>, mut pass: impl FnMut()) -> Vec<String> {
    let mut out = Vec::new();
    let mut replies = SyncReplies::new();
    for _ in 0..20 {
        bus.sync_read(TELEMETRY, &ServoId::ARM, &mut replies).unwrap();
        out.extend(replies.iter().map(|(id, reply)| format!("{id} {reply:?}")));
        out.push(format!(
            "{:?}",
            bus.read_register(ServoId::ARM[1], &PRESENT_VOLTAGE).map_err(|e| e.to_string())
        ));
        pass();
    }
    out
}

fn recorded() -> (String, Vec<String>) {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    for fault in [Fault::Drop, Fault::BadChecksum, Fault::Junk, Fault::Late(Duration::from_millis(30))] {
        servos.inject(FaultRule::always(fault).with_probability(0.1));
    }
    let text = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&text);
    let mut bus = Bus::new(RecordingPort::new(servos.port(), move |line| {
        *log.lock().unwrap() += &format!("{line}\n");
    }));
    let heard = session(&mut bus, || clock.sleep_until(clock.now() + Duration::from_millis(33)));
    let text = text.lock().unwrap().clone();
    (text, heard)
}

#[test]
fn a_replayed_session_on_a_bad_line_returns_what_the_first_returned() {
    let (text, heard) = recorded();
    assert!(text.contains(" silence\n") && text.contains(" rx ff"), "{text}");
    let mut bus = Bus::new(ReplayPort::parse(&text).unwrap());
    assert_eq!(session(&mut bus, || ()), heard);
    assert!(bus.port().is_at_end());
}

#[test]
fn another_request_than_the_recorded_one_names_both_and_the_line() {
    let text = "# a comment\n0.000000000 clear\n0.000000000 tx ffff010201fb\n";
    let mut bus = Bus::new(ReplayPort::parse(text).unwrap());
    let err = bus.ping(ServoId::ARM[1]).unwrap_err();
    assert_eq!(
        err.to_string(),
        "the replay diverges from the recorded session at line 3: recorded tx ffff010201fb, now tx ffff020201fa"
    );
    let mut bus = Bus::new(ReplayPort::parse(text).unwrap());
    let err = bus.ping(ServoId::ARM[0]).unwrap_err().to_string();
    assert!(err.ends_with("at line 4: recorded nothing more, now a read"), "{err}");
}

#[test]
fn a_read_smaller_than_the_recorded_one_leaves_the_rest_for_the_next() {
    let mut port = ReplayPort::parse("1.500000000 rx 0102030405").unwrap();
    let mut buffer = [0; 3];
    assert_eq!(port.read(&mut buffer, Timestamp::ZERO).unwrap(), 3);
    assert_eq!((port.read(&mut buffer, Timestamp::ZERO).unwrap(), &buffer[..2]), (2, &[4, 5][..]));
    assert_eq!(port.now(), Timestamp::from_start(Duration::from_millis(1500)));
    assert!(port.is_at_end());
}

#[test]
fn lines_that_are_no_events_are_named() {
    for bad in [
        "x",
        "1 rx 00",
        "0.000000000 tx",
        "0.000000000 rx 0",
        "0.000000000 rx zz",
        "0.000000000 hx 00",
        "0.000000000 clear 00",
        "0.00 clear",
        "0.000000000 rx 00 00",
        "-1.000000000 clear",
    ] {
        let text = format!("\n{bad}");
        let err = ReplayPort::parse(&text).unwrap_err();
        assert!(matches!(&err, Error::ReplayLine { line: 2, text } if text == bad), "{bad}: {err}");
    }
}
