//! The serial ports of this computer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::string::{String, ToString as _};
use std::vec::Vec;

use serde::Serialize;

use super::access::{self, PortAccess};
use super::adapter::{Adapter, Likelihood, adapter};

/// A string of a USB device is at most this long; what a hostile one says beyond it is cut.
const MAX_TEXT: usize = 126;

/// A serial port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PortInfo {
    /// Device node, such as `/dev/ttyACM0`; the number changes from one plugging in to the next.
    pub path: String,
    /// Link by the adapter's serial number, below `/dev/serial/by-id`.
    pub by_id: Option<String>,
    /// Link by the USB socket, below `/dev/serial/by-path`.
    pub by_path: Option<String>,
    /// Other links to it, such as those of udev rules.
    pub links: Vec<String>,
    /// USB vendor id; `None` = no USB device.
    pub vid: Option<u16>,
    /// USB product id.
    pub pid: Option<u16>,
    /// Serial number of the adapter. Some have none, and some share one.
    pub serial: Option<String>,
    /// What the adapter calls itself.
    pub product: Option<String>,
    /// Who it says has made it.
    pub manufacturer: Option<String>,
    /// The kernel's name of the USB socket, such as `1-1.2`.
    pub usb_socket: Option<String>,
    /// What is known about the adapter by its ids.
    pub adapter: Option<Adapter>,
    /// Whether this user can open it now.
    pub permission: PortAccess,
}

impl PortInfo {
    /// A port of which nothing but its path is known.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            by_id: None,
            by_path: None,
            links: Vec::new(),
            vid: None,
            pid: None,
            serial: None,
            product: None,
            manufacturer: None,
            usb_socket: None,
            adapter: None,
            permission: PortAccess::Unknown,
        }
    }

    /// How likely an arm hangs on it.
    #[must_use]
    pub fn likelihood(&self) -> Likelihood {
        self.adapter.map_or(Likelihood::Unlikely, |a| a.likelihood)
    }

    /// The path to write down: one of a udev rule, else by serial number, else by socket, else the node itself.
    #[must_use]
    pub fn stable_path(&self) -> &str {
        let link = self.links.first().or(self.by_id.as_ref()).or(self.by_path.as_ref());
        link.unwrap_or(&self.path)
    }

    /// USB ids as `1a86:55d3`.
    #[must_use]
    pub fn usb_id(&self) -> Option<String> {
        self.vid.zip(self.pid).map(|(vid, pid)| std::format!("{vid:04x}:{pid:04x}"))
    }

    /// Whether both are the same adapter, whatever node it has now.
    #[must_use]
    pub fn is_same_adapter(&self, other: &Self) -> bool {
        let ids = (self.vid, self.pid) == (other.vid, other.pid);
        match (&self.serial, &other.serial) {
            (Some(a), Some(b)) if self.vid.is_some() => ids && a == b,
            _ if self.vid.is_some() => {
                ids && self.serial == other.serial && self.usb_socket == other.usb_socket
            }
            _ => self.path == other.path,
        }
    }
}

/// Where ports are looked for.
///
/// ```
/// use so101_hal::discovery::Discovery;
/// for port in Discovery::system().ports() {
///     println!("{} {:?}", port.stable_path(), port.likelihood());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    root: PathBuf,
    user: access::User,
}

impl Default for Discovery {
    fn default() -> Self {
        Self::system()
    }
}

impl Discovery {
    /// This computer.
    #[must_use]
    pub fn system() -> Self {
        Self { root: PathBuf::from("/"), user: access::User::Caller }
    }

    /// The computer whose file system begins at `root`, seen by the user that its `proc/self/status` tells of.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), user: access::User::OfStatusFile }
    }

    /// All serial ports with a device behind them, the likeliest first, then by name. Nothing is opened.
    #[must_use]
    pub fn ports(&self) -> Vec<PortInfo> {
        let mut ports = self.sysfs_ports();
        #[cfg(feature = "serial")]
        if ports.is_empty() && !self.root.join("sys/class/tty").is_dir() {
            ports = listed_ports();
        }
        ports.sort_by(|a, b| {
            b.likelihood().cmp(&a.likelihood()).then_with(|| natural(&a.path).cmp(&natural(&b.path)))
        });
        ports
    }

    /// The port with this path, which may be any link to it.
    #[must_use]
    pub fn port(&self, path: &str) -> Option<PortInfo> {
        let node = self.node_of(path);
        self.ports().into_iter().find(|p| p.path == node || p.path == path)
    }

    /// Whether this user can open the device at `path`, and who holds it. Nothing is opened.
    #[must_use]
    pub fn access(&self, path: &str) -> PortAccess {
        access::of(&self.root, self.user, &self.node_of(path))
    }

    /// The device node that a path leads to, as seen from the root.
    fn node_of(&self, path: &str) -> String {
        let inside = self.root.join(path.trim_start_matches('/'));
        let Ok(real) = fs::canonicalize(inside) else { return path.to_string() };
        let root = fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone());
        match real.strip_prefix(&root) {
            Ok(rest) => std::format!("/{}", rest.display()),
            Err(_) => path.to_string(),
        }
    }

    fn sysfs_ports(&self) -> Vec<PortInfo> {
        let Ok(entries) = fs::read_dir(self.root.join("sys/class/tty")) else { return Vec::new() };
        let links = Links::read(&self.root);
        entries.flatten().filter_map(|e| self.sysfs_port(&e.path(), &links)).collect()
    }

    fn sysfs_port(&self, class: &Path, links: &Links) -> Option<PortInfo> {
        let name = class.file_name()?.to_str()?;
        // Virtual consoles have no device.
        let device = fs::canonicalize(class.join("device")).ok()?;
        // UARTs that the driver reserves but the board does not have say type 0.
        if read(&class.join("type")).as_deref() == Some("0") && !name.starts_with("ttyUSB") {
            return None;
        }
        let mut port = PortInfo::new(std::format!("/dev/{name}"));
        // ttyACM hangs on the USB interface, ttyUSB on a port below it: the device is one or two folders up.
        let usb = device.ancestors().take(4).find(|d| d.join("idVendor").is_file());
        if let Some(usb) = usb {
            let hex = |file: &str| u16::from_str_radix(&read(&usb.join(file))?, 16).ok();
            port.vid = hex("idVendor");
            port.pid = hex("idProduct");
            port.serial = read(&usb.join("serial"));
            port.product = read(&usb.join("product"));
            port.manufacturer = read(&usb.join("manufacturer"));
            port.usb_socket = usb.file_name().map(|n| n.to_string_lossy().into_owned());
            port.adapter = port.vid.zip(port.pid).and_then(|(vid, pid)| adapter(vid, pid)).copied();
        }
        port.by_id = links.by_id.get(name).cloned();
        port.by_path = links.by_path.get(name).cloned();
        port.links = links.others.get(name).cloned().unwrap_or_default();
        port.permission = access::of(&self.root, self.user, &port.path);
        Some(port)
    }
}

/// The serial ports of this computer, as [`Discovery::ports`] finds them. Where a system does not tell, there are none.
#[must_use]
pub fn list_ports() -> Vec<PortInfo> {
    Discovery::system().ports()
}

/// Links below `/dev` that lead to terminals, by the terminal's name.
#[derive(Default)]
struct Links {
    by_id: BTreeMap<String, String>,
    by_path: BTreeMap<String, String>,
    others: BTreeMap<String, Vec<String>>,
}

impl Links {
    fn read(root: &Path) -> Self {
        let mut links = Self::default();
        for (terminal, link) in links_in(root, "dev/serial/by-id") {
            links.by_id.insert(terminal, link);
        }
        for (terminal, link) in links_in(root, "dev/serial/by-path") {
            links.by_path.insert(terminal, link);
        }
        for (terminal, link) in links_in(root, "dev") {
            links.others.entry(terminal).or_default().push(link);
        }
        links
    }
}

/// Links in one folder: name of the terminal, and path of the link. Sorted, so that the choice among several is stable.
fn links_in(root: &Path, folder: &str) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return Vec::new() };
    let mut found: Vec<(String, String)> = entries
        .flatten()
        .filter_map(|e| {
            let target = fs::read_link(e.path()).ok()?;
            let terminal = target.file_name()?.to_str()?.to_string();
            let is_terminal = terminal.starts_with("tty");
            is_terminal.then(|| (terminal, std::format!("/{folder}/{}", e.file_name().to_string_lossy())))
        })
        .collect();
    // The last one read stays: the first of the alphabet.
    found.sort_by(|a, b| b.cmp(a));
    found
}

/// The trimmed text of an attribute, without control characters: it comes from the device.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let clean: String = text.trim().chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect();
    (!clean.is_empty()).then_some(clean)
}

/// `/dev/ttyACM10` after `/dev/ttyACM9`.
fn natural(path: &str) -> (&str, u64) {
    let stem = path.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, path.get(stem.len()..).and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// What the operating system lists, where there is no sysfs.
#[cfg(feature = "serial")]
fn listed_ports() -> Vec<PortInfo> {
    use serialport::SerialPortType;
    let listed = serialport::available_ports().unwrap_or_default();
    listed
        .into_iter()
        .map(|found| {
            let mut port = PortInfo::new(found.port_name);
            if let SerialPortType::UsbPort(usb) = found.port_type {
                port.vid = Some(usb.vid);
                port.pid = Some(usb.pid);
                port.serial = usb.serial_number;
                port.product = usb.product;
                port.manufacturer = usb.manufacturer;
                port.adapter = adapter(usb.vid, usb.pid).copied();
            }
            port
        })
        .collect()
}
