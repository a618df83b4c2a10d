//! The table on which motors are connected one by one: a real one with a person, or an emulated one.

use std::sync::Arc;
use std::time::Duration;

use so101_hal::bus::{Bus, BusOptions, ServoBus};
use so101_hal::port::Port;
use so101_hal::registers::{self, BaudRate};
use so101_hal::serial::SerialPort;
use so101_hal::{
    Clock, EmulatedPort, EmulatedServos, EmulatorOptions, JOINTS, JointId, Timestamp, VirtualClock,
};

use crate::cli::say;
use crate::enter::{Answer, Enter};
use crate::error::Result;

/// Where motors are connected.
pub(super) trait Bench {
    /// Returns when this motor alone is connected, as far as anybody knows; `false` = interrupted.
    fn connected(&mut self, joint: JointId) -> Result<bool>;
    /// Returns when all six are connected in a chain; `false` = interrupted.
    fn all_connected(&mut self) -> Result<bool>;
    /// A bus to what is connected, at this rate. One at a time.
    fn bus(&mut self, rate: BaudRate) -> Result<Box<dyn ServoBus>>;
    /// Whether asking again may turn out better.
    fn may_try_again(&self) -> bool;
}

/// For looking around: a ping is answered within 2 ms, or not at all.
fn options() -> BusOptions {
    let mut options = BusOptions::default();
    options.reply_timeout = Duration::from_millis(6);
    options
}

/// A board on a port, and somebody who plugs motors in.
pub(super) struct PortBench {
    path: String,
    enter: Enter,
}

impl PortBench {
    pub(super) fn new(path: String) -> Result<Self> {
        // A port that cannot be opened is said before anybody has plugged anything.
        SerialPort::open(&path)?;
        Ok(Self { path, enter: Enter::at_stdin()? })
    }
}

impl Bench for PortBench {
    fn connected(&mut self, _joint: JointId) -> Result<bool> {
        // A second ENTER from before would have the motor that is still connected take this one's id.
        self.enter.forget();
        let there = self.enter.wait()? == Answer::Enter;
        if there {
            say("looking at every id and every baud rate, some seconds");
        }
        Ok(there)
    }

    fn all_connected(&mut self) -> Result<bool> {
        self.enter.forget();
        Ok(self.enter.wait()? == Answer::Enter)
    }

    fn bus(&mut self, rate: BaudRate) -> Result<Box<dyn ServoBus>> {
        Ok(Box::new(Bus::with_options(SerialPort::open_at(&self.path, rate)?, options())))
    }

    fn may_try_again(&self) -> bool {
        true
    }
}

/// The id and the rate that each emulated motor has before, in joint order: as from the factory, but for two that
/// somebody has used before.
const BEFORE: [(u8, BaudRate); 6] = [
    (1, BaudRate::M1),
    (1, BaudRate::M1),
    (7, BaudRate::K500),
    (1, BaudRate::M1),
    (1, BaudRate::K115),
    (1, BaudRate::M1),
];

/// Six emulated motors in a drawer.
pub(super) struct EmulatedBench {
    clock: Arc<dyn Clock>,
    /// One world a motor; in each, only the servo of its own joint is connected.
    pub(super) motors: [EmulatedServos; 6],
    /// Which of them are on the wire.
    pub(super) on_wire: Vec<JointId>,
    /// Left on the wire by a hand that forgot it, for a test.
    pub(super) forgotten: Option<JointId>,
}

impl EmulatedBench {
    pub(super) fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new());
        let motors = JOINTS.map(|joint| {
            let motor = EmulatedServos::new(Arc::clone(&clock), EmulatorOptions::default());
            let (id, rate) = BEFORE[joint.index()];
            // All fit their registers. The others of this world are out of the way, at ids that nobody gets.
            for other in JOINTS {
                let _ = motor.set_register(other, &registers::ID, 240 + i32::from(other.servo_id()));
            }
            let _ = motor.set_register(joint, &registers::ID, id.into());
            let _ = motor.set_register(joint, &registers::BAUD_RATE, rate as i32);
            motor
        });
        Self { clock, motors, on_wire: Vec::new(), forgotten: None }
    }
}

impl Bench for EmulatedBench {
    fn connected(&mut self, joint: JointId) -> Result<bool> {
        say(&format!("emulated hand: connects {joint}"));
        self.on_wire = std::iter::once(joint).chain(self.forgotten.take()).collect();
        Ok(!crate::interrupt::requested())
    }

    fn all_connected(&mut self) -> Result<bool> {
        say("emulated hand: connects all six");
        self.on_wire = JOINTS.to_vec();
        Ok(!crate::interrupt::requested())
    }

    fn bus(&mut self, rate: BaudRate) -> Result<Box<dyn ServoBus>> {
        let wires = self.on_wire.iter().map(|j| {
            let mut port = self.motors[j.index()].port();
            port.set_baud(rate.bits_per_second());
            Wire { joint: *j, servos: self.motors[j.index()].clone(), port }
        });
        let port = BenchPort { clock: Arc::clone(&self.clock), rate, wires: wires.collect() };
        Ok(Box::new(Bus::with_options(port, options())))
    }

    fn may_try_again(&self) -> bool {
        false
    }
}

/// One motor on the wire.
struct Wire {
    joint: JointId,
    servos: EmulatedServos,
    port: EmulatedPort,
}

impl Wire {
    fn register(&self, register: &registers::Register) -> i32 {
        self.servos.register(self.joint, register).unwrap_or(-1)
    }
}

/// The line to the motors that are connected: who has another rate hears noise.
struct BenchPort {
    clock: Arc<dyn Clock>,
    rate: BaudRate,
    wires: Vec<Wire>,
}

impl Port for BenchPort {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn write_all(&mut self, bytes: &[u8]) -> so101_hal::Result<()> {
        // Header, then the id: one world has six servos, of which one is there.
        let addressed = bytes.get(2).copied().map(i32::from);
        for wire in &mut self.wires {
            let hears = wire.register(&registers::BAUD_RATE) == self.rate as i32
                && addressed == Some(wire.register(&registers::ID));
            if hears {
                wire.port.write_all(bytes)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> so101_hal::Result<usize> {
        for wire in &mut self.wires {
            let now = self.clock.now();
            let n = wire.port.read(buffer, now)?;
            if n > 0 {
                return Ok(n);
            }
        }
        self.clock.sleep_until(deadline);
        Ok(0)
    }

    fn discard_input(&mut self) -> so101_hal::Result<()> {
        self.wires.iter_mut().try_for_each(|wire| wire.port.discard_input())
    }
}
