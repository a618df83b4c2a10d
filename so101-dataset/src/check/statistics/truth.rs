//! What the statistics of rows are, computed plainly: all values sorted.

/// LeRobot computes in float32.
const VALUE_TOLERANCE: f64 = 1e-4;
/// Its standard deviation is the root of a difference of squares.
const STD_TOLERANCE: f64 = 2e-3;

/// One dimension of the rows.
pub(super) struct Truth {
    sorted: Vec<f64>,
    mean: f64,
    std: f64,
}

impl Truth {
    pub(super) fn of(parts: &[&Vec<f64>], dimension: usize, width: usize) -> Self {
        let mut sorted: Vec<f64> =
            parts.iter().flat_map(|p| p.iter().skip(dimension).step_by(width.max(1)).copied()).collect();
        let n = sorted.len().max(1) as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let std = (sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { sorted, mean, std }
    }

    fn at(&self, i: usize) -> f64 {
        self.sorted.get(i.min(self.sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }

    pub(super) fn moments(&self) -> [(&'static str, f64, f64); 4] {
        [
            ("min", self.at(0), VALUE_TOLERANCE),
            ("max", self.at(usize::MAX), VALUE_TOLERANCE),
            ("mean", self.mean, VALUE_TOLERANCE),
            ("std", self.std, STD_TOLERANCE),
        ]
    }

    pub(super) fn quantile(&self, fraction: f64) -> f64 {
        self.at((fraction * self.sorted.len() as f64) as usize)
    }

    /// Within two ranks and a bin of a histogram: no two programs interpolate alike.
    pub(super) fn is_quantile(&self, found: f64, fraction: f64) -> bool {
        let slack = (self.at(usize::MAX) - self.at(0)) * 1e-3 + 1e-6;
        let rank = (fraction * self.sorted.len() as f64) as usize;
        let single = self.sorted.len() < 2 && near(found, self.mean, VALUE_TOLERANCE);
        single || (self.at(rank.saturating_sub(2)) - slack..=self.at(rank + 2) + slack).contains(&found)
    }
}

pub(super) fn near(found: f64, want: f64, tolerance: f64) -> bool {
    (found - want).abs() <= tolerance + tolerance * want.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_may_be_two_ranks_off_but_not_more() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let truth = Truth::of(&[&values], 0, 1);
        for (found, ok) in [(90.0, true), (92.0, true), (88.0, true), (93.0, false), (87.0, false)] {
            assert_eq!(truth.is_quantile(found, 0.9), ok, "{found}");
        }
    }

    #[test]
    fn moments_are_taken_by_dimension_over_all_parts() {
        let (a, b) = (vec![1.0, 10.0, 2.0, 20.0], vec![3.0, 30.0]);
        let truth = Truth::of(&[&a, &b], 1, 2);
        assert_eq!((truth.at(0), truth.at(usize::MAX), truth.mean), (10.0, 30.0, 20.0));
    }
}
