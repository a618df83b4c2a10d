//! Where recorded episodes go.

use alloc::string::String;

use crate::error::BoxError;
use crate::robot::{Action, Observation};
use crate::units::Lux;

/// What is known when an episode begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpisodeStart {
    /// The instruction, such as `push the object to the left`.
    pub task: String,
    /// Illuminance at the table, when somebody measured or set it.
    pub lux: Option<Lux>,
    /// The object in the scene, by its name in the plan.
    pub object: Option<String>,
    /// The seed that this episode was drawn from.
    pub seed: Option<u64>,
}

/// What is known when it ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpisodeEnd {
    /// Judged by the simulation's predicate or the operator's key; `None` where nobody judged.
    pub success: Option<bool>,
    /// A remark, such as why it failed.
    pub note: Option<String>,
}

/// Takes episodes, one at a time: `begin`, `add` a row a control period, then `end` or `discard`.
///
/// `end` may return before the episode is durable; implementations say how to learn when it is.
pub trait EpisodeSink {
    /// Opens an episode.
    ///
    /// # Errors
    /// When one is open already, or the sink cannot take any more.
    fn begin(&mut self, start: &EpisodeStart) -> Result<(), BoxError>;

    /// Adds one row: what was seen, and the action decided on it.
    ///
    /// # Errors
    /// When no episode is open or the row does not fit the sink's features.
    fn add(&mut self, observation: &Observation, action: &Action) -> Result<(), BoxError>;

    /// Hands the episode over.
    ///
    /// # Errors
    /// When it cannot be kept; it is gone then, and the sink is ready for the next.
    fn end(&mut self, end: &EpisodeEnd) -> Result<(), BoxError>;

    /// Throws the open episode away.
    ///
    /// # Errors
    /// When its temporary files cannot be removed.
    fn discard(&mut self) -> Result<(), BoxError>;
}
