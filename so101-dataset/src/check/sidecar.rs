//! `meta/so101/`: whether its lines still belong to the episodes.

use std::collections::BTreeSet;
use std::path::Path;

use super::episodes::file_of;
use super::report::{Findings, Place};
use super::{Subject, rules};
use crate::error::Result;
use crate::features::DType;
use crate::reader::{EpisodeRow, EpisodeTable};
use crate::sidecar::{SIDECAR_DIR, Sidecar, table_key};

/// Compares the keys of the sidecar's lines with the rows.
pub(super) fn check_sidecar(subject: &Subject<'_>, findings: &mut Findings) {
    let dir = subject.root.join(SIDECAR_DIR);
    let place = Place::file(&dir);
    let sidecar = match Sidecar::open(subject.root) {
        Ok(Some(sidecar)) => sidecar,
        Ok(None) => return,
        Err(e) => {
            findings.unreadable(rules::SIDECAR_UNREADABLE, place, &e);
            return;
        }
    };
    let mut used = BTreeSet::new();
    for row in subject.episodes.iter().flat_map(|e| &e.rows) {
        let Ok(Some(key)) = key_of(subject, row) else { continue };
        match sidecar.find(row.episode, &key) {
            Some(entry) => {
                used.insert(entry.key.clone());
                check_record(&sidecar, entry, &dir, row, findings);
            }
            None => {
                let message =
                    "no line of the sidecar fits its rows: they were changed, or recorded by another program";
                findings.warning(rules::SIDECAR_STALE, Place::episode(&dir, row.episode), message);
            }
        }
    }
    for entry in sidecar.episodes().iter().filter(|e| !used.contains(&e.key)) {
        let message = format!("the line of episode {} fits no episode's rows", entry.episode);
        findings.warning(rules::SIDECAR_STALE, place, message);
    }
}

fn check_record(
    sidecar: &Sidecar,
    entry: &crate::sidecar::EpisodeEntry,
    dir: &Path,
    row: &EpisodeRow,
    findings: &mut Findings,
) {
    let place = Place::episode(dir, row.episode);
    match sidecar.record(entry) {
        Ok(record) if record.observed_ns.len() as u64 != row.length => {
            let message = format!("{} capture times for {} rows", record.observed_ns.len(), row.length);
            findings.error(rules::SIDECAR_STALE, place, message);
        }
        Ok(record) if ![0, record.observed_ns.len()].contains(&record.acted_ns.len()) => {
            let message = format!("{} moments of actions for {} rows", record.acted_ns.len(), row.length);
            findings.error(rules::SIDECAR_STALE, place, message);
        }
        Ok(_) => {}
        Err(e) => findings.unreadable(rules::SIDECAR_UNREADABLE, place, &e),
    }
}

/// The key of an episode's rows; `None` when they cannot be read, which is reported elsewhere.
fn key_of(subject: &Subject<'_>, row: &EpisodeRow) -> Result<Option<String>> {
    let Some(file) = file_of(subject, row) else { return Ok(None) };
    let range = file.range();
    if row.from_index < range.start || row.to_index > range.end || row.from_index >= row.to_index {
        return Ok(None);
    }
    let floats = subject.info.features.columns().filter(|(_, f)| f.dtype == DType::Float32);
    let mut columns = Vec::new();
    for (_, column) in file.columns(floats, row.from_index..row.to_index)? {
        match column {
            Ok(column) => columns.push(column),
            Err(_) => return Ok(None),
        }
    }
    let rows = usize::try_from(row.length).unwrap_or(0);
    let table = EpisodeTable { episode: row.episode, rows, columns, path: file.file.path().into() };
    Ok(Some(table_key(&table)))
}
