//! Says what the simulation lacks on this machine, and which command brings it. Exit code 1 when something is missing.
//!
//! `cargo run --example sim_doctor` looks at files; with `--features sim` it also makes physics steps and a picture. Such
//! a program does not even start where `libmujoco.so` is gone (`error while loading shared libraries`): `./run setup`.

use std::process::ExitCode;

use clap::Parser;
use so101_sim::doctor::{Finding, Health, examine};
use so101_support::cli::{self, Verbosity};
use so101_support::error::{Error, Exit, Result};

/// Say what the MuJoCo simulation lacks on this machine.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {}

fn main() -> ExitCode {
    let Args {} = Args::parse();
    // What MuJoCo says before it ends the process is an error of the log.
    cli::run(Verbosity::default(), || {
        let findings = examine();
        findings.iter().try_for_each(print)?;
        Ok(if findings.iter().any(|f| f.health == Health::Ill) { Exit::Failed } else { Exit::Ok })
    })
}

fn print(f: &Finding) -> Result<()> {
    let health = match f.health {
        Health::Well => "ok",
        Health::NotBuilt => "-",
        _ => "MISSING",
    };
    let mut lines = format!("{:<15} {health:<8} {}", f.part, f.found);
    if !f.remedy.is_empty() {
        lines.push_str(&format!("\n{:<15} {:<8} -> {}", "", "", f.remedy));
    }
    let stdout = |source| Error::Io { what: "write", path: "stdout".into(), source };
    cli::result_line(&lines).map_err(stdout)
}
