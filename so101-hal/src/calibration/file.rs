//! Calibration files on disk.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::Calibration;
use crate::error::{BoxError, Error, Result};

/// What becomes of an older file of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Existing {
    /// It is kept beside the new one, as `NAME.bak` (`NAME.bak2` and so on where there are some already).
    #[default]
    Backup,
    /// Nothing is written, unless the file has the same values.
    Refuse,
}

/// What saving did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// Where the older file is now, if there was one with other bytes.
    pub backup: Option<PathBuf>,
}

impl Calibration {
    /// Reads a calibration from the text of LeRobot's file.
    ///
    /// # Errors
    /// What is wrong with it; see [`Self::load`].
    pub fn from_json(text: &str) -> Result<Self, BoxError> {
        let calibration: Self = serde_json::from_str(text)?;
        for joint in calibration.joints() {
            joint.validate()?;
        }
        Ok(calibration)
    }

    /// Reads LeRobot's calibration file.
    ///
    /// # Errors
    /// [`Error::OldCalibrationFile`] for a file of a LeRobot before May 2025, and [`Error::CalibrationFile`] where it
    /// cannot be read, has not all six motors, or a range is empty.
    pub fn load(path: &Path) -> Result<Self> {
        let fail = |source: BoxError| Error::CalibrationFile { doing: "read", path: show(path), source };
        let text = fs::read_to_string(path).map_err(|e| fail(e.into()))?;
        Self::from_json(&text)
            .map_err(|e| if is_old(&text) { Error::OldCalibrationFile { path: show(path) } } else { fail(e) })
    }

    /// Writes LeRobot's calibration file, byte for byte in its layout; an older one is kept as a backup. Folders are
    /// made. The file is never half there: it is written beside, synced, and renamed.
    ///
    /// # Errors
    /// [`Error::CalibrationFile`] where it cannot be written.
    pub fn save(&self, path: &Path) -> Result<Saved> {
        self.save_with(path, Existing::Backup)
    }

    /// As [`Self::save`], with a choice of what becomes of an older file.
    ///
    /// # Errors
    /// [`Error::CalibrationExists`], and as [`Self::save`].
    pub fn save_with(&self, path: &Path, existing: Existing) -> Result<Saved> {
        for joint in self.joints() {
            joint.validate()?;
        }
        save_text(path, &self.to_json(), existing)
    }
}

/// Writes a small file whole, or not at all.
pub(super) fn save_text(path: &Path, text: &str, existing: Existing) -> Result<Saved> {
    let fail = |source: std::io::Error| Error::CalibrationFile {
        doing: "write",
        path: show(path),
        source: source.into(),
    };
    let old = match fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(fail(e)),
    };
    let saved = Saved { path: path.to_owned(), backup: None };
    match old {
        Some(old) if old == text.as_bytes() => return Ok(saved),
        Some(_) if existing == Existing::Refuse => {
            return Err(Error::CalibrationExists { path: show(path) });
        }
        _ => {}
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    let temporary = beside(path, &format!(".new-{}", std::process::id()));
    let written = write_synced(&temporary, text).and_then(|()| {
        let backup = old.is_some().then(|| free_backup(path));
        if let Some(backup) = &backup {
            // A link, so that the file is there at every moment; a copy where there are none.
            fs::hard_link(path, backup).or_else(|_| fs::copy(path, backup).map(|_| ()))?;
        }
        fs::rename(&temporary, path)?;
        Ok(backup)
    });
    match written {
        Ok(backup) => {
            sync_folder(path);
            Ok(Saved { backup, ..saved })
        }
        Err(e) => {
            let _ = fs::remove_file(&temporary);
            Err(fail(e))
        }
    }
}

fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The name itself, as far as the file system has such a thing.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent().and_then(|p| fs::File::open(p).ok()) {
        let _ = folder.sync_all();
    }
}

/// `NAME` with something behind it.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(more);
    path.with_file_name(name)
}

fn free_backup(path: &Path) -> PathBuf {
    let mut candidate = beside(path, ".bak");
    let mut number = 2_u32;
    while candidate.exists() {
        candidate = beside(path, &format!(".bak{number}"));
        number = number.saturating_add(1);
    }
    candidate
}

/// LeRobot before May 2025 stored lists a quantity: `homing_offset`, `drive_mode`, `start_pos`, `end_pos`, `calib_mode`,
/// `motor_names`.
fn is_old(text: &str) -> bool {
    let Ok(serde_json::Value::Object(map)) = serde_json::from_str(text) else { return false };
    ["motor_names", "calib_mode", "homing_offset"].iter().all(|key| map.contains_key(*key))
}

pub(super) fn show(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JointId;

    #[test]
    fn what_is_saved_is_lerobots_bytes_and_is_loaded_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/arm.json");
        let saved = Calibration::model().save(&path).unwrap();
        assert_eq!(saved, Saved { path: path.clone(), backup: None });
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("{\n    \"shoulder_pan\": {\n        \"id\": 1,\n        \"drive_mode\": 0,")
        );
        assert!(text.ends_with("    }\n}"));
        assert_eq!(Calibration::load(&path).unwrap(), Calibration::model());
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "something stays beside it");
    }

    #[test]
    fn an_older_file_is_kept_or_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arm.json");
        let other = |min| {
            let mut joints = *Calibration::model().joints();
            joints[JointId::Gripper.index()].range_min = min;
            Calibration::new(joints)
        };
        for (n, bak) in [(1, None), (2, Some("arm.json.bak")), (2, None), (3, Some("arm.json.bak2"))] {
            let saved = other(n).save(&path).unwrap();
            assert_eq!(saved.backup, bak.map(|b| dir.path().join(b)), "{n}");
            assert_eq!(Calibration::load(&path).unwrap(), other(n));
        }
        assert_eq!(Calibration::load(&dir.path().join("arm.json.bak2")).unwrap(), other(2));
        assert_eq!(Calibration::load(&dir.path().join("arm.json.bak")).unwrap(), other(1));
        let err = other(4).save_with(&path, Existing::Refuse).unwrap_err();
        assert!(matches!(err, Error::CalibrationExists { .. }), "{err}");
        assert_eq!(Calibration::load(&path).unwrap(), other(3));
        other(3).save_with(&path, Existing::Refuse).unwrap();
    }

    #[test]
    fn a_file_that_is_no_good_is_named_and_an_old_one_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arm.json");
        assert!(matches!(Calibration::load(&path), Err(Error::CalibrationFile { doing: "read", .. })));
        let old = r#"{"homing_offset": [2048, -3072], "drive_mode": [0, 1], "start_pos": [1, 2], "end_pos": [3, 4],
            "calib_mode": ["DEGREE", "LINEAR"], "motor_names": ["shoulder_pan", "gripper"]}"#;
        for (text, says) in [(old, "before May 2025"), ("{", "EOF"), ("{}", "motor shoulder_pan is missing")]
        {
            fs::write(&path, text).unwrap();
            let err = Calibration::load(&path).unwrap_err();
            let source = std::error::Error::source(&err).map(ToString::to_string).unwrap_or_default();
            let said = format!("{err}: {source}");
            assert!(said.contains(says) && said.contains("arm.json"), "{said}");
        }
        let empty = Calibration::model().to_json().replace("\"range_max\": 3299", "\"range_max\": 796");
        fs::write(&path, &empty).unwrap();
        assert!(Calibration::load(&path).is_err());
    }

    #[test]
    fn a_failed_save_leaves_the_older_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("arm.json");
        fs::create_dir(&path).unwrap();
        assert!(matches!(
            Calibration::model().save(&path),
            Err(Error::CalibrationFile { doing: "write", .. })
        ));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
