//! Columns of whole data files, decoded once and kept: random access to rows is then a copy.

use std::sync::{Arc, OnceLock};

use super::column::{Column, Fault};
use super::{Dataset, data};
use crate::error::{Error, Result};
use crate::features::Feature;

/// Decoded columns by data file and feature. Each is decoded by the first who asks for it.
#[derive(Debug)]
pub(crate) struct ColumnStore {
    set: Arc<Dataset>,
    names: Vec<String>,
    /// `names.len()` cells a data file.
    cells: Vec<OnceLock<Column>>,
}

impl ColumnStore {
    /// A store of these features, which must be columns of the tables.
    pub(crate) fn new(set: Arc<Dataset>, names: Vec<String>) -> Self {
        let cells = (0..set.data.len() * names.len()).map(|_| OnceLock::new()).collect();
        Self { set, names, cells }
    }

    /// The dataset.
    pub(crate) fn set(&self) -> &Arc<Dataset> {
        &self.set
    }

    /// Which data file holds a global row, and the row's place in it.
    pub(crate) fn place(&self, row: u64) -> Option<(usize, usize)> {
        let file = self.set.data.partition_point(|f| f.range().end <= row);
        let first = self.set.data.get(file)?.first_row;
        Some((file, usize::try_from(row.checked_sub(first)?).ok()?))
    }

    /// The column of feature `name` (its place in the list of names) of a whole data file.
    ///
    /// # Errors
    /// What reading parquet returns, and [`Error::Column`].
    pub(crate) fn column(&self, file: usize, name: usize) -> Result<&Column> {
        let missing = || Error::NoSuchEpisode {
            episode: file as u64,
            episodes: self.set.data.len() as u64,
            path: self.set.root.clone(),
        };
        let cell = self.cells.get(file * self.names.len() + name).ok_or_else(missing)?;
        if let Some(column) = cell.get() {
            return Ok(column);
        }
        let column = self.decode(file, name)?;
        // Two threads may have decoded it; both found the same.
        Ok(cell.get_or_init(|| column))
    }

    fn decode(&self, file: usize, name: usize) -> Result<Column> {
        let (data, name) = match (self.set.data.get(file), self.names.get(name)) {
            (Some(data), Some(name)) => (data, name.as_str()),
            _ => return Err(Error::column("(none)", "is not there", self.set.root())),
        };
        let feature = self.feature(name, data)?;
        let mut columns = data.columns(std::iter::once((name, feature)), data.range())?;
        let fail =
            |f: Fault| Error::column(name, format!("{}: restore the file", f.problem()), data.file.path());
        match columns.pop() {
            Some((_, column)) => column.map_err(fail),
            None => Err(Error::column(name, "is missing: restore the file", data.file.path())),
        }
    }

    fn feature(&self, name: &str, data: &data::DataFile) -> Result<&Feature> {
        let known = self.set.info.features.get(name);
        known.ok_or_else(|| Error::column(name, "is no feature of info.json", data.file.path()))
    }
}
