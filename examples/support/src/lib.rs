//! What the example programs share: command line, rigs, drawn cameras, plans, pre-flight, contact sheets, replay.

pub mod calibrate;
pub mod cli;
pub mod contact_sheet;
pub mod diagnose;
pub mod diagnose_stall;
pub mod dotted;
pub mod draw;
#[cfg(unix)]
pub mod emulated_bus;
pub mod enter;
pub mod error;
pub mod expert;
pub mod find_cameras;
pub mod find_joint_limits;
pub mod find_port;
pub mod hardware;
pub mod host;
pub mod interrupt;
pub mod loop_stats;
pub mod plan;
pub mod preflight;
pub mod record;
pub mod replay;
pub mod rig;
pub mod scene;
pub mod setup_motors;
#[cfg(feature = "sim")]
pub mod sim_rig;
pub mod teleoperate;

pub use error::{Error, Exit, Result};
