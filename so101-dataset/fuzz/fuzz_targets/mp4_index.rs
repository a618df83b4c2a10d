#![no_main]
//! The index of an mp4 from arbitrary bytes: read or refused, never a panic, every sample inside the file.

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use so101_dataset::mp4::Mp4Index;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(index) = Mp4Index::from_bytes(bytes, Path::new("fuzz.mp4")) {
        for (i, sample) in index.samples.iter().enumerate() {
            assert!(sample.offset + u64::from(sample.bytes) <= bytes.len() as u64);
            let _ = (index.pts_ticks(i), index.key_frame_before(i));
        }
        let _ = (index.is_reordered(), index.frame_duration_ticks());
    }
});
