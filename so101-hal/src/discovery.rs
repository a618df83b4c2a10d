//! Which serial ports there are, which of them lead to an arm, whether this user may open them, and which arm it is.
//!
//! Ports are found without opening anything: on Linux in `/sys/class/tty`, elsewhere through the operating system's
//! list. Adapters share their USB ids with other devices, and some have no serial number, so an arm is known for
//! certain only by what its servos hold: [`identify`] reads a [`Fingerprint`], [`match_calibration`] compares it with
//! calibration files.

#[cfg(feature = "std")]
mod access;
#[cfg(feature = "std")]
mod adapter;
mod fingerprint;
#[cfg(feature = "std")]
mod ports;
#[cfg(feature = "std")]
mod rules;
#[cfg(feature = "usb")]
pub mod usb;
#[cfg(feature = "std")]
mod watch;

#[cfg(feature = "std")]
pub use access::{Holder, PortAccess, explain};
#[cfg(feature = "std")]
pub use adapter::{Adapter, Likelihood, adapter};
pub use fingerprint::{
    ArmRole, Difference, DifferenceIn, Fingerprint, Match, Misplaced, ServoPrint, identify,
    match_calibration, misplaced,
};
#[cfg(feature = "std")]
pub use ports::{Discovery, PortInfo, list_ports};
#[cfg(feature = "std")]
pub use rules::{RULES_FILE, access_rule, link_rule};
#[cfg(feature = "std")]
pub use watch::{PortEvent, PortWatch, changes};

#[cfg(test)]
mod tests;
