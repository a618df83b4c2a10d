//! `meta/tasks.parquet`: the instructions, in the order of their index.

use std::sync::Arc;

use arrow_array::{Int64Array, StringArray};
use parquet::file::properties::WriterProperties;
use serde_json::json;

use super::Table;
use crate::error::Result;

/// The pandas whose layout of the metadata this is.
const PANDAS_VERSION: &str = "2.3.3";

/// The bytes of the file. The text is the index of the table: without that LeRobot shows numbers for tasks.
///
/// # Errors
/// [`Error::Table`](crate::Error::Table).
pub(crate) fn tasks_file(tasks: &[String]) -> Result<Vec<u8>> {
    let mut table = Table::default();
    let count = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
    table.push("task_index", Arc::new(Int64Array::from_iter_values(0..count)));
    table.push("task", Arc::new(StringArray::from_iter_values(tasks)));
    let metadata = json!({
        "index_columns": ["task"],
        "column_indexes": [{
            "name": null,
            "field_name": null,
            "pandas_type": "unicode",
            "numpy_type": "object",
            "metadata": { "encoding": "UTF-8" },
        }],
        "columns": [
            {
                "name": "task_index",
                "field_name": "task_index",
                "pandas_type": "int64",
                "numpy_type": "int64",
                "metadata": null,
            },
            {
                "name": "task",
                "field_name": "task",
                "pandas_type": "unicode",
                "numpy_type": "object",
                "metadata": null,
            },
        ],
        "creator": { "library": "so101-dataset", "version": env!("CARGO_PKG_VERSION") },
        "pandas_version": PANDAS_VERSION,
    });
    table.into_parquet(Some(("pandas", metadata.to_string())), WriterProperties::builder())
}
