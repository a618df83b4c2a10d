//! Integration tests of the crate, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod allocation;
mod arm_configure;
mod arm_estop;
mod arm_faults;
mod arm_limits;
mod arm_process;
mod arm_support;
mod bad_line;
mod conversions;
mod emulated_arm;
mod faults;
mod fuzz_corpus;
mod golden;
mod host_logs;
mod kinematics;
mod soak;
