//! Says what hangs on a servo bus, what is wrong with it, and what to do.

use std::process::ExitCode;

use clap::Parser;
use so101_support::diagnose::{self, DiagnoseArgs};
use so101_support::{cli, dotted};

/// Say what hangs on a servo bus and what is wrong with it: dead chain, shared ids, wrong baud rate, supply, alarms, lost packets
///
/// Asks all ids at all baud rates, prints every register with its unit, and says what to do about what it finds. Nothing is written to the servos. LeRobot's flags (--robot.port=...) are taken as they are.
///
/// Exit codes: 0 no fault, 1 a fault was found or the bus is gone, 2 usage, 3 the port cannot be opened.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    diagnose: DiagnoseArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::ROBOT]) {
        Ok(cli) => cli::run(cli.diagnose.verbosity, || diagnose::run(&cli.diagnose)),
        Err(exit) => exit,
    }
}
