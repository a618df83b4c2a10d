//! Statistics as they stand in `meta/stats.json` and in the rows of episodes.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use serde_json::Value;

use super::files::read_capped;
use crate::error::{Error, Result};

/// Where the statistics of the whole dataset lie.
pub const STATS_PATH: &str = "meta/stats.json";
/// The statistics that LeRobot 0.6 writes, in its order.
pub const STATISTICS: [&str; 10] = ["min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"];

const MAX_STATS_BYTES: u64 = 256 << 20;
/// Most numbers of one statistic.
const MAX_NUMBERS: usize = 1 << 22;

/// Statistics by feature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    features: BTreeMap<String, FeatureStats>,
}

impl Stats {
    /// Those of one feature.
    #[must_use]
    pub fn get(&self, feature: &str) -> Option<&FeatureStats> {
        self.features.get(feature)
    }

    /// Names of the features that have statistics.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        self.features.keys().map(String::as_str)
    }

    pub(crate) fn entry(&mut self, feature: &str) -> &mut FeatureStats {
        self.features.entry(feature.to_owned()).or_default()
    }

    /// Reads `meta/stats.json`; `None` when there is no such file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::TooLarge`], [`Error::Json`], [`Error::Key`].
    pub(crate) fn load(root: &Path) -> Result<Option<Self>> {
        let path = root.join(STATS_PATH);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read_capped(&path, "a stats.json", MAX_STATS_BYTES)?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|e| Error::json(&e, &path))?;
        let Value::Object(features) = value else {
            return Err(Error::key("(top)", "is not an object", &path));
        };
        Self::from_map(&features, "", &path).map(Some)
    }

    /// From an object of features, each an object of statistics; `before` is put in front of names in messages.
    ///
    /// # Errors
    /// [`Error::Key`].
    pub(crate) fn from_map(
        features: &serde_json::Map<String, Value>,
        before: &str,
        path: &Path,
    ) -> Result<Self> {
        let key = |name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") };
        let mut stats = Self::default();
        for (name, value) in features {
            let Value::Object(statistics) = value else {
                return Err(Error::key(key(name), "is not an object", path));
            };
            for (statistic, value) in statistics {
                let mut numbers = Vec::new();
                collect(value, &mut numbers)
                    .map_err(|problem| Error::key(key(&format!("{name}.{statistic}")), problem, path))?;
                stats.entry(name).put(statistic, numbers);
            }
        }
        Ok(stats)
    }
}

/// Statistics of one feature, each a flat list: one number a dimension, one a channel, or one for `count`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureStats {
    values: BTreeMap<String, Vec<f64>>,
}

impl FeatureStats {
    /// The numbers of `min`, `max`, `mean`, `std`, `count` or `q01` to `q99`.
    #[must_use]
    pub fn get(&self, statistic: &str) -> Option<&[f64]> {
        self.values.get(statistic).map(Vec::as_slice)
    }

    pub(crate) fn put(&mut self, statistic: &str, values: Vec<f64>) {
        self.values.insert(statistic.to_owned(), values);
    }

    /// The numbers of a cell, lists flattened; `None` when it is empty.
    pub(crate) fn numbers(cell: &ArrayRef) -> Result<Option<Vec<f64>>, String> {
        let mut array = cell.clone();
        while let DataType::List(_) = array.data_type() {
            let list = array.as_list::<i32>();
            if list.null_count() > 0 {
                return Ok(None);
            }
            let ends = list.offsets();
            let first = usize::try_from(ends.first().copied().unwrap_or(0)).unwrap_or(0);
            let last = usize::try_from(ends.last().copied().unwrap_or(0)).unwrap_or(0);
            array = list.values().slice(first, last.saturating_sub(first));
        }
        if array.null_count() > 0 {
            return Ok(None);
        }
        match array.data_type() {
            DataType::Float64 => Ok(Some(array.as_primitive::<Float64Type>().values().to_vec())),
            DataType::Int64 => {
                Ok(Some(array.as_primitive::<Int64Type>().values().iter().map(|v| *v as f64).collect()))
            }
            DataType::Boolean => {
                Ok(Some(array.as_boolean().values().iter().map(|v| f64::from(u8::from(v))).collect()))
            }
            DataType::Float32 => {
                let values = array.as_primitive::<arrow_array::types::Float32Type>().values();
                Ok(Some(values.iter().map(|v| f64::from(*v)).collect()))
            }
            found => Err(format!("is of type {found}, not numbers")),
        }
    }
}

/// Numbers of nested lists in order; truth values count as 0 and 1.
fn collect(value: &Value, out: &mut Vec<f64>) -> Result<(), String> {
    if out.len() >= MAX_NUMBERS {
        return Err(format!("holds more than {MAX_NUMBERS} numbers"));
    }
    match value {
        Value::Array(list) => list.iter().try_for_each(|v| collect(v, out)),
        Value::Bool(b) => {
            out.push(f64::from(u8::from(*b)));
            Ok(())
        }
        Value::Number(n) => {
            out.push(n.as_f64().unwrap_or(f64::NAN));
            Ok(())
        }
        Value::Null => {
            out.push(f64::NAN);
            Ok(())
        }
        Value::String(_) | Value::Object(_) => Err("holds something else than numbers".into()),
    }
}
