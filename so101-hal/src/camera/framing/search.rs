//! The search for the shift of highest correlation, from coarse to fine.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::FramingShift;
use crate::math::sqrt;

/// The coarsest level is at most this wide and high.
const COARSE: usize = 128;
/// Around the best shift of one level, this many pixels of the next finer one are tried to each side.
const REFINE: isize = 2;
/// Places this near to the best one, in coarse pixels, are the same peak.
const PEAK: isize = 3;
/// Variance of luma, in codes squared, below which there is nothing to see.
const FLAT: f64 = 1.0;

/// Luma of a picture.
#[derive(Clone, Debug)]
pub(super) struct Plane<'a> {
    luma: Cow<'a, [u8]>,
    width: usize,
    height: usize,
}

impl<'a> Plane<'a> {
    pub(super) fn new(luma: &'a [u8], width: usize, height: usize) -> Self {
        debug_assert_eq!(luma.len(), width * height);
        Self { luma: Cow::Borrowed(luma), width, height }
    }

    /// Half as wide and high; each pixel is the mean of four.
    fn halved(&self) -> Plane<'static> {
        let (width, height) = (self.width / 2, self.height / 2);
        let mut luma = Vec::with_capacity(width * height);
        for y in 0..height {
            let [above, below] = [2 * y, 2 * y + 1].map(|r| self.row(r).chunks_exact(2));
            for (a, b) in above.zip(below).take(width) {
                let sum: u16 = a.iter().chain(b).map(|&v| u16::from(v)).sum();
                luma.push(((sum + 2) / 4) as u8);
            }
        }
        Plane { luma: Cow::Owned(luma), width, height }
    }

    fn row(&self, y: usize) -> &[u8] {
        self.luma.get(y * self.width..(y + 1) * self.width).unwrap_or_default()
    }
}

/// Sums over the overlap of two pictures, from which their correlation follows.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: u64,
    a: u64,
    b: u64,
    aa: u64,
    bb: u64,
    ab: u64,
}

impl Sums {
    fn ncc(self) -> f64 {
        if self.n == 0 {
            return 0.0;
        }
        let n = self.n as f64;
        let (a, b) = (self.a as f64 / n, self.b as f64 / n);
        let (va, vb) = (self.aa as f64 / n - a * a, self.bb as f64 / n - b * b);
        if va < FLAT || vb < FLAT {
            return 0.0;
        }
        (self.ab as f64 / n - a * b) / sqrt(va * vb)
    }
}

/// Where `now` shows what `then` showed: the shift of its scene, at most `reach` pixels to each side.
pub(super) fn shift(then: Plane<'_>, now: Plane<'_>, reach: usize) -> FramingShift {
    let mut levels = alloc::vec![(then, now)];
    while let Some((then, now)) = levels.last() {
        if then.width.max(then.height) <= COARSE {
            break;
        }
        levels.push((then.halved(), now.halved()));
    }
    let scale = 1 << (levels.len() - 1);
    let mut best = (0, 0);
    let mut lead = 0.0;
    for (level, (then, now)) in levels.iter().enumerate().rev() {
        if level + 1 == levels.len() {
            (best, lead) = coarse(then, now, reach.div_ceil(scale) as isize + 1);
        } else {
            let around = (2 * best.0, 2 * best.1);
            best = peak(then, now, around, REFINE, reach as isize + REFINE);
        }
    }
    let Some((then, now)) = levels.first() else {
        return FramingShift { dx_px: 0.0, dy_px: 0.0, ncc: 0.0, lead: 0.0 };
    };
    let at = |dx: isize, dy: isize| ncc(then, now, best.0 + dx, best.1 + dy);
    let ncc = at(0, 0);
    FramingShift {
        dx_px: best.0 as f64 + vertex(at(-1, 0), ncc, at(1, 0)),
        dy_px: best.1 as f64 + vertex(at(0, -1), ncc, at(0, 1)),
        ncc,
        lead,
    }
}

/// The best shift of all up to `reach`, and its lead over all that do not belong to the same peak.
fn coarse(then: &Plane<'_>, now: &Plane<'_>, reach: isize) -> ((isize, isize), f64) {
    // Two fifths: what is left of both pictures has to be enough to compare.
    let limit = |side: usize| reach.min((side * 2 / 5) as isize);
    let (rx, ry) = (limit(then.width), limit(then.height));
    let mut all = Vec::with_capacity(((2 * rx + 1) * (2 * ry + 1)) as usize);
    for dy in -ry..=ry {
        for dx in -rx..=rx {
            all.push((dx, dy, ncc(then, now, dx, dy)));
        }
    }
    // Of equally good ones the nearest: nothing to see is no shift.
    let near = |s: &(isize, isize, f64)| -(s.0 * s.0 + s.1 * s.1);
    let best = all.iter().max_by(|a, b| a.2.total_cmp(&b.2).then(near(a).cmp(&near(b))));
    let Some(&(bx, by, best)) = best else { return ((0, 0), 0.0) };
    let elsewhere = all
        .iter()
        .filter(|(dx, dy, _)| (dx - bx).abs() > PEAK || (dy - by).abs() > PEAK)
        .map(|&(_, _, ncc)| ncc)
        .fold(0.0, f64::max);
    ((bx, by), (best - elsewhere).max(0.0))
}

/// The best shift at most `radius` from `around` and `reach` from none.
fn peak(
    then: &Plane<'_>,
    now: &Plane<'_>,
    around: (isize, isize),
    radius: isize,
    reach: isize,
) -> (isize, isize) {
    let mut best = (around, f64::NEG_INFINITY);
    for dy in around.1 - radius..=around.1 + radius {
        for dx in around.0 - radius..=around.0 + radius {
            let here =
                if dx.abs().max(dy.abs()) <= reach { ncc(then, now, dx, dy) } else { f64::NEG_INFINITY };
            if here > best.1 {
                best = ((dx, dy), here);
            }
        }
    }
    best.0
}

/// Correlation of `now` with `then` moved by `dx` to the right and `dy` downwards, where both are.
fn ncc(then: &Plane<'_>, now: &Plane<'_>, dx: isize, dy: isize) -> f64 {
    let (width, height) = (then.width as isize, then.height as isize);
    let columns = dx.max(0)..width.min(width + dx);
    let rows = dy.max(0)..height.min(height + dy);
    let mut total = Sums::default();
    for y in rows {
        let (Some(a), Some(b)) = (
            then.row((y - dy) as usize)
                .get((columns.start - dx) as usize..(columns.end - dx).max(0) as usize),
            now.row(y as usize).get(columns.start as usize..columns.end.max(0) as usize),
        ) else {
            continue;
        };
        // Sums of one row fit 32 bits, which lets the compiler use vector instructions.
        let (mut sa, mut sb, mut saa, mut sbb, mut sab) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u32);
        for (&a, &b) in a.iter().zip(b) {
            let (a, b) = (u32::from(a), u32::from(b));
            sa += a;
            sb += b;
            saa += a * a;
            sbb += b * b;
            sab += a * b;
        }
        total.n += a.len() as u64;
        total.a += u64::from(sa);
        total.b += u64::from(sb);
        total.aa += u64::from(saa);
        total.bb += u64::from(sbb);
        total.ab += u64::from(sab);
    }
    total.ncc()
}

/// Where the parabola through three neighbours is highest, -0.5 to 0.5 from the middle one.
fn vertex(before: f64, here: f64, after: f64) -> f64 {
    let bend = before - 2.0 * here + after;
    if bend >= 0.0 { 0.0 } else { (0.5 * (before - after) / bend).clamp(-0.5, 0.5) }
}
