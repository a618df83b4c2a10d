//! The serial port: there, allowed, free, the right adapter.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::discovery::{Discovery, Likelihood, PortAccess, PortInfo, adapter};

use super::item::Item;
use super::report::{Check, Verdict};

/// What is known of the port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortFacts {
    /// Its path.
    pub path: String,
    /// Whether the device is there.
    pub exists: bool,
    /// What keeps the user from opening it, with the way out; `None` = nothing.
    pub denied: Option<String>,
    /// Processes that have it open, such as `python (pid 4711)`; `None` where that cannot be told.
    pub held_by: Option<Vec<String>>,
    /// USB vendor and product.
    pub usb: Option<(u16, u16)>,
    /// USB serial number.
    pub serial: Option<String>,
    /// The serial number that this arm's adapter had before.
    pub expected_serial: Option<String>,
}

impl PortFacts {
    /// Looks at a port without opening it. This process does not count as one that holds it.
    #[must_use]
    pub fn look(discovery: &Discovery, path: &str) -> Self {
        let info = discovery.port(path);
        let access = discovery.access(path);
        let unknown = PortInfo::new(path);
        let known = info.as_ref().unwrap_or(&unknown);
        let held_by = match &access {
            PortAccess::Held { by } => Some(by.iter().map(ToString::to_string).collect()),
            PortAccess::Granted => Some(Vec::new()),
            _ => None,
        };
        let denied = match &access {
            PortAccess::Denied { .. } => access.fix(known),
            _ => None,
        };
        Self {
            path: path.to_string(),
            exists: access != PortAccess::Missing,
            denied,
            held_by,
            usb: known.vid.zip(known.pid),
            serial: known.serial.clone(),
            expected_serial: None,
        }
    }
}

/// Judges the port.
#[must_use]
pub fn port(facts: &PortFacts) -> Vec<Check> {
    let exists = Check::new(Item::PortExists, Verdict::fail_unless(facts.exists))
        .value(facts.path.clone())
        .advice("plug the adapter in; its name may have changed: run find_port, and use the path by id");
    if !facts.exists {
        let gone = |item| Check::skipped(item, "the port is not there");
        return alloc::vec![
            exists,
            gone(Item::PortPermission),
            gone(Item::PortFree),
            gone(Item::PortAdapter)
        ];
    }
    alloc::vec![exists, permission(facts), free(facts), usb_adapter(facts)]
}

fn permission(facts: &PortFacts) -> Check {
    let item = Item::PortPermission;
    match &facts.denied {
        None => Check::new(item, Verdict::Pass).value("allowed"),
        Some(fix) => Check::new(item, Verdict::Fail).value("denied").advice(fix.clone()),
    }
}

fn free(facts: &PortFacts) -> Check {
    let item = Item::PortFree;
    match facts.held_by.as_deref() {
        None => Check::skipped(item, "this machine does not say"),
        Some([]) => Check::new(item, Verdict::Pass).value("free"),
        Some(holders) => Check::new(item, Verdict::Fail)
            .value(format!("held by {}", holders.join(", ")))
            .advice("two programs on one bus damage each other's replies: end the other one"),
    }
}

fn usb_adapter(facts: &PortFacts) -> Check {
    let item = Item::PortAdapter;
    let Some((vid, pid)) = facts.usb else {
        return Check::skipped(item, "not a USB port");
    };
    let likelihood = adapter(vid, pid).map_or(Likelihood::Unlikely, |a| a.likelihood);
    let serial = facts.serial.as_deref();
    let value = format!(
        "{vid:04x}:{pid:04x} {}",
        serial.map_or_else(|| "without a number".to_string(), |s| format!("number {s}"))
    );
    match (facts.expected_serial.as_deref(), serial) {
        (Some(expected), Some(got)) if expected != got => Check::new(item, Verdict::Fail)
            .value(value)
            .limit(format!("number {expected}"))
            .advice("this is another arm's adapter: the ports have changed places; run find_port"),
        (Some(_), None) => Check::new(item, Verdict::Warn).value(value).advice(
            "this adapter has no number, so that arms can be told apart by their calibration alone (find_port does)",
        ),
        _ if likelihood == Likelihood::Unlikely => Check::new(item, Verdict::Warn)
            .value(value)
            .advice("not an adapter that is known to carry a servo bus: is this the right port? Run find_port"),
        _ => Check::new(item, Verdict::Pass).value(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> PortFacts {
        PortFacts {
            path: "/dev/ttyACM0".into(),
            exists: true,
            denied: None,
            held_by: Some(Vec::new()),
            usb: Some((0x1a86, 0x55d3)),
            serial: Some("5A46".into()),
            expected_serial: Some("5A46".into()),
        }
    }

    fn verdicts(facts: &PortFacts) -> Vec<Verdict> {
        port(facts).iter().map(|c| c.verdict).collect()
    }

    #[test]
    fn each_thing_that_can_be_wrong_with_a_port_is_told_apart() {
        use Verdict::{Fail, Pass, Skip, Warn};
        let fix = "sudo usermod -aG dialout $USER".to_owned();
        for (facts, expected) in [
            (good(), [Pass, Pass, Pass, Pass]),
            (PortFacts { exists: false, ..good() }, [Fail, Skip, Skip, Skip]),
            (PortFacts { denied: Some(fix), ..good() }, [Pass, Fail, Pass, Pass]),
            (
                PortFacts { held_by: Some(alloc::vec!["python (pid 7)".into()]), ..good() },
                [Pass, Pass, Fail, Pass],
            ),
            (PortFacts { held_by: None, ..good() }, [Pass, Pass, Skip, Pass]),
            (PortFacts { serial: Some("77".into()), ..good() }, [Pass, Pass, Pass, Fail]),
            (PortFacts { serial: None, ..good() }, [Pass, Pass, Pass, Warn]),
            (PortFacts { usb: Some((0x2341, 0x43)), ..good() }, [Pass, Pass, Pass, Warn]),
            (PortFacts { usb: None, ..good() }, [Pass, Pass, Pass, Skip]),
        ] {
            assert_eq!(verdicts(&facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn what_does_not_pass_says_what_to_do() {
        let facts = PortFacts { denied: Some("add the udev rule".into()), ..good() };
        assert_eq!(port(&facts)[1].advice, "add the udev rule");
    }
}
