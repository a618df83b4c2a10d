//! udev rules: a fixed name for each arm, and the right to open it.
//!
//! Source: udev(7). Keys that match a parent (`ATTRS`, `KERNELS`) have to match the same parent, here the USB device.

use std::format;
use std::string::{String, ToString as _};

use super::ports::PortInfo;

/// Where the rules belong. The number is below 73, where `uaccess` is dealt with.
pub const RULES_FILE: &str = "/etc/udev/rules.d/70-so101.rules";

/// A rule that lets every user open adapters of this kind.
///
/// ```
/// use so101_hal::discovery::{PortInfo, access_rule};
/// let mut port = PortInfo::new("/dev/ttyACM0");
/// (port.vid, port.pid) = (Some(0x1a86), Some(0x55d3));
/// assert_eq!(
///     access_rule(&port),
///     r#"SUBSYSTEM=="tty", ATTRS{idVendor}=="1a86", ATTRS{idProduct}=="55d3", MODE="0666""#
/// );
/// ```
#[must_use]
pub fn access_rule(port: &PortInfo) -> String {
    format!("SUBSYSTEM==\"tty\", {}MODE=\"0666\"", match_of(port))
}

/// A rule that gives this one adapter the name `/dev/NAME` as well: by its serial number, or by the USB socket that it
/// is plugged into where it has none of its own among `others`. `None` for a port that is no USB device.
#[must_use]
pub fn link_rule(port: &PortInfo, name: &str, others: &[PortInfo]) -> Option<String> {
    port.vid?;
    let kind = match_of(port);
    let twice = others.iter().filter(|o| (o.vid, o.pid, &o.serial) == (port.vid, port.pid, &port.serial));
    let which = match (&port.serial, &port.usb_socket) {
        (Some(serial), _) if twice.count() <= 1 && !is_placeholder(serial) => {
            format!("ATTRS{{serial}}==\"{}\"", pattern(serial))
        }
        (_, Some(socket)) => format!("KERNELS==\"{}\"", pattern(socket)),
        _ => return None,
    };
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect();
    Some(format!("SUBSYSTEM==\"tty\", {kind}{which}, MODE=\"0666\", SYMLINK+=\"{name}\""))
}

fn match_of(port: &PortInfo) -> String {
    match (port.vid, port.pid) {
        (Some(vid), Some(pid)) => {
            format!("ATTRS{{idVendor}}==\"{vid:04x}\", ATTRS{{idProduct}}==\"{pid:04x}\", ")
        }
        _ => {
            let name = port.path.rsplit('/').next().unwrap_or_default();
            format!("KERNEL==\"{}\", ", pattern(name))
        }
    }
}

/// Serial numbers that a maker has left as they come from the chip's factory.
fn is_placeholder(serial: &str) -> bool {
    serial.chars().all(|c| c == '0') || ["0001", "00000001", "0123456789", "123456"].contains(&serial)
}

/// A text as udev matches it: what has a meaning of its own in a rule becomes "any character".
fn pattern(text: &str) -> String {
    text.chars()
        .map(
            |c| {
                if c.is_ascii_alphanumeric() || "-_.:, ".contains(c) {
                    c.to_string()
                } else {
                    "?".to_string()
                }
            },
        )
        .collect()
}
