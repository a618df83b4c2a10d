//! Says what the simulation lacks on this machine, and which command brings it. Exit code 1 when something is missing.
//!
//! `cargo run --example sim_doctor` looks at files; with `--features sim` it also makes physics steps and a picture.
#![allow(clippy::print_stdout, reason = "a program whose result is its output")]

use std::process::ExitCode;

use clap::Parser;
use so101_sim::doctor::{Health, examine};

/// Say what the MuJoCo simulation lacks on this machine.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Args {}

fn main() -> ExitCode {
    let Args {} = Args::parse();
    let findings = examine();
    for f in &findings {
        let health = match f.health {
            Health::Well => "ok",
            Health::NotBuilt => "-",
            _ => "MISSING",
        };
        println!("{:<15} {health:<8} {}", f.part, f.found);
        if !f.remedy.is_empty() {
            println!("{:<15} {:<8} -> {}", "", "", f.remedy);
        }
    }
    if findings.iter().any(|f| f.health == Health::Ill) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
