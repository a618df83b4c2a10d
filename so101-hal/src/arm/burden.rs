//! Joints that carry too much: eased while they push, rested and weakened after an overload.

use super::configure::{RegisterWrite, set_register};
use super::inner::Core;
use super::inspect::Torque;
use super::limits::{Clip, Track};
use super::options::OverloadPolicy;
use super::{Arm, Holding};
use crate::bus::ServoBus;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId};
use crate::protocol::Alarms;
use crate::registers::{self, GOAL_POSITION, STATUS, TORQUE_ENABLE, TORQUE_LIMIT};
use crate::units::Ticks;

/// The most incidents that are kept for somebody to take.
const MAX_INCIDENTS: usize = 64;

/// Something that the driver did about a joint.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Incident {
    /// The joint.
    pub joint: JointId,
    /// When.
    pub at: Timestamp,
    /// Where the joint was.
    pub position: Ticks,
    /// Its motor current then, in milliamperes.
    pub current_ma: f64,
    /// What happened.
    pub kind: IncidentKind,
}

/// What happened to a joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IncidentKind {
    /// It pushed against something; its goal is kept near its position until a goal lets go.
    Stalled,
    /// Its overload protection has cut in; it rests where it is.
    Overloaded,
    /// The overload is cleared, the torque limit (register 48, in 0.1 %) is lower than it was.
    Cleared {
        /// The limit before.
        from_permille: i32,
        /// The limit now.
        to_permille: i32,
    },
    /// Clearing did not help; the joint rests until the arm is made to hold, resumed or relaxed.
    GivenUp,
    /// Its torque has gone off by itself, as after a restart: the arm is lost, since a goal would make it jump.
    TorqueLost,
}

/// What joint `i` has to bear.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burden {
    pushing_since: Option<Timestamp>,
    is_stalled: bool,
    overload: Option<Overload>,
    /// The torque limit before the driver lowered it.
    limit_before: Option<i32>,
}

#[derive(Clone, Copy, Debug)]
struct Overload {
    since: Timestamp,
    tries: u8,
    rests_at: Ticks,
}

impl Burden {
    /// The joint starts anew; what was taken from its torque limit stays known.
    pub(super) const fn settle(&mut self) {
        self.pushing_since = None;
        self.is_stalled = false;
        self.overload = None;
    }
}

impl<B: ServoBus> Core<B> {
    /// Looks after every joint that has just answered.
    pub(super) fn relieve(&mut self, now: Timestamp) -> Result<()> {
        if !self.in_charge || self.torque != Torque::On || self.stop.stopped() {
            return Ok(());
        }
        for joint in JOINTS {
            if !self.is_fresh(joint.index()) || self.may_be_limp[joint.index()] {
                continue;
            }
            match self.relieve_joint(joint, now) {
                // The servo does not answer just now: the next read tries again, and silence has its own rules.
                Err(Error::NoReply { .. } | Error::RegisterNotSet { .. }) => {}
                other => other?,
            }
        }
        // Pressed meanwhile: clearing an overload would have switched the torque on again.
        self.carry_out_stop();
        Ok(())
    }

    fn relieve_joint(&mut self, joint: JointId, now: Timestamp) -> Result<()> {
        let i = joint.index();
        let is_overloaded = self.states[i].alarms.contains(Alarms::OVERLOAD);
        match (self.burdens[i].overload, self.options.overload) {
            (None, Some(_)) if is_overloaded => {
                let rests_at = self.states[i].telemetry.position;
                self.write_one(i, &GOAL_POSITION, rests_at.0)?;
                self.rest_at(i, rests_at);
                self.burdens[i].overload = Some(Overload { since: now, tries: 0, rests_at });
                self.note(joint, now, IncidentKind::Overloaded);
                Ok(())
            }
            (Some(overload), Some(policy)) if overload.tries < policy.tries => {
                if now.since(overload.since) < policy.rest {
                    return Ok(());
                }
                self.clear_overload(joint, now, &overload, &policy)
            }
            (None, _) => self.watch_stall(joint, now),
            _ => Ok(()),
        }
    }

    /// Lowers the torque limit first: what was too much would be too much again.
    fn clear_overload(
        &mut self,
        joint: JointId,
        now: Timestamp,
        overload: &Overload,
        policy: &OverloadPolicy,
    ) -> Result<()> {
        let i = joint.index();
        let tries = overload.tries.saturating_add(1);
        self.burdens[i].overload = Some(Overload { since: now, tries, ..*overload });
        let (id, attempts) = (self.ids[i], self.options.tries);
        let before = self.bus.read_register(id, &TORQUE_LIMIT)?.value;
        let least = i32::from(policy.least_torque_permille).min(before);
        let lowered = ((f64::from(before) * policy.torque_share) as i32).clamp(least, before);
        // Known even if the write is not acknowledged: it may have been carried out.
        self.burdens[i].limit_before.get_or_insert(before);
        set_register(&mut self.bus, id, &TORQUE_LIMIT, lowered, attempts)?;
        let here = self.states[i].telemetry.position;
        self.write_one(i, &GOAL_POSITION, here.0)?;
        self.write_one(i, &TORQUE_ENABLE, 1)?;
        if self.is_overloaded(i)? {
            // A servo that does not take torque on as an acknowledgement takes off and on.
            self.write_one(i, &TORQUE_ENABLE, 0)?;
            self.write_one(i, &GOAL_POSITION, here.0)?;
            self.write_one(i, &TORQUE_ENABLE, 1)?;
        }
        self.rest_at(i, here);
        let is_on = self.bus.read_register(id, &TORQUE_ENABLE)?.value == 1;
        if is_on && !self.is_overloaded(i)? {
            self.burdens[i].overload = None;
            let kind = IncidentKind::Cleared { from_permille: before, to_permille: lowered };
            self.note(joint, now, kind);
        } else if tries >= policy.tries {
            self.note(joint, now, IncidentKind::GivenUp);
        }
        Ok(())
    }

    fn is_overloaded(&mut self, i: usize) -> Result<bool> {
        let reading = self.bus.read_register(self.ids[i], &STATUS)?;
        self.latched[i] |= reading.alarms;
        Ok((reading.value & i32::from(Alarms::OVERLOAD.bits())) != 0)
    }

    fn watch_stall(&mut self, joint: JointId, now: Timestamp) -> Result<()> {
        let i = joint.index();
        let (Some(rule), Some(goals)) = (self.options.limits.stall_rule(i).copied(), self.goals) else {
            return Ok(());
        };
        let telemetry = &self.states[i].telemetry;
        let error = goals[i].0 - telemetry.position.0;
        let pushes = telemetry.current_ma() >= rule.current_ma && error.abs() >= rule.error.0;
        if !pushes {
            self.burdens[i].pushing_since = None;
            return Ok(());
        }
        let since = *self.burdens[i].pushing_since.get_or_insert(now);
        if self.burdens[i].is_stalled || now.since(since) < rule.after {
            return Ok(());
        }
        self.burdens[i].is_stalled = true;
        self.note(joint, now, IncidentKind::Stalled);
        let here = self.states[i].telemetry.position;
        let eased = Ticks(here.0 + error.clamp(-rule.error.0, rule.error.0));
        self.write_one(i, &GOAL_POSITION, eased.0)?;
        self.rest_at(i, eased);
        Ok(())
    }

    /// Shortens the goal of a joint that is eased or rests.
    pub(super) fn ease(&mut self, i: usize, wanted: Ticks, ticks: &mut Ticks) -> Clip {
        if self.may_be_limp[i] {
            *ticks = self.goals.map_or(self.states[i].telemetry.position, |goals| goals[i]);
            self.tracks[i] = Track::resting(f64::from(ticks.0));
            return Clip::SILENT;
        }
        if let Some(overload) = self.burdens[i].overload {
            *ticks = self.goals.map_or(overload.rests_at, |goals| goals[i]);
            self.tracks[i] = Track::resting(f64::from(ticks.0));
            return Clip::OVERLOAD;
        }
        if !self.burdens[i].is_stalled {
            return Clip::NONE;
        }
        let here = self.states[i].telemetry.position.0;
        let keep = self.options.limits.stall_rule(i).map_or(0, |rule| rule.error.0);
        if (wanted.0 - here).abs() <= keep {
            self.burdens[i].is_stalled = false;
            self.burdens[i].pushing_since = None;
            return Clip::NONE;
        }
        let eased = ticks.0.clamp(here.saturating_sub(keep), here.saturating_add(keep));
        if eased == ticks.0 {
            return Clip::NONE;
        }
        ticks.0 = eased;
        self.tracks[i] = Track::resting(f64::from(eased));
        Clip::STALL
    }

    /// Joint `i` was told to be at `ticks`.
    fn rest_at(&mut self, i: usize, ticks: Ticks) {
        if let Some(goals) = &mut self.goals {
            goals[i] = ticks;
        }
        self.tracks[i] = Track::resting(f64::from(ticks.0));
    }

    pub(super) fn note(&mut self, joint: JointId, at: Timestamp, kind: IncidentKind) {
        if self.incidents.len() < MAX_INCIDENTS {
            let telemetry = &self.states[joint.index()].telemetry;
            let (position, current_ma) = (telemetry.position, telemetry.current_ma());
            self.incidents.push(Incident { joint, at, position, current_ma, kind });
        }
    }
}

impl<B: ServoBus> Arm<B, Holding> {
    /// Gives back what overloads have cost: the torque limits as they were before the driver lowered them. For between
    /// episodes, and for somebody who has looked at the arm; an armed arm has no such method. Joints that rest since
    /// an overload start anew at their present position.
    ///
    /// # Errors
    /// [`Error::ArmHeld`] while the arm is lost, [`Error::NoReply`], [`Error::RegisterNotSet`], as [`Arm::resume`],
    /// and when the port is gone.
    pub fn restore_torque_limits(&mut self) -> Result<alloc::vec::Vec<RegisterWrite>> {
        if self.core.lost.is_some() {
            // It would grip the arm, which only the operator's `resume` may.
            self.core.check_health()?;
        }
        let mut written = alloc::vec::Vec::new();
        for joint in JOINTS {
            let i = joint.index();
            let Some(to) = self.core.burdens[i].limit_before else { continue };
            let (id, tries) = (self.core.ids[i], self.core.options.tries);
            let from = self.core.bus.read_register(id, &registers::TORQUE_LIMIT)?.value;
            set_register(&mut self.core.bus, id, &registers::TORQUE_LIMIT, to, tries)?;
            self.core.burdens[i].limit_before = None;
            written.push(RegisterWrite { joint, id, register: registers::TORQUE_LIMIT, from, to });
        }
        if self.core.burdens.iter().any(|b| b.overload.is_some()) {
            self.core.grip()?;
        }
        Ok(written)
    }
}
