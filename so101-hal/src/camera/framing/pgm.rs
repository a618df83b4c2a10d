//! A reference on disk: a PGM picture (Netpbm `P5`, which every picture viewer shows) with the figures in its comments.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::string::{String, ToString as _};
use std::vec::Vec;

use super::Reference;
use crate::error::{Error, Result};
use crate::frame::FrameSize;

const MARK: &str = "# so101 framing reference 1";
/// A header is no longer than this.
const HEADER: usize = 4096;

impl Reference {
    /// Writes it to a file, whole or not at all.
    ///
    /// # Errors
    /// [`Error::CameraIo`].
    pub fn save(&self, path: &Path) -> Result<()> {
        let io = |source: std::io::Error| Error::CameraIo {
            doing: "store the reference picture of",
            path: path.display().to_string(),
            source: source.into(),
        };
        let beside = path.with_extension("pgm.new");
        let mut file = fs::File::create(&beside).map_err(io)?;
        file.write_all(&self.to_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
        fs::rename(&beside, path).map_err(io)
    }

    /// Reads it back.
    ///
    /// # Errors
    /// [`Error::CameraIo`], and [`Error::FramingReference`] for a file that is none.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|source| Error::CameraIo {
            doing: "read the reference picture of",
            path: path.display().to_string(),
            source: source.into(),
        })?;
        Self::from_bytes(&bytes).map_err(|what| Error::FramingReference {
            what: what.to_string(),
            path: path.display().to_string(),
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let name: String = self.camera.chars().filter(|c| !c.is_control()).collect();
        let mut bytes = std::format!(
            "P5\n{MARK}\n# camera {name}\n# focus {}\n# mean_luma {}\n{} {}\n255\n",
            self.focus,
            self.mean_luma,
            self.size.width,
            self.size.height
        )
        .into_bytes();
        bytes.extend_from_slice(&self.grey);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        const NONE: &str = "this is no reference picture: store one anew (find_cameras --save-reference)";
        let mut lines = Lines { bytes, at: 0 };
        let mut next = || lines.next().ok_or(NONE);
        if next()? != "P5" || next()? != MARK {
            return Err(NONE);
        }
        let camera = next()?.strip_prefix("# camera ").ok_or(NONE)?.to_string();
        let number = |line: &str, key: &str| -> Option<f64> {
            line.strip_prefix(key)?.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0)
        };
        let focus = number(next()?, "# focus ").ok_or(NONE)?;
        let mean_luma = number(next()?, "# mean_luma ").ok_or(NONE)?;
        let (width, height) = next()?.split_once(' ').ok_or(NONE)?;
        let size = FrameSize::new(width.parse().map_err(|_| NONE)?, height.parse().map_err(|_| NONE)?);
        if next()? != "255" {
            return Err(NONE);
        }
        let grey = bytes.get(lines.at..).unwrap_or_default();
        if size.width == 0 || Some(grey.len()) != (size.width as usize).checked_mul(size.height as usize) {
            return Err("the picture is not whole: store one anew (find_cameras --save-reference)");
        }
        Ok(Self { camera, size, grey: grey.to_vec(), focus, mean_luma })
    }
}

/// The lines of a header in front of binary data.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.bytes.get(self.at..HEADER.min(self.bytes.len()))?;
        let len = rest.iter().position(|&b| b == b'\n')?;
        self.at += len + 1;
        core::str::from_utf8(rest.get(..len)?).ok()
    }
}
