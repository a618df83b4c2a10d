//! Who is on the bus.

use alloc::vec::Vec;

use super::{ReplyFault, ServoBus};
use crate::error::{Error, Result};
use crate::protocol::{Alarms, ServoId};

/// An id that something answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundServo {
    /// The id.
    pub id: ServoId,
    /// Its alarms; a damaged answer is mostly that of two servos with the same id at once.
    pub answer: Result<Alarms, ReplyFault>,
}

/// Pings every id and returns those that something answers to. A silent id costs two timeouts, all 254 about ten
/// seconds with the default timing.
///
/// # Errors
/// [`Error::PortIo`] when the port is gone.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::bus::scan;
/// use so101_hal::{EmulatedServos, EmulatorOptions, ServoId, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// let found = scan(&mut servos.bus(), (0..20).filter_map(|id| ServoId::new(id).ok()))?;
/// assert_eq!(found.iter().map(|f| f.id).collect::<Vec<_>>(), ServoId::ARM);
/// # Ok(()) }
/// ```
pub fn scan(
    bus: &mut (impl ServoBus + ?Sized),
    ids: impl IntoIterator<Item = ServoId>,
) -> Result<Vec<FoundServo>> {
    let mut found = Vec::new();
    for id in ids {
        let answer = match bus.ping(id) {
            Ok(alarms) => Ok(alarms),
            Err(Error::NoReply { fault: fault @ ReplyFault::Damaged, .. }) => Err(fault),
            Err(Error::NoReply { .. }) => continue,
            Err(e) => return Err(e),
        };
        found.push(FoundServo { id, answer });
    }
    Ok(found)
}
