//! Whether a port can be opened, and what to do where it cannot. Nothing is opened to find out.

use std::fs;
use std::path::{Path, PathBuf};
use std::string::{String, ToString as _};
use std::vec::Vec;

use serde::Serialize;

use super::ports::{Discovery, PortInfo};
use super::rules::access_rule;
use crate::error::Error;

/// A program that has a port open or locked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its name, where it may be read.
    pub program: Option<String>,
}

impl core::fmt::Display for Holder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.program {
            Some(program) => write!(f, "{program} (process {})", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// Whether a user can open a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PortAccess {
    /// Yes.
    Granted,
    /// Its owner and mode forbid it.
    Denied {
        /// The group that may, such as `dialout`; `None` where no group may.
        group: Option<String>,
        /// Whether the user has been added to that group, and only has to log in again.
        member_after_login: bool,
    },
    /// It may, but other programs hold it.
    Held {
        /// Which ones.
        by: Vec<Holder>,
    },
    /// There is no such device.
    Missing,
    /// This system does not tell.
    Unknown,
}

impl PortAccess {
    /// What is to be done so that `port` can be opened; `None` where nothing is.
    #[must_use]
    pub fn fix(&self, port: &PortInfo) -> Option<String> {
        match self {
            Self::Granted | Self::Unknown => None,
            Self::Missing => Some("plug the adapter in".to_string()),
            Self::Held { by } => {
                let names: Vec<String> = by.iter().map(Holder::to_string).collect();
                Some(std::format!("end {}", names.join(", ")))
            }
            Self::Denied { group: Some(group), member_after_login: true } => {
                Some(std::format!("log in again: you are in the group {group} since this session began"))
            }
            Self::Denied { group: Some(group), .. } => Some(std::format!(
                "sudo usermod -aG {group} $USER, then log in again; or the udev rule {}",
                access_rule(port)
            )),
            Self::Denied { group: None, .. } => Some(std::format!("the udev rule {}", access_rule(port))),
        }
    }
}

/// Whose rights are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    /// This process: the operating system itself is asked where it can be.
    Caller,
    /// The user of the root's `proc/self/status`, by owner and mode alone.
    OfStatusFile,
}

/// Says more about an error of opening a port: which group or rule, and who holds it. Other errors stay as they are.
///
/// ```
/// use so101_hal::Error;
/// use so101_hal::discovery::{Discovery, explain};
/// let error = explain(&Discovery::system(), Error::PortNotFound { path: "/dev/ttyACM9".into() });
/// assert!(matches!(error, Error::PortNotFound { .. }));
/// ```
#[must_use]
pub fn explain(discovery: &Discovery, error: Error) -> Error {
    match error {
        Error::PortPermission { path } => {
            let port = discovery.port(&path).unwrap_or_else(|| PortInfo::new(path.clone()));
            match discovery.access(&path) {
                access @ PortAccess::Denied { .. } => {
                    let fix = access.fix(&port).unwrap_or_default();
                    Error::PortDenied { fix, path }
                }
                _ => Error::PortPermission { path },
            }
        }
        Error::PortBusy { path } => match discovery.access(&path) {
            PortAccess::Held { by } => {
                let names: Vec<String> = by.iter().map(Holder::to_string).collect();
                Error::PortHeld { holders: names.join(", "), path }
            }
            _ => Error::PortBusy { path },
        },
        other => other,
    }
}

/// The access to the device node `path`, as seen from `root`.
pub(super) fn of(root: &Path, user: User, path: &str) -> PortAccess {
    let node = root.join(path.trim_start_matches('/'));
    let rights = match rights(root, user, &node) {
        Ok(rights) => rights,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return PortAccess::Missing,
        Err(_) => return PortAccess::Unknown,
    };
    if rights != PortAccess::Granted {
        return rights;
    }
    let by = holders(root, &node, path);
    if by.is_empty() { PortAccess::Granted } else { PortAccess::Held { by } }
}

#[cfg(not(unix))]
fn rights(_root: &Path, _user: User, _node: &Path) -> std::io::Result<PortAccess> {
    Ok(PortAccess::Unknown)
}

#[cfg(unix)]
fn rights(root: &Path, user: User, node: &Path) -> std::io::Result<PortAccess> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = fs::metadata(node)?;
    // The kernel knows about access lists too, which the mode does not show.
    #[cfg(feature = "serial")]
    if user == User::Caller {
        use rustix::fs::Access;
        if rustix::fs::access(node, Access::READ_OK | Access::WRITE_OK).is_ok() {
            return Ok(PortAccess::Granted);
        }
    }
    let Some(identity) = Identity::read(root) else { return Ok(PortAccess::Unknown) };
    let (mode, uid, gid) = (meta.mode(), meta.uid(), meta.gid());
    // The first class that fits decides, as in the kernel.
    let bits = if uid == identity.uid {
        mode >> 6
    } else if identity.groups.contains(&gid) {
        mode >> 3
    } else {
        mode
    };
    let by_mode = identity.uid == 0 || bits & 0o6 == 0o6;
    if by_mode && (user == User::OfStatusFile || !cfg!(feature = "serial")) {
        return Ok(PortAccess::Granted);
    }
    let group_may = mode >> 3 & 0o6 == 0o6 && gid != 0;
    let group = group_may.then(|| group_of(root, gid)).flatten();
    let member_after_login =
        group.as_ref().is_some_and(|g| !identity.groups.contains(&gid) && is_member(root, g, identity.uid));
    Ok(PortAccess::Denied { group, member_after_login })
}

/// Who asks.
#[cfg(unix)]
struct Identity {
    uid: u32,
    groups: Vec<u32>,
}

#[cfg(unix)]
impl Identity {
    /// From `proc/self/status`: effective user, effective group and the supplementary ones.
    fn read(root: &Path) -> Option<Self> {
        let text = fs::read_to_string(root.join("proc/self/status")).ok()?;
        let numbers = |key: &str| -> Option<Vec<u32>> {
            let line = text.lines().find_map(|l| l.strip_prefix(key))?;
            Some(line.split_whitespace().filter_map(|n| n.parse().ok()).collect())
        };
        let mut groups = numbers("Groups:").unwrap_or_default();
        groups.extend(numbers("Gid:")?.get(1));
        Some(Self { uid: *numbers("Uid:")?.get(1)?, groups })
    }
}

/// The group's name in `/etc/group`; its number where it has none.
#[cfg(unix)]
fn group_of(root: &Path, gid: u32) -> Option<String> {
    let text = fs::read_to_string(root.join("etc/group")).unwrap_or_default();
    let name = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == gid.to_string()).then(|| name.to_string())
    });
    name.or_else(|| Some(gid.to_string()))
}

/// Whether `/etc/group` lists the user in this group.
#[cfg(unix)]
fn is_member(root: &Path, group: &str, uid: u32) -> bool {
    let passwd = fs::read_to_string(root.join("etc/passwd")).unwrap_or_default();
    let groups = fs::read_to_string(root.join("etc/group")).unwrap_or_default();
    let user = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid.to_string()).then_some(name)
    });
    let members = groups.lines().find_map(|l| l.strip_prefix(group)?.strip_prefix(':')?.split(':').nth(2));
    user.zip(members).is_some_and(|(user, members)| members.split(',').any(|m| m == user))
}

/// Programs that have the device open, as far as this user may see, and those that hold a lock on it.
fn holders(root: &Path, node: &Path, path: &str) -> Vec<Holder> {
    let mut pids = pids_with_open(root, path);
    pids.extend(pids_with_lock(root, node));
    pids.sort_unstable();
    pids.dedup();
    let own = std::process::id();
    pids.into_iter()
        .filter(|pid| *pid != own)
        .map(|pid| {
            let name = fs::read_to_string(root.join(std::format!("proc/{pid}/comm"))).ok();
            let program = name.map(|n| n.trim().chars().filter(|c| !c.is_control()).collect());
            Holder { pid, program }
        })
        .collect()
}

/// Processes with a descriptor that leads to the device.
fn pids_with_open(root: &Path, path: &str) -> Vec<u32> {
    let Ok(processes) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let target = PathBuf::from(path);
    processes
        .flatten()
        .filter_map(|process| {
            let pid: u32 = process.file_name().to_str()?.parse().ok()?;
            let mut descriptors = fs::read_dir(process.path().join("fd")).ok()?.flatten();
            let has_it = descriptors.any(|d| fs::read_link(d.path()).is_ok_and(|to| to == target));
            has_it.then_some(pid)
        })
        .collect()
}

/// Processes that `/proc/locks` names for the device's inode: also those of other users.
#[cfg(unix)]
fn pids_with_lock(root: &Path, node: &Path) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(meta) = fs::metadata(node) else { return Vec::new() };
    let (major, minor) = (meta.dev() >> 8 & 0xfff, meta.dev() & 0xff | meta.dev() >> 12 & 0xf_ff00);
    let wanted = std::format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let text = fs::read_to_string(root.join("proc/locks")).unwrap_or_default();
    // 1: FLOCK ADVISORY WRITE 4711 00:06:345 0 EOF
    text.lines()
        .filter(|line| line.split_whitespace().any(|w| w == wanted) && !line.contains("->"))
        .filter_map(|line| line.split_whitespace().nth(4)?.parse().ok())
        .collect()
}

#[cfg(not(unix))]
fn pids_with_lock(_root: &Path, _node: &Path) -> Vec<u32> {
    Vec::new()
}
