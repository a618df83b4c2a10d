//! Facts about the machine that records. They go to `meta/so101/host.jsonl` and nowhere else, so that the rest of a
//! dataset depends on the seed alone.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// System, processor count, kernel and the moment, as JSON.
#[must_use]
pub fn facts() -> Value {
    let uname = rustix::system::uname();
    json!({
        "unix_time_s": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "kernel": uname.release().to_string_lossy(),
        "threads": std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        "version": env!("CARGO_PKG_VERSION"),
        "profile": if cfg!(debug_assertions) { "dev" } else { "release" },
        "simd_encoder": so101_dataset::video::simd_report().to_string(),
    })
}
