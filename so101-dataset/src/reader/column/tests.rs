use std::sync::Arc;

use arrow_array::builder::{Float32Builder, ListBuilder};
use arrow_array::{BooleanArray, Float64Array, Int32Array, StringArray, UInt64Array};
use arrow_schema::{Field, Schema};

use super::*;

fn batch(array: ArrayRef) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("x", array.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![array]).unwrap()
}

fn lists(rows: &[&[f32]]) -> ArrayRef {
    let mut builder = ListBuilder::new(Float32Builder::new());
    for row in rows {
        builder.values().append_slice(row);
        builder.append(true);
    }
    Arc::new(builder.finish())
}

fn read(array: ArrayRef, dtype: DType, shape: &[usize]) -> Result<Values, Fault> {
    Column::from_batches("x", &Feature::new(dtype, shape), &[batch(array)]).map(|c| c.values)
}

#[test]
fn values_arrive_in_the_declared_type() {
    let cases: Vec<(ArrayRef, DType, &[usize], Values)> = vec![
        (lists(&[&[1.0, 2.0], &[3.0, 4.0]]), DType::Float32, &[2], Values::F32(vec![1.0, 2.0, 3.0, 4.0])),
        (lists(&[&[1.0, 2.0]]).slice(0, 1), DType::Float64, &[2], Values::F64(vec![1.0, 2.0])),
        (lists(&[&[9.0, 9.0], &[5.0, 6.0]]).slice(1, 1), DType::Float32, &[2], Values::F32(vec![5.0, 6.0])),
        (Arc::new(Int32Array::from(vec![-3, 4])), DType::Int32, &[1], Values::I64(vec![-3, 4])),
        (Arc::new(Float64Array::from(vec![0.5])), DType::Float32, &[1], Values::F32(vec![0.5])),
        (Arc::new(BooleanArray::from(vec![true, false])), DType::Bool, &[1], Values::Bool(vec![true, false])),
        (
            Arc::new(StringArray::from(vec![Some("é"), None])),
            DType::String,
            &[1],
            Values::Text(vec!["é".into(), String::new()]),
        ),
    ];
    for (array, dtype, shape, want) in cases {
        assert_eq!(read(array, dtype, shape), Ok(want));
    }
}

#[test]
fn a_wrong_shape_type_or_empty_cell_is_told_apart() {
    let empty = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    assert!(matches!(read(empty, DType::Float64, &[1]), Err(Fault::Empty(_))));
    assert!(matches!(read(lists(&[&[1.0, 2.0], &[1.0]]), DType::Float32, &[2]), Err(Fault::Shape(_))));
    assert!(matches!(read(lists(&[&[1.0, 2.0]]), DType::Float32, &[1, 2]), Err(Fault::Shape(_))));
    let scalar = Arc::new(Float64Array::from(vec![1.0]));
    assert!(matches!(read(scalar.clone(), DType::Float32, &[3]), Err(Fault::Shape(_))));
    assert!(matches!(read(scalar, DType::Int64, &[1]), Err(Fault::Type(_))));
    let huge = Arc::new(UInt64Array::from(vec![u64::MAX]));
    assert!(matches!(read(huge, DType::UInt64, &[1]), Err(Fault::Type(_))));
}
