//! Where the dataset goes, decided before anything is opened.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What is to be done with the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing is there: a new set.
    New(PathBuf),
    /// A set is there, to be continued.
    Resume(PathBuf),
}

impl Target {
    /// The folder of the dataset.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::New(p) | Self::Resume(p) => p,
        }
    }
}

/// Whether to go on with an existing set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continue {
    /// `--resume`.
    Yes,
    /// Without it.
    No,
}

/// Chooses the folder: `out` as it is, or the first free (with `--resume`: the last existing) of `default` and the same
/// with `-2`, `-3` ... behind it.
///
/// # Errors
/// [`Error::Usage`] when the folder exists and is no dataset, or is one and `--resume` was not given.
pub fn choose(out: Option<&Path>, default: &Path, resume: Continue) -> Result<Target> {
    let Some(path) = out else {
        let series = |n: u32| {
            let mut name = default.as_os_str().to_owned();
            if n > 1 {
                name.push(format!("-{n}"));
            }
            PathBuf::from(name)
        };
        let free = (1..).map(series).find(|p| !exists(p)).unwrap_or_else(|| series(1));
        let last = (1..).map(series).take_while(|p| exists(p)).last();
        return match (resume, last) {
            (Continue::Yes, Some(last)) => choose(Some(&last), default, resume),
            _ => Ok(Target::New(free)),
        };
    };
    if path.file_name().is_none() {
        return Err(Error::Usage(format!(
            "--out needs the name of a folder to make, not '{}'",
            path.display()
        )));
    }
    if !exists(path) {
        if let Some(set) = enclosing_set(path) {
            return Err(Error::Usage(format!(
                "that is inside of another dataset, {}: choose another --out: {}",
                set.display(),
                path.display()
            )));
        }
        return Ok(Target::New(path.to_owned()));
    }
    if !path.is_dir() || !path.join("meta").join("info.json").exists() {
        return Err(Error::Usage(format!(
            "the folder exists and is no dataset (it has no meta/info.json): choose another --out: {}",
            path.display()
        )));
    }
    match resume {
        Continue::Yes => Ok(Target::Resume(path.to_owned())),
        Continue::No => Err(Error::Usage(format!(
            "a dataset is there already: add --resume to go on with it, or choose another --out: {}",
            path.display()
        ))),
    }
}

/// The dataset that a folder at `path` would lie in.
fn enclosing_set(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let real = absolute.ancestors().skip(1).find_map(|a| a.canonicalize().ok())?;
    real.ancestors().find(|a| a.join("meta").join("info.json").exists()).map(Path::to_owned)
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Makes the parent folder and a scratch folder in it: proof that the place can be written.
///
/// # Errors
/// [`Error::Refused`] when it cannot.
pub fn scratch(path: &Path) -> Result<Scratch> {
    let parent = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let refused = |e: std::io::Error| {
        Error::Refused(format!(
            "cannot write there ({e}): choose another --out or mend its permissions: {}",
            parent.display()
        ))
    };
    std::fs::create_dir_all(parent).map_err(refused)?;
    let folder = parent.join(format!(".so101-preflight-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(refused)?;
    Ok(Scratch { folder })
}

/// A folder that is removed when this goes out of scope.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(out: Option<&Path>, resume: Continue) -> Result<Target> {
        super::choose(out, Path::new("outputs/set"), resume)
    }

    #[test]
    fn without_a_folder_the_first_free_one_of_the_series_is_taken_and_the_last_one_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let default = dir.path().join("set");
        let chosen = |resume| super::choose(None, &default, resume).unwrap();
        assert_eq!(chosen(Continue::Yes), Target::New(default.clone()));
        for name in ["set", "set-2"] {
            std::fs::create_dir_all(dir.path().join(name).join("meta")).unwrap();
            std::fs::write(dir.path().join(name).join("meta/info.json"), "{}").unwrap();
        }
        assert_eq!(chosen(Continue::No), Target::New(dir.path().join("set-3")));
        assert_eq!(chosen(Continue::Yes), Target::Resume(dir.path().join("set-2")));
    }

    #[test]
    fn an_explicit_folder_is_new_a_set_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(choose(Some(&path), Continue::No).unwrap(), Target::New(path.clone()));
        assert_eq!(choose(Some(&path), Continue::Yes).unwrap(), Target::New(path.clone()));
        std::fs::create_dir_all(&path).unwrap();
        assert!(choose(Some(&path), Continue::Yes).unwrap_err().to_string().contains("no dataset"));
        std::fs::create_dir_all(path.join("meta")).unwrap();
        std::fs::write(path.join("meta/info.json"), "{}").unwrap();
        assert!(choose(Some(&path), Continue::No).unwrap_err().to_string().contains("--resume"));
        assert_eq!(choose(Some(&path), Continue::Yes).unwrap(), Target::Resume(path));
    }

    #[test]
    fn a_set_inside_of_a_set_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/meta")).unwrap();
        std::fs::write(dir.path().join("a/meta/info.json"), "{}").unwrap();
        for inner in ["a/inner", "a/meta/episodes/b"] {
            let e = choose(Some(&dir.path().join(inner)), Continue::No).unwrap_err();
            assert!(e.to_string().starts_with("that is inside of another dataset"), "{e}");
        }
        assert!(choose(Some(&dir.path().join("b/inner")), Continue::No).is_ok());
    }

    #[test]
    fn a_scratch_folder_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = scratch(&dir.path().join("deep/set")).unwrap();
        assert!(scratch.path().is_dir());
        drop(scratch);
        assert_eq!(std::fs::read_dir(dir.path().join("deep")).unwrap().count(), 0);
    }
}
