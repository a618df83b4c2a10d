//! The simulated rig: a plan's scene in MuJoCo, on a virtual clock, judged by the push predicate.

mod trial;

use std::sync::Arc;

use so101_hal::{
    Action, Clock, Degrees, JointVector, Lux, Observation, Robot, RobotDescription, VirtualClock,
};
use so101_sim::{
    Mount, ObjectState, Placement, PushTask, PushVerdict, SCENE_LUX, Scene, SceneCamera, SimRobot, Start,
};

use crate::error::Result;
use crate::expert::{LeftOf, PushLeft};
use crate::plan::{CameraMount, EpisodeSetup, Plan, PlannedCamera};
use crate::rig::Pictures;
use crate::scene::{ObjectPose, ObjectSpec};

pub use trial::{PoseRow, Trial};

/// The simulated arm in the scene of a plan.
#[derive(Debug)]
pub struct SimRig {
    robot: SimRobot,
    clock: VirtualClock,
    home: JointVector<Degrees>,
    left_of: LeftOf,
    fps: u32,
}

impl SimRig {
    /// Builds the scene of `plan` for a control rate of `fps` Hz.
    ///
    /// # Errors
    /// When the plan's home is out of reach or the scene is not usable, and what
    /// [`so101_sim::Error`] names: MuJoCo or headless OpenGL missing.
    pub fn new(plan: &Plan, fps: u32, left_of: LeftOf, pictures: Pictures) -> Result<Self> {
        let home = PushLeft::home(&plan.home(), left_of)?;
        let clock = VirtualClock::new();
        let scene = match pictures {
            Pictures::On => scene(plan),
            Pictures::Off => scene(plan).without_cameras(),
        };
        let robot = SimRobot::new(&scene, fps, Arc::new(clock.clone()))?;
        Ok(Self { robot, clock, home, left_of, fps })
    }

    /// The arm alone: no table, no object, no pictures; its home is the model's zero.
    ///
    /// # Errors
    /// What [`so101_sim::Error`] names.
    pub fn empty(fps: u32) -> Result<Self> {
        let clock = VirtualClock::new();
        let robot = SimRobot::new(&Scene::empty(), fps, Arc::new(clock.clone()))?;
        Ok(Self { robot, clock, home: JointVector::default(), left_of: LeftOf::default(), fps })
    }

    /// Begins an episode: arm at home, object in its place, predicate armed.
    ///
    /// # Errors
    /// When the setup places the object nowhere.
    pub fn begin(&mut self, setup: &EpisodeSetup) -> Result<()> {
        let home = self.home;
        self.start_at(&home, Some(setup))
    }

    /// Begins with the arm at rest at `joints`, clamped to the model's limits, and with the object and the predicate
    /// of `setup`.
    ///
    /// # Errors
    /// When the setup places the object nowhere; a setup for [`SimRig::empty`], or none for the scene of a plan.
    pub fn start_at(&mut self, joints: &JointVector<Degrees>, setup: Option<&EpisodeSetup>) -> Result<()> {
        let object = setup.map(|s| Placement { x_m: s.pose.x_m, y_m: s.pose.y_m, yaw: s.pose.yaw });
        let task = setup.map(|_| PushTask::left_of(self.left_of.into()));
        Ok(self.robot.reset(&Start { joints: *joints, object }, task)?)
    }

    /// The judgement as of now.
    ///
    /// # Errors
    /// When the simulation has diverged.
    pub fn verdict(&mut self) -> Result<Option<PushVerdict>> {
        Ok(self.robot.judge()?)
    }

    /// The judgement where a task was given, as [`SimRig::begin`] always does.
    fn judge(&mut self) -> Result<PushVerdict> {
        let missing = so101_sim::Error::Object { what: "no episode has begun, so there is nothing to judge" };
        self.verdict()?.ok_or_else(|| missing.into())
    }

    /// Where the object is, as of the last observation: what a demonstrator may know.
    #[must_use]
    pub fn object(&self) -> Option<ObjectPose> {
        self.robot.object().map(|o| object_pose(&o))
    }

    /// The object's full pose and motion, as of the last observation.
    #[must_use]
    pub fn object_state(&self) -> Option<ObjectState> {
        self.robot.object()
    }

    /// The clock that moves this world.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    /// What the scene's lights stand for.
    #[must_use]
    pub const fn lux(&self) -> Lux {
        SCENE_LUX
    }
}

impl Robot for SimRig {
    fn description(&self) -> &RobotDescription {
        self.robot.description()
    }
    fn observe(&mut self) -> so101_hal::Result<Observation> {
        self.robot.observe()
    }
    fn act(&mut self, action: &Action) -> so101_hal::Result<Action> {
        self.robot.act(action)
    }
}

impl From<LeftOf> for so101_sim::LeftOf {
    fn from(left_of: LeftOf) -> Self {
        match left_of {
            LeftOf::Robot => Self::Robot,
            LeftOf::Camera => Self::Camera,
        }
    }
}

/// The plan's object and cameras on a table.
#[must_use]
pub fn scene(plan: &Plan) -> Scene {
    let cameras = plan.cameras().iter().map(camera).collect();
    Scene { object: Some(object(plan.object())), cameras, ..Scene::default() }
}

fn object(spec: &ObjectSpec) -> so101_sim::ObjectSpec {
    so101_sim::ObjectSpec {
        size_m: spec.size_m,
        mass_kg: spec.mass_kg,
        rgb: spec.rgb,
        ..so101_sim::ObjectSpec::yellow_large()
    }
}

fn camera(planned: &PlannedCamera) -> SceneCamera {
    let mount = match planned.mount {
        CameraMount::Base { position_m, look_at_m } => Mount::Room { from_m: position_m, look_at_m },
        CameraMount::Gripper { position_m, turn_x } => Mount::Hand { from_m: position_m, tilt_rad: turn_x.0 },
    };
    SceneCamera { spec: planned.spec.clone(), mount, fovy_deg: Degrees::from(planned.fovy).0 }
}

fn object_pose(state: &ObjectState) -> ObjectPose {
    let [x_m, y_m, _] = state.position_m;
    ObjectPose { x_m, y_m, yaw: state.yaw() }
}

#[cfg(test)]
mod tests;
