//! Integration tests of the simulated arm; most need the feature `mujoco` or `render`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

#[cfg(all(feature = "mujoco", target_os = "linux"))]
mod machine;
mod mjcf;
#[cfg(feature = "mujoco")]
mod physics;
#[cfg(feature = "render")]
mod render;
#[cfg(feature = "mujoco")]
mod robot;
