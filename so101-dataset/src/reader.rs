//! Reads LeRobot datasets: v3.0 of ours and of LeRobot's, v2.1 and v2.0.
//!
//! Columns are found by name, never by place; lists may be of fixed or free length; further columns are ignored.
//! [`Dataset::open`] reads the metadata and the footers of the data files and refuses a dataset whose counts and
//! ranges contradict each other; rows are read when asked for. Absent videos are no error, they are listed.

mod arrow_metadata;
mod column;
pub(crate) mod data;
pub(crate) mod episodes;
pub(crate) mod files;
mod jsonl;
mod pages;
pub(crate) mod parquet_file;
mod stats;
pub(crate) mod store;
mod table;
pub(crate) mod tasks;

use std::path::{Path, PathBuf};

pub(crate) use column::Fault;
pub use column::{Column, Values};
use data::DataFile;
use episodes::EpisodeFiles;
pub use episodes::{EpisodeRow, VideoSpan};
pub use stats::{FeatureStats, STATISTICS, STATS_PATH, Stats};
pub use table::EpisodeTable;
pub use tasks::TASKS_PATH;

use crate::error::{Error, Result};
use crate::features::Feature;
use crate::info::{INFO_PATH, Info, MAX_INFO_BYTES};
use crate::sidecar::{SIDECAR_DIR, Sidecar};
use table::no_such_feature;
use tasks::TaskTable;

/// Largest session file accepted.
const MAX_SESSION_BYTES: u64 = 64 << 20;
/// How often a dataset that is being written is opened again before it counts as damaged.
const MAX_TRIES: u32 = 5;

/// An open dataset.
///
/// ```no_run
/// use so101_dataset::Dataset;
/// let set = Dataset::open("outputs/push_left")?;
/// for episode in set.episodes() {
///     let rows = set.rows(episode.episode)?;
///     let actions = rows.f32("action")?; // six numbers a row
///     println!("{:?}: {} rows, first action {:?}", episode.tasks, rows.rows(), actions.get(..6));
/// }
/// # Ok::<(), so101_dataset::Error>(())
/// ```
#[derive(Debug)]
pub struct Dataset {
    root: PathBuf,
    info: Info,
    tasks: Vec<String>,
    episodes: EpisodeFiles,
    data: Vec<DataFile>,
    missing_videos: Vec<PathBuf>,
}

impl Dataset {
    /// Opens the dataset in this folder and verifies its counts and ranges.
    ///
    /// # Errors
    /// [`Error::NotADataset`]; one of the typed errors of [`Info::parse`]; [`Error::Parquet`], [`Error::Column`] and
    /// [`Error::MissingFile`] for its tables; [`Error::Mismatch`] when they contradict each other.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let root = path.as_ref();
        crate::commit::settle(root)?;
        let mut tries = 0;
        loop {
            let header = header_bytes(root);
            match Self::open_once(root) {
                // A writer gave the folder its next generation meanwhile; what was read belongs to two of them.
                Err(_) if tries < MAX_TRIES && header_bytes(root) != header => {
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    fn open_once(root: &Path) -> Result<Self> {
        let info = Info::load(root)?;
        let tasks = TaskTable::load(root, &info)?.texts();
        let episodes = EpisodeFiles::load(root, &info)?;
        let data = data::load(root)?;
        let missing_videos = missing_videos(root, &info, &episodes.rows)?;
        let set = Self { root: root.into(), info, tasks, episodes, data, missing_videos };
        set.verify()?;
        Ok(set)
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The header.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// One entry an episode, in order.
    #[must_use]
    pub fn episodes(&self) -> &[EpisodeRow] {
        &self.episodes.rows
    }

    /// The episode that a global row belongs to.
    #[must_use]
    pub fn episode_of(&self, row: u64) -> Option<&EpisodeRow> {
        let place = self.episodes.rows.partition_point(|e| e.to_index <= row);
        self.episodes.rows.get(place).filter(|e| e.from_index <= row)
    }

    /// The task texts; `task_index` of a row is the place in this list.
    #[must_use]
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// Statistics of the whole dataset, read from `meta/stats.json` at each call; `None` when there is no such file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::TooLarge`], [`Error::Json`], [`Error::Key`].
    pub fn stats(&self) -> Result<Option<Stats>> {
        Stats::load(&self.root)
    }

    /// Statistics of each episode, in order.
    ///
    /// # Errors
    /// [`Error::Parquet`], [`Error::Column`], [`Error::Io`].
    pub fn episode_stats(&self) -> Result<Vec<Stats>> {
        self.episodes.stats(&self.info.features)
    }

    /// All columns of one episode.
    ///
    /// # Errors
    /// [`Error::NoSuchEpisode`]; [`Error::Parquet`], [`Error::Column`], [`Error::Io`] from the data file;
    /// [`Error::Mismatch`] when the rows there belong to another place in the dataset.
    pub fn rows(&self, episode: u64) -> Result<EpisodeTable> {
        self.read_rows(episode, self.info.features.columns())
    }

    /// Some columns of one episode, in the order of the features.
    ///
    /// # Errors
    /// [`Error::NoSuchFeature`], and as [`Dataset::rows`].
    pub fn rows_of(&self, episode: u64, columns: &[&str]) -> Result<EpisodeTable> {
        let features = &self.info.features;
        if let Some(name) = columns.iter().find(|name| !features.columns().any(|(n, _)| n == **name)) {
            let known = features.columns().map(|(n, _)| n).collect::<Vec<_>>().join(", ");
            return Err(no_such_feature("data", name, known, &self.root));
        }
        self.read_rows(episode, features.columns().filter(|(n, _)| columns.contains(n)))
    }

    /// The mp4 that holds an episode's pictures of the feature `key`, whether or not it is there.
    ///
    /// # Errors
    /// [`Error::NoSuchEpisode`], [`Error::NoSuchFeature`].
    pub fn video_path(&self, episode: u64, key: &str) -> Result<PathBuf> {
        let span = self.video_span(episode, key)?;
        Ok(self.root.join(self.info.video_file(key, span.chunk, span.file)?))
    }

    /// Where in its mp4 an episode's pictures of the feature `key` are.
    ///
    /// # Errors
    /// [`Error::NoSuchEpisode`], [`Error::NoSuchFeature`].
    pub fn video_span(&self, episode: u64, key: &str) -> Result<&VideoSpan> {
        self.row(episode)?.videos.iter().find(|v| v.key == key).ok_or_else(|| {
            let known = self.info.features.videos().map(|(n, _)| n).collect::<Vec<_>>().join(", ");
            no_such_feature("video", key, known, &self.root)
        })
    }

    /// Video files that the episodes name and that are not there: a copy of the tables alone is a usable dataset.
    #[must_use]
    pub fn missing_videos(&self) -> &[PathBuf] {
        &self.missing_videos
    }

    /// What this suite stores beside the tables: units, lux, capture times; `None` in a foreign dataset.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::TooLarge`], [`Error::Json`].
    pub fn sidecar(&self) -> Result<Option<Sidecar>> {
        Sidecar::open(&self.root)
    }

    /// A JSON file that the recording program stored under `meta/so101/`, such as `task.json`; `None` when there is
    /// none of this name.
    ///
    /// # Errors
    /// [`Error::Key`] for a name with folders in it, [`Error::Io`], [`Error::TooLarge`], [`Error::Json`].
    pub fn session_json(&self, name: &str) -> Result<Option<serde_json::Value>> {
        let dir = self.root.join(SIDECAR_DIR);
        if name.is_empty() || name.contains(['/', '\\']) || name == ".." {
            return Err(Error::key(name, "is no name of a file", &dir));
        }
        let path = dir.join(name);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = files::read_capped(&path, "a session file", MAX_SESSION_BYTES)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|e| Error::json(&e, &path))
    }

    fn row(&self, episode: u64) -> Result<&EpisodeRow> {
        let episodes = self.episodes.rows.len() as u64;
        let row = usize::try_from(episode).ok().and_then(|i| self.episodes.rows.get(i));
        row.ok_or_else(|| Error::NoSuchEpisode { episode, episodes, path: self.root.clone() })
    }

    fn read_rows<'f>(
        &self,
        episode: u64,
        features: impl Iterator<Item = (&'f str, &'f Feature)> + Clone,
    ) -> Result<EpisodeTable> {
        let row = self.row(episode)?;
        let file = data::file_of(&self.data, &self.root, &self.info, row)?;
        let path = file.file.path();
        let rows = usize::try_from(row.length).unwrap_or(0);
        let mut columns = Vec::new();
        for (name, column) in file.columns(features, row.from_index..row.to_index)? {
            let fail = |f: Fault| Error::column(name, format!("{}: restore the file", f.problem()), path);
            columns.push(column.map_err(fail)?);
        }
        let table = EpisodeTable { episode, rows, columns, path: path.into() };
        if let Some(index) = table.column("index").and_then(Column::as_i64) {
            let ends = [(index.first(), row.from_index), (index.last(), row.to_index.saturating_sub(1))];
            for (found, expected) in ends {
                let found = found.and_then(|i| u64::try_from(*i).ok()).unwrap_or(u64::MAX);
                if found != expected {
                    let (what, against) = (format!("an index of episode {episode}"), "the table of episodes");
                    return Err(Error::Mismatch { what, found, against, expected, path: path.into() });
                }
            }
        }
        Ok(table)
    }

    fn verify(&self) -> Result<()> {
        let info = &self.info;
        let episodes = &self.episodes.rows;
        let data_rows: u64 = self.data.iter().map(|f| f.file.rows()).sum();
        let in_info = self.root.join(INFO_PATH);
        let same = |what: &str, found: u64, against: &'static str, expected: u64| {
            if found == expected {
                Ok(())
            } else {
                Err(Error::Mismatch {
                    what: what.to_owned(),
                    found,
                    against,
                    expected,
                    path: in_info.clone(),
                })
            }
        };
        same("the number of episode rows", episodes.len() as u64, "total_episodes", info.total_episodes)?;
        same("the number of tasks", self.tasks.len() as u64, "total_tasks", info.total_tasks)?;
        same("the number of rows in the data files", data_rows, "total_frames", info.total_frames)?;
        let mut at = 0;
        for (number, row) in episodes.iter().enumerate() {
            same(&format!("the episode in row {number}"), row.episode, "its place", number as u64)?;
            same(
                &format!("the first row of episode {number}"),
                row.from_index,
                "the end of the one before",
                at,
            )?;
            let end = row.from_index.saturating_add(row.length);
            same(&format!("the end of episode {number}"), row.to_index, "its length", end)?;
            at = row.to_index;
            data::file_of(&self.data, &self.root, info, row)?;
        }
        same("the end of the last episode", at, "total_frames", info.total_frames)?;
        self.data.iter().try_for_each(|f| data::check_columns(&f.file, &info.features))
    }
}

/// The bytes of info.json, by which two generations are told apart.
fn header_bytes(root: &Path) -> Option<Vec<u8>> {
    files::read_capped(&root.join(INFO_PATH), "an info.json", MAX_INFO_BYTES).ok()
}

/// Video files that the episodes name and that are not there, each once.
pub(crate) fn missing_videos(root: &Path, info: &Info, episodes: &[EpisodeRow]) -> Result<Vec<PathBuf>> {
    let mut files: Vec<(&str, u64, u64)> =
        episodes.iter().flat_map(|e| &e.videos).map(|v| (v.key.as_str(), v.chunk, v.file)).collect();
    files.sort_unstable();
    files.dedup();
    let mut missing = Vec::new();
    for (key, chunk, file) in files {
        let path = root.join(info.video_file(key, chunk, file)?);
        if !path.is_file() {
            missing.push(path);
        }
    }
    Ok(missing)
}
