//! The example `teleoperate`: a leader arm, a keyboard or a script drives the follower.

pub mod operators;
pub mod session;
mod table;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use so101_hal::calibration::{Folders, PairOffset, read_pose};
use so101_hal::teleop::{CouplingOptions, KeySteps, Keys, Leader, LeaderOptions, Teleoperator};
use so101_hal::{Clock as _, Degrees, JOINTS, SystemClock};

use crate::cli::{self, Verbosity, say};
use crate::enter::{Answer, Enter};
use crate::error::{Error, Exit, Result};
use crate::hardware::{self, ArmArgs, HardwareRig, Pace, Role, Where};
use crate::interrupt;

use operators::{HandHeld, TerminalKeys, load_script};
use session::{AtEnd, FollowerOptions, Goes, Seen, Session};
use table::LiveTable;

/// What drives the follower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TeleopChoice {
    /// A leader arm, moved by a hand
    #[default]
    Leader,
    /// Keys of this terminal
    Keyboard,
    /// Waypoints of a file, see --script
    Script,
}

/// What the keys of the keyboard move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeysChoice {
    /// The hand, through inverse kinematics: w s forward and back, a d left and right, r f up and down, t g pitch, z x roll, o c gripper
    #[default]
    Hand,
    /// Joints: 1 to 6 up, q w e r t y down
    Joints,
}

impl From<KeysChoice> for Keys {
    fn from(choice: KeysChoice) -> Self {
        match choice {
            KeysChoice::Hand => Self::Hand,
            KeysChoice::Joints => Self::Joints,
        }
    }
}

/// The leader arm on the command line.
#[derive(Clone, Debug, Default, Args)]
pub struct LeaderArgs {
    /// Serial port of the leader arm
    #[arg(long, value_name = "PATH")]
    pub leader_port: Option<String>,

    /// Name of the leader arm: its calibration is looked for where LeRobot keeps it, as ID.json
    #[arg(long, value_name = "ID")]
    pub leader_id: Option<String>,

    /// Calibration file of the leader arm, or the folder that has ID.json
    #[arg(long, value_name = "FILE")]
    pub leader_calibration: Option<PathBuf>,
}

impl LeaderArgs {
    /// The leader as an arm, real or emulated as the follower is.
    #[must_use]
    pub fn arm(&self, follower: &Where) -> ArmArgs {
        let rig = match follower {
            Where::Emulated => HardwareRig::Emulated,
            Where::Port(_) => HardwareRig::Real,
        };
        ArmArgs {
            rig: Some(rig),
            port: self.leader_port.clone(),
            id: self.leader_id.clone(),
            calibration: self.leader_calibration.clone(),
        }
    }
}

/// Command line of the program.
#[derive(Clone, Debug, Default, Args)]
pub struct TeleoperateArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub arm: ArmArgs,

    /// What drives the follower
    #[arg(long, value_enum, default_value_t)]
    pub teleop: TeleopChoice,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub leader: LeaderArgs,

    /// What keys move
    #[arg(long, value_enum, default_value_t)]
    pub keys: KeysChoice,

    /// How far one key goes, degrees (5 % of the gripper and 5 mm of the hand stay)
    #[arg(long, value_name = "DEGREES", default_value_t = 2.0)]
    pub key_step: f64,

    /// Waypoints: a TOML or JSON file of tables `waypoint`, each with at_s and six joints
    #[arg(long, value_name = "FILE", required_if_eq("teleop", "script"))]
    pub script: Option<PathBuf>,

    /// Actions a second
    #[arg(long, value_name = "HZ", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub fps: u32,

    /// End after so many seconds [default: at Ctrl-C, the key Esc, or the end of the script]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,

    /// The largest difference of leader and follower that is taken up when they are coupled, degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 25.0)]
    pub max_gap: f64,

    /// The most that a goal may differ from the present position, degrees (of the gripper: percent)
    #[arg(long, value_name = "DEGREES")]
    pub max_relative_target: Option<f64>,

    /// How the follower is left
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub at_end: AtEnd,

    /// Measure what the rolls of the two hands differ by, store it for the pair, and end: needs both --id and --leader-id
    #[arg(long)]
    pub measure_pair: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// Couples and teleoperates until somebody ends it.
///
/// # Errors
/// Usage, [`Error::Refused`] where the arms are too far apart, errors of the buses.
pub fn run(args: &TeleoperateArgs) -> Result<Exit> {
    check(args)?;
    let place = args.arm.place()?;
    interrupt::install().map_err(|e| Error::Refused(format!("no handler for Ctrl-C: {e}")))?;
    if args.measure_pair {
        return measure_pair(args, &place);
    }
    // Time that nobody watches need not pass.
    let watched = place != Where::Emulated || args.verbosity.bars() || args.teleop == TeleopChoice::Keyboard;
    let pace = if watched { Pace::RealTime } else { Pace::Virtual };
    let emergency = Arc::new(AtomicBool::new(false));
    let teleop = teleoperator(args, &place, pace, &emergency)?;
    let options = FollowerOptions { max_relative_target: args.max_relative_target, at_end: args.at_end };
    let mut session = Session::open(&args.arm, pace, teleop, &options)?;
    let mut table = LiveTable::new(args.verbosity);
    let length = args.seconds.map(Duration::from_secs_f64);
    let stop = session.emergency_stop();
    interrupt::stop_at_once(&stop);
    let ran = session.run(args.fps, |seen| {
        table.show(seen);
        if emergency.load(Ordering::SeqCst) {
            // What it could not send is said by the end of the session.
            let _ = stop.stop();
        }
        let over = length.is_some_and(|l| seen.since_start >= l);
        if over || interrupt::requested() { Goes::End } else { Goes::On }
    });
    // The arm first, whatever happened.
    let left = session.finish();
    let summary = ran?;
    left?;
    cli::print_result(&summary.to_string())?;
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Ok })
}

fn check(args: &TeleoperateArgs) -> Result<()> {
    let positive = |flag: &str, value: f64| {
        if value.is_finite() && value > 0.0 {
            Ok(())
        } else {
            Err(Error::Usage(format!("{flag} {value}: give a number above 0")))
        }
    };
    positive("--max-gap", args.max_gap)?;
    positive("--key-step", args.key_step)?;
    args.seconds.map_or(Ok(()), |s| positive("--seconds", s))?;
    args.max_relative_target.map_or(Ok(()), |m| positive("--max-relative-target", m))?;
    if args.seconds.is_some_and(|s| s > 1e6) {
        return Err(Error::Usage("--seconds: a day has 86400".to_owned()));
    }
    Ok(())
}

/// The teleoperator that the command line means.
fn teleoperator(
    args: &TeleoperateArgs,
    place: &Where,
    pace: Pace,
    emergency: &Arc<AtomicBool>,
) -> Result<Box<dyn Teleoperator>> {
    match args.teleop {
        TeleopChoice::Leader => leader(&args.leader, place, pace, leader_options(args)?),
        TeleopChoice::Keyboard => {
            let mut steps = KeySteps::default();
            steps.angle = Degrees(args.key_step);
            say(Keys::from(args.keys).legend());
            Ok(Box::new(TerminalKeys::keyboard(args.keys.into(), steps, Arc::clone(emergency))?))
        }
        TeleopChoice::Script => {
            let path =
                args.script.as_ref().ok_or_else(|| Error::Usage("--teleop script needs --script".into()))?;
            Ok(Box::new(load_script(path)?))
        }
    }
}

/// Opens the leader arm; an emulated one is moved by a hand of its own.
///
/// # Errors
/// Errors of its port, its calibration and its servos.
pub fn leader(
    args: &LeaderArgs,
    follower: &Where,
    pace: Pace,
    options: LeaderOptions,
) -> Result<Box<dyn Teleoperator>> {
    let arm = args.arm(follower);
    let (calibration, _) = arm.calibration(Role::Leader)?;
    let open = match follower {
        Where::Emulated => hardware::emulated(&calibration, pace)?,
        Where::Port(_) => arm.open(Role::Leader, pace)?,
    };
    let leader = Leader::connect(open.bus, calibration, options)?;
    Ok(match open.servos {
        Some(servos) => Box::new(HandHeld::new(leader, servos)),
        None => Box::new(leader),
    })
}

fn leader_options(args: &TeleoperateArgs) -> Result<LeaderOptions> {
    let coupling = CouplingOptions::default().with_max_gap(Degrees(args.max_gap));
    let options = LeaderOptions::default().with_coupling(coupling);
    with_pair(options, args.leader.leader_id.as_deref(), args.arm.id.as_deref())
}

/// The options with what was measured for this pair of arms, if anything was.
///
/// # Errors
/// Errors of the file.
pub fn with_pair(
    options: LeaderOptions,
    leader_id: Option<&str>,
    follower_id: Option<&str>,
) -> Result<LeaderOptions> {
    if let (Some(leader), Some(follower)) = (leader_id, follower_id)
        && let Some(pair) = PairOffset::load(&Folders::from_env()?, leader, follower)?
    {
        say(&format!("the leader's roll is taken {:+.1} off, as measured for this pair", pair.wrist_roll));
        return Ok(options.with_pair(pair));
    }
    Ok(options)
}

/// Both hands are held alike once, and the difference of their rolls is stored.
fn measure_pair(args: &TeleoperateArgs, place: &Where) -> Result<Exit> {
    let (Some(leader_id), Some(follower_id)) = (&args.leader.leader_id, &args.arm.id) else {
        return Err(Error::Usage("--measure-pair: name both arms with --id and --leader-id".to_owned()));
    };
    let (calibration, _) = args.arm.calibration(Role::Follower)?;
    let mut follower = args.arm.open(Role::Follower, Pace::Virtual)?;
    let arm = args.leader.arm(place);
    let (leader_calibration, _) = arm.calibration(Role::Leader)?;
    let open = match place {
        Where::Emulated => hardware::emulated(&leader_calibration, Pace::Virtual)?,
        Where::Port(_) => arm.open(Role::Leader, Pace::Virtual)?,
    };
    let mut leader = Leader::connect(open.bus, leader_calibration, LeaderOptions::default())?;
    say("hold both hands alike: fingers level, jaws to the same side; then press ENTER");
    if open.servos.is_none() && Enter::at_stdin()?.wait()? == Answer::Interrupted {
        return Ok(Exit::Interrupted);
    }
    let pose = read_pose(&mut follower.bus, &calibration)?;
    let pair = leader.measure_pair(&pose, SystemClock::new().now())?;
    let path = pair.save(&Folders::from_env()?, leader_id, follower_id)?;
    cli::print_result(&format!(
        "wrist_roll of '{follower_id}' = that of '{leader_id}' {:+.2} deg: {}",
        pair.wrist_roll.0,
        path.display()
    ))?;
    Ok(Exit::Ok)
}

/// What a session was like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Time since the first action.
    pub lasted: Duration,
    /// Actions sent.
    pub actions: u64,
    /// Periods that began late by more than half a period.
    pub late: u64,
    /// Cycles of the bus.
    pub bus_cycles: u64,
    /// Cycles of the bus that ended late.
    pub overruns: u64,
    /// The largest distance of goal and position: degrees, of the gripper percent.
    pub largest_lag: [f64; 6],
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.lasted.as_secs_f64();
        let rate = if seconds > 0.0 { self.actions.saturating_sub(1) as f64 / seconds } else { 0.0 };
        let (joint, lag) = JOINTS
            .into_iter()
            .zip(self.largest_lag)
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((JOINTS[0], 0.0));
        let unit = if joint == so101_hal::JointId::Gripper { "%" } else { "deg" };
        write!(
            f,
            "teleoperated seconds={seconds:.2} actions={} rate_hz={rate:.1} late={} bus_cycles={} overruns={} \
             largest_lag={lag:.1} {unit} joint={joint}",
            self.actions, self.late, self.bus_cycles, self.overruns
        )
    }
}

impl Summary {
    fn see(&mut self, seen: &Seen) {
        self.lasted = seen.since_start;
        self.actions += 1;
        for ((lag, goal), at) in
            self.largest_lag.iter_mut().zip(seen.goal.to_row()).zip(seen.snapshot.joints.to_row())
        {
            *lag = lag.max((goal - at).abs());
        }
    }
}
