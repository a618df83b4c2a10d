//! Cameras of macOS (AVFoundation) and Windows (Media Foundation), through the `nokhwa` crate.
//!
//! Type-checked on Linux only, where the crate has no backend here; not run on either system. It delivers MJPG or YUYV.
//! Controls are not set: what is wanted of them is reported as not taken. Capture times are times of arrival, and pictures
//! that were lost on the way are not seen.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use ::nokhwa::utils::{
    ApiBackend, CameraFormat, CameraIndex, FrameFormat, RequestedFormat, RequestedFormatType, Resolution,
};

use super::config::{CameraConfig, PixelFormat};
use super::controls::{Automatic, ControlReport, Setting};
use super::picture::{Buffers, Content, Picture, Source};
use super::yuyv::{self, Range};
use super::{CameraSpec, Controls, DeviceInfo, jpeg};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameSize};

/// How long a picture may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a camera may take to open: the system asks the user for permission.
const OPENING: Duration = Duration::from_secs(60);

/// A camera of macOS or Windows, streaming. The crate's camera may not change threads, so that it has one of its own.
#[derive(Debug)]
pub struct NokhwaCamera {
    spec: CameraSpec,
    deliveries: Receiver<Delivery>,
    format: FrameFormat,
    next: u64,
    device: DeviceInfo,
}

/// Bytes as they came, and when; or why there are none.
type Delivery = Result<(Vec<u8>, Timestamp)>;

impl NokhwaCamera {
    /// Opens camera number `index` and starts its stream.
    ///
    /// # Errors
    /// [`Error::CameraIo`], and [`Error::CameraFormat`] for a size that it does not have.
    pub fn open(config: &CameraConfig, index: u32, clock: Arc<dyn Clock>) -> Result<Self> {
        let (tell, told) = sync_channel(1);
        // One waits while the next one comes; more would be old when they are taken.
        let (send, deliveries) = sync_channel(1);
        let wanted = config.clone();
        std::thread::Builder::new()
            .name(format!("nokhwa {index}"))
            .spawn(move || match start(&wanted, index) {
                Ok((mut camera, device)) => {
                    if tell.send(Ok((camera.frame_format(), device))).is_ok() {
                        deliver(&mut camera, index, &*clock, &send);
                    }
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            })
            .map_err(|e| Error::CameraIo {
                doing: "start the thread of",
                path: config.name.clone(),
                source: e.into(),
            })?;
        let (format, device) = told.recv_timeout(OPENING).map_err(|_| silent(&config.name, OPENING))??;
        Ok(Self { spec: config.spec(), deliveries, format, next: 0, device })
    }
}

impl Source for NokhwaCamera {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    fn grab(&mut self, buffers: &mut Buffers) -> Result<Picture> {
        let delivery = self.deliveries.recv_timeout(PATIENCE).map_err(|e| match e {
            RecvTimeoutError::Timeout => silent(&self.spec.name, PATIENCE),
            RecvTimeoutError::Disconnected => Error::CameraGone {
                camera: self.spec.name.clone(),
                path: self.device.path.clone().unwrap_or_default(),
            },
        })?;
        let (bytes, captured) = delivery?;
        let sequence = self.next;
        self.next += 1;
        let size = self.spec.size;
        let damaged = |what: String| Content::Damaged(what.into());
        let content = if self.format == FrameFormat::MJPEG {
            match jpeg::trim(&bytes) {
                Some(file) => Content::Jpeg(Arc::from(file)),
                None => damaged(format!("{} bytes came that are no whole JPEG file", bytes.len())),
            }
        } else {
            let mut rgb = buffers.take(size.rgb_len());
            if yuyv::to_rgb(&bytes, 2 * size.width as usize, size, Range::Limited, &mut rgb) {
                Content::Frame(Frame::new(size, rgb, sequence, captured)?)
            } else {
                buffers.give(rgb);
                damaged(format!("{} bytes came, a YUYV picture of {size} has more", bytes.len()))
            }
        };
        Ok(Picture { sequence, captured, content })
    }

    fn device(&self) -> Option<&DeviceInfo> {
        Some(&self.device)
    }
}

/// Opens the camera and agrees on its format.
fn start(config: &CameraConfig, index: u32) -> Result<(::nokhwa::Camera, DeviceInfo)> {
    // macOS asks the user once; the camera cannot be opened before.
    #[cfg(target_os = "macos")]
    ::nokhwa::nokhwa_initialize(|_| ());
    let FrameSize { width, height } = config.size;
    let accepted: &[FrameFormat] = match config.format {
        PixelFormat::Mjpg => &[FrameFormat::MJPEG],
        PixelFormat::Yuyv => &[FrameFormat::YUYV],
        PixelFormat::Auto => &[FrameFormat::MJPEG, FrameFormat::YUYV],
    };
    let first = accepted.first().copied().unwrap_or(FrameFormat::MJPEG);
    let closest = CameraFormat::new(Resolution::new(width, height), first, config.fps);
    let request = RequestedFormat::with_formats(RequestedFormatType::Closest(closest), accepted);
    let mut camera = ::nokhwa::Camera::with_backend(CameraIndex::Index(index), request, ApiBackend::Auto)
        .map_err(|e| failed("open", index, e))?;
    let (size, format) = (camera.resolution(), camera.frame_format());
    let got = FrameSize::new(size.width(), size.height());
    if got != config.size || !accepted.contains(&format) {
        return Err(Error::CameraFormat {
            camera: config.name.clone(),
            wanted: config.size.to_string(),
            offered: format!("{format} {got}"),
            path: path_of(index),
        });
    }
    camera.open_stream().map_err(|e| failed("start", index, e))?;
    let device = DeviceInfo {
        path: Some(path_of(index)),
        driver: "nokhwa".into(),
        card: camera.info().human_name(),
        bus: camera.info().description().to_string(),
        format: if format == FrameFormat::MJPEG { "MJPG".into() } else { "YUYV".into() },
        format_wanted: config.format.fourcc().unwrap_or_default().into(),
        fps: Some(f64::from(camera.frame_rate())),
        fps_wanted: config.fps,
        controls: untaken(&config.controls),
        ..DeviceInfo::default()
    };
    Ok((camera, device))
}

/// Sends pictures until the receiver is gone or the camera fails.
fn deliver(camera: &mut ::nokhwa::Camera, index: u32, clock: &dyn Clock, send: &SyncSender<Delivery>) {
    loop {
        let delivery = match camera.frame_raw() {
            Ok(bytes) => Ok((bytes.into_owned(), clock.now())),
            Err(e) => Err(failed("take a picture of", index, e)),
        };
        let is_end = delivery.is_err();
        if send.send(delivery).is_err() || is_end {
            return;
        }
    }
}

fn path_of(index: u32) -> String {
    format!("nokhwa {index}")
}

fn failed(doing: &'static str, index: u32, error: ::nokhwa::NokhwaError) -> Error {
    // Its errors may not change threads on every system.
    Error::CameraIo { doing, path: path_of(index), source: error.to_string().into() }
}

fn silent(camera: &str, waited: Duration) -> Error {
    let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    Error::CameraSilent { camera: camera.to_string(), waited_ms }
}

/// What was asked for, none of which was done.
fn untaken(controls: &Controls) -> Vec<ControlReport> {
    [
        ("exposure", "us", controls.exposure_us),
        ("gain", "", controls.gain),
        ("white_balance", "K", controls.white_balance_k),
        ("power_line", "Hz", controls.power_line_hz),
        ("focus", "", controls.focus),
    ]
    .into_iter()
    .filter_map(|(name, unit, setting)| {
        let wanted = setting.and_then(Setting::locked)?;
        Some(ControlReport {
            name,
            unit,
            wanted: Some(wanted),
            got: None,
            automatic: Automatic::None,
            range: None,
            fault: Some("controls are not set on this system".to_string()),
        })
    })
    .collect()
}
