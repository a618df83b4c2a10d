//! Statistics of pictures: one exact 256-bin histogram a colour channel, from which every figure follows.

use serde::{Deserialize, Serialize};
use so101_hal::FrameSize;

use crate::stats::{FeatureSummary, QUANTILES, SummaryShape};

/// Number of colour channels, and of values that a channel can take.
const CHANNELS: usize = 3;
const LEVELS: usize = 256;
/// Most pictures that a stored record may claim: a thousand years at 30 Hz.
const MAX_FRAMES: u64 = 1 << 40;

/// LeRobot's rule: pictures whose larger side reaches this many pixels are sampled ...
const SAMPLE_FROM: u32 = 300;
/// ... so that about this many pixels of it are left.
const SAMPLE_TO: u32 = 150;

/// Distance in pixels, across and down, between the pixels that statistics look at.
///
/// The rule of LeRobot's `auto_downsample_height_width`: 4 for 640x480, 2 for 320x240, 1 below 300 pixels.
///
/// ```
/// use so101_dataset::sample_stride;
/// use so101_hal::FrameSize;
/// assert_eq!(sample_stride(FrameSize::new(640, 480)), 4);
/// assert_eq!(sample_stride(FrameSize::new(128, 96)), 1);
/// ```
#[must_use]
pub const fn sample_stride(size: FrameSize) -> usize {
    let larger = if size.width > size.height { size.width } else { size.height };
    if larger < SAMPLE_FROM { 1 } else { (larger / SAMPLE_TO) as usize }
}

/// Statistics of the pictures of one camera, per colour channel, scaled to 0..1 as LeRobot scales them.
///
/// Merging two of them gives exactly the statistics of all their pictures, quantiles included. Serialised as
/// `{"frames": n, "histograms": [[256 counts] red, green, blue]}`.
///
/// ```
/// use so101_dataset::ImageStats;
/// use so101_hal::FrameSize;
/// let size = FrameSize::new(2, 1);
/// let mut stats = ImageStats::new();
/// stats.add(size, &[0, 51, 255, 255, 51, 255]);
/// let s = stats.summary();
/// assert_eq!((s.count, s.mean.as_slice()), (1, [0.5, 0.2, 1.0].as_slice()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct ImageStats {
    frames: u64,
    histograms: Box<[[u64; LEVELS]; CHANNELS]>,
}

impl Default for ImageStats {
    fn default() -> Self {
        Self::new()
    }
}

impl ImageStats {
    /// Statistics of no picture.
    #[must_use]
    pub fn new() -> Self {
        Self { frames: 0, histograms: Box::new([[0; LEVELS]; CHANNELS]) }
    }

    /// Number of pictures.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// Takes one picture, `[height][width][r, g, b]`, at the sampling of [`sample_stride`].
    ///
    /// Bytes that `rgb` lacks are not counted; a [`Frame`](so101_hal::Frame) never lacks any.
    pub fn add(&mut self, size: FrameSize, rgb: &[u8]) {
        let stride = sample_stride(size);
        let [red, green, blue] = &mut *self.histograms;
        for row in rgb.chunks_exact((size.width as usize * CHANNELS).max(1)).step_by(stride) {
            for pixel in row.as_chunks::<CHANNELS>().0.iter().step_by(stride) {
                let [r, g, b] = pixel.map(usize::from);
                red[r] += 1;
                green[g] += 1;
                blue[b] += 1;
            }
        }
        self.frames += 1;
    }

    /// Takes all pictures of `other`. Counts that no recording reaches stay at the largest number.
    pub fn merge(&mut self, other: &Self) {
        self.frames = self.frames.saturating_add(other.frames);
        for (mine, theirs) in self.histograms.iter_mut().zip(other.histograms.iter()) {
            for (a, b) in mine.iter_mut().zip(theirs) {
                *a = a.saturating_add(*b);
            }
        }
    }

    /// The figures that LeRobot stores: three values each, shape `[3, 1, 1]`, `count` = pictures.
    #[must_use]
    pub fn summary(&self) -> FeatureSummary {
        let each = |f: &dyn Fn(&Channel<'_>) -> f64| -> Vec<f64> {
            self.histograms.iter().map(|h| f(&Channel::new(h)) / (LEVELS - 1) as f64).collect()
        };
        FeatureSummary {
            shape: SummaryShape::Image,
            min: each(&|c| c.at(0)),
            max: each(&|c| c.at(c.pixels.saturating_sub(1))),
            mean: each(&|c| c.mean()),
            std: each(&|c| c.std()),
            count: self.frames,
            quantiles: QUANTILES.map(|(_, q)| each(&|c| c.quantile(q))),
        }
    }
}

/// The histogram of one channel with its number of pixels.
struct Channel<'a> {
    histogram: &'a [u64; LEVELS],
    pixels: u64,
}

impl<'a> Channel<'a> {
    fn new(histogram: &'a [u64; LEVELS]) -> Self {
        Self { histogram, pixels: histogram.iter().fold(0, |sum, n| sum.saturating_add(*n)) }
    }

    /// Sum over pixels of value to the power of `power`, exact.
    fn power_sum(&self, power: u32) -> u128 {
        (0u128..).zip(self.histogram).map(|(level, n)| level.pow(power) * u128::from(*n)).sum()
    }

    fn mean(&self) -> f64 {
        if self.pixels == 0 { 0.0 } else { self.power_sum(1) as f64 / self.pixels as f64 }
    }

    /// Population standard deviation; the integers under the root do not cancel badly.
    fn std(&self) -> f64 {
        if self.pixels == 0 {
            return 0.0;
        }
        let (n, sum) = (u128::from(self.pixels), self.power_sum(1));
        let spread = n.saturating_mul(self.power_sum(2)).saturating_sub(sum.saturating_mul(sum));
        (spread as f64).sqrt() / self.pixels as f64
    }

    /// The value at this rank, 0 the smallest.
    fn at(&self, rank: u64) -> f64 {
        let mut seen = 0_u64;
        for (level, n) in (0u32..).zip(self.histogram) {
            seen = seen.saturating_add(*n);
            if seen > rank {
                return f64::from(level);
            }
        }
        0.0
    }

    /// Linear between the two neighbouring ranks, as `numpy.quantile` does it.
    fn quantile(&self, q: f64) -> f64 {
        let position = q * self.pixels.saturating_sub(1) as f64;
        let (low, part) = (position.floor(), position.fract());
        let below = self.at(low as u64);
        if part == 0.0 { below } else { below + part * (self.at(low as u64 + 1) - below) }
    }
}

/// How it is stored.
#[derive(Clone, Serialize, Deserialize)]
struct Stored {
    frames: u64,
    histograms: Vec<Vec<u64>>,
}

impl From<ImageStats> for Stored {
    fn from(stats: ImageStats) -> Self {
        Self { frames: stats.frames, histograms: stats.histograms.iter().map(|h| h.to_vec()).collect() }
    }
}

impl TryFrom<Stored> for ImageStats {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let mut out = Self::new();
        if stored.histograms.len() != CHANNELS {
            return Err(format!("{} histograms, expected {CHANNELS}", stored.histograms.len()));
        }
        for (mine, theirs) in out.histograms.iter_mut().zip(&stored.histograms) {
            if theirs.len() != LEVELS {
                return Err(format!("a histogram of {} bins, expected {LEVELS}", theirs.len()));
            }
            // No recording comes near: figures of one that does would be of saturated counts.
            if theirs.iter().any(|n| *n > u64::from(u32::MAX) * 4096) {
                return Err("a histogram count beyond 2^44".to_owned());
            }
            mine.copy_from_slice(theirs);
        }
        if stored.frames > MAX_FRAMES {
            return Err(format!("{} frames, at most {MAX_FRAMES} are accepted", stored.frames));
        }
        out.frames = stored.frames;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn picture(size: FrameSize, seed: u32) -> Vec<u8> {
        (0..size.rgb_len() as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 13) as u8)
            .collect()
    }

    #[test]
    fn the_stride_follows_lerobots_rule() {
        for (w, h, want) in
            [(640, 480, 4), (480, 640, 4), (320, 240, 2), (299, 1, 1), (300, 1, 2), (1920, 1080, 12)]
        {
            assert_eq!(sample_stride(FrameSize::new(w, h)), want, "{w}x{h}");
        }
    }

    #[test]
    fn figures_equal_those_of_the_sorted_pixels() {
        let size = FrameSize::new(320, 240);
        let rgb = picture(size, 1);
        let mut stats = ImageStats::new();
        stats.add(size, &rgb);
        let s = stats.summary();
        for c in 0..3 {
            let mut x: Vec<f64> = Vec::new();
            for y in (0..240).step_by(2) {
                x.extend(
                    (0..320).step_by(2).map(|column| f64::from(rgb[(y * 320 + column) * 3 + c]) / 255.0),
                );
            }
            x.sort_by(f64::total_cmp);
            assert_eq!(x.len(), 160 * 120);
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            let var = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64;
            assert!((s.mean[c] - mean).abs() < 1e-12 && (s.std[c] - var.sqrt()).abs() < 1e-12);
            assert_eq!((s.min[c], s.max[c]), (x[0], x[x.len() - 1]));
            for (k, (_, q)) in QUANTILES.iter().enumerate() {
                let at = q * (x.len() - 1) as f64;
                let (lo, hi) = (x[at.floor() as usize], x[at.ceil() as usize]);
                assert!((s.quantiles[k][c] - (lo + at.fract() * (hi - lo))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_stored_histogram_of_the_wrong_size_is_refused() {
        let good = serde_json::to_value(ImageStats::new()).unwrap();
        for (what, broken) in [
            ("two channels", serde_json::json!({"frames": 1, "histograms": [vec![0; 256], vec![0; 256]]})),
            (
                "255 bins",
                serde_json::json!({"frames": 1, "histograms": [vec![0; 256], vec![0; 256], vec![0; 255]]}),
            ),
            ("too many", serde_json::json!({"frames": 1, "histograms": vec![vec![u64::MAX; 256]; 3]})),
            ("frames", serde_json::json!({"frames": MAX_FRAMES + 1, "histograms": vec![vec![0; 256]; 3]})),
        ] {
            assert!(serde_json::from_value::<ImageStats>(broken).is_err(), "{what}");
        }
        assert_eq!(serde_json::from_value::<ImageStats>(good).unwrap(), ImageStats::new());
    }

    #[test]
    fn merging_hostile_records_saturates() {
        let stored = serde_json::json!({"frames": MAX_FRAMES, "histograms": vec![vec![1_u64 << 43; 256]; 3]});
        let mut all = serde_json::from_value::<ImageStats>(stored).unwrap();
        // As 2^50 such records.
        for _ in 0..50 {
            let same = all.clone();
            all.merge(&same);
        }
        assert_eq!(all.frames(), u64::MAX);
        assert!(all.summary().mean.iter().chain(&all.summary().std).all(|v| v.is_finite()));
    }

    proptest! {
        #[test]
        fn merging_equals_adding_all_pictures(n in 1usize..6, split in 0usize..6) {
            let size = FrameSize::new(9, 5);
            let (mut all, mut a, mut b) = (ImageStats::new(), ImageStats::new(), ImageStats::new());
            for i in 0..n {
                let p = picture(size, i as u32);
                all.add(size, &p);
                if i < split { &mut a } else { &mut b }.add(size, &p);
            }
            a.merge(&b);
            prop_assert_eq!(&a, &all);
            let stored = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<ImageStats>(&stored).unwrap(), all);
        }
    }
}
