//! A leader arm: a second SO-101 without torque, moved by a hand.

use alloc::vec::Vec;
use core::time::Duration;

use super::Teleoperator;
use super::coupling::{Coupling, CouplingOptions};
use crate::bus::{ServoBus, SyncReplies};
use crate::calibration::{Calibration, PairOffset};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::joint::JointVector;
use crate::protocol::{ServoId, SyncRow};
use crate::registers::{self, STS3215};
use crate::robot::Action;
use crate::units::{Degrees, Ticks};

/// How often switching the torque off, and reading all joints at the start, is tried.
const TRIES: u8 = 5;

/// How a [`Leader`] works.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeaderOptions {
    /// How far apart the arms may be when they are coupled, and how fast the difference is taken up.
    pub coupling: CouplingOptions,
    /// For how long the last position of a joint that does not answer is good.
    pub max_age: Duration,
    /// What makes the rolls of the pair agree.
    pub pair: PairOffset,
}

impl Default for LeaderOptions {
    /// The default coupling, 200 ms, no offset.
    fn default() -> Self {
        Self {
            coupling: CouplingOptions::default(),
            max_age: Duration::from_millis(200),
            pair: PairOffset::default(),
        }
    }
}

impl LeaderOptions {
    /// Another coupling.
    #[must_use]
    pub const fn with_coupling(mut self, coupling: CouplingOptions) -> Self {
        self.coupling = coupling;
        self
    }

    /// The offset of this pair of arms.
    #[must_use]
    pub const fn with_pair(mut self, pair: PairOffset) -> Self {
        self.pair = pair;
        self
    }

    /// Another age that is good enough.
    #[must_use]
    pub const fn with_max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }
}

/// A leader arm on a bus of its own.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::teleop::{Leader, LeaderOptions, Teleoperator};
/// use so101_hal::{Calibration, EmulatedServos, EmulatorOptions, JointId, Timestamp, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// servos.store_calibration(&Calibration::model())?;
/// let mut leader = Leader::connect(servos.bus(), Calibration::model(), LeaderOptions::default())?;
/// let pose = leader.read(Timestamp::ZERO)?;
/// leader.engage(&pose)?;
/// servos.set_ticks(JointId::ShoulderPan, 2048.0 + 91.0); // a hand
/// let action = leader.action(Timestamp::ZERO)?;
/// # Ok(()) }
/// ```
pub struct Leader<B: ServoBus> {
    bus: B,
    calibration: Calibration,
    options: LeaderOptions,
    ids: [ServoId; 6],
    replies: SyncReplies,
    last: [(Ticks, Timestamp); 6],
    /// Whether `last` holds anything of this run's clock.
    timed: bool,
    coupling: Option<Coupling>,
}

impl<B: ServoBus> core::fmt::Debug for Leader<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Leader").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<B: ServoBus> Leader<B> {
    /// Connects: six servos of the right model whose homing offsets are the calibration's, torque off.
    ///
    /// # Errors
    /// [`Error::ServosSilent`], [`Error::ServoModel`], [`Error::HomingOffset`], [`Error::Torque`] where it does not go
    /// off, errors of the calibration and of the bus.
    pub fn connect(bus: B, calibration: Calibration, options: LeaderOptions) -> Result<Self> {
        let mut ids = ServoId::ARM;
        for (id, c) in ids.iter_mut().zip(calibration.joints()) {
            c.validate()?;
            *id = ServoId::new(c.id)?;
        }
        let mut leader = Self {
            bus,
            calibration,
            options,
            ids,
            replies: SyncReplies::new(),
            last: [(Ticks(0), Timestamp::ZERO); 6],
            timed: false,
            coupling: None,
        };
        leader.check_servos()?;
        leader.relax()?;
        Ok(leader)
    }

    fn check_servos(&mut self) -> Result<()> {
        let mut silent = Vec::new();
        for id in self.ids {
            match self.bus.ping(id) {
                Ok(_) => {}
                Err(Error::NoReply { id, .. }) => silent.push(id),
                Err(e) => return Err(e),
            }
        }
        if !silent.is_empty() {
            return Err(Error::ServosSilent { ids: silent });
        }
        for (id, (joint, c)) in self.ids.into_iter().zip(self.calibration.iter()) {
            let model = self.bus.read_register(id, &registers::MODEL_NUMBER)?.value as u16;
            if model != STS3215 {
                return Err(Error::ServoModel { joint, id: c.id, model, expected: STS3215 });
            }
            let servo = self.bus.read_register(id, &registers::HOMING_OFFSET)?.value;
            if servo != c.homing_offset {
                return Err(Error::HomingOffset { joint, id: c.id, servo, calibration: c.homing_offset });
            }
        }
        Ok(())
    }

    /// Switches the torque off where it is on, and proves it.
    fn relax(&mut self) -> Result<()> {
        let register = registers::TORQUE_ENABLE;
        let mut on: Vec<u8> = Vec::new();
        for _ in 0..TRIES {
            self.bus.sync_read(register.block(), &self.ids, &mut self.replies)?;
            let is_off = |r: Result<crate::bus::Reply<'_>, _>| r.is_ok_and(|r| r.data == [0]);
            on = self.replies.iter().filter(|(_, r)| !is_off(*r)).map(|(id, _)| id.get()).collect();
            if on.is_empty() {
                return Ok(());
            }
            self.bus.sync_write(register.address, &self.ids.map(|id| SyncRow { id, data: &[0] }))?;
        }
        Err(Error::Torque { ids: on, wanted: "off", tries: TRIES })
    }

    /// Where the hand has the arm: LeRobot degrees, gripper percent. Of a joint that does not answer, the last position
    /// while it is not older than [`LeaderOptions::max_age`].
    ///
    /// # Errors
    /// [`Error::LeaderStale`], errors of the calibration, and when the port is gone.
    pub fn read(&mut self, at: Timestamp) -> Result<JointVector<Degrees>> {
        let register = registers::PRESENT_POSITION;
        // The first positions have nothing to fall back on.
        for _ in 0..if self.timed { 1 } else { TRIES } {
            self.bus.sync_read(register.block(), &self.ids, &mut self.replies)?;
            for (slot, (_, reply)) in self.last.iter_mut().zip(self.replies.iter()) {
                if let Some(ticks) = reply.ok().and_then(|r| register.decode(r.data).ok()) {
                    *slot = (Ticks(ticks), at);
                }
            }
            if self.replies.is_complete() {
                self.timed = true;
                break;
            }
        }
        if !self.timed {
            let ids = self.unanswered();
            return Err(Error::LeaderStale { ids, age_ms: 0, limit_ms: millis(self.options.max_age) });
        }
        let stale = |(_, seen): &(Ticks, Timestamp)| at.since(*seen) > self.options.max_age;
        if self.last.iter().any(stale) {
            let oldest = self.last.iter().map(|(_, seen)| at.since(*seen)).max().unwrap_or_default();
            let ids =
                self.ids.iter().zip(&self.last).filter(|(_, l)| stale(l)).map(|(id, _)| id.get()).collect();
            return Err(Error::LeaderStale {
                ids,
                age_ms: millis(oldest),
                limit_ms: millis(self.options.max_age),
            });
        }
        self.calibration.to_degrees(&self.last.map(|(ticks, _)| ticks))
    }

    fn unanswered(&self) -> Vec<u8> {
        self.replies.iter().filter(|(_, r)| r.is_err()).map(|(id, _)| id.get()).collect()
    }

    /// The offset of this leader to a follower whose hand is in the same orientation now; it is used from here on. Store
    /// it with [`PairOffset::save`].
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn measure_pair(&mut self, follower: &JointVector<Degrees>, at: Timestamp) -> Result<PairOffset> {
        let leader = self.read(at)?;
        self.options.pair = PairOffset::measure(&leader, follower)?;
        Ok(self.options.pair)
    }

    /// The calibration.
    #[must_use]
    pub const fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Gives the bus back.
    #[must_use]
    pub fn into_bus(self) -> B {
        self.bus
    }
}

impl<B: ServoBus> Teleoperator for Leader<B> {
    fn name(&self) -> &str {
        "leader"
    }

    /// The gap is that after the pair's roll offset. The age of positions begins to count with the first action.
    fn engage(&mut self, follower: &JointVector<Degrees>) -> Result<()> {
        self.coupling = None;
        self.timed = false;
        let pose = self.read(Timestamp::ZERO)?;
        let pose = self.options.pair.apply(&pose);
        self.coupling = Some(Coupling::engage(&pose, follower, self.options.coupling)?);
        // These positions have no time on the clock of the actions.
        self.timed = false;
        Ok(())
    }

    fn action(&mut self, at: Timestamp) -> Result<Action> {
        if self.coupling.is_none() {
            return Err(Error::NotEngaged { name: self.name().into() });
        }
        let pose = self.read(at)?;
        let pose = self.options.pair.apply(&pose);
        match &mut self.coupling {
            Some(coupling) => Ok(Action { joints: coupling.follow(&pose, at) }),
            None => Err(Error::NotEngaged { name: self.name().into() }),
        }
    }
}

fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
