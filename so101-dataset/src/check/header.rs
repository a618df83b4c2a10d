//! info.json and tasks.parquet.

use std::path::Path;

use super::report::{Findings, Place};
use super::{Subject, rules};
use crate::features::{DEFAULT_FEATURES, DType};
use crate::info::{CODEBASE_VERSION, INFO_PATH, Info, Version};
use crate::reader::TASKS_PATH;
use crate::reader::tasks::TaskTable;

/// What info.json says by itself.
pub(super) fn check_header(root: &Path, info: &Info, findings: &mut Findings) {
    let path = root.join(INFO_PATH);
    let place = Place::file(&path);
    if info.codebase_version != CODEBASE_VERSION {
        let message = match info.version() {
            Version::V30 => format!("version {}, this check knows {CODEBASE_VERSION}", info.codebase_version),
            old => format!("version {old}, which LeRobot 0.6 refuses: convert it (example convert_dataset)"),
        };
        findings.warning(rules::INFO_VERSION, place, message);
    }
    let train = info.splits.get("train").and_then(serde_json::Value::as_str);
    let expected = format!("0:{}", info.total_episodes);
    if train != Some(expected.as_str()) {
        let message = format!("splits.train is {:?}, expected {expected:?}", train.unwrap_or("missing"));
        findings.warning(rules::INFO_SPLITS, place, message);
    }
    for name in DEFAULT_FEATURES {
        let dtype = if name == "timestamp" { DType::Float32 } else { DType::Int64 };
        match info.features.get(name) {
            None => {
                findings.error(rules::FEATURES_DEFAULTS, place, format!("feature {name} is not declared"));
            }
            Some(f) if f.dtype != dtype || f.shape != [1] => {
                let message = format!("feature {name} is {} {:?}, expected {dtype} [1]", f.dtype, f.shape);
                findings.error(rules::FEATURES_DEFAULTS, place, message);
            }
            Some(_) => {}
        }
    }
}

/// Reads tasks.parquet and checks it by itself.
pub(super) fn load_tasks(root: &Path, info: &Info, findings: &mut Findings) -> Option<TaskTable> {
    let path = root.join(TASKS_PATH);
    let place = Place::file(&path);
    let table = match TaskTable::load(root, info) {
        Ok(table) => table,
        Err(e) => {
            findings.unreadable(rules::TASKS_UNREADABLE, place, &e);
            return None;
        }
    };
    findings.figures().tasks = table.rows.len() as u64;
    if let Some((row, (index, _))) =
        table.rows.iter().enumerate().find(|(row, (index, _))| *row as i64 != *index)
    {
        findings.error(
            rules::TASKS_ORDER,
            place,
            format!("row {row} has task_index {index}, expected {row}"),
        );
    }
    let mut texts: Vec<&str> = table.rows.iter().map(|(_, text)| text.as_str()).collect();
    texts.sort_unstable();
    for pair in texts.windows(2) {
        if let [a, b] = pair
            && a == b
        {
            findings.error(rules::TASKS_UNIQUE, place, format!("the text {a:?} occurs twice"));
        }
    }
    if !table.pandas_index {
        findings.error(rules::TASKS_PANDAS, place, "the texts are a plain column, not the pandas index");
    }
    Some(table)
}

/// The totals of info.json against the tables.
pub(super) fn check_totals(subject: &Subject<'_>, findings: &mut Findings) {
    let path = subject.root.join(INFO_PATH);
    let info = &subject.info;
    let rows: u64 = subject.data.iter().map(|f| f.file.rows()).sum();
    let unreadable = findings.figures().data_files != subject.data.len() as u64;
    let totals = [
        ("total_episodes", info.total_episodes, subject.episodes.as_ref().map(|e| e.rows.len() as u64)),
        ("total_frames", info.total_frames, (!unreadable).then_some(rows)),
        ("total_tasks", info.total_tasks, subject.tasks.as_ref().map(|t| t.rows.len() as u64)),
    ];
    for (key, said, found) in totals {
        if let Some(found) = found.filter(|n| *n != said) {
            let message = format!("{key} is {said}, the tables hold {found}");
            findings.error(rules::INFO_TOTALS, Place::file(&path), message);
        }
    }
}
