//! Records the task "push the object to the left" as a LeRobot v3.0 dataset.

use std::process::ExitCode;

use clap::Parser;
use so101_support::plan::Plan;
use so101_support::record::{self, args::RecordArgs};

/// Record the task "push the object to the left" as a LeRobot v3.0 dataset: an SO-101 pushes a box, two cameras look
///
/// Without flags it records the whole plan (24 episodes) with the arm that this build has, in simulated time. Progress goes to stderr; stdout gets one line for every episode that is safely on disk, and the folder of the dataset at the end.
///
/// Exit codes: 0 done, 1 failed (disk full, corrupt input), 2 usage, 3 refused by pre-flight, 130 interrupted.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    record: RecordArgs,
}

fn main() -> ExitCode {
    record::program(|cli: Cli| cli.record, Some(Plan::push_left))
}
