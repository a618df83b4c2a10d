//! Any bytes through the parser of servo packets, the emulated servos and the bus.
#![no_main]

#[path = "../checks/servo_frame.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
