//! The table of episodes, and the data files that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::report::{Findings, Place};
use super::{Subject, rules};
use crate::info::Info;
use crate::reader::data::{DATA_DIR, DataFile};
use crate::reader::episodes::{EPISODES_DIR, EpisodeFiles};
use crate::reader::files::glob_two_levels;
use crate::reader::parquet_file::ParquetFile;

/// Reads the table of episodes.
pub(super) fn load(root: &Path, info: &Info, findings: &mut Findings) -> Option<EpisodeFiles> {
    match EpisodeFiles::load(root, info) {
        Ok(files) => {
            findings.figures().episodes = files.rows.len() as u64;
            Some(files)
        }
        Err(e) => {
            findings.unreadable(rules::EPISODES_UNREADABLE, Place::file(&root.join(EPISODES_DIR)), &e);
            None
        }
    }
}

/// Opens the data files. The rows of an unreadable one are counted as the table of episodes says, so that the rows
/// of those behind it keep their places.
pub(super) fn load_data(
    root: &Path,
    info: &Info,
    episodes: Option<&EpisodeFiles>,
    findings: &mut Findings,
) -> Vec<DataFile> {
    let mut expected: BTreeMap<PathBuf, (u64, u64)> = BTreeMap::new();
    for row in episodes.iter().flat_map(|e| &e.rows) {
        if let Ok(path) = info.data_file(row.data_chunk, row.data_file) {
            expected.entry(root.join(path)).or_insert((0, row.episode)).0 += row.length;
        }
    }
    let paths = match glob_two_levels(&root.join(DATA_DIR), "parquet") {
        Ok(paths) => paths,
        Err(e) => {
            findings.unreadable(rules::FILES_UNREADABLE, Place::file(&root.join(DATA_DIR)), &e);
            return Vec::new();
        }
    };
    for (path, (_, episode)) in expected.iter().filter(|(p, _)| !paths.contains(p)) {
        findings.error(rules::FILES_MISSING, Place::episode(path, *episode), "the data file does not exist");
    }
    findings.figures().data_files = paths.len() as u64;
    let (mut first_row, mut files) = (0, Vec::new());
    for path in paths {
        if episodes.is_some() && !expected.contains_key(&path) {
            findings.error(rules::FILES_UNREFERENCED, Place::file(&path), "no episode names this data file");
        }
        match ParquetFile::open(&path) {
            Ok(file) => {
                let rows = file.rows();
                files.push(DataFile { file, first_row });
                first_row += rows;
            }
            Err(e) => {
                findings.unreadable(rules::FILES_UNREADABLE, Place::file(&path), &e);
                first_row += expected.get(&path).map_or(0, |(rows, _)| *rows);
            }
        }
    }
    files
}

/// Numbers, ranges and files of the episodes.
pub(super) fn check_ranges(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(episodes) = &subject.episodes else { return };
    let path = subject.root.join(EPISODES_DIR);
    let mut at = 0;
    for (number, row) in episodes.rows.iter().enumerate() {
        let (number, place) = (number as u64, Place::episode(&path, row.episode));
        if row.episode != number {
            let message = format!("row {number} of the table holds episode {}", row.episode);
            findings.error(rules::EPISODES_ORDER, place, message);
        }
        let (from, to, length) = (row.from_index, row.to_index, row.length);
        if from != at || from.checked_add(length) != Some(to) {
            let message =
                format!("rows {from} to {to} for a length of {length}, expected {at} to {}", at + length);
            findings.error(rules::EPISODES_RANGES, place, message);
        }
        if length == 0 {
            findings.error(rules::EPISODES_RANGES, place, "the episode has no rows");
        }
        at = to;
        if let Some(file) = file_of(subject, row) {
            let range = file.range();
            if from < range.start || to > range.end {
                let message =
                    format!("rows {from} to {to}, its data file holds {} to {}", range.start, range.end);
                findings.error(
                    rules::EPISODES_RANGES,
                    Place::episode(file.file.path(), row.episode),
                    message,
                );
            }
        }
    }
    if at != subject.info.total_frames {
        let message =
            format!("the last episode ends at row {at}, total_frames is {}", subject.info.total_frames);
        findings.error(rules::EPISODES_RANGES, Place::file(&path), message);
    }
}

/// The data file that an episode names, where it could be opened.
pub(super) fn file_of<'s>(subject: &'s Subject<'_>, row: &crate::reader::EpisodeRow) -> Option<&'s DataFile> {
    let path = subject.root.join(subject.info.data_file(row.data_chunk, row.data_file).ok()?);
    subject.data.iter().find(|f| f.file.path() == path)
}
