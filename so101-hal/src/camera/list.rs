//! Which cameras are plugged in, as sysfs and the links under `/dev/v4l` tell. Nothing is opened to find out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::string::{String, ToString as _};
use std::vec::Vec;

use serde::Serialize;

/// A video device of Linux.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CameraInfo {
    /// Its device, such as `/dev/video0`: changes when others are plugged in.
    pub path: String,
    /// The number in it, LeRobot's `index_or_path`.
    pub index: u32,
    /// What the camera calls itself.
    pub name: String,
    /// Link by make and serial number, under `/dev/v4l/by-id`.
    pub by_id: Option<String>,
    /// Link by USB socket, under `/dev/v4l/by-path`.
    pub by_path: Option<String>,
    /// USB vendor, four hexadecimal digits.
    pub vid: Option<String>,
    /// USB product, four hexadecimal digits.
    pub pid: Option<String>,
    /// USB serial number; cheap cameras of one make share it.
    pub serial: Option<String>,
    /// Which of its device's nodes it is: 0 gives the pictures, the others metadata or other streams.
    pub node: u32,
}

impl CameraInfo {
    /// Whether pictures are to be expected of it. The device itself knows for sure, once it is open.
    #[must_use]
    pub const fn gives_pictures(&self) -> bool {
        self.node == 0
    }

    /// The path to write down: by id where no other camera here has the same make and serial number, else by socket.
    #[must_use]
    pub fn stable_path(&self) -> &str {
        self.by_id.as_ref().or(self.by_path.as_ref()).unwrap_or(&self.path)
    }
}

/// The video devices of this computer, in the order of their numbers. Empty where there is no sysfs.
#[must_use]
pub fn list_cameras() -> Vec<CameraInfo> {
    list_cameras_at(Path::new("/"))
}

/// The video devices of the computer whose file system begins at `root`.
#[must_use]
pub fn list_cameras_at(root: &Path) -> Vec<CameraInfo> {
    let Ok(entries) = fs::read_dir(root.join("sys/class/video4linux")) else { return Vec::new() };
    let by_id = links(root, "dev/v4l/by-id");
    let by_path = links(root, "dev/v4l/by-path");
    let mut cameras: Vec<(CameraInfo, Option<PathBuf>)> = entries
        .flatten()
        .filter_map(|entry| {
            let node = entry.file_name().into_string().ok()?;
            let index = node.strip_prefix("video")?.parse().ok()?;
            let mut camera = CameraInfo { path: std::format!("/dev/{node}"), index, ..CameraInfo::default() };
            camera.name = text(&entry.path().join("name")).unwrap_or_default();
            camera.node = text(&entry.path().join("index")).and_then(|t| t.parse().ok()).unwrap_or(0);
            camera.by_id = by_id.get(&node).cloned();
            camera.by_path = by_path.get(&node).cloned();
            let mut device = None;
            // The device is the USB interface; vendor and serial number are those of the device around it.
            if let Ok(interface) = fs::canonicalize(entry.path().join("device"))
                && let Some(usb) = interface.ancestors().take(3).find(|p| p.join("idVendor").is_file())
            {
                let read = |file: &str| text(&usb.join(file));
                (camera.vid, camera.pid, camera.serial) =
                    (read("idVendor"), read("idProduct"), read("serial"));
                device = Some(usb.to_owned());
            }
            Some((camera, device))
        })
        .collect();
    cameras.sort_by_key(|(camera, _)| camera.index);
    // Of twins with one serial number the link leads to whichever came last.
    let is_twin = |(a, at): &(CameraInfo, Option<PathBuf>)| {
        let same = |b: &CameraInfo| (&a.vid, &a.pid, &a.serial) == (&b.vid, &b.pid, &b.serial);
        at.is_some() && cameras.iter().any(|(b, other)| other.is_some() && other != at && same(b))
    };
    let twins: Vec<bool> = cameras.iter().map(is_twin).collect();
    let kept = |((camera, _), is_twin): ((CameraInfo, Option<PathBuf>), bool)| CameraInfo {
        by_id: camera.by_id.clone().filter(|_| !is_twin),
        ..camera
    };
    cameras.into_iter().zip(twins).map(kept).collect()
}

fn text(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// Name of a device node -> path of a link to it. Of several the shortest, then the first in the alphabet.
fn links(root: &Path, folder: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::<String, String>::new();
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return found };
    for entry in entries.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let Some(node) = target.file_name().and_then(|n| n.to_str()) else { continue };
        let link = PathBuf::from("/").join(folder).join(entry.file_name()).display().to_string();
        let better = found.get(node).is_none_or(|old| (link.len(), &link) < (old.len(), old));
        if better {
            found.insert(node.to_string(), link);
        }
    }
    found
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// One webcam with its metadata node, and a decoder of the board that is no USB device.
    fn computer() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let usb = "sys/devices/usb1/1-2";
        put(root, &format!("{usb}/idVendor"), "046d\n");
        put(root, &format!("{usb}/idProduct"), "0825\n");
        put(root, &format!("{usb}/serial"), "A1B2\n");
        for (node, index) in [("video2", "0"), ("video10", "1")] {
            put(root, &format!("{usb}/1-2:1.0/video4linux/{node}/name"), "UVC Camera (046d:0825)\n");
            put(root, &format!("{usb}/1-2:1.0/video4linux/{node}/index"), index);
            symlink("../../../1-2:1.0", root.join(format!("{usb}/1-2:1.0/video4linux/{node}/device")))
                .unwrap();
            fs::create_dir_all(root.join("sys/class/video4linux")).unwrap();
            let class = root.join("sys/class/video4linux").join(node);
            symlink(root.join(format!("{usb}/1-2:1.0/video4linux/{node}")), class).unwrap();
        }
        put(root, "sys/class/video4linux/video31/name", "bcm2835-codec\n");
        put(root, "sys/class/video4linux/v4l-subdev0/name", "sensor\n");
        for folder in ["by-id", "by-path"] {
            fs::create_dir_all(root.join("dev/v4l").join(folder)).unwrap();
        }
        let link = |link: &str, node: &str| {
            symlink(format!("../../{node}"), root.join("dev/v4l").join(link)).unwrap();
        };
        link("by-id/usb-046d_0825_A1B2-video-index0", "video2");
        link("by-id/usb-046d_0825_A1B2-video-index1", "video10");
        link("by-path/platform-xhci-usb-0:2:1.0-video-index0", "video2");
        link("by-path/platform-xhci-usbv2-0:2:1.0-video-index0", "video2");
        dir
    }

    #[test]
    fn cameras_are_listed_by_number_with_their_links_and_usb_ids() {
        let dir = computer();
        let cameras = list_cameras_at(dir.path());
        assert_eq!(cameras.iter().map(|c| c.index).collect::<Vec<_>>(), [2, 10, 31]);
        let webcam = &cameras[0];
        assert_eq!(webcam.path, "/dev/video2");
        assert_eq!(webcam.name, "UVC Camera (046d:0825)");
        assert_eq!(webcam.stable_path(), "/dev/v4l/by-id/usb-046d_0825_A1B2-video-index0");
        assert_eq!(
            webcam.by_path.as_deref(),
            Some("/dev/v4l/by-path/platform-xhci-usb-0:2:1.0-video-index0")
        );
        let usb = [&webcam.vid, &webcam.pid, &webcam.serial].map(|s| s.as_deref().unwrap());
        assert_eq!(usb, ["046d", "0825", "A1B2"]);
        assert!(webcam.gives_pictures() && !cameras[1].gives_pictures());
        assert_eq!((cameras[2].vid.as_deref(), cameras[2].stable_path()), (None, "/dev/video31"));
    }

    #[test]
    fn twins_that_share_a_serial_number_are_known_by_their_sockets() {
        let dir = computer();
        let root = dir.path();
        let usb = "sys/devices/usb1/1-3";
        for (file, text) in [("idVendor", "046d\n"), ("idProduct", "0825\n"), ("serial", "A1B2\n")] {
            put(root, &format!("{usb}/{file}"), text);
        }
        put(root, &format!("{usb}/1-3:1.0/video4linux/video4/name"), "UVC Camera (046d:0825)\n");
        symlink("../../../1-3:1.0", root.join(format!("{usb}/1-3:1.0/video4linux/video4/device"))).unwrap();
        symlink(
            root.join(format!("{usb}/1-3:1.0/video4linux/video4")),
            root.join("sys/class/video4linux/video4"),
        )
        .unwrap();
        let cameras = list_cameras_at(root);
        assert_eq!(cameras[0].stable_path(), "/dev/v4l/by-path/platform-xhci-usb-0:2:1.0-video-index0");
        assert_eq!(cameras[1].stable_path(), "/dev/video4");
    }

    #[test]
    fn a_computer_without_video_devices_has_no_cameras() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(list_cameras_at(dir.path()), []);
    }
}
