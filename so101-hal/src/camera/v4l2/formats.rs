//! What a camera offers: formats, sizes and rates.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::abi::{
    CAPTURE, DISCRETE, EnumFmt, EnumFrameIntervals, EnumFrameSizes, FormatDescription, FrameIntervals,
    FrameSizes,
};
use super::calls::{Calls, Errno};
use super::{fourcc_text, text_of};
use crate::frame::FrameSize;

/// A list of a driver is no longer; a longer one does not end.
const MOST: u32 = 256;

/// A pixel format of a camera.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FormatInfo {
    /// Four characters, such as `MJPG`.
    pub fourcc: String,
    /// In words.
    pub description: String,
    /// The sizes; of a camera that takes any in a range, the smallest and the largest.
    pub sizes: Vec<SizeInfo>,
}

/// A size of a pixel format.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SizeInfo {
    /// Width and height.
    pub size: FrameSize,
    /// Pictures a second; of a camera that takes any in a range, the highest.
    pub fps: Vec<f64>,
}

/// Asks for all formats.
///
/// # Errors
/// The kernel's error number, but for the ends of the lists.
pub fn formats<C: Calls>(calls: &mut C) -> Result<Vec<FormatInfo>, Errno> {
    let mut formats = Vec::new();
    for index in 0..MOST {
        let mut f = FormatDescription { index, kind: CAPTURE, ..FormatDescription::ZERO };
        if is_end(calls.ioctl::<EnumFmt>(&mut f))? {
            break;
        }
        formats.push(FormatInfo {
            fourcc: fourcc_text(f.pixelformat),
            description: text_of(&f.description),
            sizes: sizes(calls, f.pixelformat)?,
        });
    }
    Ok(formats)
}

/// The pixel formats alone, as numbers.
pub(super) fn codes<C: Calls>(calls: &mut C) -> Result<Vec<u32>, Errno> {
    let mut codes = Vec::new();
    for index in 0..MOST {
        let mut f = FormatDescription { index, kind: CAPTURE, ..FormatDescription::ZERO };
        if is_end(calls.ioctl::<EnumFmt>(&mut f))? {
            break;
        }
        codes.push(f.pixelformat);
    }
    Ok(codes)
}

/// The sizes of a pixel format.
pub(super) fn sizes<C: Calls>(calls: &mut C, pixel_format: u32) -> Result<Vec<SizeInfo>, Errno> {
    let mut sizes = Vec::new();
    for index in 0..MOST {
        let mut s = FrameSizes { index, pixel_format, ..FrameSizes::ZERO };
        if is_end(calls.ioctl::<EnumFrameSizes>(&mut s))? {
            break;
        }
        let discrete = s.kind == DISCRETE;
        let ends = if discrete {
            alloc::vec![FrameSize::new(s.width, s.height)]
        } else {
            alloc::vec![FrameSize::new(s.width, s.min_height), FrameSize::new(s.height, s.max_height)]
        };
        for size in ends {
            sizes.push(SizeInfo { size, fps: rates(calls, pixel_format, size)? });
        }
        if !discrete {
            break;
        }
    }
    Ok(sizes)
}

fn rates<C: Calls>(calls: &mut C, pixel_format: u32, size: FrameSize) -> Result<Vec<f64>, Errno> {
    let mut rates = Vec::new();
    for index in 0..MOST {
        let FrameSize { width, height } = size;
        let mut i = FrameIntervals { index, pixel_format, width, height, ..FrameIntervals::ZERO };
        if is_end(calls.ioctl::<EnumFrameIntervals>(&mut i))? {
            break;
        }
        if i.numerator > 0 {
            rates.push(f64::from(i.denominator) / f64::from(i.numerator));
        }
        if i.kind != DISCRETE {
            break;
        }
    }
    Ok(rates)
}

/// `EINVAL` ends a list; a driver without the list says `ENOTTY`.
fn is_end(result: Result<(), Errno>) -> Result<bool, Errno> {
    match result {
        Ok(()) => Ok(false),
        Err(Errno::INVAL | Errno::NOTTY) => Ok(true),
        Err(other) => Err(other),
    }
}
