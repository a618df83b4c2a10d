//! Transactions by the thousand on a line that does everything lines do: every value that comes is the servo's own.
//!
//! 20000 transactions; a million with the environment variable `SO101_FULL`.

use std::sync::Arc;
use std::time::Duration;

use so101_hal::bus::{Bus, BusOptions, Plausibility, ServoBus as _, SyncReplies};
use so101_hal::protocol::Block;
use so101_hal::registers::{self, PRESENT_POSITION, Register, TELEMETRY};
use so101_hal::{
    Alarms, Clock as _, EmulatedServos, EmulatorOptions, Error, JOINTS, JointId, ServoId, Timestamp,
    VirtualClock,
};

use crate::bad_line::{BadLine, Dice, Rates};

/// Registers that the soak changes: some of the same length, so that one taken for another is noticed.
const CHANGING: [&Register; 6] = [
    &registers::GOAL_TIME,
    &registers::GOAL_VELOCITY,
    &registers::TORQUE_LIMIT,
    &registers::ACCELERATION,
    &registers::PRESENT_VOLTAGE,
    &registers::PRESENT_TEMPERATURE,
];

const BLOCKS: [Block; 5] =
    [TELEMETRY, PRESENT_POSITION.block(), Block::new(46, 2), Block::new(40, 15), Block::new(62, 1)];

struct Soak {
    clock: VirtualClock,
    servos: EmulatedServos,
    bus: Bus<BadLine>,
    dice: Dice,
    /// What is read.
    blocks: &'static [Block],
    positions: [i32; 6],
    /// When each position was last read.
    seen: [Timestamp; 6],
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    values: u64,
    missing: u64,
    wrong: u64,
    wrong_positions: u64,
    far_positions: u64,
}

impl Soak {
    fn new(seed: u64, rates: Rates, plausibility: Option<Plausibility>) -> Self {
        let clock = VirtualClock::new();
        let options = EmulatorOptions::default();
        let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
        let mut line = BadLine::new(servos.port(), clock.clone(), seed);
        line.rates = rates;
        let mut options = BusOptions::default();
        options.plausibility = plausibility;
        let bus = Bus::with_options(line, options);
        Self {
            clock,
            servos,
            bus,
            dice: Dice::new(!seed),
            blocks: &BLOCKS,
            positions: [2048; 6],
            seen: [Timestamp::ZERO; 6],
            tally: Tally::default(),
        }
    }

    /// Everything that may be taken for something older gets a new value.
    fn shuffle(&mut self) {
        for joint in JOINTS {
            let at = &mut self.positions[joint.index()];
            // A step that a servo can make; sometimes over the end of the turn.
            *at = (*at + self.dice.below(201) as i32 - 100).rem_euclid(4096);
            self.servos.set_ticks(joint, f64::from(*at));
            let register = CHANGING[self.dice.below(CHANGING.len() as u64) as usize];
            let (min, max) = register.bounds();
            let value = min + self.dice.below((max - min + 1) as u64) as i32;
            self.servos.set_register(joint, register, value).unwrap();
        }
    }

    fn truth(&self, id: ServoId, block: Block) -> (Vec<u8>, Alarms) {
        let joint = JOINTS[usize::from(id.get()) - 1];
        let byte = |address: u8| {
            let register = Register { address, size: 1, sign: None, max: None, ..PRESENT_POSITION };
            self.servos.register(joint, &register).unwrap() as u8
        };
        let data = (block.address..block.address + block.len).map(byte).collect();
        (data, Alarms::from_bits(byte(65)))
    }

    fn check(&mut self, id: ServoId, block: Block, data: &[u8], alarms: Alarms) {
        self.tally.values += 1;
        let place = usize::from(id.get()) - 1;
        let seen = self.seen[place];
        if block.address == PRESENT_POSITION.address {
            self.seen[place] = self.clock.now();
        }
        let (truth, true_alarms) = self.truth(id, block);
        if data == truth && alarms == true_alarms {
            return;
        }
        self.tally.wrong += 1;
        if self.bus.port().rates.burst == 0 {
            let trace: Vec<&str> = self.bus.port().trace.iter().map(String::as_str).collect();
            panic!(
                "servo {id}, {block:?}: got {data:02x?} {alarms}, is {truth:02x?} {true_alarms}\n{}",
                trace.join("\n")
            );
        }
        if block.address == PRESENT_POSITION.address {
            let position = |bytes| PRESENT_POSITION.decode(bytes).unwrap();
            let off = position(data).abs_diff(position(&truth));
            self.tally.wrong_positions += u64::from(off > 0);
            // Further than a servo can have come since it was last read, less than 50 ms ago.
            let is_recent = self.clock.now().since(seen) < Duration::from_millis(50);
            self.tally.far_positions += u64::from(is_recent && (off > 1000 && off < 3096 || off > 5096));
        }
    }

    fn transaction(&mut self) {
        self.shuffle();
        let block = self.blocks[self.dice.below(self.blocks.len() as u64) as usize];
        let id = ServoId::ARM[self.dice.below(6) as usize];
        match self.dice.below(8) {
            0 => {
                let mut data = [0; 15];
                let data = &mut data[..block.len_bytes()];
                match self.bus.read(id, block.address, data) {
                    Ok(alarms) => self.check(id, block, data, alarms),
                    Err(e) => self.missed(&e),
                }
            }
            1 => match self.bus.ping(id) {
                Ok(alarms) => self.check(id, Block::new(0, 0), &[], alarms),
                Err(e) => self.missed(&e),
            },
            2 => {
                let value = self.dice.below(255) as u8;
                match self.bus.write(id, registers::ACCELERATION.address, &[value]) {
                    // Acknowledged is carried out.
                    Ok(alarms) => self.check(id, registers::ACCELERATION.block(), &[value], alarms),
                    Err(e) => self.missed(&e),
                }
            }
            _ => {
                let ids = if self.dice.hits(500) { &ServoId::ARM[..] } else { &ServoId::ARM[1..4] };
                let mut replies = SyncReplies::new();
                self.bus.sync_read(block, ids, &mut replies).unwrap();
                for (id, reply) in replies.iter() {
                    match reply {
                        Ok(reply) => self.check(id, block, reply.data, reply.alarms),
                        Err(_) => self.tally.missing += 1,
                    }
                }
            }
        }
        let pause = Duration::from_micros(self.dice.below(30_000));
        self.clock.sleep_until(self.clock.now() + pause);
    }

    fn missed(&mut self, e: &Error) {
        assert!(matches!(e, Error::NoReply { .. }), "{e}");
        self.tally.missing += 1;
    }

    fn run(&mut self, transactions: u64) {
        for _ in 0..transactions {
            self.transaction();
        }
        println!(
            "{transactions} transactions, {} faults: {:?}\n  {:?}",
            self.bus.port().happened.faults,
            self.tally,
            self.bus.stats()
        );
    }
}

fn transactions() -> u64 {
    if std::env::var_os("SO101_FULL").is_some() { 1_000_000 } else { 20_000 }
}

#[test]
fn no_value_is_wrong_whatever_befalls_single_replies() {
    let all = Rates {
        bit_flip: 20,
        drop: 20,
        truncate: 20,
        duplicate: 20,
        junk: 20,
        late: 20,
        swap: 20,
        ..Rates::default()
    };
    // Adapters that echo never, always, and now and then.
    for (seed, echo) in [(1, 0), (2, 1000), (3, 300)] {
        let mut soak = Soak::new(seed, Rates { echo, ..all }, Some(Plausibility::default()));
        soak.run(transactions() / 3);
        let t = &soak.tally;
        assert!(t.values > 5 * t.missing, "{t:?}");
        let stats = soak.bus.stats();
        assert!(stats.damaged > 100 && stats.unexpected > 100 && stats.barriers > 100, "{stats:?}");
        assert_eq!(stats.echoes > 0, echo > 0, "{stats:?}");
    }
}

#[test]
fn one_kind_of_fault_at_a_time_gives_no_wrong_value_either() {
    let none = Rates::default();
    for (seed, rates) in (10..).zip([
        Rates { bit_flip: 200, ..none },
        Rates { drop: 200, ..none },
        Rates { truncate: 200, ..none },
        Rates { duplicate: 300, ..none },
        Rates { late: 100, ..none },
        Rates { swap: 500, ..none },
        Rates { echo: 500, ..none },
        Rates { truncate: 100, bit_flip: 100, ..none },
    ]) {
        let mut soak = Soak::new(seed, rates, Some(Plausibility::default()));
        soak.run(transactions() / 20);
        assert!(soak.tally.values > soak.tally.missing, "{rates:?}: {:?}", soak.tally);
    }
}

#[test]
fn of_packets_with_several_wrong_bytes_fewer_than_1_in_256_pass_and_jumps_among_them_do_not() {
    let rates = Rates { burst: 300, ..Rates::default() };
    let run = |seed, plausibility| {
        let mut soak = Soak::new(seed, rates, plausibility);
        soak.blocks = &BLOCKS[1..2];
        soak.run(transactions() / 2);
        let bursts = soak.bus.port().happened.bursts;
        println!("{} of {bursts} packets with 2 to 4 overwritten bytes passed", soak.tally.wrong);
        assert!(256 * soak.tally.wrong <= bursts, "{} of {bursts}", soak.tally.wrong);
        soak
    };
    // What passes is rare, and a far jump is some of it: the first seeds that have one.
    let seed = (7..40).find(|seed| run(*seed, None).tally.far_positions > 0).expect("a far jump to catch");
    let with = run(seed, Some(Plausibility::default()));
    assert_eq!(with.tally.far_positions, 0, "{:?}", with.tally);
    assert!(with.bus.stats().implausible > 0);
}

#[test]
fn a_reply_that_comes_beyond_the_window_may_be_taken_for_another_and_within_it_not() {
    // The limit that is documented, from both sides: a servo that answers nothing for the whole window.
    for (late_ms, wrong) in [(240, false), (300, true)] {
        let clock = VirtualClock::new();
        let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
        let mut line = BadLine::new(servos.port(), clock.clone(), 1);
        line.lateness = Duration::ZERO;
        let mut options = BusOptions::default();
        options.read_retries = 0;
        let mut bus = Bus::with_options(Slow { line, delay: Duration::from_millis(late_ms) }, options);
        servos.set_register(JointId::ShoulderPan, &registers::GOAL_TIME, 111).unwrap();
        servos.set_register(JointId::ShoulderPan, &registers::TORQUE_LIMIT, 222).unwrap();
        assert!(bus.read_register(ServoId::ARM[0], &registers::GOAL_TIME).is_err());
        // The window has passed. The old reply was thrown away before this request, or comes 10 ms after it.
        clock.sleep_until(Timestamp::from_start(Duration::from_millis(290)));
        let reading = bus.read_register(ServoId::ARM[0], &registers::TORQUE_LIMIT);
        assert_eq!(reading.is_ok_and(|reading| reading.value == 111), wrong, "{late_ms} ms");
    }
}

/// Every reply this much later.
struct Slow {
    line: BadLine,
    delay: Duration,
}

impl so101_hal::Port for Slow {
    fn now(&self) -> Timestamp {
        self.line.now()
    }
    fn write_all(&mut self, bytes: &[u8]) -> so101_hal::Result<()> {
        self.line.write_late(bytes, self.delay)
    }
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> so101_hal::Result<usize> {
        self.line.read(buffer, deadline)
    }
    fn discard_input(&mut self) -> so101_hal::Result<()> {
        self.line.discard_input()
    }
}
