//! How long each stage of a control period took: p50 and p99, per episode and over the session.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Durations of one stage.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    samples: Vec<Duration>,
}

impl Stage {
    /// Adds a duration.
    pub fn push(&mut self, d: Duration) {
        self.samples.push(d);
    }

    /// Takes all of `other`'s durations over.
    pub fn absorb(&mut self, other: &mut Self) {
        self.samples.append(&mut other.samples);
    }

    /// The figures so far; `None` before the first sample.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let at = |share: f64| -> Option<f64> {
            let i = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
            sorted.get(i).map(|d| d.as_secs_f64() * 1e3)
        };
        Some(Figures { p50_ms: at(0.50)?, p99_ms: at(0.99)?, max_ms: at(1.0)?, samples: sorted.len() })
    }
}

/// Percentiles of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
    /// Largest, milliseconds.
    pub max_ms: f64,
    /// How many.
    pub samples: usize,
}

/// The stages of a recording loop.
#[derive(Clone, Debug, Default)]
pub struct LoopStats {
    /// Joints read, pictures taken (drawing or rendering included on rigs that do that).
    pub observe: Stage,
    /// The demonstrator or teleoperator.
    pub decide: Stage,
    /// Goal sent.
    pub act: Stage,
    /// Row and pictures handed to the dataset.
    pub record: Stage,
    /// The whole period's work.
    pub total: Stage,
    /// Periods whose work took longer than the period.
    pub overruns: u64,
}

impl LoopStats {
    /// Takes all of `other` over.
    pub fn absorb(&mut self, other: &mut Self) {
        self.observe.absorb(&mut other.observe);
        self.decide.absorb(&mut other.decide);
        self.act.absorb(&mut other.act);
        self.record.absorb(&mut other.record);
        self.total.absorb(&mut other.total);
        self.overruns += std::mem::take(&mut other.overruns);
    }

    /// All figures as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "observe": self.observe.figures(), "decide": self.decide.figures(), "act": self.act.figures(),
            "record": self.record.figures(), "total": self.total.figures(), "overruns": self.overruns,
        })
    }
}

/// A stop watch that gives lap times.
#[derive(Clone, Copy, Debug)]
pub struct Laps {
    start: Instant,
    last: Instant,
}

impl Laps {
    /// Starts.
    #[must_use]
    pub fn start() -> Self {
        let now = Instant::now();
        Self { start: now, last: now }
    }

    /// Time since the last lap.
    pub fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let d = now - self.last;
        self.last = now;
        d
    }

    /// Time since the start.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.last - self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let mut s = Stage::default();
        assert_eq!(s.figures(), None);
        for ms in (1..=100).rev() {
            s.push(Duration::from_millis(ms));
        }
        let f = s.figures().unwrap();
        assert_eq!((f.p50_ms, f.p99_ms, f.max_ms, f.samples), (50.0, 99.0, 100.0, 100));
    }
}
