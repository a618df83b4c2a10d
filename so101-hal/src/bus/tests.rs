use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

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
    discards: usize,
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
        self.discards += 1;
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
    let (_, servos, bus) = clocked();
    (servos, bus)
}

fn clocked() -> (VirtualClock, EmulatedServos, Bus<crate::emulator::EmulatedPort>) {
    let clock = VirtualClock::new();
    let start = [1, 2, 3, 4, 5, 6].map(|i| Ticks(1000 * i / 2 + i));
    let options = EmulatorOptions { start, ..EmulatorOptions::default() };
    let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
    let bus = servos.bus();
    (clock, servos, bus)
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
    // The position comes after its deadline (20.16 ms), the velocity has the same id and length. In turn the position
    // comes while the wire is drained, and after the velocity was asked for, which takes a byte more for that reason.
    for (late_us, drained) in [(21_500, true), (23_000, false), (24_000, false)] {
        let mut bus = scripted(vec![(21, vec![]), (2, status(1, 0, &[5, 0, 0]))]);
        bus.line.options.read_retries = 0;
        bus.line.port.answers[0] = (Duration::from_micros(late_us), status(1, 0, &[0x73, 0x08]));
        let err = bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap_err();
        assert!(matches!(err, Error::NoReply { what: "read", id: 1, fault: ReplyFault::Missing }), "{err}");
        assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_VELOCITY).unwrap().value, 5, "{late_us} us");
        let stats = bus.stats();
        assert_eq!((stats.quarantines, stats.requests), (1, 2));
        assert_eq!(stats.unexpected, u64::from(!drained), "{late_us} us");
    }
}

#[test]
fn at_the_end_of_the_memory_a_barrier_comes_before_a_request_in_doubt() {
    let id = ServoId::ARM[0];
    let mut bus = scripted(vec![(21, vec![]), (2, status(1, 0, &[1, 0, 0])), (0, status(1, 0, &[9]))]);
    bus.line.options.read_retries = 0;
    bus.line.port.answers[0] = (Duration::from_micros(23_000), status(1, 0, &[0x73]));
    assert!(bus.read_register(id, &registers::ACCELERATION_MULTIPLIER).is_err());
    assert_eq!(bus.read_register(id, &registers::ACCELERATION_MULTIPLIER).unwrap().value, 9);
    assert_eq!((bus.stats().barriers, bus.stats().unexpected), (1, 1));
    // Three bytes from the id register on: as late as the reply, an echo would look like a reply of two.
    assert_eq!(bus.line.port.sent[1], [0xff, 0xff, 1, 4, 2, 5, 3, 0xf0]);
}

#[test]
fn a_request_whose_reply_has_another_length_needs_no_barrier_and_is_one() {
    let mut bus = scripted(vec![
        (23, status(1, 0, &[0x73, 0x08])),
        (2, status(1, 0, &[74])),
        (0, status(1, 0, &[5, 0])),
    ]);
    bus.line.options.read_retries = 0;
    assert!(bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).is_err());
    assert_eq!(bus.read_register(ServoId::ARM[0], &crate::registers::PRESENT_VOLTAGE).unwrap().value, 74);
    assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_VELOCITY).unwrap().value, 5);
    assert_eq!((bus.stats().barriers, bus.stats().requests), (0, 3));
}

#[test]
fn a_servo_that_answers_no_barrier_is_asked_again_when_the_window_has_passed() {
    let (clock, servos, mut bus) = clocked();
    servos.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[0]));
    let read = |bus: &mut Bus<_>| match bus.read_register(ServoId::ARM[0], &PRESENT_POSITION) {
        Err(Error::NoReply { fault, .. }) => fault,
        other => panic!("{other:?}"),
    };
    // Reads of 2 to 5 bytes, and then a barrier of each length that is left: 1 and 6 to 12.
    for _ in 0..2 + 8 {
        assert_eq!(read(&mut bus), ReplyFault::Missing);
    }
    assert_eq!((servos.transactions(), bus.stats().barriers), (12, 8));
    let (before, quiet) = (bus.port().now(), bus.stats().not_asked);
    for _ in 0..10 {
        assert_eq!(read(&mut bus), ReplyFault::Quarantined);
    }
    assert_eq!(
        (bus.port().now(), bus.stats().not_asked),
        (before, quiet + 10),
        "asking nothing takes no time"
    );
    servos.clear_faults();
    assert_eq!(read(&mut bus), ReplyFault::Quarantined);
    clock.sleep_until(before + Duration::from_millis(251));
    assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap().value, 501);
    assert_eq!(servos.transactions(), 13);
}

#[test]
fn a_copy_that_comes_after_the_next_request_is_not_its_reply() {
    let (a, b) = (status(1, 0, &[0x73, 0x08]), status(1, 0, &[5, 0]));
    let mut bus = scripted(vec![(1, a.clone()), (1, b)]);
    assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap().value, 0x873);
    // The second copy follows the first on the wire.
    bus.line.port.coming.push_back((Timestamp::from_start(Duration::from_micros(1080)), a));
    assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_VELOCITY).unwrap().value, 5);
}

#[test]
fn the_input_of_a_sync_read_after_an_exact_one_is_not_discarded_and_a_copy_in_it_not_taken() {
    let answer = |n: u8| (1..=3).flat_map(|id| status(id, 0, &[n, id])).collect::<Vec<u8>>();
    let mut bus = scripted(vec![(1, answer(1)), (1, answer(2)), (1, answer(3))]);
    let mut replies = SyncReplies::new();
    let ask = |bus: &mut Bus<Script>, replies: &mut SyncReplies| {
        bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM[..3], replies).unwrap();
        replies.iter().map(|(_, r)| r.unwrap().data[0]).collect::<Vec<u8>>()
    };
    assert_eq!(ask(&mut bus, &mut replies), [1, 1, 1]);
    assert_eq!(ask(&mut bus, &mut replies), [2, 2, 2]);
    // A copy of the last reply lies there before the third request.
    let now = bus.port().now();
    bus.line.port.coming.push_back((now, status(3, 0, &[2, 3])));
    assert_eq!(ask(&mut bus, &mut replies), [3, 3, 3]);
    assert_eq!((bus.stats().unexpected, bus.line.port.discards), (1, 1));
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
    // No waiting: the second try asks for a byte more, and so cannot be answered by what the first was asked.
    assert_eq!(bus.port().now(), before);
    assert_eq!((bus.stats().requests, bus.stats().retries, bus.stats().damaged), (2, 1, 2));
    servos.clear_faults();
    servos.inject(FaultRule::always(Fault::BadChecksum).with_probability(0.5));
    bus.line.options.read_retries = 4;
    assert_eq!(bus.read_register(ServoId::ARM[1], &PRESENT_POSITION).unwrap().value, 1002);
    assert!(bus.stats().retries > 0);
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

#[test]
fn the_own_request_is_no_reply_when_the_adapter_sends_it_back() {
    // A ping is its own reply with a voltage alarm, a read of two bytes one with an angle alarm.
    for echoes in [false, true] {
        let (servos, _) = emulated();
        let mut bus = Bus::new(EchoPort { port: servos.port(), echoes, input: vec![] });
        assert_eq!(bus.ping(ServoId::ARM[0]).unwrap(), Alarms::NONE);
        let reading = bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap();
        assert_eq!((reading.value, reading.alarms), (501, Alarms::NONE));
        assert_eq!(bus.write(ServoId::ARM[0], 41, &[7]).unwrap(), Alarms::NONE);
        assert_eq!(bus.reg_write(ServoId::ARM[0], 41, &[7]).unwrap(), Alarms::NONE);
        let mut replies = SyncReplies::new();
        bus.sync_read(TELEMETRY, &ServoId::ARM, &mut replies).unwrap();
        assert!(replies.is_complete());
        assert_eq!(bus.stats().echoes > 0, echoes);
        // The alarm that makes the reply to a ping equal to the ping is not lost either.
        servos.set_register(crate::JointId::ShoulderPan, &crate::registers::PRESENT_VOLTAGE, 35).unwrap();
        assert_eq!(bus.ping(ServoId::ARM[0]).unwrap(), Alarms::VOLTAGE);
        assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap().alarms, Alarms::VOLTAGE);
        assert_eq!(bus.stats().timeouts, 0, "echoes: {echoes}");
    }
}

#[test]
fn an_echo_without_a_reply_is_no_reply() {
    let (servos, _) = emulated();
    servos.inject(FaultRule::always(Fault::Drop));
    let mut bus = Bus::new(EchoPort { port: servos.port(), echoes: true, input: vec![] });
    assert!(bus.ping(ServoId::ARM[0]).is_err());
    assert!(bus.read_register(ServoId::ARM[1], &PRESENT_POSITION).is_err());
    assert!(bus.write(ServoId::ARM[2], 40, &[1]).is_err());
    assert!(bus.reset(ServoId::ARM[3]).is_err());
}

#[test]
fn the_echo_of_a_write_that_nobody_answers_is_not_the_reply_to_the_read_after_it() {
    let request = [0xff, 0xff, 1, 4, 3, 41, 7, 0xff];
    let mut packet = [0; 8];
    Request::Write(ServoId::ARM[0].into(), 41, &[7]).encode(&mut packet).unwrap();
    assert_eq!(packet[..7], request[..7]);
    // It comes after the read was sent, and could be its reply with the alarms voltage and angle.
    let answers = vec![(0, vec![]), (1, [&packet[..], &status(1, 0, &[5, 0, 0])].concat())];
    let mut bus = scripted(answers);
    bus.line.options.write_replies = WriteReplies::Absent;
    bus.write(ServoId::ARM[0], 41, &[7]).unwrap();
    let reading = bus.read_register(ServoId::ARM[0], &PRESENT_VELOCITY).unwrap();
    assert_eq!((reading.value, reading.alarms), (5, Alarms::NONE));
}

/// An adapter that sends back what is sent through it.
struct EchoPort<P> {
    port: P,
    echoes: bool,
    input: Vec<u8>,
}

impl<P: Port> Port for EchoPort<P> {
    fn now(&self) -> Timestamp {
        self.port.now()
    }
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        if self.echoes {
            self.input.extend_from_slice(bytes);
        }
        self.port.write_all(bytes)
    }
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        if self.input.is_empty() {
            return self.port.read(buffer, deadline);
        }
        // In pieces, as a slow line.
        let n = self.input.len().min(5);
        buffer[..n].copy_from_slice(&self.input[..n]);
        self.input.drain(..n);
        Ok(n)
    }
    fn discard_input(&mut self) -> Result<()> {
        self.input.clear();
        self.port.discard_input()
    }
}

#[test]
fn a_reply_that_was_cut_off_does_not_borrow_its_end_from_the_next_one() {
    // Servo 1 stands at 0x..fc: the cut reply and the next header add up to a right checksum.
    let cut = &status(1, 0, &[0xfc, 0x03])[..6];
    for next in [status(2, 0, &[2, 0]), vec![0xff, 0xff, 2, 0x44, 0, 2, 0, 0xf6]] {
        let mut bus = scripted(vec![(1, [cut, &next].concat())]);
        bus.line.options.reply_timeout = Duration::from_millis(5);
        bus.line.options.read_retries = 0;
        let mut replies = SyncReplies::new();
        bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM[..2], &mut replies).unwrap();
        assert_ne!(positions(&replies)[0], Some(-0x7ffc), "{next:x?}");
    }
}

#[test]
fn a_position_out_of_reach_is_asked_for_again_and_believed_when_it_stays() {
    let (clock, servos, mut bus) = clocked();
    let id = ServoId::ARM[0];
    let answers = vec![
        (1, status(1, 0, &[0x00, 0x08])),
        // A reply with two wrong bytes whose sum agrees; the truth, with one byte more.
        (1, status(1, 0, &[0x00, 0x0c])),
        (0, status(1, 0, &[0x02, 0x08, 0])),
    ];
    let mut scripted = scripted(answers);
    assert_eq!(scripted.read_register(id, &PRESENT_POSITION).unwrap().value, 0x800);
    assert_eq!(scripted.read_register(id, &PRESENT_POSITION).unwrap().value, 0x802);
    assert_eq!((scripted.stats().implausible, scripted.stats().retries), (1, 1));

    let mut replies = SyncReplies::new();
    let mut read = |bus: &mut Bus<_>| {
        bus.sync_read(TELEMETRY, &ServoId::ARM, &mut replies).unwrap();
        assert!(replies.is_complete());
        PRESENT_POSITION.decode(replies.get(0).unwrap().1.unwrap().data).unwrap()
    };
    assert_eq!(read(&mut bus), 501);
    servos.set_ticks(crate::JointId::ShoulderPan, 3000.0);
    assert_eq!((read(&mut bus), bus.stats().implausible), (3000, 1));
    // Over the end of the turn it is a short way.
    servos.set_ticks(crate::JointId::ShoulderPan, 4090.0);
    read(&mut bus);
    servos.set_ticks(crate::JointId::ShoulderPan, 5.0);
    assert_eq!((read(&mut bus), bus.stats().implausible), (5, 2));
    // A new zero moves the position, and is no jump.
    bus.write_register(id, &crate::registers::HOMING_OFFSET, 1000).unwrap();
    assert_eq!((read(&mut bus), bus.stats().implausible), (4096 + 5 - 1000, 2));
    // After a second it may be anywhere.
    clock.sleep_until(clock.now() + Duration::from_secs(1));
    servos.set_ticks(crate::JointId::ShoulderPan, 100.0);
    assert_eq!((read(&mut bus), bus.stats().implausible), (100, 2));
}

#[test]
fn a_position_out_of_reach_is_a_fault_of_its_own_without_retries() {
    let (servos, mut bus) = emulated();
    bus.line.options.read_retries = 0;
    bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap();
    servos.set_ticks(crate::JointId::ShoulderPan, 3000.0);
    let err = bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap_err();
    assert!(matches!(err, Error::NoReply { fault: ReplyFault::Implausible, .. }), "{err}");
    assert_eq!(bus.read_register(ServoId::ARM[0], &PRESENT_POSITION).unwrap().value, 3000);
}

#[test]
fn baud_codes_of_which_the_tables_disagree_are_never_written() {
    let (servos, mut bus) = emulated();
    let id = ServoId::ARM[0];
    let refused = |result: Result<()>| {
        assert!(
            matches!(result, Err(Error::RegisterValue { register: "Baud_Rate", max: 4, .. })),
            "{result:?}"
        );
    };
    refused(bus.write_register(id, &registers::BAUD_RATE, 5).map(|_| ()));
    refused(bus.write(id, 6, &[7]).map(|_| ()));
    refused(bus.write(id, 5, &[1, 5]).map(|_| ()));
    refused(bus.reg_write(id, 0, &[0, 0, 0, 0, 0, 1, 255]).map(|_| ()));
    refused(bus.sync_write(6, &[SyncRow { id, data: &[0] }, SyncRow { id: ServoId::ARM[1], data: &[6] }]));
    refused(bus.broadcast_write(4, &[9, 9, 9]));
    assert_eq!(servos.transactions(), 0);
    bus.write(id, 6, &[0]).unwrap();
    bus.write(id, 7, &[250]).unwrap();
}

#[test]
fn every_instruction_has_its_method() {
    let (servos, mut bus) = emulated();
    let id = ServoId::ARM[2];
    bus.write_register(id, &registers::TORQUE_LIMIT, 300).unwrap();
    bus.reboot(id).unwrap();
    assert_eq!(bus.read_register(id, &registers::TORQUE_LIMIT).unwrap().value, 1000);
    bus.write_register(id, &registers::LOCK, 0).unwrap();
    bus.write_register(id, &registers::P_COEFFICIENT, 16).unwrap();
    bus.reset(id).unwrap();
    assert_eq!(bus.read_register(id, &registers::P_COEFFICIENT).unwrap().value, 32);
    bus.reg_write(id, registers::ACCELERATION.address, &[9]).unwrap();
    assert_eq!(bus.read_register(id, &registers::ACCELERATION).unwrap().value, 0);
    bus.action().unwrap();
    assert_eq!(bus.read_register(id, &registers::ACCELERATION).unwrap().value, 9);
    bus.make_present_the_middle(id).unwrap();
    assert_eq!(bus.read_register(id, &PRESENT_POSITION).unwrap().value, 2048);
    assert_eq!(servos.register(crate::JointId::ElbowFlex, &registers::HOMING_OFFSET).unwrap(), 1503 - 2048);
    bus.broadcast_write(registers::ACCELERATION.address, &[3]).unwrap();
    assert_eq!(bus.read_register(ServoId::ARM[5], &registers::ACCELERATION).unwrap().value, 3);
}

#[test]
fn a_stop_from_another_handle_reaches_the_servos_past_the_bus() {
    let (servos, mut bus) = emulated();
    bus.broadcast_write(registers::TORQUE_ENABLE.address, &[1]).unwrap();
    let mut stop = ServoBus::emergency_writer(&bus).unwrap();
    let mut frame = [0; 8];
    Request::Write(Target::All, registers::TORQUE_ENABLE.address, &[0]).encode(&mut frame).unwrap();
    std::thread::scope(|scope| scope.spawn(move || stop.write_frame(&frame).unwrap()).join().unwrap());
    for joint in crate::JOINTS {
        assert_eq!(servos.register(joint, &registers::TORQUE_ENABLE).unwrap(), 0);
    }
    bus.reopen().unwrap();
    assert!(bus.ping(ServoId::ARM[0]).is_ok());
}

#[test]
fn a_write_is_sent_even_when_its_reply_could_not_be_told_from_an_overdue_one() {
    let (servos, mut bus) = emulated();
    servos.set_register(crate::JointId::ShoulderPan, &registers::TORQUE_ENABLE, 1).unwrap();
    servos.inject(FaultRule::always(Fault::Drop));
    assert!(bus.write(ServoId::ARM[0], 41, &[1]).is_err());
    assert!(matches!(bus.write(ServoId::ARM[0], 40, &[0]), Err(Error::NoReply { what: "write", .. })));
    assert_eq!(servos.register(crate::JointId::ShoulderPan, &registers::TORQUE_ENABLE).unwrap(), 0);
}
