//! Bounded reading of files, and the listing of a dataset's parts.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The whole of a regular file of at most `limit` bytes.
///
/// # Errors
/// [`Error::Io`] (a folder in its place included), [`Error::TooLarge`].
pub(crate) fn read_capped(path: &Path, what: &'static str, limit: u64) -> Result<Vec<u8>> {
    let (file, bytes) = open_regular(path)?;
    if bytes > limit {
        return Err(Error::TooLarge { what, bytes, limit, path: path.into() });
    }
    let mut buffer = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    // A file that grows meanwhile stays bounded too.
    file.take(limit).read_to_end(&mut buffer).map_err(|e| Error::io("read", path, e))?;
    Ok(buffer)
}

/// An open regular file and its length.
///
/// # Errors
/// [`Error::Io`], also for a folder, pipe or device in its place.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    // Before `open`, which would wait for ever on a pipe.
    let meta = std::fs::metadata(path).map_err(|e| Error::io("read", path, e))?;
    if !meta.is_file() {
        let kind = if meta.is_dir() { "it is a folder" } else { "it is no regular file" };
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, kind);
        return Err(Error::io("read", path, source));
    }
    let file = File::open(path).map_err(|e| Error::io("read", path, e))?;
    Ok((file, meta.len()))
}

/// The entries of a folder sorted by name, or none when it does not exist.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list", dir, e)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|e| Error::io("list", dir, e))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// What `dir/*/*.EXTENSION` matches, sorted by path as LeRobot's readers do it; hidden names are left out.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn glob_two_levels(dir: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let visible = |p: &Path| p.file_name().is_some_and(|n| !n.as_encoded_bytes().starts_with(b"."));
    let mut found = Vec::new();
    for chunk in sorted_entries(dir)? {
        if visible(&chunk) && chunk.is_dir() {
            let files = sorted_entries(&chunk)?;
            found.extend(
                files.into_iter().filter(|p| visible(p) && p.extension().is_some_and(|e| e == extension)),
            );
        }
    }
    Ok(found)
}
