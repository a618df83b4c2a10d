use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::clock::{Clock as _, Timestamp, VirtualClock};
use crate::emulator::{EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::protocol::encode_status;
use crate::registers::{PRESENT_POSITION, PRESENT_VELOCITY, TELEMETRY};
use crate::units::Ticks;

/// A line that says what it was told to say, request by request, and passes time while it waits.
#[derive(Debug, Default)]
struct Script {
    clock: VirtualClock,
    /// Bytes that follow each request, with the moment at which they come.
    answers: VecDeque<(Duration, Vec<u8>)>,
    coming: VecDeque<(Timestamp, Vec<u8>)>,
    sent: Vec<Vec<u8>>,
}

impl Port for Script {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.sent.push(bytes.to_vec());
        if let Some((delay, bytes)) = self.answers.pop_front() {
            self.coming.push_back((self.now() + delay, bytes));
        }
        Ok(())
    }
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        match self.coming.pop_front() {
            Some((at, bytes)) if at <= deadline => {
                self.clock.sleep_until(at);
                buffer[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            later => {
                self.coming.extend(later);
                self.clock.sleep_until(deadline);
                Ok(0)
            }
        }
    }
    fn discard_input(&mut self) -> Result<()> {
        let now = self.now();
        self.coming.retain(|(at, _)| *at > now);
        Ok(())
    }
}

fn status(id: u8, alarms: u8, data: &[u8]) -> Vec<u8> {
    let mut out = [0; 64];
    let n = encode_status(ServoId::new(id).unwrap(), Alarms::from_bits(alarms), data, &mut out).unwrap();
    out[..n].to_vec()
}

fn scripted(answers: Vec<(u64, Vec<u8>)>) -> Bus<Script> {
    let answers = answers.into_iter().map(|(ms, bytes)| (Duration::from_millis(ms), bytes)).collect();
    Bus::new(Script { answers, ..Script::default() })
}

fn emulated() -> (EmulatedServos, Bus<crate::emulator::EmulatedPort>) {
    let start = [1, 2, 3, 4, 5, 6].map(|i| Ticks(1000 * i / 2 + i));
    let options = EmulatorOptions { start, ..EmulatorOptions::default() };
    let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), options);
    let bus = servos.bus();
    (servos, bus)
}

fn positions(replies: &SyncReplies) -> Vec<Option<i32>> {
    replies.iter().map(|(_, r)| r.ok().map(|r| PRESENT_POSITION.decode(r.data).unwrap())).collect()
}

#[test]
fn a_reply_of_another_servo_or_another_length_is_not_taken() {
    let answer = [status(2, 0, &[9, 9]), status(1, 0, &[9]), status(1, 0x20, &[0x34, 0x12])].concat();
    let mut bus = scripted(vec![(1, answer)]);
    let mut out = [0; 2];
    assert_eq!(bus.read(ServoId::ARM[0], 56, &mut out).unwrap(), Alarms::OVERLOAD);
    assert_eq!((out, bus.stats().unexpected), ([0x34, 0x12], 2));
}

#[test]
fn replies_are_sorted_by_id_in_whatever_order_they_come() {
    let answer = [status(3, 0, &[3, 0]), status(1, 0, &[1, 0]), status(2, 1, &[2, 0])].concat();
    let mut bus = scripted(vec![(1, answer)]);
    let mut replies = SyncReplies::new();
    bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM[..3], &mut replies).unwrap();
    assert_eq!(positions(&replies), [Some(1), Some(2), Some(3)]);
    assert_eq!(replies.get(1).unwrap().1.unwrap().alarms, Alarms::VOLTAGE);
}

#[test]
fn a_late_reply_is_not_taken_for_the_answer_to_the_next_request() {
    // The position comes 21.5 ms after its request, past the deadline; the velocity has the same id and length.
    let mut bus = scripted(vec![(21, vec![]), (0, status(1, 0, &[5, 0]))]);
    bus.line.options.read_retries = 0;
    bus.line.port.answers[0] = (Duration::from_micros(21_500), status(1, 0, &[0x73, 0x08]));
    let err = bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap_err();
    assert!(matches!(err, Error::NoReply { what: "read", id: 1, fault: ReplyFault::Missing }), "{err}");
    assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_VELOCITY).unwrap().value, 5);
    assert_eq!(bus.stats().quarantines, 1);
}

#[test]
fn a_transaction_ends_at_its_one_deadline_however_its_bytes_dribble() {
    let mut bus = scripted(vec![(0, vec![])]);
    bus.line.options.read_retries = 0;
    // Three bytes of noise every 5 ms for a second: each read succeeds, the transaction must not.
    for i in 1..200 {
        let at = Timestamp::from_start(Duration::from_millis(5 * i));
        bus.line.port.coming.push_back((at, vec![0xff, 0x01, 0x02]));
    }
    assert!(bus.ping(ServoId::ARM[0]).is_err());
    let took = bus.port().now().since_start();
    assert!(took <= Duration::from_millis(21), "{took:?}");
}

#[test]
fn a_reply_behind_a_false_header_is_found_without_waiting_for_the_deadline() {
    for header in [&[0xff, 0xff, 1, 4][..], &[0xff, 0xff, 1, 0xf0], &[0xff, 0xff, 1], &[0xff; 3]] {
        let mut bus = scripted(vec![(1, [header, &status(1, 0, &[7, 0])].concat())]);
        assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap().value, 7);
        assert_eq!(bus.port().now(), Timestamp::from_start(Duration::from_millis(1)), "{header:x?}");
    }
}

#[test]
fn what_came_before_the_request_is_not_its_reply() {
    let mut bus = scripted(vec![(1, status(1, 0, &[7, 0]))]);
    bus.line.port.coming.push_back((Timestamp::ZERO, status(1, 0, &[0x73, 0x08])));
    assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap().value, 7);
}

#[test]
fn a_damaged_reply_is_asked_for_again_at_once_and_named_when_it_stays_so() {
    let (servos, mut bus) = emulated();
    servos.inject(FaultRule::always(Fault::BadChecksum).of(ServoId::ARM[2]));
    let before = bus.port().now();
    let err = bus.read_register(ServoId::ARM[2], &PRESENT_POSITION).unwrap_err();
    assert!(matches!(err, Error::NoReply { id: 3, fault: ReplyFault::Damaged, .. }), "{err}");
    // No waiting for the deadline, only the quarantine before the second try.
    assert_eq!(bus.port().now().since(before), Duration::from_millis(2));
    assert_eq!((bus.stats().requests, bus.stats().retries, bus.stats().damaged), (2, 1, 2));
}

#[test]
fn one_silent_servo_costs_only_its_own_value() {
    let (servos, mut bus) = emulated();
    servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[3]));
    let mut replies = SyncReplies::new();
    bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM, &mut replies).unwrap();
    assert_eq!(positions(&replies), [Some(501), Some(1002), Some(1503), None, Some(2505), Some(3006)]);
    assert_eq!(replies.get(3).unwrap().1, Err(ReplyFault::Missing));
    // The second request asked the silent one alone.
    assert_eq!((bus.stats().requests, servos.transactions()), (2, 2));
}

#[test]
fn alarms_come_beside_good_data() {
    let (servos, mut bus) = emulated();
    servos.set_register(crate::JointId::WristRoll, &crate::registers::PRESENT_VOLTAGE, 35).unwrap();
    let mut replies = SyncReplies::new();
    bus.sync_read(TELEMETRY, &ServoId::ARM, &mut replies).unwrap();
    let alarms: Vec<Alarms> = replies.iter().map(|(_, r)| r.unwrap().alarms).collect();
    let none = Alarms::NONE;
    assert_eq!(alarms, [none, none, none, none, Alarms::VOLTAGE, none]);
}

#[test]
fn a_write_is_not_repeated_when_its_reply_is_lost() {
    let (servos, mut bus) = emulated();
    servos.inject(FaultRule::always(Fault::Drop));
    assert!(matches!(bus.write(ServoId::ARM[0], 40, &[1]), Err(Error::NoReply { what: "write", id: 1, .. })));
    assert_eq!(servos.transactions(), 1);
}

#[test]
fn servos_that_do_not_answer_writes_are_not_waited_for() {
    let (servos, _) = emulated();
    servos.set_register(crate::JointId::ShoulderPan, &crate::registers::RESPONSE_STATUS_LEVEL, 0).unwrap();
    let options = BusOptions { write_replies: WriteReplies::Absent, ..BusOptions::default() };
    let mut bus = Bus::with_options(servos.port(), options);
    bus.write(ServoId::ARM[0], 41, &[7]).unwrap();
    assert_eq!(bus.read_register(ServoId::ARM[0], &crate::registers::ACCELERATION).unwrap().value, 7);
    assert_eq!(bus.port().now(), Timestamp::ZERO);
}

#[test]
fn impossible_requests_are_refused_before_anything_is_sent() {
    let (servos, mut bus) = emulated();
    let mut replies = SyncReplies::new();
    let many: Vec<ServoId> = (0..17).map(|i| ServoId::new(i).unwrap()).collect();
    for ids in [&[][..], &many, &[ServoId::ARM[1], ServoId::ARM[1]]] {
        let got = bus.sync_read(TELEMETRY, ids, &mut replies);
        assert!(matches!(got, Err(Error::SyncIds { max: 16, .. })));
    }
    assert!(matches!(bus.read(ServoId::ARM[0], 0, &mut []), Err(Error::BlockLength { len: 0, max: 64 })));
    assert!(matches!(
        bus.sync_read(Block::new(0, 65), &ServoId::ARM, &mut replies),
        Err(Error::BlockLength { len: 65, .. })
    ));
    assert!(matches!(
        bus.write_register(ServoId::ARM[0], &crate::registers::LOCK, 256),
        Err(Error::RegisterValue { register: "Lock", value: 256, .. })
    ));
    assert_eq!(servos.transactions(), 0);
}
