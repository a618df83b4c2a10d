//! Command-line conventions of every example: results on stdout, logs and progress on stderr, one line an error.

use std::io::IsTerminal;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::error::{Error, Exit, Result};

/// How much an example tells on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Verbosity {
    /// Say more on stderr: -v what is done, -vv details, -vvv a line a frame (RUST_LOG overrides)
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// No progress, no tables: only errors on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

impl Verbosity {
    /// Whether tables and progress bars are wanted.
    #[must_use]
    pub fn chatty(self) -> bool {
        !self.quiet
    }

    /// Whether progress bars make sense: wanted, and somebody looks.
    #[must_use]
    pub fn bars(self) -> bool {
        self.chatty() && std::io::stderr().is_terminal()
    }

    fn level(self) -> LevelFilter {
        match (self.quiet, self.verbose) {
            (true, _) => LevelFilter::ERROR,
            (false, 0) => LevelFilter::WARN,
            (false, 1) => LevelFilter::INFO,
            (false, 2) => LevelFilter::DEBUG,
            (false, _) => LevelFilter::TRACE,
        }
    }
}

/// Runs an example: sets logging up, runs `body`, prints an error as one line and returns the exit code.
pub fn run(verbosity: Verbosity, body: impl FnOnce() -> Result<Exit>) -> ExitCode {
    let filter = EnvFilter::builder().with_default_directive(verbosity.level().into()).from_env_lossy();
    // A second subscriber in one process (tests) is harmless: the first one stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .try_init();
    match body() {
        Ok(exit) => exit.into(),
        Err(error) => {
            say(&format!("error: {}", error.one_line()));
            error.exit().into()
        }
    }
}

/// One line on stderr. A closed stderr is nobody's problem.
pub fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// One line on stdout, flushed, so that a program that reads us sees it at once.
///
/// # Errors
/// When stdout is closed: whoever read the result is gone.
pub fn result_line(line: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// The whole result of a program that only reports, on stdout. A reader that has gone away, such as `head`, is no
/// failure; a full disk behind stdout is.
///
/// # Errors
/// [`Error::Io`] when the result is lost.
pub fn print_result(text: &str) -> Result<()> {
    match result_line(text) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Io { what: "write the result to", path: "stdout".into(), source: e })
        }
        _ => Ok(()),
    }
}
