//! The rows of one episode.

use std::path::{Path, PathBuf};

use super::column::Column;
use crate::error::{Error, Result};

/// The rows of one episode as columns, in the order of the features.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeTable {
    pub(crate) episode: u64,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
    pub(crate) path: PathBuf,
}

impl EpisodeTable {
    /// Number of the episode.
    #[must_use]
    pub fn episode(&self) -> u64 {
        self.episode
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All columns that were read.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name() == name)
    }

    /// A float32 column, row after row.
    ///
    /// # Errors
    /// [`Error::NoSuchFeature`] without such a column, [`Error::Column`] when it has another type.
    pub fn f32(&self, name: &str) -> Result<&[f32]> {
        self.typed(name, "float32", Column::as_f32)
    }

    /// An integer column, row after row.
    ///
    /// # Errors
    /// [`Error::NoSuchFeature`] without such a column, [`Error::Column`] when it has another type.
    pub fn i64(&self, name: &str) -> Result<&[i64]> {
        self.typed(name, "an integer type", Column::as_i64)
    }

    /// Any column of numbers as float64, row after row.
    ///
    /// # Errors
    /// [`Error::NoSuchFeature`] without such a column, [`Error::Column`] when it holds no numbers.
    pub fn f64(&self, name: &str) -> Result<Vec<f64>> {
        self.find(name)?.to_f64().ok_or_else(|| self.not(name, "a type of numbers"))
    }

    fn typed<'a, T: ?Sized>(
        &'a self,
        name: &str,
        want: &str,
        get: fn(&'a Column) -> Option<&'a T>,
    ) -> Result<&'a T> {
        get(self.find(name)?).ok_or_else(|| self.not(name, want))
    }

    fn find(&self, name: &str) -> Result<&Column> {
        self.column(name).ok_or_else(|| {
            let known = self.columns.iter().map(Column::name).collect::<Vec<_>>().join(", ");
            no_such_feature("data", name, known, &self.path)
        })
    }

    fn not(&self, name: &str, want: &str) -> Error {
        Error::column(name, format!("is not of {want}: read its values by their own type"), &self.path)
    }
}

pub(crate) fn no_such_feature(kind: &'static str, name: &str, known: String, path: &Path) -> Error {
    Error::NoSuchFeature { kind, name: name.to_owned(), known, path: path.into() }
}
