//! Checks a dataset: every count, range, row, statistic, file and picture.
//!
//! [`check`] reads everything and reports what breaks one of the [`RULES`]. Sets written by LeRobot pass; where
//! LeRobot itself deviates from its own definitions (global quantiles that are averages over episodes) the finding is
//! a warning.

mod episodes;
mod header;
mod layout;
mod report;
mod rows;
mod rules;
mod sidecar;
mod statistics;
mod table;
mod videos;

use std::path::Path;

use report::Findings;
pub use report::{CheckReport, Figures, Finding, Severity};
pub use rules::{RULES, Rule};

use crate::error::Result;
use crate::info::Info;
use crate::reader::data::DataFile;
use crate::reader::episodes::EpisodeFiles;
use crate::reader::tasks::TaskTable;

/// What to do with the videos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Videos {
    /// Read their indices and decode every picture that this build can decode. An absent video is a violation.
    #[default]
    Decode,
    /// Read their indices only. An absent video is a violation.
    Index,
    /// Leave them out, for a copy of the tables alone.
    TablesOnly,
}

/// How to check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckOptions {
    /// What to do with the videos.
    pub videos: Videos,
}

impl CheckOptions {
    /// With this treatment of the videos.
    #[must_use]
    pub fn with_videos(mut self, videos: Videos) -> Self {
        self.videos = videos;
        self
    }
}

/// What the rules look at.
struct Subject<'a> {
    root: &'a Path,
    info: Info,
    tasks: Option<TaskTable>,
    episodes: Option<EpisodeFiles>,
    data: Vec<DataFile>,
}

/// Checks the dataset in the folder `path`.
///
/// ```no_run
/// use so101_dataset::check::{CheckOptions, check};
/// let report = check("outputs/push_left", &CheckOptions::default())?;
/// println!("{report}");
/// assert!(report.passed);
/// # Ok::<(), so101_dataset::Error>(())
/// ```
///
/// # Errors
/// What keeps info.json from being read: [`Error::NotADataset`](crate::Error::NotADataset) and the errors of
/// [`Info::parse`]. All else is in the report.
pub fn check(path: impl AsRef<Path>, options: &CheckOptions) -> Result<CheckReport> {
    let root = path.as_ref();
    crate::commit::settle(root)?;
    let info = Info::load(root)?;
    let mut findings = Findings::new(root);
    header::check_header(root, &info, &mut findings);
    let tasks = header::load_tasks(root, &info, &mut findings);
    let episodes = episodes::load(root, &info, &mut findings);
    let data = episodes::load_data(root, &info, episodes.as_ref(), &mut findings);
    let subject = Subject { root, info, tasks, episodes, data };
    header::check_totals(&subject, &mut findings);
    episodes::check_ranges(&subject, &mut findings);
    let values = rows::check_rows(&subject, &mut findings);
    let cameras = videos::check_videos(&subject, options.videos, &mut findings);
    statistics::check_statistics(&subject, &values, &cameras, &mut findings);
    sidecar::check_sidecar(&subject, &mut findings);
    layout::check_layout(&subject, &mut findings);
    Ok(findings.finish())
}
