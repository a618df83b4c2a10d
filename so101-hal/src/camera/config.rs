//! A camera as a file describes it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::file::{AtEnd, FileCamera, FileOptions};
use super::jpeg::MAX_SIDE;
use super::synthetic::{SyntheticCamera, SyntheticOptions};
use super::thread::{CameraThread, ThreadOptions};
use super::{Camera, CameraSpec, Controls, Source};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::frame::FrameSize;

/// Pictures a second that no camera exceeds.
pub(super) const MAX_FPS: u32 = 1000;

/// Which pixel format a camera is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PixelFormat {
    /// MJPG where the camera has it, else YUYV.
    #[default]
    Auto,
    /// JPEG pictures: a tenth of the USB bandwidth, and kept as they came.
    #[serde(alias = "MJPG")]
    Mjpg,
    /// Packed 4:2:2, uncompressed.
    #[serde(alias = "YUYV", alias = "yuy2", alias = "YUY2")]
    Yuyv,
}

impl PixelFormat {
    /// The four characters of it; `None` for any.
    #[must_use]
    pub const fn fourcc(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Mjpg => Some("MJPG"),
            Self::Yuyv => Some("YUYV"),
        }
    }
}

/// Where the pictures come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CameraSource {
    /// A camera of Linux, by its device: better `/dev/v4l/by-id/..` than `/dev/video0`, which changes.
    V4l2(PathBuf),
    /// A folder of PNG and JPEG files, one such file, or a stream of JPEG files (`.mjpg`), again and again.
    File(PathBuf),
    /// Drawn pictures.
    Synthetic(SyntheticOptions),
    /// A camera of macOS or Windows, by its number (feature `nokhwa`).
    Nokhwa(u32),
}

/// A camera as a file describes it.
///
/// ```
/// use so101_hal::camera::{CameraConfig, CameraSource, PixelFormat};
/// let main: CameraConfig = serde_json::from_str(
///     r#"{
///         "name": "main", "source": {"v4l2": "/dev/v4l/by-id/usb-Cam-video-index0"},
///         "width": 640, "height": 480, "fps": 30, "format": "mjpg",
///         "controls": {"exposure_us": 15600, "gain": 0, "white_balance_k": 4600, "power_line_hz": 50}
///     }"#,
/// )?;
/// assert_eq!(main.format, PixelFormat::Mjpg);
/// assert!(matches!(main.source, CameraSource::V4l2(_)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
#[non_exhaustive]
pub struct CameraConfig {
    /// Short name, such as `main`.
    pub name: String,
    /// Where its pictures come from.
    pub source: CameraSource,
    /// Size of its pictures; in a file as `width` and `height`.
    pub size: FrameSize,
    /// Pictures a second.
    pub fps: u32,
    /// Pixel format to ask for.
    pub format: PixelFormat,
    /// What to lock.
    pub controls: Controls,
}

impl CameraConfig {
    /// 640 x 480 at 30 pictures a second, any format, nothing locked.
    pub fn new(name: impl Into<String>, source: CameraSource) -> Self {
        Self {
            name: name.into(),
            source,
            size: FrameSize::new(640, 480),
            fps: 30,
            format: PixelFormat::Auto,
            controls: Controls::default(),
        }
    }

    /// Name and size.
    #[must_use]
    pub fn spec(&self) -> CameraSpec {
        CameraSpec { name: self.name.clone(), size: self.size }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// [`Error::CameraConfig`] with what does not.
    pub fn validate(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::CameraConfig { what });
        let name = &self.name;
        if name.is_empty() || name.contains(|c: char| c.is_control() || c == '/' || c == '.') {
            return wrong(format!("'{name}' is no name of a camera: use letters, digits and _"));
        }
        if [self.size.width, self.size.height].iter().any(|side| !(1..=MAX_SIDE).contains(side)) {
            return wrong(format!(
                "camera {name} cannot have pictures of {}: use 1 to {MAX_SIDE} pixels",
                self.size
            ));
        }
        if self.fps == 0 || self.fps > MAX_FPS {
            return wrong(format!(
                "camera {name} cannot run at {} pictures a second: use 1 to {MAX_FPS}",
                self.fps
            ));
        }
        Ok(())
    }

    /// Opens the driver of it, without a thread.
    ///
    /// # Errors
    /// As [`open`].
    pub fn source(&self, clock: &Arc<dyn Clock>) -> Result<Box<dyn Source>> {
        self.validate()?;
        match &self.source {
            CameraSource::V4l2(path) => v4l2(self, path, clock),
            CameraSource::File(path) => {
                let options = FileOptions { fps: self.fps, at_end: AtEnd::Loop };
                let camera = FileCamera::open(self.name.clone(), path, options, Arc::clone(clock))?;
                let got = camera.spec_size();
                if got != self.size {
                    return Err(Error::CameraSize { camera: self.name.clone(), expected: self.size, got });
                }
                Ok(Box::new(camera))
            }
            CameraSource::Synthetic(options) => {
                let options = SyntheticOptions { fps: self.fps, ..options.clone() };
                Ok(Box::new(SyntheticCamera::new(self.spec(), options, Arc::clone(clock))))
            }
            CameraSource::Nokhwa(index) => nokhwa(self, *index, clock),
        }
    }
}

/// Opens a camera with a thread of its own: [`Camera::capture`] gives the newest picture at once. Capture times are on
/// `clock`, which has to pass by itself (a virtual clock would be run away with).
///
/// # Errors
/// [`Error::CameraConfig`]; what the driver says: [`Error::CameraNotFound`], [`Error::CameraDenied`],
/// [`Error::CameraHeld`], [`Error::CameraFormat`] and the others of cameras; [`Error::CameraSilent`] where no picture
/// comes.
pub fn open(config: &CameraConfig, clock: &Arc<dyn Clock>) -> Result<Box<dyn Camera>> {
    let source = config.source(clock)?;
    Ok(Box::new(CameraThread::spawn(source, Arc::clone(clock), ThreadOptions::default())?))
}

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
fn v4l2(config: &CameraConfig, path: &std::path::Path, clock: &Arc<dyn Clock>) -> Result<Box<dyn Source>> {
    Ok(Box::new(super::v4l2::V4l2Camera::open(config, path, Arc::clone(clock))?))
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn v4l2(config: &CameraConfig, path: &std::path::Path, _clock: &Arc<dyn Clock>) -> Result<Box<dyn Source>> {
    Err(Error::CameraConfig {
        what: format!(
            "camera {} is a V4L2 device, which 64-bit Linux alone has; elsewhere use the feature nokhwa: {}",
            config.name,
            path.display()
        ),
    })
}

#[cfg(feature = "nokhwa")]
fn nokhwa(config: &CameraConfig, index: u32, clock: &Arc<dyn Clock>) -> Result<Box<dyn Source>> {
    Ok(Box::new(super::nokhwa::NokhwaCamera::open(config, index, Arc::clone(clock))?))
}

#[cfg(not(feature = "nokhwa"))]
fn nokhwa(config: &CameraConfig, index: u32, _clock: &Arc<dyn Clock>) -> Result<Box<dyn Source>> {
    let name = &config.name;
    Err(Error::CameraConfig {
        what: format!("camera {name} is nokhwa's number {index}: build with feature nokhwa"),
    })
}

/// How it is written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    name: String,
    source: CameraSource,
    width: u32,
    height: u32,
    fps: u32,
    #[serde(default)]
    format: PixelFormat,
    #[serde(default)]
    controls: Controls,
}

impl From<Flat> for CameraConfig {
    fn from(f: Flat) -> Self {
        let size = FrameSize::new(f.width, f.height);
        Self { name: f.name, source: f.source, size, fps: f.fps, format: f.format, controls: f.controls }
    }
}

impl From<CameraConfig> for Flat {
    fn from(c: CameraConfig) -> Self {
        let FrameSize { width, height } = c.size;
        Self {
            name: c.name,
            source: c.source,
            width,
            height,
            fps: c.fps,
            format: c.format,
            controls: c.controls,
        }
    }
}

impl core::fmt::Display for CameraSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::V4l2(path) | Self::File(path) => f.write_str(&path.display().to_string()),
            Self::Synthetic(_) => f.write_str("synthetic"),
            Self::Nokhwa(index) => write!(f, "nokhwa {index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    fn synthetic() -> CameraConfig {
        CameraConfig::new("main", CameraSource::Synthetic(SyntheticOptions::default()))
    }

    #[test]
    fn a_description_comes_back_as_it_was_and_knows_no_other_fields() {
        let mut config = CameraConfig::new("top", CameraSource::V4l2("/dev/video2".into()));
        config.controls.gain = Some(super::super::Setting::Locked(7));
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<CameraConfig>(&text).unwrap(), config);
        assert!(text.contains(r#""width":640"#), "{text}");
        let err = serde_json::from_str::<CameraConfig>(&text.replace("\"fps\"", "\"rate\"")).unwrap_err();
        assert!(err.to_string().contains("rate"), "{err}");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new());
        let spoilt = |spoil: fn(&mut CameraConfig)| {
            let mut config = synthetic();
            spoil(&mut config);
            config.source(&clock).err().unwrap().to_string()
        };
        for (err, has) in [
            (spoilt(|c| c.name = "a/b".into()), "a/b"),
            (spoilt(|c| c.name.clear()), "no name"),
            (spoilt(|c| c.size = FrameSize::new(0, 480)), "0x480"),
            (spoilt(|c| c.fps = 0), "at 0 pictures"),
        ] {
            assert!(err.contains(has), "{err}");
        }
    }

    #[test]
    fn a_synthetic_camera_opens_with_the_size_and_rate_of_its_description() {
        let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new());
        let mut config = synthetic();
        config.size = FrameSize::new(64, 48);
        config.fps = 10;
        let mut source = config.source(&clock).unwrap();
        let mut buffers = super::super::Buffers::new();
        source.grab(&mut buffers).unwrap();
        let second = source.grab(&mut buffers).unwrap();
        assert_eq!(second.captured.since_start().as_millis(), 100);
        assert_eq!(source.spec().size, config.size);
    }
}
