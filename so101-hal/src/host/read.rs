//! Small files of `/proc` and `/sys`, counted, since a sample has to stay cheap.

use std::fs;
use std::path::{Path, PathBuf};
use std::string::{String, ToString as _};
use std::vec::Vec;

use super::Pressure;

/// Pages of Linux on the machines that carry an arm; the Raspberry Pi 5 can use 16 KiB.
const DEFAULT_PAGE_BYTES: u64 = 4096;

/// Reads files and counts them.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    pub(super) files: u64,
    buffer: Vec<u8>,
}

impl Reader {
    /// The text of a file without the white space around it; `None` when there is none to read.
    pub(super) fn text(&mut self, path: &Path) -> Option<&str> {
        use std::io::Read as _;
        self.files += 1;
        self.buffer.clear();
        // Nothing that is read here is longer; a device that never ends must not fill the memory.
        let mut file = fs::File::open(path).ok()?.take(64 << 10);
        file.read_to_end(&mut self.buffer).ok()?;
        core::str::from_utf8(&self.buffer).ok().map(str::trim)
    }

    /// A number.
    pub(super) fn number(&mut self, path: &Path) -> Option<f64> {
        finite(self.text(path)?)
    }

    /// Thousandths as a whole: millidegrees to degrees, kHz to MHz.
    pub(super) fn thousandths(&mut self, path: &Path) -> Option<f64> {
        self.number(path).map(|n| n / 1000.0)
    }

    /// The `some` line of a pressure file.
    pub(super) fn pressure(&mut self, path: &Path) -> Option<Pressure> {
        let line = self.text(path)?.lines().find_map(|l| l.strip_prefix("some "))?;
        let value = |key: &str| line.split(' ').find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
        Some(Pressure {
            some_avg10_percent: finite(value("avg10")?)?,
            some_total_us: value("total")?.parse().ok()?,
        })
    }
}

/// The number behind `key` in a file of lines such as `MemFree:  12 kB`.
pub(super) fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        rest.starts_with([' ', '\t']).then(|| rest.split_whitespace().next()?.parse().ok())?
    })
}

/// The page size of a 64-bit kernel, from the file that says how a process is mapped.
pub(super) fn page_bytes(reader: &mut Reader, root: &Path) -> u64 {
    reader
        .text(&root.join("proc/self/smaps"))
        .and_then(|t| field(t, "KernelPageSize"))
        .map_or(DEFAULT_PAGE_BYTES, |kib| kib.saturating_mul(1024))
}

/// The entries of a folder whose names begin so, sorted; none where there is no such folder.
pub(super) fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = found
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with(prefix))
        .map(|e| e.path())
        .collect();
    paths.sort();
    paths
}

/// A number that is one.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

/// First line of a small text file, without the zero byte that device trees end with.
pub(super) fn one_line(reader: &mut Reader, path: &Path) -> Option<String> {
    let text = reader.text(path)?.trim_end_matches('\0').lines().next()?.trim().to_string();
    (!text.is_empty()).then_some(text)
}
