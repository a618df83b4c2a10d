//! Integration tests: one binary for the crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod corrupt_input;
mod fuzz_corpus;
mod killed;
mod layout_variants;
mod planted_defects;
mod planting;
mod reads_lerobot;
mod recording;
mod reference_sets;
mod writing;
