//! How good the pictures of a camera are: light, focus and rate.
//!
//! Luma is that of BT.601, `0.299 R + 0.587 G + 0.114 B` of the codes as they are, 0 to 255.
//!
//! ```
//! use so101_hal::camera::quality::{Clipped, clipped_share, focus_measure, mean_luma};
//! use so101_hal::{Frame, FrameSize, Timestamp};
//! let grey = Frame::new(FrameSize::new(8, 8), vec![100; 192], 0, Timestamp::ZERO)?;
//! assert_eq!(mean_luma(&grey), 100.0);
//! assert_eq!(clipped_share(&grey), Clipped { low: 0.0, high: 0.0 });
//! assert_eq!(focus_measure(&grey), 0.0); // nothing to be sharp
//! # Ok::<(), so101_hal::Error>(())
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::frame::Frame;

/// Luma codes up to this one count as black.
pub const BLACK: u8 = 2;
/// Luma codes from this one on count as white.
pub const WHITE: u8 = 253;

/// Shares of the pixels at the ends of the range, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Clipped {
    /// As dark as can be (luma up to [`BLACK`]).
    pub low: f64,
    /// As bright as can be (luma from [`WHITE`] on).
    pub high: f64,
}

impl Clipped {
    /// Both together.
    #[must_use]
    pub fn share(self) -> f64 {
        self.low + self.high
    }
}

/// Rate and regularity of pictures, from their sequence numbers and capture times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pace {
    /// Pictures that came, each counted once.
    pub frames: u64,
    /// Pictures a second that the camera took, those included that were lost on the way.
    pub fps: f64,
    /// 99th percentile of how far the time between two pictures in a row was from the mean period.
    pub jitter: Duration,
    /// Sequence numbers that never came.
    pub dropped: u64,
}

impl Pace {
    /// From pictures in the order in which they came; repeats of a sequence number are the same picture again.
    #[must_use]
    pub fn of(stamps: &[(u64, Timestamp)]) -> Self {
        let (Some(first), Some(last)) = (stamps.first(), stamps.last()) else { return Self::default() };
        let periods = last.0.saturating_sub(first.0);
        let passed_s = last.1.since(first.1).as_secs_f64();
        let period_s = if periods > 0 { passed_s / periods as f64 } else { 0.0 };
        let mut pace = Self { frames: 1, ..Self::default() };
        if passed_s > 0.0 {
            pace.fps = periods as f64 / passed_s;
        }
        let mut off_s = Vec::with_capacity(stamps.len());
        for pair in stamps.windows(2) {
            let &[(a, at), (b, bt)] = pair else { continue };
            let steps = b.saturating_sub(a);
            pace.frames += u64::from(steps > 0);
            pace.dropped += steps.saturating_sub(1);
            if steps == 1 {
                off_s.push((bt.since(at).as_secs_f64() - period_s).abs());
            }
        }
        off_s.sort_unstable_by(f64::total_cmp);
        let p99 = off_s.get(off_s.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default();
        pace.jitter = Duration::try_from_secs_f64(p99).unwrap_or_default();
        pace
    }
}

/// Mean luma, 0 to 255.
#[must_use]
pub fn mean_luma(frame: &Frame) -> f64 {
    let sum: u64 = lumas(frame).map(u64::from).sum();
    let pixels = frame.rgb().len() / 3;
    if pixels == 0 { 0.0 } else { sum as f64 / pixels as f64 }
}

/// Which share of the pixels is black or white.
#[must_use]
pub fn clipped_share(frame: &Frame) -> Clipped {
    let (mut low, mut high) = (0_u64, 0_u64);
    for luma in lumas(frame) {
        low += u64::from(luma <= BLACK);
        high += u64::from(luma >= WHITE);
    }
    let pixels = (frame.rgb().len() / 3).max(1) as f64;
    Clipped { low: low as f64 / pixels, high: high as f64 / pixels }
}

/// Variance of the Laplacian of the luma: the higher, the sharper. Comparable between pictures of one scene only.
///
/// After Pech-Pacheco et al., "Diatom autofocusing in brightfield microscopy", 2000, with the four-neighbour kernel; the
/// border is left out.
#[must_use]
pub fn focus_measure(frame: &Frame) -> f64 {
    let (width, height) = (frame.size().width as usize, frame.size().height as usize);
    if width < 3 || height < 3 {
        return 0.0;
    }
    let grey = grey(frame);
    let mut rows = grey.chunks_exact(width);
    let (Some(mut above), Some(mut here)) = (rows.next(), rows.next()) else { return 0.0 };
    let (mut sum, mut squares) = (0_i64, 0_i64);
    for below in rows {
        for ((n, s), m) in above.iter().zip(below).skip(1).zip(here.windows(3)) {
            let &[w, c, e] = m else { continue };
            let l = i64::from(*n) + i64::from(*s) + i64::from(w) + i64::from(e) - 4 * i64::from(c);
            sum += l;
            squares += l * l;
        }
        (above, here) = (here, below);
    }
    let count = ((width - 2) * (height - 2)) as f64;
    let mean = sum as f64 / count;
    (squares as f64 / count - mean * mean).max(0.0)
}

/// The luma of every pixel, rows from the top.
#[must_use]
pub fn grey(frame: &Frame) -> Vec<u8> {
    lumas(frame).collect()
}

fn lumas(frame: &Frame) -> impl Iterator<Item = u8> + '_ {
    frame.rgb().chunks_exact(3).map(|p| match p {
        // 16 binary digits; the factors add up to 65536, so that grey stays what it is.
        &[r, g, b] => {
            ((19_595 * u32::from(r) + 38_470 * u32::from(g) + 7_471 * u32::from(b) + 32_768) >> 16) as u8
        }
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameSize;

    fn frame(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Frame {
        let rgb = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .flat_map(|(x, y)| pixel(x, y))
            .collect();
        Frame::new(FrameSize::new(width, height), rgb, 0, Timestamp::ZERO).unwrap()
    }

    #[test]
    fn luma_weighs_the_colours_as_bt601_does_and_keeps_grey() {
        for (rgb, luma) in
            [([255, 0, 0], 76.0), ([0, 255, 0], 150.0), ([0, 0, 255], 29.0), ([77, 77, 77], 77.0)]
        {
            assert_eq!(mean_luma(&frame(4, 3, |_, _| rgb)), luma, "{rgb:?}");
        }
    }

    #[test]
    fn both_ends_of_the_range_are_counted_apart() {
        let f = frame(10, 10, |x, _| match x {
            0 => [0; 3],
            1 | 2 => [255; 3],
            _ => [128; 3],
        });
        assert_eq!(clipped_share(&f), Clipped { low: 0.1, high: 0.2 });
        assert!((clipped_share(&f).share() - 0.3).abs() < 1e-12);
    }

    #[test]
    fn the_focus_measure_is_the_variance_of_the_laplacian() {
        // Laplacian of a checkerboard of 0 and 10: +-40 everywhere.
        let board = frame(12, 9, |x, y| [10 * ((x + y) % 2) as u8; 3]);
        assert!((focus_measure(&board) - 1600.0).abs() < 1e-9, "{}", focus_measure(&board));
        // A ramp has none, however steep.
        assert_eq!(focus_measure(&frame(12, 9, |x, _| [20 * x as u8; 3])), 0.0);
        // Half the contrast, a quarter of the measure; too small for a Laplacian, none.
        let soft = frame(12, 9, |x, y| [5 * ((x + y) % 2) as u8; 3]);
        assert!((focus_measure(&soft) - 400.0).abs() < 1e-9);
        assert_eq!(focus_measure(&frame(2, 9, |x, y| [90 * ((x + y) % 2) as u8; 3])), 0.0);
    }

    #[test]
    fn the_pace_counts_gaps_as_lost_and_repeats_as_nothing() {
        let at = |ms: u64| Timestamp::from_start(Duration::from_millis(ms));
        let pace = Pace::of(&[(0, at(0)), (1, at(100)), (1, at(100)), (4, at(400)), (5, at(500))]);
        assert_eq!((pace.frames, pace.dropped, pace.jitter), (4, 2, Duration::ZERO));
        assert!((pace.fps - 10.0).abs() < 1e-9);
        let uneven = Pace::of(&[(0, at(0)), (1, at(120)), (2, at(200))]);
        assert_eq!(uneven.jitter, Duration::from_millis(20));
        assert_eq!(Pace::of(&[]), Pace::default());
        assert_eq!(Pace::of(&[(7, at(1))]), Pace { frames: 1, ..Pace::default() });
    }
}
