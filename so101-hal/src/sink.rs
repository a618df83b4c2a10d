//! Where recorded episodes go.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
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
    /// How well the loop kept its time; `None` on a rig whose time is simulated.
    pub timing: Option<EpisodeTiming>,
}

/// What went otherwise than planned while an episode was recorded, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EpisodeTiming {
    /// Rows whose work took longer than a period.
    pub overruns: u64,
    /// Pictures that were those of the row before, since the camera had no newer one; all cameras.
    pub stale_frames: u64,
    /// Pictures that were lost between sensor and program, as their sequence numbers say; all cameras.
    pub dropped_frames: u64,
    /// Rows whose joints were those of the row before, since the arm had not answered in between.
    pub stale_states: u64,
    /// Cycles of the bus.
    pub bus_cycles: u64,
    /// Cycles of the bus whose work took longer than its period.
    pub bus_overruns: u64,
    /// Cycles of the bus in which a joint gave no new state.
    pub bus_stale: u64,
    /// Requests on the bus that were sent again.
    pub bus_retries: u64,
    /// Requests on the bus that were not answered in time.
    pub bus_timeouts: u64,
    /// Alarms of each joint that were raised at any moment, as the servo's bits.
    pub alarms: [u8; 6],
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

    /// As [`Self::add`], with the moment at which the action was handed to the arm, on the clock of the observation.
    /// Sinks that have no place for it leave it away.
    ///
    /// # Errors
    /// As [`Self::add`].
    fn add_acted(
        &mut self,
        observation: &Observation,
        action: &Action,
        acted: Timestamp,
    ) -> Result<(), BoxError> {
        let _ = acted;
        self.add(observation, action)
    }

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
