//! Which arm a program talks to: one on a serial port, or six emulated servos behind the same bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use so101_hal::bus::{Bus, ServoBus};
use so101_hal::calibration::Folders;
use so101_hal::discovery::{Discovery, Likelihood, explain};
use so101_hal::serial::SerialPort;
use so101_hal::{
    Calibration, Clock, EmulatedServos, EmulatorOptions, JointVector, Rounding, SystemClock, VirtualClock,
};

use crate::cli::say;
use crate::error::{Error, Result};

/// Where the servos of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HardwareRig {
    /// Six emulated servos behind their real byte protocol; needs nothing
    Emulated,
    /// The arm on a serial port
    Real,
}

/// Which of the two arms of a pair: each has calibration files of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Role {
    /// The arm that works
    #[default]
    Follower,
    /// The arm that a hand moves
    Leader,
}

impl Role {
    /// `follower` or `leader`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Follower => "follower",
            Self::Leader => "leader",
        }
    }
}

impl From<Role> for so101_hal::calibration::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Follower => Self::Follower,
            Role::Leader => Self::Leader,
        }
    }
}

/// How time passes for emulated servos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the program asks: for programs that only look.
    Virtual,
    /// As on a real arm: for programs that somebody watches.
    RealTime,
}

/// Command line of a program that talks to one arm.
#[derive(Clone, Debug, Default, Args)]
pub struct ArmArgs {
    /// Emulated servos, or the arm on a port [default: real where a port is given or found]
    #[arg(long, value_enum)]
    pub rig: Option<HardwareRig>,

    /// Serial port of the arm, such as /dev/ttyACM0 [default: the only servo bus adapter that is plugged in]
    #[arg(long, value_name = "PATH")]
    pub port: Option<String>,

    /// Name of the arm: its calibration is looked for where LeRobot keeps it, as ID.json
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// Calibration file of the arm, or the folder that has ID.json
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
}

/// A bus that is open.
#[non_exhaustive]
pub struct OpenBus {
    /// The servos.
    pub bus: Box<dyn ServoBus>,
    /// What stands behind an emulated bus.
    pub servos: Option<EmulatedServos>,
    /// The clock that control loops on this arm sleep on.
    pub clock: Arc<dyn Clock>,
    /// The port's path, or `emulated`.
    pub name: String,
}

impl std::fmt::Debug for OpenBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenBus").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The arm that the command line means, before anything is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// Emulated servos.
    Emulated,
    /// A serial port.
    Port(String),
}

impl ArmArgs {
    /// Decides which arm is meant, and says so where the command line leaves it open.
    ///
    /// # Errors
    /// [`Error::Usage`] where no adapter, or more than one, is plugged in and none was named.
    pub fn place(&self) -> Result<Where> {
        match (self.rig, &self.port) {
            (Some(HardwareRig::Emulated), Some(port)) => Err(Error::Usage(format!(
                "--rig emulated has no port, but --port {port} was given: leave one of them away"
            ))),
            (Some(HardwareRig::Emulated), None) => Ok(Where::Emulated),
            (_, Some(port)) => Ok(Where::Port(port.clone())),
            (_, None) => match adapters().as_slice() {
                [port] => {
                    say(&format!("port: {port}, the only servo bus adapter that is plugged in"));
                    Ok(Where::Port(port.clone()))
                }
                [] => Err(Error::Usage(
                    "no servo bus adapter is plugged in: plug it in, name its port with --port, or try this \
                     program with --rig emulated"
                        .to_owned(),
                )),
                several => Err(Error::Usage(format!(
                    "several adapters are plugged in, name one with --port: {}",
                    several.join(", ")
                ))),
            },
        }
    }

    /// Opens the bus. On emulated servos this arm's calibration is stored, as on an arm that was calibrated.
    ///
    /// # Errors
    /// As [`Self::place`] and [`Self::calibration`], and what opening the port may say.
    pub fn open(&self, role: Role, pace: Pace) -> Result<OpenBus> {
        match self.place()? {
            Where::Emulated => {
                let (calibration, _) = self.calibration(role)?;
                emulated(&calibration, pace)
            }
            Where::Port(port) => Ok(OpenBus {
                bus: Box::new(Bus::new(open_port(&port)?)),
                servos: None,
                clock: Arc::new(SystemClock::new()),
                name: port,
            }),
        }
    }

    /// The arm's calibration and the file that it came from; `None` = the model's, of an emulated arm.
    ///
    /// # Errors
    /// [`Error::Usage`] where a real arm has no calibration, and [`Error::Calibration`] where its file is no good.
    pub fn calibration(&self, role: Role) -> Result<(Calibration, Option<PathBuf>)> {
        let file = match (&self.calibration, &self.id) {
            (Some(path), Some(id)) if path.is_dir() => path.join(format!("{id}.json")),
            (Some(path), None) if path.is_dir() => {
                return Err(Error::Usage(format!(
                    "--calibration is a folder: name the arm with --id, or the file: {}",
                    path.display()
                )));
            }
            (Some(path), _) => path.clone(),
            (None, Some(id)) => find(id, role)?,
            (None, None) if self.place()? == Where::Emulated => return Ok((Calibration::model(), None)),
            (None, None) => {
                return Err(Error::Usage(format!(
                    "which arm is this? Give --id NAME or --calibration FILE of the {}; a new arm is calibrated with the \
                     calibrate example",
                    role.name()
                )));
            }
        };
        Ok((load(&file)?, Some(file)))
    }
}

/// Opens a serial port; an error says who holds it, or which group or rule is missing.
///
/// # Errors
/// What keeps it from being opened.
pub fn open_port(path: &str) -> Result<SerialPort> {
    Ok(SerialPort::open(path).map_err(|error| explain(&Discovery::system(), error))?)
}

/// Six emulated servos with this calibration, at the middle of their ranges.
///
/// # Errors
/// Numbers of the calibration that fit no register.
pub fn emulated(calibration: &Calibration, pace: Pace) -> Result<OpenBus> {
    let clock: Arc<dyn Clock> = match pace {
        Pace::Virtual => Arc::new(VirtualClock::new()),
        Pace::RealTime => Arc::new(SystemClock::new()),
    };
    let mut options = EmulatorOptions::default();
    let middle = JointVector { gripper: so101_hal::Percent(50.0), ..JointVector::default() };
    options.start = calibration.to_ticks(&middle, Rounding::Nearest)?;
    for (start, c) in options.start.iter_mut().zip(calibration.joints()) {
        // The encoder counts before the homing offset.
        start.0 = start.0.saturating_add(c.homing_offset);
    }
    let servos = EmulatedServos::new(Arc::clone(&clock), options);
    servos.store_calibration(calibration)?;
    Ok(OpenBus { bus: Box::new(servos.bus()), servos: Some(servos), clock, name: "emulated".to_owned() })
}

/// Reads a calibration file.
///
/// # Errors
/// What is wrong with the file.
pub fn load(file: &Path) -> Result<Calibration> {
    Ok(Calibration::load(file)?)
}

/// Where LeRobot keeps the calibration of this arm; says so when older versions of LeRobot left others.
fn find(id: &str, role: Role) -> Result<PathBuf> {
    let found = Folders::from_env()?.find(id, role.into())?;
    if let Some(other) = found.others.first() {
        say(&format!("calibration: {}, the newest; {} is older", found.path.display(), other.display()));
    }
    Ok(found.path)
}

/// Adapters of the kinds that sit on servo boards, by the path that stays the same where there is one.
#[must_use]
pub fn adapters() -> Vec<String> {
    let ports = Discovery::system().ports();
    let likely = ports.into_iter().filter(|p| p.likelihood() == Likelihood::Likely);
    likely.map(|p| p.path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_arm_needs_nothing_and_answers() {
        let args = ArmArgs { rig: Some(HardwareRig::Emulated), ..ArmArgs::default() };
        let mut open = args.open(Role::Follower, Pace::Virtual).unwrap();
        assert_eq!(open.name, "emulated");
        assert!(open.bus.ping(so101_hal::ServoId::new(6).unwrap()).unwrap().is_empty());
    }

    #[test]
    fn a_port_and_the_emulator_exclude_each_other() {
        let args =
            ArmArgs { rig: Some(HardwareRig::Emulated), port: Some("/dev/x".into()), ..ArmArgs::default() };
        assert!(matches!(args.place(), Err(Error::Usage(_))));
    }

    #[test]
    fn a_folder_of_calibrations_needs_the_name_of_the_arm() {
        let dir = tempfile::tempdir().unwrap();
        let mut args = ArmArgs { calibration: Some(dir.path().to_owned()), ..ArmArgs::default() };
        assert!(matches!(args.calibration(Role::Leader), Err(Error::Usage(_))));
        let text = serde_json::to_string(&Calibration::model()).unwrap();
        std::fs::write(dir.path().join("arm.json"), text).unwrap();
        args.id = Some("arm".to_owned());
        let (found, file) = args.calibration(Role::Leader).unwrap();
        assert_eq!(found, Calibration::model());
        assert_eq!(file.as_deref(), Some(dir.path().join("arm.json").as_path()));
    }
}
