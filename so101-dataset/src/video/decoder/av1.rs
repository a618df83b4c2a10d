//! AV1 by rav1d: what LeRobot records by default.

use so101_hal::FrameSize;

use super::Show;
use crate::ffi::rav1d::Av1Decoder;
use crate::mp4::Mp4Index;
use crate::video::color::Planes;

/// One warm decoder: each sample gives its picture at once.
pub(in crate::video) struct Av1 {
    inner: Av1Decoder,
}

/// Whether the `av1C` record names a stream that is decoded here; else the codec's name.
///
/// AV1 Codec ISO Media File Format Binding 1.2, section 2.3.3.
pub(super) fn check(index: &Mp4Index) -> Result<(), String> {
    if index.is_reordered() {
        return Err("av01 with reordered pictures".to_owned());
    }
    match index.codec_config.as_slice() {
        // Without the record the stream speaks for itself.
        [] => Ok(()),
        [_, profile, flags, ..] if profile >> 5 == 0 && flags & 0b0101_0000 == 0 => Ok(()),
        [_, profile, flags, ..] => {
            let depth = if flags & 0x40 == 0 { "8-bit" } else { "10-bit" };
            let colour = if flags & 0x10 == 0 { "" } else { " monochrome" };
            Err(format!("av01 of profile {}, {depth}{colour}", profile >> 5))
        }
        _ => Err("av01 without a usable av1C box".to_owned()),
    }
}

impl Av1 {
    pub(super) fn new(size: FrameSize) -> Result<Self, String> {
        let inner = Av1Decoder::new(size.width.saturating_mul(size.height))?;
        Ok(Self { inner })
    }

    pub(super) fn reset(&mut self) {
        self.inner.flush();
    }

    pub(super) fn decode(&mut self, sample: &[u8], show: &mut Show<'_>) -> Result<(), String> {
        let mut shown = 0;
        self.inner.decode(sample, &mut |p| {
            shown += 1;
            let size = FrameSize::new(p.width, p.height);
            show(&Planes { size, y: p.y, u: p.u, v: p.v, strides: p.strides });
        })?;
        match shown {
            1 => Ok(()),
            n => Err(format!("{n} pictures came out of it, 1 is expected")),
        }
    }
}
