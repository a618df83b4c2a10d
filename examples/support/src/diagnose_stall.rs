//! The example `diagnose_stall`: reads the log of a loop and says which stage stalled, and why.

mod emulated;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use so101_hal::host::stall::{Diagnosis, StallOptions, diagnose};
use so101_hal::host::{self, ParsedLog};

use crate::cli::{self, Verbosity, say};
use crate::error::{Error, Exit, Result};
use crate::hardware::HardwareRig;

/// Where a dataset keeps the log.
const LOG_OF_A_DATASET: &str = "meta/so101/host.jsonl";

/// Larger files are no logs of a loop: a day of it has 90 MB.
const MAX_LOG_BYTES: u64 = 1 << 30;

/// Command line of the program.
#[derive(Clone, Debug, Args)]
pub struct DiagnoseStallArgs {
    /// Log of a loop (one JSON object a line), or the folder of a dataset that has one
    #[arg(value_name = "LOG", required_unless_present = "rig", conflicts_with = "rig")]
    pub log: Option<PathBuf>,

    /// emulated: make a log by running a loop on emulated servos whose replies begin to get lost, and diagnose that
    #[arg(long, value_enum)]
    pub rig: Option<HardwareRig>,

    /// Write that log to this file
    #[arg(long, value_name = "FILE", requires = "rig")]
    pub keep: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// Runs the program.
///
/// # Errors
/// [`Error::Io`] where there is no log to read, [`Error::Usage`] for `--rig real`.
pub fn run(args: &DiagnoseStallArgs) -> Result<Exit> {
    let (name, bytes) = match (&args.log, args.rig) {
        (Some(path), _) => {
            let file = log_file(path);
            let bytes = read(&file)?;
            (file.display().to_string(), bytes)
        }
        (None, Some(HardwareRig::Real)) => {
            return Err(Error::Usage(
                "--rig real: record with it, and give the dataset's folder to this program".to_owned(),
            ));
        }
        (None, _) => ("the emulated loop".to_owned(), emulated::log()?),
    };
    if let Some(path) = &args.keep {
        std::fs::write(path, &bytes).map_err(|source| Error::Io {
            what: "write the log to",
            path: path.clone(),
            source,
        })?;
    }
    let log = host::parse(&bytes);
    let found = diagnose(&log, &StallOptions::default());
    let text = if args.json { to_json(&name, &log, &found) } else { found.to_string() };
    cli::print_result(text.trim_end())?;
    if found.seconds == 0 {
        return Err(Error::Usage(format!(
            "there are no seconds of a loop in it: give a log that a recording or a control loop has written: {name}"
        )));
    }
    if found.cause.is_none() && args.verbosity.chatty() {
        say(&format!("looked at {} seconds of {name}", found.seconds));
    }
    Ok(if found.cause.is_some() { Exit::Failed } else { Exit::Ok })
}

/// The log of a dataset's folder, else the path itself.
fn log_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(LOG_OF_A_DATASET) } else { path.to_owned() }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let failed = |source| Error::Io { what: "read the log", path: file.to_owned(), source };
    let bytes = std::fs::metadata(file).map_err(failed)?.len();
    if bytes > MAX_LOG_BYTES {
        return Err(Error::Usage(format!(
            "{bytes} bytes are no log of a loop (at most {MAX_LOG_BYTES}): {}",
            file.display()
        )));
    }
    std::fs::read(file).map_err(failed)
}

fn to_json(name: &str, log: &ParsedLog, found: &Diagnosis) -> String {
    json!({ "log": name, "sessions": log.starts, "diagnosis": found }).to_string()
}
