//! Calibrates an arm: sweep first, then the homing offsets, into the servos and into LeRobot's file.

use std::process::ExitCode;

use clap::Parser;
use so101_support::calibrate::{self, CalibrateArgs};
use so101_support::{cli, dotted};

/// Calibrate an arm: move every joint to its stops, and the middle of each range becomes its zero
///
/// The sweep comes first and the homing offset is chosen from it, so that no joint crosses the wrap of its encoder. The calibration goes into the servos, read back, and into LeRobot's file where LeRobot looks for it; an older file is kept as .bak. With --rig emulated a hand moves emulated servos, and nothing is saved unless --id or --calibration says where. LeRobot's flags (--robot.type=so101_follower --robot.port=... --robot.id=..., or --teleop.*) are taken as they are.
///
/// Exit codes: 0 calibrated, 1 failed and the servos hold what they held before, 2 usage, 130 interrupted.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    calibrate: CalibrateArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::DEVICE]) {
        Ok(cli) => cli::run(cli.calibrate.verbosity, || calibrate::run(&cli.calibrate)),
        Err(exit) => exit,
    }
}
