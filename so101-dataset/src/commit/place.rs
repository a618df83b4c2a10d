//! The folder of a dataset, and the names beside it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Where a dataset lives: its parent, which exists, and its name, which need not.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    parent: PathBuf,
    name: OsString,
}

impl Place {
    /// Of the folder `path`. A link is followed, so that what is swapped is the folder that it leads to.
    ///
    /// # Errors
    /// [`Error::Spec`] for a path without a name, [`Error::Io`].
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let absolute = std::path::absolute(path).map_err(|e| Error::io("find", path, e))?;
        let resolved = if absolute.is_symlink() {
            absolute.canonicalize().map_err(|e| Error::io("follow the link", path, e))?
        } else {
            absolute
        };
        match (resolved.parent(), resolved.file_name()) {
            (Some(parent), Some(name)) => Ok(Self { parent: parent.to_owned(), name: name.to_owned() }),
            _ => {
                let (what, value) = ("the dataset's folder", path.display().to_string());
                Err(Error::Spec { what, value, rule: "a folder with a name of its own" })
            }
        }
    }

    /// The dataset's folder.
    pub(crate) fn root(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The folder that holds it.
    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// `PARENT/.NAME.SUFFIX`.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.prefix();
        name.push(suffix);
        self.parent.join(name)
    }

    /// The suffix of a name made by [`beside`](Self::beside).
    pub(crate) fn suffix<'a>(&self, name: &'a OsStr) -> Option<&'a str> {
        let bytes = name.as_encoded_bytes().strip_prefix(self.prefix().as_encoded_bytes())?;
        std::str::from_utf8(bytes).ok()
    }

    fn prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(&self.name);
        prefix.push(".");
        prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_the_set_are_recognised_and_others_are_not() {
        let place = Place::new(Path::new("/a/set")).unwrap();
        assert_eq!(place.root(), Path::new("/a/set"));
        assert_eq!(place.beside("gen-1"), Path::new("/a/.set.gen-1"));
        assert_eq!(place.suffix(OsStr::new(".set.gen-1")), Some("gen-1"));
        for other in ["set", ".sets.gen-1", "gen-1", ".set"] {
            assert_eq!(place.suffix(OsStr::new(other)), None, "{other}");
        }
        assert!(Place::new(Path::new("/")).is_err());
    }

    #[test]
    fn a_link_leads_to_the_folder_that_is_swapped() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("real")).unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        assert_eq!(Place::new(&dir.join("link")).unwrap().root(), dir.join("real"));
    }
}
