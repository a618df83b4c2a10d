//! Keeps two writers of one dataset apart.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

use super::place::Place;
use crate::error::{Error, Result};

/// The lock of a dataset; the kernel lets go of it when the process ends, however that happens.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock, without waiting.
    ///
    /// # Errors
    /// [`Error::Locked`] when another writer has it, [`Error::Io`].
    pub(crate) fn take(place: &Place) -> Result<Self> {
        let path = place.beside("lock");
        loop {
            let mut file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(|e| Error::write("create the lock file", &path, e))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Error::Locked { holder: holder(&mut file), path: place.root() });
                }
                Err(e) => return Err(Error::io("lock", path, e.into())),
            }
            // Its last owner may have removed the file between our open and our lock: then ours locks nothing.
            let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
            if matches!((file.metadata(), path.metadata()), (Ok(a), Ok(b)) if same(&a, &b)) {
                // Only a help for messages: a full disk must not keep a reader from rolling a journal forward.
                let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is still locked, so that nobody's new lock is removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Who holds the lock, as part of a sentence.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(20).read_to_string(&mut text));
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!(" (process {pid})"),
        _ => String::new(),
    }
}
