//! Demonstrators that know where the object is: they decide the goal of every control period by themselves.
//!
//! [`PushLeft`] works in the space of the fingertip: waypoints joined by minimum-jerk segments, inverse kinematics at
//! every period. It needs the plan's cell and the object's pose at the start, and no rig in particular. [`Visit`] goes
//! above the object and back, whatever the task is: it shows a plan's places, and does nothing there.

mod path;
mod visit;

pub use visit::Visit;

use std::time::Duration;

use so101_hal::kinematics::{Kinematics, PAN_X_M, ROLL_PHASE_RAD, Tcp};
use so101_hal::{Degrees, JointVector, Percent, Radians};

use self::path::{Path, Posture, Segment};
use crate::error::{Error, Result};
use crate::plan::{EpisodeSetup, Home};

/// What the demonstrator is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Closes the jaws and goes above the place behind the object.
    Approach,
    /// Goes down behind it.
    Descend,
    /// Pushes.
    Push,
    /// Draws back, so that going up does not drag the object along.
    Release,
    /// Goes up.
    Retreat,
    /// Goes home and opens the jaws.
    Return,
    /// Is home, all done.
    Done,
}

/// Which way is "left".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeftOf {
    /// The robot's left, +y of the base.
    #[default]
    Robot,
    /// The left in the picture of a camera that faces the robot, -y of the base.
    Camera,
}

impl LeftOf {
    /// +1 or -1: the sign of y in the base frame.
    #[must_use]
    pub fn sign(self) -> f64 {
        match self {
            Self::Robot => 1.0,
            Self::Camera => -1.0,
        }
    }
}

/// How [`PushLeft`] pushes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PushConfig {
    /// Which way is left.
    pub left_of: LeftOf,
    /// How far the object shall go.
    pub push_m: f64,
    /// Gap between jaw and object where the jaw comes down.
    pub clearance_m: f64,
    /// Height of the fingertip on its way to the object and back.
    pub travel_z_m: f64,
    /// Highest speed of the fingertip in the air.
    pub travel_m_s: f64,
    /// Highest speed of the fingertip near the object.
    pub push_m_s: f64,
}

impl Default for PushConfig {
    fn default() -> Self {
        Self {
            left_of: LeftOf::Robot,
            push_m: 0.100,
            clearance_m: 0.025,
            travel_z_m: 0.085,
            travel_m_s: 0.25,
            push_m_s: 0.16,
        }
    }
}

impl PushConfig {
    /// Another "left".
    #[must_use]
    pub const fn with_left_of(mut self, left_of: LeftOf) -> Self {
        self.left_of = left_of;
        self
    }
}

/// What to do in this control period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Goal positions: degrees of the model's joints, which are LeRobot's where the arm's calibration is
    /// `Calibration::model()`.
    pub joints: JointVector<Degrees>,
    /// What it is part of.
    pub phase: Phase,
}

/// Pushes one object to the left with closed jaws: behind it, down to half of its height, sideways, back, up, home.
///
/// ```
/// use std::time::Duration;
/// use so101_support::expert::{Phase, PushConfig, PushLeft};
/// use so101_support::plan::{Jitter, Plan};
/// let plan = Plan::push_left();
/// let setup = plan.episode(0, 0, Jitter::On)?;
/// let mut expert = PushLeft::new(&plan.home(), &setup, PushConfig::default())?;
/// assert!(expert.duration() <= setup.cap);
/// let goal = expert.goal(Duration::ZERO)?;
/// assert_eq!(goal.phase, Phase::Approach);
/// # Ok::<(), so101_support::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PushLeft {
    hand: Hand,
    path: Path,
    last: [Radians; 5],
}

/// Inverse kinematics of a hand that shows the back of its fixed jaw to the object.
#[derive(Clone, Copy, Debug)]
struct Hand {
    arm: Kinematics,
    left_of: LeftOf,
}

/// The back of the fixed jaw stands out over LeRobot's fingertip by this much.
const JAW_BACK_M: f64 = 0.0045;
/// The hand leans back to the base: it touches this much nearer to the base than its fingertip is.
const LEAN_M: f64 = 0.012;
const RELEASE_M: f64 = 0.020;
const CLOSED: Percent = Percent(0.0);
/// The hand's pitch, and those tried in this order when some point of the way is out of reach by it.
const PITCH_DEG: f64 = 60.0;
const OTHER_PITCHES_DEG: [f64; 5] = [55.0, 65.0, 50.0, 70.0, 45.0];
/// The fastest that a joint shall turn.
const MAX_JOINT_RAD_S: f64 = 2.4;
/// Each segment is tried at this many points before the way is begun.
const TRIALS: u32 = 64;

impl PushLeft {
    /// Plans the way for this episode and checks that the arm can go it, at no more than 2.4 rad/s a joint.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when some point of it is out of reach.
    pub fn new(home: &Home, setup: &EpisodeSetup, config: PushConfig) -> Result<Self> {
        let hand = Hand { arm: Kinematics::new(Tcp::LEROBOT_FINGERTIP), left_of: config.left_of };
        let at_home = Posture { fingertip_m: home.fingertip_m, pitch: home.pitch, gripper: home.gripper };
        let last = hand.any_solution(&at_home)?;
        let with_pitch = |pitch_deg: f64| {
            let mut path = plan_path(at_home, setup, &config, Degrees(pitch_deg).into());
            hand.slow_down(&mut path, last)?;
            Ok(Self { hand, path, last })
        };
        // What the preferred pitch is refused for says most about the plan.
        with_pitch(PITCH_DEG)
            .or_else(|e| OTHER_PITCHES_DEG.into_iter().find_map(|p| with_pitch(p).ok()).ok_or(e))
    }

    /// The arm's posture at home, where every episode starts and ends.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the plan's home is out of reach.
    pub fn home(home: &Home, left_of: LeftOf) -> Result<JointVector<Degrees>> {
        let hand = Hand { arm: Kinematics::new(Tcp::LEROBOT_FINGERTIP), left_of };
        let posture = Posture { fingertip_m: home.fingertip_m, pitch: home.pitch, gripper: home.gripper };
        Ok(joints(&hand.any_solution(&posture)?, posture.gripper))
    }

    /// How long the whole motion takes.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.path.duration()
    }

    /// The goal at a time since the start of the episode. Calls have to come in the order of time.
    ///
    /// Where the object goes meanwhile is not asked: on a face with friction, a hand that follows a slipping object
    /// drags it farther away.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when a point is out of reach, which [`Self::new`] has ruled out.
    pub fn goal(&mut self, at: Duration) -> Result<Goal> {
        let (phase, posture) = self.path.at(at);
        self.last = self.hand.nearest_solution(&posture, &self.last)?;
        Ok(Goal { joints: joints(&self.last, posture.gripper), phase })
    }
}

impl Hand {
    /// The roll by which the fixed jaw's back faces the push: the gripper link's x axis against it.
    ///
    /// In (radial, lateral, up) of the arm's plane that axis is (cos f sin p, -sin f, cos f cos p), with the pitch p
    /// and f = phase - roll; f is chosen so that its component along the base's y is the smallest (the largest).
    fn roll(&self, posture: &Posture) -> Radians {
        let [x, y, _] = posture.fingertip_m;
        let azimuth = y.atan2(x - PAN_X_M);
        let sign = self.left_of.sign();
        Radians(ROLL_PHASE_RAD - (sign * azimuth.cos()).atan2(-sign * posture.pitch.0.sin() * azimuth.sin()))
    }

    /// The posture with the elbow up, for want of a posture before.
    fn any_solution(&self, posture: &Posture) -> Result<[Radians; 5]> {
        const ELBOW_UP: [Radians; 5] =
            [Radians(0.0), Radians(-0.8), Radians(1.0), Radians(0.8), Radians(0.0)];
        self.nearest_solution(posture, &ELBOW_UP)
    }

    /// Tries the whole way, and stretches the segments in which some joint would have to turn too fast.
    fn slow_down(&self, path: &mut Path, start: [Radians; 5]) -> Result<()> {
        let mut last = start;
        for segment in path.segments_mut() {
            let mut fastest_rad_s: f64 = 0.0;
            for i in 1..=TRIALS {
                let q = self
                    .nearest_solution(&segment.at_share_of_time(f64::from(i) / f64::from(TRIALS)), &last)?;
                let turned = q.iter().zip(last).map(|(a, b)| (a.0 - b.0).abs()).fold(0.0, f64::max);
                fastest_rad_s = fastest_rad_s.max(turned * f64::from(TRIALS) / segment.moving_s());
                last = q;
            }
            segment.stretch((fastest_rad_s / MAX_JOINT_RAD_S).max(1.0));
        }
        Ok(())
    }

    fn nearest_solution(&self, posture: &Posture, to: &[Radians; 5]) -> Result<[Radians; 5]> {
        let solutions = self.arm.ik(posture.fingertip_m, posture.pitch, self.roll(posture));
        solutions.and_then(|s| s.nearest(to).map(|s| s.q)).map_err(|source| {
            let [x_mm, y_mm, z_mm] = posture.fingertip_m.map(|m| m * 1000.0);
            Error::Unreachable { what: "the push", x_mm, y_mm, z_mm, source }
        })
    }
}

fn joints(body: &[Radians; 5], gripper: Percent) -> JointVector<Degrees> {
    JointVector { body: body.map(Degrees::from), gripper }
}

fn plan_path(home: Posture, setup: &EpisodeSetup, config: &PushConfig, pitch: Radians) -> Path {
    let sign = config.left_of.sign();
    let pose = &setup.pose;
    let behind_m = setup.object.footprint(pose).half_extent_m([0.0, 1.0]) + JAW_BACK_M;
    let place = |y_m: f64, z_m: f64| Posture {
        fingertip_m: [pose.x_m + LEAN_M, pose.y_m + sign * y_m, z_m],
        pitch,
        gripper: CLOSED,
    };
    let low_m = setup.object.size_m[2] / 2.0;
    let (before_m, after_m) = (-behind_m - config.clearance_m, -behind_m + config.push_m);
    let ways = [
        (Phase::Approach, place(before_m, config.travel_z_m), config.travel_m_s),
        (Phase::Descend, place(before_m, low_m), config.push_m_s),
        (Phase::Push, place(after_m, low_m), config.push_m_s),
        (Phase::Release, place(after_m - RELEASE_M, low_m), config.push_m_s),
        (Phase::Retreat, place(after_m - RELEASE_M, config.travel_z_m), config.push_m_s),
        (Phase::Return, home, config.travel_m_s),
    ];
    let mut path = Path::new(home);
    for (phase, to, m_s) in ways {
        path.push(Segment::minimum_jerk(phase, path.end(), to, m_s));
    }
    path
}

#[cfg(test)]
mod tests;
