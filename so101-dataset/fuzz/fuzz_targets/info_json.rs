//! Any bytes in place of an info.json.
#![no_main]

#[path = "../checks/info_json.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
