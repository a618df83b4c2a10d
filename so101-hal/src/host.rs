//! The health of the computer that runs the loop, and why a loop stalls.
//!
//! [`HostProbe`] reads temperature, clock, throttling flags, memory and pressure from a dozen files below `/proc` and
//! `/sys`. [`LoopLog`] writes one line a second: how long each stage of the loop took, what was counted, and such a
//! sample. [`stall::diagnose`] reads these lines and says which stage grew, and why.
//!
//! Files and flags were read on x86-64 Linux and in the sources of the Raspberry Pi kernel; on a Raspberry Pi itself
//! they were not run.

mod aggregate;
mod facts;
mod line;
mod log;
mod probe;
mod read;
pub mod stall;

pub use facts::HostFacts;
pub use line::{LogLine, LoopLine, ParsedLog, QueueDepth, StageTimes, StartLine, parse};
pub use log::{Counter, LoopLog, LoopLogOptions, Stage, WhenFull};
pub use probe::HostProbe;

use std::string::String;

use serde::{Deserialize, Serialize};

/// Bits of the Raspberry Pi's `get_throttled`: what holds now, and what has happened since it was switched on.
///
/// Source: the documentation of `vcgencmd get_throttled` (bits 0 to 3 now, 16 to 19 since boot).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Throttled(pub u32);

impl Throttled {
    /// The supply is below 4.63 V at this moment.
    #[must_use]
    pub const fn under_voltage(self) -> bool {
        self.0 & 1 != 0
    }

    /// The firmware caps the clock at this moment.
    #[must_use]
    pub const fn capped(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// The firmware throttles at this moment.
    #[must_use]
    pub const fn throttled(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// The soft temperature limit acts at this moment.
    #[must_use]
    pub const fn soft_limit(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// Heat slows the processor at this moment.
    #[must_use]
    pub const fn hot(self) -> bool {
        self.throttled() || self.soft_limit()
    }

    /// The supply was too low at least once since the computer was switched on.
    #[must_use]
    pub const fn under_voltage_since_boot(self) -> bool {
        self.0 & 1 << 16 != 0
    }

    /// The processor was capped, throttled or at its soft limit at least once since the computer was switched on.
    #[must_use]
    pub const fn slowed_since_boot(self) -> bool {
        self.0 & 0b1110 << 16 != 0
    }
}

/// Pressure stall information of one resource: the share of time in which tasks waited for it.
///
/// Source: the kernel's `Documentation/accounting/psi.rst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// Share of the last 10 s in which at least one task waited, percent.
    pub some_avg10_percent: f64,
    /// Time since boot in which at least one task waited, microseconds.
    pub some_total_us: u64,
}

/// The computer at one moment. What a system does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HostSample {
    /// The hottest sensor of the processor, degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// Where heat begins to slow this processor, degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_limit_c: Option<f64>,
    /// Clock of the slowest group of cores, MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<f64>,
    /// The highest clock that this group has, MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_max_mhz: Option<f64>,
    /// Its frequency governor, such as `ondemand`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The Raspberry Pi's throttling bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Throttled>,
    /// A sensor of the supply says that it is too low.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supply_alarm: Option<bool>,
    /// Tasks that ran or waited, mean over a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_1min: Option<f64>,
    /// Processors that are online.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Memory that programs can still get, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_available_mib: Option<f64>,
    /// All memory, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total_mib: Option<f64>,
    /// Swap in use, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_mib: Option<f64>,
    /// Written data that are not on the disk yet, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_mib: Option<f64>,
    /// Pages read back from swap since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_in_pages: Option<u64>,
    /// Pages written to swap since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_out_pages: Option<u64>,
    /// Page faults since boot that had to wait for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Tasks waited for a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<Pressure>,
    /// Tasks waited for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_pressure: Option<Pressure>,
    /// Tasks waited for a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_pressure: Option<Pressure>,
    /// Memory of this process, MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_mib: Option<f64>,
}

impl HostSample {
    /// Whether the supply is too low at this moment, by whichever sensor there is.
    #[must_use]
    pub fn under_voltage(&self) -> Option<bool> {
        match (self.throttled, self.supply_alarm) {
            (None, None) => None,
            (flags, alarm) => Some(flags.is_some_and(Throttled::under_voltage) || alarm.unwrap_or(false)),
        }
    }
}

#[cfg(test)]
mod tests;
