//! A way through the air: minimum-jerk segments with a short rest after each.

use std::time::Duration;

use so101_hal::{Percent, Radians};

use super::Phase;

/// Where the fingertip is and how the hand is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Posture {
    pub(super) fingertip_m: [f64; 3],
    pub(super) pitch: Radians,
    pub(super) gripper: Percent,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) phase: Phase,
    from: Posture,
    to: Posture,
    moving_s: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Path {
    segments: Vec<Segment>,
    end: Posture,
}

/// A servo arm needs a moment to arrive.
const REST_S: f64 = 0.12;
const SHORTEST_S: f64 = 0.4;

impl Segment {
    /// Straight from one posture to the other. The speed of a minimum-jerk motion peaks at 15/8 of its mean
    /// (Flash and Hogan, 1985).
    pub(super) fn minimum_jerk(phase: Phase, from: Posture, to: Posture, highest_m_s: f64) -> Self {
        let square_m2: f64 =
            from.fingertip_m.iter().zip(to.fingertip_m).map(|(a, b)| (b - a) * (b - a)).sum();
        let moving_s = (15.0 / 8.0 * square_m2.sqrt() / highest_m_s).max(SHORTEST_S);
        Self { phase, from, to, moving_s }
    }

    /// How long it takes.
    pub(super) fn moving_s(&self) -> f64 {
        self.moving_s
    }

    /// Makes it take longer by this factor.
    pub(super) fn stretch(&mut self, factor: f64) {
        self.moving_s *= factor;
    }

    /// The posture at a share of its time, 0 to 1.
    pub(super) fn at_share_of_time(&self, share: f64) -> Posture {
        self.at(share * self.moving_s)
    }

    /// The posture at a time since its start.
    fn at(&self, since_start_s: f64) -> Posture {
        let t = (since_start_s / self.moving_s).clamp(0.0, 1.0);
        let s = t * t * t * (10.0 + t * (6.0 * t - 15.0));
        let mix = |a: f64, b: f64| a + s * (b - a);
        let (from, to) = (&self.from, &self.to);
        let posture = Posture {
            fingertip_m: std::array::from_fn(|i| mix(from.fingertip_m[i], to.fingertip_m[i])),
            pitch: Radians(mix(from.pitch.0, to.pitch.0)),
            gripper: Percent(mix(from.gripper.0, to.gripper.0)),
        };
        // The far end exactly, without the rounding of the mixture.
        if t >= 1.0 { *to } else { posture }
    }
}

impl Path {
    pub(super) fn new(start: Posture) -> Self {
        Self { segments: Vec::new(), end: start }
    }

    pub(super) fn push(&mut self, segment: Segment) {
        self.end = segment.to;
        self.segments.push(segment);
    }

    pub(super) fn segments_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.segments.iter_mut()
    }

    pub(super) fn end(&self) -> Posture {
        self.end
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.segments.iter().map(|s| s.moving_s + REST_S).sum())
    }

    /// What it is part of and the posture, at a time since the start.
    pub(super) fn at(&self, since_start: Duration) -> (Phase, Posture) {
        let mut left_s = since_start.as_secs_f64();
        for segment in &self.segments {
            let lasts_s = segment.moving_s + REST_S;
            if left_s < lasts_s {
                return (segment.phase, segment.at(left_s));
            }
            left_s -= lasts_s;
        }
        (Phase::Done, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posture(x_m: f64) -> Posture {
        Posture { fingertip_m: [x_m, 0.0, 0.1], pitch: Radians(1.0), gripper: Percent(0.0) }
    }

    #[test]
    fn a_segment_starts_and_ends_at_rest_and_peaks_at_its_speed() {
        let s = Segment::minimum_jerk(Phase::Push, posture(0.1), posture(0.3), 0.2);
        let x = |t: f64| s.at(t).fingertip_m[0];
        let speed = |t: f64| (x(t + 1e-4) - x(t - 1e-4)) / 2e-4;
        assert_eq!((x(0.0), x(s.moving_s), x(99.0)), (0.1, 0.3, 0.3));
        assert!(speed(1e-3).abs() < 1e-3 && speed(s.moving_s - 1e-3).abs() < 1e-3);
        assert!((speed(s.moving_s / 2.0) - 0.2).abs() < 1e-3);
    }

    #[test]
    fn a_path_runs_through_its_segments_and_stays_at_its_end() {
        let mut path = Path::new(posture(0.1));
        path.push(Segment::minimum_jerk(Phase::Approach, path.end(), posture(0.2), 0.2));
        path.push(Segment::minimum_jerk(Phase::Return, path.end(), posture(0.1), 0.2));
        let phase = |share: f64| path.at(path.duration().mul_f64(share)).0;
        assert_eq!(
            [phase(0.0), phase(0.49), phase(0.51), phase(1.0)],
            [Phase::Approach, Phase::Approach, Phase::Return, Phase::Done]
        );
        assert_eq!(path.at(Duration::from_secs(100)).1, posture(0.1));
    }
}
