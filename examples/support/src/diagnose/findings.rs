//! What the answers and registers of an arm mean, and what to do.

use serde::Serialize;
use so101_hal::preflight::chain::{Answers, ChainFault, ErrorCause};
use so101_hal::preflight::power::{Supply, alarm_advice, at_rest};
use so101_hal::preflight::{
    self, Check, Expected, Item, Limits, PHASE_ZERO_IS_FASTEST, ServoMemory, Survey, Verdict,
};
use so101_hal::protocol::Alarms;
use so101_hal::{JointId, ServoId, registers};

use super::scan::Heard;

/// A joint with torque that stands further than this from its goal is not reaching it, encoder steps.
const TRACKING_STEPS: i32 = 30;
/// A servo that turns slower than this stands, encoder steps a second.
const STANDING_STEP_S: i32 = 10;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The arm does not work so.
    Fault,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// As in a table.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Fault => "FAULT",
            Self::Note => "note ",
        }
    }
}

/// Something that is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind it is; does not change between versions.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub todo: String,
}

impl Finding {
    fn fault(id: &'static str, what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { id, severity: Severity::Fault, what: what.into(), todo: todo.into() }
    }

    fn note(id: &'static str, what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::fault(id, what, todo) }
    }
}

/// Everything that is wrong, the worst first.
pub(super) fn find(survey: &Survey, answers: &[Answers], heard: &[Heard]) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(chain(survey, answers, heard));
    all.extend(replies(answers, survey));
    all.extend(checks(survey));
    for (joint, m) in survey.answering() {
        all.extend(alarms(joint, m));
        all.extend(motion(joint, m));
    }
    // The order within one severity stays: causes stand before their consequences.
    all.sort_by_key(|f| f.severity);
    all
}

/// Who is there, and where those that are not may be.
fn chain(survey: &Survey, answers: &[Answers], heard: &[Heard]) -> Vec<Finding> {
    let usual = so101_hal::serial::BAUD_RATE;
    let mut all = Vec::new();
    let shared: Vec<ServoId> =
        answers.iter().filter(|a| a.cause() == ErrorCause::SharedId).map(|a| a.id).collect();
    // Of two servos that share an id, both damage each other's replies: the id is not missing.
    let there = |id: &ServoId, answered: bool| answered || shared.contains(id);
    let pattern = survey.servos.iter().map(|s| (s.id, there(&s.id, s.memory.is_ok())));
    if let Some(fault) = ChainFault::find(pattern) {
        let mut todo = fault.advice();
        if !shared.is_empty() {
            todo = format!(
                "{} answer twice: the missing servo has that id too; run setup_motors with it alone",
                preflight::chain::list(&shared)
            );
        }
        all.push(Finding::fault("chain", fault.to_string(), todo));
    }
    for h in heard {
        let strangers: Vec<ServoId> = h
            .ids
            .iter()
            .filter_map(|id| ServoId::new(*id).ok())
            .filter(|id| !ServoId::ARM.contains(id))
            .collect();
        if h.baud != usual && !h.ids.is_empty() {
            let ids: Vec<String> = h.ids.iter().map(ToString::to_string).collect();
            all.push(Finding::fault(
                "baud_rate",
                format!("ids {} answer at {} baud", ids.join(", "), h.baud),
                "an SO-101 talks at 1 Mbaud: run setup_motors with this servo alone",
            ));
        } else if !strangers.is_empty() {
            all.push(Finding::note(
                "stray_id",
                format!("{} answers beside the six of an arm", preflight::chain::list(&strangers)),
                "another arm's or a spare servo; where one of the six is missing, this may be it: run setup_motors",
            ));
        }
    }
    all
}

/// Where "there is no status packet" and "incorrect status packet" come from.
fn replies(answers: &[Answers], survey: &Survey) -> Vec<Finding> {
    let low_on_high = survey.answering().any(|(_, m)| {
        let limits = (m.value(&registers::MIN_VOLTAGE_LIMIT), m.value(&registers::MAX_VOLTAGE_LIMIT));
        let measured = Supply::of_measured(m.value(&registers::PRESENT_VOLTAGE));
        Supply::of_limits(limits.0, limits.1) == Some(Supply::Low) && measured == Supply::High
    });
    let mut all: Vec<Finding> = Vec::new();
    for a in answers {
        let what = format!(
            "servo {}: {} of {} replies lost, {} damaged, {} doubled",
            a.id, a.missing, a.asked, a.damaged, a.extra
        );
        let mut todo = a.cause().advice(a.id);
        match a.cause() {
            ErrorCause::None | ErrorCause::Silent => continue,
            ErrorCause::SharedId => {
                all.push(Finding::fault("shared_id", format!("two servos share id {} ({what})", a.id), todo));
            }
            _ => {
                if low_on_high {
                    todo.push_str("; 7.4 V servos on 12 V answer badly too");
                }
                all.push(Finding::fault("packet_errors", what, todo));
            }
        }
    }
    all
}

/// The judgements of the pre-flight that need nothing but registers.
fn checks(survey: &Survey) -> Vec<Finding> {
    let limits = Limits::default();
    let mut checks = preflight::identity(survey, &[]);
    checks.extend(preflight::settings(survey, Some(Expected::default())));
    checks.extend(at_rest(survey, None, &limits));
    // Told with their own words above and below.
    let elsewhere = [Item::ServosAnswer, Item::DuplicateIds, Item::Alarms];
    checks.into_iter().filter(|c| !elsewhere.contains(&c.item)).filter_map(of_check).collect()
}

fn of_check(check: Check) -> Option<Finding> {
    let severity = match (check.verdict, check.item) {
        (Verdict::Skip | Verdict::Pass, _) => return None,
        // A leader, or an arm that nobody has configured yet, has other values: no fault by itself.
        (_, Item::PidProfile | Item::GripperLimits | Item::ReturnDelay) | (Verdict::Warn, _) => {
            Severity::Note
        }
        (Verdict::Fail, _) => Severity::Fault,
    };
    let what = format!("{}: {}, asked for {}", check.name(), check.value, check.limit);
    Some(Finding { id: check.item.id(), severity, what, todo: check.advice })
}

fn alarms(joint: JointId, m: &ServoMemory) -> Option<Finding> {
    let alarms = m.alarms();
    if alarms.is_empty() {
        return None;
    }
    let mut todo = alarm_advice(alarms);
    if joint == JointId::Gripper && alarms.contains(Alarms::OVERLOAD) {
        todo.push_str(
            "; a gripper that closes on something needs register 48 at 500 and 36 at 25 (configure does)",
        );
    }
    Some(Finding::fault("alarm", format!("servo {} ({joint}) raises {alarms}", m.id()), todo))
}

/// Stiff without moving, limp in spite of torque, far from the goal.
fn motion(joint: JointId, m: &ServoMemory) -> Vec<Finding> {
    let v = |r| m.value(r);
    let who = format!("servo {} ({joint})", m.id());
    let mut all = Vec::new();
    let torque = v(&registers::TORQUE_ENABLE) & 1 == 1;
    let error = (v(&registers::GOAL_POSITION) - v(&registers::PRESENT_POSITION)).abs();
    let standing = v(&registers::PRESENT_VELOCITY).abs() < STANDING_STEP_S;
    if torque && v(&registers::TORQUE_LIMIT) == 0 {
        all.push(Finding::fault(
            "torque_limit",
            format!("{who} has torque on and a torque limit of 0: it is limp"),
            "write register 48 (configure does), or switch the supply off and on",
        ));
    } else if torque && error > TRACKING_STEPS && standing {
        let slow = v(&registers::GOAL_VELOCITY) == 0 && v(&registers::PHASE) & PHASE_ZERO_IS_FASTEST == 0;
        if slow {
            all.push(Finding::fault(
                "speed_zero",
                format!("{who} is stiff {error} steps from its goal: goal velocity 0 stands still (phase bit 3 clear)"),
                "write a goal velocity to register 46, or set bit 3 of register 18",
            ));
        } else {
            let p = v(&registers::P_COEFFICIENT);
            all.push(Finding::note(
                "tracking_error",
                format!("{who} holds {error} steps from its goal (P {p}, load {} permille)", v(&registers::PRESENT_LOAD)),
                "something blocks or pulls the joint, or P is low: with P 16 the dead band under load is 20 to 30 steps; \
                 a higher P belongs into the profile that the dataset stores",
            ));
        }
    }
    if v(&registers::LOCK) == 0 {
        all.push(Finding::note(
            "eeprom_unlocked",
            format!("the EEPROM of {who} is not locked"),
            "LeRobot leaves it so when it disconnects; any stray write is kept over the power cycle: configure locks it",
        ));
    }
    if v(&registers::REGISTERED_WRITE) == 1 {
        all.push(Finding::note(
            "pending_write",
            format!("{who} keeps a write that waits for an action"),
            "a program ended in the middle of a synchronous move: switch the supply off and on",
        ));
    }
    all
}
