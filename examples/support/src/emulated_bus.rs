//! The example `emulated_bus`: emulated servos on a pseudo-terminal, told what to do by lines on stdin.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;

use clap::Args;
use so101_hal::emulator::pty::PtyFrontEnd;
use so101_hal::emulator::{COMMANDS, WireTiming};
use so101_hal::{Calibration, EmulatedServos, EmulatorOptions, JOINTS, Rounding, SystemClock, registers};

use crate::cli::{Verbosity, result_line, say};
use crate::error::{Error, Exit, Result};
use crate::hardware;

/// Options of the example.
#[derive(Clone, Debug, Args)]
pub struct EmulatedBusArgs {
    /// A symbolic link that leads to the port; stays the same over `unplug` and `replug`
    #[arg(long, value_name = "PATH")]
    pub link: Option<PathBuf>,

    /// Bytes take their time on the wire, and servos their return delay
    #[arg(long)]
    pub wire: bool,

    /// Ids of the servos, in the order of the joints; fewer than six leave the last joints out
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(0..=253))]
    pub ids: Vec<u8>,

    /// Firmware of all servos
    #[arg(long, value_name = "MAJOR.MINOR", default_value = "3.10", value_parser = parse_firmware)]
    pub fw: (u8, u8),

    /// Homing offsets and limits that the servos have in their EEPROM [default: as from the factory]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    /// Seed of the faults
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// What follows the options in the help.
#[must_use]
pub fn after_help() -> String {
    format!("Lines on stdin:\n  {}\n  quit", COMMANDS.replace('\n', "\n  "))
}

fn parse_firmware(text: &str) -> Result<(u8, u8), String> {
    let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts.ok_or_else(|| "not two numbers such as 3.10".to_owned())
}

/// What the program waits for.
enum Event {
    /// A line on stdin.
    Line(String),
    /// Ctrl-C or SIGTERM.
    Signal,
}

/// Serves until `quit`, Ctrl-C or SIGTERM.
///
/// # Errors
/// When there is no pseudo-terminal, when the link's place is taken, and for a bad calibration.
pub fn run(args: &EmulatedBusArgs) -> Result<Exit> {
    let (send, events) = channel();
    let signals = send.clone();
    // A second signal finds the program ending already.
    ctrlc::set_handler(move || drop(signals.send(Event::Signal)))
        .map_err(|e| Error::Refused(format!("no handler for Ctrl-C: {e}")))?;
    let servos = servos(args)?;
    let front_end = match PtyFrontEnd::serve(servos.clone(), args.link.as_deref()) {
        Err(so101_hal::Error::Pty { doing: "take the place of", path, .. }) => {
            return Err(Error::Refused(format!(
                "something is at the link's place, perhaps another emulated bus; choose another --link or remove it: {path}"
            )));
        }
        other => other?,
    };
    result_line(&format!("ready {}", front_end.path())).map_err(stdout_closed)?;
    if args.verbosity.chatty() {
        say(&format!("emulated servos at {}; help lists commands, Ctrl-C ends", front_end.path()));
    }
    // The end of stdin only means that nobody commands any more: the servos stay.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
            if send.send(Event::Line(line)).is_err() {
                return;
            }
        }
    });
    loop {
        match events.recv() {
            Ok(Event::Line(line)) if line.trim() == "quit" => return Ok(Exit::Ok),
            Ok(Event::Line(line)) => answer(&servos, &line)?,
            Ok(Event::Signal) | Err(_) => return Ok(Exit::Interrupted),
        }
    }
}

fn answer(servos: &EmulatedServos, line: &str) -> Result<()> {
    let reply = match servos.command(line) {
        Ok(text) if text.is_empty() => "ok".to_owned(),
        Ok(text) => format!("{text}\nok"),
        Err(error) => format!("error {error}"),
    };
    result_line(&reply).map_err(stdout_closed)
}

fn servos(args: &EmulatedBusArgs) -> Result<EmulatedServos> {
    let mut options = EmulatorOptions::default();
    options.firmware = args.fw;
    options.seed = args.seed;
    options.wire = if args.wire { WireTiming::AtBaud } else { WireTiming::Instant };
    let calibration: Option<Calibration> = args.calibration.as_deref().map(hardware::load).transpose()?;
    if let Some(calibration) = &calibration {
        let middle = so101_hal::JointVector { gripper: so101_hal::Percent(50.0), ..Default::default() };
        options.start = calibration.to_ticks(&middle, Rounding::Nearest)?;
        for (start, c) in options.start.iter_mut().zip(calibration.joints()) {
            // The encoder counts before the offset.
            start.0 += c.homing_offset;
        }
    }
    let servos = EmulatedServos::new(Arc::new(SystemClock::new()), options);
    if let Some(calibration) = &calibration {
        servos.store_calibration(calibration)?;
    }
    if !args.ids.is_empty() {
        if args.ids.len() > JOINTS.len() {
            return Err(Error::Usage(format!("--ids has {} ids, an arm has six servos", args.ids.len())));
        }
        for joint in JOINTS {
            match args.ids.get(joint.index()) {
                Some(id) => servos.set_register(joint, &registers::ID, (*id).into())?,
                None => servos.detach(joint),
            }
        }
    }
    Ok(servos)
}

fn stdout_closed(source: std::io::Error) -> Error {
    Error::Io { what: "write to", path: "stdout".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_firmware_and_calibration_are_those_of_the_servos() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("arm.json");
        std::fs::write(&file, serde_json::to_string(&Calibration::model()).unwrap()).unwrap();
        let args = EmulatedBusArgs {
            link: None,
            wire: false,
            ids: vec![1, 9],
            fw: (3, 9),
            calibration: Some(file),
            seed: 1,
            verbosity: Verbosity::default(),
        };
        let servos = servos(&args).unwrap();
        assert_eq!(servos.command("get 2 ID").unwrap(), "9");
        assert_eq!(servos.command("get 1 Firmware_Minor_Version").unwrap(), "9");
        use so101_hal::bus::ServoBus as _;
        let mut bus = servos.bus();
        let answers =
            |bus: &mut so101_hal::EmulatedBus, id| bus.ping(so101_hal::ServoId::new(id).unwrap()).is_ok();
        assert!(answers(&mut bus, 9) && !answers(&mut bus, 2) && !answers(&mut bus, 3));
        let limits = Calibration::model();
        let min = limits.joints().first().unwrap().range_min.to_string();
        assert_eq!(servos.command("get 1 Min_Position_Limit").unwrap(), min);
    }

    #[test]
    fn a_firmware_is_two_numbers() {
        assert_eq!(parse_firmware("3.10"), Ok((3, 10)));
        assert!(parse_firmware("3").is_err() && parse_firmware("3.x").is_err());
    }
}
