//! The command line of a recording program.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use so101_hal::Lux;

use crate::cli::Verbosity;
use crate::expert::LeftOf;
use crate::plan::Jitter;

/// The measured range of the lab; outside of it a run is possible and warned about.
pub const USUAL_LUX: std::ops::RangeInclusive<f64> = 25.0..=420.0;

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
    /// The arm on the USB port (not in this version)
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

/// Options of a recording.
#[derive(Clone, Debug, Args)]
#[command(args_override_self = true)]
pub struct RecordArgs {
    /// Which arm records
    #[arg(long, value_enum, default_value_t)]
    pub rig: RigChoice,

    /// Folder of the dataset [default: outputs/push_left, then -2, -3 ...]
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

    /// Object of the plan to be pushed
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

    #[command(flatten)]
    #[allow(missing_docs, reason = "clap would take it for the program's own description")]
    pub verbosity: Verbosity,
}

impl RecordArgs {
    /// Whether objects lie beside their marks.
    #[must_use]
    pub fn jitter(&self) -> Jitter {
        if self.no_jitter { Jitter::Off } else { Jitter::On }
    }
}

fn parse_lux(text: &str) -> Result<Lux, String> {
    let lux: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=100_000.0).contains(&lux) { Ok(Lux(lux)) } else { Err("not in 0 to 100000".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lux_takes_the_documented_range_and_nothing_else() {
        assert_eq!(parse_lux("300"), Ok(Lux(300.0)));
        assert_eq!(parse_lux("0"), Ok(Lux(0.0)));
        for bad in ["-1", "100001", "NaN", "inf", "bright"] {
            assert!(parse_lux(bad).is_err(), "{bad}");
        }
    }
}
