//! Facts about the machine that records. They go to `meta/so101/host.jsonl` and nowhere else, so that the rest of a
//! dataset depends on the seed alone.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use so101_hal::host::HostFacts;

/// System, board, processor count, kernel and the moment, as JSON.
#[must_use]
pub fn facts() -> Value {
    let host = HostFacts::system();
    json!({
        "unix_time_s": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        "os": host.os,
        "arch": host.arch,
        "kernel": host.kernel,
        "model": host.model,
        "threads": host.threads,
        "memory_mib": host.memory_mib,
        "version": env!("CARGO_PKG_VERSION"),
        "profile": if cfg!(debug_assertions) { "dev" } else { "release" },
        "simd_encoder": so101_dataset::video::simd_report().to_string(),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_facts_name_system_and_version() {
        let facts = super::facts();
        assert_eq!(facts["os"], std::env::consts::OS);
        assert!(facts["threads"].as_u64().is_some_and(|n| n > 0));
        assert_eq!(facts["version"], env!("CARGO_PKG_VERSION"));
    }
}
