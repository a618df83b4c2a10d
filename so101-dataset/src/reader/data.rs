//! `data/*/*.parquet`: the rows.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::column::{Column, Fault};
use super::episodes::EpisodeRow;
use super::files::glob_two_levels;
use super::parquet_file::ParquetFile;
use crate::error::{Error, Result};
use crate::features::{Feature, Features};
use crate::info::Info;

/// Folder of these files.
pub(crate) const DATA_DIR: &str = "data";

/// One data file and its place among the rows of the dataset.
#[derive(Clone, Debug)]
pub(crate) struct DataFile {
    /// The file.
    pub(crate) file: ParquetFile,
    /// Rows in the files before it.
    pub(crate) first_row: u64,
}

impl DataFile {
    /// Global positions of its rows.
    pub(crate) fn range(&self) -> Range<u64> {
        self.first_row..self.first_row + self.file.rows()
    }

    /// Some columns of global rows that lie in this file, each with what keeps it from being read.
    ///
    /// # Errors
    /// What reading parquet returns.
    pub(crate) fn columns<'f>(
        &self,
        features: impl Iterator<Item = (&'f str, &'f Feature)> + Clone,
        rows: Range<u64>,
    ) -> Result<Vec<(&'f str, Result<Column, Fault>)>> {
        let names: Vec<&str> = features.clone().map(|(n, _)| n).collect();
        let local = rows.start.saturating_sub(self.first_row)..rows.end.saturating_sub(self.first_row);
        let batches = self.file.read(&names, local)?;
        Ok(features.map(|(name, feature)| (name, Column::from_batches(name, feature, &batches))).collect())
    }
}

/// All data files in the order in which LeRobot reads them.
///
/// # Errors
/// What opening parquet returns, of the first file that cannot be opened.
pub(crate) fn load(root: &Path) -> Result<Vec<DataFile>> {
    let mut first_row = 0;
    let mut files = Vec::new();
    for path in glob_two_levels(&root.join(DATA_DIR), "parquet")? {
        let file = ParquetFile::open(&path)?;
        let rows = file.rows();
        files.push(DataFile { file, first_row });
        first_row += rows;
    }
    Ok(files)
}

/// The file that holds the rows of an episode.
///
/// # Errors
/// [`Error::MissingFile`], and [`Error::Column`] when the file ends before the episode does.
pub(crate) fn file_of<'a>(
    files: &'a [DataFile],
    root: &Path,
    info: &Info,
    row: &EpisodeRow,
) -> Result<&'a DataFile> {
    let path: PathBuf = root.join(info.data_file(row.data_chunk, row.data_file)?);
    // `load` lists them sorted by path.
    let found = files.binary_search_by(|f| f.file.path().cmp(&path)).ok().and_then(|i| files.get(i));
    let Some(file) = found else {
        return Err(Error::MissingFile { what: format!("the data file of episode {}", row.episode), path });
    };
    let range = file.range();
    if row.from_index < range.start || row.to_index > range.end || row.from_index > row.to_index {
        let problem = format!(
            "says rows {} to {} for episode {}, the file holds {} to {}: restore the dataset",
            row.from_index, row.to_index, row.episode, range.start, range.end
        );
        return Err(Error::column("dataset_from_index", problem, &path));
    }
    Ok(file)
}

/// Every column that info.json declares must be in the file.
///
/// # Errors
/// [`Error::Column`].
pub(crate) fn check_columns(file: &ParquetFile, features: &Features) -> Result<()> {
    match features.columns().find(|(name, _)| file.data_type(name).is_none()) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Error::column(name, "is missing: restore the file or take it out of info.json", file.path()))
        }
    }
}
