//! The swap for file systems that cannot exchange two folders in one step (some network, FUSE and old overlay ones).
//!
//! A journal beside the set names the next generation. It is durable before the first rename, so a run that was
//! killed between the renames is rolled forward by whoever opens the dataset next.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::crash::{self, Step};
use super::lock::Lock;
use super::place::Place;
use super::temporary::{TemporaryDir, is_ours};
use super::{rename_new, sync_dir};
use crate::error::{Error, Result};
use crate::reader::files::read_capped;

const MAX_JOURNAL_BYTES: u64 = 1 << 16;
/// How long a reader waits for a living writer that is between the two renames.
const PATIENCE: Duration = Duration::from_secs(2);

/// Suffixes of the names beside the set.
#[derive(Serialize, Deserialize)]
struct Journal {
    /// The generation that takes the name.
    next: String,
    /// What the present one is called from then on.
    previous: String,
}

/// Gives the set's name to `next`; the present folder becomes the temporary folder that is returned.
///
/// # Errors
/// [`Error::Io`], [`Error::DiskFull`]: the old folder has its name still or again. Where even that was refused, both
/// generations stay beside the set and the next to open it goes on from there.
pub(super) fn swap(place: &Place, next: &TemporaryDir, commit: u64) -> Result<TemporaryDir> {
    let suffix = |path: &Path| path.file_name().and_then(|n| place.suffix(n)).unwrap_or_default().to_owned();
    let journal = suffix(next.path());
    let journal = Journal { previous: journal.replace("gen-", "old-"), next: journal };
    let old = TemporaryDir::mark(place, &journal.previous)?;
    write(place, &journal)?;
    crash::point(commit, Step::Journal);
    if let Err(e) = follow(place, &journal, Some(commit)) {
        if undo(place, &old).is_err() {
            old.keep();
            next.keep();
        }
        return Err(e);
    }
    // The swap is done, and the next commit or the next to open the set tries again.
    remove(place).unwrap_or_else(|error| tracing::warn!(%error, "cannot remove the journal yet"));
    Ok(old)
}

/// Makes the journal durable. On an error there is none.
fn write(place: &Place, journal: &Journal) -> Result<()> {
    let (path, draft) = (place.beside("journal"), place.beside("journal.new"));
    let text = serde_json::to_vec(journal).unwrap_or_default();
    let _ = std::fs::remove_file(&draft);
    let written = super::generation::write_file(&draft, &text)
        .and_then(|file| file.sync_all().map_err(|e| Error::write("write", &draft, e)))
        .and_then(|()| std::fs::rename(&draft, &path).map_err(|e| Error::write("write", &path, e)))
        .and_then(|()| sync_dir(place.parent()));
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(&draft);
        let _ = std::fs::remove_file(&path);
    })
}

/// Back to the old generation, after the swap stopped half way.
fn undo(place: &Place, old: &TemporaryDir) -> Result<()> {
    let (root, path) = (place.root(), place.beside("journal"));
    if !root.exists() {
        rename_new(old.path(), &root)?;
    }
    std::fs::remove_file(&path).map_err(|e| Error::write("remove", &path, e))
}

/// Does what the journal says, as far as it is not done.
fn follow(place: &Place, journal: &Journal, commit: Option<u64>) -> Result<()> {
    let (root, next, previous) = (place.root(), place.beside(&journal.next), place.beside(&journal.previous));
    if next.exists() {
        if root.exists() {
            std::fs::rename(&root, &previous).map_err(|e| Error::write("move aside", &root, e))?;
        }
        if let Some(commit) = commit {
            crash::point(commit, Step::JournalBetween);
        }
        rename_new(&next, &root)?;
    }
    Ok(())
}

/// Removes a journal that has been followed: the swap is durable before, and the removal after.
fn remove(place: &Place) -> Result<()> {
    let path = place.beside("journal");
    sync_dir(place.parent())?;
    std::fs::remove_file(&path).map_err(|e| Error::write("remove", &path, e))?;
    sync_dir(place.parent())
}

/// Follows the journal that a killed run left, if there is one, and removes it. The lock must be held.
///
/// # Errors
/// [`Error::Io`], [`Error::Json`], [`Error::Key`]; the journal is there then, and no generation may be built, since its
/// folder could have the name that the journal installs.
pub(super) fn roll_forward(place: &Place) -> Result<()> {
    match read(place)? {
        Some(journal) => follow(place, &journal, None).and_then(|()| remove(place)),
        None => Ok(()),
    }
}

/// Removes the journal of the last commit, where that could not be done then: first step of every commit.
///
/// # Errors
/// As [`roll_forward`]. Also [`Error::Io`] when the journal's generation waits still: the state of this writer is not
/// that of the dataset any more, so the dataset has to be opened again.
pub(super) fn clear(place: &Place) -> Result<()> {
    match read(place)? {
        Some(journal) if place.beside(&journal.next).exists() => {
            let source = std::io::Error::other("a commit stopped half way: open the dataset with --resume");
            Err(Error::io("add to the dataset", place.root(), source))
        }
        Some(_) => remove(place),
        None => Ok(()),
    }
}

/// The journal, if there is one.
fn read(place: &Place) -> Result<Option<Journal>> {
    let path = place.beside("journal");
    if !path.exists() {
        return Ok(None);
    }
    let bytes = read_capped(&path, "a journal", MAX_JOURNAL_BYTES)?;
    let journal: Journal = serde_json::from_slice(&bytes).map_err(|e| Error::json(&e, &path))?;
    for (key, suffix) in [("next", &journal.next), ("previous", &journal.previous)] {
        if !is_ours(suffix) {
            return Err(Error::key(key, format!("is {suffix:?}, which is no generation"), &path));
        }
    }
    Ok(Some(journal))
}

/// Rolls the journal forward if a killed run left one: what every open of the dataset does first. Costs one look for
/// a file where there is none.
///
/// # Errors
/// [`Error::Io`], [`Error::Json`] and [`Error::Key`] when there is a journal that cannot be followed.
pub(crate) fn settle(path: &Path) -> Result<()> {
    let Ok(place) = Place::new(path) else { return Ok(()) };
    let journal = place.beside("journal");
    let started = Instant::now();
    while journal.exists() {
        match Lock::take(&place) {
            Ok(_lock) => {
                let Some(found) = read(&place)? else { return Ok(()) };
                follow(&place, &found, None)?;
                // The set can be read all the same.
                remove(&place)
                    .unwrap_or_else(|error| tracing::warn!(%error, "cannot remove the journal yet"));
                return Ok(());
            }
            // A living writer does it itself.
            Err(Error::Locked { .. }) if started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(Error::Locked { .. }) => return Ok(()),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
