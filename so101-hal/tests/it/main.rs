//! Integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod allocation;
mod conversions;
mod emulated_arm;
mod fuzz_corpus;
mod golden;
mod kinematics;
