//! Temporary folders beside a dataset that a later run can tell to be ours.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::place::Place;
use super::rename_new;
use crate::error::{Error, Result};

/// What a mark holds.
const MARK: &[u8] = b"temporary folder of so101-dataset, safe to delete together with this file\n";
/// Kinds of temporary folders.
const KINDS: [&str; 3] = ["gen-", "rec-", "old-"];
/// A folder of somebody else's may have the wanted name; more than this in a row are not explained by accident.
const ATTEMPTS: u64 = 1000;

/// A temporary folder, removed with all it holds when it goes out of scope.
#[derive(Debug)]
pub(crate) struct TemporaryDir {
    path: PathBuf,
    mark: PathBuf,
    keep: Cell<bool>,
}

impl TemporaryDir {
    /// Makes `.NAME.KINDn`, with the first n that is free.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::DiskFull`].
    pub(crate) fn create(place: &Place, kind: &'static str) -> Result<Self> {
        let mut n = 0;
        loop {
            n += 1;
            let suffix = format!("{kind}{n}");
            // A folder that is there belongs to an episode still on its way, or to somebody else: its mark, or the
            // lack of one, must stay as it is.
            if n < ATTEMPTS && place.beside(&suffix).symlink_metadata().is_ok() {
                continue;
            }
            // The mark goes first: a folder without one is never removed.
            let dir = Self::mark(place, &suffix)?;
            if let Err(e) = std::fs::create_dir(&dir.path) {
                dir.keep();
                let _ = std::fs::remove_file(&dir.mark);
                return Err(Error::write("create the folder", &dir.path, e));
            }
            return Ok(dir);
        }
    }

    /// Marks `.NAME.SUFFIX` as ours; the folder itself comes by a rename.
    pub(super) fn mark(place: &Place, suffix: &str) -> Result<Self> {
        let (path, mark) = (place.beside(suffix), place.beside(&format!("{suffix}.mark")));
        // Durable before its folder is made: after a loss of power nobody could tell whose that is.
        let written = File::create(&mark).and_then(|mut f| f.write_all(MARK).and_then(|()| f.sync_all()));
        written.map_err(|e| {
            // A mark that is cut off marks nothing.
            let _ = std::fs::remove_file(&mark);
            Error::write("create", &mark, e)
        })?;
        Ok(Self { path, mark, keep: Cell::new(false) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder, as going out of scope does, but tells when it cannot.
    ///
    /// # Errors
    /// [`Error::Io`]; the mark stays then, so that the next run removes what is left.
    pub(crate) fn remove(self) -> Result<()> {
        self.empty().map_err(|e| {
            self.keep();
            Error::io("remove the folder", &self.path, e)
        })
    }

    /// Leaves folder and mark where they are.
    pub(super) fn keep(&self) {
        self.keep.set(true);
    }

    /// Removes the folder and keeps its mark.
    pub(super) fn empty(&self) -> std::io::Result<()> {
        match std::fs::remove_dir_all(&self.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        if self.keep.get() {
            return;
        }
        match self.empty() {
            Ok(()) => {
                let _ = std::fs::remove_file(&self.mark);
            }
            // The mark stays, so that the next run removes what is left.
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot remove a temporary folder");
            }
        }
    }
}

/// Removes the temporary folders that a killed run left; the lock must be held and the journal be settled.
///
/// # Errors
/// [`Error::Io`] when the parent cannot be listed or a folder not be removed.
pub(crate) fn remove_leftovers(place: &Place) -> Result<()> {
    let parent = place.parent();
    for entry in std::fs::read_dir(parent).map_err(|e| Error::io("list", parent, e))? {
        let name = entry.map_err(|e| Error::io("list", parent, e))?.file_name();
        let Some(suffix) = place.suffix(&name).and_then(|s| s.strip_suffix(".mark")) else { continue };
        if !is_ours(suffix) {
            continue;
        }
        let left =
            TemporaryDir { path: place.beside(suffix), mark: parent.join(&name), keep: Cell::new(true) };
        // An empty mark is one whose writing was cut off, before its folder was made.
        let content = std::fs::read(&left.mark).unwrap_or_default();
        let cut_off = content.is_empty() && !left.path.exists();
        if content != MARK && !cut_off {
            continue;
        }
        // Two accidents at once (a journal route that could go neither way): the last state wins, not tidiness.
        if suffix.starts_with("old-") && !place.root().exists() && left.path.exists() {
            rename_new(&left.path, &place.root())?;
        }
        left.keep.set(false);
        left.empty().map_err(|e| Error::io("remove what a killed run left", &left.path, e))?;
    }
    Ok(())
}

/// Whether a suffix is a kind and a number.
pub(super) fn is_ours(suffix: &str) -> bool {
    KINDS.iter().any(|kind| {
        let number = suffix.strip_prefix(kind);
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}
