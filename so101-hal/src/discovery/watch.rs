//! Ports that come and go.

use std::vec::Vec;

use serde::Serialize;

use super::ports::{Discovery, PortInfo};

/// What has happened to a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PortEvent {
    /// It was plugged in.
    Appeared {
        /// The port.
        port: PortInfo,
    },
    /// It was unplugged.
    Vanished {
        /// The port as it was.
        port: PortInfo,
    },
    /// The same adapter has another device node now.
    Moved {
        /// Its old node.
        from: std::string::String,
        /// The port as it is.
        port: PortInfo,
    },
}

/// Notices ports that come and go, by looking again and again: no daemon and no rights are needed.
///
/// ```
/// use so101_hal::discovery::{Discovery, PortWatch};
/// let mut watch = PortWatch::new(Discovery::system());
/// assert!(watch.poll().is_empty()); // unless somebody plugs something in just now
/// ```
#[derive(Clone, Debug)]
pub struct PortWatch {
    discovery: Discovery,
    known: Vec<PortInfo>,
}

impl PortWatch {
    /// Takes note of the ports that are there.
    #[must_use]
    pub fn new(discovery: Discovery) -> Self {
        let known = discovery.ports();
        Self { discovery, known }
    }

    /// The ports at the last look.
    #[must_use]
    pub fn ports(&self) -> &[PortInfo] {
        &self.known
    }

    /// What has changed since the last look.
    pub fn poll(&mut self) -> Vec<PortEvent> {
        let now = self.discovery.ports();
        let events = changes(&self.known, &now);
        self.known = now;
        events
    }
}

/// What has happened between two lists of ports.
#[must_use]
pub fn changes(before: &[PortInfo], after: &[PortInfo]) -> Vec<PortEvent> {
    let unchanged =
        |p: &PortInfo, list: &[PortInfo]| list.iter().any(|o| o.path == p.path && o.is_same_adapter(p));
    let mut appeared: Vec<&PortInfo> = after.iter().filter(|p| !unchanged(p, before)).collect();
    let mut events = Vec::new();
    for gone in before.iter().filter(|p| !unchanged(p, after)) {
        let moved = appeared.iter().position(|p| p.is_same_adapter(gone));
        events.push(match moved {
            Some(i) => PortEvent::Moved { from: gone.path.clone(), port: appeared.remove(i).clone() },
            None => PortEvent::Vanished { port: gone.clone() },
        });
    }
    events.extend(appeared.into_iter().map(|p| PortEvent::Appeared { port: p.clone() }));
    events
}
