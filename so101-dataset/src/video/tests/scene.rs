//! Drawn pictures that carry their own number.

use so101_hal::FrameSize;

/// Blocks in the counter strip at the top, and its rows.
const BLOCKS: usize = 16;
const STRIP_ROWS: usize = 8;

/// A gradient, a square that moves, and a strip of 16 blocks: block `b` is white where bit `b` of `i` is set.
pub(super) fn plain(size: FrameSize, i: u64) -> Vec<u8> {
    let (w, h) = (size.width as usize, size.height as usize);
    let side = h / 6;
    let square = ((w - side) as f64 * (0.5 + 0.5 * (0.07 * i as f64).sin())) as usize;
    let mut rgb = Vec::with_capacity(size.rgb_len());
    for y in 0..h {
        for x in 0..w {
            let bit = i >> (x * BLOCKS / w) & 1;
            let inside = (square..square + side).contains(&x) && (h / 2..h / 2 + side).contains(&y);
            rgb.extend(match (y < STRIP_ROWS, inside) {
                (true, _) => [if bit == 1 { 255 } else { 0 }; 3],
                (_, true) => [200, 60, 40],
                _ => {
                    let ramp = |at: usize, of: usize| (at * 255 / of % 256 / 2 + 32) as u8;
                    [ramp(x + 2 * i as usize, w), ramp(y, h), ramp(x + y, w + h)]
                }
            });
        }
    }
    rgb
}

/// [`plain`] with a texture that pans and sensor noise with a deviation of 2.5 levels.
pub(super) fn noisy(size: FrameSize, i: u64) -> Vec<u8> {
    let w = size.width as usize;
    let mut rgb = plain(size, i);
    let hash = |n: u64| {
        let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
    };
    for (k, value) in rgb.iter_mut().enumerate().skip(STRIP_ROWS * w * 3) {
        let (x, y) = ((k / 3 % w) as u64, (k / 3 / w) as u64);
        let texture = |x: u64, y: u64| f64::from(hash(x / 4 * 7919 + y / 4) % 64) - 31.5;
        let smooth = (texture(x + i, y) + texture(x + i + 1, y) + texture(x + i, y + 1)) / 3.0;
        // The sum of four uniform numbers is close to normal.
        let noise: f64 =
            (0..4).map(|s| f64::from(hash(k as u64 * 20 + (i % 5) * 4 + s) % 256) / 256.0 - 0.5).sum();
        *value = (f64::from(*value) + smooth + noise * 4.33).clamp(0.0, 255.0) as u8;
    }
    rgb
}

/// The number in a decoded picture's strip.
pub(super) fn counter(size: FrameSize, rgb: &[u8]) -> u64 {
    let w = size.width as usize;
    let block = |b: usize| (2 * b + 1) * w / (2 * BLOCKS);
    (0..BLOCKS).map(|b| u64::from(rgb[(STRIP_ROWS / 2 * w + block(b)) * 3 + 1] > 127) << b).sum()
}
