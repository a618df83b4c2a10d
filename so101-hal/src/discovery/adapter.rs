//! The USB adapters that servo buses hang on.
//!
//! Ids are those of the chip, not of the board: each of them is in other devices too. Sources: the tables of the Linux
//! drivers `cdc_acm`, `ch341`, `cp210x` and `ftdi_sio`, and the boards' pages.

use serde::Serialize;

/// How likely it is that an arm hangs on such an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    /// Another device: a modem, a microcontroller, a console.
    Unlikely,
    /// A general adapter that also sits on servo boards.
    Possible,
    /// The chip of the usual servo boards.
    Likely,
}

/// What is known about an adapter by its USB ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Adapter {
    /// Vendor id.
    pub vid: u16,
    /// Product id.
    pub pid: u16,
    /// The chip.
    pub chip: &'static str,
    /// Boards that have it.
    pub boards: &'static str,
    /// How likely an arm is behind it.
    pub likelihood: Likelihood,
}

const fn known(
    vid: u16,
    pid: u16,
    chip: &'static str,
    boards: &'static str,
    likelihood: Likelihood,
) -> Adapter {
    Adapter { vid, pid, chip, boards, likelihood }
}

/// The adapters that are known to carry servo buses.
static ADAPTERS: [Adapter; 7] = [
    known(0x1a86, 0x55d3, "CH343", "Waveshare, Feetech and Seeed bus servo adapters", Likelihood::Likely),
    known(0x1a86, 0x55d4, "CH9102F", "newer bus servo adapters", Likelihood::Likely),
    known(
        0x1a86,
        0x7523,
        "CH340",
        "Feetech FE-URT-1; also many microcontroller boards",
        Likelihood::Possible,
    ),
    known(0x1a86, 0x5523, "CH341", "older serial adapters", Likelihood::Possible),
    known(
        0x10c4,
        0xea60,
        "CP210x",
        "serial adapters; also many microcontroller boards",
        Likelihood::Possible,
    ),
    known(0x0403, 0x6001, "FT232R", "serial adapters", Likelihood::Possible),
    known(0x0403, 0x6014, "FT232H", "serial adapters, such as the U2D2", Likelihood::Possible),
];

/// What is known about the adapter with these USB ids.
///
/// ```
/// use so101_hal::discovery::{Likelihood, adapter};
/// assert_eq!(adapter(0x1a86, 0x55d3).map(|a| a.likelihood), Some(Likelihood::Likely));
/// assert_eq!(adapter(0x2341, 0x0043), None); // an Arduino
/// ```
#[must_use]
pub fn adapter(vid: u16, pid: u16) -> Option<&'static Adapter> {
    ADAPTERS.iter().find(|a| (a.vid, a.pid) == (vid, pid))
}
