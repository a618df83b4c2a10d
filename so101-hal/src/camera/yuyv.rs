//! YUYV (YUY2, packed 4:2:2) to RGB.
//!
//! ITU-R BT.601: `R = y + 1.402 (1-Kr) ..` with Kr = 0.299, Kb = 0.114. Limited range, the rule for cameras, has luma
//! 16..=235 and chroma 16..=240; full range has 0..=255 for both. Fixed point with 16 binary digits, which is exact to
//! well below half a code; two pixels share their chroma, as the cameras' own conversion does it.

use crate::frame::FrameSize;

/// Which codes are black and white.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// 16..=235.
    Limited,
    /// 0..=255.
    Full,
}

/// Factors with 16 binary digits: luma, red of V, green of U, green of V, blue of U; and the code of black.
struct Factors {
    y: i32,
    rv: i32,
    gu: i32,
    gv: i32,
    bu: i32,
    black: i32,
}

const LIMITED: Factors = Factors { y: 76_309, rv: 104_597, gu: -25_675, gv: -53_279, bu: 132_201, black: 16 };
const FULL: Factors = Factors { y: 65_536, rv: 91_881, gu: -22_553, gv: -46_802, bu: 116_130, black: 0 };

/// Converts `size.height` rows of `stride` bytes into `rgb`. `false` where the bytes do not fit the size.
#[must_use]
pub(crate) fn to_rgb(yuyv: &[u8], stride: usize, size: FrameSize, range: Range, rgb: &mut [u8]) -> bool {
    let (width, height) = (size.width as usize, size.height as usize);
    let row_bytes = 2 * width;
    let needed = if height == 0 { 0 } else { stride * (height - 1) + row_bytes };
    if !width.is_multiple_of(2)
        || stride < row_bytes
        || yuyv.len() < needed
        || rgb.len() != size.rgb_len()
        || width == 0
    {
        return false;
    }
    let factors = match range {
        Range::Limited => &LIMITED,
        Range::Full => &FULL,
    };
    for (row, out) in yuyv.chunks(stride).zip(rgb.chunks_exact_mut(3 * width)) {
        for (pair, out) in row.chunks_exact(4).zip(out.chunks_exact_mut(6)) {
            let &[y0, u, y1, v] = pair else { continue };
            let (u, v) = (i32::from(u) - 128, i32::from(v) - 128);
            let (r, g, b) = (factors.rv * v, factors.gu * u + factors.gv * v, factors.bu * u);
            for (y, out) in [y0, y1].into_iter().zip(out.chunks_exact_mut(3)) {
                let y = factors.y * (i32::from(y) - factors.black) + 32_768;
                for (o, c) in out.iter_mut().zip([r, g, b]) {
                    *o = ((y + c) >> 16).clamp(0, 255) as u8;
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// BT.601 in floating point, straight from its definition.
    fn reference(y: u8, u: u8, v: u8, range: Range) -> [f64; 3] {
        let (kr, kb) = (0.299, 0.114);
        let kg = 1.0 - kr - kb;
        let (y, u, v) = (f64::from(y), f64::from(u) - 128.0, f64::from(v) - 128.0);
        let (y, pb, pr) = match range {
            Range::Limited => ((y - 16.0) / 219.0, u / 224.0, v / 224.0),
            Range::Full => (y / 255.0, u / 255.0, v / 255.0),
        };
        let r = y + 2.0 * (1.0 - kr) * pr;
        let b = y + 2.0 * (1.0 - kb) * pb;
        let g = (y - kr * r - kb * b) / kg;
        [r, g, b].map(|c| (255.0 * c).clamp(0.0, 255.0))
    }

    fn one(y: u8, u: u8, v: u8, range: Range) -> [u8; 6] {
        let mut rgb = [0; 6];
        assert!(to_rgb(&[y, u, y, v], 4, FrameSize::new(2, 1), range, &mut rgb));
        rgb
    }

    #[test]
    fn every_colour_is_within_one_code_of_the_float_reference() {
        for range in [Range::Limited, Range::Full] {
            let mut worst = 0.0_f64;
            for y in 0..=255 {
                for u in (0..=255).step_by(5) {
                    for v in (0..=255).step_by(3) {
                        let rgb = one(y, u, v, range);
                        for (is, should) in rgb.iter().zip(reference(y, u, v, range)) {
                            worst = worst.max((f64::from(*is) - should).abs());
                        }
                    }
                }
            }
            // Half a code is the rounding itself.
            assert!(worst <= 0.51, "{range:?} {worst}");
        }
    }

    #[test]
    fn black_white_and_the_primaries_of_limited_range_are_exact() {
        for (yuv, rgb) in [
            ([16, 128, 128], [0, 0, 0]),
            ([235, 128, 128], [255, 255, 255]),
            ([81, 90, 240], [254, 0, 0]),
            ([145, 54, 34], [0, 255, 1]),
            ([41, 240, 110], [0, 0, 255]),
        ] {
            let [y, u, v] = yuv;
            assert_eq!(one(y, u, v, Range::Limited)[..3], rgb, "{yuv:?}");
        }
    }

    #[test]
    fn padding_behind_the_rows_is_left_out() {
        let yuyv = [16, 128, 235, 128, 9, 9, 235, 128, 16, 128, 9, 9];
        let mut rgb = [7; 12];
        assert!(to_rgb(&yuyv, 6, FrameSize::new(2, 2), Range::Limited, &mut rgb));
        assert_eq!(rgb, [0, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_bytes_of_any_size_are_converted_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200), w in 0_u32..12, h in 0_u32..8, stride in 0_usize..40,
        ) {
            let size = FrameSize::new(w, h);
            let mut rgb = alloc::vec![0; size.rgb_len()];
            let fits = to_rgb(&bytes, stride, size, Range::Limited, &mut rgb);
            prop_assert!(!fits || bytes.len() >= 2 * (w * h) as usize);
        }
    }
}
