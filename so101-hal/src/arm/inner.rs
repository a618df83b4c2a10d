//! What all states of an arm share: the bus, what is known of each joint, and what the servos were told.

use alloc::vec::Vec;
use core::mem;

use super::burden::{Burden, Incident, IncidentKind};
use super::estop::EmergencyStop;
use super::inspect::{ServoReport, Torque};
use super::limits::Track;
use super::options::{ArmOptions, OnDrop};
use super::{Health, JointState};
use crate::bus::{ReplyFault, ServoBus, SyncReplies};
use crate::calibration::Calibration;
use crate::clock::Timestamp;
use crate::convert::TURN;
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId, JointVector};
use crate::protocol::{Alarms, ServoId, SyncRow};
use crate::registers::{self, Register, Telemetry};
use crate::units::{Degrees, Ticks};

/// Faster than any hand or motor turns a joint: a reading that jumps further is asked for again. (The servo's own limit
/// is about 3400 steps a second.)
const PLAUSIBLE_TICKS_S: f64 = 6000.0;

/// A jump that is always believed: the encoder's noise and the time between two readings.
const PLAUSIBLE_TICKS: f64 = 64.0;

pub(super) struct Core<B: ServoBus> {
    pub(super) bus: B,
    pub(super) calibration: Calibration,
    pub(super) options: ArmOptions,
    pub(super) ids: [ServoId; 6],
    pub(super) reports: [ServoReport; 6],
    pub(super) states: [JointState; 6],
    /// Alarms that nobody has taken yet.
    pub(super) latched: [Alarms; 6],
    pub(super) incidents: Vec<Incident>,
    pub(super) replies: SyncReplies,
    /// What was wrong with each joint's last reply.
    faults: [Option<ReplyFault>; 6],
    /// Since when each joint does not answer.
    missing_since: [Option<Timestamp>; 6],
    /// When that was seen last. Time without reads is not held against a joint.
    judged_at: Timestamp,
    /// The joint whose silence made the arm lost.
    pub(super) lost: Option<JointId>,
    /// As far as this driver knows; on when it may be on.
    pub(super) torque: Torque,
    /// Whether this driver has energised or steered the arm: only then does it clean up behind itself.
    pub(super) in_charge: bool,
    /// What the servos were told last.
    pub(super) goals: Option<[Ticks; 6]>,
    pub(super) tracks: [Track; 6],
    pub(super) told_at: Timestamp,
    pub(super) stop: EmergencyStop,
    /// The torque was read back as off since the stop.
    pub(super) stop_carried_out: bool,
    pub(super) burdens: [Burden; 6],
    /// The port was opened again, and whose arm is behind it has not been seen yet.
    pub(super) unverified: bool,
    /// Joints that may have restarted: silent or not read for a while, or short of voltage. A servo that has restarted is limp, and
    /// a goal would make it jump there.
    pub(super) may_be_limp: [bool; 6],
}

impl<B: ServoBus> Core<B> {
    pub(super) fn new(
        bus: B,
        calibration: Calibration,
        options: ArmOptions,
        reports: [ServoReport; 6],
    ) -> Self {
        let now = options.clock.now();
        let any_on = reports.iter().any(|r| r.torque != Torque::Off);
        let stop = EmergencyStop::new(bus.emergency_writer());
        Self {
            ids: reports.map(|r| r.id),
            states: reports.map(|r| found_state(&r, now)),
            latched: reports.map(|r| r.alarms),
            torque: if any_on { Torque::On } else { Torque::Off },
            tracks: reports.map(|r| Track::resting(f64::from(r.telemetry.position.0))),
            incidents: Vec::new(),
            replies: SyncReplies::new(),
            faults: [None; 6],
            missing_since: [None; 6],
            judged_at: now,
            lost: None,
            in_charge: false,
            goals: None,
            told_at: now,
            stop,
            stop_carried_out: false,
            burdens: Default::default(),
            unverified: false,
            may_be_limp: [false; 6],
            bus,
            calibration,
            options,
            reports,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// One read of everything, and what follows from it.
    pub(super) fn update(&mut self) -> Result<()> {
        self.carry_out_stop();
        let asked = self.now();
        let outcome = self.bus.sync_read(registers::TELEMETRY, &self.ids, &mut self.replies);
        let now = self.now();
        if let Err(e) = outcome {
            self.faults = [Some(ReplyFault::Missing); 6];
            self.judge(asked, now);
            return Err(e);
        }
        let mut doubtful = [None; 6];
        for (i, doubt) in doubtful.iter_mut().enumerate() {
            self.faults[i] = match telemetry(&self.replies, i) {
                Ok((alarms, telemetry)) if self.is_plausible(i, telemetry.position, now) => {
                    self.accept(i, alarms, telemetry, now);
                    None
                }
                Ok((_, telemetry)) => {
                    *doubt = Some(telemetry.position);
                    Some(ReplyFault::Damaged)
                }
                Err(fault) => Some(fault),
            };
        }
        if doubtful.iter().any(Option::is_some) {
            self.ask_again(&doubtful)?;
        }
        self.judge(asked, now);
        self.look_for_restarts(now)?;
        self.relieve(now)
    }

    /// A position that jumped is believed when a second reading says the same, or the second one itself when it does
    /// not jump. (A checksum of eight bits lets one of 256 damaged packets pass.)
    fn ask_again(&mut self, doubtful: &[Option<Ticks>; 6]) -> Result<()> {
        self.bus.sync_read(registers::TELEMETRY, &self.ids, &mut self.replies)?;
        let now = self.now();
        for (i, first) in doubtful.iter().enumerate() {
            let Some(first) = first else { continue };
            let Ok((alarms, telemetry)) = telemetry(&self.replies, i) else { continue };
            let agrees = distance(telemetry.position, *first) <= PLAUSIBLE_TICKS;
            if !agrees {
                self.states[i].implausible = self.states[i].implausible.saturating_add(1);
            }
            if agrees || self.is_plausible(i, telemetry.position, now) {
                self.accept(i, alarms, telemetry, now);
                self.faults[i] = None;
            }
        }
        Ok(())
    }

    fn is_plausible(&self, i: usize, position: Ticks, now: Timestamp) -> bool {
        let state = &self.states[i];
        let reach = PLAUSIBLE_TICKS_S * now.since(state.at).as_secs_f64() + PLAUSIBLE_TICKS;
        distance(position, state.telemetry.position) <= reach
    }

    fn accept(&mut self, i: usize, alarms: Alarms, telemetry: Telemetry, now: Timestamp) {
        let JointState { implausible, alarms: before, .. } = self.states[i];
        let alarms = alarms | telemetry.status;
        let is_short_of_voltage = alarms.contains(Alarms::VOLTAGE) && !before.contains(Alarms::VOLTAGE);
        // Nobody saw what happened to a joint that was not read for long: its power may have gone and come back.
        let unseen = now.since(self.states[i].at) > self.options.watchdog.lost_after;
        self.may_be_limp[i] |= self.missing_since[i].is_some() || is_short_of_voltage || unseen;
        self.latched[i] |= alarms;
        self.states[i] = JointState { telemetry, alarms, missed: 0, at: now, implausible };
    }

    /// What silence means.
    fn judge(&mut self, asked: Timestamp, now: Timestamp) {
        self.judged_at = now;
        for (i, joint) in JOINTS.into_iter().enumerate() {
            if self.faults[i].is_none() {
                self.missing_since[i] = None;
                continue;
            }
            self.states[i].missed = self.states[i].missed.saturating_add(1);
            let since = *self.missing_since[i].get_or_insert(asked);
            if self.is_energised() && now.since(since) > self.options.watchdog.lost_after {
                self.lost.get_or_insert(joint);
            }
        }
    }

    /// Asks joints that may have restarted whether their torque is still on. One that has lost it makes the arm lost.
    fn look_for_restarts(&mut self, now: Timestamp) -> Result<()> {
        if !self.is_energised() || self.stop.stopped() {
            self.may_be_limp = [false; 6];
        }
        if !self.may_be_limp.contains(&true) {
            return Ok(());
        }
        let torque = self.read_all(&registers::TORQUE_ENABLE)?;
        for (joint, torque) in JOINTS.into_iter().zip(torque) {
            let Some(torque) = torque else { continue };
            if mem::take(&mut self.may_be_limp[joint.index()]) && torque != 1 {
                self.lost.get_or_insert(joint);
                self.note(joint, now, IncidentKind::TorqueLost);
            }
        }
        Ok(())
    }

    fn is_energised(&self) -> bool {
        self.in_charge && self.torque != Torque::Off
    }

    pub(super) fn health(&self) -> Health {
        let now = self.judged_at;
        let silent = |i: usize| self.missing_since[i].map(|since| now.since(since));
        let watchdog = &self.options.watchdog;
        if self.lost.is_some() || (0..6).any(|i| silent(i).is_some_and(|s| s > watchdog.lost_after)) {
            Health::Lost
        } else if (0..6).any(|i| silent(i).is_some() && self.age(i, now) > watchdog.degraded_after) {
            Health::Degraded
        } else {
            Health::Good
        }
    }

    fn age(&self, i: usize, now: Timestamp) -> core::time::Duration {
        now.since(self.states[i].at)
    }

    /// Reads again where a reading is older than `limit`.
    pub(super) fn refresh(&mut self, limit: core::time::Duration) -> Result<()> {
        let now = self.now();
        if (0..6).any(|i| self.age(i, now) > limit) { self.update() } else { Ok(()) }
    }

    /// Refuses what needs a known state.
    pub(super) fn check_health(&self) -> Result<()> {
        let now = self.now();
        let oldest = JOINTS.into_iter().max_by_key(|j| self.age(j.index(), now));
        let joint = self.lost.or(oldest).unwrap_or(JointId::ShoulderPan);
        let silent = self.age(joint.index(), now);
        match self.health() {
            Health::Good if silent <= self.options.watchdog.degraded_after => Ok(()),
            Health::Good | Health::Degraded => Err(Error::ArmDegraded { joint, silent }),
            Health::Lost => Err(Error::ArmHeld { joint, silent }),
        }
    }

    /// The joints as read last.
    pub(super) fn present(&self) -> Result<JointVector<Degrees>> {
        if let Some((id, fault)) = self.ids.iter().zip(self.faults).find_map(|(id, f)| Some((id, f?))) {
            return Err(Error::NoReply { what: "telemetry read", id: id.get(), fault });
        }
        self.calibration.to_degrees(&self.positions())
    }

    pub(super) fn positions(&self) -> [Ticks; 6] {
        self.states.map(|s| s.telemetry.position)
    }

    pub(super) const fn is_fresh(&self, i: usize) -> bool {
        self.faults[i].is_none()
    }

    /// Refuses while the emergency stop is latched, and sees to it that it is carried out.
    pub(super) fn check_stop(&mut self) -> Result<()> {
        if self.stop.stopped() {
            self.carry_out_stop();
            return Err(Error::EmergencyStopped);
        }
        Ok(())
    }

    /// The frame of an emergency stop may meet a reply on the wire, or a goal may follow it: it is repeated until the
    /// torque was read as off.
    pub(super) fn carry_out_stop(&mut self) {
        if !self.stop.stopped() || self.stop_carried_out {
            return;
        }
        // The next call tries again; the stop itself has been reported to who pressed it.
        let _ = self.bus.broadcast_write(registers::TORQUE_ENABLE.address, &[0]);
        if self.read_torque().is_ok_and(|torque| torque == [Torque::Off; 6]) {
            self.torque = Torque::Off;
            self.stop_carried_out = true;
        }
    }

    /// Tells all joints where to go, except those that may be limp.
    pub(super) fn write_goals(&mut self, ticks: &[Ticks; 6]) -> Result<()> {
        // A goal switches the torque on: what a stop has done before it is undone, and to be done again.
        self.torque = Torque::On;
        self.stop_carried_out = false;
        let told = self.may_be_limp.map(|limp| !limp);
        self.write_some(&registers::GOAL_POSITION, &ticks.map(|t| t.0), told)?;
        self.goals = Some(*ticks);
        self.told_at = self.now();
        Ok(())
    }

    /// One register of all servos with one packet.
    pub(super) fn write_all(&mut self, register: &Register, values: &[i32; 6]) -> Result<()> {
        self.write_some(register, values, [true; 6])
    }

    fn write_some(&mut self, register: &Register, values: &[i32; 6], told: [bool; 6]) -> Result<()> {
        let mut bytes = [[0; 2]; 6];
        for (bytes, value) in bytes.iter_mut().zip(values) {
            *bytes = register.encode(*value)?;
        }
        let size = usize::from(register.size).min(2);
        let mut rows = [SyncRow { id: self.ids[0], data: &[] }; 6];
        let mut n = 0;
        for i in (0..6).filter(|i| told[*i]) {
            rows[n] = SyncRow { id: self.ids[i], data: &bytes[i][..size] };
            n += 1;
        }
        if n == 0 {
            return Ok(());
        }
        self.bus.sync_write(register.address, &rows[..n])
    }

    /// One register of one servo, not answered: for what is checked by the next read anyway.
    pub(super) fn write_one(&mut self, i: usize, register: &Register, value: i32) -> Result<()> {
        let bytes = register.encode(value)?;
        let size = usize::from(register.size).min(2);
        let id = self.ids[i];
        self.bus.sync_write(register.address, &[SyncRow { id, data: &bytes[..size] }])
    }

    /// One register of all servos; `None` for those that do not answer.
    pub(super) fn read_all(&mut self, register: &Register) -> Result<[Option<i32>; 6]> {
        self.bus.sync_read(register.block(), &self.ids, &mut self.replies)?;
        let mut values = [None; 6];
        for (i, value) in values.iter_mut().enumerate() {
            if let Some((_, Ok(reply))) = self.replies.get(i) {
                self.latched[i] |= reply.alarms;
                *value = register.decode(reply.data).ok();
            }
        }
        Ok(values)
    }

    pub(super) fn read_torque(&mut self) -> Result<[Torque; 6]> {
        let values = self.read_all(&registers::TORQUE_ENABLE)?;
        let mut torque = [Torque::Off; 6];
        for (i, (torque, value)) in torque.iter_mut().zip(values).enumerate() {
            let Some(value) = value else {
                let fault = self.replies.get(i).and_then(|(_, r)| r.err()).unwrap_or(ReplyFault::Missing);
                return Err(Error::NoReply { what: "torque read", id: self.ids[i].get(), fault });
            };
            *torque = Torque::from_register(u8::try_from(value).unwrap_or(u8::MAX));
        }
        Ok(torque)
    }

    /// What was read on connecting again.
    pub(super) fn take_reports(&mut self, reports: [ServoReport; 6]) {
        let now = self.now();
        for (i, report) in reports.iter().enumerate() {
            self.latched[i] |= report.alarms;
            self.states[i] =
                JointState { implausible: self.states[i].implausible, ..found_state(report, now) };
        }
        self.reports = reports;
        self.faults = [None; 6];
        self.missing_since = [None; 6];
        self.judged_at = now;
    }

    /// Begins anew at rest at `ticks`.
    pub(super) fn settle_at(&mut self, ticks: &[Ticks; 6]) {
        self.tracks = ticks.map(|t| Track::resting(f64::from(t.0)));
        self.told_at = self.now();
        for burden in &mut self.burdens {
            burden.settle();
        }
    }

    /// Ends what [`Health::Lost`] latched.
    pub(super) fn found_again(&mut self) {
        let _ = mem::take(&mut self.lost);
    }
}

impl<B: ServoBus> Drop for Core<B> {
    fn drop(&mut self) {
        let relax = (self.in_charge && self.options.on_drop == OnDrop::Relax) || self.stop.stopped();
        if relax && self.torque != Torque::Off && self.switch_torque(Torque::Off).is_err() {
            // Nobody is left to tell; an e-stop or the power switch remain.
            let _ = self.bus.broadcast_write(registers::TORQUE_ENABLE.address, &[0]);
        }
    }
}

fn found_state(report: &ServoReport, at: Timestamp) -> JointState {
    JointState { telemetry: report.telemetry, alarms: report.alarms, missed: 0, at, implausible: 0 }
}

fn telemetry(replies: &SyncReplies, i: usize) -> Result<(Alarms, Telemetry), ReplyFault> {
    let (_, reply) = replies.get(i).ok_or(ReplyFault::Missing)?;
    let reply = reply?;
    let bytes = reply.data.try_into().map_err(|_| ReplyFault::Missing)?;
    Ok((reply.alarms, Telemetry::from_bytes(bytes)))
}

/// The way between two positions, the shorter way round: a joint may pass the end of the encoder's turn.
fn distance(a: Ticks, b: Ticks) -> f64 {
    let around = a.0.wrapping_sub(b.0).rem_euclid(TURN);
    f64::from(around.min(TURN - around))
}
