//! Statistics of vector and number columns, per episode and over all of them.
//!
//! LeRobot merges quantiles as a weighted mean of the episodes' quantiles, which is not a quantile of anything.
//! Here every column carries its distribution, whose merge is exact: the global `q01` to `q99` are those of all
//! rows, to 1/4096 of the range or better.

mod distribution;

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use distribution::Distribution;

/// Names and fractions of the quantiles that LeRobot stores.
pub const QUANTILES: [(&str, f64); 5] =
    [("q01", 0.01), ("q10", 0.1), ("q50", 0.5), ("q90", 0.9), ("q99", 0.99)];

/// How the figures of a summary are nested where they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryShape {
    /// `[n]`, numbers with a fraction.
    Floats,
    /// `[1]`, whole numbers.
    Integers,
    /// `[3, 1, 1]`.
    Image,
}

/// The figures of one feature as LeRobot stores them: one value a dimension or colour channel.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureSummary {
    /// How they are nested.
    pub shape: SummaryShape,
    /// Smallest values.
    pub min: Vec<f64>,
    /// Largest values.
    pub max: Vec<f64>,
    /// Means.
    pub mean: Vec<f64>,
    /// Population standard deviations.
    pub std: Vec<f64>,
    /// Rows or pictures.
    pub count: u64,
    /// In the order of [`QUANTILES`].
    pub quantiles: [Vec<f64>; 5],
}

impl FeatureSummary {
    /// The lists of values by LeRobot's names, in LeRobot's order; `count` stands between `std` and `q01` there.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &[f64]); 9] {
        let [q01, q10, q50, q90, q99] = &self.quantiles;
        [
            ("min", &self.min),
            ("max", &self.max),
            ("mean", &self.mean),
            ("std", &self.std),
            ("q01", q01),
            ("q10", q10),
            ("q50", q50),
            ("q90", q90),
            ("q99", q99),
        ]
    }

    /// The object under the feature's name in `stats.json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        for (name, values) in self.named() {
            if name == "q01" {
                out.insert("count".to_owned(), json!([self.count]));
            }
            let whole = self.shape == SummaryShape::Integers && matches!(name, "min" | "max");
            let list = values.iter().map(|v| match self.shape {
                SummaryShape::Image => json!([[v]]),
                _ if whole => json!(*v as i64),
                _ => json!(v),
            });
            out.insert(name.to_owned(), list.collect());
        }
        Value::Object(out)
    }
}

/// Statistics of one column: rows of one or more numbers, each dimension by itself.
///
/// ```
/// use so101_dataset::VectorStats;
/// let mut all = VectorStats::from_f32("action", 2, &[0.0, 10.0, 1.0, 20.0])?; // two rows
/// all.merge(&VectorStats::from_f32("action", 2, &[2.0, 60.0])?)?; // one more
/// let s = all.summary();
/// assert_eq!((s.count, s.mean, s.max), (3, vec![1.0, 30.0], vec![2.0, 60.0]));
/// # Ok::<(), so101_dataset::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct VectorStats {
    shape: SummaryShape,
    dimensions: Vec<Distribution>,
}

impl VectorStats {
    /// Of rows of `width` numbers, one row after the other. `feature` is for messages.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for NaN and the infinities, [`Error::StatsWidth`] when `values` is no whole number of rows.
    pub fn from_f32(feature: &str, width: usize, values: &[f32]) -> Result<Self> {
        Self::of(SummaryShape::Floats, feature, width, values.iter().map(|v| f64::from(*v)))
    }

    /// Of rows of `width` numbers, one row after the other. `feature` is for messages.
    ///
    /// # Errors
    /// As [`from_f32`](Self::from_f32).
    pub fn from_f64(feature: &str, width: usize, values: &[f64]) -> Result<Self> {
        Self::of(SummaryShape::Floats, feature, width, values.iter().copied())
    }

    /// Of a column of whole numbers, exact up to 2^53.
    ///
    /// # Errors
    /// Never for one number a row; the signature is that of the others.
    pub fn from_i64(feature: &str, values: &[i64]) -> Result<Self> {
        Self::of(SummaryShape::Integers, feature, 1, values.iter().map(|v| *v as f64))
    }

    fn of(
        shape: SummaryShape,
        feature: &str,
        width: usize,
        values: impl ExactSizeIterator<Item = f64> + Clone,
    ) -> Result<Self> {
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(Error::StatsWidth {
                feature: feature.to_owned(),
                expected: width,
                got: values.len(),
            });
        }
        if let Some((i, value)) = values.clone().enumerate().find(|(_, v)| !v.is_finite()) {
            let (row, dimension) = ((i / width) as u64, i % width);
            return Err(Error::NonFinite { feature: feature.to_owned(), row, dimension, value });
        }
        let mut column = Vec::with_capacity(values.len() / width);
        let dimensions = (0..width)
            .map(|d| {
                column.clear();
                column.extend(values.clone().skip(d).step_by(width));
                Distribution::of(&mut column)
            })
            .collect();
        Ok(Self { shape, dimensions })
    }

    /// Numbers a row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.dimensions.len()
    }

    /// Rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.dimensions.first().map_or(0, Distribution::count)
    }

    /// Takes all rows of `other`.
    ///
    /// # Errors
    /// [`Error::StatsWidth`] when its rows have another width.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.width() != other.width() {
            let (expected, got) = (self.width(), other.width());
            return Err(Error::StatsWidth { feature: "merged statistics".to_owned(), expected, got });
        }
        for (mine, theirs) in self.dimensions.iter_mut().zip(&other.dimensions) {
            mine.merge(theirs);
        }
        Ok(())
    }

    /// The figures that LeRobot stores.
    #[must_use]
    pub fn summary(&self) -> FeatureSummary {
        let each = |f: &dyn Fn(&Distribution) -> f64| self.dimensions.iter().map(f).collect();
        FeatureSummary {
            shape: self.shape,
            min: each(&Distribution::min),
            max: each(&Distribution::max),
            mean: each(&Distribution::mean),
            std: each(&Distribution::std),
            count: self.rows(),
            quantiles: QUANTILES.map(|(_, q)| each(&|d| d.quantile(q))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_do_not_mix_and_figures_are_those_of_numpy() {
        // numpy.quantile([1, 2, 4, 8], .5) = 3, .9 -> 6.8; std([1, 2, 4, 8]) = 2.6809513
        let s =
            VectorStats::from_f32("x", 2, &[1.0, -1.0, 2.0, -1.0, 4.0, -1.0, 8.0, -1.0]).unwrap().summary();
        assert_eq!((s.min, s.max, s.mean), (vec![1.0, -1.0], vec![8.0, -1.0], vec![3.75, -1.0]));
        assert!((s.std[0] - 2.680_951_323_690_9).abs() < 1e-12 && s.std[1] == 0.0);
        assert_eq!(s.quantiles[2], [3.0, -1.0]);
        assert!((s.quantiles[3][0] - 6.8).abs() < 1e-12);
        assert_eq!(s.count, 4);
    }

    #[test]
    fn non_finite_numbers_are_refused_with_row_and_dimension() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let err = VectorStats::from_f32("action", 2, &[0.0, 1.0, 2.0, bad]).unwrap_err();
            assert!(matches!(err, Error::NonFinite { row: 1, dimension: 1, .. }), "{err}");
        }
    }

    #[test]
    fn ragged_rows_and_merges_of_unlike_widths_are_refused() {
        assert!(matches!(
            VectorStats::from_f32("a", 2, &[0.0; 3]),
            Err(Error::StatsWidth { expected: 2, got: 3, .. })
        ));
        let mut a = VectorStats::from_f32("a", 2, &[0.0; 4]).unwrap();
        let b = VectorStats::from_f32("a", 1, &[0.0; 4]).unwrap();
        assert!(matches!(a.merge(&b), Err(Error::StatsWidth { expected: 2, got: 1, .. })));
    }

    #[test]
    fn the_json_has_lerobots_keys_order_and_nesting() {
        let s = VectorStats::from_i64("frame_index", &[0, 1, 2]).unwrap().summary();
        let text = s.to_json().to_string();
        assert!(text.starts_with(r#"{"min":[0],"max":[2],"mean":[1.0],"std":[0.816"#), "{text}");
        let keys: Vec<_> = s.to_json().as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"]);
        let image = FeatureSummary { shape: SummaryShape::Image, ..s };
        assert_eq!(image.to_json()["max"], json!([[[2.0]]]));
    }
}
