//! The memory of an STS3215, as data.
//!
//! Names are LeRobot's (`lerobot/motors/feetech/tables.py`, `STS_SMS_SERIES_CONTROL_TABLE`), so that dumps and logs
//! compare. EEPROM registers keep a write over a power cycle only while [`LOCK`] is 0.

pub mod typed;

pub use typed::{BaudRate, EepromLock, OperatingMode, RegisterAccess, RegisterValue, TorqueState, Typed};

use crate::convert::SignBit;
use crate::error::{Error, Result};
use crate::protocol::{Alarms, Block};
use crate::units::Ticks;

/// Where a register lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// Kept over a power cycle when written while [`LOCK`] is 0.
    Eeprom,
    /// Lost with the power.
    Ram,
}

/// Who may change a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The servo alone.
    ReadOnly,
    /// The host too.
    ReadWrite,
}

/// What one count of a register stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// A plain number, code or set of bits.
    Count,
    /// Encoder steps, 4096 a turn.
    Step,
    /// Encoder steps a second.
    StepPerSecond,
    /// 100 encoder steps a second squared.
    HundredStepPerSecond2,
    /// 0.1 % of the full torque, load or PWM.
    Permille,
    /// 1 % of the full torque.
    Percent,
    /// 0.1 V.
    Decivolt,
    /// Degrees Celsius.
    Celsius,
    /// 6.5 mA.
    Milliampere6_5,
    /// 10 ms.
    Centisecond,
    /// 2 us.
    Microsecond2,
}

/// One register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register {
    /// LeRobot's name.
    pub name: &'static str,
    /// Address of its first byte.
    pub address: u8,
    /// Bytes, 1 or 2 (little endian).
    pub size: u8,
    /// The sign bit, where the register is sign and magnitude; `None` = unsigned.
    pub sign: Option<SignBit>,
    /// Where it lives.
    pub area: Area,
    /// Who may change it.
    pub access: Access,
    /// What one count stands for.
    pub unit: Unit,
    /// The largest value that may be written where that is less than what fits; readings are taken as they are.
    pub max: Option<u8>,
}

impl Register {
    /// Its bytes as a block.
    #[must_use]
    pub const fn block(&self) -> Block {
        Block::new(self.address, self.size)
    }

    /// The value in the front of `bytes`, which begin at this register.
    ///
    /// # Errors
    /// [`Error::RegisterBytes`] when there are fewer bytes than the register has.
    pub fn decode(&self, bytes: &[u8]) -> Result<i32> {
        let word = match (self.size, bytes) {
            (1, [byte, ..]) => u16::from(*byte),
            (2, [low, high, ..]) => u16::from_le_bytes([*low, *high]),
            _ => {
                return Err(Error::RegisterBytes {
                    register: self.name,
                    needed: usize::from(self.size),
                    got: bytes.len(),
                });
            }
        };
        Ok(self.sign.map_or(i32::from(word), |bit| bit.decode(word)))
    }

    /// The bytes of a value; the register's [`Self::size`] of them count.
    ///
    /// # Errors
    /// [`Error::RegisterValue`] when the register cannot hold it.
    ///
    /// ```
    /// use so101_hal::registers::HOMING_OFFSET;
    /// # fn main() -> so101_hal::Result<()> {
    /// let bytes = HOMING_OFFSET.encode(-709)?;
    /// assert_eq!(bytes, [0xc5, 0x0a]);
    /// assert_eq!(HOMING_OFFSET.decode(&bytes)?, -709);
    /// assert!(HOMING_OFFSET.encode(2048).is_err());
    /// # Ok(()) }
    /// ```
    pub fn encode(&self, value: i32) -> Result<[u8; 2]> {
        let (min, max) = self.bounds();
        if !(min..=max).contains(&value) {
            return Err(Error::RegisterValue { register: self.name, value, min, max });
        }
        let word = match self.sign {
            Some(bit) => bit.encode(value)?,
            // Within the bounds, so it fits.
            None => value as u16,
        };
        Ok(word.to_le_bytes())
    }

    /// The smallest and largest value that may be written.
    #[must_use]
    pub const fn bounds(&self) -> (i32, i32) {
        if let Some(max) = self.max {
            return (0, max as i32);
        }
        match (self.sign, self.size) {
            (Some(bit), _) => (-(bit.max_magnitude() as i32), bit.max_magnitude() as i32),
            (None, 1) => (0, u8::MAX as i32),
            (None, _) => (0, u16::MAX as i32),
        }
    }
}

/// The register of a name, in LeRobot's spelling.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Register> {
    TABLE.iter().find(|r| r.name == name)
}

/// The bit of [`PHASE`] that makes a servo count turns: positions then leave 0..=4095, which no calibration means, and
/// LeRobot dies of "Magnitude N exceeds 2047".
pub const PHASE_MULTI_TURN: u8 = 0x10;

/// Position to current, 15 bytes: everything that changes while the arm moves. See [`Telemetry`].
pub const TELEMETRY: Block = Block::new(56, Telemetry::LEN as u8);

/// The number that [`MODEL_NUMBER`] holds in every STS3215.
pub const STS3215: u16 = 777;

/// Torque on, with the position loop.
pub const TORQUE_ON: u8 = 1;

/// Written to [`TORQUE_ENABLE`], makes the present position 2048: the servo rewrites [`HOMING_OFFSET`].
pub const TORQUE_MAKE_MIDDLE: u8 = 128;

/// [`GOAL_TIME`] in PWM mode: the duty, signed.
pub const GOAL_PWM: Register =
    Register { name: "Goal_PWM", sign: Some(SignBit::Bit10), unit: Unit::Permille, ..GOAL_TIME };

/// What a servo reports in one read of [`TELEMETRY`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Encoder position less homing offset.
    pub position: Ticks,
    /// Encoder steps a second.
    pub velocity_ticks_s: i32,
    /// PWM duty in 0.1 %, signed.
    pub load_permille: i32,
    /// Supply in 0.1 V.
    pub voltage_dv: u8,
    /// Degrees Celsius.
    pub temperature_c: u8,
    /// The alarms of the status register.
    pub status: Alarms,
    /// Whether the servo sees itself moving.
    pub moving: bool,
    /// Motor current in counts of 6.5 mA, as the register holds it.
    pub current_6_5ma: u16,
}

impl Telemetry {
    /// Bytes of the block.
    pub const LEN: usize = 15;

    /// From the bytes of [`TELEMETRY`].
    #[must_use]
    pub const fn from_bytes(b: &[u8; Self::LEN]) -> Self {
        const fn word(low: u8, high: u8) -> u16 {
            u16::from_le_bytes([low, high])
        }
        Self {
            position: Ticks(SignBit::Bit15.decode(word(b[0], b[1]))),
            velocity_ticks_s: SignBit::Bit15.decode(word(b[2], b[3])),
            load_permille: SignBit::Bit10.decode(word(b[4], b[5])),
            voltage_dv: b[6],
            temperature_c: b[7],
            status: Alarms::from_bits(b[9]),
            moving: b[10] != 0,
            current_6_5ma: word(b[13], b[14]),
        }
    }

    /// Supply in volts.
    #[must_use]
    pub fn voltage_v(&self) -> f64 {
        f64::from(self.voltage_dv) / 10.0
    }

    /// Motor current in milliamperes.
    #[must_use]
    pub fn current_ma(&self) -> f64 {
        f64::from(self.current_6_5ma) * 6.5
    }
}

macro_rules! registers {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $address:literal, $size:literal, $sign:expr, $area:ident,
        $access:ident, $unit:ident $(, max $max:literal)?;)*) => {
        $(
            $(#[$doc])*
            pub const $id: Register = Register {
                name: $name,
                address: $address,
                size: $size,
                sign: $sign,
                area: Area::$area,
                access: Access::$access,
                unit: Unit::$unit,
                max: registers!(@max $($max)?),
            };
        )*

        /// Every register, by address.
        pub static TABLE: &[Register] = &[$($id),*];
    };
    (@max) => { None };
    (@max $max:literal) => { Some($max) };
}

const B10: Option<SignBit> = Some(SignBit::Bit10);
const B11: Option<SignBit> = Some(SignBit::Bit11);
const B15: Option<SignBit> = Some(SignBit::Bit15);

registers! {
    /// Firmware, number before the point.
    FIRMWARE_MAJOR = "Firmware_Major_Version", 0, 1, None, Eeprom, ReadOnly, Count;
    /// Firmware, number behind the point.
    FIRMWARE_MINOR = "Firmware_Minor_Version", 1, 1, None, Eeprom, ReadOnly, Count;
    /// 0 = words are little endian. The vendor's; LeRobot does not name it.
    ENDIANNESS = "Endianness", 2, 1, None, Eeprom, ReadOnly, Count;
    /// 777 for every STS3215, see [`STS3215`].
    MODEL_NUMBER = "Model_Number", 3, 2, None, Eeprom, ReadOnly, Count;
    /// The servo's id, 0 to 253.
    ID = "ID", 5, 1, None, Eeprom, ReadWrite, Count, max 253;
    /// Code of the baud rate: 0 = 1 M, 1 = 500 k, 2 = 250 k, 3 = 128 k, 4 = 115200. The tables of vendor and LeRobot
    /// disagree above 4, so no more is written.
    BAUD_RATE = "Baud_Rate", 6, 1, None, Eeprom, ReadWrite, Count, max 4;
    /// Time from request to reply.
    RETURN_DELAY_TIME = "Return_Delay_Time", 7, 1, None, Eeprom, ReadWrite, Microsecond2;
    /// 1 = every request to one servo is answered, 0 = reads and pings alone.
    RESPONSE_STATUS_LEVEL = "Response_Status_Level", 8, 1, None, Eeprom, ReadWrite, Count, max 1;
    /// Lowest goal; with both limits 0 the servo turns without end.
    MIN_POSITION_LIMIT = "Min_Position_Limit", 9, 2, None, Eeprom, ReadWrite, Step;
    /// Highest goal.
    MAX_POSITION_LIMIT = "Max_Position_Limit", 11, 2, None, Eeprom, ReadWrite, Step;
    /// Hotter raises the heat alarm.
    MAX_TEMPERATURE_LIMIT = "Max_Temperature_Limit", 13, 1, None, Eeprom, ReadWrite, Celsius;
    /// More raises the voltage alarm.
    MAX_VOLTAGE_LIMIT = "Max_Voltage_Limit", 14, 1, None, Eeprom, ReadWrite, Decivolt;
    /// Less raises the voltage alarm.
    MIN_VOLTAGE_LIMIT = "Min_Voltage_Limit", 15, 1, None, Eeprom, ReadWrite, Decivolt;
    /// Copied to [`TORQUE_LIMIT`] when the power comes on, and only then.
    MAX_TORQUE_LIMIT = "Max_Torque_Limit", 16, 2, None, Eeprom, ReadWrite, Permille;
    /// Bits for the direction, the speed unit and (bit 4) positions beyond one turn.
    PHASE = "Phase", 18, 1, None, Eeprom, ReadWrite, Count;
    /// Alarms that switch the torque off.
    UNLOADING_CONDITION = "Unloading_Condition", 19, 1, None, Eeprom, ReadWrite, Count;
    /// Alarms that light the LED.
    LED_ALARM_CONDITION = "LED_Alarm_Condition", 20, 1, None, Eeprom, ReadWrite, Count;
    /// Proportional gain of the position loop.
    P_COEFFICIENT = "P_Coefficient", 21, 1, None, Eeprom, ReadWrite, Count;
    /// Derivative gain of the position loop.
    D_COEFFICIENT = "D_Coefficient", 22, 1, None, Eeprom, ReadWrite, Count;
    /// Integral gain of the position loop.
    I_COEFFICIENT = "I_Coefficient", 23, 1, None, Eeprom, ReadWrite, Count;
    /// The least duty that moves the motor. One byte, as the vendor says; LeRobot reads two.
    MINIMUM_STARTUP_FORCE = "Minimum_Startup_Force", 24, 1, None, Eeprom, ReadWrite, Permille;
    /// The most that the integral of the position loop may add, in units of 4. The vendor's; LeRobot takes it for the
    /// high byte of the register before.
    INTEGRAL_LIMIT = "Integral_Limit", 25, 1, None, Eeprom, ReadWrite, Count;
    /// Dead zone, clockwise.
    CW_DEAD_ZONE = "CW_Dead_Zone", 26, 1, None, Eeprom, ReadWrite, Step;
    /// Dead zone, counter-clockwise.
    CCW_DEAD_ZONE = "CCW_Dead_Zone", 27, 1, None, Eeprom, ReadWrite, Step;
    /// More for longer than [`OVER_CURRENT_PROTECTION_TIME`] raises the current alarm.
    PROTECTION_CURRENT = "Protection_Current", 28, 2, None, Eeprom, ReadWrite, Milliampere6_5;
    /// Multiplier of the step in multi-turn operation.
    ANGULAR_RESOLUTION = "Angular_Resolution", 30, 1, None, Eeprom, ReadWrite, Count;
    /// `position = encoder - homing offset`.
    HOMING_OFFSET = "Homing_Offset", 31, 2, B11, Eeprom, ReadWrite, Step;
    /// 0 position, 1 velocity, 2 PWM, 3 steps.
    OPERATING_MODE = "Operating_Mode", 33, 1, None, Eeprom, ReadWrite, Count, max 3;
    /// Torque that is left after an overload.
    PROTECTIVE_TORQUE = "Protective_Torque", 34, 1, None, Eeprom, ReadWrite, Percent;
    /// How long an overload may last.
    PROTECTION_TIME = "Protection_Time", 35, 1, None, Eeprom, ReadWrite, Centisecond;
    /// What counts as overload.
    OVERLOAD_TORQUE = "Overload_Torque", 36, 1, None, Eeprom, ReadWrite, Percent;
    /// Proportional gain of the velocity loop.
    VELOCITY_P_COEFFICIENT = "Velocity_closed_loop_P_proportional_coefficient", 37, 1, None, Eeprom, ReadWrite, Count;
    /// How long an over-current may last.
    OVER_CURRENT_PROTECTION_TIME = "Over_Current_Protection_Time", 38, 1, None, Eeprom, ReadWrite, Centisecond;
    /// Integral gain of the velocity loop.
    VELOCITY_I_COEFFICIENT = "Velocity_closed_loop_I_integral_coefficient", 39, 1, None, Eeprom, ReadWrite, Count;
    /// 0 off, 1 on, 2 damping, 128 = make the present position 2048.
    TORQUE_ENABLE = "Torque_Enable", 40, 1, None, Ram, ReadWrite, Count;
    /// Acceleration towards the goal, 0 = the most.
    ACCELERATION = "Acceleration", 41, 1, None, Ram, ReadWrite, HundredStepPerSecond2;
    /// Where to go.
    GOAL_POSITION = "Goal_Position", 42, 2, B15, Ram, ReadWrite, Step;
    /// Duration, or duty in PWM mode, see [`GOAL_PWM`].
    GOAL_TIME = "Goal_Time", 44, 2, None, Ram, ReadWrite, Count;
    /// Velocity towards the goal, 0 = the most.
    GOAL_VELOCITY = "Goal_Velocity", 46, 2, B15, Ram, ReadWrite, StepPerSecond;
    /// Torque limit in force; starts as [`MAX_TORQUE_LIMIT`].
    TORQUE_LIMIT = "Torque_Limit", 48, 2, None, Ram, ReadWrite, Permille;
    /// 1 = EEPROM writes are lost with the power.
    LOCK = "Lock", 55, 1, None, Ram, ReadWrite, Count, max 1;
    /// Encoder position less homing offset.
    PRESENT_POSITION = "Present_Position", 56, 2, B15, Ram, ReadOnly, Step;
    /// Measured velocity.
    PRESENT_VELOCITY = "Present_Velocity", 58, 2, B15, Ram, ReadOnly, StepPerSecond;
    /// PWM duty.
    PRESENT_LOAD = "Present_Load", 60, 2, B10, Ram, ReadOnly, Permille;
    /// Supply voltage.
    PRESENT_VOLTAGE = "Present_Voltage", 62, 1, None, Ram, ReadOnly, Decivolt;
    /// Temperature inside.
    PRESENT_TEMPERATURE = "Present_Temperature", 63, 1, None, Ram, ReadOnly, Celsius;
    /// 1 while a registered write waits for its action.
    REGISTERED_WRITE = "Registered_Write", 64, 1, None, Ram, ReadOnly, Count;
    /// The alarms, see [`Alarms`].
    STATUS = "Status", 65, 1, None, Ram, ReadOnly, Count;
    /// 1 while moving.
    MOVING = "Moving", 66, 1, None, Ram, ReadOnly, Count;
    /// The goal that is followed, by the vendor's table; LeRobot does not name it.
    GOAL_POSITION_ECHO = "Goal_Position_Echo", 67, 2, B15, Ram, ReadOnly, Step;
    /// Motor current. Unsigned here, as in LeRobot; some drivers take bit 15 as its sign.
    PRESENT_CURRENT = "Present_Current", 69, 2, None, Ram, ReadOnly, Milliampere6_5;
    /// The goal that is followed, by LeRobot's table.
    GOAL_POSITION_2 = "Goal_Position_2", 71, 2, B15, Ram, ReadOnly, Step;
    /// Slower than this counts as standing.
    MOVING_VELOCITY_THRESHOLD = "Moving_Velocity_Threshold", 80, 1, None, Ram, ReadWrite, Count;
    /// Factory value.
    DTS = "DTs", 81, 1, None, Ram, ReadWrite, Count;
    /// Factory value.
    VELOCITY_UNIT_FACTOR = "Velocity_Unit_factor", 82, 1, None, Ram, ReadWrite, Count;
    /// Factory value.
    HTS = "Hts", 83, 1, None, Ram, ReadWrite, Count;
    /// Highest velocity, 0.732 rpm a count.
    MAXIMUM_VELOCITY_LIMIT = "Maximum_Velocity_Limit", 84, 1, None, Ram, ReadWrite, Count;
    /// Highest acceleration.
    MAXIMUM_ACCELERATION = "Maximum_Acceleration", 85, 1, None, Ram, ReadWrite, HundredStepPerSecond2;
    /// Factory value.
    ACCELERATION_MULTIPLIER = "Acceleration_Multiplier", 86, 1, None, Ram, ReadWrite, Count;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_stand_in_order_and_do_not_overlap() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].address + pair[0].size <= pair[1].address, "{pair:?}");
        }
        for r in TABLE {
            assert_eq!(r.area == Area::Eeprom, r.address < 40, "{}", r.name);
            assert_eq!(by_name(r.name), Some(r));
        }
    }

    #[test]
    fn the_ends_of_every_register_survive_and_one_beyond_is_refused() {
        for r in TABLE {
            let (min, max) = r.bounds();
            for v in [min, -1, 0, 1, max] {
                if (min..=max).contains(&v) {
                    assert_eq!(r.decode(&r.encode(v).unwrap()).unwrap(), v, "{}", r.name);
                }
            }
            for v in [min - 1, max + 1] {
                let err = r.encode(v).unwrap_err();
                assert!(matches!(err, Error::RegisterValue { value, .. } if value == v), "{err}");
            }
            assert!(matches!(r.decode(&[]), Err(Error::RegisterBytes { got: 0, .. })));
        }
    }

    #[test]
    fn telemetry_agrees_with_the_registers_that_it_is_made_of() {
        let bytes = [0x10, 0x88, 0x05, 0x80, 0x2c, 0x05, 74, 31, 0, 0x21, 1, 0, 0, 0x02, 0x01];
        let t = Telemetry::from_bytes(&bytes);
        let at = |r: Register| r.decode(&bytes[usize::from(r.address) - 56..]).unwrap();
        assert_eq!(t.position.0, at(PRESENT_POSITION));
        assert_eq!((t.position.0, t.velocity_ticks_s, t.load_permille), (-0x810, -5, -300));
        assert_eq!((t.velocity_ticks_s, t.load_permille), (at(PRESENT_VELOCITY), at(PRESENT_LOAD)));
        assert_eq!((t.voltage_dv, t.temperature_c), (74, 31));
        assert_eq!(t.status, Alarms::VOLTAGE | Alarms::OVERLOAD);
        assert_eq!(i32::from(t.current_6_5ma), at(PRESENT_CURRENT));
        assert!(t.moving && (t.voltage_v() - 7.4).abs() < 1e-12 && (t.current_ma() - 1677.0).abs() < 1e-9);
    }
}
