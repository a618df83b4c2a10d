//! The example `find_joint_limits`: how far joints and hand have been while somebody moved the arm.

#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use so101_hal::arm::EmergencyStop;
use so101_hal::kinematics::{Kinematics, Tcp};
use so101_hal::teleop::{Leader, LeaderOptions};
use so101_hal::{Clock as _, Degrees, JOINTS, JointVector, Radians};

use crate::cli::{self, Verbosity, say};
use crate::dotted::{Key, To};
use crate::error::{Error, Exit, Result};
use crate::hardware::{ArmArgs, Pace, Role, Where};
use crate::interrupt;
use crate::teleoperate::operators::HandHeld;
use crate::teleoperate::session::{FollowerOptions, Goes, Session};
use crate::teleoperate::{LeaderArgs, leader};

/// Keys of LeRobot's `lerobot-find-joint-limits`.
pub const KEYS: &[Key] = &[
    ("teleop_time_s", To::Flag("--seconds")),
    ("warmup_time_s", To::Flag("--warmup-s")),
    ("control_loop_fps", To::Flag("--fps")),
    ("urdf_path", To::Nothing),
    ("target_frame_name", To::Nothing),
];

/// Which point of the hand is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TcpChoice {
    /// LeRobot's: the tip of the fixed finger
    #[default]
    Fingertip,
    /// Between the jaws
    Pinch,
}

/// Command line of the program.
#[derive(Clone, Debug, Default, Args)]
pub struct LimitsArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub arm: ArmArgs,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub leader: LeaderArgs,

    /// Move the arm with the leader instead of by hand, as LeRobot does [default with --leader-port]
    #[arg(long)]
    pub with_leader: bool,

    /// How long positions count
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub seconds: f64,

    /// Time before that, in which they do not
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    pub warmup_s: f64,

    /// Looks a second
    #[arg(long, value_name = "HZ", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub fps: u32,

    /// The point of the hand whose bounds are wanted
    #[arg(long, value_enum, default_value_t)]
    pub tcp: TcpChoice,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// How far joints and hand have been.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Positions that counted.
    pub samples: u64,
    /// Largest position of the hand in the base frame, x, y, z, metres.
    pub max_ee_m: [f64; 3],
    /// Smallest position of the hand.
    pub min_ee_m: [f64; 3],
    /// Largest joint positions: degrees, of the gripper percent.
    pub max_pos: [f64; 6],
    /// Smallest joint positions.
    pub min_pos: [f64; 6],
}

impl Bounds {
    /// Nothing seen.
    const EMPTY: Self = Self {
        samples: 0,
        max_ee_m: [f64::NEG_INFINITY; 3],
        min_ee_m: [f64::INFINITY; 3],
        max_pos: [f64::NEG_INFINITY; 6],
        min_pos: [f64::INFINITY; 6],
    };

    fn see(&mut self, joints: &JointVector<Degrees>, kinematics: &Kinematics) {
        self.samples += 1;
        let hand = kinematics.fk(&joints.body.map(Radians::from)).position_m;
        for ((max, min), v) in self.max_ee_m.iter_mut().zip(&mut self.min_ee_m).zip(hand) {
            (*max, *min) = (max.max(v), min.min(v));
        }
        for ((max, min), v) in self.max_pos.iter_mut().zip(&mut self.min_pos).zip(joints.to_row()) {
            (*max, *min) = (max.max(v), min.min(v));
        }
    }

    /// LeRobot's lines, and a table.
    fn text(&self, tcp: &Tcp) -> String {
        let list = |values: &[f64]| {
            let all: Vec<String> = values.iter().map(|v| format!("{v:.4}")).collect();
            format!("[{}]", all.join(", "))
        };
        let mut out = format!(
            "# bounds of the hand ({}), x y z in metres, {} samples\nmax_ee = {}\nmin_ee = {}\n\n\
             # joint positions, degrees and percent\nmax_pos = {}\nmin_pos = {}\n\n",
            tcp.name(),
            self.samples,
            list(&self.max_ee_m),
            list(&self.min_ee_m),
            list(&self.max_pos),
            list(&self.min_pos),
        );
        for ((joint, min), max) in JOINTS.into_iter().zip(self.min_pos).zip(self.max_pos) {
            let unit = if joint == so101_hal::JointId::Gripper { "%" } else { "deg" };
            out.push_str(&format!("{:<14} {min:>7.1} to {max:>6.1} {unit}\n", joint.name()));
        }
        out.trim_end().to_owned()
    }
}

/// Looks while somebody moves the arm.
///
/// # Errors
/// Usage, and errors of the buses.
pub fn run(args: &LimitsArgs) -> Result<Exit> {
    for (flag, value) in [("--seconds", args.seconds), ("--warmup-s", args.warmup_s)] {
        if !(0.0..=1e6).contains(&value) {
            return Err(Error::Usage(format!("{flag} {value}: give seconds, 0 or more")));
        }
    }
    let place = args.arm.place()?;
    interrupt::install().map_err(|e| Error::Refused(format!("no handler for Ctrl-C: {e}")))?;
    let tcp = match args.tcp {
        TcpChoice::Fingertip => Tcp::LEROBOT_FINGERTIP,
        TcpChoice::Pinch => Tcp::PINCH,
    };
    let bounds = if args.with_leader || args.leader.leader_port.is_some() {
        with_leader(args, &place, &tcp, interrupt::stop_at_once)?
    } else {
        by_hand(args, &place, &tcp)?
    };
    if bounds.samples == 0 {
        return Err(Error::Usage("nothing was seen: it ended during the warm-up, see --warmup-s".to_owned()));
    }
    let text = if args.json {
        serde_json::to_string_pretty(&bounds)
            .map_err(|e| so101_hal::Error::External { what: "write JSON", source: e.into() })?
    } else {
        bounds.text(&tcp)
    };
    cli::print_result(&text)?;
    Ok(Exit::Ok)
}

/// Keeps the bounds, and says when they begin to count.
struct Watch {
    bounds: Bounds,
    kinematics: Kinematics,
    warmup: Duration,
    end: Duration,
    warm: bool,
}

impl Watch {
    fn new(args: &LimitsArgs, tcp: &Tcp) -> Self {
        let warmup = Duration::from_secs_f64(args.warmup_s);
        let end = warmup + Duration::from_secs_f64(args.seconds);
        say("warming up: move the arm, positions do not count yet");
        Self { bounds: Bounds::EMPTY, kinematics: Kinematics::new(*tcp), warmup, end, warm: false }
    }

    fn see(&mut self, since_start: Duration, joints: &JointVector<Degrees>) -> Goes {
        if since_start >= self.warmup {
            if !self.warm {
                self.warm = true;
                say("counting: move the arm to all of its limits, Ctrl-C ends early");
            }
            self.bounds.see(joints, &self.kinematics);
        }
        if since_start >= self.end || interrupt::requested() { Goes::End } else { Goes::On }
    }
}

/// The leader drives the follower, as in LeRobot's program.
fn with_leader(
    args: &LimitsArgs,
    place: &Where,
    tcp: &Tcp,
    on_energised: impl FnOnce(&EmergencyStop),
) -> Result<Bounds> {
    let pace = pace(args, place);
    let teleop = leader(&args.leader, place, pace, LeaderOptions::default())?;
    let mut session = Session::open(&args.arm, pace, teleop, &FollowerOptions::default())?;
    on_energised(&session.emergency_stop());
    let mut watch = Watch::new(args, tcp);
    let ran = session.run(args.fps, |seen| watch.see(seen.since_start, &seen.snapshot.joints));
    // The arm first, whatever happened.
    session.finish()?;
    ran?;
    Ok(watch.bounds)
}

/// The arm is limp, and a hand moves it.
fn by_hand(args: &LimitsArgs, place: &Where, tcp: &Tcp) -> Result<Bounds> {
    let (calibration, _) = args.arm.calibration(Role::Follower)?;
    let open = args.arm.open(Role::Follower, pace(args, place))?;
    let mut arm = Leader::connect(open.bus, calibration, LeaderOptions::default())?;
    let mut watch = Watch::new(args, tcp);
    let start = open.clock.now();
    let period = Duration::from_secs(1) / args.fps;
    let mut deadline = start;
    if let Some(servos) = open.servos {
        let pose = arm.read(start)?;
        let mut hand = HandHeld::new(arm, servos);
        so101_hal::Teleoperator::engage(&mut hand, &pose)?;
        loop {
            let now = open.clock.now();
            let joints = so101_hal::Teleoperator::action(&mut hand, now)?.joints;
            if watch.see(now.since(start), &joints) == Goes::End {
                return Ok(watch.bounds);
            }
            deadline = deadline + period;
            open.clock.sleep_until(deadline);
        }
    }
    loop {
        let now = open.clock.now();
        let joints = arm.read(now)?;
        if watch.see(now.since(start), &joints) == Goes::End {
            return Ok(watch.bounds);
        }
        deadline = deadline + period;
        open.clock.sleep_until(deadline);
    }
}

/// Time that nobody watches need not pass.
fn pace(args: &LimitsArgs, place: &Where) -> Pace {
    if *place == Where::Emulated && !args.verbosity.bars() { Pace::Virtual } else { Pace::RealTime }
}
