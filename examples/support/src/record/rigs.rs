//! Which robot records: the real arm, the simulated arm and the emulated arm behind one trait.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use so101_hal::bus::BusStats;
use so101_hal::control::LoopCounters;
use so101_hal::{Calibration, Clock, Degrees, Frame, JointVector, Lux, Robot};

use crate::cli::{Verbosity, say};
use crate::error::{Error, Result};
use crate::expert::LeftOf;
use crate::hardware::adapters;
use crate::plan::{EpisodeSetup, Plan};
use crate::preflight::rig::{ArmUnderTest, arm};
use crate::preflight::{Check, Verdict};
use crate::rig::{EmulatedRig, Pictures};

use super::args::RigChoice;
use super::keys::Operator;

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

    /// Whether time passes by itself here, as it does for people and motors.
    fn is_real_time(&self) -> bool {
        false
    }

    /// What was seen of the cameras before the session, and a picture of each; `None` where they have to be looked at
    /// by observing.
    fn camera_checks(&mut self) -> Option<(Vec<Check>, Vec<Frame>)> {
        None
    }

    /// What the control loop between recorder and bus has counted since the arm was brought to the start; `None`
    /// without such a loop.
    fn control(&self) -> Option<LoopCounters> {
        None
    }

    /// What the bus has counted; `None` where nobody counts.
    fn bus_stats(&self) -> Option<BusStats> {
        None
    }

    /// How long the bus took for its last reads, where that is not the time of observing.
    fn last_bus_read(&self) -> Option<Duration> {
        None
    }

    /// How long it took to get each camera's picture in the last observation, where that is known.
    fn camera_times(&self) -> &[Duration] {
        &[]
    }

    /// Pictures that each camera has lost so far, where that is known.
    fn camera_drops(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Switches the torque on where the arm is real, after the operator has said yes.
    ///
    /// # Errors
    /// [`Error::Refused`] without a yes, and what switching it on says.
    fn energise(&mut self, _operator: &mut Operator) -> Result<()> {
        Ok(())
    }

    /// Switches the torque off at once.
    ///
    /// # Errors
    /// When the stop could not be sent.
    fn emergency_stop(&mut self) -> Result<()> {
        Ok(())
    }

    /// What the set is to know of this arm, for `meta/so101/rig.json`: calibration, cameras, profile.
    fn facts(&self) -> Option<serde_json::Value> {
        None
    }

    /// Leaves the arm as the command line says; the end of a session, however it ended.
    ///
    /// # Errors
    /// When the torque is not known to be off, and when the bus is gone.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
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
                for port in adapters() {
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
            "--rig real: a real arm moves in real time only, which this program does not do; record does"
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
        // A connection of its own, as another client of the same servos would have.
        let (servos, clock) = (self.servos().clone(), self.clock());
        let calibration = Calibration::model();
        let (checks, _) = arm(ArmUnderTest::new(&mut servos.bus(), &clock, &calibration))?;
        Ok(checks.into_iter().filter(|c| c.verdict != Verdict::Skip).collect())
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
