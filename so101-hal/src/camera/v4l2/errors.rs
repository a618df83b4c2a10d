//! From error numbers to errors that say what to do.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use core::time::Duration;

use super::calls::Errno;
use crate::discovery::{Discovery, PortAccess};
use crate::error::Error;

/// Which camera an error is about.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) camera: String,
    pub(super) path: String,
}

impl Place {
    pub(super) fn new(camera: &str, path: &str) -> Self {
        Self { camera: camera.to_string(), path: path.to_string() }
    }

    /// The error for an error number. `doing` reads "cannot {doing} the camera".
    pub(super) fn error(&self, doing: &'static str, errno: Errno) -> Error {
        let path = self.path.clone();
        match errno {
            Errno::NOENT => Error::CameraNotFound { path },
            // Opening a node whose device has gone says ENXIO or ENODEV.
            Errno::NODEV | Errno::NXIO => Error::CameraGone { camera: self.camera.clone(), path },
            Errno::ACCES | Errno::PERM => {
                Error::CameraDenied { fix: fix(&Discovery::system().access(&path)), path }
            }
            Errno::BUSY => Error::CameraHeld { holders: holders(&Discovery::system().access(&path)), path },
            Errno::NOSPC => Error::CameraBandwidth { path },
            other => Error::CameraIo { doing, path, source: Box::new(other) },
        }
    }

    pub(super) fn silent(&self, waited: Duration) -> Error {
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        Error::CameraSilent { camera: self.camera.clone(), waited_ms }
    }
}

/// What to do so that a camera may be opened.
fn fix(access: &PortAccess) -> String {
    let (group, after_login) = match access {
        PortAccess::Denied { group: Some(group), member_after_login } => {
            (group.as_str(), *member_after_login)
        }
        _ => ("video", false),
    };
    if after_login {
        return alloc::format!("log in again: you are in the group {group} since this session began");
    }
    alloc::format!(
        "add the user to the group {group} (sudo usermod -aG {group} $USER, then log in again) or install a udev rule \
         SUBSYSTEM==\"video4linux\", MODE=\"0666\""
    )
}

/// Who has the camera open, as far as this user may see.
fn holders(access: &PortAccess) -> String {
    match access {
        PortAccess::Held { by } => {
            let names: alloc::vec::Vec<String> = by.iter().map(ToString::to_string).collect();
            names.join(", ")
        }
        _ => "another program (of another user: sudo fuser -v tells which)".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_number_says_what_to_do() {
        let place = Place::new("main", "/nowhere/video7");
        for (errno, has) in [
            (Errno::NOENT, "no such camera"),
            (Errno::NODEV, "main is gone"),
            (Errno::NXIO, "main is gone"),
            (Errno::ACCES, "group video"),
            (Errno::BUSY, "another program"),
            (Errno::NOSPC, "bandwidth"),
            (Errno::IO, "cannot open the camera"),
        ] {
            let text = place.error("open", errno).to_string();
            assert!(text.contains(has) && text.ends_with("/nowhere/video7"), "{errno}: {text}");
        }
    }

    #[test]
    fn the_group_of_the_device_and_the_holders_are_named() {
        let denied = |after| PortAccess::Denied { group: Some("cameras".into()), member_after_login: after };
        assert!(fix(&denied(false)).contains("usermod -aG cameras"));
        assert!(fix(&denied(true)).starts_with("log in again"));
        assert!(fix(&PortAccess::Unknown).contains("group video"));
        assert!(holders(&PortAccess::Unknown).contains("fuser"));
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/4711/fd")).unwrap();
        std::fs::create_dir_all(dir.path().join("dev")).unwrap();
        std::fs::write(dir.path().join("dev/video0"), "").unwrap();
        std::fs::write(dir.path().join("proc/4711/comm"), "cheese\n").unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(
            dir.path().join("proc/self/status"),
            "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0\n",
        )
        .unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/dev/video0", dir.path().join("proc/4711/fd/5")).unwrap();
            let access = Discovery::at(dir.path()).access("/dev/video0");
            assert_eq!(holders(&access), "cheese (process 4711)", "{access:?}");
        }
    }
}
