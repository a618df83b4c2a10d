//! The example `calibrate`: sweep, reference pose, homing offsets and ranges into the servos and into LeRobot's file.

mod hands;
mod table;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use so101_hal::arm::OffsetMismatch;
use so101_hal::bus::{Bus, ServoBus};
use so101_hal::calibration::{
    Calibrated, CalibrationPlan, CalibrationStyle, Calibrator, CalibratorOptions, Folders, HomingOrder,
    ReferencePose, Saved, SweepFaultKind, recognise,
};
use so101_hal::protocol::{ServoId, SyncRow};
use so101_hal::serial::SerialPort;
use so101_hal::{Arm, ArmOptions, Calibration, Clock, JOINTS, Radians, SystemClock, registers};

use crate::cli::{self, Verbosity, say};
use crate::error::{Error, Exit, Result};
use crate::hardware::{ArmArgs, Role, Where};
use crate::interrupt;

use hands::{EmulatedHands, Hand, Hands, Person, Step};
use table::LiveTable;

/// From one sample of the sweep to the next: as often as LeRobot looks.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// The reference pose of the wrist_roll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Reference {
    /// The hand level: only the roll's zero is set
    #[default]
    Hand,
    /// The whole arm in the model's zero pose: sets the roll's zero, and measures where the other middles are
    Arm,
    /// None: the roll's zero is where it happens to be
    None,
}

/// Command line of the program.
#[derive(Clone, Debug, Default, Args)]
pub struct CalibrateArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub arm: ArmArgs,

    /// Which of the two arms: each has a folder of its own
    #[arg(long, value_enum, default_value_t)]
    pub role: Role,

    /// The pose that the roll's zero is taken in
    #[arg(long, value_enum, default_value_t)]
    pub reference: Reference,

    /// LeRobot's order: a middle pose first, then the sweep, with LeRobot's numbers
    #[arg(long, conflicts_with = "reference")]
    pub lerobot_order: bool,

    /// Write the calibration file that is there into the servos, and do not calibrate
    #[arg(long, conflicts_with_all = ["reference", "lerobot_order"])]
    pub write_file: bool,

    /// With --write-file: print the calibration too, as it would be saved
    #[arg(long, requires = "write_file")]
    pub dump: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// Calibrates the arm that the command line means.
///
/// # Errors
/// Usage, errors of the bus and of files. The servos hold what they held before then, but where only the file could
/// not be written: the calibration is printed then.
pub fn run(args: &CalibrateArgs) -> Result<Exit> {
    let place = args.arm.place()?;
    let target = target(args, &place)?;
    interrupt::install().map_err(|e| Error::Refused(format!("no handler for Ctrl-C: {e}")))?;
    if args.write_file {
        return write_file(args, &place);
    }
    if let Some(old) = target.as_ref().filter(|p| p.exists()) {
        describe_old(old);
    }
    match place {
        Where::Emulated => {
            let (servos, clock) = EmulatedHands::servos(args.verbosity.bars());
            let mut hands = EmulatedHands::new(servos.clone());
            session(args, &mut servos.bus(), clock.as_ref(), &mut hands, target)
        }
        Where::Port(port) => {
            let mut bus = Bus::new(SerialPort::open(&port)?);
            session(args, &mut bus, &SystemClock::new(), &mut Person::new()?, target)
        }
    }
}

/// Where the file goes; `None` = nowhere, for an emulated arm without a name.
fn target(args: &CalibrateArgs, place: &Where) -> Result<Option<PathBuf>> {
    let named = |dir: &std::path::Path, id: &str| dir.join(format!("{id}.json"));
    match (&args.arm.calibration, &args.arm.id) {
        (Some(dir), Some(id)) if dir.is_dir() => Ok(Some(named(dir, id))),
        (Some(dir), None) if dir.is_dir() => {
            Err(Error::Usage(format!("--calibration is a folder: name the arm with --id: {}", dir.display())))
        }
        (Some(file), _) => Ok(Some(file.clone())),
        (None, Some(id)) => Ok(Some(Folders::from_env()?.path(id, args.role.into())?)),
        (None, None) if *place == Where::Emulated => Ok(None),
        (None, None) => Err(Error::Usage(format!(
            "name the {} with --id NAME: its calibration is kept under that name",
            args.role.name()
        ))),
    }
}

/// What the file that will be replaced was.
fn describe_old(path: &std::path::Path) {
    match Calibration::load(path) {
        Ok(old) => {
            let (style, notes) = recognise(&old);
            let made = match style {
                CalibrationStyle::SweepFirst => "made sweep first",
                CalibrationStyle::MidPoseFirst => "made middle pose first, as LeRobot does",
                CalibrationStyle::OldZero => "with the zero of the old calibration (arm stretched out)",
                CalibrationStyle::Factory => "of servos that were never calibrated",
                _ => "of an unknown kind",
            };
            say(&format!(
                "there is a calibration already, {made}; it will be kept as a backup: {}",
                path.display()
            ));
            for note in notes {
                say(&format!("  {note}"));
            }
        }
        Err(e) => say(&format!(
            "there is a calibration already that will be kept as a backup: {}",
            Error::from(e).one_line()
        )),
    }
}

/// LeRobot's ENTER at its question: the servos get what the file says.
fn write_file(args: &CalibrateArgs, place: &Where) -> Result<Exit> {
    let (calibration, file) = args.arm.calibration(args.role)?;
    let (bus, clock): (Box<dyn ServoBus>, Arc<dyn Clock>) = match place {
        Where::Emulated => {
            let (servos, clock) = EmulatedHands::servos(false);
            (Box::new(servos.bus()), clock)
        }
        Where::Port(port) => (Box::new(Bus::new(SerialPort::open(port)?)), Arc::new(SystemClock::new())),
    };
    let options = ArmOptions::new(clock).with_offset_mismatch(OffsetMismatch::Accept);
    let found = Arm::connect(bus, calibration, options)?;
    let so101_hal::FoundArm::Relaxed(mut arm) = found else {
        return Err(Error::Refused(
            "the arm's torque is on: hold it, cut its power for a moment, then try again".to_owned(),
        ));
    };
    let written = arm.store_calibration()?.written.len();
    let file = file.map_or_else(|| "the model's".to_owned(), |f| f.display().to_string());
    cli::print_result(&format!("{written} registers written, the servos hold {file}"))?;
    if args.dump {
        cli::print_result(&calibration.to_json())?;
    }
    Ok(Exit::Ok)
}

/// The procedure with whoever moves the arm.
fn session<B: ServoBus>(
    args: &CalibrateArgs,
    bus: &mut B,
    clock: &dyn Clock,
    hands: &mut dyn Hands,
    target: Option<PathBuf>,
) -> Result<Exit> {
    let order = if args.lerobot_order { HomingOrder::MidPoseFirst } else { HomingOrder::SweepFirst };
    if !relaxed(bus, clock, hands)? {
        return Ok(Exit::Interrupted);
    }
    let mut calibrator = Calibrator::begin(bus, CalibratorOptions::default().with_order(order))?;
    let Some(plan) = measured(args, &mut calibrator, clock, hands)? else {
        calibrator.abort()?;
        say("interrupted: the servos hold what they held before");
        return Ok(Exit::Interrupted);
    };
    let done = calibrator.finish(&plan)?;
    let saved = match target {
        Some(path) => match done.calibration.save(&path) {
            Ok(saved) => Some(saved),
            Err(e) => {
                // The servos have it already: without its text the sweep would be lost.
                say("the servos hold the new calibration, but its file was not written; this is its text:");
                cli::print_result(&done.calibration.to_json())?;
                return Err(e.into());
            }
        },
        None => None,
    };
    cli::print_result(&report(&done, saved.as_ref()))?;
    Ok(Exit::Ok)
}

/// Sees to it that the arm is limp; `false` = interrupted.
fn relaxed(bus: &mut impl ServoBus, clock: &dyn Clock, hands: &mut dyn Hands) -> Result<bool> {
    let mut on = Vec::new();
    for id in ServoId::ARM {
        match bus.read_register(id, &registers::TORQUE_ENABLE) {
            Ok(reading) if reading.value != 0 => on.push(id),
            // Who does not answer is named by the procedure.
            Ok(_) | Err(so101_hal::Error::NoReply { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    if on.is_empty() {
        return Ok(true);
    }
    hands.begin(Step::Relax);
    loop {
        match hands.poll()? {
            Hand::Busy => clock.sleep_until(clock.now() + SAMPLE_EVERY),
            Hand::Done => break,
            Hand::Interrupted => return Ok(false),
        }
    }
    let rows: Vec<SyncRow<'_>> = on.iter().map(|id| SyncRow { id: *id, data: &[0] }).collect();
    bus.sync_write(registers::TORQUE_ENABLE.address, &rows)?;
    Ok(true)
}

/// Poses and sweeps until they make a calibration; `None` = interrupted.
fn measured<B: ServoBus>(
    args: &CalibrateArgs,
    calibrator: &mut Calibrator<B>,
    clock: &dyn Clock,
    hands: &mut dyn Hands,
) -> Result<Option<CalibrationPlan>> {
    let mut wants_mid_pose = args.lerobot_order;
    loop {
        if wants_mid_pose {
            if !done(Step::MidPose, args, calibrator, clock, hands)? {
                return Ok(None);
            }
            calibrator.take_mid_pose()?;
            wants_mid_pose = false;
        }
        if !done(Step::Sweep, args, calibrator, clock, hands)? {
            return Ok(None);
        }
        let pose = match args.reference {
            _ if args.lerobot_order => None,
            Reference::Hand => Some((Step::HandReference, ReferencePose::Roll)),
            Reference::Arm => Some((Step::ArmReference, ReferencePose::Arm([Radians(0.0); 5]))),
            Reference::None => None,
        };
        if let Some((step, pose)) = pose {
            if !done(step, args, calibrator, clock, hands)? {
                return Ok(None);
            }
            calibrator.take_reference(pose)?;
        }
        match calibrator.plan() {
            Ok(plan) => return Ok(Some(plan)),
            Err(so101_hal::Error::Sweep { faults }) => {
                for fault in &faults {
                    say(&format!("again: {fault}"));
                    // Ends that were seen stay seen: what a longer sweep does not mend has to begin again.
                    let too_long = matches!(fault.kind, SweepFaultKind::FullTurn { .. });
                    let jumped = calibrator.sweeps().get(fault.joint.index()).is_some_and(|s| s.jumps() > 0);
                    if too_long || jumped {
                        calibrator.restart(fault.joint);
                    }
                    wants_mid_pose |= matches!(fault.kind, SweepFaultKind::WrapInside { .. });
                }
                if !hands.may_try_again() {
                    return Err(so101_hal::Error::Sweep { faults }.into());
                }
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// Samples until a step is done, whatever it is: an arm that moves unseen loses count of its turns. `false` =
/// interrupted.
fn done<B: ServoBus>(
    step: Step,
    args: &CalibrateArgs,
    calibrator: &mut Calibrator<B>,
    clock: &dyn Clock,
    hands: &mut dyn Hands,
) -> Result<bool> {
    hands.begin(step);
    let mut table = (step == Step::Sweep).then(|| LiveTable::new(args.verbosity));
    let mut deadline = clock.now();
    let done = loop {
        let sweeps = calibrator.sample()?;
        if let Some(table) = &mut table {
            table.show(sweeps);
        }
        match hands.poll()? {
            Hand::Busy => {}
            Hand::Done => break true,
            Hand::Interrupted => break false,
        }
        deadline = (deadline + SAMPLE_EVERY).max(clock.now());
        clock.sleep_until(deadline);
    };
    if let Some(table) = &mut table {
        table.last(calibrator.sweeps());
    }
    Ok(done)
}

/// What stands on stdout at the end.
fn report(done: &Calibrated, saved: Option<&Saved>) -> String {
    let mut out = done.plan.table();
    out.push_str(&format!(
        "written: {} registers of {} servos, read back and locked\n",
        done.written,
        JOINTS.len()
    ));
    match saved {
        Some(saved) => {
            if let Some(backup) = &saved.backup {
                out.push_str(&format!("backup: {}\n", backup.display()));
            }
            out.push_str(&format!("calibration: {}", saved.path.display()));
        }
        None => out.push_str("calibration: not saved, the arm has no name (--id NAME)"),
    }
    out
}
