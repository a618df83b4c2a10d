//! Success rate of the scripted demonstrator in the simulation, over many seeds, without pictures.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde_json::json;
use so101_support::cli::{self, Verbosity, say};
use so101_support::error::{Error, Exit, Result};
use so101_support::expert::PushConfig;
use so101_support::plan::{Jitter, Plan};
use so101_support::record::args::LeftChoice;
use so101_support::rig::Pictures;
use so101_support::sim_rig::{SimRig, Trial};

/// Try the scripted demonstrator in the simulation over many seeds and print its success rate
///
/// One seed is one episode of the plan, its cells in turn, with jitter, as long as a recording of it, and never tried
/// again. Exit codes: 0 done (at any rate), 1 failed, 2 usage.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Use the scripted demonstrator (nothing else can act yet)
    #[arg(long, required = true)]
    expert: bool,
    /// What to do
    #[arg(long, value_enum, default_value_t = Task::PushLeft)]
    task: Task,
    /// Number of seeds
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Whose left: the robot's (+y of the base) or that of the camera which faces it
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    left_of: LeftChoice,
    /// Write the object's poses, one JSON line an episode, for another judge
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    verbosity: Verbosity,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Task {
    #[value(name = "push_left")]
    PushLeft,
}

fn main() -> ExitCode {
    let args = Args::parse();
    cli::run(args.verbosity, || evaluate(&args))
}

fn evaluate(args: &Args) -> Result<Exit> {
    let left_of = args.left_of.into();
    let Task::PushLeft = args.task;
    let plan = Plan::push_left();
    let config = PushConfig::default().with_left_of(left_of);
    let mut rig = SimRig::new(&plan, 30, left_of, Pictures::Off)?;
    let mut dump = args.dump.as_ref().map(|path| create(path)).transpose()?;
    let mut failures = Vec::new();
    for seed in args.first_seed..args.first_seed.saturating_add(args.seeds) {
        let index = u32::try_from(seed % u64::from(plan.episodes())).unwrap_or(0);
        let trial = rig.trial(&plan, &plan.episode(seed, index, Jitter::On)?, config)?;
        if let (Some(file), Some(path)) = (&mut dump, &args.dump) {
            let line = dump_line(seed, args.left_of, &trial);
            writeln!(file, "{line}").map_err(|source| io_error(path, source))?;
        }
        if let Some(why) = trial.verdict.failure {
            failures.push(json!({ "seed": seed, "why": why.to_string() }));
            if args.verbosity.chatty() {
                say(&format!("seed {seed}: {why}"));
            }
        }
    }
    if let (Some(file), Some(path)) = (&mut dump, &args.dump) {
        file.flush().map_err(|source| io_error(path, source))?;
    }
    let rate = 1.0 - failures.len() as f64 / args.seeds as f64;
    let line = if args.json {
        json!({ "task": "push_left", "n": args.seeds, "success_rate": rate, "failures": failures })
            .to_string()
    } else {
        format!("push_left: {} of {} succeeded", args.seeds - failures.len() as u64, args.seeds)
    };
    cli::result_line(&line).map_err(|source| io_error("stdout".as_ref(), source))?;
    Ok(Exit::Ok)
}

fn dump_line(seed: u64, left_of: LeftChoice, trial: &Trial) -> serde_json::Value {
    let left_of = match left_of {
        LeftChoice::Robot => "robot",
        LeftChoice::Camera => "camera",
    };
    json!({ "seed": seed, "left_of": left_of, "success": trial.verdict.success(), "poses": trial.poses })
}

fn create(path: &std::path::Path) -> Result<std::io::BufWriter<std::fs::File>> {
    let file = std::fs::File::create(path).map_err(|source| io_error(path, source))?;
    Ok(std::io::BufWriter::new(file))
}

fn io_error(path: &std::path::Path, source: std::io::Error) -> Error {
    Error::Io { what: "write", path: path.to_owned(), source }
}
