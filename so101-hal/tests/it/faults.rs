//! What lines and adapters do to LeRobot's bus (its results beside each test), and what becomes of it here: no value
//! that is wrong, none lost that came, and a bus that goes on.

use std::sync::Arc;
use std::time::Duration;

use so101_hal::bus::{Bus, ReplyFault, ServoBus as _, SyncReplies};
use so101_hal::emulator::{EmulatedPort, Fault, FaultRule};
use so101_hal::registers::{self, PRESENT_POSITION, PRESENT_VOLTAGE, TELEMETRY, TORQUE_ENABLE};
use so101_hal::{
    Alarms, Clock as _, EmulatedServos, EmulatorOptions, Error, JointId, ServoId, Ticks, VirtualClock,
};

const THIRD: ServoId = ServoId::ARM[2];
const POSITIONS: [i32; 6] = [2111, 2122, 2163, 2144, 2155, 2166];

struct Rig {
    clock: VirtualClock,
    servos: EmulatedServos,
    bus: Bus<EmulatedPort>,
    replies: SyncReplies,
}

fn rig() -> Rig {
    let clock = VirtualClock::new();
    let mut options = EmulatorOptions::default();
    options.start = POSITIONS.map(Ticks);
    let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
    let bus = servos.bus();
    Rig { clock, servos, bus, replies: SyncReplies::new() }
}

impl Rig {
    /// Servo 3 is struck.
    fn strike(&self, fault: Fault) {
        self.servos.inject(FaultRule::always(fault).of(THIRD));
    }

    fn positions(&mut self) -> [Result<i32, ReplyFault>; 6] {
        self.bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM, &mut self.replies).unwrap();
        std::array::from_fn(|i| {
            let (_, reply) = self.replies.get(i).unwrap();
            reply.map(|reply| PRESENT_POSITION.decode(reply.data).unwrap())
        })
    }

    /// All but the struck servo's.
    fn all_but_third(fault: ReplyFault) -> [Result<i32, ReplyFault>; 6] {
        let mut expected = POSITIONS.map(Ok);
        expected[2] = Err(fault);
        expected
    }

    /// The line is good again, and so is everything that is read.
    fn recovers(&mut self) {
        self.servos.clear_faults();
        assert_eq!(self.positions(), POSITIONS.map(Ok));
        assert_eq!(self.bus.read_register(THIRD, &PRESENT_VOLTAGE).unwrap().value, 74);
    }
}

/// LeRobot: "There is no status packet" after 50 ms or more, all six values lost.
#[test]
fn a_dropped_reply_costs_its_own_value_only() {
    let mut rig = rig();
    rig.strike(Fault::Drop);
    assert_eq!(rig.positions(), Rig::all_but_third(ReplyFault::Missing));
    // Two tries, each with one deadline, and the silence between them.
    let took = rig.clock.now().since_start();
    assert!(took < Duration::from_millis(45), "{took:?}");
    rig.recovers();
}

/// LeRobot: "There is no status packet", all six values lost.
#[test]
fn swapped_replies_are_sorted_by_their_ids() {
    let mut rig = rig();
    rig.strike(Fault::Swap);
    assert_eq!(rig.positions(), POSITIONS.map(Ok));
    assert_eq!(rig.bus.stats().requests, 1);
    rig.servos.clear_faults();
    rig.servos.inject(FaultRule::always(Fault::Swap));
    for _ in 0..5 {
        assert_eq!(rig.positions(), POSITIONS.map(Ok));
    }
    rig.recovers();
}

/// LeRobot: "There is no status packet", all six values lost.
#[test]
fn a_reply_80_ms_late_costs_values_but_yields_no_wrong_one() {
    let mut rig = rig();
    rig.strike(Fault::Late(Duration::from_millis(80)));
    let positions = rig.positions();
    assert_eq!(positions[..2], POSITIONS.map(Ok)[..2], "those before it came");
    assert_eq!(positions[2], Err(ReplyFault::Missing));
    // Behind it on the wire come those of servos 4 to 6. Whatever is asked meanwhile, nothing of it is taken for it.
    rig.servos.clear_faults();
    for joint in so101_hal::JOINTS {
        rig.servos.set_ticks(joint, 2100.0);
    }
    for _ in 0..10 {
        for position in rig.positions().into_iter().flatten() {
            assert_eq!(position, 2100);
        }
        if let Ok(reading) = rig.bus.read_register(THIRD, &registers::GOAL_VELOCITY) {
            assert_eq!(reading.value, 0);
        }
    }
    assert_eq!(rig.positions(), [Ok(2100); 6]);
}

/// LeRobot: an error after 50 ms, all six values lost.
#[test]
fn a_truncated_reply_costs_its_own_value_only() {
    let mut rig = rig();
    rig.strike(Fault::Truncate);
    let positions = rig.positions();
    assert!(positions[2].is_err());
    let others = |p: [Result<i32, ReplyFault>; 6]| [p[0], p[1], p[3], p[4], p[5]];
    assert_eq!(others(positions), others(POSITIONS.map(Ok)));
    rig.recovers();
}

/// LeRobot: "Incorrect status packet" at once, all six values lost.
#[test]
fn a_bad_checksum_is_asked_for_again_at_once_and_costs_its_own_value_only() {
    let mut rig = rig();
    rig.strike(Fault::BadChecksum);
    assert_eq!(rig.positions(), Rig::all_but_third(ReplyFault::Damaged));
    assert_eq!(rig.clock.now().since_start(), Duration::ZERO, "it was waited for something");
    assert_eq!((rig.bus.stats().retries, rig.bus.stats().damaged), (1, 2));
    rig.recovers();
}

/// LeRobot: all right as well.
#[test]
fn junk_a_copy_and_20_ms_do_no_harm() {
    for fault in [Fault::Junk, Fault::Duplicate, Fault::Late(Duration::from_millis(20))] {
        let mut rig = rig();
        rig.strike(fault);
        for _ in 0..3 {
            assert_eq!(rig.positions(), POSITIONS.map(Ok), "{fault:?}");
        }
        assert_eq!(rig.bus.read_register(THIRD, &PRESENT_VOLTAGE).unwrap().value, 74, "{fault:?}");
        assert_eq!(rig.bus.stats().timeouts, 0, "{fault:?}");
        rig.recovers();
    }
}

/// LeRobot: a sync read says nothing of the alarm, a single write is an error although it was carried out.
#[test]
fn alarms_come_beside_the_data_of_reads_and_writes_and_are_no_errors() {
    let mut rig = rig();
    rig.servos.set_register(JointId::ShoulderPan, &PRESENT_VOLTAGE, 35).unwrap();
    rig.strike(Fault::Alarm(Alarms::OVERLOAD));
    assert_eq!(rig.positions(), POSITIONS.map(Ok));
    let alarms: Vec<Alarms> = rig.replies.iter().map(|(_, reply)| reply.unwrap().alarms).collect();
    let none = Alarms::NONE;
    assert_eq!(alarms, [Alarms::VOLTAGE, none, Alarms::OVERLOAD, none, none, none]);
    let reading = rig.bus.read_register(THIRD, &PRESENT_VOLTAGE).unwrap();
    assert_eq!((reading.value, reading.alarms), (74, Alarms::OVERLOAD));
    assert_eq!(rig.bus.write_register(THIRD, &TORQUE_ENABLE, 1).unwrap(), Alarms::OVERLOAD);
    assert_eq!(rig.servos.register(JointId::ElbowFlex, &TORQUE_ENABLE).unwrap(), 1);
    assert_eq!(rig.bus.ping(ServoId::ARM[0]).unwrap(), Alarms::VOLTAGE);
}

/// LeRobot: the echo of a write is taken for its reply, and its instruction for alarms: "Input voltage error".
#[test]
fn the_echo_of_the_adapter_is_never_a_reply() {
    let mut rig = rig();
    rig.servos.inject(FaultRule::always(Fault::Echo));
    assert_eq!(rig.bus.ping(THIRD).unwrap(), Alarms::NONE);
    assert_eq!(rig.bus.write_register(THIRD, &TORQUE_ENABLE, 1).unwrap(), Alarms::NONE);
    assert_eq!(rig.positions(), POSITIONS.map(Ok));
    let reading = rig.bus.read_register(THIRD, &PRESENT_POSITION).unwrap();
    assert_eq!((reading.value, reading.alarms), (POSITIONS[2], Alarms::NONE));
    assert!(rig.bus.stats().echoes > 0);
    // And without a reply behind it.
    rig.strike(Fault::Drop);
    assert!(matches!(rig.bus.ping(THIRD), Err(Error::NoReply { fault: ReplyFault::Missing, .. })));
    assert!(matches!(rig.bus.write_register(THIRD, &TORQUE_ENABLE, 0), Err(Error::NoReply { .. })));
    rig.recovers();
}

/// LeRobot: after a timeout the late position 2163 is returned as the voltage, 115, without an error.
#[test]
fn a_stale_position_is_no_voltage() {
    for late_ms in [21, 25, 30, 41, 43, 60, 80, 120, 200] {
        let mut rig = rig();
        rig.strike(Fault::Late(Duration::from_millis(late_ms)));
        assert!(rig.bus.read_register(THIRD, &PRESENT_POSITION).is_err());
        rig.servos.clear_faults();
        let mut reads = 0;
        // Registers of one byte and of two, until everything is well.
        loop {
            let voltage = rig.bus.read_register(THIRD, &PRESENT_VOLTAGE);
            let limit = rig.bus.read_register(THIRD, &registers::TORQUE_LIMIT);
            assert!(voltage.as_ref().map_or(true, |r| r.value == 74), "{late_ms} ms: {voltage:?}");
            assert!(limit.as_ref().map_or(true, |r| r.value == 1000), "{late_ms} ms: {limit:?}");
            reads += 1;
            if voltage.is_ok() && limit.is_ok() {
                break;
            }
            assert!(reads < 10, "{late_ms} ms: it stays so");
        }
    }
}

/// LeRobot: a bare termios error, `is_connected` stays true, then "Port is in use!" for ever, even after replugging.
#[test]
fn an_unplugged_adapter_is_an_error_that_says_so_and_the_same_bus_goes_on_after_replugging() {
    let mut rig = rig();
    assert_eq!(rig.positions(), POSITIONS.map(Ok));
    rig.servos.unplug();
    for _ in 0..2 {
        let err = rig.bus.sync_read(TELEMETRY, &ServoId::ARM, &mut rig.replies).unwrap_err();
        assert!(matches!(err, Error::PortIo { .. }), "{err}");
        assert!(err.to_string().contains("plugged in"), "{err}");
        assert!(rig.bus.reopen().is_err());
    }
    rig.servos.replug();
    assert!(rig.bus.ping(THIRD).is_err(), "the old handle is dead");
    rig.bus.reopen().unwrap();
    rig.recovers();
}
