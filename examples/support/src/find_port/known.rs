//! The calibration files that there are: LeRobot's folders, and one that the user names.

use std::path::{Path, PathBuf};

use serde::Serialize;
use so101_hal::Calibration;
use so101_hal::calibration::{Folders, Role};

use crate::error::{Error, Result};
use crate::hardware;

/// A calibration file.
#[derive(Clone, Debug, Serialize)]
pub struct Known {
    /// Name of the arm.
    pub id: String,
    /// Leader or follower, by the folder; `None` where it does not tell.
    pub role: Option<Role>,
    /// The file.
    pub path: PathBuf,
    /// What it says.
    #[serde(skip)]
    pub calibration: Calibration,
}

impl Known {
    /// Role and name: leader and follower may have the same name.
    #[must_use]
    pub fn name(&self) -> String {
        match self.role {
            Some(role) => format!("{} {}", role_name(role), self.id),
            None => self.id.clone(),
        }
    }
}

pub(super) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Follower => "follower",
        Role::Leader => "leader",
    }
}

/// The name of the arm in a [`Known::name`].
pub(super) fn id_of(name: &str) -> &str {
    name.strip_prefix("follower ").or_else(|| name.strip_prefix("leader ")).unwrap_or(name)
}

/// All calibration files. Of LeRobot's folders those that cannot be read are stepped over; of a folder that the user has
/// named they are errors.
pub(super) fn read(folder: Option<&Path>) -> Result<Vec<Known>> {
    let mut all = Vec::new();
    if let Some(folder) = folder {
        let files = files(folder).map_err(|source| Error::Io {
            what: "read the folder",
            path: folder.to_owned(),
            source,
        })?;
        for path in files {
            let calibration = hardware::load(&path)?;
            let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.push(Known { id, role: None, path, calibration });
        }
    }
    let Ok(folders) = Folders::from_env() else { return Ok(all) };
    for role in [Role::Follower, Role::Leader] {
        for (id, calibration) in folders.known(role) {
            let Ok(found) = folders.find(&id, role) else { continue };
            all.push(Known { id, role: Some(role), path: found.path, calibration });
        }
    }
    Ok(all)
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    Ok(files)
}
