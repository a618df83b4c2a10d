//! Supply, heat and alarms.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

use crate::bus::{ServoBus, SyncReplies};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::protocol::{Alarms, ServoId, SyncRow};
use crate::registers::{self, Telemetry};

use super::bus::QUARANTINE;
use super::item::Item;
use super::limits::Limits;
use super::memory::{Finding, ServoMemory, Survey};
use super::report::{Check, Verdict};

/// How long the arm holds itself in the test under load.
const HOLD: Duration = Duration::from_millis(300);
/// Time between two readings of the supply in it.
const HOLD_STEP: Duration = Duration::from_millis(10);
/// How often goals and torque are written and read back.
const TRIES: u32 = 4;
/// A supply this near to a servo's limit is warned about, 0.1 V.
const NEAR_LIMIT_DV: i32 = 3;
/// No servo of the 7.4 V family allows more than this, 0.1 V; no 12 V servo allows as little.
const LOW_FAMILY_MAX_DV: i32 = 90;
/// A supply above this is meant for 12 V servos, 0.1 V.
const HIGH_SUPPLY_DV: i32 = 95;

/// Whether the supply is tested while the arm holds itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldTest {
    /// No: nothing is energised.
    #[default]
    Skip,
    /// Yes: the arm must be free to become stiff where it stands. Motors that were off go off again.
    Energise,
}

/// A supply and the servos that are made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// 5 V to 7.4 V: STS3215 C001, C044, C046.
    Low,
    /// 12 V: STS3215 C018.
    High,
}

impl Supply {
    /// What this voltage is meant to be.
    #[must_use]
    pub const fn of_measured(voltage_dv: i32) -> Self {
        if voltage_dv > HIGH_SUPPLY_DV { Self::High } else { Self::Low }
    }

    /// What a servo is made for, as far as its limits (registers 14 and 15) tell. The model number does not.
    #[must_use]
    pub const fn of_limits(min_dv: i32, max_dv: i32) -> Option<Self> {
        if max_dv <= LOW_FAMILY_MAX_DV {
            Some(Self::Low)
        } else if min_dv >= LOW_FAMILY_MAX_DV {
            Some(Self::High)
        } else {
            None
        }
    }

    /// `7.4 V` or `12 V`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "7.4 V",
            Self::High => "12 V",
        }
    }
}

/// Supply, variant, heat and alarms as the survey has them.
#[must_use]
pub fn at_rest(survey: &Survey, supply: Option<Supply>, limits: &Limits) -> Vec<Check> {
    alloc::vec![
        voltage_idle(survey, limits),
        variant(survey, supply),
        temperature(survey, limits),
        alarms(survey)
    ]
}

fn limits_dv(m: &ServoMemory) -> (i32, i32) {
    (m.value(&registers::MIN_VOLTAGE_LIMIT), m.value(&registers::MAX_VOLTAGE_LIMIT))
}

fn volts(dv: i32) -> String {
    format!("{:.1} V", f64::from(dv) / 10.0)
}

fn voltage_idle(survey: &Survey, limits: &Limits) -> Check {
    let measured = |m: &ServoMemory| m.value(&registers::PRESENT_VOLTAGE);
    let highest = survey.answering().map(|(_, m)| measured(m)).max().unwrap_or(0);
    survey.judge(Item::VoltageIdle, |_, m| {
        let (v, (min, max)) = (measured(m), limits_dv(m));
        let allowed = format!("{} of {} to {}", volts(v), volts(min), volts(max));
        if v < min {
            Finding::new(
                allowed,
                Verdict::Fail,
                "the supply is too low: use the one that the servos are made for",
            )
        } else if v > max {
            let advice = "the supply is too high for this servo: switch it off at once";
            Finding::new(allowed, Verdict::Fail, advice)
        } else if v < min + NEAR_LIMIT_DV || v > max - NEAR_LIMIT_DV {
            Finding::new(
                allowed,
                Verdict::Warn,
                "the supply is near the servo's limit: measure it under load",
            )
        } else if f64::from(highest - v) / 10.0 >= limits.spread_v {
            let advice = "less arrives here than at other servos: check plugs and cable on the way";
            Finding::new(volts(v), Verdict::Warn, advice)
        } else {
            Finding::new(volts(v), Verdict::Pass, String::new())
        }
    })
}

/// 7.4 V and 12 V servos have the same model number: their limits and the supply tell.
fn variant(survey: &Survey, supply: Option<Supply>) -> Check {
    let kinds: Vec<Supply> =
        survey.answering().filter_map(|(_, m)| Supply::of_limits(limits_dv(m).0, limits_dv(m).1)).collect();
    let mixed = kinds.iter().any(|k| Some(k) != kinds.first());
    survey.judge(Item::VoltageVariant, |_, m| {
        let (min, max) = limits_dv(m);
        let measured = Supply::of_measured(m.value(&registers::PRESENT_VOLTAGE));
        let expected = supply.unwrap_or(measured);
        match Supply::of_limits(min, max) {
            Some(kind) if mixed => Finding::new(
                format!("a {} servo", kind.name()),
                Verdict::Fail,
                "servos of two variants are mixed on one supply: replace those of the wrong one",
            ),
            Some(kind) if kind != measured || kind != expected => Finding::new(
                format!("a {} variant on {}", kind.name(), measured.name()),
                Verdict::Fail,
                match kind {
                    Supply::Low => "12 V destroys 7.4 V servos: switch the supply off and use one of 5 to 7.4 V",
                    Supply::High => "12 V servos are weak on a low supply: use a 12 V one",
                },
            ),
            Some(kind) => Finding::new(format!("{} servos on {}", kind.name(), measured.name()), Verdict::Pass, ""),
            None if measured == expected => {
                Finding::new(format!("limits fit both, {} measured", measured.name()), Verdict::Pass, "")
            }
            None => Finding::new(
                format!("{} measured, {} expected", measured.name(), expected.name()),
                Verdict::Warn,
                "this is not the supply that was said to be there: read the label of the servos and of the supply",
            ),
        }
    })
}

fn temperature(survey: &Survey, limits: &Limits) -> Check {
    survey
        .judge(Item::Temperature, |_, m| {
            let c = m.value(&registers::PRESENT_TEMPERATURE);
            let verdict = Verdict::below(f64::from(c), f64::from(limits.warm_c), f64::from(limits.hot_c));
            let advice = "let the arm rest with its torque off; a servo that holds against a stop stays hot";
            Finding::new(format!("{c} C"), verdict, advice)
        })
        .limit(format!("below {} C, {} C fails", limits.warm_c, limits.hot_c))
}

fn alarms(survey: &Survey) -> Check {
    survey.judge(Item::Alarms, |_, m| {
        let alarms = m.alarms();
        if alarms.is_empty() {
            return Finding::new("none", Verdict::Pass, String::new());
        }
        Finding::new(alarms.to_string(), Verdict::Fail, alarm_advice(alarms))
    })
}

/// What to do about alarms.
#[must_use]
pub fn alarm_advice(alarms: Alarms) -> String {
    let known = [
        (Alarms::VOLTAGE, "voltage: measure the supply, and compare it with the servo's label"),
        (Alarms::ANGLE, "angle: the encoder is out of order; power cycle, then replace the servo"),
        (Alarms::HEAT, "heat: let the arm rest with its torque off"),
        (Alarms::CURRENT, "current: something blocks the joint or the motor is damaged"),
        (
            Alarms::OVERLOAD,
            "overload: free the joint, switch its torque off and on (recover does), lower register 48",
        ),
    ];
    let texts: Vec<&str> =
        known.into_iter().filter(|(bit, _)| alarms.contains(*bit)).map(|(_, t)| t).collect();
    if texts.is_empty() { "reserved bits are set: noise on the line".to_string() } else { texts.join("; ") }
}

/// Lets the arm hold itself for 0.3 s and watches the supply. Goals become the present positions before the torque
/// goes on, so nothing moves; servos whose torque was off get it off again, whatever happens. Skipped where a servo is
/// not in position mode: its goal is no position.
///
/// # Errors
/// When the port is gone.
pub fn hold_test(
    bus: &mut (impl ServoBus + ?Sized),
    survey: &Survey,
    clock: &dyn Clock,
    limits: &Limits,
) -> Result<Check> {
    // In other modes the goal is no position (in step mode it is a way to go): with torque the joint would move.
    if survey.answering().any(|(_, m)| m.value(&registers::OPERATING_MODE) != 0) {
        return Ok(Check::skipped(Item::VoltageHold, "not all servos are in position mode: they might move"));
    }
    let off = |m: &&ServoMemory| m.value(&registers::TORQUE_ENABLE) == 0;
    let limp: Vec<ServoId> = survey.answering().map(|(_, m)| m).filter(off).map(ServoMemory::id).collect();
    if !goal_is_present(bus, &limp, clock)? {
        return Ok(Check::new(Item::VoltageHold, Verdict::Fail)
            .value("not made: the goals could not be verified")
            .advice(
                "the arm might jump, so it stays as it is: repair the bus first (see the other checks)",
            ));
    }
    let watched = switch(bus, &limp, 1, clock).and_then(|_| watch(bus, &survey.ids(), clock));
    let released = switch(bus, &limp, 0, clock);
    let lowest = watched?;
    let still_on = released?;
    let mut check = judge_hold(survey, &lowest, limits);
    if !still_on.is_empty() {
        check.verdict = Verdict::Fail;
        check = check.advice(format!(
            "the torque of {} could not be switched off again: cut the power if they must be limp",
            super::chain::list(&still_on)
        ));
    }
    Ok(check)
}

/// Makes the present positions the goals and reads them back; `false` when some could not be verified. Position and
/// goal are read in one block after writing: a servo that missed the write is seen.
fn goal_is_present(bus: &mut (impl ServoBus + ?Sized), ids: &[ServoId], clock: &dyn Clock) -> Result<bool> {
    for id in ids {
        let mut done = false;
        for _ in 0..TRIES {
            let here = read(bus, *id, &registers::PRESENT_POSITION)?;
            if let Some(here) = here {
                let goal = registers::GOAL_POSITION.encode(here)?;
                // Nobody answers a sync write: what counts is read back.
                bus.sync_write(registers::GOAL_POSITION.address, &[SyncRow { id: *id, data: &goal }])?;
            }
            done = here.is_some() && read(bus, *id, &registers::GOAL_POSITION)? == here;
            if done {
                break;
            }
            clock.sleep_until(clock.now() + QUARANTINE);
        }
        if !done {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Switches torque, reads it back, tries again; the servos that did not follow.
fn switch(
    bus: &mut (impl ServoBus + ?Sized),
    ids: &[ServoId],
    torque: u8,
    clock: &dyn Clock,
) -> Result<Vec<ServoId>> {
    let mut left = ids.to_vec();
    for _ in 0..TRIES {
        if left.is_empty() {
            break;
        }
        let rows: Vec<SyncRow<'_>> =
            left.iter().map(|id| SyncRow { id: *id, data: core::slice::from_ref(&torque) }).collect();
        bus.sync_write(registers::TORQUE_ENABLE.address, &rows)?;
        let mut still = Vec::new();
        for id in left {
            if read(bus, id, &registers::TORQUE_ENABLE)? != Some(i32::from(torque)) {
                still.push(id);
            }
        }
        left = still;
        if !left.is_empty() {
            clock.sleep_until(clock.now() + QUARANTINE);
        }
    }
    Ok(left)
}

/// A register; `None` where the servo gave no usable reply.
fn read(
    bus: &mut (impl ServoBus + ?Sized),
    id: ServoId,
    register: &registers::Register,
) -> Result<Option<i32>> {
    match bus.read_register(id, register) {
        Ok(reading) => Ok(Some(reading.value)),
        Err(Error::NoReply { .. }) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The lowest supply of each servo, 0.1 V; `None` for one that was not heard.
fn watch(bus: &mut (impl ServoBus + ?Sized), ids: &[ServoId], clock: &dyn Clock) -> Result<Vec<Option<i32>>> {
    let mut lowest: Vec<Option<i32>> = alloc::vec![None; ids.len()];
    let mut replies = SyncReplies::new();
    let end = clock.now() + HOLD;
    let mut next = clock.now();
    loop {
        bus.sync_read(registers::TELEMETRY, ids, &mut replies)?;
        for (low, (_, reply)) in lowest.iter_mut().zip(replies.iter()) {
            let bytes = reply.ok().and_then(|r| <&[u8; Telemetry::LEN]>::try_from(r.data).ok());
            if let Some(bytes) = bytes {
                let v = i32::from(Telemetry::from_bytes(bytes).voltage_dv);
                *low = Some(low.map_or(v, |l| l.min(v)));
            }
        }
        next = next + HOLD_STEP;
        if next > end {
            return Ok(lowest);
        }
        clock.sleep_until(next);
    }
}

/// Judges the lowest supply of each servo (0.1 V, in the order of the survey) against the one at rest.
#[must_use]
pub fn judge_hold(survey: &Survey, lowest: &[Option<i32>], limits: &Limits) -> Check {
    let mut each = survey.servos.iter().zip(lowest).filter(|(s, _)| s.memory.is_ok()).map(|(_, l)| *l);
    survey
        .judge(Item::VoltageHold, |_, m| {
            let Some(low) = each.next().flatten() else {
                let advice = "the servo stopped answering under load: the supply breaks down";
                return Finding::new("no answer", Verdict::Fail, advice);
            };
            let sag_v = f64::from(m.value(&registers::PRESENT_VOLTAGE) - low) / 10.0;
            // Tenths of a volt as the servo counts them: 0.7 is seven of them.
            let ok = sag_v < limits.sag_v - 1e-9 && low >= limits_dv(m).0;
            let advice = "use a supply that gives more current (5 A at 7.4 V), a shorter and thicker cable";
            Finding::new(format!("{sag_v:.1} V to {}", volts(low)), Verdict::fail_unless(ok), advice)
        })
        .limit(format!("below {:.1} V", limits.sag_v))
}
