//! Finds how far joints and hand get while somebody moves the arm.

use std::process::ExitCode;

use clap::Parser;
use so101_support::find_joint_limits::{self, LimitsArgs};
use so101_support::{cli, dotted};

/// Find the bounds of joints and hand while the arm is moved, by hand or with a leader
///
/// Without a leader the arm is limp and a hand moves it; with --leader-port the leader drives it, as in LeRobot. The hand's position comes from our own kinematics, so LeRobot's --urdf_path and --target_frame_name have no meaning here. With --rig emulated a hand sways emulated servos. LeRobot's flags are taken as they are.
///
/// Exit codes: 0 done, also after Ctrl-C, 1 failed, 2 usage, 3 the arms are too far apart.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    limits: LimitsArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[find_joint_limits::KEYS, dotted::ROBOT, dotted::TELEOP]) {
        Ok(cli) => cli::run(cli.limits.verbosity, || find_joint_limits::run(&cli.limits)),
        Err(exit) => exit,
    }
}
