//! Says which serial ports lead to arms, and to which ones.

use std::process::ExitCode;

use clap::Parser;
use so101_support::find_port::{self, FindPortArgs};
use so101_support::{cli, dotted};

/// Say which serial ports there are, which lead to an arm, whether they can be opened, and which arm it is
///
/// Without flags nothing is opened. --identify reads homing offsets and limits of the servos and compares them with the calibration files; it writes nothing and switches no torque. With --robot.port, --robot.id, --teleop.port and --teleop.id of LeRobot's command line it says whether the two arms are swapped.
///
/// Exit codes: 0 done, 1 no arm, or an arm is not on the port that was given for it, 2 usage.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    find: FindPortArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::ROBOT, dotted::TELEOP]) {
        Ok(cli) => cli::run(cli.find.verbosity, || find_port::run(&cli.find)),
        Err(exit) => exit,
    }
}
