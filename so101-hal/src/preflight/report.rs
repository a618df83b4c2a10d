//! What a check found, and the list of them that is printed and stored.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use serde::ser::{SerializeMap as _, SerializeStruct as _};
use serde::{Serialize, Serializer};

use super::item::{Item, Origin};

/// What stands in a stored report for a figure of the host.
const IN_THE_HOST_LOG: &str = "see host.jsonl";

/// How a check ended. The later variants are the worse ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Could not be judged: what it is compared with was not given, or this machine cannot tell.
    Skip,
    /// Within its limit.
    Pass,
    /// Worth knowing, no reason to stop.
    Warn,
    /// Recording would go wrong.
    Fail,
}

impl Verdict {
    /// As in a table: passed checks are small, the others stand out.
    #[must_use]
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Pass => "pass",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }

    /// [`Self::Fail`] where a condition that must hold does not.
    #[must_use]
    pub const fn fail_unless(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Fail }
    }

    /// [`Self::Warn`] where a condition that should hold does not.
    #[must_use]
    pub const fn warn_unless(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Warn }
    }

    /// The judgement of a value that should stay below one limit and must stay below another; NaN fails.
    #[must_use]
    pub fn below(value: f64, warn_from: f64, fail_from: f64) -> Self {
        match value {
            v if v < warn_from => Self::Pass,
            v if v < fail_from => Self::Warn,
            _ => Self::Fail,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.mark())
    }
}

/// One line of the report.
///
/// ```
/// use so101_hal::preflight::{Check, Item, Verdict};
/// let check = Check::new(Item::Temperature, Verdict::Warn)
///     .value("servo 2: 54 C")
///     .limit("below 50 C, 60 C at most")
///     .advice("let the arm rest, relaxed, for some minutes");
/// assert_eq!(check.verdict, Verdict::Warn);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// Which of the items.
    pub item: Item,
    /// Of what, where there are several: a camera's name. Empty otherwise.
    pub subject: String,
    /// What was found.
    pub value: String,
    /// What is asked for.
    pub limit: Cow<'static, str>,
    /// The judgement.
    pub verdict: Verdict,
    /// What to do about it; empty where there is nothing to do.
    pub advice: String,
}

impl Check {
    /// A check with its judgement.
    #[must_use]
    pub const fn new(item: Item, verdict: Verdict) -> Self {
        Self {
            item,
            subject: String::new(),
            value: String::new(),
            limit: Cow::Borrowed(item.limit()),
            verdict,
            advice: String::new(),
        }
    }

    /// An item that could not be judged, and why.
    #[must_use]
    pub fn skipped(item: Item, why: impl Into<String>) -> Self {
        Self::new(item, Verdict::Skip).value(why)
    }

    /// What was found.
    #[must_use]
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.value = value.into();
        self
    }

    /// What is asked for, where that is not the item's usual limit.
    #[must_use]
    pub fn limit(mut self, limit: impl Into<Cow<'static, str>>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Of what.
    #[must_use]
    pub fn of(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// What to do about it; kept only where the check did not pass.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        if self.verdict > Verdict::Pass {
            self.advice = advice.into();
        }
        self
    }

    /// The item with its subject, for people.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = String::from(self.item.title());
        if !self.subject.is_empty() {
            let _ = write!(name, " of {}", self.subject);
        }
        name
    }
}

impl fmt::Display for Check {
    /// One line without the verdict: what, value, limit, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (asked for: {})", self.name(), self.value, self.limit)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "; {}", self.advice) }
    }
}

impl Serialize for Check {
    /// All of it, figures of the host too. [`Report::stored`] leaves those away.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Check", 6)?;
        s.serialize_field("id", self.item.id())?;
        s.serialize_field("item", &self.name())?;
        s.serialize_field("value", &self.value)?;
        s.serialize_field("limit", &self.limit)?;
        s.serialize_field("verdict", &self.verdict)?;
        if self.advice.is_empty() {
            s.skip_field("advice")?;
        } else {
            s.serialize_field("advice", &self.advice)?;
        }
        s.end()
    }
}

/// All checks of a session, in the order in which they were made.
///
/// It serialises with every figure; [`Self::stored`] is what belongs into a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    checks: Vec<Check>,
}

impl Report {
    /// No checks yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { checks: Vec::new() }
    }

    /// All of them.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Those of one item.
    pub fn of(&self, item: Item) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |c| c.item == item)
    }

    /// Those that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|c| c.verdict == Verdict::Fail)
    }

    /// Figures of the host.
    pub fn of_host(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|c| c.item.origin() == Origin::Host)
    }

    /// The worst judgement; [`Verdict::Pass`] of an empty report.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.checks.iter().map(|c| c.verdict).max().unwrap_or(Verdict::Pass).max(Verdict::Pass)
    }

    /// How many checks ended so.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|c| c.verdict == verdict).count()
    }

    /// What is stored with a dataset: figures of the host are left away, so that the same rig gives the same bytes.
    #[must_use]
    pub const fn stored(&self) -> StoredReport<'_> {
        StoredReport(self)
    }

    /// The table for people: a line a check, and what to do below those that did not pass.
    #[must_use]
    pub fn table(&self) -> String {
        let names: Vec<String> = self.checks.iter().map(Check::name).collect();
        // A long list of values does not push the limits of all others aside.
        let column = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or(0).min(44);
        let i = column(&mut names.iter().map(|n| n.chars().count()));
        let v = column(&mut self.checks.iter().map(|c| c.value.chars().count()));
        let mut out = String::from("pre-flight\n");
        for (c, name) in self.checks.iter().zip(&names) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "  {}  {name:i$}  {:v$}  {}", c.verdict, c.value, c.limit);
            if !c.advice.is_empty() {
                let _ = writeln!(out, "        -> {}", c.advice);
            }
        }
        let _ = writeln!(
            out,
            "{} passed, {} warnings, {} failed, {} not checked",
            self.count(Verdict::Pass),
            self.count(Verdict::Warn),
            self.count(Verdict::Fail),
            self.count(Verdict::Skip)
        );
        out
    }
}

impl Extend<Check> for Report {
    fn extend<T: IntoIterator<Item = Check>>(&mut self, checks: T) {
        self.checks.extend(checks);
    }
}

impl FromIterator<Check> for Report {
    fn from_iter<T: IntoIterator<Item = Check>>(checks: T) -> Self {
        Self { checks: checks.into_iter().collect() }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("verdict", &self.verdict())?;
        map.serialize_entry("checks", &self.checks)?;
        map.end()
    }
}

/// A [`Report`] as it is stored with a dataset, see [`Report::stored`].
#[derive(Clone, Copy, Debug)]
pub struct StoredReport<'a>(&'a Report);

impl Serialize for StoredReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let checks: Vec<StoredCheck<'_>> = self.0.checks.iter().map(StoredCheck).collect();
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("verdict", &self.0.verdict())?;
        map.serialize_entry("checks", &checks)?;
        map.end()
    }
}

struct StoredCheck<'a>(&'a Check);

impl Serialize for StoredCheck<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let check = self.0;
        if check.item.origin() == Origin::Rig {
            return check.serialize(serializer);
        }
        let mut s = serializer.serialize_struct("Check", 4)?;
        s.serialize_field("id", check.item.id())?;
        s.serialize_field("item", check.item.title())?;
        s.serialize_field("value", IN_THE_HOST_LOG)?;
        s.serialize_field("verdict", &check.verdict)?;
        s.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::from_iter([
            Check::new(Item::Temperature, Verdict::Pass).value("30 C").advice("never shown"),
            Check::new(Item::FreeDisk, Verdict::Warn).value("31.5 MB").advice("free some"),
            Check::new(Item::ServosAnswer, Verdict::Fail)
                .value("servo 3 is silent")
                .advice("check its cable"),
        ])
    }

    #[test]
    fn the_table_has_a_line_a_check_and_says_what_to_do_about_those_that_did_not_pass() {
        let text = report().table();
        assert!(text.contains("\n  FAIL  six servos answer"), "{text}");
        assert!(text.contains("\n        -> check its cable\n") && !text.contains("never shown"), "{text}");
        assert!(text.ends_with("1 passed, 1 warnings, 1 failed, 0 not checked\n"), "{text}");
    }

    #[test]
    fn what_is_stored_holds_no_figure_of_the_host() {
        let report = report();
        let stored = serde_json::to_string(&report.stored()).unwrap();
        assert!(!stored.contains("31.5") && stored.contains("see host.jsonl"), "{stored}");
        assert!(
            stored.contains(r#""id":"servos_answer""#) && stored.contains(r#""advice":"check its cable""#)
        );
        assert!(stored.starts_with(r#"{"verdict":"fail""#), "{stored}");
        assert!(serde_json::to_string(&report).unwrap().contains("31.5"));
    }

    #[test]
    fn a_report_is_as_bad_as_its_worst_check_and_skipped_ones_do_not_count() {
        let skipped = Check::skipped(Item::Lux, "no reading");
        assert_eq!(Report::from_iter([skipped.clone()]).verdict(), Verdict::Pass);
        let warned = Check::new(Item::Lux, Verdict::Warn);
        assert_eq!(Report::from_iter([warned, skipped]).verdict(), Verdict::Warn);
        assert_eq!(report().verdict(), Verdict::Fail);
    }

    #[test]
    fn a_value_that_is_no_number_fails() {
        assert_eq!(Verdict::below(f64::NAN, 1.0, 2.0), Verdict::Fail);
        assert_eq!(
            [0.5, 1.0, 2.0].map(|v| Verdict::below(v, 1.0, 2.0)),
            [Verdict::Pass, Verdict::Warn, Verdict::Fail]
        );
    }
}
