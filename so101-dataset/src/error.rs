//! What can go wrong in this crate: what, where, what to do; the path last.

use std::path::{Path, PathBuf};

/// Result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that can go wrong in this crate. Each message is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {doing}: {source}: {}", path.display())]
    Io {
        /// What was being done, such as `read` or `create the folder`.
        doing: &'static str,
        /// The operating system's reason.
        source: std::io::Error,
        /// The file or folder.
        path: PathBuf,
    },

    /// The folder holds no dataset.
    #[error("no LeRobot dataset here, {missing}: check the path: {}", path.display())]
    NotADataset {
        /// What a dataset has and this place has not.
        missing: &'static str,
        /// The folder.
        path: PathBuf,
    },

    /// A file is larger than this crate is ready to load.
    #[error("{what} of {bytes} bytes, at most {limit} are accepted: not a file of a LeRobot dataset: {}", path.display())]
    TooLarge {
        /// What the file holds.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The largest size accepted.
        limit: u64,
        /// The file.
        path: PathBuf,
    },

    /// A file is no JSON.
    #[error("line {line} column {column} is not valid JSON ({problem}): repair or restore the file: {}", path.display())]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1 (0 at an end of file on a new line).
        column: usize,
        /// What the parser met.
        problem: String,
        /// The file.
        path: PathBuf,
    },

    /// A key of a JSON file is missing or holds something else than it must.
    #[error("key {key} {problem}: repair or restore the file: {}", path.display())]
    Key {
        /// Dotted path of the key, such as `features.action.shape`.
        key: String,
        /// What is wrong, with the offending value.
        problem: String,
        /// The file.
        path: PathBuf,
    },

    /// Pictures that cannot be cut out of a video without encoding them again.
    #[error("picture {frame} is no place to cut, picture {nearest} is the nearest: cut there or encode again: {}", path.display())]
    NotAtKeyFrame {
        /// The picture at which the cut was to be.
        frame: u64,
        /// The nearest one at which it can be.
        nearest: u64,
        /// The video.
        path: PathBuf,
    },

    /// A video that cannot be joined to others without encoding it again.
    #[error("{problem}: encode one of them again: {}", path.display())]
    VideosDiffer {
        /// What is different.
        problem: String,
        /// The video.
        path: PathBuf,
    },

    /// A row that the dataset does not have.
    #[error("row {row} of a dataset of {rows}: ask for a smaller one: {}", path.display())]
    NoSuchRow {
        /// The global row that was asked for.
        row: u64,
        /// Rows of the dataset.
        rows: u64,
        /// The dataset.
        path: PathBuf,
    },

    /// No row is left to be drawn.
    #[error("no rows to load: choose episodes that are longer than the rows left out at their ends: {}", path.display())]
    EmptySampler {
        /// The dataset.
        path: PathBuf,
    },

    /// A relative time that falls between two rows.
    #[error(
        "delta_timestamps: {time_s} s of {feature} is no whole number of periods at {fps} Hz within {tolerance_s} s: \
         give multiples of 1/{fps} s"
    )]
    DeltaTimestamp {
        /// The feature.
        feature: String,
        /// The time, in seconds.
        time_s: f64,
        /// Rows a second.
        fps: u32,
        /// How far off it may be, in seconds.
        tolerance_s: f64,
    },

    /// The dataset has a layout that is too old to be read.
    #[error(
        "dataset of version {found}, only v2.0, v2.1 and v3.0 are known here: convert it with the lerobot of its time: {}",
        path.display()
    )]
    OldVersion {
        /// `codebase_version` of the file.
        found: String,
        /// The info.json.
        path: PathBuf,
    },

    /// The dataset has a layout that can be read, but not written.
    #[error("dataset of version {found}, only v3.0 is written: convert it first (example convert_dataset): {}", path.display())]
    ReadOnlyVersion {
        /// `codebase_version` of the file.
        found: String,
        /// The dataset.
        path: PathBuf,
    },

    /// The dataset has a newer layout.
    #[error("dataset of version {found}, v3.0 is the newest known here: use a newer version of so101-dataset: {}", path.display())]
    NewVersion {
        /// `codebase_version` of the file.
        found: String,
        /// The info.json.
        path: PathBuf,
    },

    /// The rows are kept in something else than parquet.
    #[error("storage_format is {found:?}, only parquet is read here: convert the dataset to parquet and mp4: {}", path.display())]
    StorageFormat {
        /// `storage_format` of the file.
        found: String,
        /// The info.json.
        path: PathBuf,
    },

    /// A parquet file is cut off, damaged or no parquet file at all.
    #[error("not a whole parquet file ({problem}): restore it from a copy: {}", path.display())]
    Parquet {
        /// What is wrong.
        problem: String,
        /// The file.
        path: PathBuf,
    },

    /// A column of a parquet file is missing or has the wrong type or values.
    #[error("column {column} {problem}: {}", path.display())]
    Column {
        /// Name of the column.
        column: String,
        /// What is wrong, with the offending value and what to do.
        problem: String,
        /// The file.
        path: PathBuf,
    },

    /// Files of one dataset contradict each other.
    #[error("{what} is {found}, {against} says {expected}: restore the dataset or cut it back to its last whole episode: {}", path.display())]
    Mismatch {
        /// The figure, such as `the number of episode rows`.
        what: String,
        /// Its value.
        found: u64,
        /// What contradicts it, such as `total_episodes in info.json`.
        against: &'static str,
        /// The value there.
        expected: u64,
        /// The file or folder.
        path: PathBuf,
    },

    /// A file that a table points at does not exist.
    #[error("{what} is missing: copy the whole dataset: {}", path.display())]
    MissingFile {
        /// What the file holds.
        what: String,
        /// Where it should be.
        path: PathBuf,
    },

    /// An episode number past the end of the dataset.
    #[error("episode {episode} asked for, the dataset has {episodes}: {}", path.display())]
    NoSuchEpisode {
        /// The number asked for.
        episode: u64,
        /// Episodes in the dataset.
        episodes: u64,
        /// The dataset.
        path: PathBuf,
    },

    /// The disk is full, or a quota is used up.
    #[error("no space left to {doing}: free some or record to another disk: {}", path.display())]
    DiskFull {
        /// What was being done.
        doing: &'static str,
        /// The operating system's reason.
        source: std::io::Error,
        /// The file.
        path: PathBuf,
    },

    /// The encoder cannot take pictures of this size.
    #[error("a {size} picture cannot be encoded, {rule}: set the camera's resolution")]
    VideoSize {
        /// The size asked for.
        size: so101_hal::FrameSize,
        /// The rule that it breaks.
        rule: &'static str,
    },

    /// A setting of the encoder is out of its range.
    #[error("encoder setting {setting} is {value}, it must be {rule}")]
    VideoSetting {
        /// Name of the setting.
        setting: &'static str,
        /// The value.
        value: u64,
        /// What it has to be.
        rule: &'static str,
    },

    /// A picture of another size than its camera declared.
    #[error(
        "camera {camera} delivered a {got} picture, expected {expected}: set its resolution or the rig's description"
    )]
    FrameSize {
        /// Name of the camera.
        camera: String,
        /// Declared size.
        expected: so101_hal::FrameSize,
        /// Size of the picture.
        got: so101_hal::FrameSize,
    },

    /// A picture could not be encoded.
    #[error("picture {frame} cannot be encoded ({problem}): record the episode again: {}", path.display())]
    Encode {
        /// Number of the picture in its file, from 0.
        frame: u64,
        /// What the encoder says or did.
        problem: String,
        /// The file that was being written.
        path: PathBuf,
    },

    /// A video that takes no pictures any more, since it failed or its input was closed.
    #[error("the video takes no more pictures, it {state}: begin a new episode: {}", path.display())]
    VideoClosed {
        /// Why.
        state: &'static str,
        /// The file.
        path: PathBuf,
    },

    /// An mp4 file is cut off or damaged.
    #[error("mp4 box {at} {problem}: restore the file from a copy: {}", path.display())]
    Mp4 {
        /// The box, as a path such as `moov/trak/stsz`.
        at: &'static str,
        /// What is wrong with it, with the offending value.
        problem: String,
        /// The file.
        path: PathBuf,
    },

    /// A video that this build cannot decode.
    #[error("video of codec {codec} cannot be decoded here, only H.264 Baseline can: re-encode it or use another decoder: {}", path.display())]
    UnsupportedCodec {
        /// The codec, with its profile where that is what matters.
        codec: String,
        /// The file.
        path: PathBuf,
    },

    /// A picture cannot be decoded.
    #[error("picture {frame} cannot be decoded ({problem}): restore the file from a copy: {}", path.display())]
    Decode {
        /// Number of the picture, from 0.
        frame: u64,
        /// What the decoder says.
        problem: String,
        /// The file.
        path: PathBuf,
    },

    /// A picture number past the end of a video.
    #[error("picture {frame} asked for, the video has {frames}: {}", path.display())]
    NoSuchFrame {
        /// The number asked for.
        frame: u64,
        /// Pictures in the file.
        frames: u64,
        /// The file.
        path: PathBuf,
    },

    /// A name that no feature of the dataset has.
    #[error("no {kind} feature {name:?}, there are {known}: {}", path.display())]
    NoSuchFeature {
        /// `video`, `image` or `data`.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names of this kind, joined by commas.
        known: String,
        /// The dataset.
        path: PathBuf,
    },

    /// A number that has to be finite is not.
    #[error("{feature} dimension {dimension} is {value} in row {row}: record the episode again")]
    NonFinite {
        /// Name of the feature.
        feature: String,
        /// Row of the episode or table, from 0.
        row: u64,
        /// Dimension, from 0.
        dimension: usize,
        /// The value.
        value: f64,
    },

    /// Rows of one width cannot be cut from, or merged with, these values.
    #[error("{feature}: {got} values do not fit rows of {expected}")]
    StatsWidth {
        /// Name of the feature, or what was being done.
        feature: String,
        /// Numbers a row.
        expected: usize,
        /// Numbers given, or the other width.
        got: usize,
    },

    /// A new dataset was asked for where one exists.
    #[error("a dataset is here already: add to it with --resume or choose another folder: {}", path.display())]
    AlreadyExists {
        /// The folder.
        path: PathBuf,
    },

    /// A folder inside of a dataset that shall be added to is a link.
    #[error("the folder is a link, which a commit would not follow: put the folder itself here: {}", path.display())]
    LinkedFolder {
        /// The link.
        path: PathBuf,
    },

    /// Another writer is at work on this dataset.
    #[error("another program writes this dataset{holder}: wait for it or stop it: {}", path.display())]
    Locked {
        /// `" (process 123)"` where it is known, else empty.
        holder: String,
        /// The dataset.
        path: PathBuf,
    },

    /// What shall be recorded does not fit what the dataset holds.
    #[error("the recording does not fit the dataset ({diff}): change it or record to another folder: {}", path.display())]
    SpecMismatch {
        /// Each difference; [`SpecDiff::table`](crate::SpecDiff::table) lays them out.
        diff: crate::SpecDiff,
        /// The dataset.
        path: PathBuf,
    },

    /// A dataset that cannot be recorded as asked for.
    #[error("{what} is {value}, it must be {rule}")]
    Spec {
        /// What is wrong.
        what: &'static str,
        /// Its value.
        value: String,
        /// What it has to be.
        rule: &'static str,
    },

    /// A call that does not fit the state of the writer.
    #[error("{problem}: call begin, add and end in this order")]
    EpisodeState {
        /// What was tried.
        problem: &'static str,
    },

    /// An observation with other cameras than the dataset has.
    #[error(
        "the observation has pictures of [{got}], the dataset's cameras are [{expected}]: set the rig's description"
    )]
    CameraSet {
        /// Names of the dataset's cameras.
        expected: String,
        /// Names in the observation.
        got: String,
    },

    /// A video that lost or gained pictures against the rows; the episode is refused.
    #[error("camera {camera} has {frames} pictures for {rows} rows: record the episode again")]
    FrameCountMismatch {
        /// Name of the camera.
        camera: String,
        /// Rows of the episode.
        rows: u64,
        /// Pictures in its video.
        frames: u64,
    },

    /// An episode without rows.
    #[error("an episode without rows cannot be kept: add rows or discard it")]
    EmptyEpisode,

    /// The dataset has an episode that our sidecar does not describe.
    #[error("episode {episode} was recorded or changed by another program, its {lacking} is unknown: record to another folder: {}", path.display())]
    SidecarMissing {
        /// The episode.
        episode: u64,
        /// What cannot be known without it.
        lacking: &'static str,
        /// The dataset.
        path: PathBuf,
    },

    /// A table that cannot be written.
    #[error("a table cannot be written ({problem})")]
    Table {
        /// What does not fit.
        problem: String,
    },

    /// The thread that writes episodes is gone.
    #[error("the writer thread of the dataset is gone: open the dataset again with --resume: {}", path.display())]
    WriterGone {
        /// The dataset.
        path: PathBuf,
    },
}

impl Error {
    /// An [`Error::DiskFull`] where that is the reason, else an [`Error::Io`].
    pub(crate) fn write(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match source.kind() {
            StorageFull | QuotaExceeded => Self::DiskFull { doing, source, path: path.into() },
            _ => Self::io(doing, path, source),
        }
    }

    /// An [`Error::Io`].
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { doing, source, path: path.into() }
    }

    /// An [`Error::Key`].
    pub(crate) fn key(key: impl Into<String>, problem: impl Into<String>, path: &Path) -> Self {
        Self::Key { key: key.into(), problem: problem.into(), path: path.into() }
    }

    /// An [`Error::Json`] from the parser's error.
    pub(crate) fn json(error: &serde_json::Error, path: &Path) -> Self {
        let text = one_line(&error.to_string());
        // serde_json repeats the position, which has fields of its own here.
        let problem = text.split(" at line ").next().unwrap_or("unreadable").to_owned();
        Self::Json { line: error.line(), column: error.column(), problem, path: path.into() }
    }

    /// An [`Error::Parquet`].
    pub(crate) fn parquet(problem: impl core::fmt::Display, path: &Path) -> Self {
        Self::Parquet { problem: one_line(&problem.to_string()), path: path.into() }
    }

    /// An [`Error::Column`].
    pub(crate) fn column(column: impl Into<String>, problem: impl Into<String>, path: &Path) -> Self {
        Self::Column { column: column.into(), problem: problem.into(), path: path.into() }
    }
}

/// Foreign messages may run over several lines; ours never do.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_message_is_folded_to_one_line_and_cut() {
        assert_eq!(one_line("a\n  b\r\n\tc"), "a b c");
        assert_eq!(one_line(&"é".repeat(400)).chars().count(), 303);
    }

    #[test]
    fn a_json_error_names_its_position_once() {
        let parser = serde_json::from_str::<serde_json::Value>("{\n  \"a\": }").unwrap_err();
        assert_eq!(
            Error::json(&parser, Path::new("set/meta/info.json")).to_string(),
            "line 2 column 8 is not valid JSON (expected value): repair or restore the file: set/meta/info.json"
        );
    }
}
