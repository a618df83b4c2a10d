//! What the example programs share: command line, rigs, drawn cameras, plans, pre-flight, contact sheets, replay.

pub mod cli;
pub mod contact_sheet;
pub mod draw;
pub mod error;
pub mod expert;
pub mod host;
pub mod interrupt;
pub mod loop_stats;
pub mod plan;
pub mod preflight;
pub mod record;
pub mod replay;
pub mod rig;
pub mod scene;
#[cfg(feature = "sim")]
pub mod sim_rig;

pub use error::{Error, Exit, Result};
