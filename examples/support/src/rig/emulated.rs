//! Six emulated servos behind their byte protocol, drawn cameras, and an object that the jaws push.

use std::sync::Arc;
use std::time::Duration;

use so101_hal::arm::{Arm, ArmOptions, Armed, MotionLimits};
use so101_hal::kinematics::{GripperMap, Kinematics, LinkPoses, Pose, Tcp};
use so101_hal::{
    Action, Calibration, CameraSpec, Clock, Degrees, EmulatedBus, EmulatedServos, EmulatorOptions,
    JointVector, NamedFrame, Observation, Percent, Radians, Robot, RobotDescription, Rounding, Timestamp,
    VirtualClock,
};

use super::Pictures;
use crate::draw::DrawnCamera;
use crate::error::Result;
use crate::expert::{LeftOf, PushLeft};
use crate::plan::{EpisodeSetup, Plan};
use crate::scene::{JAW_PADS, ObjectPose, Pad, Scene, jaw_pads};

/// The longest time between two looks at the contact; the jaws move less than a millimetre in it.
const CONTACT_STEP: Duration = Duration::from_millis(2);

/// Where the object waits while nothing is to be in reach.
const ASIDE: ObjectPose = ObjectPose { x_m: -100.0, y_m: 0.0, yaw: Radians(0.0) };

/// The emulated arm on a table with one object.
///
/// ```
/// use std::time::Duration;
/// use so101_hal::{Action, Clock, Robot};
/// use so101_support::expert::LeftOf;
/// use so101_support::plan::{Jitter, Plan};
/// use so101_support::rig::{EmulatedRig, Pictures};
/// let plan = Plan::push_left();
/// let mut rig = EmulatedRig::new(&plan, LeftOf::Robot, Pictures::Off)?;
/// rig.reset(&plan.episode(0, 0, Jitter::On)?)?;
/// let clock = rig.clock();
/// let seen = rig.observe()?;
/// rig.act(&Action { joints: seen.joints })?;
/// clock.sleep_until(seen.at + Duration::from_millis(33)); // here the world moves on
/// # Ok::<(), so101_support::Error>(())
/// ```
#[derive(Debug)]
pub struct EmulatedRig {
    description: RobotDescription,
    clock: VirtualClock,
    servos: EmulatedServos,
    arm: Arm<EmulatedBus, Armed>,
    calibration: Calibration,
    gripper: GripperMap,
    home: JointVector<Degrees>,
    cameras: Vec<(Arc<str>, DrawnCamera)>,
    scene: Scene,
    /// Where the servos truly were when the contact was looked at last, and when that was.
    posture: JointVector<Degrees>,
    looked: Timestamp,
}

impl EmulatedRig {
    /// Connects to the emulated servos through the byte protocol, as to real ones; the arm starts at the plan's home
    /// with the first episode's object on its mark.
    ///
    /// # Errors
    /// [`Error::Unreachable`](crate::Error::Unreachable) when the arm cannot be at the plan's home, and errors of the
    /// bus.
    pub fn new(plan: &Plan, left_of: LeftOf, pictures: Pictures) -> Result<Self> {
        let home = PushLeft::home(&plan.home(), left_of)?;
        let calibration = Calibration::model();
        let clock = VirtualClock::new();
        let mut options = EmulatorOptions::default();
        options.start = calibration.to_ticks(&home, Rounding::Nearest)?;
        let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
        servos.store_calibration(&calibration)?;
        // Nothing can be hurt here, and a recording is to hold what was asked for.
        let options = ArmOptions::new(Arc::new(clock.clone())).with_limits(MotionLimits::unlimited());
        let arm = Arm::connect(servos.bus(), calibration, options)?.into_armed()?;
        let planned = match pictures {
            Pictures::On => plan.cameras(),
            Pictures::Off => &[],
        };
        let specs: Vec<CameraSpec> = planned.iter().map(|c| c.spec.clone()).collect();
        let cameras =
            planned.iter().map(|c| (Arc::from(c.spec.name.as_str()), DrawnCamera::new(c))).collect();
        let mark = plan.episode(0, 0, crate::plan::Jitter::Off)?;
        Ok(Self {
            description: RobotDescription {
                robot_type: "so_follower".to_owned(),
                rig: "emulated".to_owned(),
                cameras: specs,
            },
            looked: clock.now(),
            posture: servos.true_joints(&calibration),
            scene: Scene::new(mark.object, mark.pose),
            gripper: GripperMap::model(),
            clock,
            servos,
            arm,
            calibration,
            home,
            cameras,
        })
    }

    /// Begins an episode: the object is put where the setup says, and the arm is put at home by hand, at once (a hand
    /// moves the emulated servos, and nothing is pushed on the way). The goal of every servo is home.
    ///
    /// # Errors
    /// Errors of the bus.
    pub fn reset(&mut self, setup: &EpisodeSetup) -> Result<()> {
        let home = self.home;
        self.put(&home, Scene::new(setup.object.clone(), setup.pose))
    }

    /// Begins with the arm put at `joints` by hand, at once, as [`Self::reset`] puts it at home; they are clamped to
    /// the calibrated range. Without a setup nothing is in reach.
    ///
    /// # Errors
    /// Errors of the bus, and numbers that are not finite.
    pub fn start_at(&mut self, joints: &JointVector<Degrees>, setup: Option<&EpisodeSetup>) -> Result<()> {
        let scene = match setup {
            Some(setup) => Scene::new(setup.object.clone(), setup.pose),
            None => Scene::new(self.scene.object().clone(), ASIDE),
        };
        self.put(joints, scene)
    }

    /// Makes `joints` goal and position, and starts the next whole second. The servos move on a grid of time: an
    /// episode must find it in the same phase whether it is the first of a session or comes after others.
    fn put(&mut self, joints: &JointVector<Degrees>, scene: Scene) -> Result<()> {
        let sent = self.arm.send(joints, self.clock.now())?.joints;
        let ticks = self.calibration.to_ticks(&sent, Rounding::Nearest)?;
        let by_hand = |servos: &EmulatedServos| {
            for ((joint, c), ticks) in self.calibration.iter().zip(ticks) {
                servos.set_ticks(joint, f64::from(ticks.0.clamp(c.range_min, c.range_max)));
            }
        };
        by_hand(&self.servos);
        let seconds = self.clock.now().since_start().as_secs() + 1;
        self.clock.sleep_until(Timestamp::from_start(Duration::from_secs(seconds)));
        by_hand(&self.servos);
        self.scene = scene;
        self.posture = self.servos.true_joints(&self.calibration);
        self.looked = self.clock.now();
        Ok(())
    }

    /// The clock that this rig lives on; clones share its time.
    #[must_use]
    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// The servos behind the bus: for faults, and for what they truly do.
    #[must_use]
    pub fn servos(&self) -> &EmulatedServos {
        &self.servos
    }

    /// The driver on the bus, with what each servo said when it was connected.
    pub fn arm(&mut self) -> &mut Arm<EmulatedBus, Armed> {
        &mut self.arm
    }

    /// Where the object is, as of the last observation or action.
    #[must_use]
    pub fn object_pose(&self) -> ObjectPose {
        self.scene.pose()
    }

    /// Where the hand truly is, as of the last observation or action: `base_from_tcp` of LeRobot's fingertip.
    #[must_use]
    pub fn tcp_pose(&self) -> Pose {
        Kinematics::new(Tcp::LEROBOT_FINGERTIP).fk(&self.posture.body.map(Radians::from))
    }

    /// Distance between jaws and object seen from above, as of the last observation or action; zero or less where
    /// they touch.
    ///
    /// # Errors
    /// When the posture is not finite, which the emulator does not produce.
    pub fn jaw_distance_m(&self) -> Result<f64> {
        Ok(self.scene.jaw_distance_m(&self.pads(&self.posture)?))
    }

    /// Lets the jaws push the object on their way since the last look. The servos' positions in between are
    /// interpolated: they are smooth on the scale of a control period.
    fn advance(&mut self) -> so101_hal::Result<()> {
        let now = self.clock.now();
        let passed = now.since(self.looked);
        if passed.is_zero() {
            return Ok(());
        }
        let (from, to) = (self.posture, self.servos.true_joints(&self.calibration));
        let steps = u32::try_from(passed.as_nanos().div_ceil(CONTACT_STEP.as_nanos()))
            .unwrap_or(u32::MAX)
            .min(10_000);
        for step in 1..=steps {
            let pads = self.pads(&mix(&from, &to, f64::from(step) / f64::from(steps)))?;
            self.scene.push(&pads);
        }
        self.posture = to;
        self.looked = now;
        Ok(())
    }

    fn pads(&self, posture: &JointVector<Degrees>) -> so101_hal::Result<[Pad; JAW_PADS]> {
        Ok(jaw_pads(&self.links(posture)?))
    }

    fn links(&self, posture: &JointVector<Degrees>) -> so101_hal::Result<LinkPoses> {
        Ok(Kinematics::links(&posture.body.map(Radians::from), self.gripper.jaw(posture.gripper)?))
    }
}

impl Robot for EmulatedRig {
    fn description(&self) -> &RobotDescription {
        &self.description
    }

    fn observe(&mut self) -> so101_hal::Result<Observation> {
        self.advance()?;
        let at = self.clock.now();
        let joints = self.arm.read_joints()?;
        let links = self.links(&self.posture)?;
        let mut frames = Vec::with_capacity(self.cameras.len());
        for (name, camera) in &mut self.cameras {
            frames
                .push(NamedFrame { camera: Arc::clone(name), frame: camera.draw(&links, &self.scene, at)? });
        }
        Ok(Observation { at, joints, frames })
    }

    fn act(&mut self, action: &Action) -> so101_hal::Result<Action> {
        self.advance()?;
        Ok(Action { joints: self.arm.send(&action.joints, self.clock.now())?.joints })
    }
}

/// From `a` at 0 to `b` at 1.
fn mix(a: &JointVector<Degrees>, b: &JointVector<Degrees>, share: f64) -> JointVector<Degrees> {
    let between = |a: f64, b: f64| a + share * (b - a);
    JointVector {
        body: std::array::from_fn(|i| Degrees(between(a.body[i].0, b.body[i].0))),
        gripper: Percent(between(a.gripper.0, b.gripper.0)),
    }
}

#[cfg(test)]
mod tests;
