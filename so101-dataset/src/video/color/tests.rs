use proptest::prelude::*;

use super::*;

/// ITU-R BT.601-7 section 2.5: luma and the two colour differences of R, G, B in 0..=255, in limited range codes.
fn exact(rgb: [f64; 3]) -> [f64; 3] {
    let [r, g, b] = rgb;
    let y = 0.299 * r + 0.587 * g + 0.114 * b;
    [
        16.0 + y * 219.0 / 255.0,
        128.0 + (b - y) / 1.772 * 224.0 / 255.0,
        128.0 + (r - y) / 1.402 * 224.0 / 255.0,
    ]
}

fn exact_rgb(yuv: [u8; 3]) -> [f64; 3] {
    let y = (f64::from(yuv[0]) - 16.0) * 255.0 / 219.0;
    let [cb, cr] = [yuv[1], yuv[2]].map(|c| (f64::from(c) - 128.0) * 255.0 / 224.0);
    let g = y - 1.772 * 0.114 / 0.587 * cb - 1.402 * 0.299 / 0.587 * cr;
    [y + 1.402 * cr, g, y + 1.772 * cb].map(|v| v.clamp(0.0, 255.0))
}

/// Difference of codes from the rounded formula: largest, and mean over all of a plane.
#[derive(Default)]
struct Errors {
    largest: f64,
    sum: f64,
    count: f64,
}

impl Errors {
    fn add(&mut self, got: u8, exact: f64) {
        let error = f64::from(got) - exact.round();
        self.largest = self.largest.max(error.abs());
        self.sum += error;
        self.count += 1.0;
    }
    fn mean(&self) -> f64 {
        (self.sum / self.count).abs()
    }
}

fn errors_of(size: FrameSize, rgb: &[u8]) -> [Errors; 3] {
    let mut picture = I420::new(size).unwrap();
    picture.fill_from_rgb(rgb).unwrap();
    let (w, h) = (size.width as usize, size.height as usize);
    let pixel =
        |x: usize, y: usize| -> [f64; 3] { core::array::from_fn(|c| f64::from(rgb[(y * w + x) * 3 + c])) };
    let mut errors = [(); 3].map(|()| Errors::default());
    for y in 0..h {
        for x in 0..w {
            errors[0].add(picture.luma()[y * w + x], exact(pixel(x, y))[0]);
        }
    }
    let (u, v) = picture.chroma();
    for y in 0..h / 2 {
        for x in 0..w / 2 {
            let four = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(i, j)| pixel(2 * x + i, 2 * y + j));
            let mean = core::array::from_fn(|c| four.iter().map(|p| p[c]).sum::<f64>() / 4.0);
            errors[1].add(u[y * w / 2 + x], exact(mean)[1]);
            errors[2].add(v[y * w / 2 + x], exact(mean)[2]);
        }
    }
    errors
}

fn random(size: FrameSize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..size.rgb_len()).map(|_| next()).collect()
}

#[test]
fn rgb_to_yuv_is_the_rounded_formula_within_one_code_and_without_a_bias() {
    // Widths that leave every kind of rest behind the vector loops.
    for (w, h) in [(640, 480), (320, 240), (2, 2), (6, 4), (34, 6), (50, 20), (62, 2), (18, 32), (126, 98)] {
        let size = FrameSize::new(w, h);
        for (plane, errors) in errors_of(size, &random(size, 7)).iter().enumerate() {
            assert!(errors.largest <= 1.0, "{size} plane {plane}: {} codes off", errors.largest);
            if w * h > 50_000 {
                assert!(errors.mean() < 0.05, "{size} plane {plane}: {} codes off on average", errors.mean());
            }
        }
    }
}

#[test]
fn every_grey_keeps_its_level_and_has_no_colour() {
    let size = FrameSize::new(32, 2);
    for level in 0..=255u8 {
        let mut picture = I420::new(size).unwrap();
        picture.fill_from_rgb(&vec![level; size.rgb_len()]).unwrap();
        let want = 16.0 + f64::from(level) * 219.0 / 255.0;
        let near = |&y: &u8| (f64::from(y) - want).abs() < 0.51;
        assert!(picture.luma().iter().all(near), "{level}: {:?}, want {want}", &picture.luma()[..4]);
        let (u, v) = picture.chroma();
        assert!(u.iter().chain(v).all(|&c| c == 128), "{level}");
        let mut back = vec![0; size.rgb_len()];
        picture.write_rgb(&mut back).unwrap();
        assert!(back.iter().all(|b| b.abs_diff(level) <= 1), "{level} came back as {:?}", &back[..3]);
    }
}

#[test]
fn yuv_to_rgb_is_the_rounded_formula_within_one_code_and_without_a_bias() {
    let size = FrameSize::new(640, 480);
    // Codes around the middle stay clear of clipping, which the formula would answer with a bias of its own.
    for (low, spread) in [(16u8, 220u8), (96, 64)] {
        let mut picture = I420::new(size).unwrap();
        let noise = random(size, 99);
        let pixels = picture.y.len();
        let code = |n: u8| low + (u16::from(n) * u16::from(spread) / 256) as u8;
        picture.y.iter_mut().zip(&noise).for_each(|(p, &n)| *p = code(n));
        picture.u.iter_mut().zip(&noise[pixels..]).for_each(|(p, &n)| *p = code(n));
        picture.v.iter_mut().zip(&noise[2 * pixels..]).for_each(|(p, &n)| *p = code(n));
        let mut rgb = vec![0; size.rgb_len()];
        picture.write_rgb(&mut rgb).unwrap();
        let mut errors = [(); 3].map(|()| Errors::default());
        for (i, got) in rgb.chunks_exact(3).enumerate() {
            let (x, y) = (i % 640, i / 640);
            let c = y / 2 * 320 + x / 2;
            let want = exact_rgb([picture.y[i], picture.u[c], picture.v[c]]);
            (0..3).for_each(|k| errors[k].add(got[k], want[k]));
        }
        for (channel, e) in errors.iter().enumerate() {
            assert!(e.largest <= 1.0 && e.mean() < 0.05, "channel {channel}: {} and {}", e.largest, e.mean());
        }
    }
}

#[test]
fn odd_sizes_and_wrong_lengths_are_refused() {
    for size in [FrameSize::new(3, 2), FrameSize::new(2, 3), FrameSize::new(0, 2), FrameSize::new(2, 0)] {
        assert!(matches!(I420::new(size), Err(Error::VideoSize { .. })), "{size}");
    }
    let mut picture = I420::new(FrameSize::new(4, 2)).unwrap();
    assert!(matches!(picture.fill_from_rgb(&[0; 23]), Err(Error::VideoSize { .. })));
    assert!(matches!(picture.write_rgb(&mut [0; 25]), Err(Error::VideoSize { .. })));
}

proptest! {
    #[test]
    fn any_even_size_converts_within_one_code(w in 1u32..40, h in 1u32..12, seed in any::<u64>()) {
        let size = FrameSize::new(2 * w, 2 * h);
        for errors in errors_of(size, &random(size, seed)) {
            prop_assert!(errors.largest <= 1.0);
        }
    }
}
