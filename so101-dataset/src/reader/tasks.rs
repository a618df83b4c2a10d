//! `meta/tasks.parquet`: the task texts.

use std::path::Path;

use serde_json::Value;

use super::column::Column;
use super::episodes::scalar_i64;
use super::parquet_file::ParquetFile;
use crate::error::{Error, Result};
use crate::features::{DType, Feature};
use crate::info::{Info, Version};

/// Where the task texts lie.
pub const TASKS_PATH: &str = "meta/tasks.parquet";

/// The table as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskTable {
    /// `task_index` and text of each row.
    pub(crate) rows: Vec<(i64, String)>,
    /// Whether pandas, and so LeRobot, takes the texts for the index of the table.
    pub(crate) pandas_index: bool,
}

impl TaskTable {
    /// Reads the table. The texts are in the pandas index (under any name), in `task`, or in the only text column.
    ///
    /// # Errors
    /// [`Error::MissingFile`] while info.json counts tasks, [`Error::Column`], and what reading parquet returns.
    pub(crate) fn load(root: &Path, info: &Info) -> Result<Self> {
        if info.version() < Version::V30 {
            return Ok(Self { rows: super::jsonl::tasks(root, info)?, pandas_index: true });
        }
        let path = root.join(TASKS_PATH);
        if !path.exists() {
            return if info.total_tasks == 0 {
                Ok(Self { rows: Vec::new(), pandas_index: true })
            } else {
                Err(Error::MissingFile { what: "the table of tasks".into(), path })
            };
        }
        let file = ParquetFile::open(&path)?;
        if file.rows() > info.total_tasks.saturating_mul(2) + 1000 {
            let (what, against) = ("the number of task rows".into(), "total_tasks in info.json");
            return Err(Error::Mismatch {
                what,
                found: file.rows(),
                against,
                expected: info.total_tasks,
                path,
            });
        }
        let index = pandas_index(&file);
        let named = index.as_deref().filter(|n| file.data_type(n).is_some());
        let is_text = |name: &&str| file.data_type(name) == Some(&arrow_schema::DataType::Utf8);
        let column = named
            .or_else(|| Some("task").filter(|n| file.data_type(n).is_some()))
            .or_else(|| file.columns().find(is_text))
            .ok_or_else(|| Error::column("task", "is missing: restore the file", &path))?
            .to_owned();
        let batches = file.read(&["task_index", &column], 0..file.rows())?;
        let numbers = scalar_i64(&batches, "task_index")
            .map_err(|problem| Error::column("task_index", format!("{problem}: restore the file"), &path))?;
        let texts = Column::from_batches(&column, &Feature::new(DType::String, &[1]), &batches)
            .map_err(|f| Error::column(&column, format!("{}: restore the file", f.problem()), &path))?;
        let texts = texts.as_text().unwrap_or_default().iter().cloned();
        Ok(Self { rows: numbers.into_iter().zip(texts).collect(), pandas_index: index.is_some() })
    }

    /// The texts by row, which is how LeRobot looks them up.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.rows.iter().map(|(_, text)| text.clone()).collect()
    }
}

/// Name of the column that pandas takes for the index.
fn pandas_index(file: &ParquetFile) -> Option<String> {
    let value: Value = serde_json::from_str(&file.key_value("pandas")?).ok()?;
    value.get("index_columns")?.get(0)?.as_str().map(str::to_owned)
}
