//! What a computer is, beside how it feels.

use std::path::Path;
use std::string::{String, ToString as _};

use serde::{Deserialize, Serialize};

use super::read::{Reader, field, one_line};

/// The computer on which a log or a dataset was made. What a system does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HostFacts {
    /// Operating system, such as `linux`.
    pub os: String,
    /// Instruction set, such as `aarch64`.
    pub arch: String,
    /// Release of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The board, such as `Raspberry Pi 5 Model B Rev 1.0`, or the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Threads that run at the same time.
    pub threads: usize,
    /// All memory, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
}

impl HostFacts {
    /// Facts about this computer.
    #[must_use]
    pub fn system() -> Self {
        Self::read(Path::new("/"))
    }

    /// Facts about the computer whose file system begins at `root`.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let mut reader = Reader::default();
        let model = ["proc/device-tree/model", "sys/class/dmi/id/product_name"]
            .iter()
            .find_map(|f| one_line(&mut reader, &root.join(f)))
            .or_else(|| processor(&mut reader, root));
        Self {
            os: std::env::consts::OS.to_string(),
            arch: std::env::consts::ARCH.to_string(),
            kernel: one_line(&mut reader, &root.join("proc/sys/kernel/osrelease")),
            model,
            threads: std::thread::available_parallelism().map_or(1, core::num::NonZero::get),
            memory_mib: reader
                .text(&root.join("proc/meminfo"))
                .and_then(|t| field(t, "MemTotal"))
                .map(|kib| kib / 1024),
        }
    }
}

fn processor(reader: &mut Reader, root: &Path) -> Option<String> {
    let text = reader.text(&root.join("proc/cpuinfo"))?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}
