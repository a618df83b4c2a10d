//! The simulated arm as a robot: pictures, joints, goals, and a clock that moves the world.

use std::sync::Arc;

use so101_hal::{
    Action, CameraSpec, Clock, Frame, NamedFrame, Observation, Robot, RobotDescription, Timestamp,
};

use crate::error::{Error, Result};
use crate::push::{ObjectState, PushJudge, PushTask, PushVerdict};
#[cfg(feature = "render")]
use crate::render::Renderer;
use crate::scene::Scene;
use crate::step::StepPlan;
use crate::world::{Start, World};

/// LeRobot's name for the type of every SO-101.
const ROBOT_TYPE: &str = "so_follower";

/// An SO-101 in MuJoCo, in lock-step with a clock.
///
/// `act` sets goals; the world advances to `clock.now()` at the next `observe`. On a
/// [`VirtualClock`](so101_hal::VirtualClock) the same seeds give the same bytes.
///
/// ```no_run
/// use std::{sync::Arc, time::Duration};
/// use so101_hal::{Action, Clock, Robot, Timestamp, VirtualClock};
/// use so101_sim::{LeftOf, Placement, PushTask, Scene, SimRobot, Start};
///
/// let clock = VirtualClock::new();
/// let mut robot = SimRobot::new(&Scene::push_table(), 30, Arc::new(clock.clone()))?;
/// let start = Start { object: Some(Placement { x_m: 0.25, ..Placement::default() }), ..Start::default() };
/// robot.reset(&start, Some(PushTask::left_of(LeftOf::Robot)))?;
/// for tick in 1..=240 {
///     let seen = robot.observe()?;
///     robot.act(&Action { joints: seen.joints })?; // your policy here
///     clock.sleep_until(Timestamp::from_start(Duration::from_secs(tick) / 30));
/// }
/// let verdict = robot.judge()?.expect("a task was given");
/// assert!(!verdict.success()); // nobody pushed
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SimRobot {
    world: World,
    clock: Arc<dyn Clock>,
    description: RobotDescription,
    /// Names shared by every frame.
    names: Vec<Arc<str>>,
    #[cfg(feature = "render")]
    renderer: Option<Renderer>,
    judge: Option<PushJudge>,
    /// The clock's time at the last reset.
    began: Timestamp,
    /// Pictures taken so far.
    sequence: u64,
}

impl std::fmt::Debug for SimRobot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimRobot")
            .field("world", &self.world)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

impl SimRobot {
    /// Builds the scene for a control rate in Hz and opens its cameras. The joints are at zero until the first
    /// [`SimRobot::reset`].
    ///
    /// # Errors
    /// When the scene is not usable, MuJoCo is not the expected one, no headless OpenGL can be had, or the scene has
    /// cameras and this build does not.
    pub fn new(scene: &Scene, fps: u32, clock: Arc<dyn Clock>) -> Result<Self> {
        let world = World::new(scene, StepPlan::for_rate(fps)?)?;
        let cameras: Vec<CameraSpec> = scene.cameras.iter().map(|c| c.spec.clone()).collect();
        #[cfg(feature = "render")]
        let renderer = match cameras.is_empty() {
            true => None,
            false => Some(Renderer::new(world.engine().model(), cameras.clone())?),
        };
        #[cfg(not(feature = "render"))]
        if !cameras.is_empty() {
            return Err(Error::NoRenderFeature);
        }
        let names = cameras.iter().map(|c| Arc::from(c.name.as_str())).collect();
        let description = RobotDescription { robot_type: ROBOT_TYPE.into(), rig: "sim".into(), cameras };
        let began = clock.now();
        Ok(Self {
            world,
            clock,
            description,
            names,
            #[cfg(feature = "render")]
            renderer,
            judge: None,
            began,
            sequence: 0,
        })
    }

    /// Begins an episode now: everything in place and at rest, and a judge for the task, if there is one.
    ///
    /// # Errors
    /// As [`World::reset`]; [`Error::Object`] for a task without an object.
    pub fn reset(&mut self, start: &Start, task: Option<PushTask>) -> Result<()> {
        self.world.reset(start)?;
        self.judge = match (task, self.world.object()) {
            (None, _) => None,
            (Some(task), Some(object)) => Some(PushJudge::new(task, object.position_m)),
            (Some(_), None) => return Err(Error::Object { what: "a push needs an object in the scene" }),
        };
        self.began = self.clock.now();
        Ok(())
    }

    /// The judgement on the episode up to the clock's time, `None` when it began without a task.
    ///
    /// # Errors
    /// [`Error::Diverged`].
    pub fn judge(&mut self) -> Result<Option<PushVerdict>> {
        self.advance()?;
        Ok(self.judge.as_ref().map(PushJudge::verdict))
    }

    /// The object as of the last observation or judgement.
    #[must_use]
    pub fn object(&self) -> Option<ObjectState> {
        self.world.object()
    }

    /// The physics behind it.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Steps the world up to the clock.
    fn advance(&mut self) -> Result<()> {
        let due = self.world.plan().steps_in(self.clock.now().since(self.began));
        let count = due.saturating_sub(self.world.steps_done());
        let judge = &mut self.judge;
        self.world.steps_watched(count, |at_s, object| {
            if let Some(judge) = judge {
                judge.watch(at_s, object);
            }
        })
    }

    #[cfg(feature = "render")]
    fn pictures(&mut self) -> Result<Vec<Vec<u8>>> {
        self.renderer.as_ref().map_or(Ok(Vec::new()), |r| r.draw(self.world.engine().qpos()))
    }

    #[cfg(not(feature = "render"))]
    fn pictures(&mut self) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    fn see(&mut self) -> Result<Observation> {
        self.advance()?;
        let at = self.clock.now();
        let pictures = self.pictures()?;
        let mut frames = Vec::with_capacity(pictures.len());
        for ((name, spec), rgb) in self.names.iter().zip(&self.description.cameras).zip(pictures) {
            let frame = Frame::new(spec.size, rgb, self.sequence, at)?;
            frames.push(NamedFrame { camera: Arc::clone(name), frame });
        }
        self.sequence += 1;
        Ok(Observation { at, joints: self.world.joints(), frames })
    }
}

impl Robot for SimRobot {
    fn description(&self) -> &RobotDescription {
        &self.description
    }

    fn observe(&mut self) -> so101_hal::Result<Observation> {
        self.see().map_err(|e| e.into_hal("simulated arm"))
    }

    fn act(&mut self, action: &Action) -> so101_hal::Result<Action> {
        // What was due under the old goal happens first: a caller that skips an observation changes nothing.
        self.advance().map_err(|e| e.into_hal("simulated arm"))?;
        let joints = self.world.set_goal(&action.joints).map_err(|e| e.into_hal("simulated arm"))?;
        Ok(Action { joints })
    }
}
