//! The figures that checks are judged by.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::units::{Degrees, Lux, Percent};

/// Limits of the pre-flight; the defaults are the ones in the table of [the module](super).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// A servo this warm is warned about.
    pub warm_c: u8,
    /// A servo this hot fails.
    pub hot_c: u8,
    /// The supply may fall by less than this while the arm holds, volts.
    pub sag_v: f64,
    /// Supplies of two servos may differ by this at rest, volts.
    pub spread_v: f64,
    /// A joint may stand this far outside of its range, and must be this far from the encoder's wrap.
    pub margin: Degrees,
    /// A body joint may be this far from the reference pose.
    pub start_tolerance: Degrees,
    /// The gripper may be this far from the reference pose.
    pub start_gripper_tolerance: Percent,
    /// A leader's body joint may be this far from the follower's before they are coupled.
    pub leader_gap: Degrees,
    /// The same for the gripper.
    pub leader_gripper_gap: Percent,
    /// Share of lost or repeated reads that fails.
    pub bus_error_share: f64,
    /// A telemetry read at the 99th percentile: warned about, and failed.
    pub bus_p99: [Duration; 2],
    /// The longest time without a whole read: warned about, and failed.
    pub bus_gap: [Duration; 2],
    /// Share by which a camera's rate may be off: warned about, and failed.
    pub rate_share: [f64; 2],
    /// Share of a period by which pictures may come early or late: warned about, and failed.
    pub jitter_share: [f64; 2],
    /// Share of lost pictures that fails.
    pub drop_share: f64,
    /// Mean luma outside of this warns.
    pub luma: RangeInclusive<f64>,
    /// Mean luma outside of this fails.
    pub luma_usable: RangeInclusive<f64>,
    /// Share of clipped pixels: warned about, and failed.
    pub clipped_share: [f64; 2],
    /// Focus measure below these shares of the reference's: warned about, and failed.
    pub focus_share: [f64; 2],
    /// Focus measure below which a picture is blurred whatever it shows; for cameras without a reference.
    pub focus_least: f64,
    /// Shift against the reference picture in pixels: warned about, and failed.
    pub framing_px: [f64; 2],
    /// Correlation with the reference picture below which it is another scene.
    pub framing_ncc: f64,
    /// The usual light.
    pub lux: RangeInclusive<Lux>,
    /// Temperature of the computer: warned about, and failed (a Raspberry Pi 5 slows down from 80 C on).
    pub host_c: [f64; 2],
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            warm_c: 50,
            hot_c: 60,
            sag_v: 0.7,
            spread_v: 0.5,
            margin: Degrees(2.0),
            start_tolerance: Degrees(5.0),
            start_gripper_tolerance: Percent(10.0),
            leader_gap: Degrees(15.0),
            leader_gripper_gap: Percent(30.0),
            bus_error_share: 0.01,
            bus_p99: [Duration::from_millis(10), Duration::from_millis(20)],
            bus_gap: [Duration::from_millis(33), Duration::from_millis(100)],
            rate_share: [0.01, 0.05],
            jitter_share: [0.25, 0.5],
            drop_share: 0.05,
            luma: 40.0..=215.0,
            luma_usable: 15.0..=240.0,
            clipped_share: [0.05, 0.2],
            focus_share: [0.7, 0.4],
            focus_least: 10.0,
            framing_px: [3.0, 8.0],
            framing_ncc: 0.5,
            lux: Lux(25.0)..=Lux(420.0),
            host_c: [75.0, 83.0],
        }
    }
}
