//! A few pictures of an episode, spread over its length.

use so101_hal::{Frame, NamedFrame};

use super::SHEET_COLUMNS;

/// Keeps some rows' pictures while an episode runs.
#[derive(Debug)]
pub(super) struct Samples {
    /// Rows of the episode, where they are known.
    frames: Option<u32>,
    /// Without it: every such row is kept.
    stride: u32,
    /// Row and pictures.
    kept: Vec<Vec<Frame>>,
}

impl Samples {
    /// The first, the last and equally many in between.
    pub(super) fn of_known_length(frames: u32) -> Self {
        Self { frames: Some(frames), stride: 1, kept: Vec::new() }
    }

    /// Whatever its length will be: twice as many as needed are kept, and every other one is given up when there are
    /// more.
    pub(super) fn of_unknown_length() -> Self {
        Self { frames: None, stride: 1, kept: Vec::new() }
    }

    /// Looks at row `i`.
    pub(super) fn take(&mut self, i: u32, seen: &[NamedFrame]) {
        let wanted = match self.frames {
            Some(frames) => {
                let last = frames.saturating_sub(1).max(1);
                let columns = SHEET_COLUMNS as u32 - 1;
                (0..=columns).any(|c| c * last / columns == i)
            }
            None => i.is_multiple_of(self.stride),
        };
        if !wanted {
            return;
        }
        self.kept.push(seen.iter().map(|named| named.frame.clone()).collect());
        if self.frames.is_none() && self.kept.len() > 2 * SHEET_COLUMNS {
            let mut n = 0;
            self.kept.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// At most `columns` pictures of each camera.
    pub(super) fn into_rows(self, columns: usize) -> Vec<Vec<Frame>> {
        let n = self.kept.len();
        let pick = |c: usize| if n <= columns { c } else { c * (n - 1) / (columns - 1).max(1) };
        let mut rows: Vec<Vec<Frame>> = Vec::new();
        for moment in (0..n.min(columns)).filter_map(|c| self.kept.get(pick(c))) {
            rows.resize_with(moment.len().max(rows.len()), Vec::new);
            for (row, frame) in rows.iter_mut().zip(moment) {
                row.push(frame.clone());
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use so101_hal::{FrameSize, Timestamp};

    fn sampled(mut samples: Samples, rows: u32) -> Vec<u64> {
        for i in 0..rows {
            let frame = Frame::new(FrameSize::new(2, 2), vec![0; 12], u64::from(i), Timestamp::ZERO).unwrap();
            samples.take(i, &[NamedFrame { camera: "main".into(), frame }]);
        }
        let mut rows = samples.into_rows(SHEET_COLUMNS);
        rows.pop().map_or_else(Vec::new, |row| row.iter().map(|f| f.sequence).collect())
    }

    #[test]
    fn a_known_length_is_cut_in_equal_parts_with_both_ends() {
        assert_eq!(sampled(Samples::of_known_length(101), 101), [0, 20, 40, 60, 80, 100]);
    }

    #[test]
    fn an_unknown_length_is_spread_over_whatever_came() {
        assert_eq!(sampled(Samples::of_unknown_length(), 0), [0; 0]);
        assert_eq!(sampled(Samples::of_unknown_length(), 4), [0, 1, 2, 3]);
        for rows in [13, 100, 1000, 3333] {
            let got = sampled(Samples::of_unknown_length(), rows);
            assert_eq!((got.len(), got[0]), (6, 0), "{rows}: {got:?}");
            assert!(got[5] >= u64::from(rows) * 3 / 5, "{rows}: {got:?}");
            let steps: Vec<u64> = got.windows(2).map(|w| w[1] - w[0]).collect();
            let (least, most) = (steps.iter().min().unwrap(), steps.iter().max().unwrap());
            assert!(*most <= 2 * least, "{rows}: {got:?}");
        }
    }
}
