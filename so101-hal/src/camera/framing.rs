//! Whether a camera still looks at the scene as it did: the shift of its picture against a stored reference.
//!
//! Both pictures are searched for the shift of highest normalised cross-correlation (NCC, which a change of brightness or
//! contrast does not move), first scaled down, then level by level up to every pixel, then between pixels by a parabola.
//!
//! ```
//! use so101_hal::camera::framing::Reference;
//! use so101_hal::camera::synthetic::{SyntheticCamera, SyntheticOptions};
//! use so101_hal::{Camera, CameraSpec, VirtualClock};
//! use std::sync::Arc;
//! # fn main() -> so101_hal::Result<()> {
//! let clock = Arc::new(VirtualClock::new());
//! let spec = CameraSpec::new("main", 320, 240);
//! let mut camera = SyntheticCamera::new(spec.clone(), SyntheticOptions::default(), clock.clone());
//! let reference = Reference::of("main", &camera.capture()?);
//!
//! // Somebody knocks against the camera, and the sun comes out.
//! let mut knocked = SyntheticOptions::default();
//! knocked.shift_px = [12.0, -7.0];
//! knocked.luminance = 150.0;
//! let mut camera = SyntheticCamera::new(spec, knocked, clock);
//! let shift = reference.shift_of(&camera.capture()?)?;
//! assert!((shift.dx_px - 12.0).abs() < 1.0 && (shift.dy_px + 7.0).abs() < 1.0, "{shift:?}");
//! assert!(shift.is_certain());
//! # Ok(()) }
//! ```

#[cfg(feature = "std")]
mod pgm;
mod search;

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::quality;
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameSize};

/// Shifts are looked for up to this far, in pixels to each side (at most two fifths of the picture).
pub const SEARCH_PX: u32 = 56;

/// Below this correlation the pictures do not show the same scene.
pub const LEAST_NCC: f64 = 0.5;

/// The correlation of the best shift has to be this far above that of any other place.
pub const LEAST_LEAD: f64 = 0.03;

/// The picture that a camera gave when it was in place, as luma, with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    camera: String,
    size: FrameSize,
    grey: Vec<u8>,
    focus: f64,
    mean_luma: f64,
}

/// Where the scene lies now, against the reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FramingShift {
    /// How far the scene has moved to the right in the picture, in pixels of the camera.
    pub dx_px: f64,
    /// How far it has moved downwards.
    pub dy_px: f64,
    /// Normalised cross-correlation at that shift, 1 = the same picture, 0 = nothing alike (or nothing to see).
    pub ncc: f64,
    /// How far the correlation is above the best one elsewhere; small where a pattern repeats.
    pub lead: f64,
}

impl FramingShift {
    /// Length of the shift in pixels.
    #[must_use]
    pub fn distance_px(&self) -> f64 {
        crate::math::sqrt(self.dx_px * self.dx_px + self.dy_px * self.dy_px)
    }

    /// Whether the figures can be trusted: the pictures are alike, and at one place more than at any other. A wall, a
    /// dark room or another scene gives shifts that mean nothing.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.ncc >= LEAST_NCC && self.lead >= LEAST_LEAD
    }
}

impl Reference {
    /// The picture of a camera that is in place.
    pub fn of(camera: impl Into<String>, frame: &Frame) -> Self {
        Self {
            camera: camera.into(),
            size: frame.size(),
            grey: quality::grey(frame),
            focus: quality::focus_measure(frame),
            mean_luma: quality::mean_luma(frame),
        }
    }

    /// Name of the camera.
    #[must_use]
    pub fn camera(&self) -> &str {
        &self.camera
    }

    /// Size of the picture.
    #[must_use]
    pub const fn size(&self) -> FrameSize {
        self.size
    }

    /// Its focus measure ([`quality::focus_measure`]).
    #[must_use]
    pub const fn focus(&self) -> f64 {
        self.focus
    }

    /// Its mean luma, 0 to 255.
    #[must_use]
    pub const fn mean_luma(&self) -> f64 {
        self.mean_luma
    }

    /// How far the scene of `frame` is shifted.
    ///
    /// # Errors
    /// [`Error::CameraSize`] for a picture of another size.
    pub fn shift_of(&self, frame: &Frame) -> Result<FramingShift> {
        if frame.size() != self.size {
            return Err(Error::CameraSize {
                camera: self.camera.clone(),
                expected: self.size,
                got: frame.size(),
            });
        }
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let now = quality::grey(frame);
        Ok(search::shift(
            search::Plane::new(&self.grey, width, height),
            search::Plane::new(&now, width, height),
            SEARCH_PX as usize,
        ))
    }
}

#[cfg(test)]
mod tests;
