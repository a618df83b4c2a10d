//! A leader arm, a keyboard or a script drives the follower.

use std::process::ExitCode;

use clap::Parser;
use so101_support::teleoperate::{self, TeleoperateArgs};
use so101_support::{cli, dotted};

/// Drive the follower with a leader arm, the keyboard or a script
///
/// Both arms have to be nearly in the same pose; what is left of the difference is taken up slowly. At the end the follower goes back to where it was found and is relaxed. With --rig emulated a hand sways an emulated leader. LeRobot's flags (--robot.port=... --robot.id=... --teleop.type=so101_leader --teleop.port=... --teleop.id=...) are taken as they are.
///
/// Exit codes: 0 ended by time, script or Esc, 1 failed, 2 usage, 3 the arms are too far apart, 130 Ctrl-C.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    teleoperate: TeleoperateArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::ROBOT, dotted::TELEOP]) {
        Ok(cli) => cli::run(cli.teleoperate.verbosity, || teleoperate::run(&cli.teleoperate)),
        Err(exit) => exit,
    }
}
