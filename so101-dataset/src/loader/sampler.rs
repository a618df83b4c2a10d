//! Which row comes next.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::order::{Permutation, mix};
use crate::reader::Dataset;

/// Rows at the ends of each episode that are never drawn, such as those whose window would be mostly padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeMargins {
    /// Rows left out at the start.
    pub first_rows: u64,
    /// Rows left out at the end.
    pub last_rows: u64,
}

/// Whether rows come as they lie or in a random order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    InOrder,
    Shuffled { seed: u64 },
}

/// Where a sampler stands: enough to go on from there, over the same episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplerState {
    /// Times that all rows have been drawn.
    pub epoch: u64,
    /// Rows drawn in this epoch.
    pub drawn: u64,
}

/// Draws rows of some episodes, each once an epoch, for ever.
///
/// ```
/// use so101_dataset::loader::Sampler;
/// let mut sampler = Sampler::of_ranges([0..3, 10..12], 7);
/// let mut epoch: Vec<u64> = (0..5).filter_map(|_| sampler.next_row()).collect();
/// epoch.sort_unstable();
/// assert_eq!(epoch, [0, 1, 2, 10, 11]);
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    /// First row of each range, and how many rows come before it.
    ranges: Arc<[(u64, u64)]>,
    rows: u64,
    order: Order,
    state: SamplerState,
    permutation: Permutation,
}

impl Sampler {
    /// All rows of a dataset, shuffled anew each epoch by `seed`.
    #[must_use]
    pub fn new(set: &Dataset, seed: u64) -> Self {
        Self::of_ranges(set.episodes().iter().map(|e| e.from_index..e.to_index), seed)
    }

    /// Rows of some episodes, without those at their ends; numbers that the dataset does not have are left out.
    #[must_use]
    pub fn of_episodes(set: &Dataset, episodes: &[u64], margins: EpisodeMargins, seed: u64) -> Self {
        let rows = episodes.iter().filter_map(|e| set.episodes().get(usize::try_from(*e).ok()?));
        let kept = rows.map(|e| {
            let first = e.from_index.saturating_add(margins.first_rows);
            first..e.to_index.saturating_sub(margins.last_rows).max(first)
        });
        Self::of_ranges(kept, seed)
    }

    /// The rows of these ranges, shuffled.
    #[must_use]
    pub fn of_ranges(ranges: impl IntoIterator<Item = core::ops::Range<u64>>, seed: u64) -> Self {
        let mut rows = 0;
        let mut list = Vec::new();
        for range in ranges.into_iter().filter(|r| !r.is_empty()) {
            list.push((range.start, rows));
            rows += range.end - range.start;
        }
        let order = Order::Shuffled { seed };
        let state = SamplerState { epoch: 0, drawn: 0 };
        let permutation = Permutation::new(rows, key(order, 0));
        Self { ranges: list.into(), rows, order, state, permutation }
    }

    /// The same rows as they lie.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.order = Order::InOrder;
        self
    }

    /// The same rows and order, from where another one stood.
    #[must_use]
    pub fn resume(mut self, state: SamplerState) -> Self {
        self.state = state;
        self.permutation = Permutation::new(self.rows, key(self.order, state.epoch));
        self
    }

    /// Rows of an epoch.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there is no row to draw.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> SamplerState {
        self.state
    }

    /// The next row; `None` only when there are none at all.
    pub fn next_row(&mut self) -> Option<u64> {
        if self.rows == 0 {
            return None;
        }
        if self.state.drawn >= self.rows {
            self.state = SamplerState { epoch: self.state.epoch + 1, drawn: 0 };
            self.permutation = Permutation::new(self.rows, key(self.order, self.state.epoch));
        }
        let place = match self.order {
            Order::InOrder => self.state.drawn,
            Order::Shuffled { .. } => self.permutation.at(self.state.drawn),
        };
        self.state.drawn += 1;
        let range = self.ranges.partition_point(|(_, before)| *before <= place).checked_sub(1)?;
        let (first, before) = self.ranges.get(range)?;
        Some(first + (place - before))
    }
}

/// The key of an epoch's permutation.
fn key(order: Order, epoch: u64) -> u64 {
    match order {
        Order::InOrder => 0,
        Order::Shuffled { seed } => mix(mix(seed) ^ epoch),
    }
}
