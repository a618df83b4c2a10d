//! Physics without cameras and without a clock: reset, command, step, read.

use so101_hal::{Degrees, JointVector, Radians};

use crate::engine::{Engine, compile, linked_version};
use crate::error::{Error, Result, within};
use crate::push::ObjectState;
use crate::scene::Scene;
use crate::step::StepPlan;
use crate::units::{from_model, to_model};

/// Where the object lies on the table, in the base frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Placement {
    /// Forward of the base, metres.
    pub x_m: f64,
    /// Left of the base, metres.
    pub y_m: f64,
    /// Turn about the vertical.
    pub yaw: Radians,
}

/// How an episode begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Start {
    /// Joints, at rest: LeRobot degrees, gripper percent.
    pub joints: JointVector<Degrees>,
    /// The object; `None` exactly when the scene has none.
    pub object: Option<Placement>,
}

/// A point of the hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandPoint {
    /// LeRobot's tool centre point, the tip of the fixed jaw.
    Fingertip,
    /// Between the jaws.
    Pinch,
}

/// The arm, the table and the object.
///
/// After [`World::reset`] nothing writes to the state: goals go to the servos, and the object moves only by contact.
///
/// A program that also uses MuJoCo on its own creates its first world before another thread does that: the first world
/// sets the handler of MuJoCo's messages (they go to the `log` crate), a global of the library without a lock. Worlds
/// themselves may be created and stepped on any threads.
///
/// ```no_run
/// use so101_sim::{Placement, Scene, Start, StepPlan, World};
/// let mut world = World::new(&Scene::push_table(), StepPlan::for_rate(30)?)?;
/// world.reset(&Start { object: Some(Placement { x_m: 0.25, ..Placement::default() }), ..Start::default() })?;
/// world.steps(300)?; // one second
/// assert!(world.object().unwrap().speed_m_s < 0.01);
/// # Ok::<(), so101_sim::Error>(())
/// ```
pub struct World {
    engine: Engine,
    plan: StepPlan,
    /// Steps since the reset.
    done: u64,
    /// Height of the object's middle at rest, metres.
    rest_height_m: f64,
    diverged: bool,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("plan", &self.plan).field("done", &self.done).finish_non_exhaustive()
    }
}

impl World {
    /// A world with the joints at zero.
    ///
    /// # Errors
    /// When the scene is not usable, or MuJoCo is not the expected one.
    pub fn new(scene: &Scene, plan: StepPlan) -> Result<Self> {
        let rest_height_m = scene.object.as_ref().map_or(0.0, |o| o.size_m[2] / 2.0);
        Self::build(&scene.mjcf(plan)?, plan, rest_height_m)
    }

    /// A world from MJCF text of somebody else's, which needs our names: joints and position actuators
    /// `shoulder_pan` to `gripper`, sites `fingertip` and `pinch`, and, for an object, a free joint `object` on a body
    /// whose middle is at `rest_height_m` when it lies on the table. The text's time step is replaced by the plan's.
    ///
    /// MuJoCo ends the process when a step needs more memory than the text's `<size memory>`: leave that out, or leave
    /// room for the contacts of everything that you add.
    ///
    /// # Errors
    /// [`Error::Mjcf`] with MuJoCo's words for text that it refuses, and for an arena of less than 1 MiB or an offscreen
    /// buffer that no driver has; [`Error::Lacks`] for a missing name.
    pub fn from_mjcf(mjcf: &str, plan: StepPlan, rest_height_m: f64) -> Result<Self> {
        Self::build(
            mjcf,
            plan,
            within("the rest height of the object in metres", rest_height_m, -10.0, 10.0)?,
        )
    }

    fn build(mjcf: &str, plan: StepPlan, rest_height_m: f64) -> Result<Self> {
        let engine = Engine::new(compile(mjcf, plan)?, plan)?;
        Ok(Self { engine, plan, done: 0, rest_height_m, diverged: false })
    }

    /// Version of the linked MuJoCo.
    #[must_use]
    pub fn mujoco_version() -> &'static str {
        linked_version()
    }

    /// Puts everything in place, at rest, at time zero.
    ///
    /// # Errors
    /// [`Error::NonFinite`] and [`Error::OutOfRange`] for numbers that place nothing, [`Error::Object`] when an object
    /// is placed in a scene without one or the other way round.
    pub fn reset(&mut self, start: &Start) -> Result<()> {
        let joints_rad = to_model(&start.joints)?;
        let object = match (start.object, self.engine.has_object()) {
            (Some(at), true) => {
                let x = within("the object's x in metres", at.x_m, -10.0, 10.0)?;
                let y = within("the object's y in metres", at.y_m, -10.0, 10.0)?;
                let yaw = within("the object's yaw in radians", at.yaw.0, -100.0, 100.0)?;
                let resting = ObjectState::resting([x, y, self.rest_height_m], Radians(yaw));
                Some((resting.position_m, resting.quat_wxyz))
            }
            (None, false) => None,
            (Some(_), false) => {
                return Err(Error::Object { what: "an object was placed in a scene that has none" });
            }
            (None, true) => return Err(Error::Object { what: "the scene's object was given no place" }),
        };
        self.engine.reset(&joints_rad, object);
        (self.done, self.diverged) = (0, false);
        Ok(())
    }

    /// Sets the servos' goals and returns them as they were really set, after the joints' limits.
    ///
    /// # Errors
    /// [`Error::NonFinite`] when one of the six is not finite; nothing is set then.
    pub fn set_goal(&mut self, goal: &JointVector<Degrees>) -> Result<JointVector<Degrees>> {
        let rad = to_model(goal)?;
        self.engine.set_goal(&rad);
        Ok(clamped(goal, &from_model(&rad)))
    }

    /// Makes physics steps.
    ///
    /// # Errors
    /// [`Error::Diverged`] when the state left the finite numbers; the world needs a reset then.
    pub fn steps(&mut self, count: u64) -> Result<()> {
        self.steps_watched(count, |_, _| {})
    }

    /// Makes physics steps and shows the object (where there is one) after each: time since the reset in seconds, and
    /// state.
    ///
    /// # Errors
    /// As [`World::steps`].
    pub fn steps_watched(&mut self, count: u64, mut watch: impl FnMut(f64, &ObjectState)) -> Result<()> {
        for _ in 0..count {
            if self.diverged {
                return Err(Error::Diverged { at_s: self.time_s(), what: "not reset since" });
            }
            if let Err(what) = self.engine.step() {
                self.diverged = true;
                return Err(Error::Diverged { at_s: self.time_s(), what });
            }
            self.done += 1;
            if let Some(object) = self.engine.object() {
                watch(self.time_s(), &object);
            }
        }
        Ok(())
    }

    /// Steps since the reset.
    #[must_use]
    pub const fn steps_done(&self) -> u64 {
        self.done
    }

    /// Simulated time since the reset in seconds.
    #[must_use]
    pub fn time_s(&self) -> f64 {
        self.done as f64 * self.engine.step_s()
    }

    /// Control period and physics step.
    #[must_use]
    pub const fn plan(&self) -> StepPlan {
        self.plan
    }

    /// Joint positions: LeRobot degrees, gripper percent.
    #[must_use]
    pub fn joints(&self) -> JointVector<Degrees> {
        from_model(&self.engine.joints_rad())
    }

    /// The object's pose and motion.
    #[must_use]
    pub fn object(&self) -> Option<ObjectState> {
        self.engine.object()
    }

    /// A point of the hand in the base frame, metres.
    #[must_use]
    pub fn hand_m(&self, point: HandPoint) -> [f64; 3] {
        match point {
            HandPoint::Fingertip => self.engine.fingertip_m(),
            HandPoint::Pinch => self.engine.pinch_m(),
        }
    }

    #[cfg(feature = "render")]
    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// `goal` where the limits left it alone (bit for bit, not through radians and back), else `limited`.
fn clamped(goal: &JointVector<Degrees>, limited: &JointVector<Degrees>) -> JointVector<Degrees> {
    let mut row = goal.to_row();
    for (value, limit) in row.iter_mut().zip(limited.to_row()) {
        if (*value - limit).abs() > 1e-9 {
            *value = limit;
        }
    }
    JointVector::<Degrees>::from_row(row)
}
