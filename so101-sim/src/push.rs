//! The push task: what the object has to do, judged from its poses alone.

use serde::{Deserialize, Serialize};
use so101_hal::Radians;

/// A box's pose and motion at one moment, in the base frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectState {
    /// Middle of the box, metres.
    pub position_m: [f64; 3],
    /// Orientation, w x y z.
    pub quat_wxyz: [f64; 4],
    /// Speed of the middle, metres per second.
    pub speed_m_s: f64,
    /// Angular speed, radians per second.
    pub spin_rad_s: f64,
}

impl ObjectState {
    /// A box at rest.
    #[must_use]
    pub fn resting(position_m: [f64; 3], yaw: Radians) -> Self {
        let (s, c) = (yaw.0 / 2.0).sin_cos();
        Self { position_m, quat_wxyz: [c, 0.0, 0.0, s], speed_m_s: 0.0, spin_rad_s: 0.0 }
    }

    /// Angle between the box's own z axis and the vertical.
    #[must_use]
    pub fn tilt(&self) -> Radians {
        let [w, x, y, z] = self.quat_wxyz;
        let n = w * w + x * x + y * y + z * z;
        // The zz element of the rotation matrix; the sine is the length of its horizontal companions, which keeps
        // small angles exact.
        let cos = (w * w - x * x - y * y + z * z) / n;
        let sin = 2.0 * (x * z + w * y).hypot(y * z - w * x) / n;
        Radians(sin.atan2(cos))
    }

    /// Turn about the vertical.
    #[must_use]
    pub fn yaw(&self) -> Radians {
        let [w, x, y, z] = self.quat_wxyz;
        Radians((2.0 * (w * z + x * y)).atan2(w * w + x * x - y * y - z * z))
    }
}

/// Whose left is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeftOf {
    /// The robot's: +y of the base.
    #[default]
    Robot,
    /// That of the camera which faces the robot: -y of the base.
    Camera,
}

impl LeftOf {
    /// 1 for +y of the base, -1 for -y.
    #[must_use]
    pub const fn sign(self) -> f64 {
        match self {
            Self::Robot => 1.0,
            Self::Camera => -1.0,
        }
    }
}

/// When a push counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PushTask {
    /// Whose left.
    pub left_of: LeftOf,
    /// Least way along the direction of the push, metres.
    pub distance_m: f64,
    /// Largest displacement across it, metres.
    pub sideways_m: f64,
    /// Largest tilt, radians.
    pub tilt_rad: f64,
    /// Largest change of height, metres.
    pub height_m: f64,
    /// Below this speed it counts as standing, metres per second.
    pub speed_m_s: f64,
    /// Below this angular speed it counts as standing, radians per second.
    pub spin_rad_s: f64,
    /// How long all of it has to hold, seconds.
    pub hold_s: f64,
}

impl Default for PushTask {
    fn default() -> Self {
        Self {
            left_of: LeftOf::Robot,
            distance_m: 0.080,
            sideways_m: 0.040,
            tilt_rad: 10.0_f64.to_radians(),
            height_m: 0.003,
            speed_m_s: 0.01,
            spin_rad_s: 0.5,
            hold_s: 0.5,
        }
    }
}

impl PushTask {
    /// The task with its usual tolerances.
    #[must_use]
    pub fn left_of(left_of: LeftOf) -> Self {
        Self { left_of, ..Self::default() }
    }
}

/// Why a push does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PushFailure {
    /// The object was never given.
    NotJudged,
    /// Not far enough along the direction of the push.
    TooShort,
    /// Too far across it.
    Sideways,
    /// It tipped over, or leans on something.
    Tilted,
    /// Not on the table any more, or on top of something.
    OffTheTable,
    /// It moves, or has stood for too short a time.
    NotAtRest,
}

impl std::fmt::Display for PushFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotJudged => "object not observed",
            Self::TooShort => "object not pushed far enough",
            Self::Sideways => "object went sideways",
            Self::Tilted => "object tilted",
            Self::OffTheTable => "object left the table",
            Self::NotAtRest => "object not at rest",
        })
    }
}

/// The judgement on an episode, with the figures it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushVerdict {
    /// `None`: the push counts.
    pub failure: Option<PushFailure>,
    /// Way along the direction of the push, metres.
    pub moved_m: f64,
    /// Displacement across it, metres.
    pub sideways_m: f64,
    /// Tilt, radians.
    pub tilt_rad: f64,
    /// Change of height, metres.
    pub height_m: f64,
    /// How long everything has held, seconds.
    pub held_s: f64,
}

impl PushVerdict {
    /// Whether the push counts.
    #[must_use]
    pub const fn success(&self) -> bool {
        self.failure.is_none()
    }
}

/// Watches an object from the start of an episode.
///
/// ```
/// use so101_hal::Radians;
/// use so101_sim::{ObjectState, PushJudge, PushTask};
/// let mut judge = PushJudge::new(PushTask::default(), [0.25, 0.00, 0.015]);
/// for k in 0..=10 {
///     judge.watch(0.1 * f64::from(k), &ObjectState::resting([0.25, 0.09, 0.015], Radians(0.0)));
/// }
/// assert!(judge.verdict().success());
/// ```
#[derive(Clone, Debug)]
pub struct PushJudge {
    task: PushTask,
    start_m: [f64; 3],
    last: Option<(f64, ObjectState)>,
    /// Since when everything has held.
    since_s: Option<f64>,
}

impl PushJudge {
    /// A judge for an object that rests at `start_m` (its middle, metres in the base frame).
    #[must_use]
    pub const fn new(task: PushTask, start_m: [f64; 3]) -> Self {
        Self { task, start_m, last: None, since_s: None }
    }

    /// Takes the object's state at a time in seconds; times must not go back.
    pub fn watch(&mut self, at_s: f64, state: &ObjectState) {
        self.last = Some((at_s, *state));
        if self.why_not(state).is_some() {
            self.since_s = None;
        } else if self.since_s.is_none() {
            self.since_s = Some(at_s);
        }
    }

    /// The judgement as of the last state that was watched.
    #[must_use]
    pub fn verdict(&self) -> PushVerdict {
        let Some((now_s, state)) = self.last else {
            return PushVerdict {
                failure: Some(PushFailure::NotJudged),
                moved_m: 0.0,
                sideways_m: 0.0,
                tilt_rad: 0.0,
                height_m: 0.0,
                held_s: 0.0,
            };
        };
        let held_s = self.since_s.map_or(0.0, |since| now_s - since);
        // Half a microsecond: sums of steps may miss a round figure by rounding.
        let brief = (held_s + 5e-7 < self.task.hold_s).then_some(PushFailure::NotAtRest);
        let [x, y, z] = state.position_m;
        PushVerdict {
            failure: self.why_not(&state).or(brief),
            moved_m: self.task.left_of.sign() * (y - self.start_m[1]),
            sideways_m: x - self.start_m[0],
            tilt_rad: state.tilt().0,
            height_m: z - self.start_m[2],
            held_s,
        }
    }

    fn why_not(&self, state: &ObjectState) -> Option<PushFailure> {
        let t = &self.task;
        let [x, y, z] = state.position_m;
        // Written so that a NaN fails.
        let holds = [
            (
                (z - self.start_m[2]).abs() <= t.height_m || state.tilt().0 > t.tilt_rad,
                PushFailure::OffTheTable,
            ),
            (state.tilt().0 <= t.tilt_rad, PushFailure::Tilted),
            ((x - self.start_m[0]).abs() <= t.sideways_m, PushFailure::Sideways),
            (t.left_of.sign() * (y - self.start_m[1]) >= t.distance_m, PushFailure::TooShort),
            (state.speed_m_s < t.speed_m_s && state.spin_rad_s < t.spin_rad_s, PushFailure::NotAtRest),
        ];
        holds.into_iter().find(|(ok, _)| !ok).map(|(_, why)| why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: [f64; 3] = [0.25, -0.02, 0.015];

    fn judged(task: PushTask, state: ObjectState, seconds: f64) -> PushVerdict {
        let mut judge = PushJudge::new(task, START);
        judge.watch(0.0, &state);
        judge.watch(seconds, &state);
        judge.verdict()
    }

    fn at(dx: f64, dy: f64, dz: f64) -> ObjectState {
        ObjectState::resting([START[0] + dx, START[1] + dy, START[2] + dz], Radians(1.0))
    }

    fn tilted(deg: f64) -> ObjectState {
        let (s, c) = (deg.to_radians() / 2.0).sin_cos();
        ObjectState { quat_wxyz: [c, s, 0.0, 0.0], ..at(0.0, 0.1, 0.0) }
    }

    #[test]
    fn each_limit_of_the_predicate_is_where_the_task_says() {
        let moving = |speed_m_s, spin_rad_s| ObjectState { speed_m_s, spin_rad_s, ..at(0.0, 0.1, 0.0) };
        let nan = ObjectState { position_m: [f64::NAN; 3], ..at(0.0, 0.1, 0.0) };
        for (state, seconds, expected) in [
            (at(0.0, 0.0801, 0.0), 0.5, None),
            (at(0.0, 0.0799, 0.0), 0.5, Some(PushFailure::TooShort)),
            (at(0.0, -0.1, 0.0), 0.5, Some(PushFailure::TooShort)),
            (at(0.0399, 0.1, 0.0), 0.5, None),
            (at(0.0401, 0.1, 0.0), 0.5, Some(PushFailure::Sideways)),
            (at(-0.0401, 0.1, 0.0), 0.5, Some(PushFailure::Sideways)),
            (at(0.0, 0.1, 0.0029), 0.5, None),
            (at(0.0, 0.1, 0.0031), 0.5, Some(PushFailure::OffTheTable)),
            (at(0.0, 0.1, -0.5), 0.5, Some(PushFailure::OffTheTable)),
            (tilted(9.99), 0.5, None),
            (tilted(10.01), 0.5, Some(PushFailure::Tilted)),
            (tilted(180.0), 0.5, Some(PushFailure::Tilted)),
            (moving(0.0099, 0.0), 0.5, None),
            (moving(0.0101, 0.0), 0.5, Some(PushFailure::NotAtRest)),
            (moving(0.0, 0.501), 0.5, Some(PushFailure::NotAtRest)),
            (at(0.0, 0.1, 0.0), 0.499, Some(PushFailure::NotAtRest)),
            (nan, 0.5, Some(PushFailure::OffTheTable)),
        ] {
            assert_eq!(
                judged(PushTask::default(), state, seconds).failure,
                expected,
                "{state:?} for {seconds} s"
            );
        }
    }

    #[test]
    fn the_cameras_left_is_the_other_side() {
        let task = PushTask::left_of(LeftOf::Camera);
        assert!(judged(task, at(0.0, -0.09, 0.0), 0.5).success());
        let wrong = judged(task, at(0.0, 0.09, 0.0), 0.5);
        assert_eq!((wrong.failure, wrong.moved_m < -0.089), (Some(PushFailure::TooShort), true));
    }

    #[test]
    fn a_moment_of_motion_starts_the_half_second_again() {
        let mut judge = PushJudge::new(PushTask::default(), START);
        let still = at(0.0, 0.1, 0.0);
        for (t, state) in
            [(0.0, still), (0.4, ObjectState { speed_m_s: 0.02, ..still }), (0.41, still), (0.9, still)]
        {
            judge.watch(t, &state);
        }
        assert_eq!(judge.verdict().failure, Some(PushFailure::NotAtRest));
        judge.watch(0.92, &still);
        assert!(judge.verdict().success());
    }

    #[test]
    fn nothing_watched_is_no_success() {
        assert_eq!(
            PushJudge::new(PushTask::default(), START).verdict().failure,
            Some(PushFailure::NotJudged)
        );
    }

    #[test]
    fn tilt_ignores_yaw_and_yaw_ignores_the_sign_of_the_quaternion() {
        let turned = ObjectState::resting(START, Radians(2.0));
        assert!(turned.tilt().0.abs() < 1e-12 && (turned.yaw().0 - 2.0).abs() < 1e-12);
        let same = ObjectState { quat_wxyz: turned.quat_wxyz.map(|v| -v), ..turned };
        assert!((same.yaw().0 - 2.0).abs() < 1e-12);
    }
}
