//! The servos: who answers, and whether their registers are what this arm needs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::arm::ServoProfile;
use crate::bus::ServoBus;
use crate::calibration::Calibration;
use crate::clock::Clock;
use crate::error::Result;
use crate::joint::JointId;
use crate::protocol::ServoId;
use crate::registers::{self, PHASE_MULTI_TURN, Register, STS3215};

use super::bus::{duplicate_ids, stray_ids};
use super::chain::{Answers, ChainFault, list};
use super::item::Item;
use super::limits::Limits;
use super::memory::{Finding, ServoMemory, Survey};
use super::power::{self, HoldTest};
use super::report::{Check, Verdict};
use super::{arm, bus};

/// Bit 3 of [`registers::PHASE`]: a goal velocity of 0 means the highest, not standing still.
pub const PHASE_ZERO_IS_FASTEST: i32 = 1 << 3;

/// Gains of a new servo.
const FACTORY_PID: [i32; 3] = [32, 0, 32];

/// Single pings and reads of each id in the test for shared ids.
const PROBES: u32 = 10;

/// What the servos' registers should be, beside the calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// P, I and D of the position loop.
    pub pid: [i32; 3],
    /// Register 7.
    pub return_delay: i32,
    /// Registers 48, 28 and 36 of the gripper; `None` for an arm whose gripper is moved by hand.
    pub gripper: Option<[i32; 3]>,
}

impl Default for Expected {
    /// What [`ServoProfile::follower`] asks for.
    fn default() -> Self {
        Self::of(&ServoProfile::follower())
    }
}

impl Expected {
    /// What a profile asks for. Gains that it leaves as they are should be those of a new servo.
    #[must_use]
    pub fn of(profile: &ServoProfile) -> Self {
        Self {
            pid: profile.pid.map_or(FACTORY_PID, |g| [g.p, g.i, g.d].map(i32::from)),
            return_delay: profile.return_delay_2us.into(),
            gripper: profile.gripper.map(|g| {
                let [torque, current] = [g.max_torque_permille, g.protection_current_6_5ma].map(i32::from);
                [torque, current, g.overload_torque_percent.into()]
            }),
        }
    }

    /// Other gains, such as those of the episodes before.
    #[must_use]
    pub const fn with_pid(mut self, p: i32, i: i32, d: i32) -> Self {
        self.pid = [p, i, d];
        self
    }

    /// What [`ServoProfile::leader`] asks for: the gains of a new servo, no gripper limits.
    #[must_use]
    pub fn leader() -> Self {
        Self::of(&ServoProfile::leader())
    }
}

/// Which ids beside the arm's own are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StrayScan {
    /// None.
    Off,
    /// 0 to 20: where ids lie that somebody gave. Half a second.
    #[default]
    Near,
    /// All 253. About ten seconds.
    Full,
}

/// How [`servos`] looks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServoOptions {
    /// Figures to judge by.
    pub limits: Limits,
    /// What the registers should be; `None` leaves gains and gripper limits out.
    pub expected: Option<Expected>,
    /// State of the motors that is expected; `None` = the same in all.
    pub torque: Option<crate::arm::Torque>,
    /// Which other ids are asked.
    pub stray: StrayScan,
    /// Whether the supply is tested under load.
    pub hold: HoldTest,
    /// Which supply the operator says there is.
    pub supply: Option<power::Supply>,
}

/// What [`servos`] found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServosFound {
    /// The checks.
    pub checks: Vec<Check>,
    /// The registers that they are about.
    pub survey: Survey,
}

/// Looks at the six servos: identity, settings, supply, calibration. Writes nothing, unless the options ask for the
/// test under load.
///
/// # Errors
/// When the port is gone, and for a calibration with an impossible id. Everything else is a failed check.
pub fn servos(
    bus: &mut (impl ServoBus + ?Sized),
    calibration: &Calibration,
    options: &ServoOptions,
    clock: &dyn Clock,
) -> Result<ServosFound> {
    let survey = Survey::read(bus, calibration)?;
    let answers = bus::probe(bus, &survey.ids(), clock, PROBES)?;
    let strays = bus::scan_strays(bus, &survey.ids(), options.stray)?;
    let mut checks = identity(&survey, &answers);
    checks.push(stray_ids(options.stray, &strays));
    checks.extend(settings(&survey, options.expected));
    checks.extend(power::at_rest(&survey, options.supply, &options.limits));
    checks.push(match (options.hold, survey.silent().next()) {
        (HoldTest::Skip, _) => Check::skipped(Item::VoltageHold, "not asked for, since it energises the arm"),
        (HoldTest::Energise, Some(_)) => Check::skipped(Item::VoltageHold, "not all servos answer"),
        (HoldTest::Energise, None) => power::hold_test(bus, &survey, clock, &options.limits)?,
    });
    checks.push(arm::calibration_equal(&survey, calibration));
    checks.push(arm::torque_state(&survey, options.torque));
    Ok(ServosFound { checks, survey })
}

/// Who answers, as what.
#[must_use]
pub fn identity(survey: &Survey, answers: &[Answers]) -> Vec<Check> {
    let model = survey.judge(Item::ServoModel, |_, m| {
        let model = m.value(&registers::MODEL_NUMBER);
        let advice = match model {
            2307 => "its bytes are swapped: the servo is set to big endian, which this bus does not speak",
            _ => "an SO-101 has six STS3215: replace this servo",
        };
        Finding::new(format!("{model}"), Verdict::fail_unless(model == i32::from(STS3215)), advice)
    });
    alloc::vec![six_answer(survey), model, duplicate_ids(answers), firmware(survey)]
}

fn six_answer(survey: &Survey) -> Check {
    let item = Item::ServosAnswer;
    match ChainFault::find(survey.servos.iter().map(|s| (s.id, s.memory.is_ok()))) {
        None => Check::new(item, Verdict::Pass).value("all six"),
        Some(fault) => Check::new(item, Verdict::Fail).value(format!("{fault}")).advice(fault.advice()),
    }
}

/// LeRobot refuses servos whose firmware differs; it is no more than a warning here, since the registers are the same
/// from 3.9 on.
fn firmware(survey: &Survey) -> Check {
    let text = |m: &ServoMemory| format!("{}.{}", m.firmware().0, m.firmware().1);
    let mut all: Vec<(u8, u8)> = survey.answering().map(|(_, m)| m.firmware()).collect();
    all.sort_unstable();
    let most = most_common(&all);
    let advice = "LeRobot refuses such an arm, and the servos may move differently: bring all to one version with \
                  Feetech's program (Windows)";
    survey.judge(Item::FirmwareEqual, |_, m| {
        Finding::new(text(m), Verdict::warn_unless(Some(m.firmware()) == most), advice)
    })
}

/// The value that most have, of a sorted list.
fn most_common<T: Copy + PartialEq>(sorted: &[T]) -> Option<T> {
    let count = |v: &T| sorted.iter().filter(|o| *o == v).count();
    sorted.iter().max_by_key(|v| count(v)).copied()
}

/// Settings of the EEPROM that every arm needs, and those of the profile.
#[must_use]
pub fn settings(survey: &Survey, expected: Option<Expected>) -> Vec<Check> {
    let equal = |item, register: &'static Register, wanted: i32, bad: Verdict, advice: &'static str| {
        survey.judge(item, |_, m| {
            let value = m.value(register);
            let verdict = if value == wanted { Verdict::Pass } else { bad };
            Finding::new(format!("{value}"), verdict, advice)
        })
    };
    let delay = expected.unwrap_or_default().return_delay;
    let mut checks = alloc::vec![
        baud_rate(survey),
        equal(
            Item::ResponseLevel,
            &registers::RESPONSE_STATUS_LEVEL,
            1,
            Verdict::Fail,
            "the servo does not answer writes, so nobody knows whether they arrived: write 1 to register 8 \
             (configure does)",
        ),
        survey
            .judge(Item::ReturnDelay, |_, m| {
                let value = m.value(&registers::RETURN_DELAY_TIME);
                let verdict = Verdict::warn_unless(value <= delay);
                let advice =
                    "each reply comes later than it could (2 us a count): configure the arm, which writes 0";
                Finding::new(format!("{value}"), verdict, advice)
            })
            .limit(format!("{delay} (factory: 250 = 500 us)")),
        survey.judge(Item::PhaseBit4, |_, m| phase(m.value(&registers::PHASE))),
        equal(
            Item::OperatingMode,
            &registers::OPERATING_MODE,
            0,
            Verdict::Fail,
            "goals are not positions in this mode: configure the arm, which writes 0",
        ),
    ];
    match expected {
        None => {
            let why = "no profile given";
            checks.extend([Item::GripperLimits, Item::PidProfile].map(|item| Check::skipped(item, why)));
        }
        Some(expected) => {
            checks.push(gripper_limits(survey, expected.gripper));
            checks.push(pid_profile(survey, expected.pid));
        }
    }
    checks
}

/// A servo that was set to another rate is silent at this one, so that silence is a reason to doubt.
fn baud_rate(survey: &Survey) -> Check {
    let check = survey.judge(Item::BaudRate, |_, m| {
        let code = m.value(&registers::BAUD_RATE);
        let advice = "the servo talks at another rate after the next power cycle: run setup_motors";
        Finding::new(format!("{code}"), Verdict::fail_unless(code == 0), advice)
    });
    let silent: Vec<ServoId> = survey.silent().collect();
    if silent.is_empty() || check.verdict != Verdict::Pass {
        return check;
    }
    Check::new(Item::BaudRate, Verdict::Warn)
        .value(format!("{} silent at 1 Mbaud", list(&silent)))
        .advice("it may talk at another rate: run diagnose, which asks at all of them, then setup_motors")
}

fn phase(value: i32) -> Finding {
    if value & i32::from(PHASE_MULTI_TURN) != 0 {
        let advice = "positions run beyond one turn (LeRobot: \"Magnitude exceeds 2047\"): clear bit 4 of register 18 \
                      (configure does), then calibrate";
        Finding::new(format!("set ({value:#04x})"), Verdict::Fail, advice)
    } else if value & PHASE_ZERO_IS_FASTEST == 0 {
        let advice = "with bit 3 clear a goal velocity of 0 means standing still: the joint is stiff and does not \
                      move unless register 46 is written";
        Finding::new(format!("clear, bit 3 too ({value:#04x})"), Verdict::Warn, advice)
    } else {
        Finding::new("clear", Verdict::Pass, String::new())
    }
}

fn gripper_limits(survey: &Survey, wanted: Option<[i32; 3]>) -> Check {
    let item = Item::GripperLimits;
    let Some(most @ [torque, current, overload]) = wanted else {
        return Check::skipped(item, "this arm's gripper is moved by hand");
    };
    let Some((_, m)) = survey.answering().find(|(joint, _)| *joint == JointId::Gripper) else {
        return Check::skipped(item, "the gripper does not answer");
    };
    let registers = [&registers::TORQUE_LIMIT, &registers::PROTECTION_CURRENT, &registers::OVERLOAD_TORQUE];
    let got = registers.map(|r| m.value(r));
    let verdict = match (got[0] <= most[0], got[1] <= most[1] && got[2] <= most[2]) {
        (true, true) => Verdict::Pass,
        (true, false) => Verdict::Warn,
        (false, _) => Verdict::Fail,
    };
    let advice = if got[0] > most[0] && m.value(&registers::MAX_TORQUE_LIMIT) <= most[0] {
        "register 16 is right, but acts only after a power cycle: write register 48 too (configure does), or switch \
         the supply off and on"
    } else {
        "a closed gripper pushes on until it burns: configure the arm, which writes registers 16, 48, 28 and 36"
    };
    Check::new(item, verdict)
        .value(format!("torque {}, current {}, overload {}", got[0], got[1], got[2]))
        .limit(format!("torque {torque}, current {current}, overload {overload} at most"))
        .advice(advice)
}

fn pid_profile(survey: &Survey, wanted: [i32; 3]) -> Check {
    let [p, i, d] = wanted;
    let advice = "the arm moves differently from the episodes before: configure it with their profile, or start a new \
                  dataset";
    survey
        .judge(Item::PidProfile, |_, m| {
            let got = [
                m.value(&registers::P_COEFFICIENT),
                m.value(&registers::I_COEFFICIENT),
                m.value(&registers::D_COEFFICIENT),
            ];
            let value = format!("{}, {}, {}", got[0], got[1], got[2]);
            Finding::new(value, Verdict::fail_unless(got == wanted), advice)
        })
        .limit(format!("{p}, {i}, {d}"))
}

/// The ids that a scan asks, without the arm's own.
pub(super) fn other_ids(own: &[ServoId], scan: StrayScan) -> impl Iterator<Item = ServoId> {
    let last = match scan {
        StrayScan::Off => None,
        StrayScan::Near => Some(20),
        StrayScan::Full => Some(crate::protocol::BROADCAST_ID - 1),
    };
    let own = own.to_vec();
    last.into_iter()
        .flat_map(|last| 0..=last)
        .filter_map(|id| ServoId::new(id).ok())
        .filter(move |id| !own.contains(id))
}
