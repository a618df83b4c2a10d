//! Files and folders that belong to no dataset.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::report::{Findings, Place};
use super::{Subject, rules};
use crate::reader::data::DATA_DIR;
use crate::reader::files::sorted_entries;

/// What lies at the top of a dataset; names that begin with a dot belong to tools such as git and the hub.
const TOP: [&str; 8] =
    ["meta", "data", "videos", "README.md", "LICENSE", "LICENSE.txt", "LICENSE.md", "assets"];
/// What lies in `meta`; subtasks.parquet is an addition of third parties.
const META: [&str; 6] = ["info.json", "stats.json", "tasks.parquet", "episodes", "so101", "subtasks.parquet"];
/// Folders below this depth are not searched.
const MAX_DEPTH: usize = 8;

/// Lists strays.
pub(super) fn check_layout(subject: &Subject<'_>, findings: &mut Findings) {
    let root = subject.root;
    named_only(root, &TOP, findings);
    named_only(&root.join("meta"), &META, findings);
    let data: BTreeSet<PathBuf> = subject.data.iter().map(|f| f.file.path().to_owned()).collect();
    let is_table = |p: &Path| data.contains(p) || p.extension().is_some_and(|e| e == "parquet");
    files_only(&root.join(DATA_DIR), &is_table, 0, findings);
    let mut videos = BTreeSet::new();
    for v in subject.episodes.iter().flat_map(|e| &e.rows).flat_map(|r| &r.videos) {
        if let Ok(path) = subject.info.video_file(&v.key, v.chunk, v.file) {
            videos.insert(root.join(path));
        }
    }
    if subject.episodes.is_some() {
        files_only(&root.join("videos"), &|p| videos.contains(p), 0, findings);
    }
}

fn named_only(dir: &Path, names: &[&str], findings: &mut Findings) {
    for path in sorted_entries(dir).unwrap_or_default() {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if !name.starts_with('.') && !names.contains(&name) {
            findings.warning(rules::LAYOUT_STRAY, Place::file(&path), "belongs to no dataset of v3.0");
        }
    }
}

fn files_only(dir: &Path, known: &dyn Fn(&Path) -> bool, depth: usize, findings: &mut Findings) {
    for path in sorted_entries(dir).unwrap_or_default() {
        if path.is_dir() && !path.is_symlink() && depth < MAX_DEPTH {
            files_only(&path, known, depth + 1, findings);
        } else if !known(&path) {
            findings.warning(rules::LAYOUT_STRAY, Place::file(&path), "no episode names this file");
        }
    }
}
