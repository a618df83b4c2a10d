//! The command line of a recording program.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use so101_hal::Lux;
use so101_hal::preflight::Item;

use crate::cli::Verbosity;
use crate::error::{Error, Result};
use crate::expert::LeftOf;
use crate::hardware::{ArmArgs, HardwareRig};
use crate::plan::Jitter;

/// The measured range of the lab; outside of it a run is possible and warned about.
pub const USUAL_LUX: std::ops::RangeInclusive<f64> = 25.0..=420.0;

const REAL: &str = "Real arm";

/// Which arm records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RigChoice {
    /// The simulated arm where it is built in, else the emulated one; never a real arm
    #[default]
    Auto,
    /// Six emulated servos behind their real byte protocol, drawn cameras; needs nothing
    Emulated,
    /// MuJoCo (a build with `--features sim`)
    Sim,
    /// The arm on a serial port; needs --teleop
    Real,
}

/// Whose left the task means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LeftChoice {
    /// The robot's own: +y of its base
    #[default]
    Robot,
    /// That of the camera which faces it: -y of its base
    Camera,
}

impl From<LeftChoice> for LeftOf {
    fn from(choice: LeftChoice) -> Self {
        match choice {
            LeftChoice::Robot => Self::Robot,
            LeftChoice::Camera => Self::Camera,
        }
    }
}

/// Who drives the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TeleopChoice {
    /// A leader arm that somebody moves
    Leader,
    /// Keys that move the hand
    Keyboard,
    /// A script: the file of --script, or a visit of the object's place that does nothing there
    Scripted,
    /// The demonstrator of push-left
    Expert,
}

impl TeleopChoice {
    /// Whether somebody has to be there in real time.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Leader | Self::Keyboard)
    }
}

/// How a real arm is left at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EndChoice {
    /// At the plan's home, torque off: it sinks from there
    #[default]
    Relax,
    /// Where it is, torque on, until the power goes
    Hold,
}

/// Options of a recording.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
pub struct RecordArgs {
    /// Which arm records [default: auto; real where a --port is given]
    #[arg(long, value_enum)]
    pub rig: Option<RigChoice>,

    /// Folder of the dataset [default: outputs/ and the plan's name, then -2, -3 ...]
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,

    /// Episodes that the set shall have in the end [default: all of the plan]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episodes: Option<u32>,

    /// Rows and pictures a second, 1 to 120
    #[arg(long, value_name = "HZ", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=120))]
    pub fps: u32,

    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// Go on with an existing set until it has N episodes
    #[arg(long)]
    pub resume: bool,

    /// Illuminance at the table, stored with every episode (0 to 100000)
    #[arg(long, value_name = "LUX", value_parser = parse_lux)]
    pub lux: Option<Lux>,

    /// Object of the plan to be used
    #[arg(long, value_name = "NAME")]
    pub object: Option<String>,

    /// Whose left the task means
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    pub left_of: LeftChoice,

    /// Put the object exactly on the plan's marks (policies trained on fixed marks are brittle)
    #[arg(long)]
    pub no_jitter: bool,

    /// Another plan than the built-in one
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,

    /// Another instruction than the plan's
    #[arg(long, value_name = "SENTENCE")]
    pub task: Option<String>,

    /// An episode ends after this time at the latest [default: the plan's]
    #[arg(long, value_name = "SECONDS")]
    pub episode_s: Option<f64>,

    /// Who drives the arm [default: the plan's demonstrator; a real arm has none]
    #[arg(long, value_enum, value_name = "WHO")]
    pub teleop: Option<TeleopChoice>,

    /// Waypoints for --teleop scripted, as JSON
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,

    /// Name of the set on a hub, USER/NAME: outputs/NAME is the default folder then
    #[arg(long, value_name = "USER/NAME")]
    pub repo_id: Option<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub real: RealArgs,

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

/// Options that concern an arm in real time.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = REAL)]
pub struct RealArgs {
    /// Serial port of the arm, such as /dev/ttyACM0 [default: the only servo bus adapter that is plugged in]
    #[arg(long, value_name = "PATH")]
    pub port: Option<String>,

    /// Name of the arm: its calibration is looked for where LeRobot keeps it, as ID.json
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// Calibration file of the arm, or the folder that has ID.json
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    /// Cameras: a TOML file, LeRobot's "{ front: {type: opencv, ...} }", or synthetic [default: none]
    #[arg(long, value_name = "CAMERAS")]
    pub cameras: Option<String>,

    /// Serial port of the leader arm
    #[arg(long, value_name = "PATH")]
    pub leader_port: Option<String>,

    /// Name of the leader arm
    #[arg(long, value_name = "ID")]
    pub leader_id: Option<String>,

    /// Calibration file of the leader arm, or the folder that has ID.json
    #[arg(long, value_name = "FILE")]
    pub leader_calibration: Option<PathBuf>,

    /// The most that a goal may differ from the present position, degrees (of the gripper: percent)
    #[arg(long, value_name = "DEGREES")]
    pub max_relative_target: Option<f64>,

    /// Cycles of the bus a second
    #[arg(long, value_name = "HZ", default_value_t = 150.0)]
    pub bus_hz: f64,

    /// Speed of the way to the plan's home, degrees a second
    #[arg(long, value_name = "DEG_S", default_value_t = 30.0)]
    pub home_speed: f64,

    /// Begin each episode this long after the arm is home, without waiting for a key
    #[arg(long, value_name = "SECONDS", value_parser = parse_reset_s)]
    pub reset_s: Option<f64>,

    /// Pre-flight items that may fail, by their ids, such as bus_p99,camera_jitter on a busy computer
    #[arg(long, value_name = "ITEMS", value_delimiter = ',', value_parser = parse_item)]
    pub accept: Vec<Item>,

    /// Ask after each episode whether it succeeded (keys y and n)
    #[arg(long)]
    pub judge: bool,

    /// How the arm is left at the end
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub at_end: EndChoice,

    /// Move the arm without asking before
    #[arg(long, short)]
    pub yes: bool,
}

impl RealArgs {
    /// The follower, on this rig.
    #[must_use]
    pub fn follower(&self, rig: HardwareRig) -> ArmArgs {
        ArmArgs {
            rig: Some(rig),
            port: self.port.clone(),
            id: self.id.clone(),
            calibration: self.calibration.clone(),
        }
    }

    /// The leader.
    #[must_use]
    pub fn leader(&self) -> ArmArgs {
        ArmArgs {
            rig: Some(HardwareRig::Real),
            port: self.leader_port.clone(),
            id: self.leader_id.clone(),
            calibration: self.leader_calibration.clone(),
        }
    }
}

impl RecordArgs {
    /// Whether objects lie beside their marks.
    #[must_use]
    pub fn jitter(&self) -> Jitter {
        if self.no_jitter { Jitter::Off } else { Jitter::On }
    }

    /// Which arm is meant. A port is a real arm's: who gives one has named the arm.
    ///
    /// # Errors
    /// [`Error::Usage`] where a port is given to another rig.
    pub fn rig_choice(&self) -> Result<RigChoice> {
        match (self.rig, &self.real.port) {
            (Some(RigChoice::Real), _) | (None, Some(_)) => Ok(RigChoice::Real),
            (rig, None) => Ok(rig.unwrap_or_default()),
            (Some(_), Some(port)) => {
                Err(Error::Usage(format!("--port {port} is for --rig real: leave one of them away")))
            }
        }
    }

    /// What the folder is called where nobody says so: after the set's name on a hub, or after the plan.
    #[must_use]
    pub fn default_out(&self) -> PathBuf {
        let of_hub = self.repo_id.as_deref().and_then(|id| id.rsplit('/').next()).map(str::to_owned);
        let of_plan = || Some(self.plan.as_ref()?.file_stem()?.to_string_lossy().into_owned());
        let usable = |name: &String| !name.is_empty() && !name.starts_with('.');
        let name = of_hub.or_else(of_plan).filter(usable).unwrap_or_else(|| "push_left".to_owned());
        PathBuf::from("outputs").join(name)
    }
}

fn parse_lux(text: &str) -> std::result::Result<Lux, String> {
    let lux: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=100_000.0).contains(&lux) { Ok(Lux(lux)) } else { Err("not in 0 to 100000".to_owned()) }
}

fn parse_reset_s(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=86_400.0).contains(&seconds) { Ok(seconds) } else { Err("not in 0 to 86400".to_owned()) }
}

fn parse_item(text: &str) -> std::result::Result<Item, String> {
    if let Some(item) = Item::ALL.iter().find(|i| i.id() == text) {
        return Ok(*item);
    }
    let nearest = Item::ALL.iter().map(|i| i.id()).min_by_key(|id| strsim::damerau_levenshtein(id, text));
    Err(format!("no item of the pre-flight; the nearest is {}", nearest.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        record: RecordArgs,
    }

    fn parsed(line: &[&str]) -> RecordArgs {
        let line = std::iter::once("record").chain(line.iter().copied());
        <Cli as clap::Parser>::try_parse_from(line).unwrap().record
    }

    #[test]
    fn lux_takes_the_documented_range_and_nothing_else() {
        assert_eq!(parse_lux("300"), Ok(Lux(300.0)));
        assert_eq!(parse_lux("0"), Ok(Lux(0.0)));
        for bad in ["-1", "100001", "NaN", "inf", "bright"] {
            assert!(parse_lux(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_reset_time_is_a_number_of_seconds() {
        assert_eq!(parse_reset_s("0"), Ok(0.0));
        for bad in ["-1", "NaN", "inf", "1e9", "soon"] {
            assert!(parse_reset_s(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn accepted_items_are_known_ones() {
        assert_eq!(parsed(&["--accept", "bus_p99,lux"]).real.accept, [Item::BusP99, Item::Lux]);
        assert_eq!(parse_item("bus_p9").unwrap_err(), "no item of the pre-flight; the nearest is bus_p99");
    }

    #[test]
    fn a_set_without_a_folder_is_named_after_its_hub_name_or_its_plan() {
        let out = |line: &[&str]| parsed(line).default_out().display().to_string();
        assert_eq!(out(&[]), "outputs/push_left");
        assert_eq!(out(&["--plan", "tasks/pick_place.toml"]), "outputs/pick_place");
        assert_eq!(out(&["--plan", "tasks/stack.toml", "--repo-id", "lab/cubes"]), "outputs/cubes");
        assert_eq!(out(&["--repo-id", "lab/"]), "outputs/push_left");
    }

    #[test]
    fn a_port_names_the_real_arm_and_auto_never_means_one() {
        let rig = |line: &[&str]| parsed(line).rig_choice();
        assert_eq!(rig(&[]).unwrap(), RigChoice::Auto);
        assert_eq!(rig(&["--rig", "sim"]).unwrap(), RigChoice::Sim);
        assert_eq!(rig(&["--port", "/dev/x"]).unwrap(), RigChoice::Real);
        assert_eq!(rig(&["--rig", "real"]).unwrap(), RigChoice::Real);
        for other in ["auto", "emulated", "sim"] {
            assert!(matches!(rig(&["--rig", other, "--port", "/dev/x"]), Err(Error::Usage(_))), "{other}");
        }
    }

    #[test]
    fn a_pasted_command_line_of_lerobot_means_the_same_here() {
        use crate::dotted::{DATASET, ROBOT, TELEOP, translate};
        let line = [
            "record",
            "--robot.type=so101_follower",
            "--robot.port=/dev/ttyACM1",
            "--robot.id=arm",
            "--robot.cameras={ front: {type: opencv, index_or_path: 0, width: 640, height: 480, fps: 30}}",
            "--robot.max_relative_target=8",
            "--teleop.type=so101_leader",
            "--teleop.port=/dev/ttyACM0",
            "--teleop.id=hand",
            "--display_data=true",
            "--dataset.repo_id=lab/cubes",
            "--dataset.num_episodes=5",
            "--dataset.single_task=Grab the cube",
            "--dataset.episode_time_s=20",
            "--dataset.reset_time_s=10",
            "--dataset.push_to_hub=false",
        ];
        let line =
            translate::<Cli>(line.iter().map(std::ffi::OsString::from), &[ROBOT, TELEOP, DATASET]).unwrap();
        let args = <Cli as clap::Parser>::try_parse_from(line).unwrap().record;
        assert_eq!(args.teleop, Some(TeleopChoice::Leader));
        let (follower, leader) = (args.real.follower(HardwareRig::Real), args.real.leader());
        assert_eq!((follower.port.as_deref(), follower.id.as_deref()), (Some("/dev/ttyACM1"), Some("arm")));
        assert_eq!((leader.port.as_deref(), leader.id.as_deref()), (Some("/dev/ttyACM0"), Some("hand")));
        assert_eq!((args.episodes, args.episode_s, args.real.reset_s), (Some(5), Some(20.0), Some(10.0)));
        assert_eq!((args.task.as_deref(), args.real.max_relative_target), (Some("Grab the cube"), Some(8.0)));
        assert!(args.real.cameras.unwrap().contains("opencv"));
    }
}
