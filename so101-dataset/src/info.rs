//! `meta/info.json`: the header of a dataset.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::features::Features;

/// Where info.json lies in a dataset.
pub const INFO_PATH: &str = "meta/info.json";
/// Largest info.json accepted.
pub const MAX_INFO_BYTES: u64 = 16 << 20;
/// The version that this crate writes.
pub const CODEBASE_VERSION: &str = "v3.0";
/// Where the rows lie.
pub const DATA_PATH: &str = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";
/// Where the videos lie.
pub const VIDEO_PATH: &str = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";

/// Highest frame rate accepted, in hertz.
const MAX_FPS: u64 = 100_000;
/// Highest total accepted: counts stay exact as f64 and far from overflow.
const MAX_TOTAL: u64 = 1 << 48;
/// Widest zero padding accepted in a path template.
const MAX_PADDING: usize = 12;

/// Layouts that this crate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// A file an episode; statistics of the whole set only.
    V20,
    /// A file an episode, with statistics of each.
    V21,
    /// Many episodes a file.
    V30,
}

impl Version {
    /// `v2.0`, `v2.1` or `v3.0`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V20 => "v2.0",
            Self::V21 => "v2.1",
            Self::V30 => "v3.0",
        }
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The header of a dataset: layout, features, totals.
///
/// ```
/// use so101_dataset::{Features, Info};
/// let info = Info::new(30, "so_follower", Features::so101(&[]));
/// let back = Info::parse(&info.to_json_bytes(), "info.json".as_ref())?;
/// assert_eq!(back, info);
/// assert_eq!(info.data_file(0, 7)?.to_str(), Some("data/chunk-000/file-007.parquet"));
/// # Ok::<(), so101_dataset::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// Version of the layout, such as `v3.0`; see [`Info::version`].
    pub codebase_version: String,
    /// Frames a second.
    pub fps: u32,
    /// Columns and cameras.
    pub features: Features,
    /// Episodes in the dataset.
    pub total_episodes: u64,
    /// Rows in the dataset.
    pub total_frames: u64,
    /// Task texts in the dataset.
    pub total_tasks: u64,
    /// Files in a chunk folder.
    pub chunks_size: u64,
    /// A data file is closed near this size, in MiB.
    pub data_files_size_in_mb: f64,
    /// A video file is closed near this size, in MiB.
    pub video_files_size_in_mb: f64,
    /// Template of the data files' paths, with `{chunk_index}` and `{file_index}`.
    pub data_path: String,
    /// Template of the video files' paths, with `{video_key}` too; `None` without videos.
    pub video_path: Option<String>,
    /// LeRobot's name of the robot, `so_follower` for an SO-101.
    pub robot_type: Option<String>,
    /// Named ranges of episodes, `{"train": "0:N"}`.
    pub splits: Map<String, Value>,
    /// Keys that this crate does not know, kept as they are.
    pub extra: Map<String, Value>,
}

impl Info {
    /// The header of an empty dataset; `video_path` is set when there is a video feature.
    #[must_use]
    pub fn new(fps: u32, robot_type: impl Into<String>, features: Features) -> Self {
        let video_path = features.videos().next().map(|_| VIDEO_PATH.to_owned());
        let mut info = Self {
            codebase_version: CODEBASE_VERSION.into(),
            fps,
            features,
            total_episodes: 0,
            total_frames: 0,
            total_tasks: 0,
            chunks_size: 1000,
            data_files_size_in_mb: 100.0,
            video_files_size_in_mb: 200.0,
            data_path: DATA_PATH.into(),
            video_path,
            robot_type: Some(robot_type.into()),
            splits: Map::new(),
            extra: Map::new(),
        };
        info.set_totals(0, 0, 0);
        info
    }

    /// The layout that `codebase_version` means.
    #[must_use]
    pub fn version(&self) -> Version {
        match self.codebase_version.trim_start_matches('v') {
            "2.0" | "2" => Version::V20,
            v if v.starts_with("2.") => Version::V21,
            _ => Version::V30,
        }
    }

    /// Sets the three totals and the split `train` that covers all episodes.
    pub fn set_totals(&mut self, episodes: u64, frames: u64, tasks: u64) {
        (self.total_episodes, self.total_frames, self.total_tasks) = (episodes, frames, tasks);
        self.splits.insert("train".into(), format!("0:{episodes}").into());
    }

    /// Reads `meta/info.json` of the dataset at `root`.
    ///
    /// # Errors
    /// [`Error::NotADataset`] when there is no such file, [`Error::TooLarge`], [`Error::Io`], and what
    /// [`Info::parse`] returns.
    pub fn load(root: &Path) -> Result<Self> {
        let not_here = |missing| Err(Error::NotADataset { missing, path: root.into() });
        match std::fs::metadata(root) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return not_here("it is a file, not a folder"),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return not_here("the folder does not exist");
            }
            Err(e) => return Err(Error::io("read", root, e)),
        }
        let path = root.join(INFO_PATH);
        if !path.exists() {
            return not_here("meta/info.json is missing");
        }
        let bytes = crate::reader::files::read_capped(&path, "an info.json", MAX_INFO_BYTES)?;
        Self::parse(&bytes, &path)
    }

    /// Reads the bytes of an info.json; `path` is where they come from, for messages.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Json`], [`Error::Key`], [`Error::OldVersion`], [`Error::NewVersion`] and
    /// [`Error::StorageFormat`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let bytes_len = bytes.len() as u64;
        if bytes_len > MAX_INFO_BYTES {
            let (what, limit) = ("an info.json", MAX_INFO_BYTES);
            return Err(Error::TooLarge { what, bytes: bytes_len, limit, path: path.into() });
        }
        // The parser's own limit of 128 levels keeps the stack bounded.
        let value: Value = serde_json::from_slice(bytes).map_err(|e| Error::json(&e, path))?;
        let Value::Object(map) = value else {
            return Err(Error::key("(top)", "is not an object", path));
        };
        let mut keys = Keys { map, path };
        let codebase_version = keys.version()?;
        keys.storage_format()?;
        let info = Self {
            codebase_version,
            fps: keys.fps()?,
            features: Features::parse(&keys.take("features")?, path)?,
            total_episodes: keys.count("total_episodes")?,
            total_frames: keys.count("total_frames")?,
            total_tasks: keys.count("total_tasks")?,
            chunks_size: keys.chunks_size()?,
            data_files_size_in_mb: keys.size("data_files_size_in_mb", 100.0)?,
            video_files_size_in_mb: keys.size("video_files_size_in_mb", 200.0)?,
            data_path: keys
                .text("data_path")?
                .ok_or_else(|| Error::key("data_path", "is missing or null", path))?,
            video_path: keys.text("video_path")?,
            robot_type: keys.text("robot_type")?,
            splits: keys.splits()?,
            extra: keys.map,
        };
        let version = info.version();
        check_template("data_path", &info.data_path, version, path)?;
        if let Some(template) = &info.video_path {
            check_template("video_path", template, version, path)?;
        } else if let Some((name, _)) = info.features.videos().next() {
            return Err(Error::key("video_path", format!("is missing or null, but {name} is a video"), path));
        }
        Ok(info)
    }

    /// The bytes of an info.json as LeRobot writes it: indent 4, its order of keys, default features last.
    #[must_use]
    pub fn to_json_bytes(&self) -> Vec<u8> {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        put("codebase_version", self.codebase_version.clone().into());
        put("fps", self.fps.into());
        put("features", self.features.to_value());
        put("total_episodes", self.total_episodes.into());
        put("total_frames", self.total_frames.into());
        put("total_tasks", self.total_tasks.into());
        put("chunks_size", self.chunks_size.into());
        put("data_files_size_in_mb", number(self.data_files_size_in_mb));
        put("video_files_size_in_mb", number(self.video_files_size_in_mb));
        put("data_path", self.data_path.clone().into());
        put("video_path", self.video_path.clone().into());
        put("robot_type", self.robot_type.clone().into());
        put("splits", Value::Object(self.splits.clone()));
        map.extend(self.extra.iter().map(|(k, v)| (k.clone(), v.clone())));
        to_indented_json(&Value::Object(map))
    }

    /// Path of a data file inside the dataset.
    ///
    /// # Errors
    /// [`Error::Key`] when the template, changed by hand after parsing, holds an unknown field.
    pub fn data_file(&self, chunk: u64, file: u64) -> Result<PathBuf> {
        render(&self.data_path, chunk, file, None)
            .map(PathBuf::from)
            .map_err(|problem| Error::key("data_path", problem, Path::new(INFO_PATH)))
    }

    /// Path of a video file inside the dataset.
    ///
    /// # Errors
    /// [`Error::Key`] when there is no `video_path` or, changed by hand after parsing, it holds an unknown field.
    pub fn video_file(&self, video_key: &str, chunk: u64, file: u64) -> Result<PathBuf> {
        let fail = |problem: String| Error::key("video_path", problem, Path::new(INFO_PATH));
        let template = self.video_path.as_deref().ok_or_else(|| fail("is null".into()))?;
        render(template, chunk, file, Some(video_key)).map(PathBuf::from).map_err(fail)
    }
}

/// JSON with indent 4, as Python's `json.dump(indent=4, ensure_ascii=False)` writes it.
#[must_use]
pub fn to_indented_json(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match serde::Serialize::serialize(value, &mut serializer) {
        Ok(()) => bytes,
        // A `Value` has string keys only and a `Vec` takes every write.
        Err(_) => value.to_string().into_bytes(),
    }
}

/// The keys of the file, taken out one by one; what is left is unknown.
struct Keys<'a> {
    map: Map<String, Value>,
    path: &'a Path,
}

impl Keys<'_> {
    fn fail<T>(&self, key: &str, problem: impl Into<String>) -> Result<T> {
        Err(Error::key(key, problem, self.path))
    }

    fn optional(&mut self, key: &str) -> Option<Value> {
        // Not `swap_remove`: the order of what is left is the order in which it is written again.
        self.map.shift_remove(key).filter(|v| !v.is_null())
    }

    fn take(&mut self, key: &str) -> Result<Value> {
        self.optional(key).ok_or_else(|| Error::key(key, "is missing or null", self.path))
    }

    fn version(&mut self) -> Result<String> {
        let value = self.take("codebase_version")?;
        let Value::String(found) = value else {
            return self.fail("codebase_version", format!("is {value}, not a text such as \"v3.0\""));
        };
        let (major, minor) =
            found.trim_start_matches('v').split_once('.').unwrap_or((found.trim_start_matches('v'), "0"));
        match (major.parse::<u32>(), minor.parse::<u32>()) {
            (Ok(3), Ok(_)) | (Ok(2), Ok(0 | 1)) => Ok(found),
            (Ok(0..3), Ok(_)) => Err(Error::OldVersion { found, path: self.path.into() }),
            (Ok(_), Ok(_)) => Err(Error::NewVersion { found, path: self.path.into() }),
            _ => self.fail("codebase_version", format!("is {found:?}, not a version such as \"v3.0\"")),
        }
    }

    fn storage_format(&mut self) -> Result<()> {
        match self.map.get("storage_format") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::String(s)) if s == "parquet" => Ok(()),
            Some(Value::String(found)) => {
                Err(Error::StorageFormat { found: found.clone(), path: self.path.into() })
            }
            Some(other) => self.fail("storage_format", format!("is {}, not a text", short(other))),
        }
    }

    fn whole(&mut self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.optional(key) else { return Ok(None) };
        match whole_number(&value) {
            Some(n) => Ok(Some(n)),
            None => self.fail(key, format!("is {}, not a whole number", short(&value))),
        }
    }

    fn count(&mut self, key: &str) -> Result<u64> {
        match self.whole(key)? {
            Some(n) if n <= MAX_TOTAL => Ok(n),
            Some(n) => self.fail(key, format!("is {n}, more than {MAX_TOTAL}")),
            None => self.fail(key, "is missing or null"),
        }
    }

    fn fps(&mut self) -> Result<u32> {
        match self.whole("fps")? {
            Some(n @ 1..=MAX_FPS) => Ok(u32::try_from(n).unwrap_or(u32::MAX)),
            Some(n) => self.fail("fps", format!("is {n}, not within 1 to {MAX_FPS}")),
            None => self.fail("fps", "is missing or null"),
        }
    }

    fn chunks_size(&mut self) -> Result<u64> {
        match self.whole("chunks_size")? {
            None => Ok(1000),
            Some(0) => self.fail("chunks_size", "is 0, not a number of files a folder"),
            Some(n) => Ok(n),
        }
    }

    fn size(&mut self, key: &str, default: f64) -> Result<f64> {
        match self.optional(key) {
            None => Ok(default),
            Some(value) => match value.as_f64().filter(|f| f.is_finite() && *f > 0.0) {
                Some(f) => Ok(f),
                None => self.fail(key, format!("is {}, not a size above 0", short(&value))),
            },
        }
    }

    fn text(&mut self, key: &str) -> Result<Option<String>> {
        match self.optional(key) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(value) => self.fail(key, format!("is {}, not a text", short(&value))),
        }
    }

    fn splits(&mut self) -> Result<Map<String, Value>> {
        match self.optional("splits") {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map),
            Some(value) => self.fail("splits", format!("is {}, not an object", short(&value))),
        }
    }
}

/// A whole number from 0 on; some writers save counts as 30.0.
pub(crate) fn whole_number(value: &Value) -> Option<u64> {
    let float = value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f));
    value.as_u64().or_else(|| float.map(|f| f as u64))
}

/// A value as it stands in a message: cut at 60 characters.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// 100 rather than 100.0.
fn number(v: f64) -> Value {
    if v.fract() == 0.0 && v.abs() < 9e15 { json!(v as i64) } else { json!(v) }
}

/// A template must render to a path that stays inside of the dataset.
fn check_template(key: &str, template: &str, version: Version, path: &Path) -> Result<()> {
    // LeRobot gives a template the names of its own version only.
    let other = if version < Version::V30 {
        ["{chunk_index", "{file_index"]
    } else {
        ["{episode_chunk", "{episode_index"]
    };
    if let Some(name) = other.iter().find(|name| template.contains(**name)) {
        let problem = format!("is {template:?}, the field {name}}} is unknown in {version}");
        return Err(Error::key(key, problem, path));
    }
    let rendered = render(template, 0, 0, Some("key")).map_err(|problem| Error::key(key, problem, path))?;
    let inside = !rendered.is_empty()
        && !rendered.contains(['\0', '\\'])
        && Path::new(&rendered).components().all(|c| matches!(c, std::path::Component::Normal(_)));
    if inside {
        Ok(())
    } else {
        Err(Error::key(key, format!("is {template:?}, which leads out of the dataset's folder"), path))
    }
}

/// Fills `{chunk_index:03d}`, `{file_index:03d}` and `{video_key}`, in the subset of Python's format language that
/// LeRobot's templates use.
fn render(template: &str, chunk: u64, file: u64, video_key: Option<&str>) -> Result<String, String> {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (field, after) =
            after.split_once('}').ok_or_else(|| format!("is {template:?}, a brace is not closed"))?;
        rest = after;
        let (name, format) = field.split_once(':').unwrap_or((field, ""));
        let number = match (name, video_key) {
            // The second names are those of v2.x, where an episode is a file.
            ("chunk_index" | "episode_chunk", _) => chunk,
            ("file_index" | "episode_index", _) => file,
            ("video_key", Some(key)) if format.is_empty() => {
                out.push_str(key);
                continue;
            }
            _ => return Err(format!("is {template:?}, the field {{{field}}} is unknown")),
        };
        let digits = format.trim_end_matches('d');
        let padding = if digits.is_empty() { Ok(0) } else { digits.parse::<usize>() };
        let padding = padding.ok().filter(|p| *p <= MAX_PADDING);
        let padding =
            padding.ok_or_else(|| format!("is {template:?}, the format of {{{field}}} is unknown"))?;
        out.push_str(&format!("{number:0padding$}"));
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests;
