//! Builds the next generation of a dataset folder and swaps it in.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::crash::{self, Step};
use super::place::Place;
use super::temporary::TemporaryDir;
use super::{journal, rename_new, sync_dir};
use crate::error::{Error, Result};

/// Syncs in flight at a time: the kernel answers those that wait for the disk's cache together.
const SYNC_THREADS: usize = 8;

/// What the next generation is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// There is no dataset yet.
    Nothing,
    /// The present folder.
    Present,
}

/// What a commit adds and replaces; all else stays.
#[derive(Debug, Default)]
pub(crate) struct Change {
    /// Path inside of the set, content.
    pub write: Vec<(PathBuf, Vec<u8>)>,
    /// A staged file on the same file system, its path inside of the set.
    pub take: Vec<(PathBuf, PathBuf)>,
}

/// A change that is visible.
#[derive(Debug)]
pub(crate) struct Committed {
    /// `Some` when the disk would not confirm that the swap is durable.
    pub unconfirmed: Option<Error>,
}

/// Makes the change, whole.
///
/// # Errors
/// [`Error::DiskFull`], [`Error::Io`], [`Error::AlreadyExists`]: the dataset is as it was.
pub(crate) fn commit(place: &Place, base: Base, change: &Change) -> Result<Committed> {
    static COMMITS: AtomicU64 = AtomicU64::new(0);
    let number = COMMITS.fetch_add(1, Ordering::Relaxed) + 1;
    let root = place.root();
    journal::clear(place)?;
    let next = TemporaryDir::create(place, "gen-")?;
    let mut build = Build { new: next.path().to_owned(), files: Vec::new(), dirs: BTreeSet::new() };
    build.dirs.insert(PathBuf::new());
    if base == Base::Present {
        let replaced = change.write.iter().map(|(p, _)| p.as_path());
        build.link(
            &root,
            Path::new(""),
            &replaced.chain(change.take.iter().map(|(_, p)| p.as_path())).collect(),
        )?;
    }
    crash::point(number, Step::Links);
    for (path, bytes) in &change.write {
        let target = build.place_for(path)?;
        build.files.push(write_file(&target, bytes).map(|file| (file, target))?);
    }
    for (from, path) in &change.take {
        let target = build.place_for(path)?;
        std::fs::rename(from, &target).map_err(|e| Error::write("move into the dataset", &target, e))?;
        let file = File::open(&target).map_err(|e| Error::io("open", &target, e))?;
        build.files.push((file, target));
    }
    crash::point(number, Step::Files);
    build.sync()?;
    crash::point(number, Step::Fsync);
    crash::point(number, Step::ExchangeBefore);
    // The previous generation, where it does not simply take the next one's place.
    let moved_aside = match base {
        Base::Nothing => {
            rename_new(next.path(), &root)?;
            None
        }
        Base::Present => swap(place, &next, number)?,
    };
    let unconfirmed = sync_dir(place.parent()).err();
    crash::point(number, Step::ExchangeAfter);
    for old in moved_aside.iter().chain([&next]) {
        if let Err(error) = old.empty() {
            tracing::warn!(path = %old.path().display(), %error, "cannot remove the previous generation yet");
        }
    }
    crash::point(number, Step::Cleanup);
    Ok(Committed { unconfirmed })
}

/// Exchanges the set and `next`; returns the previous generation when it is not at `next` then.
fn swap(place: &Place, next: &TemporaryDir, commit: u64) -> Result<Option<TemporaryDir>> {
    let root = place.root();
    if !crash::journal_forced() {
        match renameat_with(CWD, next.path(), CWD, &root, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(None),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(e) => return Err(Error::write("swap in the new state", &root, e.into())),
        }
    }
    journal::swap(place, next, commit).map(Some)
}

/// The generation under construction. Paths are relative to it.
struct Build {
    new: PathBuf,
    files: Vec<(File, PathBuf)>,
    dirs: BTreeSet<PathBuf>,
}

impl Build {
    /// Links everything under `root/at` but the files in `leave`.
    fn link(&mut self, root: &Path, at: &Path, leave: &BTreeSet<&Path>) -> Result<()> {
        let dir = root.join(at);
        for entry in std::fs::read_dir(&dir).map_err(|e| Error::io("list", &dir, e))? {
            let entry = entry.map_err(|e| Error::io("list", &dir, e))?;
            let (from, path) = (entry.path(), at.join(entry.file_name()));
            let to = self.new.join(&path);
            let kind = entry.file_type().map_err(|e| Error::io("read", &from, e))?;
            if kind.is_dir() {
                self.make_dir(&path)?;
                self.link(root, &path, leave)?;
            } else if leave.contains(path.as_path()) {
                // The change brings its own.
            } else if kind.is_symlink() {
                // Both generations have the same parent, so a relative target stays right.
                let linked = std::fs::read_link(&from).and_then(|t| std::os::unix::fs::symlink(t, &to));
                linked.map_err(|e| Error::write("link", &to, e))?;
            } else if kind.is_file() {
                self.link_file(&from, &to)?;
            }
        }
        Ok(())
    }

    fn link_file(&mut self, from: &Path, to: &Path) -> Result<()> {
        use std::io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
        match std::fs::hard_link(from, to) {
            Ok(()) => Ok(()),
            // A file system without hard links, or a file from another one: slow, but right.
            Err(e) if matches!(e.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported) => {
                std::fs::copy(from, to).map_err(|e| Error::write("copy", to, e))?;
                let file = File::open(to).map_err(|e| Error::io("open", to, e))?;
                self.files.push((file, to.to_owned()));
                Ok(())
            }
            Err(e) => Err(Error::write("link", to, e)),
        }
    }

    /// Where the file `path` goes, with the folders above it made.
    fn place_for(&mut self, path: &Path) -> Result<PathBuf> {
        let above: Vec<&Path> = path.ancestors().skip(1).filter(|a| !a.as_os_str().is_empty()).collect();
        for dir in above.into_iter().rev() {
            if !self.dirs.contains(dir) {
                self.make_dir(dir)?;
            }
        }
        Ok(self.new.join(path))
    }

    fn make_dir(&mut self, path: &Path) -> Result<()> {
        let dir = self.new.join(path);
        std::fs::create_dir(&dir).map_err(|e| Error::write("create the folder", &dir, e))?;
        self.dirs.insert(path.to_owned());
        Ok(())
    }

    /// Makes every new file and then every folder durable.
    fn sync(&self) -> Result<()> {
        let sync = |(file, path): &(File, PathBuf)| {
            file.sync_all().map_err(|e| Error::write("make the file durable", path, e))
        };
        in_parallel(&self.files, &sync)?;
        let dirs: Vec<PathBuf> = self.dirs.iter().map(|d| self.new.join(d)).collect();
        in_parallel(&dirs, &|dir: &PathBuf| sync_dir(dir))
    }
}

/// Refuses a dataset with a link to a folder inside: a commit would neither follow it nor put files into it.
///
/// # Errors
/// [`Error::LinkedFolder`], [`Error::Io`].
pub(crate) fn refuse_linked_folders(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
        let entry = entry.map_err(|e| Error::io("list", dir, e))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|e| Error::io("read", &path, e))?;
        if kind.is_symlink() && path.is_dir() {
            return Err(Error::LinkedFolder { path });
        }
        if kind.is_dir() {
            refuse_linked_folders(&path)?;
        }
    }
    Ok(())
}

/// Creates a file that does not exist and fills it.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<File> {
    let mut file = File::create_new(path).map_err(|e| Error::write("create", path, e))?;
    file.write_all(bytes).map_err(|e| Error::write("write", path, e))?;
    Ok(file)
}

/// Runs `work` on all items by a few threads; the first error wins.
fn in_parallel<T: Sync>(items: &[T], work: &(impl Fn(&T) -> Result<()> + Sync)) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let worker = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(e) = work(item) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..SYNC_THREADS.min(items.len()) {
            // Without a second thread the work is done all the same, by this one.
            let _ = std::thread::Builder::new().spawn_scoped(scope, worker);
        }
        worker();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_of_another_file_system_is_copied_where_it_cannot_be_linked() {
        let here = tempfile::tempdir().unwrap();
        let device = |p: &Path| std::fs::metadata(p).unwrap().dev();
        let Ok(there) = tempfile::tempdir_in("/dev/shm") else {
            println!("skipped: no /dev/shm");
            return;
        };
        if device(here.path()) == device(there.path()) {
            println!("skipped: /dev/shm is the file system of temporary files");
            return;
        }
        let (from, to) = (there.path().join("a"), here.path().join("a"));
        std::fs::write(&from, "rows").unwrap();
        let mut build = Build { new: here.path().into(), files: Vec::new(), dirs: BTreeSet::new() };
        build.link_file(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"rows");
        assert_eq!(build.files.len(), 1, "a copy has to be made durable");
    }
}
