//! Checks a LeRobot v3.0 dataset: counts, rows, statistics, files, and every picture.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use so101_dataset::check::{CheckOptions, CheckReport, RULES, Severity, Videos, check};
use so101_support::cli::{self, Verbosity};
use so101_support::error::{Exit, Result};

/// Check a LeRobot v3.0 dataset: counts, rows, statistics, files, and every picture
///
/// The report goes to stdout, a line a finding and then PASS or FAIL with the figures. Videos are decoded where this build can do it (H.264 Baseline, which is what this suite records); of others the index is checked.
///
/// Exit codes: 0 no violation, 1 a violation or a damaged info.json, 2 usage or no dataset at PATH.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The dataset's folder
    #[arg(required_unless_present = "rules")]
    path: Option<PathBuf>,

    /// Leave the videos out: for a copy of the tables alone, where absent videos are no violation
    #[arg(long)]
    tables_only: bool,

    /// Check the videos' indices but decode no picture: much faster on large sets
    #[arg(long, conflicts_with = "tables_only")]
    no_decode: bool,

    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,

    /// List the rules and exit
    #[arg(long, conflicts_with_all = ["tables_only", "no_decode"])]
    rules: bool,

    #[command(flatten)]
    verbosity: Verbosity,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::run(cli.verbosity, || run(&cli))
}

fn run(cli: &Cli) -> Result<Exit> {
    let Some(path) = cli.path.as_ref().filter(|_| !cli.rules) else {
        cli::print_result(&rules(cli.json))?;
        return Ok(Exit::Ok);
    };
    let videos = match (cli.tables_only, cli.no_decode) {
        (true, _) => Videos::TablesOnly,
        (_, true) => Videos::Index,
        _ => Videos::Decode,
    };
    let report = check(path, &CheckOptions::default().with_videos(videos))?;
    cli::print_result(&if cli.json { json(&report) } else { text(&report, cli.verbosity) })?;
    Ok(if report.passed { Exit::Ok } else { Exit::Failed })
}

/// The report; with `--quiet` without what is only worth knowing.
fn text(report: &CheckReport, verbosity: Verbosity) -> String {
    let mut report = report.clone();
    if !verbosity.chatty() {
        report.findings.retain(|f| f.severity > Severity::Info);
    }
    report.to_string()
}

fn json(report: &CheckReport) -> String {
    // Numbers, texts and paths always serialise; a path that is no UTF-8 is the exception.
    serde_json::to_string(report).unwrap_or_else(|e| format!("{{\"error\":{:?}}}", e.to_string()))
}

fn rules(json: bool) -> String {
    if json {
        let rules: serde_json::Map<_, _> = RULES.iter().map(|r| (r.id.to_owned(), r.asks.into())).collect();
        return serde_json::Value::Object(rules).to_string();
    }
    let width = RULES.iter().map(|r| r.id.len()).max().unwrap_or(0);
    RULES.iter().map(|r| format!("{:width$}  {}", r.id, r.asks)).collect::<Vec<_>>().join("\n")
}
