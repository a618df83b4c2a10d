//! Registers with the type of what they hold.

use super::{self as registers, Register};
use crate::bus::ServoBus;
use crate::error::{Error, Result};
use crate::protocol::{Alarms, ServoId};
use crate::units::Ticks;

/// What a register can hold, beyond a number.
pub trait RegisterValue: Sized {
    /// From the register's count.
    ///
    /// # Errors
    /// [`Error::RegisterMeaning`] for a count without a meaning.
    fn from_count(register: &Register, count: i32) -> Result<Self>;

    /// The register's count.
    fn to_count(&self) -> i32;
}

/// A register and the type of what it holds.
#[derive(Clone, Copy, Debug)]
pub struct Typed<T> {
    /// The register.
    pub register: Register,
    value: core::marker::PhantomData<fn() -> T>,
}

impl<T> Typed<T> {
    /// Says what a register holds.
    #[must_use]
    pub const fn new(register: Register) -> Self {
        Self { register, value: core::marker::PhantomData }
    }
}

/// Reads and writes registers by type, on every [`ServoBus`].
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::registers::{OperatingMode, RegisterAccess as _, TorqueState, typed};
/// use so101_hal::{EmulatedServos, EmulatorOptions, ServoId, Ticks, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// let (mut bus, gripper) = (servos.bus(), ServoId::new(6)?);
/// assert_eq!(bus.get(gripper, &typed::OPERATING_MODE)?, OperatingMode::Position);
/// bus.set(gripper, &typed::GOAL_POSITION, &Ticks(2100))?;
/// assert_eq!(bus.get(gripper, &typed::TORQUE)?, TorqueState::On);
/// # Ok(()) }
/// ```
pub trait RegisterAccess {
    /// Reads a register.
    ///
    /// # Errors
    /// As [`ServoBus::read_register`], and [`Error::RegisterMeaning`].
    fn get<T: RegisterValue>(&mut self, id: ServoId, register: &Typed<T>) -> Result<T>;

    /// Writes a register.
    ///
    /// # Errors
    /// As [`ServoBus::write_register`].
    fn set<T: RegisterValue>(&mut self, id: ServoId, register: &Typed<T>, value: &T) -> Result<Alarms>;
}

impl<B: ServoBus + ?Sized> RegisterAccess for B {
    fn get<T: RegisterValue>(&mut self, id: ServoId, typed: &Typed<T>) -> Result<T> {
        T::from_count(&typed.register, self.read_register(id, &typed.register)?.value)
    }

    fn set<T: RegisterValue>(&mut self, id: ServoId, typed: &Typed<T>, value: &T) -> Result<Alarms> {
        self.write_register(id, &typed.register, value.to_count())
    }
}

impl RegisterValue for Ticks {
    fn from_count(_: &Register, count: i32) -> Result<Self> {
        Ok(Self(count))
    }
    fn to_count(&self) -> i32 {
        self.0
    }
}

impl RegisterValue for ServoId {
    fn from_count(register: &Register, count: i32) -> Result<Self> {
        let id = u8::try_from(count).ok().and_then(|id| Self::new(id).ok());
        id.ok_or(Error::RegisterMeaning { register: register.name, value: count })
    }
    fn to_count(&self) -> i32 {
        self.get().into()
    }
}

impl RegisterValue for Alarms {
    fn from_count(register: &Register, count: i32) -> Result<Self> {
        let bits = u8::try_from(count);
        bits.map(Self::from_bits)
            .map_err(|_| Error::RegisterMeaning { register: register.name, value: count })
    }
    fn to_count(&self) -> i32 {
        self.bits().into()
    }
}

/// An enumeration whose variants are counts of a register.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl RegisterValue for $name {
            fn from_count(register: &Register, count: i32) -> Result<Self> {
                match count {
                    $($code => Ok(Self::$variant),)*
                    _ => Err(Error::RegisterMeaning { register: register.name, value: count }),
                }
            }
            fn to_count(&self) -> i32 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }
        }

        impl $name {
            /// All of them, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
        }
    };
}

codes! {
    /// What the motor does (register 40).
    TorqueState {
        /// It is limp.
        Off = 0,
        /// It holds its goal.
        On = 1,
        /// It brakes.
        Damping = 2,
    }
}

codes! {
    /// What a goal means (register 33).
    OperatingMode {
        /// A position.
        Position = 0,
        /// A velocity.
        Velocity = 1,
        /// A duty.
        Pwm = 2,
        /// A number of steps.
        Step = 3,
    }
}

codes! {
    /// Speed of the bus (register 6). Vendor and LeRobot disagree about codes above 4, so they are not here.
    BaudRate {
        /// 1 Mbaud, the factory's.
        M1 = 0,
        /// 500 kbaud.
        K500 = 1,
        /// 250 kbaud.
        K250 = 2,
        /// 128 kbaud.
        K128 = 3,
        /// 115.2 kbaud.
        K115 = 4,
    }
}

codes! {
    /// Whether EEPROM writes last (register 55).
    EepromLock {
        /// They are kept over a power cycle.
        Open = 0,
        /// They are lost with the power.
        Locked = 1,
    }
}

impl BaudRate {
    /// Bits a second.
    #[must_use]
    pub const fn bits_per_second(self) -> u32 {
        match self {
            Self::M1 => 1_000_000,
            Self::K500 => 500_000,
            Self::K250 => 250_000,
            Self::K128 => 128_000,
            Self::K115 => 115_200,
        }
    }
}

/// A quantity in the unit of its register.
macro_rules! quantities {
    ($($(#[$doc:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl RegisterValue for $name {
            fn from_count(register: &Register, count: i32) -> Result<Self> {
                let value = <$int>::try_from(count);
                value.map(Self).map_err(|_| Error::RegisterMeaning { register: register.name, value: count })
            }
            fn to_count(&self) -> i32 {
                self.0.into()
            }
        }
    )*};
}

quantities! {
    /// 0.1 V.
    Decivolts(u8);
    /// Degrees Celsius.
    Celsius(u8);
    /// 0.1 %, signed where it has a direction.
    Permille(i16);
    /// 6.5 mA.
    CurrentCounts(u16);
    /// Encoder steps a second.
    StepsPerSecond(i32);
    /// 100 encoder steps a second squared; 0 = the most.
    AccelerationCounts(u8);
}

macro_rules! typed {
    ($($(#[$doc:meta])* $id:ident: $type:ty = $register:ident;)*) => {$(
        $(#[$doc])*
        pub const $id: Typed<$type> = Typed::new(registers::$register);
    )*};
}

typed! {
    /// The servo's id.
    ID: ServoId = ID;
    /// Speed of the bus.
    BAUD_RATE: BaudRate = BAUD_RATE;
    /// Lowest goal.
    MIN_POSITION_LIMIT: Ticks = MIN_POSITION_LIMIT;
    /// Highest goal.
    MAX_POSITION_LIMIT: Ticks = MAX_POSITION_LIMIT;
    /// Above it the heat alarm.
    MAX_TEMPERATURE_LIMIT: Celsius = MAX_TEMPERATURE_LIMIT;
    /// Above it the voltage alarm.
    MAX_VOLTAGE_LIMIT: Decivolts = MAX_VOLTAGE_LIMIT;
    /// Below it the voltage alarm.
    MIN_VOLTAGE_LIMIT: Decivolts = MIN_VOLTAGE_LIMIT;
    /// Becomes [`TORQUE_LIMIT`] with the power.
    MAX_TORQUE_LIMIT: Permille = MAX_TORQUE_LIMIT;
    /// Alarms that switch the torque off.
    UNLOADING_CONDITION: Alarms = UNLOADING_CONDITION;
    /// Alarms that light the LED.
    LED_ALARM_CONDITION: Alarms = LED_ALARM_CONDITION;
    /// Above it the current alarm.
    PROTECTION_CURRENT: CurrentCounts = PROTECTION_CURRENT;
    /// Position = encoder less this.
    HOMING_OFFSET: Ticks = HOMING_OFFSET;
    /// What a goal means.
    OPERATING_MODE: OperatingMode = OPERATING_MODE;
    /// What the motor does.
    TORQUE: TorqueState = TORQUE_ENABLE;
    /// Acceleration towards the goal.
    ACCELERATION: AccelerationCounts = ACCELERATION;
    /// Where to go.
    GOAL_POSITION: Ticks = GOAL_POSITION;
    /// Duty in PWM mode.
    GOAL_PWM: Permille = GOAL_PWM;
    /// Velocity towards the goal.
    GOAL_VELOCITY: StepsPerSecond = GOAL_VELOCITY;
    /// Torque limit in force.
    TORQUE_LIMIT: Permille = TORQUE_LIMIT;
    /// Whether EEPROM writes last.
    LOCK: EepromLock = LOCK;
    /// Where the servo is.
    PRESENT_POSITION: Ticks = PRESENT_POSITION;
    /// How fast it is.
    PRESENT_VELOCITY: StepsPerSecond = PRESENT_VELOCITY;
    /// Duty.
    PRESENT_LOAD: Permille = PRESENT_LOAD;
    /// Supply.
    PRESENT_VOLTAGE: Decivolts = PRESENT_VOLTAGE;
    /// Temperature inside.
    PRESENT_TEMPERATURE: Celsius = PRESENT_TEMPERATURE;
    /// The alarms.
    STATUS: Alarms = STATUS;
    /// Motor current.
    PRESENT_CURRENT: CurrentCounts = PRESENT_CURRENT;
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn every_code_has_its_variant_and_others_are_named() {
        fn check<T: RegisterValue + Copy + PartialEq + core::fmt::Debug>(register: &Register, all: &[T]) {
            for (code, value) in (0..).zip(all) {
                assert_eq!(value.to_count(), code);
                assert_eq!(T::from_count(register, code).unwrap(), *value);
            }
            let beyond = all.len() as i32;
            let err = T::from_count(register, beyond).err().unwrap().to_string();
            assert!(err.contains(register.name) && err.contains(&beyond.to_string()), "{err}");
        }
        check(&registers::TORQUE_ENABLE, TorqueState::ALL);
        check(&registers::OPERATING_MODE, OperatingMode::ALL);
        check(&registers::BAUD_RATE, BaudRate::ALL);
        check(&registers::LOCK, EepromLock::ALL);
        // Whatever may be written has a variant.
        assert_eq!(registers::BAUD_RATE.bounds().1, BaudRate::K115.to_count());
        assert_eq!(registers::OPERATING_MODE.bounds().1, OperatingMode::Step.to_count());
    }

    #[test]
    fn quantities_that_do_not_fit_are_refused() {
        assert_eq!(Permille::from_count(&registers::PRESENT_LOAD, -300).unwrap(), Permille(-300));
        assert!(matches!(
            Celsius::from_count(&registers::PRESENT_TEMPERATURE, 256),
            Err(Error::RegisterMeaning { register: "Present_Temperature", value: 256 })
        ));
        assert!(ServoId::from_count(&registers::ID, 254).is_err());
        assert_eq!(Alarms::from_count(&registers::STATUS, 0x21).unwrap(), Alarms::VOLTAGE | Alarms::OVERLOAD);
    }
}
