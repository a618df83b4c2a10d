//! Six emulated STS3215 servos behind the real byte protocol: the arm that needs no hardware.
//!
//! [`EmulatedServos`] is a handle to the servos; [`EmulatedServos::port`] is the line to them. Their motion is
//! integrated in steps of one millisecond up to the clock's present moment whenever somebody looks, with additions,
//! multiplications and comparisons only: the same requests at the same moments give the same bytes on every platform.
//!
//! What a servo does was compared with two clients of the vendor (LeRobot on `feetech-servo-sdk`, and
//! `ftservo-python-sdk`). Chosen where the real servo was not measured: enabling torque makes the present position
//! the goal; a goal write enables torque; an overload ends with torque off or a goal write; in a sync read the servos
//! behind a missing one answer (see [`Habits`] for all of them); reset and reboot are answered. Two servos with one id
//! talk at once, and what comes is damaged. After an overload, or too much current for too long, what register 34
//! leaves of the torque pushes on but moves nothing.
//!
//! Everything that goes wrong on real rigs can be had: see [`Fault`] for the line, and for the rest the methods of
//! [`EmulatedServos`], or [`EmulatedServos::command`] with a line of text.

mod command;
mod fault;
mod motion;
mod port;
#[cfg(all(unix, feature = "std", any(feature = "serial", feature = "pty")))]
pub mod pty;
mod servo;
mod world;

pub use command::COMMANDS;
pub use fault::{Fault, FaultRule};
pub use port::EmulatedPort;
pub use servo::Habits;
pub use world::WireTiming;

use alloc::sync::Arc;

use spin::Mutex;

use crate::bus::Bus;
use crate::calibration::Calibration;
use crate::clock::Clock;
use crate::error::Result;
use crate::joint::{JOINTS, JointId, JointVector};
use crate::protocol::ServoId;
use crate::registers::{self, Register};
use crate::units::{Degrees, Percent, Ticks};

use servo::Servo;
use world::World;

/// A bus to emulated servos.
pub type EmulatedBus = Bus<EmulatedPort>;

/// What the emulated servos are at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmulatorOptions {
    /// Encoder positions in joint order (before any homing offset).
    pub start: [Ticks; 6],
    /// Firmware, the numbers before and behind the point.
    pub firmware: (u8, u8),
    /// Where the chance of faults begins.
    pub seed: u64,
    /// How long bytes take.
    pub wire: WireTiming,
    /// What was not measured on real servos.
    pub habits: Habits,
}

impl Default for EmulatorOptions {
    /// All servos in the middle of their turn, firmware 3.10.
    fn default() -> Self {
        Self {
            start: [Ticks(2048); 6],
            firmware: (3, 10),
            seed: 1,
            wire: WireTiming::Instant,
            habits: Habits::default(),
        }
    }
}

/// A handle to six emulated servos with the ids 1 to 6; clones and ports share them.
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
/// use so101_hal::bus::ServoBus;
/// use so101_hal::emulator::{EmulatedServos, EmulatorOptions};
/// use so101_hal::{Clock, JointId, Timestamp, VirtualClock, registers};
/// # fn main() -> so101_hal::Result<()> {
/// let clock = VirtualClock::new();
/// let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
/// let mut bus = servos.bus();
/// bus.write_register(JointId::Gripper.into(), &registers::GOAL_POSITION, 3000)?;
/// clock.sleep_until(Timestamp::from_start(Duration::from_secs(2)));
/// assert_eq!(servos.true_ticks()[5].round(), 3000.0);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct EmulatedServos {
    world: Arc<Mutex<World>>,
    clock: Arc<dyn Clock>,
}

impl core::fmt::Debug for EmulatedServos {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EmulatedServos").field("now", &self.clock.now()).finish_non_exhaustive()
    }
}

impl EmulatedServos {
    /// Six servos, powered on at the clock's present moment.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, options: EmulatorOptions) -> Self {
        let servos = JOINTS.map(|j| {
            let start = options.start[j.index()];
            Servo::new(j.servo_id(), options.firmware, f64::from(start.0), options.habits)
        });
        let world = World::new(servos, clock.now(), &options);
        Self { world: Arc::new(Mutex::new(world)), clock }
    }

    /// A new line to the servos.
    #[must_use]
    pub fn port(&self) -> EmulatedPort {
        EmulatedPort::new(self.clone())
    }

    /// A bus with default timing on a new line.
    #[must_use]
    pub fn bus(&self) -> EmulatedBus {
        Bus::new(self.port())
    }

    /// Where the servos really are at this moment: encoder less homing offset, in ticks, not rounded and not wrapped
    /// to one turn; the frame in which calibrations are.
    #[must_use]
    pub fn true_ticks(&self) -> [f64; 6] {
        self.with_world(|world| core::array::from_fn(|i| world.servos[i].position()))
    }

    /// [`Self::true_ticks`] in a calibration's units, without the rounding of an encoder: what a drawn or rendered
    /// arm shows. The gripper is not clamped to 0..=100.
    #[must_use]
    pub fn true_joints(&self, calibration: &Calibration) -> JointVector<Degrees> {
        let ticks = self.true_ticks();
        let row = JOINTS.map(|j| {
            let (c, ticks) = (calibration.get(j), ticks[j.index()]);
            let (min, max) = (f64::from(c.range_min), f64::from(c.range_max));
            match j {
                JointId::Gripper => {
                    let percent = (ticks - min) / (max - min) * 100.0;
                    if c.drive_mode == 0 { percent } else { 100.0 - percent }
                }
                _ => (ticks - (min + max) / 2.0) * 360.0 / f64::from(crate::convert::MAX_TICK),
            }
        });
        let [a, b, c, d, e, g] = row;
        JointVector { body: [a, b, c, d, e].map(Degrees), gripper: Percent(g) }
    }

    /// Puts a servo at a position by hand, in the frame of [`Self::true_ticks`].
    pub fn set_ticks(&self, joint: JointId, position_ticks: f64) {
        self.with_world(|world| world.servos[joint.index()].set_position(position_ticks));
    }

    /// Hard stops, in the frame of [`Self::true_ticks`]: the servo pushes against them.
    pub fn set_stops(&self, joint: JointId, min_ticks: f64, max_ticks: f64) {
        self.with_world(|world| world.servos[joint.index()].set_stops(min_ticks, max_ticks));
    }

    /// A load from outside in 0.1 %, added to what the servo reports; it does not move the servo.
    pub fn set_load(&self, joint: JointId, load_permille: f64) {
        self.with_world(|world| world.servos[joint.index()].set_external_load(load_permille));
    }

    /// A register's value at this moment, straight from the servo's memory.
    ///
    /// # Errors
    /// [`Error::RegisterBytes`](crate::Error::RegisterBytes) for a register outside of the memory.
    pub fn register(&self, joint: JointId, register: &Register) -> Result<i32> {
        self.with_world(|world| {
            let memory = world.servos[joint.index()].memory();
            register.decode(memory.get(usize::from(register.address)..).unwrap_or(&[]))
        })
    }

    /// Sets a register behind the servo's back, read-only ones (supply voltage, temperature) included. EEPROM
    /// registers keep it over a power cycle.
    ///
    /// # Errors
    /// [`Error::RegisterValue`](crate::Error::RegisterValue).
    pub fn set_register(&self, joint: JointId, register: &Register, value: i32) -> Result<()> {
        let bytes = register.encode(value)?;
        self.with_world(|world| {
            world.servos[joint.index()].poke(register.address, &bytes[..usize::from(register.size).min(2)]);
        });
        Ok(())
    }

    /// Stores homing offsets and position limits of a calibration in the servos' EEPROM, as LeRobot's calibration
    /// procedure leaves them.
    ///
    /// # Errors
    /// [`Error::RegisterValue`](crate::Error::RegisterValue) for numbers that do not fit.
    pub fn store_calibration(&self, calibration: &Calibration) -> Result<()> {
        for (joint, c) in calibration.iter() {
            self.set_register(joint, &registers::HOMING_OFFSET, c.homing_offset)?;
            self.set_register(joint, &registers::MIN_POSITION_LIMIT, c.range_min)?;
            self.set_register(joint, &registers::MAX_POSITION_LIMIT, c.range_max)?;
        }
        Ok(())
    }

    /// Power off and on: registers from the EEPROM, torque off.
    pub fn power_cycle(&self) {
        self.with_world(|world| world.servos.iter_mut().for_each(Servo::power_on));
    }

    /// Takes the servos' supply away: nobody answers, and all registers outside of the EEPROM are lost.
    pub fn power_off(&self) {
        self.with_world(|world| world.dark = true);
    }

    /// Gives the supply back after [`Self::power_off`]: torque off, registers from the EEPROM.
    pub fn power_on(&self) {
        self.with_world(|world| {
            world.dark = false;
            world.servos.iter_mut().for_each(Servo::power_on);
        });
    }

    /// A brown-out: every servo loses its registers outside of the EEPROM, and with them the torque, and reports a
    /// supply of 3.5 V with the voltage alarm until [`Self::set_voltage`].
    pub fn brown_out(&self) {
        self.with_world(|world| world.servos.iter_mut().for_each(Servo::brown_out));
    }

    /// Supply of one servo, in 0.1 V; its alarm follows registers 14 and 15.
    pub fn set_voltage(&self, joint: JointId, decivolts: u8) {
        self.with_world(|world| world.servos[joint.index()].poke(62, &[decivolts]));
    }

    /// Temperature of one servo; its alarm follows register 13.
    pub fn set_temperature(&self, joint: JointId, celsius: u8) {
        self.with_world(|world| world.servos[joint.index()].poke(63, &[celsius]));
    }

    /// Something holds the servo where it is: driven, it pushes until it overloads.
    pub fn block(&self, joint: JointId) {
        self.with_world(|world| world.servos[joint.index()].set_blocked(true));
    }

    /// Ends [`Self::block`] and [`Self::hold`].
    pub fn unblock(&self, joint: JointId) {
        self.with_world(|world| world.servos[joint.index()].set_blocked(false));
    }

    /// A hand puts the servo there, in the frame of [`Self::true_ticks`], and does not let go until
    /// [`Self::unblock`]; see [`Self::set_ticks`] for one that lets go.
    pub fn hold(&self, joint: JointId, position_ticks: f64) {
        self.with_world(|world| {
            let servo = &mut world.servos[joint.index()];
            servo.set_position(position_ticks);
            servo.set_blocked(true);
        });
    }

    /// Another id for a servo, also over a power cycle. With an id that is there already, both talk at once.
    pub fn set_id(&self, joint: JointId, id: ServoId) {
        self.with_world(|world| world.servos[joint.index()].poke(registers::ID.address, &[id.get()]));
    }

    /// Takes a servo off the chain: it hears nothing. The others are not cut off.
    pub fn detach(&self, joint: JointId) {
        self.with_world(|world| world.servos[joint.index()].set_detached(true));
    }

    /// Ends [`Self::detach`].
    pub fn attach(&self, joint: JointId) {
        self.with_world(|world| world.servos[joint.index()].set_detached(false));
    }

    /// Pulls the adapter out: every port is an error, also after [`Self::replug`], until it is opened again. The servos
    /// go on as they are.
    pub fn unplug(&self) {
        self.with_world(World::unplug);
    }

    /// Plugs the adapter in again.
    pub fn replug(&self) {
        self.with_world(World::replug);
    }

    /// Whether the adapter is plugged in.
    #[must_use]
    pub fn is_plugged_in(&self) -> bool {
        self.world.lock().plug.is_some()
    }

    /// From now on the line misbehaves by this rule, beside those given before.
    pub fn inject(&self, rule: FaultRule) {
        self.world.lock().faults.push(rule);
    }

    /// Ends all faults. Late replies that are under way still come.
    pub fn clear_faults(&self) {
        self.world.lock().faults.clear();
    }

    /// Requests with a right checksum that the servos have seen.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.world.lock().transactions
    }

    /// Brings the servos to the present moment and looks at them.
    fn with_world<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        let now = self.clock.now();
        let mut world = self.world.lock();
        world.advance_to(now);
        look(&mut world)
    }
}

#[cfg(test)]
mod tests;
