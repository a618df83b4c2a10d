//! Who decides the goals of an episode: a demonstrator that knows the task, or somebody at a leader arm or a keyboard.

use std::time::Duration;

use so101_hal::teleop::Teleoperator;
use so101_hal::{Action, Degrees, JointVector, Timestamp};

use crate::error::{Error, Result};
use crate::expert::{LeftOf, PushConfig, PushLeft, Visit};
use crate::plan::{EpisodeSetup, Plan, PlanKind};

/// Rows after a demonstrator is done: the arm comes to rest in the recording.
pub(super) const SETTLE: Duration = Duration::from_millis(300);

/// Decides the goal of every period of one episode.
#[derive(Debug)]
pub enum Driver<'a> {
    /// The expert of the push-left task.
    Expert(Box<PushLeft>),
    /// A visit of the object's place.
    Visit(Box<Visit>),
    /// Somebody, or a script.
    Teleop(&'a mut Teleop),
}

/// A teleoperator that lasts for a whole session.
pub struct Teleop(Box<dyn Teleoperator>);

impl std::fmt::Debug for Teleop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Teleop").field(&self.0.name()).finish()
    }
}

impl Teleop {
    /// Takes a teleoperator.
    #[must_use]
    pub fn new(teleoperator: Box<dyn Teleoperator>) -> Self {
        Self(teleoperator)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }
}

impl<'a> Driver<'a> {
    /// The demonstrator of an episode of this plan: the expert where the task has one, else a visit.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the object lies where the arm cannot go.
    pub fn demonstrator(plan: &Plan, setup: &EpisodeSetup, left_of: LeftOf) -> Result<Self> {
        match plan.kind() {
            PlanKind::PushLeft => Self::expert(plan, setup, left_of),
            PlanKind::Teleoperated | PlanKind::Free => Self::visit(plan, setup, left_of),
        }
    }

    /// The expert of the push-left task.
    ///
    /// # Errors
    /// [`Error::Usage`] for another task, and [`Error::Unreachable`].
    pub fn expert(plan: &Plan, setup: &EpisodeSetup, left_of: LeftOf) -> Result<Self> {
        if plan.kind() != PlanKind::PushLeft {
            return Err(Error::Usage(format!(
                "--teleop expert: nobody demonstrates '{}' by himself, only push-left has an expert; use leader, \
                 keyboard or scripted",
                plan.task()
            )));
        }
        let config = PushConfig::default().with_left_of(left_of);
        Ok(Self::Expert(Box::new(PushLeft::new(&plan.home(), setup, config)?)))
    }

    /// A visit of the object's place.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    pub fn visit(plan: &Plan, setup: &EpisodeSetup, left_of: LeftOf) -> Result<Self> {
        Ok(Self::Visit(Box::new(Visit::new(&plan.home(), setup, left_of)?)))
    }

    /// How long an episode lasts at most: a demonstration and a moment of rest, or the plan's cap.
    #[must_use]
    pub fn duration(&self, cap: Duration) -> Duration {
        match self {
            Self::Expert(expert) => (expert.duration() + SETTLE).min(cap),
            Self::Visit(visit) => (visit.duration() + SETTLE).min(cap),
            Self::Teleop(_) => cap,
        }
    }

    /// Takes the follower's pose before the first period.
    ///
    /// # Errors
    /// As [`Teleoperator::engage`].
    pub fn engage(&mut self, follower: &JointVector<Degrees>) -> Result<()> {
        match self {
            // They begin at the plan's home, where the rig has put the arm.
            Self::Expert(_) | Self::Visit(_) => Ok(()),
            Self::Teleop(teleop) => Ok(teleop.0.engage(follower)?),
        }
    }

    /// The goal of the period that began `since_start` after the first, at `now` on the rig's clock.
    ///
    /// # Errors
    /// What the demonstrator or the teleoperator says.
    pub fn action(&mut self, since_start: Duration, now: Timestamp) -> Result<Action> {
        match self {
            Self::Expert(expert) => Ok(Action { joints: expert.goal(since_start)?.joints }),
            Self::Visit(visit) => Ok(Action { joints: visit.goal(since_start)?.joints }),
            Self::Teleop(teleop) => Ok(teleop.0.action(now)?),
        }
    }

    /// Whether a teleoperator has nothing more to say.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self, Self::Teleop(teleop) if teleop.0.is_finished())
    }
}
