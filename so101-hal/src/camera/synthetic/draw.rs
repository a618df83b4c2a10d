//! The scene of a synthetic camera and what moves in it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::SyntheticOptions;
use crate::frame::FrameSize;

/// Sizes of the texture's grains in pixels, and how much each of them counts.
const GRAINS: [(f64, f64); 3] = [(4.0, 0.35), (13.0, 0.35), (45.0, 0.3)];
/// The disc is this part of the picture's height across.
const DISC: f64 = 0.1;
/// Pictures that it needs to cross the picture.
const CROSSING: u64 = 90;

/// The still part: texture of the seed, shifted, blurred, at the wanted brightness.
pub(super) fn scene(size: FrameSize, options: &SyntheticOptions) -> Box<[u8]> {
    let (width, height) = (size.width as usize, size.height as usize);
    let [dx, dy] = options.shift_px;
    let mut grey = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            grey.push(texture(options.seed, x as f64 - dx, y as f64 - dy));
        }
    }
    for _ in 0..2 {
        blur(&mut grey, width, height, options.blur_px as usize);
    }
    // Texture is 0 to 1 around a half: a half becomes the wanted luminance, with the span that it leaves.
    let light = options.luminance.clamp(0.0, 255.0);
    let span = light.min(255.0 - light).min(90.0) * 2.0;
    let mean = grey.iter().sum::<f64>() / grey.len().max(1) as f64;
    grey.iter().map(|g| (light + span * (g - mean)).round().clamp(0.0, 255.0) as u8).collect()
}

/// One picture: the scene with the disc of this moment and the noise.
pub(super) fn picture(
    scene: &[u8],
    size: FrameSize,
    options: &SyntheticOptions,
    number: u64,
    rgb: &mut [u8],
) {
    for (out, &grey) in rgb.chunks_exact_mut(3).zip(scene) {
        out.fill(grey);
    }
    disc(size, options, number, rgb);
    if options.noise > 0 {
        let mut state = hash(options.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
        let span = 2 * u64::from(options.noise) + 1;
        for value in rgb {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = ((state >> 33) % span) as i32 - i32::from(options.noise);
            *value = (i32::from(*value) + noise).clamp(0, 255) as u8;
        }
    }
}

/// A disc of the scene's light, red more than the rest, that goes to and fro.
fn disc(size: FrameSize, options: &SyntheticOptions, number: u64, rgb: &mut [u8]) {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let phase = number % (2 * CROSSING);
    let along = phase.min(2 * CROSSING - phase) as f64 / CROSSING as f64;
    let radius = (DISC * height / 2.0).max(1.0);
    let (cx, cy) = (radius + along * (width - 2.0 * radius), height * 0.6);
    let light = options.luminance.clamp(0.0, 255.0);
    let colour = [(1.3 * light).min(255.0), 0.9 * light, 0.8 * light].map(|v| v as u8);
    let rows = (cy - radius).max(0.0) as usize..((cy + radius + 1.0).min(height)).max(0.0) as usize;
    let columns = (cx - radius).max(0.0) as usize..((cx + radius + 1.0).min(width)).max(0.0) as usize;
    for y in rows {
        for x in columns.clone() {
            let (rx, ry) = (x as f64 - cx, y as f64 - cy);
            let at = 3 * (y * size.width as usize + x);
            if rx * rx + ry * ry <= radius * radius
                && let Some(pixel) = rgb.get_mut(at..at + 3)
            {
                pixel.copy_from_slice(&colour);
            }
        }
    }
}

/// Box blur of rows and columns; the borders repeat.
fn blur(grey: &mut [f64], width: usize, height: usize, radius: usize) {
    if radius == 0 || width == 0 || height == 0 {
        return;
    }
    let mut line = vec![0.0; width.max(height)];
    let mut along = |start: usize, step: usize, len: usize| {
        for (i, slot) in line.iter_mut().take(len).enumerate() {
            let at = |k: isize| {
                grey.get(start + step * k.clamp(0, len as isize - 1) as usize).copied().unwrap_or(0.0)
            };
            let (from, to) = (i as isize - radius as isize, i as isize + radius as isize);
            *slot = (from..=to).map(at).sum::<f64>() / (2 * radius + 1) as f64;
        }
        for (i, value) in line.iter().take(len).enumerate() {
            if let Some(g) = grey.get_mut(start + step * i) {
                *g = *value;
            }
        }
    };
    for y in 0..height {
        along(y * width, 1, width);
    }
    for x in 0..width {
        along(x, width, height);
    }
}

/// Value noise of several grain sizes, 0 to 1, at any point of an endless plane.
fn texture(seed: u64, x: f64, y: f64) -> f64 {
    let mut sum = 0.0;
    for (octave, (grain, weight)) in GRAINS.iter().enumerate() {
        let (u, v) = (x / grain, y / grain);
        let (iu, iv) = (u.floor(), v.floor());
        let (fu, fv) = (u - iu, v - iv);
        let corner = |i: f64, j: f64| {
            let (i, j) = ((iu + i) as i64 as u64, (iv + j) as i64 as u64);
            let key = seed ^ (octave as u64) << 60 ^ hash(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash(j));
            (hash(key) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let above = corner(0.0, 0.0) * (1.0 - fu) + corner(1.0, 0.0) * fu;
        let below = corner(0.0, 1.0) * (1.0 - fu) + corner(1.0, 1.0) * fu;
        sum += weight * (above * (1.0 - fv) + below * fv);
    }
    sum
}

/// The finaliser of splitmix64 (Steele et al. 2014).
fn hash(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
