//! Where the link to a pseudo-terminal stands, held against other processes.

use std::fs;
use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;

/// A link's place. Whoever holds it has locked the file `.NAME.lock` beside the link, so that a link left behind by a
/// process that was killed is told from one in use. Dropping it removes both.
#[derive(Debug)]
pub(super) struct Place {
    link: PathBuf,
    lock_file: PathBuf,
    _lock: OwnedFd,
}

impl Place {
    /// Takes the place of `link`. A link to a terminal, or to nothing, is taken over when nobody holds it; anything
    /// else at this path is somebody's, and an error.
    pub(super) fn take(link: &Path) -> IoResult<Self> {
        let name = link.file_name().ok_or_else(|| IoError::from(ErrorKind::InvalidInput))?;
        let lock_file = link.with_file_name(format!(".{}.lock", name.to_string_lossy()));
        let lock = lock(&lock_file)?;
        let is_free = match fs::symlink_metadata(link) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
            Err(e) => Err(e),
            Ok(meta) => Ok(meta.is_symlink() && is_left_behind(link)),
        };
        if matches!(is_free, Ok(true)) {
            return Ok(Self { link: link.to_owned(), lock_file, _lock: lock });
        }
        let _ = fs::remove_file(&lock_file);
        Err(is_free.err().unwrap_or_else(|| IoError::from(ErrorKind::AlreadyExists)))
    }

    /// Lets the link lead to `terminal`, in one step.
    pub(super) fn point_to(&self, terminal: &str) -> IoResult<()> {
        let fresh = self.lock_file.with_extension("new");
        let _ = fs::remove_file(&fresh);
        symlink(terminal, &fresh)?;
        fs::rename(&fresh, &self.link)
    }

    /// Takes the link away, if it is one.
    pub(super) fn clear(&self) {
        if fs::symlink_metadata(&self.link).is_ok_and(|m| m.is_symlink()) {
            let _ = fs::remove_file(&self.link);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clear();
        let _ = fs::remove_file(&self.lock_file);
    }
}

/// Locks a file that is made for it; the lock ends with the process, whatever way that ends.
fn lock(path: &Path) -> IoResult<OwnedFd> {
    loop {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(IoError::from(ErrorKind::AlreadyExists)),
            Err(e) => return Err(e.into()),
        }
        // Its last holder may have removed it in between: then this is a lock on nothing.
        let locked = fstat(&file)?;
        if fs::metadata(path).is_ok_and(|there| there.ino() == locked.st_ino) {
            return Ok(file);
        }
    }
}

/// Whether a link leads to nothing, or to a pseudo-terminal: its number may be another process's by now.
fn is_left_behind(link: &Path) -> bool {
    let Ok(target) = fs::read_link(link) else { return false };
    !link.exists() || target.starts_with("/dev/pts") || target.to_string_lossy().starts_with("/dev/ttys")
}
