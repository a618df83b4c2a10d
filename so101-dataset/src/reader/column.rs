//! Columns as plain vectors: no arrow type leaves this crate.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::features::{DType, Feature};

/// The values of a column, row after row; a row of shape `[a, b]` takes `a * b` of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// `float32` and `float16`.
    F32(Vec<f32>),
    /// `float64`.
    F64(Vec<f64>),
    /// Every integer type.
    I64(Vec<i64>),
    /// `bool`.
    Bool(Vec<bool>),
    /// `string`; an empty cell reads as an empty text.
    Text(Vec<String>),
    /// `image`: the bytes of a PNG (or another format) as they were stored, empty where only a path was stored.
    Image(Vec<Vec<u8>>),
    /// A type that this crate does not read, such as `language`.
    Opaque,
}

impl Values {
    /// No values of this type.
    pub(crate) fn empty(dtype: &DType) -> Self {
        match dtype {
            DType::Float16 | DType::Float32 => Self::F32(Vec::new()),
            DType::Float64 => Self::F64(Vec::new()),
            DType::Bool => Self::Bool(Vec::new()),
            DType::String => Self::Text(Vec::new()),
            DType::Image => Self::Image(Vec::new()),
            DType::Video | DType::Other(_) => Self::Opaque,
            _ => Self::I64(Vec::new()),
        }
    }

    /// Takes all values out, and keeps the buffer.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::F32(v) => v.clear(),
            Self::F64(v) => v.clear(),
            Self::I64(v) => v.clear(),
            Self::Bool(v) => v.clear(),
            Self::Text(v) => v.clear(),
            Self::Image(v) => v.clear(),
            Self::Opaque => {}
        }
    }

    /// Appends a range of values of the same type; what lies beyond their end is left out.
    pub(crate) fn extend_from(&mut self, from: &Self, range: core::ops::Range<usize>) {
        macro_rules! all {
            ($out:expr, $from:expr) => {
                $out.extend_from_slice($from.get(range).unwrap_or_default())
            };
        }
        match (self, from) {
            (Self::F32(out), Self::F32(from)) => all!(out, from),
            (Self::F64(out), Self::F64(from)) => all!(out, from),
            (Self::I64(out), Self::I64(from)) => all!(out, from),
            (Self::Bool(out), Self::Bool(from)) => all!(out, from),
            (Self::Text(out), Self::Text(from)) => all!(out, from),
            (Self::Image(out), Self::Image(from)) => all!(out, from),
            _ => {}
        }
    }
}

/// One column of some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    shape: Vec<usize>,
    values: Values,
}

impl Column {
    /// Name of the feature.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shape of one row's value, `[1]` for a scalar.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements of one row's value: 1 for texts and images.
    #[must_use]
    pub fn width(&self) -> usize {
        match self.values {
            Values::Text(_) | Values::Image(_) | Values::Opaque => 1,
            _ => self.shape.iter().product(),
        }
    }

    /// All values, row after row.
    #[must_use]
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The values when they are float32.
    #[must_use]
    pub fn as_f32(&self) -> Option<&[f32]> {
        if let Values::F32(v) = &self.values { Some(v) } else { None }
    }

    /// The values when they are float64.
    #[must_use]
    pub fn as_f64(&self) -> Option<&[f64]> {
        if let Values::F64(v) = &self.values { Some(v) } else { None }
    }

    /// The values when they are integers.
    #[must_use]
    pub fn as_i64(&self) -> Option<&[i64]> {
        if let Values::I64(v) = &self.values { Some(v) } else { None }
    }

    /// The values when they are truth values.
    #[must_use]
    pub fn as_bool(&self) -> Option<&[bool]> {
        if let Values::Bool(v) = &self.values { Some(v) } else { None }
    }

    /// The values when they are texts.
    #[must_use]
    pub fn as_text(&self) -> Option<&[String]> {
        if let Values::Text(v) = &self.values { Some(v) } else { None }
    }

    /// Shape of all values: the number of rows, then [`Self::shape`].
    fn full_shape(&self, values: usize) -> Vec<usize> {
        let width = self.width().max(1);
        std::iter::once(values / width).chain(self.shape.iter().copied()).collect()
    }

    /// The values as an array of rows times [`Self::shape`], where they are float32.
    #[must_use]
    pub fn view_f32(&self) -> Option<ndarray::ArrayViewD<'_, f32>> {
        let values = self.as_f32()?;
        ndarray::ArrayViewD::from_shape(ndarray::IxDyn(&self.full_shape(values.len())), values).ok()
    }

    /// The values as an array of rows times [`Self::shape`], where they are float64.
    #[must_use]
    pub fn view_f64(&self) -> Option<ndarray::ArrayViewD<'_, f64>> {
        let values = self.as_f64()?;
        ndarray::ArrayViewD::from_shape(ndarray::IxDyn(&self.full_shape(values.len())), values).ok()
    }

    /// The values as an array of rows times [`Self::shape`], where they are integers.
    #[must_use]
    pub fn view_i64(&self) -> Option<ndarray::ArrayViewD<'_, i64>> {
        let values = self.as_i64()?;
        ndarray::ArrayViewD::from_shape(ndarray::IxDyn(&self.full_shape(values.len())), values).ok()
    }

    /// The values as float64, truth values as 0 and 1; `None` when they are no numbers.
    #[must_use]
    pub fn to_f64(&self) -> Option<Vec<f64>> {
        Some(match &self.values {
            Values::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Values::F64(v) => v.clone(),
            Values::I64(v) => v.iter().map(|x| *x as f64).collect(),
            Values::Bool(v) => v.iter().map(|x| f64::from(u8::from(*x))).collect(),
            Values::Text(_) | Values::Image(_) | Values::Opaque => return None,
        })
    }

    /// Takes the column `name` out of batches.
    pub(crate) fn from_batches(
        name: &str,
        feature: &Feature,
        batches: &[RecordBatch],
    ) -> Result<Self, Fault> {
        let mut column = Self::empty(name, feature);
        for batch in batches {
            let array = batch.column_by_name(name).ok_or_else(|| Fault::Type("is missing".into()))?;
            match feature.dtype {
                DType::Other(_) => {}
                DType::Image => append_images(&mut column.values, array)?,
                _ => append(&mut column.values, &flatten(array, &feature.shape)?)?,
            }
        }
        Ok(column)
    }

    fn empty(name: &str, feature: &Feature) -> Self {
        let values = Values::empty(&feature.dtype);
        Self { name: name.to_owned(), shape: feature.shape.clone(), values }
    }
}

/// What keeps a column from being read; each holds the rest of a sentence that begins with the column's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another shape than the feature's.
    Shape(String),
    /// Another type than the feature's.
    Type(String),
    /// Empty cells where numbers must be.
    Empty(String),
}

impl Fault {
    /// The rest of the sentence.
    pub(crate) fn problem(&self) -> &str {
        match self {
            Self::Shape(s) | Self::Type(s) | Self::Empty(s) => s,
        }
    }
}

/// The elements of nested lists, after checking that each list has the length that `shape` says.
fn flatten(array: &ArrayRef, shape: &[usize]) -> Result<ArrayRef, Fault> {
    let (mut array, mut axes) = (array.clone(), shape);
    while let DataType::List(_) = array.data_type() {
        let list = array.as_list::<i32>();
        let Some((want, inner)) = axes.split_first() else {
            return Err(Fault::Shape(format!("has lists inside of lists, deeper than its shape {shape:?}")));
        };
        no_empty_cells(list)?;
        for (row, ends) in list.offsets().windows(2).enumerate() {
            let got = ends.last().zip(ends.first()).map_or(0, |(b, a)| usize::try_from(b - a).unwrap_or(0));
            if got != *want {
                return Err(Fault::Shape(format!("has {got} elements in row {row}, its shape is {shape:?}")));
            }
        }
        let (first, last) = (list.offsets().first().copied(), list.offsets().last().copied());
        let first = usize::try_from(first.unwrap_or(0)).unwrap_or(0);
        let last = usize::try_from(last.unwrap_or(0)).unwrap_or(0);
        array = list.values().slice(first, last.saturating_sub(first));
        axes = inner;
    }
    if axes.iter().product::<usize>() > 1 {
        return Err(Fault::Shape(format!("has single elements where its shape is {shape:?}")));
    }
    Ok(array)
}

fn no_empty_cells(array: &dyn Array) -> Result<(), Fault> {
    match (0..array.len()).find(|i| array.is_null(*i)) {
        Some(i) => Err(Fault::Empty(format!("has an empty cell at element {i}"))),
        None => Ok(()),
    }
}

/// Adds the elements of a leaf array, in the type of `values`.
fn append(values: &mut Values, array: &ArrayRef) -> Result<(), Fault> {
    macro_rules! all {
        ($ty:ty, $out:expr, $map:expr) => {{
            no_empty_cells(array.as_ref())?;
            $out.extend(array.as_primitive::<$ty>().values().iter().map($map))
        }};
    }
    match (values, array.data_type()) {
        (Values::F32(out), DataType::Float16) => all!(Float16Type, out, |v| v.to_f32()),
        (Values::F32(out), DataType::Float32) => all!(Float32Type, out, |v| *v),
        // Wider in the file than declared: what LeRobot's cast does.
        (Values::F32(out), DataType::Float64) => all!(Float64Type, out, |v| *v as f32),
        (Values::F64(out), DataType::Float32) => all!(Float32Type, out, |v| f64::from(*v)),
        (Values::F64(out), DataType::Float64) => all!(Float64Type, out, |v| *v),
        (Values::I64(out), DataType::Int8) => all!(Int8Type, out, |v| i64::from(*v)),
        (Values::I64(out), DataType::Int16) => all!(Int16Type, out, |v| i64::from(*v)),
        (Values::I64(out), DataType::Int32) => all!(Int32Type, out, |v| i64::from(*v)),
        (Values::I64(out), DataType::Int64) => all!(Int64Type, out, |v| *v),
        (Values::I64(out), DataType::UInt8) => all!(UInt8Type, out, |v| i64::from(*v)),
        (Values::I64(out), DataType::UInt16) => all!(UInt16Type, out, |v| i64::from(*v)),
        (Values::I64(out), DataType::UInt32) => all!(UInt32Type, out, |v| i64::from(*v)),
        (Values::I64(out), DataType::UInt64) => {
            no_empty_cells(array.as_ref())?;
            for v in array.as_primitive::<UInt64Type>().values() {
                out.push(
                    i64::try_from(*v).map_err(|_| Fault::Type(format!("holds {v}, more than an int64")))?,
                );
            }
        }
        (Values::Bool(out), DataType::Boolean) => {
            no_empty_cells(array.as_ref())?;
            out.extend(array.as_boolean().values().iter());
        }
        (Values::Text(out), DataType::Utf8) => {
            out.extend(array.as_string::<i32>().iter().map(|s| s.unwrap_or_default().to_owned()));
        }
        (Values::F32(_) | Values::F64(_), found) => return Err(wrong_type(found, "a floating point type")),
        (Values::I64(_), found) => return Err(wrong_type(found, "an integer type")),
        (Values::Bool(_), found) => return Err(wrong_type(found, "bool")),
        (Values::Text(_), found) => return Err(wrong_type(found, "string")),
        (Values::Image(_) | Values::Opaque, _) => {}
    }
    Ok(())
}

fn wrong_type(found: &DataType, want: &str) -> Fault {
    Fault::Type(format!("is of type {found}, info.json says {want}"))
}

fn append_images(values: &mut Values, array: &ArrayRef) -> Result<(), Fault> {
    let Values::Image(out) = values else { return Ok(()) };
    let bytes = match array.data_type() {
        DataType::Struct(_) => array.as_struct().column_by_name("bytes").cloned(),
        DataType::Binary => Some(array.clone()),
        _ => None,
    };
    match bytes {
        Some(b) if *b.data_type() == DataType::Binary => {
            out.extend(b.as_binary::<i32>().iter().map(|b| b.unwrap_or_default().to_vec()));
            Ok(())
        }
        _ => Err(wrong_type(array.data_type(), "image, a struct of bytes and path")),
    }
}

#[cfg(test)]
mod tests;
