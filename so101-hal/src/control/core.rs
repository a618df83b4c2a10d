//! The loop without its thread.

use alloc::sync::Arc;
use core::time::Duration;

use super::counters::LoopCounters;
use super::interpolate::Interpolator;
use super::{ArmSnapshot, LoopConfig, LoopState};
use crate::arm::{Arm, Armed, Health};
use crate::bus::{BusStats, ServoBus};
use crate::clock::{Clock, Timestamp};
use crate::convert::finite;
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointVector};
use crate::units::Degrees;

/// A control loop whose caller keeps the time: `sleep_until(next_deadline())`, then [`Self::cycle`].
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::arm::ArmOptions;
/// use so101_hal::control::{ControlCore, LoopConfig};
/// use so101_hal::{Arm, Calibration, Clock, EmulatedServos, EmulatorOptions, Percent, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let clock = VirtualClock::new();
/// let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
/// servos.store_calibration(&Calibration::model())?;
/// let options = ArmOptions::new(Arc::new(clock.clone()));
/// let arm = Arm::connect(servos.bus(), Calibration::model(), options)?.into_armed()?;
///
/// let mut control = ControlCore::new(arm, Arc::new(clock.clone()), LoopConfig::default())?;
/// let mut goal = control.snapshot().joints;
/// goal.gripper = Percent(60.0);
/// control.set_goal(&goal, clock.now())?;
/// while clock.now().since_start().as_millis() < 100 {
///     clock.sleep_until(control.next_deadline());
///     control.cycle()?;
/// }
/// assert!(control.counters().cycles >= 15);
/// assert_eq!(control.counters().overruns, 0);
/// # Ok(()) }
/// ```
pub struct ControlCore<B: ServoBus> {
    arm: Arm<B, Armed>,
    clock: Arc<dyn Clock>,
    config: LoopConfig,
    period: Duration,
    start: Timestamp,
    /// Number of the next deadline.
    next: u64,
    path: Interpolator,
    /// When the goal that is followed was decided; `None` = at rest.
    issued: Option<Timestamp>,
    /// The port has failed since then.
    failing_since: Option<Timestamp>,
    tried_to_open: Timestamp,
    bus_before: BusStats,
    counters: LoopCounters,
    snapshot: ArmSnapshot,
}

impl<B: ServoBus> core::fmt::Debug for ControlCore<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ControlCore")
            .field("arm", &self.arm)
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}

impl<B: ServoBus> ControlCore<B> {
    /// Reads the arm once; its first deadline is one period from now.
    ///
    /// # Errors
    /// [`Error::LoopRate`], and errors of the bus; the arm is dropped then, which relaxes or keeps it as its options
    /// say.
    pub fn new(mut arm: Arm<B, Armed>, clock: Arc<dyn Clock>, config: LoopConfig) -> Result<Self> {
        let period = config.period()?;
        let bus_before = arm.bus_mut().stats();
        let before = clock.now();
        let states = *arm.update()?;
        let now = clock.now();
        let joints = arm.calibration().to_degrees(&states.map(|s| s.telemetry.position))?;
        let snapshot = ArmSnapshot {
            sequence: 0,
            at: middle(before, now),
            joints,
            states,
            sent: None,
            state: LoopState::Resting,
            health: arm.health(),
        };
        let mut counters = LoopCounters::default();
        counters.note_states(&states);
        Ok(Self {
            path: Interpolator::new(joints, config.goal_period),
            arm,
            clock,
            config,
            period,
            start: now,
            next: 1,
            issued: None,
            failing_since: None,
            tried_to_open: now,
            bus_before,
            counters,
            snapshot,
        })
    }

    /// When the next cycle is due.
    #[must_use]
    pub fn next_deadline(&self) -> Timestamp {
        self.deadline(self.next)
    }

    /// Without accumulated rounding.
    fn deadline(&self, n: u64) -> Timestamp {
        let nanos = u128::from(n) * self.period.as_nanos();
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Gives a new goal, decided at `issued` on this loop's clock. The arm's limits apply when it is followed.
    ///
    /// # Errors
    /// [`Error::NonFinite`]: the goal before stays.
    pub fn set_goal(&mut self, goal: &JointVector<Degrees>, issued: Timestamp) -> Result<()> {
        check_goal(goal)?;
        self.counters.goals += 1;
        if matches!(self.snapshot.state, LoopState::Lost | LoopState::Stopped) {
            return Ok(());
        }
        if self.issued.is_none() {
            // What the arm was told last is where it is held; before the first goal that is its position.
            self.path.rest_at(self.snapshot.sent.map_or(self.snapshot.joints, |(sent, _)| sent));
        }
        self.path.retarget(goal, self.clock.now());
        // A moment that has not come yet would keep the goal alive for longer than any other.
        self.issued = Some(issued.min(self.clock.now()));
        Ok(())
    }

    /// Lets a lost arm follow goals again, from where it is now. An emergency stop stays.
    ///
    /// The servos' goals are made their present positions first: nothing jumps. Deadlines that pass meanwhile are
    /// left out.
    ///
    /// # Errors
    /// As [`Arm::resume`]; the arm stays lost then.
    pub fn resume(&mut self) -> Result<()> {
        if self.snapshot.state != LoopState::Lost {
            return Ok(());
        }
        self.arm.resume()?;
        self.path
            .rest_at(self.arm.calibration().to_degrees(&self.arm.states().map(|s| s.telemetry.position))?);
        self.snapshot.sent = None;
        self.snapshot.health = self.arm.health();
        self.snapshot.state = LoopState::Resting;
        self.issued = None;
        Ok(())
    }

    /// One cycle: reads, goes a step, counts. Call it at [`Self::next_deadline`].
    ///
    /// # Errors
    /// The port's error, when the port has failed for [`LoopConfig::give_up_after`]. Servos that do not answer are no
    /// error, see [`ArmSnapshot::state`].
    pub fn cycle(&mut self) -> Result<()> {
        let begun = self.clock.now();
        self.counters.cycles += 1;
        self.counters.late.push(begun.since(self.next_deadline()));
        let worked = self.read(begun).and_then(|()| self.follow());
        self.counters.note_bus(self.arm.bus_mut().stats(), self.bus_before);
        let ended = match worked {
            Ok(()) => {
                self.failing_since = None;
                Ok(())
            }
            Err(error) => self.port_failed(error),
        };
        let done = self.clock.now();
        self.counters.total.push(done.since(begun));
        self.schedule(done);
        ended
    }

    /// The next deadline that is not over yet.
    fn schedule(&mut self, done: Timestamp) {
        self.next += 1;
        if done <= self.next_deadline() {
            return;
        }
        self.counters.overruns += 1;
        let gone = done.since(self.start).as_nanos() / self.period.as_nanos().max(1);
        let after = u64::try_from(gone).unwrap_or(u64::MAX).saturating_add(1).max(self.next);
        self.counters.skipped += after - self.next;
        self.next = after;
    }

    fn read(&mut self, begun: Timestamp) -> Result<()> {
        let states = *self.arm.update()?;
        let now = self.clock.now();
        self.counters.last_read = now.since(begun);
        self.counters.read.push(self.counters.last_read);
        self.counters.note_states(&states);
        let snapshot = &mut self.snapshot;
        snapshot.states = states;
        snapshot.health = self.arm.health();
        if states.iter().any(|s| s.missed == 0) {
            snapshot.joints = self.arm.calibration().to_degrees(&states.map(|s| s.telemetry.position))?;
        }
        if snapshot.is_fresh() {
            snapshot.sequence += 1;
            snapshot.at = middle(begun, now);
        }
        Ok(())
    }

    fn follow(&mut self) -> Result<()> {
        let now = self.clock.now();
        self.snapshot.state = match (self.snapshot.state, self.snapshot.health) {
            (LoopState::Stopped, _) => LoopState::Stopped,
            (LoopState::Lost, _) | (_, Health::Lost) => LoopState::Lost,
            (_, Health::Degraded) => LoopState::Degraded,
            (_, Health::Good) => self.fresh_goal(now),
        };
        match self.snapshot.state {
            LoopState::Following => self.step(now),
            LoopState::Lost => {
                self.issued = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether there is a goal to follow. One that has grown old is given up half way: the arm stays where it was
    /// told to be last.
    fn fresh_goal(&mut self, now: Timestamp) -> LoopState {
        let Some(issued) = self.issued else { return LoopState::Resting };
        if now.since(issued) <= self.config.goal_ttl {
            return LoopState::Following;
        }
        self.counters.expired += u64::from(!self.path.arrived(now));
        self.issued = None;
        LoopState::Resting
    }

    fn step(&mut self, now: Timestamp) -> Result<()> {
        let setpoint = self.path.at(now);
        match self.arm.send(&setpoint, now) {
            Ok(sent) => {
                let done = self.clock.now();
                self.counters.send.push(done.since(now));
                self.counters.sent += 1;
                self.counters.clipped += u64::from(sent.is_clipped());
                self.snapshot.sent = Some((sent.joints, done));
                Ok(())
            }
            Err(Error::EmergencyStopped) => {
                self.snapshot.state = LoopState::Stopped;
                self.issued = None;
                Ok(())
            }
            // Its state was good a moment ago: the next read says what it is.
            Err(Error::ArmDegraded { .. } | Error::ArmHeld { .. } | Error::NoReply { .. }) => {
                self.snapshot.state = LoopState::Degraded;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Counts the failure, tries to open the port again from time to time, and gives up in the end.
    fn port_failed(&mut self, error: Error) -> Result<()> {
        self.counters.port_errors += 1;
        if self.snapshot.state != LoopState::Stopped {
            self.snapshot.state = LoopState::Lost;
        }
        self.snapshot.health = Health::Lost;
        self.issued = None;
        let now = self.clock.now();
        let since = *self.failing_since.get_or_insert(now);
        if now.since(since) >= self.config.give_up_after {
            return Err(error);
        }
        if now.since(self.tried_to_open) >= self.config.reopen_every {
            self.tried_to_open = now;
            // What still fails is seen by the next read; an arm that is not this one must not be driven.
            if let Err(other @ Error::OtherArm { .. }) = self.arm.reconnect() {
                return Err(other);
            }
        }
        Ok(())
    }

    /// The arm as of the last cycle.
    #[must_use]
    pub const fn snapshot(&self) -> &ArmSnapshot {
        &self.snapshot
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &LoopCounters {
        &self.counters
    }

    /// The arm, such as for its emergency stop.
    #[must_use]
    pub const fn arm(&self) -> &Arm<B, Armed> {
        &self.arm
    }

    /// Ends the loop. The arm holds what it was told last.
    #[must_use]
    pub fn into_arm(self) -> Arm<B, Armed> {
        self.arm
    }
}

/// Only whole goals are kept.
pub(super) fn check_goal(goal: &JointVector<Degrees>) -> Result<()> {
    goal.to_row()
        .into_iter()
        .zip(JOINTS)
        .try_for_each(|(v, joint)| finite(joint.feature_name(), v).map(|_| ()))
}

fn middle(a: Timestamp, b: Timestamp) -> Timestamp {
    a + b.since(a) / 2
}
