//! Checks an arm, its cameras and the computer before the first frame.

use std::process::ExitCode;

use clap::Parser;
use so101_support::preflight::program::{self, PreflightArgs};
use so101_support::{cli, dotted};

/// Check an arm, its cameras and the computer before the first frame: value, limit, verdict and what to do
///
/// Looks only: nothing is written to the servos, unless --hold-test asks for 0.3 s of torque. With --rig emulated it needs nothing, and --fault shows what a report of a broken arm looks like. LeRobot's flags (--robot.port=...) are taken as they are.
///
/// Exit codes: 0 nothing failed, 1 the bus is gone, 2 usage, 3 a check failed.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    preflight: PreflightArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::ROBOT, dotted::TELEOP]) {
        Ok(cli) => cli::run(cli.preflight.verbosity, || program::run(&cli.preflight)),
        Err(exit) => exit,
    }
}
