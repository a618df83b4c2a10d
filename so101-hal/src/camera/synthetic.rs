//! Drawn pictures with faults at will: the double of a camera.

mod draw;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::picture::{Buffers, Content, Picture, Source};
use super::{Camera, CameraSpec, DeviceInfo};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameSize};

/// What a [`SyntheticCamera`] shows and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SyntheticOptions {
    /// Pictures a second.
    pub fps: u32,
    /// Decides the scene and the noise.
    pub seed: u64,
    /// Mean luma of the scene, 0 to 255.
    pub luminance: f64,
    /// Radius of the blur in pixels; 0 = sharp.
    pub blur_px: u32,
    /// How far the scene is moved to the right and downwards, in pixels.
    pub shift_px: [f64; 2],
    /// Noise in codes, to each side.
    pub noise: u8,
    /// Every so many-th picture never comes; 0 = all come.
    pub drop_every: u64,
    /// Every so many-th picture comes damaged; 0 = all are whole.
    pub damage_every: u64,
    /// Every other picture comes later by so many milliseconds.
    pub late_ms: u32,
    /// A size to deliver instead of the one that was declared.
    pub delivers: Option<FrameSize>,
    /// The camera is unplugged after so many pictures.
    pub unplug_after: Option<u64>,
}

impl Default for SyntheticOptions {
    fn default() -> Self {
        Self {
            fps: 30,
            seed: 0,
            luminance: 110.0,
            blur_px: 0,
            shift_px: [0.0; 2],
            noise: 0,
            drop_every: 0,
            damage_every: 0,
            late_ms: 0,
            delivers: None,
            unplug_after: None,
        }
    }
}

/// A camera that draws: a textured scene that stands still, and a disc that moves across it. Equal seeds and numbers give
/// equal pictures; the time is the clock's, so that on a virtual clock nothing waits.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::camera::synthetic::{SyntheticCamera, SyntheticOptions};
/// use so101_hal::{Camera, CameraSpec, VirtualClock};
/// let clock = Arc::new(VirtualClock::new());
/// let mut dim = SyntheticOptions::default();
/// dim.luminance = 30.0;
/// let mut camera = SyntheticCamera::new(CameraSpec::new("main", 64, 48), dim, clock);
/// let frame = camera.capture()?;
/// assert!((so101_hal::camera::quality::mean_luma(&frame) - 30.0).abs() < 3.0);
/// # Ok::<(), so101_hal::Error>(())
/// ```
pub struct SyntheticCamera {
    spec: CameraSpec,
    options: SyntheticOptions,
    clock: Arc<dyn Clock>,
    start: Timestamp,
    next: u64,
    shown: u64,
    scene: Box<[u8]>,
    buffers: Buffers,
    device: DeviceInfo,
}

impl core::fmt::Debug for SyntheticCamera {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SyntheticCamera")
            .field("spec", &self.spec)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl SyntheticCamera {
    /// A camera whose first picture is taken now.
    #[must_use]
    pub fn new(spec: CameraSpec, options: SyntheticOptions, clock: Arc<dyn Clock>) -> Self {
        let start = clock.now();
        let size = options.delivers.unwrap_or(spec.size);
        let scene = draw::scene(size, &options);
        let fps = options.fps.max(1);
        let device = DeviceInfo {
            driver: "synthetic".into(),
            card: "synthetic camera".into(),
            format: "RGB".into(),
            fps: Some(f64::from(fps)),
            fps_wanted: fps,
            ..DeviceInfo::default()
        };
        Self { spec, options, clock, start, next: 0, shown: 0, scene, buffers: Buffers::new(), device }
    }

    /// When picture `number` is taken.
    fn due(&self, number: u64) -> Timestamp {
        let nanos = u128::from(number) * 1_000_000_000 / u128::from(self.options.fps.max(1));
        let late = if number % 2 == 1 { self.options.late_ms } else { 0 };
        self.start
            + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            + Duration::from_millis(late.into())
    }

    /// The number of the picture to deliver: the next one, or a later one where the caller was away for long.
    fn number(&self) -> u64 {
        let passed_ns = self.clock.now().since(self.start).as_nanos();
        let newest = u64::try_from(passed_ns * u128::from(self.options.fps.max(1)) / 1_000_000_000)
            .unwrap_or(u64::MAX);
        let mut number = newest.max(self.next);
        if is_nth(number, self.options.drop_every) {
            number += 1;
        }
        number
    }
}

impl Source for SyntheticCamera {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    fn grab(&mut self, buffers: &mut Buffers) -> Result<Picture> {
        if self.options.unplug_after.is_some_and(|n| self.shown >= n) {
            return Err(Error::CameraGone { camera: self.spec.name.clone(), path: "synthetic".into() });
        }
        let sequence = self.number();
        let captured = self.due(sequence);
        self.clock.sleep_until(captured);
        self.next = sequence + 1;
        self.shown += 1;
        if is_nth(sequence, self.options.damage_every) {
            return Ok(Picture { sequence, captured, content: Content::Damaged("made so".into()) });
        }
        let size = self.options.delivers.unwrap_or(self.spec.size);
        let mut rgb = buffers.take(size.rgb_len());
        draw::picture(&self.scene, size, &self.options, sequence, &mut rgb);
        Ok(Picture {
            sequence,
            captured,
            content: Content::Frame(Frame::new(size, rgb, sequence, captured)?),
        })
    }

    fn device(&self) -> Option<&DeviceInfo> {
        Some(&self.device)
    }
}

impl Camera for SyntheticCamera {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    /// Waits for the next picture, and passes over none.
    fn capture(&mut self) -> Result<Frame> {
        let mut buffers = core::mem::take(&mut self.buffers);
        let picture = self.grab(&mut buffers);
        let frame = picture.and_then(|p| p.decode(&self.spec, &mut buffers));
        self.buffers = buffers;
        frame
    }

    fn device(&self) -> Option<&DeviceInfo> {
        Some(&self.device)
    }
}

/// Whether this is one of every `n`; never the first picture.
fn is_nth(number: u64, n: u64) -> bool {
    n > 0 && number % n == n - 1 && number > 0
}

#[cfg(test)]
mod tests;
