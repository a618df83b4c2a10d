//! Which robot records: the real arm, the simulated arm and the emulated arm behind one trait.

use std::sync::Arc;

use clap::ValueEnum;
use so101_hal::arm::inspect;
use so101_hal::{Calibration, Clock, Degrees, JointVector, Lux, Robot};

use crate::cli::{Verbosity, say};
use crate::error::{Error, Result};
use crate::expert::LeftOf;
use crate::plan::{EpisodeSetup, Plan};
use crate::preflight::Check;
use crate::rig::{EmulatedRig, Pictures};

use super::args::RigChoice;

/// A robot with what recording needs beyond observing and acting.
pub trait Rig: Robot {
    /// The clock that this rig lives on: the loop sleeps on it.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Brings the scene and the arm to the start of an episode.
    ///
    /// # Errors
    /// When the arm cannot be moved there.
    fn start(&mut self, setup: &EpisodeSetup) -> Result<()>;

    /// Brings the arm to `joints` at rest, clamped to its limits, and the scene to the start of `setup`; `None` is for
    /// a rig that was opened with [`Scenery::Empty`].
    ///
    /// # Errors
    /// When the arm cannot be moved there, or this rig was opened for the other scenery.
    fn start_at(&mut self, joints: &JointVector<Degrees>, setup: Option<&EpisodeSetup>) -> Result<()>;

    /// Pings and register reads of every servo; nothing for a rig without a bus.
    ///
    /// # Errors
    /// When the bus itself is gone; a missing servo is a failed check.
    fn servo_checks(&mut self) -> Result<Vec<Check>>;

    /// Whether the task succeeded; `None` where nobody can judge.
    ///
    /// # Errors
    /// When the simulation has diverged.
    fn success(&mut self) -> Result<Option<bool>>;

    /// Illuminance that the scene declares; `None` leaves it to the command line.
    fn scene_lux(&self) -> Option<Lux>;
}

/// Opens the rig that `choice` names. `Auto` never energises hardware: it says when it sees an arm.
///
/// # Errors
/// [`Error::Usage`] for a rig that this build does not have.
pub fn open(
    choice: RigChoice,
    fps: u32,
    plan: &Plan,
    left_of: LeftOf,
    verbosity: Verbosity,
) -> Result<Box<dyn Rig>> {
    match choice {
        RigChoice::Auto => {
            let (name, rig) = automatic(fps, plan, left_of)?;
            if verbosity.chatty() {
                say(&format!("rig: {name}"));
                for port in arm_ports() {
                    say(&format!(
                        "a servo bus adapter is plugged in at {port} and stays untouched: --rig real is for it"
                    ));
                }
            }
            Ok(rig)
        }
        RigChoice::Emulated => emulated(plan, left_of),
        RigChoice::Sim => sim(fps, plan, left_of),
        RigChoice::Real => Err(Error::Usage(
            "--rig real: this version has no driver for a whole real arm, use --rig sim or --rig emulated"
                .to_owned(),
        )),
    }
}

/// What stands around an arm that nobody looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Scenery {
    /// Nothing: the arm moves in free space
    #[default]
    Empty,
    /// The table and the object of the plan
    Task,
}

/// Opens a rig without cameras, for motion alone.
///
/// # Errors
/// As [`open`].
pub fn open_blind(
    choice: RigChoice,
    fps: u32,
    plan: &Plan,
    left_of: LeftOf,
    scenery: Scenery,
) -> Result<Box<dyn Rig>> {
    match choice {
        RigChoice::Auto if cfg!(feature = "sim") => blind_sim(fps, plan, left_of, scenery),
        RigChoice::Sim => blind_sim(fps, plan, left_of, scenery),
        RigChoice::Auto | RigChoice::Emulated => {
            Ok(Box::new(EmulatedRig::new(plan, left_of, Pictures::Off)?))
        }
        RigChoice::Real => {
            Err(Error::Usage("--rig real: a recording is replayed on sim or emulated".to_owned()))
        }
    }
}

#[cfg(feature = "sim")]
fn blind_sim(fps: u32, plan: &Plan, left_of: LeftOf, scenery: Scenery) -> Result<Box<dyn Rig>> {
    use crate::sim_rig::SimRig;
    Ok(Box::new(match scenery {
        Scenery::Empty => SimRig::empty(fps)?,
        Scenery::Task => SimRig::new(plan, fps, left_of, Pictures::Off)?,
    }))
}

#[cfg(not(feature = "sim"))]
fn blind_sim(fps: u32, plan: &Plan, left_of: LeftOf, _scenery: Scenery) -> Result<Box<dyn Rig>> {
    sim(fps, plan, left_of)
}

fn emulated(plan: &Plan, left_of: LeftOf) -> Result<Box<dyn Rig>> {
    Ok(Box::new(EmulatedRig::new(plan, left_of, Pictures::On)?))
}

#[cfg(not(feature = "sim"))]
fn automatic(_fps: u32, plan: &Plan, left_of: LeftOf) -> Result<(&'static str, Box<dyn Rig>)> {
    Ok(("emulated (six servos behind their byte protocol, drawn cameras)", emulated(plan, left_of)?))
}

#[cfg(feature = "sim")]
fn automatic(fps: u32, plan: &Plan, left_of: LeftOf) -> Result<(&'static str, Box<dyn Rig>)> {
    Ok(("sim (MuJoCo)", sim(fps, plan, left_of)?))
}

#[cfg(not(feature = "sim"))]
fn sim(_fps: u32, _plan: &Plan, _left_of: LeftOf) -> Result<Box<dyn Rig>> {
    Err(Error::Usage(
        "--rig sim: this build has no MuJoCo, use --rig emulated or build with --features sim".to_owned(),
    ))
}

#[cfg(feature = "sim")]
fn sim(fps: u32, plan: &Plan, left_of: LeftOf) -> Result<Box<dyn Rig>> {
    Ok(Box::new(crate::sim_rig::SimRig::new(plan, fps, left_of, Pictures::On)?))
}

impl Rig for EmulatedRig {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock())
    }

    fn start(&mut self, setup: &EpisodeSetup) -> Result<()> {
        self.reset(setup)
    }

    fn start_at(&mut self, joints: &JointVector<Degrees>, setup: Option<&EpisodeSetup>) -> Result<()> {
        self.start_at(joints, setup)
    }

    fn servo_checks(&mut self) -> Result<Vec<Check>> {
        let calibration = Calibration::model();
        // A connection of its own, as another client of the same servos would have.
        match inspect(&mut self.servos().bus(), &calibration) {
            Ok(reports) => Ok(reports
                .iter()
                .map(|r| {
                    let value = format!(
                        "model {}, firmware {}.{}, {:.1} V, {} C, position {}",
                        r.model,
                        r.firmware.0,
                        r.firmware.1,
                        r.telemetry.voltage_v(),
                        r.telemetry.temperature_c,
                        r.telemetry.position.0
                    );
                    let ok = r.alarms.is_empty() && r.matches(calibration.get(r.joint));
                    Check::rig(
                        format!("servo {} {}", r.id, r.joint),
                        value,
                        "model 777, no alarm, as calibrated",
                        ok,
                    )
                })
                .collect()),
            Err(e) => Ok(vec![Check::rig("servos", e.to_string(), "six servos answer", false)]),
        }
    }

    fn success(&mut self) -> Result<Option<bool>> {
        Ok(None)
    }

    fn scene_lux(&self) -> Option<Lux> {
        None
    }
}

#[cfg(feature = "sim")]
impl Rig for crate::sim_rig::SimRig {
    fn clock(&self) -> Arc<dyn Clock> {
        self.clock()
    }

    fn start(&mut self, setup: &EpisodeSetup) -> Result<()> {
        self.begin(setup)
    }

    fn start_at(&mut self, joints: &JointVector<Degrees>, setup: Option<&EpisodeSetup>) -> Result<()> {
        self.start_at(joints, setup)
    }

    fn servo_checks(&mut self) -> Result<Vec<Check>> {
        Ok(Vec::new())
    }

    fn success(&mut self) -> Result<Option<bool>> {
        Ok(self.verdict()?.map(|v| v.success()))
    }

    fn scene_lux(&self) -> Option<Lux> {
        Some(self.lux())
    }
}

/// USB serial adapters with the vendor id of the servo boards (1a86), as sysfs lists them.
fn arm_ports() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/sys/class/tty") else { return Vec::new() };
    let mut ports: Vec<String> = entries
        .flatten()
        .filter(|e| {
            // ttyACM hangs on the USB interface, ttyUSB on a port below it.
            ["device/../idVendor", "device/../../idVendor"]
                .iter()
                .any(|up| std::fs::read_to_string(e.path().join(up)).is_ok_and(|v| v.trim() == "1a86"))
        })
        .map(|e| format!("/dev/{}", e.file_name().to_string_lossy()))
        .collect();
    ports.sort();
    ports
}
