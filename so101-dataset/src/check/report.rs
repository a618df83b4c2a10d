//! What a check found.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::rules::Rule;
use crate::error::Error;

/// Findings of one rule that are kept; the rest is counted.
const FINDINGS_A_RULE: usize = 20;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Other than it should be, and LeRobot copes with it.
    Warning,
    /// A violation: the dataset is not to be trained on.
    Error,
}

impl core::fmt::Display for Severity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Id of the rule.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The episode, where it is one episode's.
    pub episode: Option<u64>,
    /// What was found and what was expected.
    pub message: String,
    /// The file or folder, inside the dataset.
    pub path: PathBuf,
}

/// How much was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Episodes of the table.
    pub episodes: u64,
    /// Rows read.
    pub rows: u64,
    /// Task texts.
    pub tasks: u64,
    /// Data files.
    pub data_files: u64,
    /// Video files that were there.
    pub video_files: u64,
    /// Pictures that those files list.
    pub pictures: u64,
    /// Pictures decoded.
    pub pictures_decoded: u64,
    /// Most pictures from one key frame to the next.
    pub max_key_gap: u64,
    /// Statistics compared with the rows.
    pub statistics: u64,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// The dataset.
    pub path: PathBuf,
    /// Whether there is no error among the findings.
    pub passed: bool,
    /// Number of errors, those not listed included.
    pub errors: u64,
    /// Number of warnings, those not listed included.
    pub warnings: u64,
    /// How much was looked at.
    pub figures: Figures,
    /// What was found, worst first, at most 20 a rule.
    pub findings: Vec<Finding>,
    /// Findings that are counted but not listed.
    pub unlisted: u64,
}

impl CheckReport {
    /// Whether a rule was violated (a finding of severity error).
    #[must_use]
    pub fn violates(&self, rule: &str) -> bool {
        self.findings.iter().any(|f| f.rule == rule && f.severity == Severity::Error)
    }
}

/// Gathers findings.
pub(super) struct Findings {
    report: CheckReport,
}

impl Findings {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            report: CheckReport {
                path: root.into(),
                passed: true,
                errors: 0,
                warnings: 0,
                figures: Figures::default(),
                findings: Vec::new(),
                unlisted: 0,
            },
        }
    }

    pub(super) fn figures(&mut self) -> &mut Figures {
        &mut self.report.figures
    }

    /// Adds a violation.
    pub(super) fn error(&mut self, rule: Rule, place: Place<'_>, message: impl Into<String>) {
        self.add(rule, Severity::Error, place, message.into());
    }

    /// Adds a warning.
    pub(super) fn warning(&mut self, rule: Rule, place: Place<'_>, message: impl Into<String>) {
        self.add(rule, Severity::Warning, place, message.into());
    }

    /// Adds something worth knowing.
    pub(super) fn info(&mut self, rule: Rule, place: Place<'_>, message: impl Into<String>) {
        self.add(rule, Severity::Info, place, message.into());
    }

    /// Adds an error of reading as a violation, at the path that it names.
    pub(super) fn unreadable(&mut self, rule: Rule, place: Place<'_>, error: &Error) {
        let text = error.to_string();
        // Messages end with the path, which has a place of its own here.
        match text.rsplit_once(": ").filter(|(_, path)| Path::new(path).starts_with(&self.report.path)) {
            Some((message, path)) => {
                let place = Place { path: Path::new(path), episode: place.episode };
                self.add(rule, Severity::Error, place, message.to_owned());
            }
            None => self.add(rule, Severity::Error, place, text),
        }
    }

    pub(super) fn add(&mut self, rule: Rule, severity: Severity, place: Place<'_>, message: String) {
        let report = &mut self.report;
        match severity {
            Severity::Error => report.errors += 1,
            Severity::Warning => report.warnings += 1,
            Severity::Info => {}
        }
        if report.findings.iter().filter(|f| f.rule == rule.id && f.severity == severity).count()
            >= FINDINGS_A_RULE
        {
            report.unlisted += 1;
            return;
        }
        let path = place.path.strip_prefix(&report.path).unwrap_or(place.path).to_owned();
        report.findings.push(Finding { rule: rule.id, severity, episode: place.episode, message, path });
    }

    pub(super) fn finish(mut self) -> CheckReport {
        self.report.passed = self.report.errors == 0;
        // Stable: within a severity the order of checking stays.
        self.report.findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
        self.report
    }
}

/// Where something was found.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    path: &'a Path,
    episode: Option<u64>,
}

impl<'a> Place<'a> {
    pub(super) fn file(path: &'a Path) -> Self {
        Self { path, episode: None }
    }

    pub(super) fn episode(path: &'a Path, episode: u64) -> Self {
        Self { path, episode: Some(episode) }
    }
}
