//! Gives the six motors of an arm their ids, one after another.

use std::process::ExitCode;

use clap::Parser;
use so101_support::setup_motors::{self, SetupArgs};
use so101_support::{cli, dotted};

/// Give the motors of a new arm their ids and their baud rate, one after another, the gripper first
///
/// Connect one motor at a time to the board and press ENTER. Every id is asked at every baud rate first: where two servos answer nothing is written. What is written is read back, and what is right already is left alone. With --rig emulated a drawer of emulated motors is set up. LeRobot's flags (--robot.type=so101_follower --robot.port=..., or --teleop.*) are taken as they are.
///
/// Exit codes: 0 all done, 1 failed or a motor is missing in the chain, 2 usage, 3 refused, 130 interrupted.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    setup: SetupArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::DEVICE]) {
        Ok(cli) => cli::run(cli.setup.verbosity, || setup_motors::run(&cli.setup)),
        Err(exit) => exit,
    }
}
