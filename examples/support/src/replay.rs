//! Plays a recorded episode on a rig and says how far the arm was from what was commanded and from what was recorded.
//!
//! The arm starts at rest at the episode's first recorded state and gets the recorded actions at the recording's rate,
//! on the rig's virtual clock. Two differences are reported for each joint:
//!
//! - commanded - simulated: action `i` less the position one control period after it was sent, which is what the arm
//!   made of it;
//! - recorded - simulated: state `i` less the position at the same moment, before action `i` is sent.

mod plot;
mod report;
mod run;
mod units;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use so101_dataset::Dataset;

use crate::cli::{self, Verbosity};
use crate::error::{Error, Exit, Result};
use crate::expert::LeftOf;
use crate::plan::Plan;
use crate::record::args::RigChoice;
use crate::record::rigs::{self, Scenery};

use report::Report;
use units::Recorded;

/// Which arm plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayRig {
    /// MuJoCo (a build with `--features sim`)
    Sim,
    /// Six emulated servos behind their real byte protocol: motion profiles, no masses
    Emulated,
}

/// Options of a replay.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// The dataset's folder
    pub path: PathBuf,

    /// Number of the episode
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub episode: u64,

    /// Which arm plays [default: sim where it is built in, else emulated]
    #[arg(long, value_enum)]
    pub rig: Option<ReplayRig>,

    /// LeRobot's calibration file of the arm that recorded; needed for values from -100 to 100, which mean nothing
    /// without it
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    /// The body joints are in degrees, in a set that does not say so and stays within -100 to 100
    #[arg(long, conflicts_with = "calibration")]
    pub degrees: bool,

    /// What stands around the arm
    #[arg(long, value_enum, default_value_t)]
    pub scene: Scenery,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Where the plot goes [default: replay-NAME-episode-N.png in the current folder]
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// Replays as the command line asks: report on stdout, plot in a file.
///
/// # Errors
/// [`Error::Usage`] for an episode that is not there and for values whose unit is not known; [`Error::Calibration`];
/// [`Error::Replay`] for rows without finite numbers; errors of the dataset and of the rig.
pub fn run(args: &ReplayArgs) -> Result<Exit> {
    let set = Dataset::open(&args.path)?;
    check_episode(&set, args.episode)?;
    let unit = units::decide(&set, args)?;
    let recorded = Recorded::read(&set, args.episode, &unit)?;
    let mut plan = Plan::push_left();
    let placed = match args.scene {
        Scenery::Empty => None,
        Scenery::Task => Some(run::place_object(&mut plan, &set, args.episode)?),
    };
    let fps = set.info().fps;
    let mut rig = rigs::open_blind(rig_choice(args.rig), fps, &plan, left_of(&set)?, args.scene)?;
    let played = run::play(rig.as_mut(), &recorded, placed.as_ref(), fps)?;
    let png = args.png.clone().unwrap_or_else(|| default_png(&args.path, args.episode));
    let report = Report {
        path: args.path.clone(),
        episode: args.episode,
        task: set.episodes().get(args.episode as usize).map(|e| e.tasks.join("; ")).unwrap_or_default(),
        rig: rig.description().rig.clone(),
        scene: args.scene,
        unit,
        joints: report::compare(&played.trace),
        success: played.success,
        notes: played.notes,
        trace: played.trace,
        png,
    };
    plot::save(&report)?;
    // A reader that has gone away, such as `head`, is no failure.
    let text = if args.json { report.to_json().to_string() } else { report.to_text() };
    let _ = cli::result_line(text.trim_end());
    Ok(Exit::Ok)
}

fn check_episode(set: &Dataset, episode: u64) -> Result<()> {
    match set.episodes().len() {
        count if episode < count as u64 => Ok(()),
        0 => Err(Error::Usage(format!("the set has no episodes: {}", set.root().display()))),
        count => Err(Error::Usage(format!(
            "--episode {episode}: the set has episodes 0 to {}: {}",
            count - 1,
            set.root().display()
        ))),
    }
}

const fn rig_choice(rig: Option<ReplayRig>) -> RigChoice {
    match rig {
        None => RigChoice::Auto,
        Some(ReplayRig::Sim) => RigChoice::Sim,
        Some(ReplayRig::Emulated) => RigChoice::Emulated,
    }
}

/// Whose left the recording's task means, for the judge of the simulated scene.
fn left_of(set: &Dataset) -> Result<LeftOf> {
    let sidecar = set.sidecar()?;
    let left = sidecar.as_ref().and_then(|s| s.recording().session.fixed.get("left")?.as_str());
    Ok(if left == Some("-y") { LeftOf::Camera } else { LeftOf::Robot })
}

/// `replay-NAME-episode-N.png` after the dataset's folder, also where that is given as `.` or `..`.
fn default_png(path: &Path, episode: u64) -> PathBuf {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = full.file_name().map_or_else(|| "dataset".into(), |n| n.to_string_lossy().into_owned());
    format!("replay-{name}-episode-{episode}.png").into()
}
