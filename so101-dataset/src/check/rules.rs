//! The rules, each with an id that does not change.

/// What a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its id, such as `rows.timestamp`.
    pub id: &'static str,
    /// What holds in a dataset that keeps it.
    pub asks: &'static str,
}

macro_rules! rules {
    ($($name:ident = $id:literal: $asks:literal;)*) => {
        $(pub(super) const $name: Rule = Rule { id: $id, asks: $asks };)*

        /// Every rule, in the order in which they are checked.
        pub const RULES: &[Rule] = &[$($name),*];
    };
}

rules! {
    INFO_VERSION = "info.version": "info.json is of version v3.0";
    INFO_TOTALS = "info.totals": "the totals of info.json equal what the tables hold";
    INFO_SPLITS = "info.splits": "the split train covers all episodes";
    FEATURES_DEFAULTS = "features.defaults": "the five columns of every dataset are declared";
    FEATURES_MISSING = "features.missing": "every declared column is in every data file";
    FEATURES_EXTRA = "features.extra": "every column of a data file is declared";
    FEATURES_DTYPE = "features.dtype": "columns have the declared type";
    FEATURES_SHAPE = "features.shape": "values have the declared shape";
    TASKS_UNREADABLE = "tasks.unreadable": "tasks.parquet can be read";
    TASKS_ORDER = "tasks.order": "row n of tasks.parquet has task_index n: LeRobot looks up by row";
    TASKS_UNIQUE = "tasks.unique": "no text occurs twice";
    TASKS_PANDAS = "tasks.pandas": "the texts are the pandas index of the table, else LeRobot returns numbers";
    EPISODES_UNREADABLE = "episodes.unreadable": "the table of episodes can be read";
    EPISODES_ORDER = "episodes.order": "row n of the table is episode n: LeRobot looks up by row";
    EPISODES_RANGES = "episodes.ranges": "the episodes' rows follow each other without gap or overlap";
    EPISODES_TASKS = "episodes.tasks": "an episode lists the tasks that its rows have";
    FILES_MISSING = "files.missing": "every data file that an episode names exists";
    FILES_UNREADABLE = "files.unreadable": "every data file can be read";
    FILES_UNREFERENCED = "files.unreferenced": "every data file belongs to an episode: LeRobot reads them all";
    ROWS_INDEX = "rows.index": "index counts the rows of the dataset from 0";
    ROWS_FRAME_INDEX = "rows.frame_index": "frame_index counts the rows of the episode from 0";
    ROWS_EPISODE_INDEX = "rows.episode_index": "episode_index is the number of the episode";
    ROWS_TIMESTAMP = "rows.timestamp": "timestamp is frame_index / fps";
    ROWS_TASK_INDEX = "rows.task_index": "task_index is a row of tasks.parquet";
    ROWS_NONFINITE = "rows.nonfinite": "no number is NaN or infinite";
    ROWS_EMPTY = "rows.empty": "no cell of numbers is empty";
    STATS_UNREADABLE = "stats.unreadable": "stats.json and the episodes' statistics can be read";
    STATS_MISSING = "stats.missing": "every feature of numbers or pictures has statistics";
    STATS_SHAPE = "stats.shape": "a statistic has one number a dimension or channel";
    STATS_VALUES = "stats.values": "min, max, mean, std and count are those of the rows";
    STATS_QUANTILES = "stats.quantiles": "q01 to q99 are the quantiles of the rows";
    STATS_PICTURES = "stats.pictures": "the mean of a camera is that of its decoded pictures";
    VIDEO_MISSING = "video.missing": "every video file that an episode names exists";
    VIDEO_UNREADABLE = "video.unreadable": "the index of every video can be read";
    VIDEO_SIZE = "video.size": "pictures have the size that info.json says";
    VIDEO_FRAMES = "video.frames": "a video has as many pictures as its episodes have rows";
    VIDEO_SPAN = "video.span": "from_timestamp and to_timestamp are where the episode's pictures are";
    VIDEO_TIMING = "video.timing": "picture k is shown at k / fps";
    VIDEO_KEYGAP = "video.keygap": "the first picture is a key frame and the next ones are near";
    VIDEO_DECODE = "video.decode": "every picture can be decoded";
    SIDECAR_UNREADABLE = "sidecar.unreadable": "the files under meta/so101 can be read";
    SIDECAR_STALE = "sidecar.stale": "each line under meta/so101 belongs to an episode and the other way round";
    LAYOUT_STRAY = "layout.stray": "the folder holds nothing that belongs to no dataset";
}
