//! Records a plan, or a task without one, as a LeRobot v3.0 dataset.

use std::process::ExitCode;

use clap::Parser;
use so101_support::record::{self, args::RecordArgs};

/// Record a task as a LeRobot v3.0 dataset: on the real arm, on the emulated one or in simulation
///
/// A plan says what lies where and how often: tasks/pick_place.toml, tasks/stack.toml, tasks/push_left.toml, or a file of your own. Without a plan, --task is the instruction and you decide where things lie. LeRobot's flags (--robot.port=..., --dataset.single_task=...) are taken as they are.
///
/// A real arm needs --rig real and --teleop; it is checked before it moves, and moves only after you said yes. Keys: right arrow or n ends an episode, left arrow or r records it again, esc or q stops, e switches the torque off. Ctrl-C drops the running episode, brings the arm home and relaxes it; a second one relaxes it at once.
///
/// Exit codes: 0 done, 1 failed (disk full, arm lost), 2 usage, 3 refused by pre-flight, 130 interrupted.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    record: RecordArgs,
}

fn main() -> ExitCode {
    record::program(|cli: Cli| cli.record, None)
}
