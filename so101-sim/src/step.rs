//! Control period and physics step, as one type so that neither is the other by accident.

use std::time::Duration;

use crate::error::{Error, Result};

/// The largest physics step at which the model's contacts and position servos are stable.
pub const MAX_STEP: Duration = Duration::from_micros(3400);

/// The largest control rate.
const MAX_FPS: u32 = 1000;

/// How often the arm is commanded, and how many physics steps fill one period.
///
/// The step is `1 / (fps n)` with the smallest whole `n` that keeps it at or below [`MAX_STEP`].
///
/// ```
/// use so101_sim::StepPlan;
/// let plan = StepPlan::for_rate(30)?;
/// assert_eq!(plan.steps_per_period(), 10);
/// assert!((plan.step_s() - 1.0 / 300.0).abs() < 1e-15);
/// # Ok::<(), so101_sim::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPlan {
    fps: u32,
    steps: u32,
}

impl StepPlan {
    /// The plan for a control rate in Hz.
    ///
    /// # Errors
    /// [`Error::Rate`] for 0 and for more than 1000 Hz.
    pub fn for_rate(fps: u32) -> Result<Self> {
        if fps == 0 || fps > MAX_FPS {
            return Err(Error::Rate { fps, max: MAX_FPS });
        }
        // 1 / (fps n) <= 3400 us  <=>  n >= 1e6 / (3400 fps)
        let max_us = u32::try_from(MAX_STEP.as_micros()).unwrap_or(u32::MAX);
        Ok(Self { fps, steps: 1_000_000_u32.div_ceil(max_us * fps).max(1) })
    }

    /// Control rate in Hz.
    #[must_use]
    pub const fn fps(self) -> u32 {
        self.fps
    }

    /// Physics steps in one control period.
    #[must_use]
    pub const fn steps_per_period(self) -> u32 {
        self.steps
    }

    /// Physics steps in one second.
    #[must_use]
    pub const fn steps_per_second(self) -> u32 {
        self.fps * self.steps
    }

    /// One physics step in seconds.
    #[must_use]
    pub fn step_s(self) -> f64 {
        1.0 / f64::from(self.steps_per_second())
    }

    /// Whole physics steps in a span of time. A span that misses the next step by less than a hundredth of a step
    /// counts as reaching it: control deadlines are whole nanoseconds, steps are not.
    #[must_use]
    pub fn steps_in(self, span: Duration) -> u64 {
        (span.as_secs_f64() * f64::from(self.steps_per_second()) + 0.01).floor() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_the_largest_that_divides_the_period_and_stays_stable() {
        for (fps, steps) in [
            (1, 295),
            (10, 30),
            (15, 20),
            (25, 12),
            (30, 10),
            (50, 6),
            (60, 5),
            (294, 2),
            (295, 1),
            (1000, 1),
        ] {
            let plan = StepPlan::for_rate(fps).unwrap();
            assert_eq!(plan.steps_per_period(), steps, "{fps} Hz");
            assert!(plan.step_s() <= MAX_STEP.as_secs_f64() + 1e-12);
        }
    }

    #[test]
    fn deadlines_in_whole_nanoseconds_never_lose_a_step() {
        let plan = StepPlan::for_rate(30).unwrap();
        for k in 0..100_000_u64 {
            let at = Duration::from_nanos(k * 1_000_000_000 / 30);
            assert_eq!(plan.steps_in(at), k * 10);
        }
    }

    #[test]
    fn impossible_rates_are_refused() {
        for fps in [0, 1001, u32::MAX] {
            assert!(matches!(StepPlan::for_rate(fps), Err(Error::Rate { .. })));
        }
    }
}
