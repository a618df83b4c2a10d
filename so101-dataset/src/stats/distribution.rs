//! The distribution of one number: exact while its distinct values are few, else a histogram on a fixed grid.

/// More distinct values than this go into a grid.
const MAX_EXACT: usize = 2048;
/// The grid is the finest with bins of width 2^k of which at most 2^13 span the range: never fewer than 2^12.
const MAX_BINS_LOG2: i32 = 13;
/// Smallest exponent of a bin width; finer structure is below the resolution of the values themselves.
const MIN_EXPONENT: i32 = -1000;

/// Count, extremes, moments and quantiles of finite numbers.
///
/// Everything but the moments is a function of the multiset of numbers alone, so merging in any order gives what
/// all numbers together give: a bin of width 2^k begins at a multiple of 2^k, two bins of one grid are one bin of
/// the next, and k follows from the range. Moments merge by Chan, Golub and LeVeque (1983), in f64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution {
    count: u64,
    min: f64,
    max: f64,
    mean: f64,
    /// Sum of squared distances from the mean.
    spread: f64,
    bins: Bins,
}

#[derive(Clone, Debug, PartialEq)]
enum Bins {
    /// Distinct values in rising order, each with its number.
    Exact(Vec<(f64, u64)>),
    /// Bin `i` holds the numbers from `i * 2^exponent` to `(i + 1) * 2^exponent`; empty bins are left out.
    Grid { exponent: i32, bins: Vec<(i64, u64)> },
}

impl Distribution {
    /// Of no number.
    pub(crate) const fn empty() -> Self {
        Self { count: 0, min: 0.0, max: 0.0, mean: 0.0, spread: 0.0, bins: Bins::Exact(Vec::new()) }
    }

    /// Of `values`, all of them finite; leaves them sorted.
    pub(crate) fn of(values: &mut [f64]) -> Self {
        let count = values.len() as u64;
        // The moments are taken before sorting: neighbours in time are alike, and the order is the caller's.
        let mean = values.iter().sum::<f64>() / count.max(1) as f64;
        let spread = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        for v in &mut *values {
            *v += 0.0; // -0 becomes 0
        }
        values.sort_unstable_by(f64::total_cmp);
        let (Some(min), Some(max)) = (values.first().copied(), values.last().copied()) else {
            return Self::empty();
        };
        let mut distinct: Vec<(f64, u64)> = Vec::new();
        for v in values {
            match distinct.last_mut() {
                Some((last, n)) if *last == *v => *n += 1,
                _ => distinct.push((*v, 1)),
            }
        }
        let mut out = Self { count, min, max, mean, spread, bins: Bins::Exact(distinct) };
        out.settle();
        out
    }

    /// Takes all numbers of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        let (n, m) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        self.mean += delta * (m / (n + m));
        self.spread += other.spread + delta * delta * (n * m / (n + m));
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let grid = grid_exponent(self.min, self.max);
        let mine = std::mem::replace(&mut self.bins, Bins::Exact(Vec::new()));
        self.bins = match (mine, &other.bins) {
            (Bins::Exact(a), Bins::Exact(b)) => Bins::Exact(sum_by_key(a.iter(), b.iter())),
            (a, b) => Bins::Grid {
                exponent: grid,
                bins: sum_by_key(a.on_grid(grid).iter(), b.on_grid(grid).iter()),
            },
        };
        self.settle();
    }

    /// Brings the figures into their one form after a change.
    fn settle(&mut self) {
        if self.min == self.max {
            (self.mean, self.spread) = (self.min, 0.0);
        }
        if let Bins::Exact(values) = &self.bins
            && values.len() > MAX_EXACT
        {
            let exponent = grid_exponent(self.min, self.max);
            self.bins = Bins::Grid { exponent, bins: self.bins.on_grid(exponent) };
        }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) const fn min(&self) -> f64 {
        self.min
    }

    pub(crate) const fn max(&self) -> f64 {
        self.max
    }

    pub(crate) const fn mean(&self) -> f64 {
        self.mean
    }

    /// Population standard deviation.
    pub(crate) fn std(&self) -> f64 {
        (self.spread / self.count.max(1) as f64).sqrt()
    }

    /// Linear between the two neighbouring ranks, as `numpy.quantile` does it; off by less than a bin's width,
    /// which is at most 1/4096 of the range, and exact for up to 2048 distinct values.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        let position = q * self.count.saturating_sub(1) as f64;
        let (low, part) = (position.floor(), position.fract());
        let below = self.at(low as u64);
        if part == 0.0 { below } else { below + part * (self.at(low as u64 + 1) - below) }
    }

    /// The number at this rank, 0 the smallest; numbers in a bin are taken as evenly spread over it.
    fn at(&self, rank: u64) -> f64 {
        let mut seen = 0;
        match &self.bins {
            Bins::Exact(values) => {
                for (v, n) in values {
                    seen += n;
                    if seen > rank {
                        return *v;
                    }
                }
            }
            Bins::Grid { exponent, bins } => {
                for (i, n) in bins {
                    if seen + n > rank {
                        let part = ((rank - seen) as f64 + 0.5) / *n as f64;
                        return ((*i as f64 + part) * power_of_two(*exponent)).clamp(self.min, self.max);
                    }
                    seen += n;
                }
            }
        }
        self.max
    }
}

impl Bins {
    /// The same numbers in bins of width 2^exponent, which must not be finer than the present ones.
    fn on_grid(&self, exponent: i32) -> Vec<(i64, u64)> {
        let mut out: Vec<(i64, u64)> = Vec::new();
        let mut push = |i: i64, n: u64| match out.last_mut() {
            Some((last, m)) if *last == i => *m += n,
            _ => out.push((i, n)),
        };
        match self {
            Self::Exact(values) => {
                let scale = power_of_two(-exponent);
                for (v, n) in values {
                    push((v * scale).floor() as i64, *n);
                }
            }
            Self::Grid { exponent: finer, bins } => {
                let shift = (exponent - finer).clamp(0, 63);
                for (i, n) in bins {
                    push(i >> shift, *n);
                }
            }
        }
        out
    }
}

/// The exponent k of the finest grid with at most 2^13 bins of width 2^k in the range.
fn grid_exponent(min: f64, max: f64) -> i32 {
    let range = max - min;
    // Halves do not overflow where the range itself does.
    let (range, doubled) = if range.is_finite() { (range, 0) } else { (max / 2.0 - min / 2.0, 1) };
    let bits = range.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let beyond_the_power = i32::from(bits & ((1 << 52) - 1) != 0);
    (exponent + beyond_the_power + doubled - MAX_BINS_LOG2).max(MIN_EXPONENT)
}

/// 2^k for a normal result.
fn power_of_two(k: i32) -> f64 {
    f64::from_bits(((i64::from(k) + 1023).clamp(1, 2046) as u64) << 52)
}

/// Merges two lists in rising order of their keys, adding what has equal keys.
fn sum_by_key<'a, K: PartialOrd + Copy + 'a>(
    a: impl ExactSizeIterator<Item = &'a (K, u64)>,
    b: impl ExactSizeIterator<Item = &'a (K, u64)>,
) -> Vec<(K, u64)> {
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    let (mut a, mut b) = (a.copied().peekable(), b.copied().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                let sum = (x.0, x.1 + y.1);
                a.next();
                b.next();
                Some(sum)
            }
            (Some(x), Some(y)) if x.0 < y.0 => a.next(),
            (Some(_), None) => a.next(),
            _ => b.next(),
        };
        match next {
            Some(pair) => out.push(pair),
            None => return out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grid_spans_the_range_with_4096_to_8192_bins() {
        for range in [1.0, 1.5, 2.0, 2.0_f64.next_up(), 1e-7, 3e9, 8192.0, 1e300] {
            let bins = range / power_of_two(grid_exponent(-range / 3.0, range - range / 3.0));
            assert!((4095.0..=8193.0).contains(&bins), "{range}: {bins}");
        }
    }

    #[test]
    fn extreme_numbers_neither_overflow_nor_panic() {
        let mut wide: Vec<f64> = (0..3000).map(|i| f64::MAX / 3000.0 * f64::from(i)).collect();
        wide.extend((0..3000).map(|i| f64::MIN / 3000.0 * f64::from(i)));
        let d = Distribution::of(&mut wide);
        assert!(d.quantile(0.5).is_finite() && d.quantile(0.99) > 1e308);
        let mut tiny: Vec<f64> = (0..3000).map(f64::from_bits).collect();
        assert!(Distribution::of(&mut tiny).quantile(0.5) <= f64::from_bits(3000));
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        (0u64..1000, prop_oneof![Just(1.0), Just(1e-6), Just(1e6)], -1e3..1e3, 1usize..9000).prop_map(
            |(seed, scale, shift, n)| {
                let mut x = seed;
                (0..n)
                    .map(|_| {
                        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let u = (x >> 11) as f64 / (1u64 << 53) as f64;
                        u * u * scale + shift
                    })
                    .collect()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn merging_in_parts_gives_the_bins_of_all_numbers(parts in proptest::collection::vec(values(), 1..5)) {
            let mut merged = Distribution::empty();
            for part in &parts {
                merged.merge(&Distribution::of(&mut part.clone()));
            }
            let mut all: Vec<f64> = parts.concat();
            let whole = Distribution::of(&mut all);
            prop_assert_eq!(&merged.bins, &whole.bins);
            prop_assert_eq!((merged.count, merged.min, merged.max), (whole.count, whole.min, whole.max));
            let scale = whole.max - whole.min;
            prop_assert!((merged.mean - whole.mean).abs() <= 1e-11 * (scale + whole.mean.abs()));
            prop_assert!((merged.std() - whole.std()).abs() <= 1e-9 * scale + 1e-12 * whole.mean.abs());
            for q in [0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0] {
                let at = q * (all.len() - 1) as f64;
                let (lo, hi) = (all[at.floor() as usize], all[at.ceil() as usize]);
                let exact = lo + at.fract() * (hi - lo);
                prop_assert!((merged.quantile(q) - exact).abs() <= scale / 4096.0 + 1e-12,
                    "q {} is {} and not {}", q, merged.quantile(q), exact);
            }
        }
    }
}
