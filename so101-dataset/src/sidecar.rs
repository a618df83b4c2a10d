//! `meta/so101/`: what LeRobot's files have no place for.
//!
//! | file | holds |
//! |---|---|
//! | `recording.json` | units, and what all sessions share ([`Recording`]) |
//! | `episodes.jsonl` | a line an episode: lux, object, seed, success, note ([`EpisodeEntry`]) |
//! | `episodes/chunk-000/episode-000000.json` | capture times and picture histograms ([`EpisodeRecord`]) |
//! | others | set by the recording program: `task.json`, `preflight.json`, `host.jsonl` |
//!
//! LeRobot neither reads nor removes the folder. A line belongs to the episode whose rows hash to its key
//! ([`episode_key`]), so after an edit by another program lines are found again or are stale, never wrong. Only
//! `host.jsonl` may depend on the wall clock or the host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use so101_hal::{EpisodeTiming, Lux};

use crate::error::{Error, Result};
use crate::image_stats::ImageStats;
use crate::info::to_indented_json;
use crate::reader::EpisodeTable;
use crate::reader::files::read_capped;
use crate::spec::Recording;

/// The folder, inside the dataset.
pub const SIDECAR_DIR: &str = "meta/so101";
/// Inside the folder.
pub(crate) const RECORDING_FILE: &str = "recording.json";
/// Inside the folder.
pub(crate) const EPISODES_FILE: &str = "episodes.jsonl";

/// Record files in one folder.
const RECORDS_A_CHUNK: u64 = 1000;
/// Caps of what is read.
const MAX_RECORDING_BYTES: u64 = 1 << 20;
const MAX_EPISODES_BYTES: u64 = 1 << 29;
const MAX_RECORD_BYTES: u64 = 1 << 28;

/// One episode's line of `episodes.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EpisodeEntry {
    /// Number of the episode when the line was written.
    pub episode: u64,
    /// [`episode_key`] of its rows.
    pub key: String,
    /// Rows.
    pub length: u64,
    /// The instruction.
    pub task: String,
    /// Illuminance at the table in lux, when somebody measured or set it.
    pub lux: Option<Lux>,
    /// The object in the scene.
    pub object: Option<String>,
    /// The seed that the episode was drawn from.
    pub seed: Option<u64>,
    /// `None` where nobody judged.
    pub success: Option<bool>,
    /// A remark.
    pub note: Option<String>,
    /// How well the recording loop kept its time, where time was real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<EpisodeTiming>,
    /// Path of its [`EpisodeRecord`], inside of the sidecar's folder.
    pub record: String,
}

/// What only a few readers want to know of an episode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpisodeRecord {
    /// When the joints of each row were read, in ns since those of the first.
    pub observed_ns: Vec<i64>,
    /// When the action of each row was handed to the arm, on the same count; empty where that was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acted_ns: Vec<i64>,
    /// By name of the camera.
    pub cameras: BTreeMap<String, CameraRecord>,
}

/// One camera of an [`EpisodeRecord`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CameraRecord {
    /// When each picture was taken, in ns since the joints of the first row were read.
    pub captured_ns: Vec<i64>,
    /// Rows whose picture is the same as the one before, since the camera had no newer one.
    pub stale: Vec<u64>,
    /// Pictures that the encoder repeated because it could not keep up.
    pub repeated: u64,
    /// Histograms of the pictures.
    pub stats: ImageStats,
}

/// The sidecar of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Sidecar {
    dir: PathBuf,
    recording: Recording,
    episodes: Vec<EpisodeEntry>,
}

impl Sidecar {
    /// Reads the sidecar of the dataset at `root`; `None` when it has none.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::TooLarge`] and [`Error::Io`].
    pub fn open(root: &Path) -> Result<Option<Self>> {
        let dir = root.join(SIDECAR_DIR);
        let path = dir.join(RECORDING_FILE);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read_capped(&path, "a recording.json", MAX_RECORDING_BYTES)?;
        let recording = serde_json::from_slice(&bytes).map_err(|e| Error::json(&e, &path))?;
        let path = dir.join(EPISODES_FILE);
        let mut episodes = Vec::new();
        if path.exists() {
            let bytes = read_capped(&path, "an episodes.jsonl", MAX_EPISODES_BYTES)?;
            for (i, line) in bytes.split(|b| *b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
                let entry = serde_json::from_slice(line).map_err(|e| match Error::json(&e, &path) {
                    Error::Json { column, problem, path, .. } => {
                        Error::Json { line: i + 1, column, problem, path }
                    }
                    other => other,
                })?;
                episodes.push(entry);
            }
        }
        Ok(Some(Self { dir, recording, episodes }))
    }

    /// Units, and what all sessions share.
    #[must_use]
    pub const fn recording(&self) -> &Recording {
        &self.recording
    }

    /// All lines, in order.
    #[must_use]
    pub fn episodes(&self) -> &[EpisodeEntry] {
        &self.episodes
    }

    /// The line of the episode `episode`, whose rows hash to `key`: the one of this number if its key fits, else any
    /// with this key (an edit by another program renumbers), else `None`.
    #[must_use]
    pub fn find(&self, episode: u64, key: &str) -> Option<&EpisodeEntry> {
        let fits = |e: &&EpisodeEntry| e.key == key;
        let same_number = usize::try_from(episode).ok().and_then(|i| self.episodes.get(i));
        same_number.filter(fits).or_else(|| self.episodes.iter().find(fits))
    }

    /// Reads an episode's record.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Key`] for a path that leaves the folder, [`Error::Json`], [`Error::TooLarge`] and
    /// [`Error::Io`].
    pub fn record(&self, entry: &EpisodeEntry) -> Result<EpisodeRecord> {
        let relative = Path::new(&entry.record);
        if !relative.components().all(|c| matches!(c, std::path::Component::Normal(_))) {
            let problem = format!("is {:?}, which leads out of the folder", entry.record);
            return Err(Error::key("record", problem, &self.dir.join(EPISODES_FILE)));
        }
        let path = self.dir.join(relative);
        if !path.exists() {
            return Err(Error::MissingFile {
                what: format!("the record of episode {}", entry.episode),
                path,
            });
        }
        let bytes = read_capped(&path, "an episode record", MAX_RECORD_BYTES)?;
        serde_json::from_slice(&bytes).map_err(|e| Error::json(&e, &path))
    }
}

/// Path of the record file number `n`, inside of the sidecar's folder.
pub(crate) fn record_path(n: u64) -> String {
    format!("episodes/chunk-{:03}/episode-{n:06}.json", n / RECORDS_A_CHUNK)
}

/// The number in a path made by [`record_path`].
pub(crate) fn record_number(path: &str) -> Option<u64> {
    path.strip_suffix(".json")?.rsplit_once("episode-")?.1.parse().ok()
}

pub(crate) fn recording_bytes(recording: &Recording) -> Vec<u8> {
    let mut bytes = to_indented_json(&recording.to_value());
    bytes.push(b'\n');
    bytes
}

/// A line with its line end.
pub(crate) fn entry_line(entry: &EpisodeEntry) -> Vec<u8> {
    // A struct of numbers and strings serialises always.
    let mut line = serde_json::to_vec(entry).unwrap_or_default();
    line.push(b'\n');
    line
}

pub(crate) fn record_bytes(record: &EpisodeRecord) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(record).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The hash by which an episode is known: FNV-1a of 128 bits, in hexadecimal digits, over the rows of its float32
/// columns in the order given. Indices do not go in, since they change when episodes are renumbered.
///
/// For each column: its name in UTF-8, a zero byte, the number of values as u64, the values; all little-endian.
///
/// ```
/// use so101_dataset::sidecar::episode_key;
/// let key = episode_key([("action", [1.0_f32, 2.0].as_slice())]);
/// assert_eq!(key.len(), 32);
/// assert_ne!(key, episode_key([("action", [1.0_f32, 2.5].as_slice())]));
/// ```
pub fn episode_key<'a>(columns: impl IntoIterator<Item = (&'a str, &'a [f32])>) -> String {
    // Parameters from draft-eastlake-fnv.
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash = OFFSET;
    let mut eat = |bytes: &[u8]| {
        for b in bytes {
            hash = (hash ^ u128::from(*b)).wrapping_mul(PRIME);
        }
    };
    for (name, values) in columns {
        eat(name.as_bytes());
        eat(&[0]);
        eat(&(values.len() as u64).to_le_bytes());
        for v in values {
            eat(&v.to_le_bytes());
        }
    }
    format!("{hash:032x}")
}

/// [`episode_key`] of rows read from a dataset: all float32 columns but `timestamp`, in the order of the features.
///
/// ```no_run
/// # let set = so101_dataset::Dataset::open("outputs/push_left")?;
/// let key = so101_dataset::sidecar::table_key(&set.rows(3)?);
/// let lux = set.sidecar()?.and_then(|s| s.find(3, &key)?.lux);
/// # Ok::<(), so101_dataset::Error>(())
/// ```
#[must_use]
pub fn table_key(table: &EpisodeTable) -> String {
    let columns = table.columns().iter().filter(|c| c.name() != "timestamp");
    episode_key(columns.filter_map(|c| Some((c.name(), c.as_f32()?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(episode: u64, key: &str) -> EpisodeEntry {
        EpisodeEntry {
            episode,
            key: key.into(),
            length: 3,
            task: "push".into(),
            lux: (episode == 1).then_some(Lux(80.5)),
            object: None,
            seed: Some(u64::MAX),
            success: None,
            note: Some("a \"quote\"\nand a line".into()),
            timing: (episode == 1).then(EpisodeTiming::default),
            record: record_path(episode),
        }
    }

    fn write(root: &Path, entries: &[EpisodeEntry]) {
        let dir = root.join(SIDECAR_DIR);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(RECORDING_FILE), recording_bytes(&Recording::default())).unwrap();
        let lines: Vec<u8> = entries.iter().flat_map(entry_line).collect();
        std::fs::write(dir.join(EPISODES_FILE), lines).unwrap();
    }

    #[test]
    fn lines_come_back_as_they_were_written_and_no_lux_is_null() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Sidecar::open(dir.path()).unwrap(), None);
        let entries = [entry(0, "a"), entry(1, "b")];
        write(dir.path(), &entries);
        let sidecar = Sidecar::open(dir.path()).unwrap().unwrap();
        assert_eq!(sidecar.episodes(), entries);
        let text = std::fs::read_to_string(dir.path().join(SIDECAR_DIR).join(EPISODES_FILE)).unwrap();
        assert!(text.lines().next().unwrap().contains("\"lux\":null"), "{text}");
        assert!(text.lines().nth(1).unwrap().contains("\"lux\":80.5"), "{text}");
    }

    #[test]
    fn an_episode_is_found_by_its_key_when_it_was_renumbered_and_not_when_it_was_changed() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[entry(0, "a"), entry(1, "b"), entry(2, "b")]);
        let sidecar = Sidecar::open(dir.path()).unwrap().unwrap();
        let found = |n, key| sidecar.find(n, key).map(|e| e.episode);
        assert_eq!((found(2, "b"), found(0, "b"), found(9, "a")), (Some(2), Some(1), Some(0)));
        assert_eq!(found(0, "changed"), None);
    }

    #[test]
    fn a_broken_line_is_named_by_its_number() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[entry(0, "a")]);
        let path = dir.path().join(SIDECAR_DIR).join(EPISODES_FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"episode\": 1,");
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(Sidecar::open(dir.path()), Err(Error::Json { line: 2, .. })));
    }

    #[test]
    fn a_record_outside_of_the_folder_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let outside = EpisodeEntry { record: "../../secret.json".into(), ..entry(0, "a") };
        write(dir.path(), std::slice::from_ref(&outside));
        let sidecar = Sidecar::open(dir.path()).unwrap().unwrap();
        assert!(matches!(sidecar.record(&outside), Err(Error::Key { .. })));
    }

    #[test]
    fn the_key_is_fnv1a_and_sees_names_lengths_and_values() {
        // The empty input gives the offset basis.
        assert_eq!(episode_key([]), "6c62272e07bb014262b821756295c58d");
        let all: Vec<String> = [
            episode_key([("a", [0.0, 1.0].as_slice())]),
            episode_key([("b", [0.0, 1.0].as_slice())]),
            episode_key([("a", [1.0, 0.0].as_slice())]),
            episode_key([("a", [0.0].as_slice()), ("", [1.0].as_slice())]),
            episode_key([("a", [-0.0, 1.0].as_slice())]),
        ]
        .into();
        for (i, a) in all.iter().enumerate() {
            assert!(all.iter().skip(i + 1).all(|b| a != b));
        }
    }

    #[test]
    fn record_paths_are_numbered_and_read_back() {
        for n in [0, 999, 1000, 123_456] {
            assert_eq!(record_number(&record_path(n)), Some(n));
        }
        assert_eq!(record_path(1000), "episodes/chunk-001/episode-001000.json");
    }
}
