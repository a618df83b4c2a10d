//! Every row: its counters, its time, its task, its numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_schema::DataType;

use super::episodes::file_of;
use super::report::{Findings, Place};
use super::{Subject, rules};
use crate::features::{DType, Feature};
use crate::reader::data::DataFile;
use crate::reader::{Column, EpisodeRow, Fault};

/// LeRobot's tolerance on timestamps, in seconds.
const TIME_TOLERANCE_S: f64 = 1e-4;

/// The numbers of one feature, by episode.
pub(super) struct FeatureValues {
    /// Numbers that one row contributes to one dimension: more than one when a value has several axes, which LeRobot
    /// reduces over all but the last.
    pub(super) repeats: usize,
    /// Dimensions that the statistics have.
    pub(super) dimensions: usize,
    /// Position in the table of episodes, and the values of its rows.
    pub(super) episodes: Vec<(usize, Vec<f64>)>,
}

/// The numbers of all features, for their statistics.
pub(super) type AllValues = BTreeMap<String, FeatureValues>;

/// Checks types and rows; returns the numbers of every feature of numbers.
pub(super) fn check_rows(subject: &Subject<'_>, findings: &mut Findings) -> AllValues {
    for file in &subject.data {
        check_types(subject, file, findings);
    }
    let mut values = AllValues::new();
    let Some(episodes) = &subject.episodes else { return values };
    for (number, row) in episodes.rows.iter().enumerate() {
        let Some(file) = file_of(subject, row) else { continue };
        let range = file.range();
        let (from, to) =
            (row.from_index.clamp(range.start, range.end), row.to_index.clamp(range.start, range.end));
        if from >= to {
            continue;
        }
        let numbers = subject
            .info
            .features
            .columns()
            .filter(|(name, f)| f.dtype.is_numeric() && file.file.data_type(name).is_some());
        let columns = match file.columns(numbers, from..to) {
            Ok(columns) => columns,
            Err(e) => {
                findings.unreadable(
                    rules::FILES_UNREADABLE,
                    Place::episode(file.file.path(), row.episode),
                    &e,
                );
                continue;
            }
        };
        findings.figures().rows += to - from;
        let mut rows = Rows { path: file.file.path(), row, from, columns: Vec::new() };
        for (name, column) in columns {
            match column {
                Ok(column) => rows.columns.push(column),
                Err(fault) => report_fault(file.file.path(), row.episode, name, &fault, findings),
            }
        }
        rows.check_counters(findings);
        rows.check_time(subject.info.fps, findings);
        rows.check_tasks(subject, findings);
        rows.check_finite(findings);
        rows.keep(number, &mut values);
    }
    values
}

/// The types that the file declares, against those of info.json.
fn check_types(subject: &Subject<'_>, file: &DataFile, findings: &mut Findings) {
    let place = Place::file(file.file.path());
    for (name, feature) in subject.info.features.columns() {
        let Some(found) = file.file.data_type(name) else {
            findings.error(rules::FEATURES_MISSING, place, format!("column {name} is missing"));
            continue;
        };
        let leaf = leaf_of(found);
        if let Some(want) = arrow_type(&feature.dtype)
            && *leaf != want
        {
            let message = format!("column {name} is of type {leaf}, info.json says {}", feature.dtype);
            let castable = |t: &DataType| if t.is_floating() { 1 } else { 2 * u8::from(t.is_integer()) };
            if castable(leaf) != 0 && castable(leaf) == castable(&want) {
                findings.warning(rules::FEATURES_DTYPE, place, message);
            } else {
                findings.error(rules::FEATURES_DTYPE, place, message);
            }
        }
    }
    for name in file.file.columns().filter(|n| subject.info.features.get(n).is_none()) {
        findings.error(rules::FEATURES_EXTRA, place, format!("column {name} is not in info.json"));
    }
}

fn leaf_of(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(field) => leaf_of(field.data_type()),
        other => other,
    }
}

fn arrow_type(dtype: &DType) -> Option<DataType> {
    Some(match dtype {
        DType::Float16 => DataType::Float16,
        DType::Float32 => DataType::Float32,
        DType::Float64 => DataType::Float64,
        DType::Int8 => DataType::Int8,
        DType::Int16 => DataType::Int16,
        DType::Int32 => DataType::Int32,
        DType::Int64 => DataType::Int64,
        DType::UInt8 => DataType::UInt8,
        DType::UInt16 => DataType::UInt16,
        DType::UInt32 => DataType::UInt32,
        DType::UInt64 => DataType::UInt64,
        DType::Bool => DataType::Boolean,
        DType::String => DataType::Utf8,
        DType::Image | DType::Video | DType::Other(_) => return None,
    })
}

fn report_fault(path: &Path, episode: u64, name: &str, fault: &Fault, findings: &mut Findings) {
    let rule = match fault {
        Fault::Shape(_) => rules::FEATURES_SHAPE,
        Fault::Type(_) => rules::FEATURES_DTYPE,
        Fault::Empty(_) => rules::ROWS_EMPTY,
    };
    findings.error(rule, Place::episode(path, episode), format!("column {name} {}", fault.problem()));
}

/// The rows of one episode.
struct Rows<'a> {
    path: &'a Path,
    row: &'a EpisodeRow,
    from: u64,
    columns: Vec<Column>,
}

impl Rows<'_> {
    fn place(&self) -> Place<'_> {
        Place::episode(self.path, self.row.episode)
    }

    fn whole(&self, name: &str) -> Option<&[i64]> {
        self.columns.iter().find(|c| c.name() == name)?.as_i64()
    }

    fn check_counters(&self, findings: &mut Findings) {
        let (from, episode) = (self.from as i64, self.row.episode as i64);
        let counters: [(_, _, &dyn Fn(i64) -> i64); 3] = [
            (rules::ROWS_INDEX, "index", &|k| from + k),
            (rules::ROWS_FRAME_INDEX, "frame_index", &|k| k),
            (rules::ROWS_EPISODE_INDEX, "episode_index", &|_| episode),
        ];
        for (rule, name, expected) in counters {
            let Some(values) = self.whole(name) else { continue };
            let mut wrong = values.iter().zip(0..).filter(|(v, k)| **v != expected(*k));
            if let Some((value, k)) = wrong.next() {
                let message = format!(
                    "{name} of row {k} is {value}, expected {} ({} rows)",
                    expected(k),
                    1 + wrong.count()
                );
                findings.error(rule, self.place(), message);
            }
        }
    }

    fn check_time(&self, fps: u32, findings: &mut Findings) {
        let Some(values) = self.columns.iter().find(|c| c.name() == "timestamp").and_then(Column::to_f64)
        else {
            return;
        };
        // A float32 of a long episode has steps near the tolerance.
        let late = |t: f64, want: f64| (t - want).abs() > TIME_TOLERANCE_S + want * f64::from(f32::EPSILON);
        let expected = |k: u32| f64::from(k) / f64::from(fps);
        // NaN is no time either.
        let mut wrong = values.iter().zip(0..).filter(|(t, k)| t.is_nan() || late(**t, expected(*k)));
        if let Some((t, k)) = wrong.next() {
            let message =
                format!("timestamp of row {k} is {t}, expected {} ({} rows)", expected(k), 1 + wrong.count());
            findings.error(rules::ROWS_TIMESTAMP, self.place(), message);
        }
    }

    fn check_tasks(&self, subject: &Subject<'_>, findings: &mut Findings) {
        let (Some(values), Some(tasks)) = (self.whole("task_index"), &subject.tasks) else { return };
        let mut seen = BTreeSet::new();
        for (k, value) in values.iter().enumerate() {
            match usize::try_from(*value).ok().and_then(|i| tasks.rows.get(i)) {
                Some((_, text)) => {
                    seen.insert(text.as_str());
                }
                None => {
                    let message =
                        format!("task_index of row {k} is {value}, there are {} tasks", tasks.rows.len());
                    findings.error(rules::ROWS_TASK_INDEX, self.place(), message);
                    return;
                }
            }
        }
        let listed: BTreeSet<&str> = self.row.tasks.iter().map(String::as_str).collect();
        if seen != listed {
            let message = format!("the rows have the tasks {seen:?}, the table of episodes lists {listed:?}");
            findings.error(rules::EPISODES_TASKS, self.place(), message);
        }
    }

    fn check_finite(&self, findings: &mut Findings) {
        for column in &self.columns {
            let bad = match (column.as_f32(), column.as_f64()) {
                (Some(v), _) => first_bad(v.iter().map(|x| f64::from(*x))),
                (_, Some(v)) => first_bad(v.iter().copied()),
                _ => None,
            };
            if let Some((at, value, count)) = bad {
                let (name, width) = (column.name(), column.width().max(1));
                let message = format!("{name} of row {} is {value} ({count} values)", at / width);
                findings.error(rules::ROWS_NONFINITE, self.place(), message);
            }
        }
    }

    fn keep(self, number: usize, all: &mut AllValues) {
        for column in self.columns {
            let Some(values) = column.to_f64() else { continue };
            let dimensions = column.shape().last().copied().unwrap_or(1);
            let repeats = column.width() / dimensions.max(1);
            let feature = || FeatureValues { repeats, dimensions, episodes: Vec::new() };
            let entry = all.entry(column.name().to_owned()).or_insert_with(feature);
            entry.episodes.push((number, values));
        }
    }
}

/// The first NaN or infinity, and how many there are.
fn first_bad(values: impl Iterator<Item = f64>) -> Option<(usize, f64, usize)> {
    let mut bad = values.enumerate().filter(|(_, v)| !v.is_finite());
    let (at, value) = bad.next()?;
    Some((at, value, 1 + bad.count()))
}

/// Whether a feature has statistics.
pub(super) fn has_statistics(feature: &Feature) -> bool {
    feature.dtype.is_numeric() || matches!(feature.dtype, DType::Image | DType::Video)
}
