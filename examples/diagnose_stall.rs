//! Says why a loop was too slow.

use std::process::ExitCode;

use clap::Parser;
use so101_support::diagnose_stall::{self, DiagnoseStallArgs};
use so101_support::{cli, dotted};

/// Say why a control or recording loop was too slow: which stage, and whether heat, clock, supply, memory, other programs, a camera, the bus or the disk is the cause
///
/// Reads the log that recordings leave in meta/so101/host.jsonl, compares the slow seconds with the healthy ones of the same log, and says what to do. Nothing but the log is read.
///
/// Exit codes: 0 nothing stalled, 1 a stall was found or the log cannot be read, 2 usage or no log of a loop.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    diagnose: DiagnoseStallArgs,
}

fn main() -> ExitCode {
    match dotted::parse::<Cli>(&[dotted::DATASET]) {
        Ok(cli) => cli::run(cli.diagnose.verbosity, || diagnose_stall::run(&cli.diagnose)),
        Err(exit) => exit,
    }
}
