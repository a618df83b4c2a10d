//! Plays a recorded episode on the simulated or the emulated arm and compares.

use std::process::ExitCode;

use clap::Parser;
use so101_support::cli;
use so101_support::replay::{self, ReplayArgs};

/// Play a recorded episode on the simulated or the emulated arm, and say how far it is from what was recorded
///
/// The arm starts at the first recorded state and gets the recorded actions at the recording's rate, in simulated time. The report has two differences a joint, in degrees (gripper: percent), as RMS and maximum.
///
/// commanded - simulated: action i less the position one control period later, which is what the arm made of it. Where an episode begins with a command far from its first state, it counts from where the joint has caught up, and a note tells the figure of all rows.
///
/// recorded - simulated: state i less the position at the same moment.
///
/// The first is small where the arm can follow; the second is also large where the recorded arm did not follow, such as one that grips, or whose calibration is another. The plot shows all three curves; an action is drawn one period after it was sent.
///
/// A set of this project says which unit its joints have. In another, a body joint beyond 100 means degrees; values that stay within -100 to 100 are refused without --calibration (they are LeRobot's -100..100) or --degrees.
///
/// Exit codes: 0 done, 1 failed (damaged set, diverged simulation), 2 usage, unknown unit or no dataset at PATH.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    replay: ReplayArgs,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::run(cli.replay.verbosity, || replay::run(&cli.replay))
}
