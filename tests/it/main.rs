//! Workspace-level tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod calibrate;
mod diagnose_stall;
mod emulated_bus;
mod find_port;
mod help;
mod kill;
mod metadata;
mod programs;
mod readme;
mod real_rig;
mod recording;
mod refusals;
mod replay;
mod run_script;
mod tasks;
