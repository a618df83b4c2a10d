//! One servo: its memory, what writes do to it, and its motion.

use super::motion::{Drive, STEP_S, whole};
use crate::protocol::{Alarms, ServoId};
use crate::registers::{self, PHASE_MULTI_TURN, Register};

/// Bytes of a servo's memory.
pub(super) const MEMORY: usize = 128;
/// The EEPROM is the memory below this address.
const EEPROM_END: usize = 40;
/// Makes the present position 2048 (register 40).
const TORQUE_CALIBRATE: u8 = 128;

/// Addresses that only the servo itself changes: identity, and everything measured.
const fn is_read_only(address: usize) -> bool {
    address < 5 || (address >= 56 && address <= 70)
}

/// Supply after a brown-out, in 0.1 V: below the lowest that the factory allows.
const BROWN_OUT_DV: u8 = 35;
/// Codes of register 6, as the vendor has them; LeRobot's table differs above 4.
const BAUD_RATES: [u32; 8] = [1_000_000, 500_000, 250_000, 128_000, 115_200, 76_800, 57_600, 38_400];

/// What real servos do was not measured for these; the defaults are what two clients of the vendor expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Habits {
    /// Switching the torque on makes the present position the goal.
    pub present_is_goal_at_torque_on: bool,
    /// Writing a goal switches the torque on.
    pub goal_switches_torque_on: bool,
    /// Writing a goal ends an overload, as switching the torque off always does.
    pub goal_ends_overload: bool,
    /// In a sync read the servos behind a missing one answer all the same.
    pub answers_behind_a_missing_servo: bool,
}

impl Default for Habits {
    /// All of them.
    fn default() -> Self {
        Self {
            present_is_goal_at_torque_on: true,
            goal_switches_torque_on: true,
            goal_ends_overload: true,
            answers_behind_a_missing_servo: true,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Servo {
    memory: [u8; MEMORY],
    /// What comes back with the power.
    eeprom: [u8; EEPROM_END],
    /// Ticks, without homing offset and not wrapped.
    encoder: f64,
    /// Ticks a second.
    velocity: f64,
    stops: (f64, f64),
    external_load: f64,
    /// What comes from outside and survives the power, 0.1 V and degrees Celsius.
    supply_dv: u8,
    temperature_c: u8,
    /// Something holds it where it is.
    blocked: bool,
    /// Not on the chain at all.
    detached: bool,
    overload_steps: u32,
    over_current_steps: u32,
    pending: Option<Pending>,
    habits: Habits,
}

#[derive(Clone, Debug)]
struct Pending {
    address: u8,
    len: usize,
    data: [u8; MEMORY],
}

impl Servo {
    pub(super) fn new(id: u8, firmware: (u8, u8), encoder: f64, habits: Habits) -> Self {
        let mut servo = Self {
            memory: [0; MEMORY],
            eeprom: factory_eeprom(id, firmware),
            encoder,
            velocity: 0.0,
            stops: (f64::MIN, f64::MAX),
            external_load: 0.0,
            supply_dv: 74,
            temperature_c: 30,
            blocked: false,
            detached: false,
            overload_steps: 0,
            over_current_steps: 0,
            pending: None,
            habits,
        };
        servo.power_on();
        servo
    }

    pub(super) fn power_on(&mut self) {
        self.memory = [0; MEMORY];
        self.memory[..EEPROM_END].copy_from_slice(&self.eeprom);
        self.put(&registers::TORQUE_LIMIT, self.value(&registers::MAX_TORQUE_LIMIT));
        for (register, value) in [
            (&registers::GOAL_TIME, 1000),
            (&registers::LOCK, 1),
            (&registers::PRESENT_VOLTAGE, self.supply_dv.into()),
            (&registers::PRESENT_TEMPERATURE, self.temperature_c.into()),
            (&registers::MOVING_VELOCITY_THRESHOLD, 1),
            (&registers::MAXIMUM_VELOCITY_LIMIT, 85),
            (&registers::MAXIMUM_ACCELERATION, 254),
        ] {
            self.put(register, value);
        }
        self.velocity = 0.0;
        self.overload_steps = 0;
        self.over_current_steps = 0;
        self.pending = None;
        self.check_supply();
        self.refresh();
        self.goal_is_present();
    }

    /// The power goes away for a moment and does not come back whole: registers are lost, the supply stays low.
    pub(super) fn brown_out(&mut self) {
        self.supply_dv = BROWN_OUT_DV;
        self.power_on();
    }

    pub(super) fn set_blocked(&mut self, blocked: bool) {
        self.blocked = blocked;
    }

    pub(super) fn set_detached(&mut self, detached: bool) {
        self.detached = detached;
    }

    /// Whether it hears requests at this baud rate.
    pub(super) fn hears(&self, baud: u32) -> bool {
        !self.detached && BAUD_RATES.get(usize::from(self.memory[6])).is_none_or(|own| *own == baud)
    }

    /// Register 7: the time between a request and its reply.
    pub(super) const fn return_delay_us(&self) -> u64 {
        2 * self.memory[7] as u64
    }

    /// Back to the factory's EEPROM, id excepted.
    pub(super) fn reset(&mut self) {
        self.eeprom = factory_eeprom(self.id(), (self.memory[0], self.memory[1]));
        self.power_on();
    }

    pub(super) const fn id(&self) -> u8 {
        self.memory[5]
    }

    pub(super) fn servo_id(&self) -> Option<ServoId> {
        ServoId::new(self.id()).ok()
    }

    pub(super) const fn alarms(&self) -> Alarms {
        Alarms::from_bits(self.memory[65])
    }

    /// Register 8: 0 = only reads and pings are answered.
    pub(super) const fn answers_writes(&self) -> bool {
        self.memory[8] != 0
    }

    pub(super) const fn memory(&self) -> &[u8; MEMORY] {
        &self.memory
    }

    /// Encoder less homing offset, ticks.
    pub(super) fn position(&self) -> f64 {
        self.encoder - f64::from(self.value(&registers::HOMING_OFFSET))
    }

    pub(super) fn set_position(&mut self, position: f64) {
        let encoder = position + f64::from(self.value(&registers::HOMING_OFFSET));
        self.encoder = encoder.max(self.stops.0).min(self.stops.1);
        self.velocity = 0.0;
        self.refresh();
    }

    pub(super) fn set_stops(&mut self, min: f64, max: f64) {
        let offset = f64::from(self.value(&registers::HOMING_OFFSET));
        self.stops = (min + offset, max + offset);
    }

    pub(super) fn set_external_load(&mut self, permille: f64) {
        self.external_load = permille;
    }

    /// Sets bytes behind the servo's back.
    pub(super) fn poke(&mut self, address: u8, data: &[u8]) {
        for (k, byte) in (usize::from(address)..MEMORY).zip(data) {
            self.memory[k] = *byte;
            if k < EEPROM_END {
                self.eeprom[k] = *byte;
            }
        }
        (self.supply_dv, self.temperature_c) = (self.memory[62], self.memory[63]);
        self.check_supply();
        self.refresh();
        if self.torque_is_off() {
            self.goal_is_present();
        }
    }

    /// A write from the bus.
    pub(super) fn write(&mut self, address: u8, data: &[u8]) {
        let first = usize::from(address);
        for (k, byte) in (first..MEMORY).zip(data) {
            if is_read_only(k) {
                continue;
            }
            if k == 40 {
                if *byte == TORQUE_CALIBRATE {
                    self.make_present_the_middle();
                    continue;
                }
                self.torque_edge(*byte);
            }
            if k == 42 && self.habits.goal_ends_overload {
                self.end_overload();
            }
            self.memory[k] = *byte;
            if k < EEPROM_END && self.memory[55] == 0 {
                self.eeprom[k] = *byte;
            }
        }
        if self.habits.goal_switches_torque_on && first <= 42 && first + data.len() >= 44 {
            self.memory[40] |= 1;
        }
        self.refresh();
    }

    /// Keeps a write for [`Self::act`].
    pub(super) fn keep(&mut self, address: u8, bytes: &[u8]) {
        let mut data = [0; MEMORY];
        let len = bytes.len().min(MEMORY);
        data[..len].copy_from_slice(&bytes[..len]);
        self.pending = Some(Pending { address, len, data });
        self.memory[64] = 1;
    }

    /// Carries out the kept write.
    pub(super) fn act(&mut self) {
        self.memory[64] = 0;
        if let Some(p) = self.pending.take() {
            self.write(p.address, &p.data[..p.len]);
        }
    }

    /// Moves by `steps` of [`STEP_S`].
    pub(super) fn advance(&mut self, steps: u64) {
        let mut left = steps;
        while left > 0 {
            self.step();
            left -= 1;
            // A standing servo stays as it is; only the time of an overload goes on.
            if left > 0 && self.velocity == 0.0 && self.stands() {
                self.count_overload(u32::try_from(left).unwrap_or(u32::MAX));
                break;
            }
        }
        self.check_supply();
        self.refresh();
    }

    fn stands(&self) -> bool {
        self.is_protected() || self.drive().is_none_or(|drive| drive.error == 0.0)
    }

    /// Whether an overload or too much current has taken the torque back to register 34.
    fn is_protected(&self) -> bool {
        let condition = Alarms::OVERLOAD.bits() | Alarms::CURRENT.bits();
        self.memory[65] & self.memory[19] & condition != 0
    }

    fn step(&mut self) {
        let Some(drive) = self.drive() else {
            self.velocity = 0.0;
            self.set_load(0.0);
            self.count_overload(1);
            return;
        };
        let mut limit = f64::from(self.value(&registers::TORQUE_LIMIT));
        if self.is_protected() {
            // What is left of the torque holds against something, but moves nothing.
            limit = limit.min(10.0 * f64::from(self.value(&registers::PROTECTIVE_TORQUE)));
            self.velocity = 0.0;
            self.set_load(drive.load_permille(self.external_load, limit));
            return;
        }
        self.set_load(drive.load_permille(self.external_load, limit));
        if drive.stands(self.velocity) {
            // The goal is a whole number of ticks, and so is where the servo comes to rest.
            self.encoder = f64::from(whole(self.encoder + drive.error));
            self.velocity = 0.0;
        } else {
            self.velocity = drive.next_velocity(self.velocity);
            let (min, max) = self.stops;
            let next = self.encoder + self.velocity * STEP_S;
            self.encoder = if self.blocked { self.encoder } else { next.max(min).min(max) };
            if self.encoder != next {
                self.velocity = 0.0;
            }
        }
        self.count_overload(1);
    }

    /// What the position loop has to do; `None` while the motor is not driven.
    fn drive(&self) -> Option<Drive> {
        let position_mode = self.value(&registers::OPERATING_MODE) == 0;
        if self.torque_is_off() || !position_mode {
            return None;
        }
        let (min, max) =
            (self.value(&registers::MIN_POSITION_LIMIT), self.value(&registers::MAX_POSITION_LIMIT));
        let goal = self.value(&registers::GOAL_POSITION);
        let goal = if max > min { goal.clamp(min, max) } else { goal };
        Some(Drive {
            error: f64::from(goal) - self.wrapped(self.position()),
            velocity_limit: f64::from(self.value(&registers::GOAL_VELOCITY).abs()),
            acceleration_limit: 100.0 * f64::from(self.value(&registers::ACCELERATION)),
        })
    }

    /// A position within one turn, unless the phase register asks for all turns.
    fn wrapped(&self, position: f64) -> f64 {
        if self.memory[18] & PHASE_MULTI_TURN != 0 {
            return position;
        }
        // The floor of the turn, by conversion: exact on every platform.
        let turns = position / 4096.0;
        let whole_turns = turns as i64;
        let floor = if (whole_turns as f64) > turns { whole_turns - 1 } else { whole_turns };
        position - floor as f64 * 4096.0
    }

    /// Measured position, velocity and motion into their registers.
    fn refresh(&mut self) {
        let offset = self.value(&registers::HOMING_OFFSET);
        let mut position = whole(self.encoder).saturating_sub(offset);
        if self.memory[18] & PHASE_MULTI_TURN == 0 {
            position = position.rem_euclid(4096);
        }
        self.put(&registers::PRESENT_POSITION, position.clamp(-32767, 32767));
        self.put(&registers::PRESENT_VELOCITY, whole(self.velocity).clamp(-32767, 32767));
        self.memory[66] = u8::from(self.velocity > 2.0 || self.velocity < -2.0);
    }

    fn set_load(&mut self, permille: f64) {
        let load = whole(permille).clamp(-1023, 1023);
        self.put(&registers::PRESENT_LOAD, load);
        // 2.6 A at full load, in counts of 6.5 mA.
        self.put(&registers::PRESENT_CURRENT, load.abs() * 2 / 5);
    }

    fn count_overload(&mut self, steps: u32) {
        let is_driven = !self.torque_is_off() && !self.is_protected();
        let permille = self.value(&registers::PRESENT_LOAD).abs();
        let current = self.value(&registers::PRESENT_CURRENT);
        let too_much = is_driven && permille > 10 * self.value(&registers::OVERLOAD_TORQUE);
        let too_high = is_driven && current > self.value(&registers::PROTECTION_CURRENT);
        let count = |counted: u32, goes_on: bool| if goes_on { counted.saturating_add(steps) } else { 0 };
        self.overload_steps = count(self.overload_steps, too_much);
        self.over_current_steps = count(self.over_current_steps, too_high);
        // A step is a millisecond, the registers count in hundredths of a second.
        let is_over =
            |steps: u32, register: &Register| i64::from(steps) > 10 * i64::from(self.value(register));
        let mut alarms = 0;
        if is_over(self.overload_steps, &registers::PROTECTION_TIME) {
            alarms |= Alarms::OVERLOAD.bits();
        }
        if is_over(self.over_current_steps, &registers::OVER_CURRENT_PROTECTION_TIME) {
            alarms |= Alarms::CURRENT.bits();
        }
        if alarms & self.memory[19] != 0 {
            self.memory[65] |= alarms & self.memory[19];
            self.velocity = 0.0;
            self.step();
        }
    }

    fn end_overload(&mut self) {
        self.memory[65] &= !(Alarms::OVERLOAD.bits() | Alarms::CURRENT.bits());
        self.overload_steps = 0;
        self.over_current_steps = 0;
    }

    /// Voltage and heat alarms.
    fn check_supply(&mut self) {
        let (volt, heat) = (self.memory[62], self.memory[63]);
        let limits = (self.memory[14], self.memory[15], self.memory[13]);
        let mut set = |alarm: Alarms, raised: bool| {
            if raised {
                self.memory[65] |= alarm.bits();
            } else {
                self.memory[65] &= !alarm.bits();
            }
        };
        set(Alarms::VOLTAGE, volt > limits.0 || volt < limits.1);
        set(Alarms::HEAT, heat > limits.2);
    }

    fn torque_is_off(&self) -> bool {
        self.memory[40] & 1 == 0
    }

    fn torque_edge(&mut self, value: u8) {
        if value & 1 == 0 {
            self.end_overload();
        } else if self.torque_is_off() && self.habits.present_is_goal_at_torque_on {
            self.goal_is_present();
        }
    }

    fn goal_is_present(&mut self) {
        let position = self.value(&registers::PRESENT_POSITION);
        self.put(&registers::GOAL_POSITION, position);
    }

    fn make_present_the_middle(&mut self) {
        let offset = (whole(self.encoder).rem_euclid(4096) - 2048).max(-2047);
        self.put(&registers::HOMING_OFFSET, offset);
        self.eeprom[31..33].copy_from_slice(&self.memory[31..33]);
    }

    fn value(&self, register: &Register) -> i32 {
        register.decode(&self.memory[usize::from(register.address)..]).unwrap_or(0)
    }

    /// Values are kept within the register's bounds by the caller.
    fn put(&mut self, register: &Register, value: i32) {
        if let Ok(bytes) = register.encode(value) {
            let (at, size) = (usize::from(register.address), usize::from(register.size));
            self.memory[at..at + size].copy_from_slice(&bytes[..size]);
        }
    }
}

/// Registers as they leave the factory (vendor's table for the 7.4 V family).
fn factory_eeprom(id: u8, firmware: (u8, u8)) -> [u8; EEPROM_END] {
    let mut e = [0; EEPROM_END];
    let [model_low, model_high] = registers::STS3215.to_le_bytes();
    for (address, byte) in [
        (0, firmware.0),
        (1, firmware.1),
        (3, model_low),
        (4, model_high),
        (5, id),
        (7, 250),
        (8, 1),
        (11, 0xff), // highest goal 4095
        (12, 0x0f),
        (13, 70),
        (14, 140),
        (15, 40),
        (16, 0xe8), // full torque, 1000
        (17, 0x03),
        (18, 12),
        (19, 44),
        (20, 47),
        (21, 32),
        (22, 32),
        (24, 16),
        (26, 1),
        (27, 1),
        (28, 0xf4), // 500 counts of current
        (29, 0x01),
        (30, 1),
        (34, 20),
        (35, 200),
        (36, 80),
        (37, 10),
        (38, 200),
        (39, 200),
    ] {
        e[address] = byte;
    }
    e
}

#[cfg(test)]
mod tests;
