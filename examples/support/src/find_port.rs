//! The example `find_port`: which serial ports lead to arms, and to which ones.

mod known;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use so101_hal::bus::{Bus, ServoBus};
use so101_hal::discovery::{
    self, Discovery, Fingerprint, Likelihood, Match, Misplaced, PortEvent, PortInfo, PortWatch, adapter,
    identify, match_calibration,
};
use so101_hal::registers;
use so101_hal::serial::SerialPort;

use crate::cli::{self, Verbosity, result_line, say};
use crate::error::{Error, Exit, Result};
use crate::hardware::{self, HardwareRig, Pace};

pub use known::Known;

/// From one look at the ports to the next.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Command line of the program.
#[derive(Clone, Debug, Default, Args)]
pub struct FindPortArgs {
    /// Open each adapter and say which arm it leads to; reads only
    #[arg(long)]
    pub identify: bool,

    /// Say what is plugged in and out from now on, until Ctrl-C
    #[arg(long, conflicts_with = "identify")]
    pub watch: bool,

    /// End --watch after so many seconds
    #[arg(long, value_name = "S", requires = "watch")]
    pub seconds: Option<u64>,

    /// Print udev rules that give each arm a name of its own, and every user the right to open it
    #[arg(long, conflicts_with = "watch")]
    pub udev: bool,

    /// Tell of ports without a known adapter too
    #[arg(long)]
    pub all: bool,

    /// emulated: a port with emulated servos instead of this computer's
    #[arg(long, value_enum, conflicts_with = "watch")]
    pub rig: Option<HardwareRig>,

    /// Port where the follower should be
    #[arg(long, value_name = "PATH")]
    pub port: Option<String>,

    /// Name of the follower that should be at --port; with --rig emulated the arm that is emulated
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// Port where the leader should be
    #[arg(long, value_name = "PATH")]
    pub leader_port: Option<String>,

    /// Name of the leader that should be at --leader-port
    #[arg(long, value_name = "ID", requires = "leader_port")]
    pub leader_id: Option<String>,

    /// Folder whose calibration files are compared too, beside LeRobot's
    #[arg(long, value_name = "DIR")]
    pub calibration: Option<PathBuf>,

    /// Look at a copy of another computer's /sys, /dev and /proc
    #[arg(long, value_name = "DIR", conflicts_with_all = ["identify", "rig"])]
    pub root: Option<PathBuf>,

    /// Print one JSON object; with --watch one a line
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// A port and what was found out about it.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The port.
    #[serde(flatten)]
    pub port: PortInfo,
    /// How likely an arm is behind it, before it was asked.
    pub likelihood: Likelihood,
    /// The path to write down.
    pub use_path: String,
    /// What is to be done so that it can be opened.
    pub fix: Option<String>,
    /// What its servos hold; only after --identify.
    pub arm: Option<FoundArm>,
    /// Why it could not be asked.
    pub error: Option<String>,
}

/// The arm behind a port.
#[derive(Clone, Debug, Serialize)]
pub struct FoundArm {
    /// What its servos hold.
    pub fingerprint: Fingerprint,
    /// Servos that answered.
    pub answered: usize,
    /// Leader or follower, where its registers tell.
    pub role: Option<discovery::ArmRole>,
    /// The calibration file that it has.
    pub calibration: Match,
}

impl FoundArm {
    /// The name of the arm, where one file alone fits.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match &self.calibration {
            Match::Exact { ids } if ids.len() == 1 => ids.first().map(String::as_str),
            Match::Near { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// Runs the program.
///
/// # Errors
/// Usage errors; ports that cannot be opened are told, not errors.
pub fn run(args: &FindPortArgs) -> Result<Exit> {
    let discovery = args.root.as_ref().map_or_else(Discovery::system, Discovery::at);
    if args.watch {
        return watch(args, discovery);
    }
    let known = known::read(args.calibration.as_deref())?;
    let ports = look(args, &discovery, &known)?;
    let misplaced = misplaced(args, &discovery, &ports)?;
    let arms = ports.iter().filter(|p| p.arm.as_ref().map_or(p.is_candidate(), |a| a.answered > 0)).count();
    let text = if args.udev {
        report::udev(&ports)
    } else if args.json {
        json!({ "ports": ports, "misplaced": misplaced, "calibrations": known }).to_string()
    } else {
        report::text(&ports, &known, args.identify)
    };
    cli::print_result(text.trim_end())?;
    for arm in &misplaced {
        say(&report::misplaced(arm));
    }
    if args.verbosity.chatty() {
        report::hints(args, &ports).iter().for_each(|line| say(line));
    }
    Ok(if arms == 0 || !misplaced.is_empty() { Exit::Failed } else { Exit::Ok })
}

impl Found {
    fn new(port: PortInfo) -> Self {
        Self {
            likelihood: port.likelihood(),
            use_path: port.stable_path().to_owned(),
            fix: port.permission.fix(&port),
            port,
            arm: None,
            error: None,
        }
    }

    /// Whether an arm may be behind it.
    fn is_candidate(&self) -> bool {
        self.likelihood >= Likelihood::Possible
    }
}

/// The ports, identified where that was asked for.
fn look(args: &FindPortArgs, discovery: &Discovery, known: &[Known]) -> Result<Vec<Found>> {
    let names: Vec<(String, so101_hal::Calibration)> =
        known.iter().map(|k| (k.name(), k.calibration)).collect();
    if args.rig == Some(HardwareRig::Emulated) {
        let mut found = Found::new(emulated_port());
        let calibration = emulated_calibration(args, known)?;
        let mut open = hardware::emulated(&calibration, Pace::Virtual)?;
        if let Some(servos) = &open.servos {
            // As LeRobot leaves a follower.
            for joint in so101_hal::JOINTS {
                servos.set_register(joint, &registers::P_COEFFICIENT, 16)?;
            }
        }
        found.arm = Some(ask(open.bus.as_mut(), &names)?);
        return Ok(vec![found]);
    }
    let mut ports: Vec<Found> = discovery.ports().into_iter().map(Found::new).collect();
    // A port that was named belongs to the list, even one that no USB device is behind.
    for path in [&args.port, &args.leader_port].into_iter().flatten() {
        if !ports.iter().any(|p| names_port(&p.port, path)) && args.root.is_none() {
            let mut port = discovery.port(path).unwrap_or_else(|| PortInfo::new(path.clone()));
            port.permission = discovery.access(path);
            ports.push(Found::new(port));
        }
    }
    if args.identify {
        for found in &mut ports {
            let named = [&args.port, &args.leader_port]
                .into_iter()
                .flatten()
                .any(|path| names_port(&found.port, path));
            if named || found.is_candidate() {
                match open(discovery, &found.port).and_then(|mut bus| ask(bus.as_mut(), &names)) {
                    Ok(arm) => found.arm = Some(arm),
                    Err(error) => found.error = Some(error.one_line()),
                }
            }
        }
    }
    ports.retain(|p| args.all || p.is_candidate() || p.arm.is_some() || p.error.is_some());
    Ok(ports)
}

fn open(discovery: &Discovery, port: &PortInfo) -> Result<Box<dyn ServoBus>> {
    let opened = SerialPort::open(&port.path).map_err(|e| discovery::explain(discovery, e))?;
    Ok(Box::new(Bus::new(opened)))
}

/// Reads the fingerprint and compares it.
fn ask(bus: &mut dyn ServoBus, names: &[(String, so101_hal::Calibration)]) -> Result<FoundArm> {
    let fingerprint = identify(bus)?;
    Ok(FoundArm {
        fingerprint,
        answered: fingerprint.answered(),
        role: fingerprint.likely_role(),
        calibration: match_calibration(&fingerprint, names),
    })
}

/// Whether a path is this port, by node or by link.
fn names_port(port: &PortInfo, path: &str) -> bool {
    port.path == path
        || [&port.by_id, &port.by_path].into_iter().flatten().any(|link| link == path)
        || port.links.iter().any(|link| link == path)
}

/// What an emulated adapter would be.
fn emulated_port() -> PortInfo {
    let mut port = PortInfo::new("emulated");
    (port.vid, port.pid) = (Some(0x1a86), Some(0x55d3));
    port.serial = Some("EMULATED".to_owned());
    port.product = Some("emulated servos".to_owned());
    port.adapter = adapter(0x1a86, 0x55d3).copied();
    port.permission = discovery::PortAccess::Granted;
    port
}

/// The calibration that the emulated servos hold: that of --id where it is known, else the model's.
fn emulated_calibration(args: &FindPortArgs, known: &[Known]) -> Result<so101_hal::Calibration> {
    let Some(id) = &args.id else { return Ok(so101_hal::Calibration::model()) };
    let file = known.iter().find(|k| k.id == *id);
    file.map(|k| k.calibration).ok_or_else(|| {
        Error::Usage(format!("no calibration file of an arm '{id}': name its folder with --calibration"))
    })
}

/// Arms that were expected on a port and are not there.
fn misplaced(args: &FindPortArgs, discovery: &Discovery, ports: &[Found]) -> Result<Vec<Misplaced>> {
    if args.id.is_some() && args.port.is_none() && args.rig.is_none() {
        return Err(Error::Usage("--id says which arm should be at --port: give both".to_owned()));
    }
    let pairs = [(&args.port, &args.id), (&args.leader_port, &args.leader_id)];
    let expected: Vec<(&String, &String)> =
        pairs.iter().filter_map(|(p, i)| p.as_ref().zip(i.as_ref())).collect();
    if expected.is_empty() || args.rig == Some(HardwareRig::Emulated) {
        return Ok(Vec::new());
    }
    if !args.identify {
        return Err(Error::Usage("whether an arm is on its port is seen with --identify only".to_owned()));
    }
    let node = |path: &str| {
        let listed = ports.iter().find(|p| names_port(&p.port, path)).map(|p| p.port.path.clone());
        listed.or_else(|| Some(discovery.port(path)?.path)).unwrap_or_else(|| path.to_owned())
    };
    let expected: Vec<(String, &str)> = expected.iter().map(|(p, id)| (node(p), id.as_str())).collect();
    let expected: Vec<(&str, &str)> = expected.iter().map(|(p, id)| (p.as_str(), *id)).collect();
    let found: Vec<(&str, &str)> = ports
        .iter()
        .filter_map(|p| Some((p.port.path.as_str(), known::id_of(p.arm.as_ref()?.id()?))))
        .collect();
    Ok(discovery::misplaced(&expected, &found))
}

/// Prints what comes and goes.
fn watch(args: &FindPortArgs, discovery: Discovery) -> Result<Exit> {
    let mut watch = PortWatch::new(discovery);
    if args.verbosity.chatty() {
        say(&format!("{} ports; plug an arm in or out", watch.ports().len()));
    }
    let start = Instant::now();
    while args.seconds.is_none_or(|s| start.elapsed() < Duration::from_secs(s)) {
        for event in watch.poll() {
            let line = if args.json { json!(event).to_string() } else { event_line(&event) };
            result_line(&line).map_err(|source| Error::Io {
                what: "write the result to",
                path: "stdout".into(),
                source,
            })?;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(Exit::Ok)
}

fn event_line(event: &PortEvent) -> String {
    match event {
        PortEvent::Appeared { port } => {
            format!("appeared {} {}", port.path, report::kind(port)).trim_end().to_owned()
        }
        PortEvent::Vanished { port } => {
            format!("vanished {} {}", port.path, report::kind(port)).trim_end().to_owned()
        }
        PortEvent::Moved { from, port } => format!("moved {from} {} {}", port.path, report::kind(port)),
        other => format!("{other:?}"),
    }
}
