//! Changes small datasets on disk, the way that a faulty writer or disk would.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            // Not `fs::copy`: the copies must be writable whatever the originals are.
            std::fs::write(target, std::fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Sets a key of a JSON file, given as a pointer such as `/splits/train`; null takes it away.
pub(crate) fn edit_json(path: &Path, pointer: &str, value: Value) {
    let mut json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match json.pointer_mut(parent).unwrap() {
        Value::Object(map) if value.is_null() => drop(map.remove(key).unwrap()),
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        list => list[key.parse::<usize>().unwrap()] = value,
    }
    std::fs::write(path, serde_json::to_vec_pretty(&json).unwrap()).unwrap();
}

/// All rows of a small parquet file.
pub(crate) fn read_table(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// Writes a table as one row group.
pub(crate) fn write_table(path: &Path, batch: &RecordBatch) {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Replaces one column.
pub(crate) fn edit_column(path: &Path, column: &str, edit: impl FnOnce(&ArrayRef) -> ArrayRef) {
    let batch = read_table(path);
    let index = batch.schema().index_of(column).unwrap();
    let mut columns = batch.columns().to_vec();
    columns[index] = edit(&columns[index]);
    let mut fields: Vec<_> = batch.schema().fields().iter().cloned().collect();
    fields[index] = Arc::new(Field::new(column, columns[index].data_type().clone(), true));
    let schema = Schema::new_with_metadata(fields, batch.schema().metadata().clone());
    write_table(path, &RecordBatch::try_new(Arc::new(schema), columns).unwrap());
}

/// The rows of a table in another order, or some of them several times.
pub(crate) fn take_rows(path: &Path, rows: &[u32]) {
    let batch = read_table(path);
    write_table(path, &take_record_batch(&batch, &UInt32Array::from(rows.to_vec())).unwrap());
}

/// A writable copy of a fixture.
pub(crate) struct Copy {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Copy {
    pub(crate) fn of(fixture: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("set");
        copy_tree(fixture, &root);
        Self { _dir: dir, root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}
