//! Where LeRobot keeps calibrations.
//!
//! `$HF_LEROBOT_CALIBRATION`, else `$HF_LEROBOT_HOME/calibration`, else `$HF_HOME/lerobot/calibration`, else
//! `$XDG_CACHE_HOME/huggingface/lerobot/calibration`, else `~/.cache/huggingface/lerobot/calibration`
//! (`lerobot/utils/constants.py` and `huggingface_hub/constants.py`); below it
//! `{robots,teleoperators}/TYPE/ID.json`. The type's name changed over time, the file did not move with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Calibration, Role};
use crate::error::{Error, Result};

/// Names of the follower's folder, the present one first.
const FOLLOWERS: [&str; 5] = [
    "so_follower",
    "so101_follower",
    "so100_follower",
    "so101_follower_end_effector",
    "so100_follower_end_effector",
];

/// Names of the leader's folder, the present one first.
const LEADERS: [&str; 3] = ["so_leader", "so101_leader", "so100_leader"];

/// The folder with all calibrations of this user.
///
/// ```
/// use so101_hal::calibration::{Folders, Role};
/// let folders = Folders::new("/calibrations");
/// let path = folders.path("blue", Role::Leader)?;
/// assert_eq!(path.to_str(), Some("/calibrations/teleoperators/so_leader/blue.json"));
/// # Ok::<(), so101_hal::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    root: PathBuf,
}

/// A calibration that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundCalibration {
    /// The file; the newest where there are several.
    pub path: PathBuf,
    /// Others of the same name, newest first: left over from older versions of LeRobot.
    pub others: Vec<PathBuf>,
}

impl Folders {
    /// The calibrations below this folder.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder that LeRobot would use in this environment.
    ///
    /// # Errors
    /// [`Error::NoHome`] where no variable says where it is.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// As [`Self::from_env`], with variables from elsewhere.
    ///
    /// # Errors
    /// [`Error::NoHome`].
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let home = variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from);
        let get = |name: &str| {
            let path = PathBuf::from(variable(name)?);
            // `expanduser`, as LeRobot does.
            match (path.strip_prefix("~"), &home) {
                (Ok(rest), Some(home)) => Some(home.join(rest)),
                _ => Some(path),
            }
        };
        let root = get("HF_LEROBOT_CALIBRATION")
            .or_else(|| Some(get("HF_LEROBOT_HOME")?.join("calibration")))
            .or_else(|| Some(get("HF_HOME")?.join("lerobot/calibration")))
            .or_else(|| Some(get("XDG_CACHE_HOME")?.join("huggingface/lerobot/calibration")))
            .or_else(|| Some(home.as_ref()?.join(".cache/huggingface/lerobot/calibration")));
        root.map(Self::new).ok_or(Error::NoHome)
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where LeRobot 0.6 looks for the calibration of this arm, whether it is there or not.
    ///
    /// # Errors
    /// [`Error::ArmName`] for names that are no file names.
    pub fn path(&self, id: &str, role: Role) -> Result<PathBuf> {
        Ok(self.file(names(role).first().copied().unwrap_or_default(), role, checked(id)?))
    }

    /// All places where this or an older LeRobot would have put it, the present one first.
    ///
    /// # Errors
    /// As [`Self::path`].
    pub fn candidates(&self, id: &str, role: Role) -> Result<Vec<PathBuf>> {
        let name = checked(id)?;
        Ok(names(role).iter().map(|folder| self.file(folder, role, name)).collect())
    }

    /// Finds the calibration of an arm, in folders of all ages; the newest file where there are several.
    ///
    /// # Errors
    /// [`Error::CalibrationNotFound`] with all places that were looked at, and [`Error::ArmName`].
    pub fn find(&self, id: &str, role: Role) -> Result<FoundCalibration> {
        let tried = self.candidates(id, role)?;
        let mut there: Vec<(SystemTime, &PathBuf)> =
            tried.iter().filter_map(|p| Some((modified(p)?, p))).collect();
        // Stable: of files of the same age, the one in the present folder.
        there.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
        let mut paths = there.into_iter().map(|(_, p)| p.clone());
        match paths.next() {
            Some(path) => Ok(FoundCalibration { path, others: paths.collect() }),
            None => Err(Error::CalibrationNotFound {
                id: id.to_owned(),
                role: role_name(role),
                tried: tried.iter().map(|p| super::file::show(p)).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// All arms of a role whose calibrations can be read, by name; of several files of one name, the newest. For
    /// [`match_calibration`](crate::discovery::match_calibration).
    #[must_use]
    pub fn known(&self, role: Role) -> Vec<(String, Calibration)> {
        let mut ids: Vec<String> = names(role)
            .iter()
            .filter_map(|folder| std::fs::read_dir(self.root.join(kind(role)).join(folder)).ok())
            .flat_map(Iterator::flatten)
            .filter_map(|entry| {
                let path = entry.path();
                (path.extension()? == "json").then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten()
            })
            .collect();
        ids.sort();
        ids.dedup();
        ids.into_iter()
            .filter_map(|id| {
                let found = self.find(&id, role).ok()?;
                Some((id, Calibration::load(&found.path).ok()?))
            })
            .collect()
    }

    /// Our own file beside LeRobot's: what a pair of arms needs to agree.
    pub(super) fn pair_path(&self, leader: &str, follower: &str) -> Result<PathBuf> {
        let (leader, follower) = (checked(leader)?, checked(follower)?);
        Ok(self.root.join("so101_pairs").join(format!("{leader}--{follower}.json")))
    }

    fn file(&self, folder: &str, role: Role, name: &str) -> PathBuf {
        self.root.join(kind(role)).join(folder).join(format!("{name}.json"))
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(meta.modified().unwrap_or(SystemTime::UNIX_EPOCH))
}

const fn names(role: Role) -> &'static [&'static str] {
    match role {
        Role::Follower => &FOLLOWERS,
        Role::Leader => &LEADERS,
    }
}

const fn kind(role: Role) -> &'static str {
    match role {
        Role::Follower => "robots",
        Role::Leader => "teleoperators",
    }
}

pub(super) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Follower => "follower",
        Role::Leader => "leader",
    }
}

/// A name that stays in its folder.
fn checked(id: &str) -> Result<&str> {
    let ok = !id.is_empty() && id != "." && id != ".." && !id.contains(['/', '\\', '\0']);
    if ok { Ok(id) } else { Err(Error::ArmName { name: id.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn root(vars: &[(&str, &str)]) -> String {
        let found = Folders::from_variables(|name| {
            vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v))
        });
        found.unwrap().root().display().to_string()
    }

    #[test]
    fn the_folder_is_the_one_that_lerobot_takes() {
        let home = ("HOME", "/home/me");
        for (vars, expected) in [
            (vec![home], "/home/me/.cache/huggingface/lerobot/calibration"),
            (vec![home, ("XDG_CACHE_HOME", "/c")], "/c/huggingface/lerobot/calibration"),
            (vec![home, ("XDG_CACHE_HOME", "/c"), ("HF_HOME", "/hf")], "/hf/lerobot/calibration"),
            (vec![home, ("HF_HOME", "/hf"), ("HF_LEROBOT_HOME", "~/lr")], "/home/me/lr/calibration"),
            (vec![home, ("HF_LEROBOT_HOME", "/lr"), ("HF_LEROBOT_CALIBRATION", "/cal")], "/cal"),
        ] {
            assert_eq!(root(&vars), expected, "{vars:?}");
        }
        assert!(matches!(Folders::from_variables(|_| None), Err(Error::NoHome)));
    }

    #[test]
    fn old_folders_are_searched_and_the_newest_of_several_wins() {
        let dir = tempfile::tempdir().unwrap();
        let folders = Folders::new(dir.path());
        let err = folders.find("blue", Role::Follower).unwrap_err().to_string();
        for name in FOLLOWERS {
            assert!(err.contains(&format!("robots/{name}/blue.json")), "{err}");
        }
        let old = dir.path().join("robots/so100_follower/blue.json");
        Calibration::model().save(&old).unwrap();
        let found = folders.find("blue", Role::Follower).unwrap();
        assert_eq!((found.path.as_path(), found.others.len()), (old.as_path(), 0));
        let new = folders.path("blue", Role::Follower).unwrap();
        Calibration::model().save(&new).unwrap();
        let age = |path: &Path, seconds| {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
        };
        for (new_s, old_s, first, second) in
            [(200, 100, &new, &old), (100, 200, &old, &new), (5, 5, &new, &old)]
        {
            age(&new, new_s);
            age(&old, old_s);
            let found = folders.find("blue", Role::Follower).unwrap();
            assert_eq!((&found.path, &found.others[0]), (first, second));
        }
        assert!(folders.find("blue", Role::Leader).is_err());
        assert_eq!(folders.known(Role::Follower), [("blue".to_owned(), Calibration::model())]);
    }

    #[test]
    fn a_name_that_leaves_its_folder_is_refused() {
        let folders = Folders::new("/c");
        for name in ["", "..", "a/b", "a\\b"] {
            assert!(matches!(folders.path(name, Role::Leader), Err(Error::ArmName { .. })), "{name}");
        }
        let spaced = folders.path("my arm.2", Role::Leader).unwrap();
        assert!(spaced.ends_with("teleoperators/so_leader/my arm.2.json"), "{spaced:?}");
    }
}
