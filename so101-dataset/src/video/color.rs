//! RGB to planar 4:2:0 and back: BT.601, limited range, rounded.
//!
//! The encoder crate's own conversion truncates (luma is 0.46 of a level too dark), so the `yuv` crate's 15-bit path
//! does it, with run-time dispatch to AVX2, SSE4.1 or NEON. Tests hold it against the formula of ITU-R BT.601.

use so101_hal::FrameSize;
use yuv::{
    BufferStoreMut, YuvConversionMode, YuvPlanarImage, YuvPlanarImageMut, YuvRange, YuvStandardMatrix,
    rgb_to_yuv420, yuv420_to_rgb,
};

use crate::error::{Error, Result};

/// One picture as the codec has it: luma in full size, two chroma planes of half the width and height.
///
/// ```
/// use so101_dataset::video::I420;
/// use so101_hal::FrameSize;
///
/// let mut picture = I420::new(FrameSize::new(4, 2))?;
/// picture.fill_from_rgb(&[255; 24])?;
/// assert_eq!(picture.luma(), [235; 8]); // white in limited range
/// # Ok::<(), so101_dataset::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct I420 {
    size: FrameSize,
    y: Vec<u8>,
    u: Vec<u8>,
    v: Vec<u8>,
}

impl I420 {
    /// A black picture.
    ///
    /// # Errors
    /// [`Error::VideoSize`] for an empty picture or an odd side.
    pub fn new(size: FrameSize) -> Result<Self> {
        let FrameSize { width, height } = size;
        if width == 0 || height == 0 || width % 2 != 0 || height % 2 != 0 {
            return Err(Error::VideoSize { size, rule: "width and height must be even" });
        }
        let pixels = width as usize * height as usize;
        Ok(Self { size, y: vec![16; pixels], u: vec![128; pixels / 4], v: vec![128; pixels / 4] })
    }

    /// Width and height of the picture.
    #[must_use]
    pub const fn size(&self) -> FrameSize {
        self.size
    }

    /// Luma, `[height][width]`, 16 (black) to 235 (white).
    #[must_use]
    pub fn luma(&self) -> &[u8] {
        &self.y
    }

    /// Blue and red difference, each `[height / 2][width / 2]`, 16 to 240, 128 for grey.
    #[must_use]
    pub fn chroma(&self) -> (&[u8], &[u8]) {
        (&self.u, &self.v)
    }

    /// Converts a picture of this size, `[height][width][r, g, b]`; allocates nothing.
    ///
    /// # Errors
    /// [`Error::VideoSize`] when the bytes are not those of a picture of this size.
    pub fn fill_from_rgb(&mut self, rgb: &[u8]) -> Result<()> {
        let (size, stride) = (self.size, self.size.width);
        let misfit = || Error::VideoSize { size, rule: "its RGB bytes do not fit its size" };
        if rgb.len() != size.rgb_len() {
            return Err(misfit());
        }
        let mut planes = YuvPlanarImageMut {
            y_plane: BufferStoreMut::Borrowed(&mut self.y),
            y_stride: stride,
            u_plane: BufferStoreMut::Borrowed(&mut self.u),
            u_stride: stride / 2,
            v_plane: BufferStoreMut::Borrowed(&mut self.v),
            v_stride: stride / 2,
            width: size.width,
            height: size.height,
        };
        let (range, matrix) = (YuvRange::Limited, YuvStandardMatrix::Bt601);
        rgb_to_yuv420(&mut planes, rgb, stride * 3, range, matrix, YuvConversionMode::Professional)
            .map_err(|_| misfit())
    }

    /// Copies planes of this size, without their padding.
    pub(super) fn copy_from(&mut self, planes: &Planes<'_>) -> Result<()> {
        let size = self.size;
        if planes.size != size {
            return Err(Error::VideoSize { size, rule: "the decoded picture has another size" });
        }
        let (width, half) = (size.width as usize, size.width as usize / 2);
        let (luma, chroma) = (planes.strides.0 as usize, planes.strides.1 as usize);
        let rows = [
            (&mut self.y, planes.y, width, luma),
            (&mut self.u, planes.u, half, chroma),
            (&mut self.v, planes.v, half, chroma),
        ];
        for (to, from, width, stride) in rows {
            for (to, from) in to.chunks_exact_mut(width).zip(from.chunks(stride.max(1))) {
                to.copy_from_slice(from.get(..width).ok_or(Error::VideoSize {
                    size,
                    rule: "the decoded picture ends before its last row",
                })?);
            }
        }
        Ok(())
    }

    /// The picture as RGB.
    ///
    /// # Errors
    /// [`Error::VideoSize`] when `rgb` has not the bytes of a picture of this size.
    pub fn write_rgb(&self, rgb: &mut [u8]) -> Result<()> {
        Planes {
            size: self.size,
            y: &self.y,
            u: &self.u,
            v: &self.v,
            strides: (self.size.width, self.size.width / 2),
        }
        .write_rgb(rgb)
    }
}

/// Planes that somebody else owns, with padding.
pub(super) struct Planes<'a> {
    pub(super) size: FrameSize,
    pub(super) y: &'a [u8],
    pub(super) u: &'a [u8],
    pub(super) v: &'a [u8],
    /// Bytes from row to row of luma and of chroma.
    pub(super) strides: (u32, u32),
}

impl Planes<'_> {
    pub(super) fn write_rgb(&self, rgb: &mut [u8]) -> Result<()> {
        let size = self.size;
        let misfit = || Error::VideoSize { size, rule: "its planes or RGB bytes do not fit its size" };
        if rgb.len() != size.rgb_len() {
            return Err(misfit());
        }
        let planes = YuvPlanarImage {
            y_plane: self.y,
            y_stride: self.strides.0,
            u_plane: self.u,
            u_stride: self.strides.1,
            v_plane: self.v,
            v_stride: self.strides.1,
            width: size.width,
            height: size.height,
        };
        yuv420_to_rgb(&planes, rgb, size.width * 3, YuvRange::Limited, YuvStandardMatrix::Bt601)
            .map_err(|_| misfit())
    }
}

#[cfg(test)]
mod tests;
