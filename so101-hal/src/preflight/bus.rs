//! The traffic on the bus: shared ids, other servos, and a soak of telemetry reads.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::bus::{BusStats, ReplyFault, ServoBus, SyncReplies, scan};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::protocol::ServoId;
use crate::registers;

use super::chain::{Answers, ErrorCause, list};
use super::item::Item;
use super::limits::Limits;
use super::report::{Check, Verdict};
use super::servos::{StrayScan, other_ids};

/// Bytes of the reads that two servos with one id cannot both answer alike: position to current.
const PROBE_LEN: usize = registers::Telemetry::LEN;

/// Requests that went wrong in the same way, after which a servo is not asked any more.
const PROOF: u32 = 3;

/// Longer than a bus keeps a servo out after a late reply may come ([`BusOptions::quarantine_window`]).
///
/// [`BusOptions::quarantine_window`]: crate::bus::BusOptions::quarantine_window
pub(super) const QUARANTINE: Duration = Duration::from_millis(300);

/// Asks each id alone, `tries` times with a ping and `tries` times for its measurements.
///
/// Two servos that share an id answer a ping with the same bytes at nearly the same time, which may even come through
/// whole; their measurements differ, and collide. What counts are single replies: the retries of the bus are counted,
/// not hidden.
///
/// # Errors
/// When the port is gone.
pub fn probe(
    bus: &mut (impl ServoBus + ?Sized),
    ids: &[ServoId],
    clock: &dyn Clock,
    tries: u32,
) -> Result<Vec<Answers>> {
    ids.iter().map(|id| probe_one(bus, *id, clock, tries)).collect()
}

fn probe_one(
    bus: &mut (impl ServoBus + ?Sized),
    id: ServoId,
    clock: &dyn Clock,
    tries: u32,
) -> Result<Answers> {
    let mut answers = Answers::new(id);
    for k in 0..tries.saturating_mul(2) {
        let before = bus.stats();
        let outcome = if k % 2 == 0 {
            bus.ping(id)
        } else {
            bus.read(id, registers::TELEMETRY.address, &mut [0; PROBE_LEN])
        };
        let after = bus.stats();
        answers.asked += 1;
        let since = |count: fn(&BusStats) -> u64| {
            u32::try_from(count(&after).saturating_sub(count(&before))).unwrap_or(u32::MAX)
        };
        let (damaged, missing, extra) =
            (since(|s| s.damaged), since(|s| s.timeouts), since(|s| s.unexpected));
        match outcome {
            // Late replies of this servo may be under way: it was not asked, and will not be before they are through.
            Err(Error::NoReply { fault: ReplyFault::Quarantined, .. }) => {
                answers.asked -= 1;
                clock.sleep_until(clock.now() + QUARANTINE);
            }
            // A bus that counts nothing tells by its result alone.
            Err(Error::NoReply { fault, .. }) if damaged + missing == 0 => answers.count(fault),
            Ok(_) | Err(Error::NoReply { .. }) => {
                answers.damaged += damaged.min(1);
                answers.missing += u32::from(damaged == 0 && missing > 0);
                answers.extra += extra.min(1);
            }
            Err(e) => return Err(e),
        }
        // A dead id costs a timeout each time, a shared one a quarantine: a few are proof enough.
        if answers.asked >= PROOF && (answers.missing == answers.asked || answers.damaged >= PROOF) {
            break;
        }
    }
    Ok(answers)
}

/// Whether two servos share an id.
#[must_use]
pub fn duplicate_ids(answers: &[Answers]) -> Check {
    let item = Item::DuplicateIds;
    let with = |cause| -> Vec<&Answers> { answers.iter().filter(|a| a.cause() == cause).collect() };
    let (shared, loose) = (with(ErrorCause::SharedId), with(ErrorCause::BadContact));
    let tell = |a: &Answers| {
        format!(
            "servo {}: {} damaged, {} doubled, {} lost of {}",
            a.id, a.damaged, a.extra, a.missing, a.asked
        )
    };
    let (verdict, bad) = match (shared.is_empty(), loose.is_empty()) {
        (false, _) => (Verdict::Fail, shared),
        (true, false) => (Verdict::Warn, loose),
        (true, true) if with(ErrorCause::None).is_empty() => return Check::skipped(item, "no servo answers"),
        (true, true) => {
            let asked: u32 = answers.iter().filter(|a| a.cause() == ErrorCause::None).map(|a| a.asked).sum();
            return Check::new(item, Verdict::Pass).value(format!("{asked} single replies whole"));
        }
    };
    let values: Vec<String> = bad.iter().map(|a| tell(a)).collect();
    let advice: Vec<String> = bad.iter().map(|a| a.cause().advice(a.id)).collect();
    Check::new(item, verdict).value(values.join(", ")).advice(advice.join("; "))
}

/// Pings ids that are not the arm's; those that answer.
///
/// # Errors
/// When the port is gone.
pub fn scan_strays(
    bus: &mut (impl ServoBus + ?Sized),
    own: &[ServoId],
    which: StrayScan,
) -> Result<Vec<ServoId>> {
    // Damaged answers count: something is there.
    Ok(scan(bus, other_ids(own, which))?.into_iter().map(|f| f.id).collect())
}

/// Judges the result of [`scan_strays`].
#[must_use]
pub fn stray_ids(scan: StrayScan, found: &[ServoId]) -> Check {
    let item = Item::StrayIds;
    let range = match scan {
        StrayScan::Off => return Check::skipped(item, "not asked for"),
        StrayScan::Near => "none up to 20",
        StrayScan::Full => "none up to 253",
    };
    if found.is_empty() {
        return Check::new(item, Verdict::Pass).value(range);
    }
    Check::new(item, Verdict::Warn).value(list(found)).advice(
        "another arm or a spare servo hangs on this bus: unplug it, or give it its id with setup_motors if it is one of \
         the six",
    )
}

/// How [`bus_soak`] reads.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SoakOptions {
    /// Reads of all servos' telemetry.
    pub cycles: u32,
    /// Time between the starts of two of them.
    pub period: Duration,
    /// Figures to judge by.
    pub limits: Limits,
}

impl Default for SoakOptions {
    /// 200 reads at 100 Hz: two seconds.
    fn default() -> Self {
        Self { cycles: 200, period: Duration::from_millis(10), limits: Limits::default() }
    }
}

/// What a soak measured, on the clock that it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Soak {
    /// Reads of all servos.
    pub cycles: u32,
    /// Reads in which a servo was missing even when it was asked again.
    pub incomplete: u32,
    /// Reads that had to be asked again.
    pub repeated: u32,
    /// Times that each servo was missing, in the order of the ids.
    pub lost: Vec<(ServoId, u32)>,
    /// Duration of a read at the 99th percentile.
    pub p99: Duration,
    /// The longest time without a whole read.
    pub max_gap: Duration,
}

/// Reads the telemetry of all servos again and again, at absolute deadlines.
///
/// # Errors
/// When the port is gone, and for ids that one read cannot ask.
pub fn soak(
    bus: &mut (impl ServoBus + ?Sized),
    ids: &[ServoId],
    clock: &dyn Clock,
    options: &SoakOptions,
) -> Result<Soak> {
    let mut replies = SyncReplies::new();
    let mut found =
        Soak { cycles: options.cycles, lost: ids.iter().map(|id| (*id, 0)).collect(), ..Soak::default() };
    // No more room than a long soak needs at first: the number comes from a command line.
    let mut times = Vec::with_capacity(options.cycles.min(10_000) as usize);
    let start = clock.now();
    let mut last_whole = start;
    for k in 0..options.cycles {
        clock.sleep_until(start + options.period.saturating_mul(k));
        let before = bus.stats().retries;
        let sent = clock.now();
        bus.sync_read(registers::TELEMETRY, ids, &mut replies)?;
        let done = clock.now();
        times.push(done.since(sent));
        found.repeated += u32::from(bus.stats().retries > before);
        if replies.is_complete() {
            found.max_gap = found.max_gap.max(done.since(last_whole));
            last_whole = done;
        } else {
            found.incomplete += 1;
            for ((_, lost), (_, reply)) in found.lost.iter_mut().zip(replies.iter()) {
                *lost += u32::from(reply.is_err());
            }
        }
    }
    found.max_gap = found.max_gap.max(tail_gap(clock.now(), last_whole));
    times.sort_unstable();
    found.p99 = percentile(&times, 99);
    Ok(found)
}

/// What was not read at the end counts too.
fn tail_gap(end: Timestamp, last_whole: Timestamp) -> Duration {
    end.since(last_whole)
}

/// Of a sorted list; zero for an empty one.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or_default()
}

/// Soaks the bus and judges error rate, p99 and longest gap.
///
/// # Errors
/// As [`soak`].
pub fn bus_soak(
    bus: &mut (impl ServoBus + ?Sized),
    ids: &[ServoId],
    clock: &dyn Clock,
    options: &SoakOptions,
) -> Result<Vec<Check>> {
    Ok(judge_soak(&soak(bus, ids, clock, options)?, &options.limits))
}

/// Judges what a soak measured.
#[must_use]
pub fn judge_soak(found: &Soak, limits: &Limits) -> Vec<Check> {
    let bad = found.incomplete.max(found.repeated);
    let share = f64::from(bad) / f64::from(found.cycles.max(1));
    let verdict = match bad {
        0 => Verdict::Pass,
        _ if share <= limits.bus_error_share => Verdict::Warn,
        _ => Verdict::Fail,
    };
    let losers: Vec<ServoId> = found.lost.iter().filter(|(_, n)| *n > 0).map(|(id, _)| *id).collect();
    let where_from = match losers.as_slice() {
        [] => "replies come at the second try: check plugs, cable and supply".into(),
        some => format!("check the plugs in front of {}, and the supply under load", list(some)),
    };
    let errors = Check::new(Item::BusErrors, verdict)
        .value(format!("{} lost, {} repeated of {}", found.incomplete, found.repeated, found.cycles))
        .advice(where_from);
    let timing = |item, value: Duration, [warn, fail]: [Duration; 2], advice: &str| {
        let verdict = Verdict::below(value.as_secs_f64(), warn.as_secs_f64(), fail.as_secs_f64());
        Check::new(item, verdict)
            .value(format!("{:.2} ms", value.as_secs_f64() * 1e3))
            .limit(format!("below {} ms, {} ms fails", warn.as_millis(), fail.as_millis()))
            .advice(advice)
    };
    alloc::vec![
        errors,
        timing(
            Item::BusP99,
            found.p99,
            limits.bus_p99,
            "replies are slow: another program may load the computer (run diagnose_stall), the adapter may hang on a \
             hub, or return delays may be set",
        ),
        timing(
            Item::BusGap,
            found.max_gap,
            limits.bus_gap,
            "for this long nobody knew where the arm is: plug the adapter into the computer itself, close other \
             programs",
        ),
    ]
}
