//! Six emulated servos on a pseudo-terminal, for any program that talks to an SO-101.

use std::process::ExitCode;

use clap::Parser;
use so101_support::cli;
use so101_support::emulated_bus::{self, EmulatedBusArgs};

/// Serve six emulated STS3215 servos on a pseudo-terminal: a serial port for LeRobot, vendor tools and this project's programs
///
/// Prints one line, `ready PATH`, when the port is there, and runs until Ctrl-C or the line `quit`. Lines on stdin make it misbehave, such as `drop 0.1 3` or `unplug`; `help` lists them. Each is answered with `ok` or `error`, after the lines of its answer if it has one. The end of stdin does not end the program.
///
/// Exit codes: 0 after `quit`, 1 failed, 2 usage, 3 the place of the link is taken, 130 after Ctrl-C.
#[derive(Parser)]
#[command(version, after_help = so101_support::emulated_bus::after_help())]
struct Cli {
    #[command(flatten)]
    bus: EmulatedBusArgs,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::run(cli.bus.verbosity, || emulated_bus::run(&cli.bus))
}
