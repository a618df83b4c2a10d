//! The noisy scene that the video figures are quoted on: moving gradients, a square, a panning texture, sensor noise.
//! The same construction as `tools/oracle/video_routes.py`, with a generator of our own for the noise.

use so101_hal::{Frame, FrameSize, Timestamp};

/// `n` pictures of `size`; `k` tells cameras apart.
pub(crate) fn frames(n: usize, size: FrameSize, k: usize) -> Vec<Frame> {
    let (w, h) = (size.width as usize, size.height as usize);
    let mut rng = Normal(0x9e37_79b9_7f4a_7c15 + k as u64);
    let noise: Vec<Vec<f32>> = (0..5).map(|_| (0..w * h * 3).map(|_| 2.5 * rng.next()).collect()).collect();
    let texture = Texture::new(w + n, h, &mut rng);
    (0..n)
        .map(|i| {
            let mut rgb = picture(i, k, w, h);
            for y in 0..h {
                for x in 0..w {
                    let t = 25.0 * texture.at(x + i, y);
                    let o = (y * w + x) * 3;
                    for c in 0..3 {
                        let v = f32::from(rgb[o + c]) + t + noise[i % 5][o + c];
                        rgb[o + c] = v.clamp(0.0, 255.0) as u8;
                    }
                }
            }
            Frame::new(size, rgb, i as u64, Timestamp::ZERO).expect("the buffer was made for this size")
        })
        .collect()
}

/// Gradients that drift, and a square that swings.
fn picture(i: usize, k: usize, w: usize, h: usize) -> Vec<u8> {
    let mut p = vec![0u8; w * h * 3];
    let s = h / 6;
    let cx = ((w - s) as f64 * (0.5 + 0.5 * (0.07 * i as f64 + k as f64).sin())) as usize;
    let cy = (h - s) / 2;
    for y in 0..h {
        for x in 0..w {
            let square = (cx..cx + s).contains(&x) && (cy..cy + s).contains(&y);
            let c = if square {
                [200, (60 + 20 * k) as u8, 40]
            } else {
                [
                    ((x * 255 / (w - 1) + 2 * i + 40 * k) % 256 / 2 + 32) as u8,
                    ((y * 255 / (h - 1) + 20 * k) % 256 / 2 + 32) as u8,
                    ((x + y) * 255 / (w + h - 2) / 2 + 64) as u8,
                ]
            };
            p[(y * w + x) * 3..][..3].copy_from_slice(&c);
        }
    }
    p
}

/// Noise on a 4-pixel grid, smoothed twice.
struct Texture {
    w: usize,
    v: Vec<f32>,
}

impl Texture {
    fn new(w: usize, h: usize, rng: &mut Normal) -> Self {
        let (cw, ch) = (w.div_ceil(4), h.div_ceil(4));
        let coarse: Vec<f32> = (0..cw * ch).map(|_| rng.next()).collect();
        let mut v: Vec<f32> = (0..w * h).map(|i| coarse[(i / w / 4) * cw + i % w / 4]).collect();
        for _ in 0..2 {
            let old = v.clone();
            let at = |x: usize, y: usize| old[(y % h) * w + x % w];
            for y in 0..h {
                for x in 0..w {
                    v[y * w + x] =
                        (at(x, y) + at(x, y + h - 1) + at(x + w - 1, y) + at(x + w - 1, y + h - 1)) / 4.0;
                }
            }
        }
        Self { w, v }
    }
    fn at(&self, x: usize, y: usize) -> f32 {
        self.v[y * self.w + x]
    }
}

/// Standard normal numbers: the sum of twelve uniform ones of a 64-bit congruential generator.
struct Normal(u64);

impl Normal {
    fn next(&mut self) -> f32 {
        let mut sum = -6.0;
        for _ in 0..12 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += (self.0 >> 40) as f32 / (1u64 << 24) as f32;
        }
        sum
    }
}
