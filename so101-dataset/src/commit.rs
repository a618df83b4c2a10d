//! Changes of a dataset folder that are whole or not there at all.
//!
//! LeRobot finds files by globbing, so files may not appear one by one. A commit builds the next generation of the
//! whole folder beside it, mostly of hard links, and swaps the two by one rename:
//!
//! ```text
//! PARENT/NAME             the dataset
//! PARENT/.NAME.lock       held while a writer lives
//! PARENT/.NAME.rec-1/     videos of the running episode
//! PARENT/.NAME.gen-1/     the next generation; after the swap the previous one, until it is removed
//! PARENT/.NAME.*.mark     says that the temporary folder of this name is ours
//! PARENT/.NAME.journal    only where the file system cannot swap two folders in one step
//! ```
//!
//! A file that exists in the old generation is never changed in place, since both generations share its data.
//! A file that somebody else adds to the set after a commit has linked what is there, and before the swap, is removed
//! with the old generation: nobody but the writer may add files while it lives. Folders are made anew by each commit
//! and so have the modes of new folders; their extended attributes and access lists are not kept.
//! A process killed at any moment leaves the old state or the new one. The steps are those of
//! `crash::Step`, in order.

mod crash;
mod generation;
mod journal;
mod lock;
mod place;
mod temporary;

pub(crate) use generation::{Base, Change, commit, refuse_linked_folders};
pub(crate) use journal::settle;
pub(crate) use lock::Lock;
pub(crate) use place::Place;
pub(crate) use temporary::TemporaryDir;

use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::{Error, Result};

/// Brings the set and what is beside it into order after a killed run: first thing of a writer that has the lock.
///
/// # Errors
/// [`Error::Io`], [`Error::Json`] and [`Error::Key`] when what was left cannot be read or removed.
pub(crate) fn recover(place: &Place, _lock: &Lock) -> Result<()> {
    journal::roll_forward(place)?;
    temporary::remove_leftovers(place)
}

/// Makes a folder and those above it that are missing, durably.
///
/// # Errors
/// [`Error::Io`], [`Error::DiskFull`].
pub(crate) fn make_dirs(dir: &Path) -> Result<()> {
    let changed = parents_of_missing(dir);
    std::fs::create_dir_all(dir).map_err(|e| Error::write("create the folder", dir, e))?;
    changed.into_iter().try_for_each(sync_dir)
}

/// The folders that get a new entry when `dir` is made with all above it; the topmost is last.
fn parents_of_missing(dir: &Path) -> Vec<&Path> {
    dir.ancestors().take_while(|d| !d.exists()).filter_map(Path::parent).collect()
}

/// Makes the entries of a folder durable.
fn sync_dir(dir: &Path) -> Result<()> {
    let file = std::fs::File::open(dir).map_err(|e| Error::io("open the folder", dir, e))?;
    match file.sync_all() {
        // Some network and overlay file systems have no sync of folders; the rename is atomic there too.
        Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
        Err(e) => Err(Error::write("make the folder durable", dir, e)),
        Ok(()) => Ok(()),
    }
}

/// Renames a folder to a name that nothing has.
fn rename_new(from: &Path, to: &Path) -> Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(Error::AlreadyExists { path: to.into() }),
        // Not every file system knows the flag; the lock keeps other writers away.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if !to.exists() => {
            std::fs::rename(from, to).map_err(|e| Error::write("give its name to", to, e))
        }
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(Error::AlreadyExists { path: to.into() }),
        Err(e) => Err(Error::write("give its name to", to, e.into())),
    }
}

#[cfg(test)]
mod tests;
