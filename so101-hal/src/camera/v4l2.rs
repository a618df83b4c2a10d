//! Cameras of Linux (Video4Linux2), through the kernel's own calls.
//!
//! The calls are a trait, [`Calls`]: the device (on 64-bit Linux) and [`Replay`], which answers from a text of recorded
//! replies. So every step of [`V4l2Camera`] runs in tests: what is agreed with the camera, locked controls that do not take,
//! lost and damaged pictures, an unplug.
//!
//! # What was run on a device
//! Nothing: no camera and no `vivid` or `v4l2loopback` module was at hand. The replies in `tests/fixtures/camera/*.v4l2` were
//! written down after the kernel's documentation and its `uvcvideo` driver. Sizes, offsets and request numbers are tested
//! against those of `linux/videodev2.h` on x86-64, which 64-bit ARM shares. To record a real camera, wrap its calls into a
//! [`Recorder`] ([`record_calls`] and `find_cameras --record-calls` do).
//!
//! # Order of the calls
//! `QUERYCAP`, `ENUM_FMT`, `S_FMT`, `S_PARM`, controls, `REQBUFS`, `QUERYBUF` and mapping, `QBUF`, `STREAMON`; after the first
//! picture the controls are read back once more and set again where the start of the stream has changed them, as some cameras
//! do. From then on `poll`, `DQBUF`, copy, `QBUF`.

pub mod abi;
mod calls;
mod errors;
mod formats;
mod lock;
mod open;
mod replay;
mod stream;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod sys;

use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use core::time::Duration;

pub use calls::{Calls, Errno, Ready};
pub use formats::{FormatInfo, SizeInfo, formats};
pub use replay::{CallLog, Recorder, Replay};
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
pub use sys::Device;

use self::errors::Place;
use super::config::CameraConfig;
use super::picture::{Buffers, Picture, Source};
use super::{Camera, CameraSpec, DeviceInfo};
use crate::clock::{Clock, Timestamp};
use crate::error::Result;
use crate::frame::Frame;

/// How long a picture may take, at least; slow cameras get ten periods.
const PATIENCE: Duration = Duration::from_secs(2);

/// A camera of Linux, streaming.
pub struct V4l2Camera<C: Calls> {
    spec: CameraSpec,
    calls: C,
    clock: Arc<dyn Clock>,
    place: Place,
    device: DeviceInfo,
    controls: super::Controls,
    layout: stream::Layout,
    patience: Duration,
    /// Our numbers of pictures, from the kernel's.
    numbers: Numbers,
    checked: bool,
    buffers: Buffers,
}

impl<C: Calls> core::fmt::Debug for V4l2Camera<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("V4l2Camera")
            .field("spec", &self.spec)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
impl V4l2Camera<Device> {
    /// Opens a device and starts its stream.
    ///
    /// # Errors
    /// [`crate::Error::CameraNotFound`], [`crate::Error::CameraDenied`] and [`crate::Error::CameraHeld`] (with whom), and as
    /// [`Self::start`].
    pub fn open(config: &CameraConfig, path: &std::path::Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let place = Place::new(&config.name, &path.display().to_string());
        let device = Device::open(path).map_err(|e| place.error("open", e))?;
        Self::start(device, config, &place.path, clock)
    }
}

impl<C: Calls> V4l2Camera<C> {
    /// Agrees on size, format and rate with a device that is open, locks its controls and starts its stream.
    ///
    /// A control that does not take is no error: it is in [`DeviceInfo::controls`], and [`DeviceInfo::refused`] names it.
    ///
    /// # Errors
    /// [`crate::Error::CameraNode`], [`crate::Error::CameraFormat`], [`crate::Error::CameraHeld`],
    /// [`crate::Error::CameraBandwidth`], [`crate::Error::CameraGone`], [`crate::Error::CameraIo`].
    pub fn start(mut calls: C, config: &CameraConfig, path: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let place = Place::new(&config.name, path);
        let (mut device, layout) = open::agree(&mut calls, config, &place)?;
        device.controls =
            lock::lock(&mut calls, &config.controls).map_err(|e| place.error("set a control of", e))?;
        stream::begin(&mut calls, &place)?;
        let period = Duration::from_secs(1) / config.fps.max(1);
        Ok(Self {
            spec: config.spec(),
            calls,
            clock,
            place,
            device,
            controls: config.controls,
            layout,
            patience: PATIENCE.max(10 * period),
            numbers: Numbers::default(),
            checked: false,
            buffers: Buffers::new(),
        })
    }

    /// Reads the controls again: whether somebody, or the camera, has changed one since.
    ///
    /// # Errors
    /// [`crate::Error::CameraGone`], [`crate::Error::CameraIo`].
    pub fn check_controls(&mut self) -> Result<&[super::ControlReport]> {
        self.device.controls = lock::read(&mut self.calls, &self.controls)
            .map_err(|e| self.place.error("read a control of", e))?;
        Ok(&self.device.controls)
    }

    /// The calls, to look at what a [`Replay`] was asked or a [`Recorder`] has heard.
    pub const fn calls(&self) -> &C {
        &self.calls
    }

    /// The capture time on our clock of something that the kernel stamped.
    ///
    /// Both clocks are read now, and the age of the stamp is the same on both. Of three readings the one counts in which
    /// nothing came between.
    fn on_our_clock(&self, stamp: Duration) -> Timestamp {
        let mut best: Option<(Duration, Duration, Timestamp)> = None;
        for _ in 0..3 {
            let before = self.calls.monotonic_now();
            let now = self.clock.now();
            let after = self.calls.monotonic_now();
            let width = after.saturating_sub(before);
            if best.is_none_or(|(least, ..)| width < least) {
                best = Some((width, before + width / 2, now));
            }
            if width < Duration::from_micros(20) {
                break;
            }
        }
        let Some((_, kernel, now)) = best else { return self.clock.now() };
        let age = kernel.saturating_sub(stamp);
        Timestamp::from_start(now.since_start().saturating_sub(age))
    }

    /// Some cameras forget their settings when the stream starts: looks once, after the first picture, and sets them again.
    fn check_once(&mut self) -> Result<()> {
        if self.checked {
            return Ok(());
        }
        self.checked = true;
        self.check_controls()?;
        if self.device.refused().next().is_some() {
            self.device.controls = lock::lock(&mut self.calls, &self.controls)
                .map_err(|e| self.place.error("set a control of", e))?;
        }
        Ok(())
    }

    /// Takes one buffer of the kernel, once there is one, and gives it back.
    fn next_picture(&mut self, buffers: &mut Buffers, patience: Duration) -> Result<Option<Picture>> {
        let Some(taken) = stream::take(&mut self.calls, &self.place, patience)? else { return Ok(None) };
        let captured = match taken.stamp {
            Some(stamp) => self.on_our_clock(stamp),
            None => self.clock.now(),
        };
        self.device.stamps = taken.stamps;
        let sequence = self.numbers.of(taken.buffer.sequence);
        let stamp = (sequence, captured);
        let content = stream::content(&self.calls, &taken, &self.layout, self.spec.size, stamp, buffers)?;
        stream::give_back(&mut self.calls, &self.place, taken.buffer)?;
        Ok(Some(Picture { sequence, captured, content }))
    }
}

impl<C: Calls> Source for V4l2Camera<C> {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    fn grab(&mut self, buffers: &mut Buffers) -> Result<Picture> {
        let picture = self.next_picture(buffers, self.patience)?;
        let picture = picture.ok_or_else(|| self.place.silent(self.patience))?;
        self.check_once()?;
        Ok(picture)
    }

    fn device(&self) -> Option<&DeviceInfo> {
        Some(&self.device)
    }
}

impl<C: Calls> Camera for V4l2Camera<C> {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    /// Waits for a picture; of several that wait already, the newest.
    fn capture(&mut self) -> Result<Frame> {
        let mut buffers = core::mem::take(&mut self.buffers);
        let frame = self.grab(&mut buffers).and_then(|mut newest| {
            // As many as there are buffers can wait, not more.
            for _ in 0..stream::BUFFERS {
                let Some(next) = self.next_picture(&mut buffers, Duration::ZERO)? else { break };
                buffers.recycle(core::mem::replace(&mut newest, next));
            }
            newest.decode(&self.spec, &mut buffers)
        });
        self.buffers = buffers;
        frame
    }

    fn device(&self) -> Option<&DeviceInfo> {
        Some(&self.device)
    }
}

impl<C: Calls> Drop for V4l2Camera<C> {
    fn drop(&mut self) {
        stream::end(&mut self.calls);
    }
}

/// The formats, sizes and rates of a device, which need not be free for that.
///
/// # Errors
/// As `V4l2Camera::open`; [`crate::Error::CameraConfig`] where there is no V4L2.
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
pub fn formats_of(path: &std::path::Path) -> Result<alloc::vec::Vec<FormatInfo>> {
    let place = Place::new("", &path.display().to_string());
    let mut device = Device::open(path).map_err(|e| place.error("open", e))?;
    formats(&mut device).map_err(|e| place.error("list the formats of", e))
}

/// Opens a device, takes up to `pictures` pictures and gives back all calls and replies as a text for [`Replay`]. What
/// fails on the way is a part of it.
///
/// # Errors
/// Where the device cannot be opened; [`crate::Error::CameraConfig`] where there is no V4L2.
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
pub fn record_calls(config: &CameraConfig, path: &std::path::Path, pictures: u32) -> Result<String> {
    let place = Place::new(&config.name, &path.display().to_string());
    let device = Device::open(path).map_err(|e| place.error("open", e))?;
    let mut recorder = Recorder::new(device);
    let _ = formats(&mut recorder);
    let clock: Arc<dyn Clock> = Arc::new(crate::clock::SystemClock::new());
    let log = recorder.log();
    if let Ok(mut camera) = V4l2Camera::start(recorder, config, &place.path, clock) {
        let mut buffers = Buffers::new();
        for _ in 0..pictures {
            if camera.grab(&mut buffers).is_err() {
                break;
            }
        }
    }
    Ok(log.text())
}

/// The formats of a device: this system has no V4L2.
///
/// # Errors
/// [`crate::Error::CameraConfig`].
#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
pub fn formats_of(path: &std::path::Path) -> Result<alloc::vec::Vec<FormatInfo>> {
    Err(nowhere(path))
}

/// Records a device: this system has no V4L2.
///
/// # Errors
/// [`crate::Error::CameraConfig`].
#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
pub fn record_calls(_config: &CameraConfig, path: &std::path::Path, _pictures: u32) -> Result<String> {
    Err(nowhere(path))
}

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn nowhere(path: &std::path::Path) -> crate::error::Error {
    let what = alloc::format!("this is a V4L2 device, which 64-bit Linux alone has: {}", path.display());
    crate::error::Error::CameraConfig { what }
}

/// The kernel counts pictures in 32 bits, from where it likes; we count in 64 from 0.
#[derive(Debug, Default)]
struct Numbers {
    last: Option<u32>,
    ours: u64,
}

impl Numbers {
    fn of(&mut self, kernel: u32) -> u64 {
        if let Some(last) = self.last {
            // A driver that does not count, or begins again, gives the next picture all the same.
            let steps = kernel.wrapping_sub(last);
            self.ours += if (1..=u32::MAX / 2).contains(&steps) { u64::from(steps) } else { 1 };
        }
        self.last = Some(kernel);
        self.ours
    }
}

/// A text from the kernel, up to its zero.
fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).trim().to_string()
}

/// Four characters as the kernel writes pixel formats.
fn fourcc_text(code: u32) -> String {
    code.to_le_bytes()
        .iter()
        .map(|&b| if b.is_ascii_graphic() { char::from(b) } else { ' ' })
        .collect::<String>()
        .trim()
        .into()
}

#[cfg(test)]
mod tests;
