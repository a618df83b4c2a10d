//! The example `preflight`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use so101_dataset::DatasetSpec;
use so101_hal::arm::Torque;
use so101_hal::discovery::Discovery;
use so101_hal::preflight::port::PortFacts;
use so101_hal::preflight::power::Supply;
use so101_hal::preflight::{self, Check, Expected, HoldTest, PoseOptions, ServoOptions, StrayScan, Survey};
use so101_hal::{CameraSpec, Degrees, EmulatedServos, JOINTS, JointId, JointVector, Lux, registers};

use super::recorder::Trial;
use super::rig::{self, ArmUnderTest};
use super::{Preflight, encoder_build, free_disk, recorder, write_speed};
use crate::cli::{self, Verbosity};
use crate::error::{Error, Exit, Result};
use crate::hardware::{ArmArgs, OpenBus, Pace, Role, Where};

/// Bytes a second that a session of two cameras writes at most: 640x480, H.264, and its tables.
const SESSION_BYTES_PER_S: f64 = 1.5e6;
/// An episode that is thought of where nothing is known of the session: one minute.
const EPISODE_S: f64 = 60.0;

/// The state that motors should be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TorqueChoice {
    /// Limp: before calibration, or of a leader
    Off,
    /// Holding: before a recording
    On,
}

/// The supply of the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SupplyChoice {
    /// 5 V to 7.4 V
    #[value(name = "7.4")]
    Low,
    /// 12 V
    #[value(name = "12")]
    High,
}

/// Which ids beside the arm's own are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum StrayChoice {
    /// None
    Off,
    /// 0 to 20
    #[default]
    Near,
    /// All 253: ten seconds
    Full,
}

/// P, I and D of the position loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gains(pub [i32; 3]);

/// Command line of the program.
#[derive(Clone, Debug, Args)]
pub struct PreflightArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub arm: ArmArgs,

    /// Which arm of a pair it is: a leader has other gains and no gripper limits
    #[arg(long, value_enum, default_value_t)]
    pub role: Role,

    /// Serial port of a leader whose pose is compared
    #[arg(long, value_name = "PATH")]
    pub leader_port: Option<String>,

    /// Name of that leader, as --id
    #[arg(long, value_name = "ID")]
    pub leader_id: Option<String>,

    /// Calibration of that leader, as --calibration
    #[arg(long, value_name = "FILE")]
    pub leader_calibration: Option<PathBuf>,

    /// Cameras to look at: a TOML file with tables `cameras`, LeRobot's text in braces, or `synthetic` [default: synthetic with --rig emulated]
    #[arg(long, value_name = "CAMERAS")]
    pub cameras: Option<String>,

    /// Folder of reference pictures, NAME.pgm for each camera: framing and focus are compared with them
    #[arg(long, value_name = "FOLDER")]
    pub references: Option<PathBuf>,

    /// Store the pictures of cameras that have no reference in that folder yet
    #[arg(long, requires = "references")]
    pub store_references: bool,

    /// Reading of the light meter at the table
    #[arg(long, value_name = "LUX")]
    pub lux: Option<f64>,

    /// Pose that episodes start in: five degrees and the gripper's percent
    #[arg(long, value_name = "A,B,C,D,E,G", value_parser = parse_pose, allow_hyphen_values = true)]
    pub start_pose: Option<JointVector<Degrees>>,

    /// P, I and D of the position loop in the episodes before [default: 16,0,32; 32,0,32 of a leader]
    #[arg(long, value_name = "P,I,D", value_parser = parse_gains)]
    pub pid: Option<Gains>,

    /// State that the motors should be in [default: the same in all]
    #[arg(long, value_enum)]
    pub torque: Option<TorqueChoice>,

    /// The supply that is plugged in [default: judged by the servos' limits]
    #[arg(long, value_enum, value_name = "VOLT")]
    pub supply: Option<SupplyChoice>,

    /// Let the arm hold itself for 0.3 s and watch the supply: it becomes stiff where it stands
    #[arg(long)]
    pub hold_test: bool,

    /// Ids beside the six that are asked
    #[arg(long, value_enum, default_value_t)]
    pub stray_ids: StrayChoice,

    /// Serial number that the adapter should have
    #[arg(long, value_name = "TEXT")]
    pub adapter_serial: Option<String>,

    /// Telemetry reads of the soak, at 100 Hz
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub soak: u32,

    /// Frames a second of cameras and dataset
    #[arg(long, value_name = "HZ", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=120))]
    pub fps: u32,

    /// Episodes of a minute that the disk shall have room for
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub episodes: u32,

    /// Folder that will be recorded to: disk and encoder are tried there, a dataset in it is compared
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,

    /// Let the emulated servos misbehave, such as `drop 0.3 4`; may be given again (--rig emulated; `--fault help` lists the commands)
    #[arg(long, value_name = "COMMAND")]
    pub fault: Vec<String>,

    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "as above")]
    pub verbosity: Verbosity,
}

/// Runs the program: [`Exit::Refused`] when a check failed.
///
/// # Errors
/// Usage errors, and a bus that is gone.
pub fn run(args: &PreflightArgs) -> Result<Exit> {
    if asks_for_help(&args.fault)? {
        return Ok(Exit::Ok);
    }
    let found = look(args)?;
    let text = if args.json { found.full_json().to_string() } else { found.table() };
    cli::print_result(text.trim_end())?;
    Ok(if found.report().verdict() == preflight::Verdict::Fail { Exit::Refused } else { Exit::Ok })
}

/// All checks that the command line asks for.
///
/// # Errors
/// As [`run`].
pub fn look(args: &PreflightArgs) -> Result<Preflight> {
    let place = args.arm.place()?;
    check_faults(&place, &args.fault)?;
    let (calibration, file) = args.arm.calibration(args.role)?;
    let mut all = Preflight::default();
    if let Where::Port(path) = &place {
        let mut facts = PortFacts::look(&Discovery::system(), path);
        facts.expected_serial.clone_from(&args.adapter_serial);
        let checks = preflight::port(&facts);
        let closed = checks.iter().any(|c| c.verdict == preflight::Verdict::Fail);
        all.extend(checks);
        if closed {
            // Nothing behind a port that cannot be opened can be looked at; the computer can.
            all.extend(rig::computer(&so101_hal::SystemClock::new()));
            return Ok(all);
        }
    }
    let OpenBus { mut bus, servos, clock, .. } = args.arm.open(args.role, Pace::Virtual)?;
    if let Some(servos) = &servos {
        if args.role == Role::Follower {
            follower_registers(servos)?;
        }
        spoil(servos, &args.fault)?;
    }
    let mut arm = ArmUnderTest::new(bus.as_mut(), clock.as_ref(), &calibration);
    arm.files = file.as_deref().and_then(rig::calibration_files);
    arm.servos = servo_options(args);
    if let Some(pose) = args.start_pose {
        arm.pose = PoseOptions::default().with_reference(pose);
    }
    arm.soak.cycles = args.soak;
    arm.leader = leader(args)?;
    let (checks, _survey): (Vec<Check>, Survey) = rig::arm(arm)?;
    all.extend(checks);
    let specs = super::eyes::look(args, servos.as_ref().map(|_| &clock), &mut all)?;
    all.extend([super::light(args.lux.map(Lux))]);
    all.extend(recording(args, &specs)?);
    all.extend(rig::computer(&so101_hal::SystemClock::new()));
    Ok(all)
}

fn servo_options(args: &PreflightArgs) -> ServoOptions {
    let mut expected = match args.role {
        Role::Follower => Expected::default(),
        Role::Leader => Expected::leader(),
    };
    if let Some(Gains([p, i, d])) = args.pid {
        expected = expected.with_pid(p, i, d);
    }
    let mut options = ServoOptions::default();
    options.expected = Some(expected);
    options.torque = args.torque.map(|t| match t {
        TorqueChoice::Off => Torque::Off,
        TorqueChoice::On => Torque::On,
    });
    options.supply = args.supply.map(|s| match s {
        SupplyChoice::Low => Supply::Low,
        SupplyChoice::High => Supply::High,
    });
    options.stray = match args.stray_ids {
        StrayChoice::Off => StrayScan::Off,
        StrayChoice::Near => StrayScan::Near,
        StrayChoice::Full => StrayScan::Full,
    };
    options.hold = if args.hold_test { HoldTest::Energise } else { HoldTest::Skip };
    options
}

/// As many numbers as the array takes, parted by commas.
fn numbers<T: std::str::FromStr + Copy, const N: usize>(text: &str) -> Result<[T; N], String> {
    let parsed: Result<Vec<T>, _> = text.split(',').map(|n| n.trim().parse::<T>()).collect();
    let wrong = || format!("expected {N} numbers parted by commas");
    parsed.map_err(|_| wrong())?.try_into().map_err(|_| wrong())
}

fn parse_pose(text: &str) -> Result<JointVector<Degrees>, String> {
    let pose = JointVector::<Degrees>::from_row(numbers::<f64, 6>(text)?);
    if pose.is_finite() { Ok(pose) } else { Err("not all numbers are finite".to_owned()) }
}

fn parse_gains(text: &str) -> Result<Gains, String> {
    numbers::<i32, 3>(text).map(Gains)
}

/// Where the leader stands.
fn leader(args: &PreflightArgs) -> Result<Option<JointVector<Degrees>>> {
    let Some(port) = &args.leader_port else { return Ok(None) };
    let arm = ArmArgs {
        port: Some(port.clone()),
        id: args.leader_id.clone(),
        calibration: args.leader_calibration.clone(),
        ..ArmArgs::default()
    };
    let (calibration, _) = arm.calibration(Role::Leader)?;
    let mut open = arm.open(Role::Leader, Pace::RealTime)?;
    let survey = Survey::read(open.bus.as_mut(), &calibration)?;
    Ok(preflight::arm::joints(&survey, &calibration)?)
}

/// Encoder, disk and dataset, where the place is known.
fn recording(args: &PreflightArgs, cameras: &[CameraSpec]) -> Result<Vec<Check>> {
    let mut checks = vec![encoder_build()];
    let Some(out) = &args.out else { return Ok(checks) };
    let scratch = crate::record::out::scratch(out)?;
    for spec in cameras {
        checks.push(recorder::encoder_trial(scratch.path(), spec, args.fps, Trial::Second)?);
    }
    let episode = SESSION_BYTES_PER_S * EPISODE_S;
    let session = episode * f64::from(args.episodes);
    checks.push(free_disk(scratch.path(), episode as u64, session as u64)?);
    checks.push(write_speed(scratch.path(), SESSION_BYTES_PER_S)?);
    let spec = DatasetSpec::so101(args.fps, cameras.to_vec());
    let existing = out.join("meta").join("info.json").exists().then_some(out.as_path());
    checks.push(recorder::dataset_features(existing, &spec)?);
    Ok(checks)
}

/// Emulated servos as an arm has them that was configured as a follower, after a power cycle.
///
/// # Errors
/// Never for these values.
pub fn follower_registers(servos: &EmulatedServos) -> Result<()> {
    let expected = Expected::default();
    let [p, i, d] = expected.pid;
    for joint in JOINTS {
        for (register, value) in [
            (&registers::RETURN_DELAY_TIME, expected.return_delay),
            (&registers::P_COEFFICIENT, p),
            (&registers::I_COEFFICIENT, i),
            (&registers::D_COEFFICIENT, d),
        ] {
            servos.set_register(joint, register, value)?;
        }
    }
    if let Some([torque, current, overload]) = expected.gripper {
        for (register, value) in [
            (&registers::MAX_TORQUE_LIMIT, torque),
            (&registers::TORQUE_LIMIT, torque),
            (&registers::PROTECTION_CURRENT, current),
            (&registers::OVERLOAD_TORQUE, overload),
        ] {
            servos.set_register(JointId::Gripper, register, value)?;
        }
    }
    Ok(())
}

/// Prints the emulator's commands where the only fault is `help`.
///
/// # Errors
/// When stdout is lost.
pub fn asks_for_help(faults: &[String]) -> Result<bool> {
    let asked = faults == ["help"];
    if asked {
        cli::print_result(so101_hal::emulator::COMMANDS)?;
    }
    Ok(asked)
}

/// Faults are for emulated servos.
///
/// # Errors
/// [`Error::Usage`] for faults of real ones.
pub fn check_faults(place: &Where, faults: &[String]) -> Result<()> {
    if *place == Where::Emulated || faults.is_empty() {
        return Ok(());
    }
    Err(Error::Usage("--fault is for --rig emulated: a real servo has faults of its own".to_owned()))
}

/// Gives the emulator its commands.
///
/// # Errors
/// [`Error::Usage`] for one that it does not know.
pub fn spoil(servos: &EmulatedServos, faults: &[String]) -> Result<()> {
    for line in faults {
        servos
            .command(line)
            .map_err(|e| Error::Usage(format!("--fault '{line}': {}", Error::from(e).one_line())))?;
    }
    Ok(())
}
