//! The example `diagnose`: what hangs on a servo bus, what is wrong with it, and what to do. Nothing is written.

mod dump;
mod findings;
mod scan;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use so101_hal::bus::ServoBus;
use so101_hal::discovery::Discovery;
use so101_hal::preflight::chain::{Answers, ErrorCause};
use so101_hal::preflight::port::PortFacts;
use so101_hal::preflight::{Check, Survey, Verdict, bus as preflight_bus, port as port_checks};
use so101_hal::registers::BaudRate;
use so101_hal::{Calibration, Clock, ServoId};

use crate::cli::{self, Verbosity};
use crate::error::{Error, Exit, Result};
use crate::hardware::{ArmArgs, Pace, Role, Where};

pub use findings::{Finding, Severity};
pub use scan::Heard;

/// Single pings and reads of each servo.
const PROBES: u32 = 20;

/// Command line of the program.
#[derive(Clone, Debug, Args)]
pub struct DiagnoseArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub arm: ArmArgs,

    /// Ask every id (253) at every baud rate, not only those up to 20: half a minute
    #[arg(long)]
    pub full: bool,

    /// Let the emulated servos misbehave, such as `drop 0.3 4`; may be given again (--rig emulated; `--fault help` lists the commands)
    #[arg(long, value_name = "COMMAND")]
    pub fault: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "as above")]
    pub verbosity: Verbosity,
}

/// Everything that was seen.
#[derive(Debug)]
pub struct Diagnosis {
    /// The port.
    pub port: String,
    /// Checks of the port, where it is one.
    pub port_checks: Vec<Check>,
    /// Who answered at which baud rate.
    pub heard: Vec<Heard>,
    /// How each of the six answered.
    pub answers: Vec<Answers>,
    /// The registers of those that answered.
    pub survey: Survey,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
}

/// Runs the program.
///
/// # Errors
/// Usage errors, and a port that cannot be opened at all.
pub fn run(args: &DiagnoseArgs) -> Result<Exit> {
    if crate::preflight::program::asks_for_help(&args.fault)? {
        return Ok(Exit::Ok);
    }
    let place = args.arm.place()?;
    crate::preflight::program::check_faults(&place, &args.fault)?;
    let port_checks = match &place {
        Where::Port(path) => port_checks(&PortFacts::look(&Discovery::system(), path)),
        Where::Emulated => Vec::new(),
    };
    if let Some(bad) = port_checks.iter().find(|c| c.verdict == Verdict::Fail) {
        return Err(Error::Refused(bad.to_string()));
    }
    let mut source = scan::Source::open(&args.arm, &args.fault)?;
    let heard = scan::every_rate(&mut source, if args.full { scan::Ids::All } else { scan::Ids::Near })?;
    let mut open = source.bus(BaudRate::M1, scan::Patience::Whole)?;
    let mut found = look(open.as_mut(), source.clock().as_ref(), &heard)?;
    found.port = source.name();
    found.port_checks = port_checks;
    let text = if args.json { found.to_json().to_string() } else { found.to_text() };
    cli::print_result(text.trim_end())?;
    let wrong = found.findings.iter().any(|f| f.severity == Severity::Fault);
    Ok(if wrong { Exit::Failed } else { Exit::Ok })
}

/// Looks at the six servos of an arm at the usual baud rate. `heard` is what a scan found.
///
/// # Errors
/// When the port is gone.
pub fn look(bus: &mut dyn ServoBus, clock: &dyn Clock, heard: &[Heard]) -> Result<Diagnosis> {
    let survey = Survey::read(bus, &Calibration::model())?;
    let answers = preflight_bus::probe(bus, &ServoId::ARM, clock, PROBES)?;
    let findings = findings::find(&survey, &answers, heard);
    Ok(Diagnosis {
        port: String::new(),
        port_checks: Vec::new(),
        heard: heard.to_vec(),
        answers,
        survey,
        findings,
    })
}

#[derive(Serialize)]
struct JsonAnswers {
    id: u8,
    asked: u32,
    missing: u32,
    damaged: u32,
    doubled: u32,
    cause: &'static str,
}

impl From<&Answers> for JsonAnswers {
    fn from(a: &Answers) -> Self {
        let (asked, missing, damaged, doubled) = (a.asked, a.missing, a.damaged, a.extra);
        Self { id: a.id.get(), asked, missing, damaged, doubled, cause: cause_name(a.cause()) }
    }
}

const fn cause_name(cause: ErrorCause) -> &'static str {
    match cause {
        ErrorCause::None => "ok",
        ErrorCause::Silent => "silent",
        ErrorCause::SharedId => "two servos share the id",
        _ => "bad contact",
    }
}

impl Diagnosis {
    /// As one JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "port": self.port,
            "port_checks": self.port_checks,
            "heard": self.heard,
            "answers": self.answers.iter().map(JsonAnswers::from).collect::<Vec<_>>(),
            "servos": dump::to_json(&self.survey),
            "findings": self.findings,
        })
    }

    /// For people: who answers, how well, every register, and what to do.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!("port {}\n", self.port);
        // Writing to a string cannot fail.
        for c in &self.port_checks {
            let _ = writeln!(out, "  {}  {}: {}", c.verdict, c.name(), c.value);
        }
        let _ = writeln!(out, "\nwho answers");
        for heard in &self.heard {
            let ids: Vec<String> = heard.ids.iter().map(ToString::to_string).collect();
            let ids = if ids.is_empty() { "nobody".to_owned() } else { ids.join(", ") };
            let _ = writeln!(out, "  {:>7} baud  {ids}", heard.baud);
        }
        let _ = writeln!(out, "\nreplies      asked  lost  damaged  doubled");
        for a in &self.answers {
            let _ = writeln!(
                out,
                "  servo {:<3}  {:>5} {:>5} {:>8} {:>8}  {}",
                a.id,
                a.asked,
                a.missing,
                a.damaged,
                a.extra,
                cause_name(a.cause())
            );
        }
        if self.survey.answering().next().is_some() {
            let _ = write!(out, "\n{}", dump::to_text(&self.survey));
        }
        let _ = writeln!(out, "\nfindings");
        for f in &self.findings {
            let _ = writeln!(out, "  {}  {}\n         -> {}", f.severity.mark(), f.what, f.todo);
        }
        if self.findings.is_empty() {
            let _ = writeln!(out, "  none: six servos answer, and their registers are what a follower needs");
        }
        out
    }
}

/// The bus of an arm, opened for the program's role.
fn open_arm(arm: &ArmArgs) -> Result<crate::hardware::OpenBus> {
    arm.open(Role::Follower, Pace::Virtual)
}
