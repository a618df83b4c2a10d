//! One parquet file, opened with its footer checked before anything trusts it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use super::files::open_regular;
use super::{arrow_metadata, pages};
use crate::error::{Error, Result};

const MAGIC: &[u8; 4] = b"PAR1";
const MAX_FOOTER_BYTES: u64 = 256 << 20;
/// Rows of one file: 100 days at 30 Hz.
const MAX_ROWS: u64 = 1 << 28;
/// Rows decoded at a time.
const BATCH_ROWS: u64 = 8192;
/// A column of one row group may not grow by more than this when it is decompressed: a bound on memory.
const MAX_CHUNK_BYTES: i64 = 4 << 30;
/// What one read may decode to, for each byte of the file. A run of one value takes a few bytes however long it is, but
/// the index and the time of each row do not: LeRobot's rows take 3 bytes at the very least, and decode to 136.
const MAX_GROWTH: u64 = 256;
/// What one read may decode to, however short the file is.
const FREE_BYTES: u64 = 256 << 20;

/// A parquet file whose footer has been read. It holds no open file.
#[derive(Clone, Debug)]
pub(crate) struct ParquetFile {
    path: PathBuf,
    rows: u64,
    /// Length of the file.
    len: u64,
    metadata: ArrowReaderMetadata,
    /// By row group and leaf column that [`pages::check_column`] has passed: the bytes that it decodes to.
    checked: Arc<Mutex<BTreeMap<(usize, usize), u64>>>,
}

impl ParquetFile {
    /// Reads and checks the footer.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Parquet`].
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (mut file, len) = open_regular(path)?;
        let footer = check_ends(&mut file, len, path)?;
        // Without the writer's arrow schema: every list is then a plain list and every text a plain text, and a
        // damaged schema cannot mislead.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(|e| Error::parquet(e, path))?;
        let rows = check_metadata(&metadata, len - footer - 8).map_err(|e| Error::parquet(e, path))?;
        Ok(Self { path: path.into(), rows, len, metadata, checked: Arc::default() })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Rows, as the footer says.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Names of the top-level columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.metadata.schema().fields().iter().map(|f| f.name().as_str())
    }

    /// Arrow type of a top-level column, as parquet itself declares it.
    pub(crate) fn data_type(&self, column: &str) -> Option<&arrow_schema::DataType> {
        self.metadata.schema().fields().iter().find(|f| f.name() == column).map(|f| f.data_type())
    }

    /// A key-value where pyarrow looks for it: in the footer's arrow schema when there is one, else in the footer.
    pub(crate) fn key_value(&self, key: &str) -> Option<String> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        match pairs.iter().find(|p| p.key == "ARROW:schema") {
            Some(schema) => arrow_metadata::find(schema.value.as_deref()?, key),
            None => pairs.iter().find(|p| p.key == key)?.value.clone(),
        }
    }

    /// Some columns of some rows, in batches; the columns of a batch are in the file's order.
    ///
    /// # Errors
    /// [`Error::Column`] for a missing column, [`Error::Io`], [`Error::Parquet`].
    pub(crate) fn read(&self, columns: &[&str], rows: Range<u64>) -> Result<Vec<RecordBatch>> {
        let fields = self.metadata.schema().fields();
        let mut roots = Vec::with_capacity(columns.len());
        for column in columns {
            let root = fields.iter().position(|f| f.name() == column);
            roots.push(root.ok_or_else(|| {
                Error::column(*column, "is missing: restore the file or take it out of info.json", &self.path)
            })?);
        }
        let wanted = rows.end.saturating_sub(rows.start);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let fail = |e: &dyn core::fmt::Display| Error::parquet(e, &self.path);
        let (file, _) = open_regular(&self.path)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let (groups, skip) = self.groups_of(&rows);
        self.check_pages(&groups, &roots).map_err(|problem| fail(&problem))?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let select = |n: u64| usize::try_from(n).map_err(|e| fail(&e));
        let selection =
            RowSelection::from(vec![RowSelector::skip(select(skip)?), RowSelector::select(select(wanted)?)]);
        let reader = builder
            .with_projection(mask)
            .with_row_groups(groups)
            .with_row_selection(selection)
            .with_batch_size(select(wanted.min(BATCH_ROWS))?)
            .build()
            .map_err(|e| fail(&e))?;
        let (mut batches, mut bytes) = (Vec::new(), 0_u64);
        for batch in reader {
            let batch = batch.map_err(|e| fail(&e))?;
            // Again, since some encodings of texts tell their length only when they are decoded.
            bytes = bytes.saturating_add(batch.get_array_memory_size() as u64);
            self.check_growth(bytes).map_err(|problem| fail(&problem))?;
            batches.push(batch);
        }
        let got: u64 = batches.iter().map(|b| b.num_rows() as u64).sum();
        if got != wanted {
            return Err(fail(&format_args!("{got} rows where the footer says {wanted}")));
        }
        Ok(batches)
    }

    /// Refuses a read of this many bytes when no honest file of this length holds so much.
    fn check_growth(&self, bytes: u64) -> Result<(), String> {
        if bytes > self.len.saturating_mul(MAX_GROWTH).saturating_add(FREE_BYTES) {
            return Err(format!("its {} bytes decode to {bytes} or more", self.len));
        }
        Ok(())
    }

    /// Checks the pages of these columns, those that were not checked before, and what all decode to.
    fn check_pages(&self, groups: &[usize], roots: &[usize]) -> Result<(), String> {
        let schema = self.metadata.parquet_schema();
        let leaves: Vec<usize> = (0..schema.num_columns())
            .filter(|leaf| roots.contains(&schema.get_column_root_idx(*leaf)))
            .collect();
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut file, mut bytes) = (None, 0_u64);
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            if !groups.contains(&number) {
                continue;
            }
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            for (leaf, chunk) in group.columns().iter().enumerate() {
                if !leaves.contains(&leaf) {
                    continue;
                }
                if let Some(known) = checked.get(&(number, leaf)) {
                    bytes = bytes.saturating_add(*known);
                    continue;
                }
                let file = match &file {
                    Some(file) => file,
                    None => file.insert(Arc::new(File::open(&self.path).map_err(|e| e.to_string())?)),
                };
                let in_column =
                    |problem: String| format!("column {}: {problem}", chunk.column_path().string());
                // By the footer, before any page is decompressed, and then by the pages.
                let declared = pages::fixed_bytes(chunk).max(chunk.uncompressed_size().unsigned_abs());
                self.check_growth(bytes.saturating_add(declared)).map_err(in_column)?;
                let decoded = pages::check_column(file, chunk, rows).map_err(in_column)?;
                bytes = bytes.saturating_add(decoded);
                self.check_growth(bytes).map_err(in_column)?;
                checked.insert((number, leaf), decoded);
            }
        }
        self.check_growth(bytes)
    }

    /// The row groups that hold these rows, and how many rows of the first to skip.
    fn groups_of(&self, rows: &Range<u64>) -> (Vec<usize>, u64) {
        let (mut groups, mut skip, mut at) = (Vec::new(), 0, 0);
        for (i, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let end = at + u64::try_from(group.num_rows()).unwrap_or(0);
            if at < rows.end && end > rows.start {
                if groups.is_empty() {
                    skip = rows.start - at;
                }
                groups.push(i);
            }
            at = end;
        }
        (groups, skip)
    }
}

/// Checks both ends of the file; returns the length of the footer.
fn check_ends(file: &mut File, len: u64, path: &Path) -> Result<u64> {
    let fail = |problem: &dyn core::fmt::Display| Err(Error::parquet(problem, path));
    if len == 0 {
        return fail(&"it is empty");
    }
    if len < 12 {
        return fail(&format_args!("it has {len} bytes"));
    }
    let mut read_at = |from: SeekFrom, bytes: &mut [u8]| {
        file.seek(from).and_then(|_| file.read_exact(bytes)).map_err(|e| Error::io("read", path, e))
    };
    let (mut head, mut length, mut tail) = ([0; 4], [0; 4], [0; 4]);
    read_at(SeekFrom::Start(0), &mut head)?;
    read_at(SeekFrom::End(-8), &mut length)?;
    read_at(SeekFrom::End(-4), &mut tail)?;
    if &head != MAGIC {
        return fail(&"it does not begin with PAR1");
    }
    if &tail != MAGIC {
        return fail(&"its footer is missing, so it was cut off or its writer was interrupted");
    }
    let footer = u64::from(u32::from_le_bytes(length));
    if footer == 0 || footer > MAX_FOOTER_BYTES || footer > len - 12 {
        return fail(&format_args!("its footer of {footer} bytes does not fit a file of {len}"));
    }
    Ok(footer)
}

/// What the crate below takes for granted; returns the number of rows.
fn check_metadata(metadata: &ArrowReaderMetadata, data_end: u64) -> Result<u64, String> {
    let metadata = metadata.metadata();
    let declared = metadata.file_metadata().num_rows();
    let rows = u64::try_from(declared).ok().filter(|n| *n <= MAX_ROWS);
    let rows = rows.ok_or_else(|| format!("the footer says {declared} rows"))?;
    let leaves = metadata.file_metadata().schema_descr().num_columns();
    let mut sum = 0_u64;
    for (i, group) in metadata.row_groups().iter().enumerate() {
        check_group(group, leaves, data_end).map_err(|problem| format!("row group {i}: {problem}"))?;
        sum = sum.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
    }
    if sum == rows { Ok(rows) } else { Err(format!("row groups of {sum} rows where the footer says {rows}")) }
}

fn check_group(group: &RowGroupMetaData, leaves: usize, data_end: u64) -> Result<(), String> {
    if group.num_columns() != leaves {
        return Err(format!("{} columns of {leaves}", group.num_columns()));
    }
    if !u64::try_from(group.num_rows()).is_ok_and(|n| n <= MAX_ROWS) {
        return Err(format!("{} rows", group.num_rows()));
    }
    group.columns().iter().try_for_each(|c| {
        check_chunk(c, group.num_rows(), data_end)
            .map_err(|problem| format!("column {}: {problem}", c.column_path().string()))
    })
}

fn check_chunk(chunk: &ColumnChunkMetaData, rows: i64, data_end: u64) -> Result<(), String> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let (len, plain) = (chunk.compressed_size(), chunk.uncompressed_size());
    let end = start.checked_add(len).and_then(|e| u64::try_from(e).ok());
    if start < 4 || len < 0 || chunk.data_page_offset() < start || end.is_none_or(|e| e > data_end) {
        return Err(format!("bytes {start} + {len} lie outside of the data"));
    }
    if !(0..=MAX_CHUNK_BYTES).contains(&plain) {
        return Err(format!("{plain} bytes when decompressed"));
    }
    if chunk.column_type() != chunk.column_descr().physical_type() {
        return Err(format!("of type {} and {}", chunk.column_type(), chunk.column_descr().physical_type()));
    }
    let values = chunk.num_values();
    let flat = chunk.column_descr().max_rep_level() == 0;
    if values < 0 || (flat && values != rows) {
        return Err(format!("{values} values for {rows} rows"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::{EnabledStatistics, WriterProperties};

    use super::*;

    /// The same rows over and over in one row group, which are a few bytes in a dictionary and runs.
    fn read_repeated(rows: ArrayRef, times: u64) -> Result<Vec<RecordBatch>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::None)
            .set_data_page_row_count_limit(usize::MAX)
            .set_max_row_group_row_count(None)
            .build();
        let batch = RecordBatch::try_from_iter([("a", rows)]).unwrap();
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        (0..times).for_each(|_| writer.write(&batch).unwrap());
        writer.close().unwrap();
        let file = ParquetFile::open(&path)?;
        file.read(&["a"], 0..file.rows())
    }

    #[test]
    fn long_runs_of_one_value_are_read_up_to_what_honest_files_hold() {
        let million: ArrayRef = Arc::new(Int64Array::from(vec![7; 1 << 20]));
        assert_eq!(read_repeated(million.clone(), 2).unwrap().len(), 256);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 16); 100]));
        assert_eq!(read_repeated(text.clone(), 1).unwrap().len(), 1);
        // 288 and 340 MB in some kilobytes.
        for (rows, times) in [(million, 34), (text, 52)] {
            let message = read_repeated(rows, times).unwrap_err().to_string();
            assert!(message.contains("column a: its ") && message.contains("bytes decode to"), "{message}");
        }
    }
}
