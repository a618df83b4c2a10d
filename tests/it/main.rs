//! Workspace-level tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod help;
mod kill;
mod metadata;
mod programs;
mod readme;
mod recording;
mod refusals;
mod replay;
mod run_script;
