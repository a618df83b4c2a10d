//! A report as text for people.

use core::fmt::{Display, Formatter, Result};

use super::report::CheckReport;

impl Display for CheckReport {
    /// One line a finding (severity, rule, episode, message, path), then one line that begins with `PASS` or `FAIL`
    /// and holds the figures.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let width = self.findings.iter().map(|x| x.rule.len()).max().unwrap_or(0);
        for finding in &self.findings {
            write!(f, "{:<7}  {:<width$}  ", finding.severity, finding.rule)?;
            if let Some(episode) = finding.episode {
                write!(f, "episode {episode}: ")?;
            }
            write!(f, "{}", finding.message)?;
            if !finding.path.as_os_str().is_empty() {
                write!(f, ": {}", finding.path.display())?;
            }
            writeln!(f)?;
        }
        if self.unlisted > 0 {
            writeln!(f, "... and {} more", self.unlisted)?;
        }
        let word = if self.passed { "PASS" } else { "FAIL" };
        let x = &self.figures;
        write!(f, "{word} {} errors={} warnings={}", self.path.display(), self.errors, self.warnings)?;
        write!(f, " episodes={} rows={} tasks={} data_files={}", x.episodes, x.rows, x.tasks, x.data_files)?;
        write!(f, " video_files={} pictures={} decoded={}", x.video_files, x.pictures, x.pictures_decoded)?;
        write!(f, " max_key_gap={} statistics={}", x.max_key_gap, x.statistics)
    }
}
