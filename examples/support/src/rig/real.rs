//! The arm on a serial port, real cameras, time that passes by itself.
//!
//! A control loop of its own ([`ControlLoop`]) keeps the bus busy at a fixed rate; observing and acting only look into
//! mailboxes. Nothing moves before the pre-flight has passed and somebody has said yes.
//!
//! | the session ends by | the arm |
//! |---|---|
//! | its last episode, the operator's key, Ctrl-C or SIGTERM, an error | goes to the plan's home and is relaxed there (`--at-end hold`: holds where it is) |
//! | a second Ctrl-C, the key e, a panic | is relaxed at once, by a broadcast |
//! | SIGKILL | holds its last goal |

pub mod cameras;

pub use cameras::configs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use so101_hal::arm::{Arm, ArmOptions, EmergencyStop, Ending, FoundArm, Holding, Ramp, ServoProfile};
use so101_hal::bus::{BusStats, ServoBus};
use so101_hal::camera::{CameraConfig, CameraThread, ThreadOptions};
use so101_hal::control::{ControlHandle, ControlLoop, LoopConfig, LoopCounters, LoopState};
use so101_hal::preflight::cameras::CameraFacts;
use so101_hal::preflight::{Item, Limits};
use so101_hal::{
    Action, Camera, Clock, Degrees, Frame, JOINTS, JointId, JointVector, Lux, NamedFrame, Observation,
    Percent, Robot, RobotDescription,
};

use crate::cli::say;
use crate::error::{Error, Result};
use crate::expert::{LeftOf, PushLeft};
use crate::hardware::{ArmArgs, OpenBus, Pace, Role};
use crate::plan::{EpisodeSetup, Plan};
use crate::preflight::rig::{ArmUnderTest, calibration_files};
use crate::preflight::{self, Check, Preflight, Verdict};
use crate::record::keys::Operator;
use crate::record::rigs::Rig;

type RealBus = Box<dyn ServoBus>;

/// Whether the arm may move without being asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// The operator says yes before the first movement.
    #[default]
    Ask,
    /// It was given on the command line.
    Given,
}

/// How a [`RealRig`] works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RealOptions {
    /// Which arm.
    pub arm: ArmArgs,
    /// Its cameras.
    pub cameras: Vec<CameraConfig>,
    /// Rows a second.
    pub fps: u32,
    /// Cycles of the bus a second.
    pub bus_hz: f64,
    /// Speed of the way home.
    pub home_speed_deg_s: f64,
    /// LeRobot's `max_relative_target`: degrees, of the gripper percent.
    pub max_relative_target: Option<f64>,
    /// Pre-flight items that may fail: they are stored as warnings.
    pub accept: Vec<Item>,
    /// Whether to ask before the arm moves.
    pub consent: Consent,
    /// Whether the arm is held at the end instead of relaxed at home.
    pub hold_at_end: bool,
}

impl RealOptions {
    /// An arm without cameras, 30 rows a second, 150 cycles, 30 degrees a second, asked before it moves.
    #[must_use]
    pub fn new(arm: ArmArgs) -> Self {
        Self {
            arm,
            cameras: Vec::new(),
            fps: 30,
            bus_hz: 150.0,
            home_speed_deg_s: 30.0,
            max_relative_target: None,
            accept: Vec::new(),
            consent: Consent::default(),
            hold_at_end: false,
        }
    }

    fn validate(&self) -> Result<()> {
        let positive = |flag: &str, value: f64, most: f64| {
            if value > 0.0 && value <= most {
                Ok(())
            } else {
                Err(Error::Usage(format!("{flag} {value}: give more than 0 and at most {most}")))
            }
        };
        positive("--home-speed", self.home_speed_deg_s, 180.0)?;
        positive("--bus-hz", self.bus_hz, 500.0)?;
        self.max_relative_target.map_or(Ok(()), |v| positive("--max-relative-target", v, 360.0))
    }
}

/// What drives the arm at this moment.
enum Drive {
    /// Nobody yet: as it was found.
    Found(FoundArm<RealBus>),
    /// It stands still.
    Holding(Arm<RealBus, Holding>),
    /// The control loop has it.
    Running(ControlHandle<RealBus>),
    /// It was left.
    Gone,
}

/// An arm in real time.
pub struct RealRig {
    description: RobotDescription,
    options: RealOptions,
    clock: Arc<dyn Clock>,
    drive: Drive,
    stop: EmergencyStop,
    home: JointVector<Degrees>,
    cameras: Vec<(Arc<str>, CameraThread)>,
    camera_times: Vec<Duration>,
    servo_checks: Vec<Check>,
    camera_checks: Option<(Vec<Check>, Vec<Frame>)>,
    facts: Value,
}

impl std::fmt::Debug for RealRig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RealRig").field("description", &self.description).finish_non_exhaustive()
    }
}

impl RealRig {
    /// Opens port and cameras, writes the follower's profile where the arm is relaxed and has another, and looks at
    /// everything. The torque stays as it was found.
    ///
    /// # Errors
    /// [`Error::Usage`] where the command line leaves the arm open, [`Error::Refused`] where the pre-flight finds what
    /// forbids to move, errors of the port, the calibration and the cameras.
    pub fn open(options: RealOptions, plan: &Plan, left_of: LeftOf) -> Result<Self> {
        options.validate()?;
        let home = PushLeft::home(&plan.home(), left_of)?;
        let (calibration, file) = options.arm.calibration(Role::Follower)?;
        let OpenBus { bus, servos, clock, name, .. } = options.arm.open(Role::Follower, Pace::RealTime)?;
        let mut arm_options = ArmOptions::new(Arc::clone(&clock));
        if let Some(most) = options.max_relative_target {
            arm_options = arm_options.with_max_relative_target(Degrees(most), Percent(most));
        }
        let mut found = Arm::connect(bus, calibration, arm_options)?;
        let profile = ServoProfile::follower();
        let configured = configure(&mut found, &profile)?;
        let stop = match &found {
            FoundArm::Relaxed(arm) => arm.emergency_stop(),
            FoundArm::Holding(arm) => arm.emergency_stop(),
        };
        let bus = match &mut found {
            FoundArm::Relaxed(arm) => arm.bus_mut(),
            FoundArm::Holding(arm) => arm.bus_mut(),
        };
        let mut under_test = ArmUnderTest::new(bus.as_mut(), clock.as_ref(), &calibration);
        under_test.files = file.as_deref().and_then(calibration_files);
        let (mut servo_checks, _) = preflight::rig::arm(under_test)?;
        require(&mut servo_checks, &options.accept)?;

        // Other pictures than those of the emulated rig in simulated time: its sets are not continued by it.
        let rig = if servos.is_some() { "emulated-live" } else { "real" };
        let specs: Vec<_> = options.cameras.iter().map(CameraConfig::spec).collect();
        let mut cameras = Vec::with_capacity(specs.len());
        let mut reports = Vec::with_capacity(specs.len());
        for config in &options.cameras {
            let thread =
                CameraThread::spawn(config.source(&clock)?, Arc::clone(&clock), ThreadOptions::default())?;
            reports.push(json!({ "config": config, "device": thread.device().map(|d| format!("{d:?}")) }));
            cameras.push((Arc::from(config.name.as_str()), thread));
        }
        let facts = json!({
            "id": options.arm.id,
            "port": name,
            "calibration": { "file": file, "joints": calibration },
            "servo_profile": profile,
            "servo_registers_written": configured,
            "bus_hz": options.bus_hz,
            "max_relative_target": options.max_relative_target,
            "cameras": reports,
        });
        let mut this = Self {
            description: RobotDescription {
                robot_type: "so_follower".to_owned(),
                rig: rig.to_owned(),
                cameras: specs,
            },
            camera_times: vec![Duration::ZERO; cameras.len()],
            options,
            clock,
            drive: Drive::Found(found),
            stop,
            home,
            cameras,
            servo_checks,
            camera_checks: None,
            facts,
        };
        let mut seen = this.look_at_cameras()?;
        require(&mut seen.0, &this.options.accept)?;
        this.camera_checks = Some(seen);
        Ok(this)
    }

    /// Asks the operator, where consent was not given, and energises the arm where it stands.
    ///
    /// # Errors
    /// [`Error::Refused`] without a yes, and what energising says.
    pub fn energise(&mut self, operator: &mut Operator) -> Result<()> {
        let Drive::Found(found) = std::mem::replace(&mut self.drive, Drive::Gone) else { return Ok(()) };
        if self.options.consent == Consent::Ask {
            say(&format!(
                "the arm goes to the plan's home at {} deg/s: hands off, then Enter (q: do not move)",
                self.options.home_speed_deg_s
            ));
            if !operator.confirm() {
                return Err(Error::Refused(
                    "nobody said that the arm may move: press Enter when asked, or give --yes".to_owned(),
                ));
            }
        }
        crate::interrupt::stop_at_once(&self.stop);
        self.drive = Drive::Holding(found.into_holding().map_err(so101_hal::Error::from)?);
        Ok(())
    }

    /// A handle that switches the torque off from any thread.
    #[must_use]
    pub fn stop_handle(&self) -> EmergencyStop {
        self.stop.clone()
    }

    fn look_at_cameras(&mut self) -> Result<(Vec<Check>, Vec<Frame>)> {
        let (mut checks, mut frames) = (Vec::new(), Vec::new());
        for ((_, camera), config) in self.cameras.iter_mut().zip(&self.options.cameras) {
            let mut facts = CameraFacts::new(&config.name);
            if let Some(device) = camera.device() {
                facts.note_device(device);
            }
            let dropped_before = camera.stats().dropped;
            let frame = facts.measure(camera, self.clock.as_ref(), config.fps);
            if let Some((pace, _)) = &mut facts.timing {
                // The camera's thread sees every picture, who looks into its mailbox may come late.
                pace.dropped = camera.stats().dropped.saturating_sub(dropped_before);
            }
            if let Some(frame) = &frame {
                facts.see(frame, None)?;
            }
            let found = so101_hal::preflight::cameras(&facts, &Limits::default());
            checks.extend(found.into_iter().filter(|c| c.verdict != Verdict::Skip));
            frames.extend(frame);
        }
        Ok((checks, frames))
    }

    /// The arm, standing still.
    fn hold(&mut self) -> Result<Arm<RealBus, Holding>> {
        match std::mem::replace(&mut self.drive, Drive::Gone) {
            Drive::Holding(arm) => Ok(arm),
            Drive::Running(handle) => Ok(handle.stop()?),
            Drive::Found(found) => {
                self.drive = Drive::Found(found);
                Err(Error::Refused("the arm was not energised".to_owned()))
            }
            Drive::Gone => Err(Error::Hal(so101_hal::Error::LoopEnded)),
        }
    }

    fn handle(&self) -> so101_hal::Result<&ControlHandle<RealBus>> {
        match &self.drive {
            Drive::Running(handle) => Ok(handle),
            _ => Err(so101_hal::Error::LoopEnded),
        }
    }
}

/// A relaxed arm gets the profile; what was written.
fn configure(found: &mut FoundArm<RealBus>, profile: &ServoProfile) -> Result<Vec<String>> {
    let arm = match found {
        FoundArm::Relaxed(arm) => arm,
        FoundArm::Holding(_) => {
            say("the arm holds already, so its servo profile is left as it is");
            return Ok(Vec::new());
        }
    };
    let configured = arm.configure(profile)?;
    if configured.needs_power_cycle() {
        say(
            "a servo setting takes effect when the arm's power was off: switch it off and on after this session",
        );
    }
    Ok(configured.written.iter().map(|w| format!("{w:?}")).collect())
}

/// Refuses what failed, unless it was accepted: that becomes a warning.
fn require(checks: &mut [Check], accept: &[Item]) -> Result<()> {
    for check in checks.iter_mut().filter(|c| c.verdict == Verdict::Fail && accept.contains(&c.item)) {
        check.verdict = Verdict::Warn;
    }
    let mut all = Preflight::default();
    all.extend(checks.iter().cloned());
    all.require()
}

impl Robot for RealRig {
    fn description(&self) -> &RobotDescription {
        &self.description
    }

    /// The newest state and the newest pictures, without waiting for either.
    fn observe(&mut self) -> so101_hal::Result<Observation> {
        let snapshot = self.handle()?.snapshot()?;
        match snapshot.state {
            LoopState::Stopped => return Err(so101_hal::Error::EmergencyStopped),
            LoopState::Lost => {
                let oldest = JOINTS.into_iter().max_by_key(|j| snapshot.states[j.index()].missed);
                let silent = self.clock.now().since(snapshot.at);
                return Err(so101_hal::Error::ArmHeld {
                    joint: oldest.unwrap_or(JointId::ShoulderPan),
                    silent,
                });
            }
            _ => {}
        }
        let mut frames = Vec::with_capacity(self.cameras.len());
        for ((name, camera), time) in self.cameras.iter_mut().zip(&mut self.camera_times) {
            let asked = Instant::now();
            frames.push(NamedFrame { camera: Arc::clone(name), frame: camera.capture()? });
            *time = asked.elapsed();
        }
        Ok(Observation { at: snapshot.at, joints: snapshot.joints, frames })
    }

    /// Hands the goal to the control loop and returns it: limits apply on the way there.
    fn act(&mut self, action: &Action) -> so101_hal::Result<Action> {
        self.handle()?.set_goal(&action.joints, self.clock.now())?;
        Ok(*action)
    }
}

impl Rig for RealRig {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn start(&mut self, _setup: &EpisodeSetup) -> Result<()> {
        let home = self.home;
        self.start_at(&home, None)
    }

    /// Goes to `joints` at the speed of the way home; what lies on the table is the operator's.
    fn start_at(&mut self, joints: &JointVector<Degrees>, _setup: Option<&EpisodeSetup>) -> Result<()> {
        let mut arm = self.hold()?;
        let ramped = arm.ramp_to(&Ramp::new(*joints, self.options.home_speed_deg_s));
        if let Err(error) = ramped {
            self.drive = Drive::Holding(arm);
            return Err(error.into());
        }
        let armed = arm.arm().map_err(so101_hal::Error::from)?;
        let config =
            LoopConfig::default().with_goals_at_hz(self.options.fps).with_bus_hz(self.options.bus_hz);
        self.drive = Drive::Running(ControlLoop::spawn(armed, Arc::clone(&self.clock), config)?);
        Ok(())
    }

    fn servo_checks(&mut self) -> Result<Vec<Check>> {
        Ok(self.servo_checks.iter().filter(|c| c.verdict != Verdict::Skip).cloned().collect())
    }

    fn success(&mut self) -> Result<Option<bool>> {
        Ok(None)
    }

    fn scene_lux(&self) -> Option<Lux> {
        None
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn camera_checks(&mut self) -> Option<(Vec<Check>, Vec<Frame>)> {
        self.camera_checks.clone()
    }

    fn control(&self) -> Option<LoopCounters> {
        self.handle().ok().map(ControlHandle::stats)
    }

    fn bus_stats(&self) -> Option<BusStats> {
        let counted = self.control()?;
        Some(BusStats {
            retries: counted.retries,
            timeouts: counted.timeouts,
            damaged: counted.damaged,
            ..BusStats::default()
        })
    }

    fn last_bus_read(&self) -> Option<Duration> {
        self.handle().ok().map(ControlHandle::last_read)
    }

    fn camera_times(&self) -> &[Duration] {
        &self.camera_times
    }

    fn camera_drops(&self) -> Vec<u64> {
        self.cameras.iter().map(|(_, camera)| camera.stats().dropped).collect()
    }

    fn energise(&mut self, operator: &mut Operator) -> Result<()> {
        self.energise(operator)
    }

    fn emergency_stop(&mut self) -> Result<()> {
        Ok(self.stop.stop()?)
    }

    fn facts(&self) -> Option<Value> {
        Some(self.facts.clone())
    }

    fn finish(&mut self) -> Result<()> {
        let ending = if self.options.hold_at_end {
            Ending::Hold
        } else {
            Ending::RampThenRelax(Ramp::new(self.home, self.options.home_speed_deg_s))
        };
        match std::mem::replace(&mut self.drive, Drive::Gone) {
            // Nothing was energised: it stays as it was found.
            Drive::Found(_) | Drive::Gone => Ok(()),
            Drive::Holding(arm) => Ok(arm.finish(&ending)?),
            Drive::Running(handle) => {
                let arm = handle.stop()?;
                if self.stop.stopped() {
                    // It is limp: there is nothing to go home with.
                    return Ok(arm.finish(&Ending::Relax)?);
                }
                Ok(arm.finish(&ending)?)
            }
        }
    }
}
