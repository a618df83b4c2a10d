//! Writes the parquet files of a dataset as pyarrow and LeRobot write them: snappy, dictionaries, one row group a file.
//!
//! Metadata of `pandas` and `datasets` goes into the arrow schema as well as into the footer: a reader that finds an
//! `ARROW:schema` takes the metadata from inside of it and looks no further. The bytes depend on the values alone.

mod data;
mod episodes;
mod tasks;

pub(crate) use data::{Column, data_file};
pub(crate) use episodes::{EpisodeMeta, FilePosition, VideoSpan, episodes_file};
pub(crate) use tasks::tasks_file;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterPropertiesBuilder;

use crate::error::{Error, Result};

/// Who wrote a file, as its footer says.
const CREATED_BY: &str = concat!("so101-dataset version ", env!("CARGO_PKG_VERSION"));

/// Columns in order; every field nullable, as pyarrow has it.
#[derive(Default)]
struct Table {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Table {
    fn push(&mut self, name: impl Into<String>, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), true));
        self.arrays.push(array);
    }

    /// The bytes of the parquet file. `metadata` is one key with its JSON: a second would get no certain order.
    fn into_parquet(
        self,
        metadata: Option<(&str, String)>,
        properties: WriterPropertiesBuilder,
    ) -> Result<Vec<u8>> {
        let fail =
            |e: &dyn core::fmt::Display| Error::Table { problem: crate::error::one_line(&e.to_string()) };
        let in_schema: HashMap<String, String> =
            metadata.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
        let in_footer = metadata.map(|(k, v)| vec![KeyValue::new(k.to_owned(), v)]);
        let schema = Arc::new(Schema::new_with_metadata(self.fields, in_schema));
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.arrays).map_err(|e| fail(&e))?;
        let properties = properties
            .set_compression(Compression::SNAPPY)
            .set_created_by(CREATED_BY.to_owned())
            .set_key_value_metadata(in_footer)
            .build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, schema, Some(properties)).map_err(|e| fail(&e))?;
        writer.write(&batch).map_err(|e| fail(&e))?;
        writer.close().map_err(|e| fail(&e))?;
        Ok(bytes)
    }
}

/// The field inside of a list, which pyarrow calls `element`.
fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", data_type, true))
}

#[cfg(test)]
mod tests;
