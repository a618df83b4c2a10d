//! Other writers lay the same tables out differently; the reader returns the same values.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeListBuilder, Float32Builder, LargeListBuilder, LargeStringBuilder, ListBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};
use so101_dataset::{Column, Dataset};

use crate::planting::{Copy, edit_column, edit_json, read_table, write_table};
use crate::reads_lerobot::fixture;

const DATA: &str = "data/chunk-000/file-000.parquet";
const EPISODES: &str = "meta/episodes/chunk-000/file-000.parquet";
const TASKS: &str = "meta/tasks.parquet";

/// Everything that a reader can see.
fn content(root: &Path) -> (Vec<String>, Vec<Vec<Column>>, Vec<so101_dataset::EpisodeRow>) {
    let set = Dataset::open(root).unwrap();
    let rows = set.episodes().iter().map(|e| set.rows(e.episode).unwrap().columns().to_vec()).collect();
    (set.tasks().to_vec(), rows, set.episodes().to_vec())
}

/// The vectors of a list column of any kind.
fn vectors(array: &ArrayRef) -> Vec<Vec<f32>> {
    let list = array.as_fixed_size_list();
    (0..list.len()).map(|i| list.value(i).as_primitive::<Float32Type>().values().to_vec()).collect()
}

fn rewrite(path: &Path, properties: WriterProperties, rows_a_write: usize) {
    let batch = read_table(path);
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    for start in (0..batch.num_rows()).step_by(rows_a_write) {
        writer.write(&batch.slice(start, rows_a_write.min(batch.num_rows() - start))).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

type Variant = fn(&Copy);

const VARIANTS: &[(&str, Variant)] = &[
    ("vectors as lists of free length", |s| {
        edit_column(&s.path(DATA), "action", |array| {
            let mut builder = ListBuilder::new(Float32Builder::new());
            for v in vectors(array) {
                builder.values().append_slice(&v);
                builder.append(true);
            }
            Arc::new(builder.finish())
        });
    }),
    ("vectors as large lists", |s| {
        edit_column(&s.path(DATA), "action", |array| {
            let mut builder = LargeListBuilder::new(Float32Builder::new());
            for v in vectors(array) {
                builder.values().append_slice(&v);
                builder.append(true);
            }
            Arc::new(builder.finish())
        });
    }),
    ("list fields that are called item", |s| {
        edit_column(&s.path(DATA), "observation.state", |array| {
            let field = Field::new("item", arrow_schema::DataType::Float32, false);
            let mut builder = FixedSizeListBuilder::new(Float32Builder::new(), 6).with_field(field);
            for v in vectors(array) {
                builder.values().append_slice(&v);
                builder.append(true);
            }
            Arc::new(builder.finish())
        });
    }),
    ("one row group for all episodes", |s| {
        let path = s.path(DATA);
        write_table(&path, &read_table(&path));
    }),
    ("row groups of five rows, across episodes", |s| {
        rewrite(&s.path(DATA), WriterProperties::builder().set_compression(Compression::SNAPPY).build(), 5);
    }),
    ("pages of version 2, no dictionary, many pages", |s| {
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_dictionary_enabled(false)
            .set_data_page_row_count_limit(3)
            .set_write_batch_size(2);
        rewrite(&s.path(DATA), properties.build(), 100);
    }),
    ("pages of version 2 with dictionaries", |s| {
        rewrite(
            &s.path(DATA),
            WriterProperties::builder().set_writer_version(WriterVersion::PARQUET_2_0).build(),
            100,
        );
    }),
    ("columns in another order, and one more", |s| {
        let path = s.path(DATA);
        let batch = read_table(&path);
        let mut order: Vec<usize> = (0..batch.num_columns()).collect();
        order.reverse();
        let batch = batch.project(&order).unwrap();
        let extra = Arc::new(Int32Array::from(vec![7; batch.num_rows()])) as ArrayRef;
        let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
        fields.insert(0, Arc::new(Field::new("further", extra.data_type().clone(), true)));
        let columns = [&[extra][..], batch.columns()].concat();
        write_table(&path, &RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap());
    }),
    ("float64 where float32 is declared", |s| {
        edit_column(&s.path(DATA), "timestamp", |array| {
            let values = array.as_primitive::<Float32Type>().values().iter().map(|v| f64::from(*v));
            Arc::new(arrow_array::Float64Array::from_iter_values(values))
        });
    }),
    ("int32 where int64 is declared", |s| {
        edit_column(&s.path(DATA), "task_index", |array| {
            let values =
                array.as_primitive::<Int64Type>().values().iter().map(|v| i32::try_from(*v).unwrap());
            Arc::new(Int32Array::from_iter_values(values))
        });
    }),
    ("episodes without statistics, in another order of columns", |s| {
        let path = s.path(EPISODES);
        let batch = read_table(&path);
        let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
        let mut keep: Vec<usize> = (0..names.len()).filter(|i| !names[*i].starts_with("stats/")).collect();
        keep.reverse();
        write_table(&path, &batch.project(&keep).unwrap());
    }),
    ("task lists of large strings", |s| {
        edit_column(&s.path(EPISODES), "tasks", |array| {
            let list = array.as_list::<i32>();
            let mut builder = LargeListBuilder::new(LargeStringBuilder::new());
            for i in 0..list.len() {
                for text in list.value(i).as_string::<i32>().iter().flatten() {
                    builder.values().append_value(text);
                }
                builder.append(true);
            }
            Arc::new(builder.finish())
        });
    }),
    ("task texts in a plain column of large strings", |s| {
        let texts = texts_of(s);
        let schema = Schema::new(vec![
            Field::new("task", arrow_schema::DataType::LargeUtf8, false),
            Field::new("task_index", arrow_schema::DataType::Int64, false),
        ]);
        let numbers: Int64Array = (0..i64::try_from(texts.len()).unwrap()).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(LargeStringArray::from(texts)), Arc::new(numbers)];
        write_table(&s.path(TASKS), &RecordBatch::try_new(Arc::new(schema), columns).unwrap());
    }),
    ("task texts in an index of another name, beside another text", |s| {
        let texts = texts_of(s);
        let pandas = r#"{"index_columns": ["__index_level_0__"]}"#;
        let schema = Schema::new_with_metadata(
            vec![
                Field::new("task_index", arrow_schema::DataType::Int64, true),
                Field::new("remark", arrow_schema::DataType::Utf8, true),
                Field::new("__index_level_0__", arrow_schema::DataType::Utf8, true),
            ],
            [("pandas".to_owned(), pandas.to_owned())].into(),
        );
        let numbers: Int64Array = (0..i64::try_from(texts.len()).unwrap()).collect();
        let remarks = StringArray::from(vec!["x"; texts.len()]);
        let columns: Vec<ArrayRef> =
            vec![Arc::new(numbers), Arc::new(remarks), Arc::new(StringArray::from(texts))];
        write_table(&s.path(TASKS), &RecordBatch::try_new(Arc::new(schema), columns).unwrap());
    }),
    ("info.json with float counts and no splits", |s| {
        edit_json(&s.path("meta/info.json"), "/fps", 30.0.into());
        edit_json(&s.path("meta/info.json"), "/splits", serde_json::Value::Null);
    }),
];

fn texts_of(set: &Copy) -> Vec<String> {
    Dataset::open(&set.root).unwrap().tasks().to_vec()
}

#[test]
fn every_layout_of_the_same_tables_reads_alike() {
    let expected = content(&fixture("lerobot_h264"));
    for (what, vary) in VARIANTS {
        let copy = Copy::of(&fixture("lerobot_h264"));
        vary(&copy);
        let got = content(&copy.root);
        assert_eq!(got.0, expected.0, "{what}: tasks");
        assert_eq!(got.2, expected.2, "{what}: episodes");
        assert!(got.1 == expected.1, "{what}: rows differ");
    }
}

#[test]
fn rows_may_lie_in_several_files() {
    let copy = Copy::of(&fixture("lerobot_h264"));
    let batch = read_table(&copy.path(DATA));
    // Episodes 0 and 1 in one file, 2 in the next.
    write_table(&copy.path(DATA), &batch.slice(0, 21));
    write_table(&copy.path("data/chunk-000/file-001.parquet"), &batch.slice(21, 7));
    edit_column(&copy.path(EPISODES), "data/file_index", |_| Arc::new(Int64Array::from(vec![0, 0, 1])));
    let (_, rows, _) = content(&copy.root);
    assert!(rows == content(&fixture("lerobot_h264")).1);
    // A table of episodes that names the wrong file is refused.
    edit_column(&copy.path(EPISODES), "data/file_index", |_| Arc::new(Int64Array::from(vec![0, 1, 1])));
    let message = Dataset::open(&copy.root).unwrap_err().to_string();
    assert!(message.contains("says rows 12 to 21 for episode 1, the file holds 21 to 28"), "{message}");
}

#[test]
fn rows_of_another_place_are_not_taken_for_the_episode() {
    let copy = Copy::of(&fixture("lerobot_h264"));
    edit_column(&copy.path(DATA), "index", |array| {
        let values = array.as_primitive::<Int64Type>().values().iter().map(|v| v + 1);
        Arc::new(Int64Array::from_iter_values(values))
    });
    let set = Dataset::open(&copy.root).unwrap();
    let message = set.rows(1).unwrap_err().to_string();
    assert!(message.starts_with("an index of episode 1 is 13, the table of episodes says 12"), "{message}");
}
