//! `data/chunk-NNN/file-NNN.parquet`: the rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array};
use arrow_schema::DataType;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

use super::{Table, element};
use crate::error::{Error, Result};
use crate::features::{DType, Feature, Features};

/// The values of one feature over the rows of an episode, row after row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column<'a> {
    /// float32; as many a row as the feature's shape says.
    F32(&'a [f32]),
    /// int64, one a row.
    I64(&'a [i64]),
}

/// The bytes of a data file that holds one episode; columns in the order of `features`, videos left out.
///
/// # Errors
/// [`Error::Table`] when a column is missing or does not fit its feature.
pub(crate) fn data_file(features: &Features, columns: &[(&str, Column<'_>)]) -> Result<Vec<u8>> {
    let mut table = Table::default();
    let mut described = Map::new();
    for (name, feature) in features.columns() {
        let column = columns.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
        let array = column.and_then(|c| array(feature, c)).ok_or_else(|| {
            let shape = &feature.shape;
            Error::Table { problem: format!("no values of {} {shape:?} for column {name}", feature.dtype) }
        })?;
        table.push(name, array);
        described.insert(name.to_owned(), describe(feature));
    }
    let features = Value::Object(described);
    let fingerprint = fingerprint(&features.to_string());
    let metadata = json!({ "info": { "features": features }, "fingerprint": fingerprint });
    table.into_parquet(Some(("huggingface", metadata.to_string())), WriterProperties::builder())
}

/// A plain array for shape `[1]`, lists of fixed size for `[n]`.
fn array(feature: &Feature, column: Column<'_>) -> Option<ArrayRef> {
    let [width] = *feature.shape.as_slice() else { return None };
    match (column, &feature.dtype) {
        (Column::I64(values), DType::Int64) if width == 1 => {
            Some(Arc::new(Int64Array::from(values.to_vec())))
        }
        (Column::F32(values), DType::Float32) => {
            let flat: ArrayRef = Arc::new(Float32Array::from(values.to_vec()));
            if width == 1 {
                return Some(flat);
            }
            let (size, field) = (i32::try_from(width).ok()?, element(DataType::Float32));
            FixedSizeListArray::try_new(field, size, flat, None).ok().map(|a| Arc::new(a) as ArrayRef)
        }
        _ => None,
    }
}

/// A column as the `datasets` library describes it.
fn describe(feature: &Feature) -> Value {
    let value = json!({ "dtype": feature.dtype.name(), "_type": "Value" });
    match feature.width() {
        1 => value,
        length => json!({ "feature": value, "length": length, "_type": "List" }),
    }
}

/// A hash that changes with the columns: FNV-1a of 64 bits.
fn fingerprint(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}
