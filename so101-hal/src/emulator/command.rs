//! Lines of text that make the emulated arm misbehave: the stdin of the example `emulated_bus`, and scripts of tests.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use core::fmt::Write as _;
use core::time::Duration;

use super::{EmulatedServos, Fault, FaultRule};
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId};
use crate::protocol::{Alarms, ServoId};
use crate::registers;

/// What [`EmulatedServos::command`] understands.
pub const COMMANDS: &str = "\
SERVO is 1 to 6 or a name such as elbow_flex, and stays the same servo when its id is changed
PROBABILITY is 0 to 1, for each reply; without SERVO a fault befalls all

  drop|trunc|badck|bitflip|junk|dup|swap PROBABILITY [SERVO]
                          replies lost, cut off, with a wrong checksum, one bit flipped, noise before them, twice,
                          after the next servo's
  late PROBABILITY MS [SERVO]     replies come so much later
  err PROBABILITY BITS [SERVO]    replies carry these alarm bits (1 voltage, 2 angle, 4 heat, 8 current, 32 overload)
  brown PROBABILITY [SERVO]       in the middle of its reply the servo's supply breaks down
  echo PROBABILITY        the adapter sends requests back
  clear                   no more faults

  hand SERVO TICKS        a hand puts the servo there and lets go
  hold SERVO TICKS        a hand puts the servo there and does not let go
  block|unblock SERVO     something holds it where it is, nothing does
  stops SERVO MIN MAX     hard stops, in ticks
  load SERVO PERMILLE     a load from outside
  volt SERVO|all DECIVOLTS        supply
  temp SERVO CELSIUS      temperature
  power on|off|cycle      the servos' supply
  brownout                the servos lose their registers, the supply stays low
  unplug, replug          the adapter
  detach|attach SERVO     takes it off the chain, puts it back
  id SERVO ID             another id; one that is there already makes a collision
  set SERVO REGISTER VALUE        any register by LeRobot's name, behind the servo's back
  get SERVO REGISTER
  dump [SERVO]            position, goal, torque, load, supply, temperature, alarms
  help";

impl EmulatedServos {
    /// Carries out one line of [`COMMANDS`] and returns what it answers, nothing for most.
    ///
    /// # Errors
    /// [`Error::EmulatorCommand`] with what is wrong with the line; nothing is changed then.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use so101_hal::bus::ServoBus;
    /// use so101_hal::{EmulatedServos, EmulatorOptions, ServoId, VirtualClock};
    /// # fn main() -> so101_hal::Result<()> {
    /// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
    /// servos.command("drop 1 3")?;
    /// assert!(servos.bus().ping(ServoId::new(3)?).is_err());
    /// servos.command("clear")?;
    /// assert_eq!(servos.command("get elbow_flex Present_Voltage")?, "74");
    /// # Ok(()) }
    /// ```
    pub fn command(&self, line: &str) -> Result<String> {
        let mut words = Words { line, words: line.split_whitespace() };
        let Some(verb) = words.words.next() else { return Ok(String::new()) };
        let answer = self.carry_out(verb, &mut words)?;
        Ok(answer)
    }

    fn carry_out(&self, verb: &str, words: &mut Words<'_>) -> Result<String> {
        match verb {
            "drop" => self.fault(Fault::Drop, words)?,
            "trunc" => self.fault(Fault::Truncate, words)?,
            "badck" => self.fault(Fault::BadChecksum, words)?,
            "bitflip" => self.fault(Fault::BitFlip, words)?,
            "junk" => self.fault(Fault::Junk, words)?,
            "dup" => self.fault(Fault::Duplicate, words)?,
            "brown" => self.fault(Fault::BrownOut, words)?,
            "swap" => self.fault(Fault::Swap, words)?,
            "echo" => self.fault(Fault::Echo, words)?,
            "late" => {
                let probability = words.probability()?;
                let ms = words.number("MS", 0.0, 60_000.0)?;
                self.rule(Fault::Late(Duration::from_micros((ms * 1000.0) as u64)), probability, words)?;
            }
            "err" => {
                let probability = words.probability()?;
                let bits = words.number("BITS", 0.0, 255.0)? as u8;
                self.rule(Fault::Alarm(Alarms::from_bits(bits)), probability, words)?;
            }
            "clear" => words.end(|| self.clear_faults())?,
            "hand" => {
                let (joint, ticks) = (words.joint()?, words.number("TICKS", -1e6, 1e6)?);
                words.end(|| self.set_ticks(joint, ticks))?;
            }
            "hold" => {
                let (joint, ticks) = (words.joint()?, words.number("TICKS", -1e6, 1e6)?);
                words.end(|| self.hold(joint, ticks))?;
            }
            "block" => words.servo(|joint| self.block(joint))?,
            "unblock" => words.servo(|joint| self.unblock(joint))?,
            "detach" => words.servo(|joint| self.detach(joint))?,
            "attach" => words.servo(|joint| self.attach(joint))?,
            "stops" => {
                let joint = words.joint()?;
                let (min, max) = (words.number("MIN", -1e6, 1e6)?, words.number("MAX", -1e6, 1e6)?);
                if min > max {
                    return words.wrong("MIN is above MAX");
                }
                words.end(|| self.set_stops(joint, min, max))?;
            }
            "load" => {
                let (joint, permille) = (words.joint()?, words.number("PERMILLE", -1000.0, 1000.0)?);
                words.end(|| self.set_load(joint, permille))?;
            }
            "volt" => self.volt(words)?,
            "temp" => {
                let (joint, celsius) = (words.joint()?, words.number("CELSIUS", 0.0, 255.0)? as u8);
                words.end(|| self.set_temperature(joint, celsius))?;
            }
            "power" => match words.next("on, off or cycle")? {
                "on" => words.end(|| self.power_on())?,
                "off" => words.end(|| self.power_off())?,
                "cycle" => words.end(|| self.power_cycle())?,
                other => return words.wrong(&format!("power {other} is not on, off or cycle")),
            },
            "brownout" => words.end(|| self.brown_out())?,
            "unplug" => words.end(|| self.unplug())?,
            "replug" => words.end(|| self.replug())?,
            "id" => {
                let (joint, id) = (words.joint()?, ServoId::new(words.number("ID", 0.0, 253.0)? as u8)?);
                words.end(|| self.set_id(joint, id))?;
            }
            "set" => {
                let (joint, register) = (words.joint()?, words.register()?);
                let value = words.number("VALUE", -65_535.0, 65_535.0)? as i32;
                words.end(|| ())?;
                self.set_register(joint, register, value)?;
            }
            "get" => {
                let (joint, register) = (words.joint()?, words.register()?);
                words.end(|| ())?;
                return Ok(self.register(joint, register)?.to_string());
            }
            "dump" => return self.dump(words),
            "help" => return Ok(COMMANDS.to_owned()),
            other => return words.wrong(&format!("{other} is no command, help lists them")),
        }
        Ok(String::new())
    }

    fn fault(&self, fault: Fault, words: &mut Words<'_>) -> Result<()> {
        let probability = words.probability()?;
        self.rule(fault, probability, words)
    }

    fn rule(&self, fault: Fault, probability: f64, words: &mut Words<'_>) -> Result<()> {
        let joint = words.optional_joint()?;
        let servo = joint.map(|j| ServoId::ARM[j.index()]);
        words.end(|| self.inject(FaultRule { fault, servo, probability }))
    }

    fn volt(&self, words: &mut Words<'_>) -> Result<()> {
        let all = words.line.split_whitespace().nth(1) == Some("all");
        let joints = if all {
            words.words.next();
            JOINTS.to_vec()
        } else {
            alloc::vec![words.joint()?]
        };
        let decivolts = words.number("DECIVOLTS", 0.0, 255.0)? as u8;
        words.end(|| joints.iter().for_each(|joint| self.set_voltage(*joint, decivolts)))
    }

    fn dump(&self, words: &mut Words<'_>) -> Result<String> {
        let only = words.optional_joint()?;
        words.end(|| ())?;
        let mut text = String::new();
        for joint in JOINTS.into_iter().filter(|j| only.is_none_or(|only| only == *j)) {
            let value = |register| self.register(joint, register);
            let _ = write!(
                text,
                "{}{joint}: id {} position {} goal {} torque {} load {} voltage {} temperature {} alarms {}",
                if text.is_empty() { "" } else { "\n" },
                value(&registers::ID)?,
                value(&registers::PRESENT_POSITION)?,
                value(&registers::GOAL_POSITION)?,
                value(&registers::TORQUE_ENABLE)?,
                value(&registers::PRESENT_LOAD)?,
                value(&registers::PRESENT_VOLTAGE)?,
                value(&registers::PRESENT_TEMPERATURE)?,
                value(&registers::STATUS)?,
            );
        }
        Ok(text)
    }
}

/// The words of a line that are still to be read.
struct Words<'a> {
    line: &'a str,
    words: core::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn wrong<T>(&self, problem: &str) -> Result<T> {
        Err(Error::EmulatorCommand { line: self.line.to_owned(), problem: problem.to_owned() })
    }

    fn next(&mut self, what: &str) -> Result<&'a str> {
        match self.words.next() {
            Some(word) => Ok(word),
            None => self.wrong(&format!("{what} is missing")),
        }
    }

    fn number(&mut self, what: &str, min: f64, max: f64) -> Result<f64> {
        let word = self.next(what)?;
        let parsed = match word.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).map(f64::from).ok(),
            None => word.parse::<f64>().ok(),
        };
        match parsed.filter(|v| (min..=max).contains(v)) {
            Some(value) => Ok(value),
            None => self.wrong(&format!("{what} is {word}, not a number from {min} to {max}")),
        }
    }

    fn probability(&mut self) -> Result<f64> {
        self.number("PROBABILITY", 0.0, 1.0)
    }

    fn joint(&mut self) -> Result<JointId> {
        let word = self.next("SERVO")?;
        let found = JOINTS.into_iter().find(|j| j.name() == word || j.servo_id().to_string() == word);
        match found {
            Some(joint) => Ok(joint),
            None => self.wrong(&format!("SERVO is {word}, not 1 to 6 or the name of a joint")),
        }
    }

    fn optional_joint(&mut self) -> Result<Option<JointId>> {
        if self.words.clone().next().is_none() { Ok(None) } else { self.joint().map(Some) }
    }

    fn register(&mut self) -> Result<&'static registers::Register> {
        let word = self.next("REGISTER")?;
        match registers::by_name(word) {
            Some(register) => Ok(register),
            None => self
                .wrong(&format!("{word} is no register; LeRobot's names are meant, such as Goal_Position")),
        }
    }

    fn servo(&mut self, act: impl FnOnce(JointId)) -> Result<()> {
        let joint = self.joint()?;
        self.end(|| act(joint))
    }

    /// Acts when nothing follows.
    fn end(&mut self, act: impl FnOnce()) -> Result<()> {
        match self.words.next() {
            None => {
                act();
                Ok(())
            }
            Some(word) => self.wrong(&format!("{word} is one word too many")),
        }
    }
}

#[cfg(test)]
mod tests;
