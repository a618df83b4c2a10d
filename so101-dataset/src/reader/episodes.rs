//! `meta/episodes/*/*.parquet`: one row an episode.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use serde::Serialize;

use super::column::{Column, Values};
use super::files::glob_two_levels;
use super::parquet_file::ParquetFile;
use super::stats::{FeatureStats, STATISTICS, Stats};
use crate::error::{Error, Result};
use crate::features::{DType, Feature, Features};
use crate::info::{Info, Version};

/// Folder of these files.
pub(crate) const EPISODES_DIR: &str = "meta/episodes";
/// Most texts that one episode may list.
pub(super) const MAX_TASKS: usize = 10_000;

/// Where the rows and pictures of one episode are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EpisodeRow {
    /// Number of the episode, from 0.
    pub episode: u64,
    /// Its task texts.
    pub tasks: Vec<String>,
    /// Rows.
    pub length: u64,
    /// Chunk folder of the data file.
    pub data_chunk: u64,
    /// Number of the data file in it.
    pub data_file: u64,
    /// Global index of the first row.
    pub from_index: u64,
    /// Global index after the last row.
    pub to_index: u64,
    /// One entry a camera, in the order of the features.
    pub videos: Vec<VideoSpan>,
}

/// Where the pictures of one episode and camera are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VideoSpan {
    /// Name of the feature, such as `observation.images.main`.
    pub key: String,
    /// Chunk folder of the mp4.
    pub chunk: u64,
    /// Number of the mp4 in it.
    pub file: u64,
    /// Time of the first picture in the mp4, in seconds.
    pub from_s: f64,
    /// Time after the last picture, in seconds.
    pub to_s: f64,
}

impl VideoSpan {
    /// Number of the episode's first picture in the mp4.
    #[must_use]
    pub fn first_frame(&self, fps: u32) -> u64 {
        // Saturates for negative and for huge times; NaN becomes 0.
        (self.from_s * f64::from(fps)).round() as u64
    }
}

/// The files of a dataset with their rows, in order.
#[derive(Debug)]
pub(crate) struct EpisodeFiles {
    files: Vec<ParquetFile>,
    /// The dataset, where the rows come from `episodes.jsonl` of v2.x.
    old_root: Option<PathBuf>,
    /// All rows.
    pub(crate) rows: Vec<EpisodeRow>,
}

impl EpisodeFiles {
    /// Reads the rows, without the statistics.
    ///
    /// # Errors
    /// [`Error::NotADataset`] without any file while info.json counts episodes, and what reading parquet returns.
    pub(crate) fn load(root: &Path, info: &Info) -> Result<Self> {
        if info.version() < Version::V30 {
            let rows = super::jsonl::episodes(root, info)?;
            return Ok(Self { files: Vec::new(), old_root: Some(root.into()), rows });
        }
        let paths = glob_two_levels(&root.join(EPISODES_DIR), "parquet")?;
        if paths.is_empty() && info.total_episodes > 0 {
            let path: PathBuf = root.join(EPISODES_DIR);
            return Err(Error::MissingFile { what: "the table of episodes".into(), path });
        }
        let mut all = Self { files: Vec::new(), old_root: None, rows: Vec::new() };
        for path in paths {
            let file = ParquetFile::open(&path)?;
            // Bounds the memory before any row is decoded.
            let found = all.rows.len() as u64 + file.rows();
            if found > info.total_episodes.saturating_mul(2) + 1000 {
                let (what, against) = ("the number of episode rows".into(), "total_episodes in info.json");
                return Err(Error::Mismatch { what, found, against, expected: info.total_episodes, path });
            }
            read_rows(&file, info, &mut all.rows)?;
            all.files.push(file);
        }
        Ok(all)
    }

    /// Statistics of each episode, in the order of the rows; empty where the files hold none.
    ///
    /// # Errors
    /// What reading parquet returns.
    pub(crate) fn stats(&self, features: &Features) -> Result<Vec<Stats>> {
        if let Some(root) = &self.old_root {
            return super::jsonl::episode_stats(root, self.rows.len());
        }
        let mut all = Vec::with_capacity(self.rows.len());
        for file in &self.files {
            let start = all.len();
            all.resize_with(start + usize::try_from(file.rows()).unwrap_or(0), Stats::default);
            for (name, _) in features.iter() {
                for statistic in STATISTICS {
                    let column = format!("stats/{name}/{statistic}");
                    if file.data_type(&column).is_some() {
                        let rows = all.get_mut(start..).unwrap_or_default();
                        read_statistic(file, &column, |row, values| {
                            if let (Some(stats), Some(values)) = (rows.get_mut(row), values) {
                                stats.entry(name).put(statistic, values);
                            }
                        })?;
                    }
                }
            }
        }
        Ok(all)
    }
}

fn read_rows(file: &ParquetFile, info: &Info, out: &mut Vec<EpisodeRow>) -> Result<()> {
    let start = out.len();
    let rows = usize::try_from(file.rows()).unwrap_or(0);
    let table = Table::read(file, info)?;
    let episode = table.whole("episode_index")?;
    let length = table.whole("length")?;
    let chunk = table.whole("data/chunk_index")?;
    let data_file = table.whole("data/file_index")?;
    let from = table.whole("dataset_from_index")?;
    let to = table.whole("dataset_to_index")?;
    let tasks = table.tasks()?;
    let columns = episode.iter().zip(&length).zip(&chunk).zip(&data_file).zip(&from).zip(&to).zip(tasks);
    for ((((((episode, length), chunk), data_file), from), to), tasks) in columns {
        out.push(EpisodeRow {
            episode: *episode,
            tasks,
            length: *length,
            data_chunk: *chunk,
            data_file: *data_file,
            from_index: *from,
            to_index: *to,
            videos: Vec::new(),
        });
    }
    if out.len() != start + rows {
        return Err(Error::parquet("its columns differ in length", file.path()));
    }
    for (key, _) in info.features.videos() {
        let chunk = table.whole(&format!("videos/{key}/chunk_index"))?;
        let video_file = table.whole(&format!("videos/{key}/file_index"))?;
        let from = table.seconds(&format!("videos/{key}/from_timestamp"))?;
        let to = table.seconds(&format!("videos/{key}/to_timestamp"))?;
        let spans = chunk.iter().zip(&video_file).zip(&from).zip(&to);
        for (row, (((chunk, file), from_s), to_s)) in out.iter_mut().skip(start).zip(spans) {
            let (chunk, file, from_s, to_s) = (*chunk, *file, *from_s, *to_s);
            row.videos.push(VideoSpan { key: key.to_owned(), chunk, file, from_s, to_s });
        }
    }
    Ok(())
}

/// The columns of one file, apart from the statistics.
struct Table<'a> {
    file: &'a ParquetFile,
    batches: Vec<RecordBatch>,
}

impl<'a> Table<'a> {
    fn read(file: &'a ParquetFile, info: &Info) -> Result<Self> {
        let mut wanted: Vec<String> = [
            "episode_index",
            "tasks",
            "length",
            "data/chunk_index",
            "data/file_index",
            "dataset_from_index",
            "dataset_to_index",
        ]
        .map(String::from)
        .to_vec();
        for (key, _) in info.features.videos() {
            for part in ["chunk_index", "file_index", "from_timestamp", "to_timestamp"] {
                wanted.push(format!("videos/{key}/{part}"));
            }
        }
        let columns: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let batches = file.read(&columns, 0..file.rows())?;
        Ok(Self { file, batches })
    }

    fn column(&self, name: &str, dtype: DType) -> Result<Column> {
        Column::from_batches(name, &Feature::new(dtype, &[1]), &self.batches).map_err(|fault| {
            Error::column(name, format!("{}: restore the file", fault.problem()), self.file.path())
        })
    }

    fn whole(&self, name: &str) -> Result<Vec<u64>> {
        let column = self.column(name, DType::Int64)?;
        let values = column.as_i64().unwrap_or_default();
        let checked = values.iter().enumerate().map(|(row, v)| {
            u64::try_from(*v).map_err(|_| {
                Error::column(
                    name,
                    format!("holds {v} in row {row}, less than 0: restore the file"),
                    self.file.path(),
                )
            })
        });
        checked.collect()
    }

    fn seconds(&self, name: &str) -> Result<Vec<f64>> {
        let column = self.column(name, DType::Float64)?;
        let values = column.as_f64().unwrap_or_default();
        if let Some((row, v)) = values.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            let problem = format!("holds {v} in row {row}, not a time: restore the file");
            return Err(Error::column(name, problem, self.file.path()));
        }
        Ok(values.to_vec())
    }

    fn tasks(&self) -> Result<Vec<Vec<String>>> {
        let mut all = Vec::new();
        for array in self.batches.iter().filter_map(|b| b.column_by_name("tasks")) {
            for row in 0..array.len() {
                all.push(texts_of(array, row).map_err(|problem| {
                    Error::column(
                        "tasks",
                        format!("{problem} in row {row}: restore the file"),
                        self.file.path(),
                    )
                })?);
            }
        }
        Ok(all)
    }
}

/// The texts of one row: a list of texts, or a single one.
fn texts_of(array: &ArrayRef, row: usize) -> Result<Vec<String>, String> {
    let cell = match array.data_type() {
        DataType::List(_) if array.is_null(row) => return Ok(Vec::new()),
        DataType::List(_) => array.as_list::<i32>().value(row),
        _ => array.slice(row, 1),
    };
    if cell.len() > MAX_TASKS {
        return Err(format!("holds {} texts", cell.len()));
    }
    match cell.data_type() {
        DataType::Utf8 => Ok(cell.as_string::<i32>().iter().flatten().map(str::to_owned).collect()),
        found => Err(format!("is of type {found}, not a list of texts")),
    }
}

/// Calls `put` with each row's numbers, whatever the nesting; `None` for an empty cell.
fn read_statistic(
    file: &ParquetFile,
    column: &str,
    mut put: impl FnMut(usize, Option<Vec<f64>>),
) -> Result<()> {
    let mut at = 0;
    for batch in file.read(&[column], 0..file.rows())? {
        let array = batch.column(0);
        for row in 0..array.len() {
            let values = FeatureStats::numbers(&array.slice(row, 1)).map_err(|problem| {
                Error::column(column, format!("{problem}: restore the file"), file.path())
            })?;
            put(at + row, values);
        }
        at += array.len();
    }
    Ok(())
}

/// The column of a table of one scalar column.
pub(crate) fn scalar_i64(batches: &[RecordBatch], name: &str) -> Result<Vec<i64>, String> {
    let column = Column::from_batches(name, &Feature::new(DType::Int64, &[1]), batches);
    match column.map_err(|f| f.problem().to_owned())?.values() {
        Values::I64(v) => Ok(v.clone()),
        _ => Err("is not an integer type".into()),
    }
}
