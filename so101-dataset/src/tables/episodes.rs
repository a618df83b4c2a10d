//! `meta/episodes/chunk-NNN/file-NNN.parquet`: where each episode's rows and pictures are, and its statistics.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, StringArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::DataType;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::{Table, element};
use crate::error::{Error, Result};
use crate::stats::{FeatureSummary, SummaryShape};

/// Which of the numbered files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilePosition {
    /// Number of its folder.
    pub chunk: u64,
    /// Number in the folder.
    pub file: u64,
}

impl FilePosition {
    /// The one after this, by LeRobot's rule: `chunks_size` files a folder.
    pub(crate) const fn next(self, chunks_size: u64) -> Self {
        if self.file + 1 >= chunks_size {
            Self { chunk: self.chunk + 1, file: 0 }
        } else {
            Self { chunk: self.chunk, file: self.file + 1 }
        }
    }
}

/// Where an episode's pictures of one camera are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VideoSpan {
    /// Name of the video feature.
    pub key: String,
    /// The file.
    pub at: FilePosition,
    /// Times in the file.
    pub from_s: f64,
    /// Past the last picture.
    pub to_s: f64,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct EpisodeMeta {
    pub episode: u64,
    pub tasks: Vec<String>,
    pub length: u64,
    pub data: FilePosition,
    /// Global indices of its rows, the end excluded.
    pub rows: std::ops::Range<u64>,
    pub videos: Vec<VideoSpan>,
    /// By name of the feature, in the order of the features.
    pub stats: Vec<(String, FeatureSummary)>,
    /// The file that holds this row.
    pub meta: FilePosition,
}

/// The bytes of a file with this one row.
///
/// # Errors
/// [`Error::Table`].
pub(crate) fn episodes_file(row: &EpisodeMeta) -> Result<Vec<u8>> {
    let mut table = Table::default();
    let whole =
        |v: u64| -> ArrayRef { Arc::new(Int64Array::from(vec![i64::try_from(v).unwrap_or(i64::MAX)])) };
    let seconds = |v: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![v])) };
    table.push("episode_index", whole(row.episode));
    table.push("tasks", list(Arc::new(StringArray::from_iter_values(&row.tasks)), 1)?);
    table.push("length", whole(row.length));
    table.push("data/chunk_index", whole(row.data.chunk));
    table.push("data/file_index", whole(row.data.file));
    table.push("dataset_from_index", whole(row.rows.start));
    table.push("dataset_to_index", whole(row.rows.end));
    for VideoSpan { key, at, from_s, to_s } in &row.videos {
        table.push(format!("videos/{key}/chunk_index"), whole(at.chunk));
        table.push(format!("videos/{key}/file_index"), whole(at.file));
        table.push(format!("videos/{key}/from_timestamp"), seconds(*from_s));
        table.push(format!("videos/{key}/to_timestamp"), seconds(*to_s));
    }
    for (feature, summary) in &row.stats {
        for (name, values) in summary.named() {
            if name == "q01" {
                table.push(format!("stats/{feature}/count"), list(whole(summary.count), 1)?);
            }
            let mut array: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
            if summary.shape == SummaryShape::Image {
                // [c, 1, 1]: two more levels of lists, each of one.
                array = list(list(array, values.len())?, values.len())?;
            }
            table.push(format!("stats/{feature}/{name}"), list(array, 1)?);
        }
    }
    table.push("meta/episodes/chunk_index", whole(row.meta.chunk));
    table.push("meta/episodes/file_index", whole(row.meta.file));
    // About a hundred columns of one row: the extremes of each would make up most of the file.
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false);
    table.into_parquet(None, properties)
}

/// Cuts an array into `rows` lists of equal length.
fn list(values: ArrayRef, rows: usize) -> Result<ArrayRef> {
    let each = values.len() / rows.max(1);
    let data_type: DataType = values.data_type().clone();
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(each, rows));
    let array = ListArray::try_new(element(data_type), offsets, values, None)
        .map_err(|e| Error::Table { problem: e.to_string() })?;
    Ok(Arc::new(array))
}
