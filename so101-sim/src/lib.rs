//! The SO-101 arm simulated in MuJoCo.
#![doc = include_str!("../README.md")]

mod arm;
pub mod doctor;
#[cfg(feature = "mujoco")]
mod engine;
pub mod error;
mod mjcf;
pub mod push;
#[cfg(feature = "render")]
mod render;
#[cfg(feature = "mujoco")]
pub mod robot;
pub mod scene;
mod shapes;
pub mod step;
#[cfg_attr(not(feature = "mujoco"), allow(dead_code, reason = "conversions for the physics"))]
mod units;
#[cfg(feature = "mujoco")]
pub mod world;

pub use error::{Error, Result};
pub use push::{LeftOf, ObjectState, PushFailure, PushJudge, PushTask, PushVerdict};
#[cfg(feature = "mujoco")]
pub use robot::SimRobot;
pub use scene::{Mount, ObjectSpec, SCENE_LUX, Scene, SceneCamera};
pub use step::StepPlan;
#[cfg(feature = "mujoco")]
pub use world::{HandPoint, Placement, Start, World};
