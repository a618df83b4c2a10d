//! Says which cameras there are, what they offer and what they see.

use std::process::ExitCode;

use clap::Parser;
use so101_support::find_cameras::{self, FindCamerasArgs};
use so101_support::{cli, dotted};

/// List the cameras with their formats, take a picture of each and say how good it is
///
/// Pictures are saved as PNG, as the JPEG file that the camera sent, and together on one sheet; cameras that --cameras describes have their controls locked and read back. With --rig emulated (or --synthetic) it shows drawn cameras and needs nothing. LeRobot's --robot.cameras is taken as it is.
///
/// Exit codes: 0 every camera gave pictures, 1 there is no camera or one gave none, 2 usage.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    find: FindCamerasArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::ROBOT]) {
        Ok(cli) => cli::run(cli.find.verbosity, || find_cameras::run(&cli.find)),
        Err(exit) => exit,
    }
}
