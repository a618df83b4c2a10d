//! The example `setup_motors`: one motor after another gets its id and the bus its baud rate.
//!
//! New servos all have id 1. LeRobot's way is kept: the gripper first, one motor on the board at a time. Every id is
//! asked at every rate before anything is written, so that a second servo on the wire is noticed and not renamed.

mod bench;
#[cfg(test)]
mod tests;

use clap::Args;
use so101_hal::bus::{FoundServo, ServoBus, scan};
use so101_hal::calibration::ensure_register;
use so101_hal::registers::{self, BaudRate, STS3215};
use so101_hal::{JOINTS, JointId, ServoId};

use crate::cli::{self, Verbosity, say};
use crate::error::{Error, Exit, Result};
use crate::hardware::{ArmArgs, HardwareRig, Role, Where};
use crate::interrupt;

use bench::{Bench, EmulatedBench, PortBench};

/// All rates, the factory's first.
const RATES: [BaudRate; 5] = [BaudRate::M1, BaudRate::K500, BaudRate::K250, BaudRate::K128, BaudRate::K115];

/// Command line of the program.
#[derive(Clone, Debug, Default, Args)]
pub struct SetupArgs {
    /// Emulated servos, or the board on a port [default: real where a port is given or found]
    #[arg(long, value_enum)]
    pub rig: Option<HardwareRig>,

    /// Serial port of the board, such as /dev/ttyACM0 [default: the only servo bus adapter that is plugged in]
    #[arg(long, value_name = "PATH")]
    pub port: Option<String>,

    /// Which of the two arms; both have the same ids
    #[arg(long, value_enum, default_value_t)]
    pub role: Role,

    /// Only this motor; may be given again [default: all six, the gripper first]
    #[arg(long, value_name = "JOINT", value_parser = joint)]
    pub motor: Vec<JointId>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

fn joint(name: &str) -> Result<JointId, String> {
    let names = || JOINTS.map(JointId::name).join(", ");
    JOINTS.into_iter().find(|j| j.name() == name).ok_or_else(|| format!("not one of {}", names()))
}

/// What was done to one motor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    joint: JointId,
    was: Found,
    written: u32,
}

/// The one servo on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    id: ServoId,
    rate: BaudRate,
}

/// Sets the motors up.
///
/// # Errors
/// Usage, a servo of another model, one that does not keep what is written, and errors of the bus.
pub fn run(args: &SetupArgs) -> Result<Exit> {
    let arm = ArmArgs { rig: args.rig, port: args.port.clone(), ..ArmArgs::default() };
    let place = arm.place()?;
    interrupt::install().map_err(|e| Error::Refused(format!("no handler for Ctrl-C: {e}")))?;
    let mut bench: Box<dyn Bench> = match place {
        Where::Emulated => Box::new(EmulatedBench::new()),
        Where::Port(path) => Box::new(PortBench::new(path)?),
    };
    let mut joints: Vec<JointId> = if args.motor.is_empty() { JOINTS.to_vec() } else { args.motor.clone() };
    joints.sort();
    joints.dedup();
    // LeRobot's order: the end of the chain first, so that each motor stays where it will be.
    joints.reverse();
    walk(bench.as_mut(), &joints, args)
}

fn walk(bench: &mut dyn Bench, joints: &[JointId], args: &SetupArgs) -> Result<Exit> {
    for joint in joints {
        let Some(found) = only_servo(bench, *joint)? else { return Ok(Exit::Interrupted) };
        let done = set_up(bench, *joint, found)?;
        cli::print_result(&line(&done))?;
    }
    if joints.len() < JOINTS.len() {
        return Ok(Exit::Ok);
    }
    say(&format!("connect all six motors of the {} in a chain, then press ENTER", args.role.name()));
    if !bench.all_connected()? {
        return Ok(Exit::Interrupted);
    }
    let found = at_rate(bench, BaudRate::M1, 0..=20)?;
    let missing: Vec<&str> = JOINTS
        .iter()
        .filter(|j| !found.iter().any(|f| f.id.get() == j.servo_id() && f.answer.is_ok()))
        .map(|j| j.name())
        .collect();
    if missing.is_empty() && found.len() == JOINTS.len() {
        cli::print_result("all six motors answer: calibrate the arm next")?;
        return Ok(Exit::Ok);
    }
    let ids: Vec<String> = found.iter().map(|f| f.id.get().to_string()).collect();
    cli::print_result(&format!(
        "not complete: answers from id {}, missing {}; the diagnose example says why",
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") },
        if missing.is_empty() { "none".to_owned() } else { missing.join(", ") },
    ))?;
    Ok(Exit::Failed)
}

/// Asks for one motor until there is exactly one; `None` = interrupted.
fn only_servo(bench: &mut dyn Bench, joint: JointId) -> Result<Option<Found>> {
    loop {
        say(&format!("connect the board to the '{joint}' motor only, with power, then press ENTER"));
        if !bench.connected(joint)? {
            return Ok(None);
        }
        match look(bench)? {
            Look::One(found) => return Ok(Some(found)),
            Look::None => say(
                "no servo answers at any baud rate: check the power of the board (its LED), the three-wire cable, and \
                 the jumpers of the board (USB, not UART)",
            ),
            Look::Several(what) => {
                say(&format!("more than one servo answers: {what}; connect one motor only"));
            }
        }
        if !bench.may_try_again() {
            return Err(Error::Refused(format!("there is not exactly one servo where {joint} should be")));
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Look {
    None,
    One(Found),
    Several(String),
}

/// Every id at every rate.
fn look(bench: &mut dyn Bench) -> Result<Look> {
    let mut all: Vec<(BaudRate, FoundServo)> = Vec::new();
    for rate in RATES {
        all.extend(at_rate(bench, rate, 0..=253)?.into_iter().map(|f| (rate, f)));
    }
    Ok(match all.as_slice() {
        [] => Look::None,
        [(rate, FoundServo { id, answer: Ok(_), .. })] => Look::One(Found { id: *id, rate: *rate }),
        several => Look::Several(
            several
                .iter()
                .map(|(rate, f)| {
                    let how = if f.answer.is_err() { ", garbled as by two with the same id" } else { "" };
                    format!("id {} at {} baud{how}", f.id.get(), rate.bits_per_second())
                })
                .collect::<Vec<_>>()
                .join("; "),
        ),
    })
}

fn at_rate(
    bench: &mut dyn Bench,
    rate: BaudRate,
    ids: std::ops::RangeInclusive<u8>,
) -> Result<Vec<FoundServo>> {
    let mut bus = bench.bus(rate)?;
    Ok(scan(bus.as_mut(), ids.filter_map(|id| ServoId::new(id).ok()))?)
}

/// Gives the one servo its id and the rate of the bus. What is right already is not written.
fn set_up(bench: &mut dyn Bench, joint: JointId, was: Found) -> Result<Done> {
    let target = ServoId::new(joint.servo_id())?;
    let mut written = 0;
    let mut bus = bench.bus(was.rate)?;
    let model = bus.read_register(was.id, &registers::MODEL_NUMBER)?.value as u16;
    if model != STS3215 {
        return Err(so101_hal::Error::ServoModel { joint, id: was.id.get(), model, expected: STS3215 }.into());
    }
    if was.id == target && was.rate == BaudRate::M1 {
        return Ok(Done { joint, was, written });
    }
    ensure_register(bus.as_mut(), was.id, &registers::TORQUE_ENABLE, 0)?;
    ensure_register(bus.as_mut(), was.id, &registers::LOCK, 0)?;
    if was.id != target {
        // The reply comes from the old id or from the new one: what counts is who answers from now on.
        unanswered(bus.write_register(was.id, &registers::ID, target.get().into()))?;
        written += 1;
        expect(bus.as_mut(), target, &registers::ID, target.get().into())?;
    }
    if was.rate != BaudRate::M1 {
        unanswered(bus.write_register(target, &registers::BAUD_RATE, 0))?;
        written += 1;
        drop(bus);
        bus = bench.bus(BaudRate::M1)?;
        expect(bus.as_mut(), target, &registers::BAUD_RATE, 0)?;
    }
    ensure_register(bus.as_mut(), target, &registers::LOCK, 1)?;
    Ok(Done { joint, was, written })
}

/// A write after which the servo may answer in a way that this bus does not hear.
fn unanswered<T>(result: so101_hal::Result<T>) -> Result<()> {
    match result {
        Ok(_) | Err(so101_hal::Error::NoReply { .. }) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Reads back what was written where a reply says nothing.
fn expect(bus: &mut dyn ServoBus, id: ServoId, register: &registers::Register, value: i32) -> Result<()> {
    let held = bus.read_register(id, register)?.value;
    if held == value {
        return Ok(());
    }
    Err(so101_hal::Error::RegisterNotTaken { id: id.get(), register: register.name, value, held }.into())
}

fn line(done: &Done) -> String {
    let Done { joint, was, written } = *done;
    let rate = was.rate.bits_per_second();
    if written == 0 {
        return format!("{joint}: has id {} at {rate} baud already, nothing written", was.id.get());
    }
    let baud = if was.rate == BaudRate::M1 { format!("{rate}") } else { format!("{rate} -> 1000000") };
    format!("{joint}: id {} -> {}, {baud} baud, read back", was.id.get(), joint.servo_id())
}
