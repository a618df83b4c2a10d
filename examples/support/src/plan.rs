//! What a recording session does: which object lies where, in which order, seen by which cameras.
//!
//! A [`Plan`] is a TOML file; [`Plan::push_left`] is the one that ships with the examples.

mod file;

use std::path::Path;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use so101_hal::{CameraSpec, Percent, Radians};

use crate::error::{Error, Result};
use crate::scene::{ObjectPose, ObjectSpec};

/// A plan is a page of text.
const MAX_PLAN_BYTES: u64 = 1 << 20;
const PUSH_LEFT: &str = include_str!("../../../tasks/push_left.toml");
const FREE: &str = include_str!("plan/free.toml");

/// A session's plan: its cells (repetitions outermost, then positions, then yaws), objects, home and cameras.
///
/// ```
/// use so101_support::plan::{Jitter, Plan};
/// let plan = Plan::push_left();
/// assert_eq!(plan.episodes(), 24);
/// let setup = plan.episode(7, 3, Jitter::Off).unwrap();
/// assert_eq!((setup.pose.x_m, setup.pose.y_m), (0.220, 0.020));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    origin: String,
    fingerprint: String,
    kind: PlanKind,
    task: String,
    cap: Duration,
    positions_m: Vec<[f64; 2]>,
    yaws: Vec<Radians>,
    repetitions: u32,
    jitter_m: f64,
    objects: Vec<ObjectSpec>,
    selected: usize,
    props: Vec<Prop>,
    home: Home,
    cameras: Vec<PlannedCamera>,
}

/// What is known of a plan's task beside its words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanKind {
    /// Pushing an object to the left: there is a demonstrator, and a predicate that judges. What a plan is that does
    /// not say otherwise.
    #[default]
    PushLeft,
    /// Any other task: somebody drives the arm, and somebody judges or nobody does.
    Teleoperated,
    /// The same, and the operator decides what lies where.
    Free,
}

/// Something that lies at the same place in every episode, such as the box that objects are put into. The operator puts
/// it there; drawn and simulated scenes do not have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prop {
    /// Its name.
    pub name: String,
    /// Edges of its bounding box: along its own x, y and z.
    pub size_m: [f64; 3],
    /// Colour, each channel 0 to 1.
    pub rgb: [f64; 3],
    /// Where it lies.
    pub pose: ObjectPose,
}

/// Where an episode starts and ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Home {
    /// LeRobot's fingertip in the base frame.
    pub fingertip_m: [f64; 3],
    /// How far the approach direction points below horizontal.
    pub pitch: Radians,
    /// How far the jaws are open.
    pub gripper: Percent,
}

/// A camera of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCamera {
    /// Name and size.
    pub spec: CameraSpec,
    /// Vertical field of view.
    pub fovy: Radians,
    /// What carries it.
    pub mount: CameraMount,
}

/// What carries a camera, and where on it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CameraMount {
    /// Fixed to the table; both points in the base frame, the picture's up is the base frame's z.
    Base {
        /// Optical centre.
        position_m: [f64; 3],
        /// A point on the optical axis.
        look_at_m: [f64; 3],
    },
    /// Fixed to the gripper link, MuJoCo's convention: it looks along its own -z with +x to the right and +y up.
    Gripper {
        /// Optical centre in the gripper link's frame.
        position_m: [f64; 3],
        /// Turn of the camera about the link's x axis.
        turn_x: Radians,
    },
}

/// Whether objects lie exactly on the plan's marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Uniformly beside the mark, within the plan's bounds.
    #[default]
    On,
    /// Exactly on the mark.
    Off,
}

impl Jitter {
    /// `on` or `off`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// One entry of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Counts the passes over all positions and yaws, from 0.
    pub repetition: u32,
    /// The mark on the table, base frame.
    pub mark_m: [f64; 2],
    /// Yaw of the object.
    pub yaw: Radians,
}

/// Everything that an episode needs to know before it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeSetup {
    /// Index of the episode in the plan.
    pub index: u32,
    /// Its entry in the plan.
    pub cell: Cell,
    /// What lies there.
    pub object: ObjectSpec,
    /// Where it really lies.
    pub pose: ObjectPose,
    /// The episode ends here at the latest.
    pub cap: Duration,
}

impl Plan {
    /// The plan that ships with the examples: 24 episodes of "push the object to the left".
    ///
    /// # Panics
    /// Never: a test parses the built-in text.
    #[must_use]
    #[allow(clippy::expect_used, reason = "the text is part of the program and a test parses it")]
    pub fn push_left() -> Self {
        Self::parse(PUSH_LEFT, "built-in").expect("the built-in plan is valid")
    }

    /// No plan but an instruction: somebody drives the arm and decides what lies where.
    ///
    /// # Panics
    /// Never: a test parses the built-in text.
    ///
    /// # Errors
    /// As [`Self::with_task`].
    #[allow(clippy::expect_used, reason = "the text is part of the program and a test parses it")]
    pub fn free(task: &str) -> Result<Self> {
        Self::parse(FREE, "free").expect("the built-in plan is valid").with_task(task)
    }

    /// Reads a plan file.
    ///
    /// # Errors
    /// [`Error::Plan`] when it cannot be read or is no plan.
    pub fn load(path: &Path) -> Result<Self> {
        let what = |what: String| Error::Plan { origin: path.display().to_string(), what };
        let size = std::fs::metadata(path).map_err(|e| what(e.to_string()))?;
        if !size.is_file() || size.len() > MAX_PLAN_BYTES {
            return Err(what(format!("it is no file of at most {MAX_PLAN_BYTES} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|e| what(e.to_string()))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads a plan from TOML text; `origin` names it in errors.
    ///
    /// # Errors
    /// [`Error::Plan`] for anything that is no TOML, has unknown or missing keys, or values that make no sense.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        file::parse(text, origin)
    }

    /// Tells plans apart: the same for the same text only.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Whether the task has a demonstrator and a judge.
    #[must_use]
    pub fn kind(&self) -> PlanKind {
        self.kind
    }

    /// What lies at the same place in every episode.
    #[must_use]
    pub fn props(&self) -> &[Prop] {
        &self.props
    }

    /// Another instruction than the file's.
    ///
    /// # Errors
    /// [`Error::Usage`] for one without words.
    pub fn with_task(mut self, task: &str) -> Result<Self> {
        if task.trim().is_empty() {
            return Err(Error::Usage("--task is empty: say in a sentence what the arm does".to_owned()));
        }
        task.clone_into(&mut self.task);
        Ok(self)
    }

    /// Another time after which an episode ends.
    ///
    /// # Errors
    /// [`Error::Usage`] for one that no episode can have.
    pub fn with_cap_s(mut self, cap_s: f64) -> Result<Self> {
        if !(0.1..=file::MAX_CAP_S).contains(&cap_s) {
            return Err(Error::Usage(format!(
                "--episode-s {cap_s}: an episode lasts 0.1 to {} s",
                file::MAX_CAP_S
            )));
        }
        self.cap = Duration::from_secs_f64(cap_s);
        Ok(self)
    }

    /// The same plan seen by these cameras, in this order. Those that the plan knows keep their mount; of the others
    /// nothing is known but the size, so they are in no description of the scene.
    #[must_use]
    pub fn with_cameras(mut self, cameras: &[CameraSpec]) -> Self {
        let find = |spec: &CameraSpec| {
            let known = self.cameras.iter().find(|c| c.spec.name == spec.name)?;
            Some(PlannedCamera { spec: spec.clone(), ..*known })
        };
        self.cameras = cameras.iter().filter_map(find).collect();
        self
    }

    /// The instruction.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// No episode lasts longer.
    #[must_use]
    pub fn cap(&self) -> Duration {
        self.cap
    }

    /// Number of episodes of the whole plan.
    #[must_use]
    pub fn episodes(&self) -> u32 {
        u32::try_from(self.cells().count()).unwrap_or(u32::MAX)
    }

    /// All entries in order: repetitions outermost, then positions, then yaws.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        (0..self.repetitions).flat_map(move |repetition| {
            self.positions_m
                .iter()
                .flat_map(move |&mark_m| self.yaws.iter().map(move |&yaw| Cell { repetition, mark_m, yaw }))
        })
    }

    /// The object of the session, the first of the plan unless another was selected.
    #[must_use]
    pub fn object(&self) -> &ObjectSpec {
        &self.objects[self.selected]
    }

    /// Makes the object `name` the one of the session.
    ///
    /// # Errors
    /// [`Error::Plan`] when the plan has none of that name; the message lists those that it has.
    pub fn select_object(&mut self, name: &str) -> Result<()> {
        let found = self.objects.iter().position(|o| o.name == name);
        self.selected = found.ok_or_else(|| {
            let known: Vec<&str> = self.objects.iter().map(|o| o.name.as_str()).collect();
            self.error(format!("there is no object {name}, choose one of: {}", known.join(", ")))
        })?;
        Ok(())
    }

    /// Where episodes start and end.
    #[must_use]
    pub fn home(&self) -> Home {
        self.home
    }

    /// The cameras, in the order of the observation's frames.
    #[must_use]
    pub fn cameras(&self) -> &[PlannedCamera] {
        &self.cameras
    }

    /// Refuses a number of episodes that the plan does not have.
    ///
    /// # Errors
    /// [`Error::Plan`] when `episodes` is above [`Self::episodes`] (an exit code of wrong usage).
    pub fn check_count(&self, episodes: u32) -> Result<()> {
        let have = self.episodes();
        if episodes > have {
            return Err(
                self.error(format!("it has {have} episodes, {episodes} were asked for: ask for fewer"))
            );
        }
        Ok(())
    }

    /// Draws episode `index` of the session with this `seed`. Each episode has its own random stream, so that a
    /// resumed session goes on with the same episodes as an uninterrupted one.
    ///
    /// # Errors
    /// [`Error::Plan`] when the plan has no such episode.
    pub fn episode(&self, seed: u64, index: u32, jitter: Jitter) -> Result<EpisodeSetup> {
        let cell = self.cells().nth(index as usize).ok_or_else(|| {
            self.error(format!("it has {} episodes, none of index {index}", self.episodes()))
        })?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(index));
        let reach_m = match jitter {
            Jitter::On => self.jitter_m,
            Jitter::Off => 0.0,
        };
        let [x_m, y_m] = cell.mark_m.map(|mark_m| mark_m + reach_m * symmetric_unit(&mut rng));
        Ok(EpisodeSetup {
            index,
            cell,
            object: self.object().clone(),
            pose: ObjectPose { x_m, y_m, yaw: cell.yaw },
            cap: self.cap,
        })
    }

    fn error(&self, what: String) -> Error {
        Error::Plan { origin: self.origin.clone(), what }
    }
}

/// Uniform in [-1, 1), from the upper 53 bits of one draw: independent of any library's sampling algorithm.
fn symmetric_unit(rng: &mut impl Rng) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit an f64 exactly")]
    let unit = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    2.0 * unit - 1.0
}

#[cfg(test)]
mod tests;
