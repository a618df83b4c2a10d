//! A visit of the place where the object lies, for tasks that have no demonstrator.

use std::time::Duration;

use so101_hal::kinematics::{Kinematics, Tcp};
use so101_hal::{Degrees, Percent, Radians};

use super::path::{Path, Posture, Segment};
use super::{Goal, Hand, JAW_BACK_M, LeftOf, OTHER_PITCHES_DEG, PITCH_DEG, Phase, joints};
use crate::error::Result;
use crate::plan::{EpisodeSetup, Home};

/// Gap between the fingertip and the top of the object.
const ABOVE_M: f64 = 0.045;
/// Height on the way there and back, above the place of the visit.
const HIGHER_M: f64 = 0.030;
/// Highest speed of the fingertip.
const TRAVEL_M_S: f64 = 0.20;
const OPEN: Percent = Percent(60.0);
const CLOSED: Percent = Percent(10.0);

/// Goes from home to above the object, closes and opens the jaws there without touching it, and goes home.
///
/// It carries out no task. A set that is recorded with it shows every position of a plan, from every camera, before
/// somebody spends an afternoon on the real arm.
///
/// ```
/// use std::time::Duration;
/// use so101_support::expert::{LeftOf, Phase, Visit};
/// use so101_support::plan::{Jitter, Plan};
/// let plan = Plan::push_left();
/// let setup = plan.episode(0, 0, Jitter::On)?;
/// let mut visit = Visit::new(&plan.home(), &setup, LeftOf::Robot)?;
/// assert_eq!(visit.goal(Duration::ZERO)?.phase, Phase::Approach);
/// let end = visit.duration() + Duration::from_millis(1);
/// assert_eq!(visit.goal(end)?.phase, Phase::Done);
/// # Ok::<(), so101_support::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Visit {
    hand: Hand,
    path: Path,
    last: [Radians; 5],
}

impl Visit {
    /// Plans the way for this episode and checks that the arm can go it.
    ///
    /// # Errors
    /// [`Error::Unreachable`](crate::Error::Unreachable) when some point of it is out of reach.
    pub fn new(home: &Home, setup: &EpisodeSetup, left_of: LeftOf) -> Result<Self> {
        let hand = Hand { arm: Kinematics::new(Tcp::LEROBOT_FINGERTIP), left_of };
        let at_home = Posture { fingertip_m: home.fingertip_m, pitch: home.pitch, gripper: home.gripper };
        let last = hand.any_solution(&at_home)?;
        let with_pitch = |pitch_deg: f64| {
            let mut path = way(at_home, setup, Degrees(pitch_deg).into());
            hand.slow_down(&mut path, last)?;
            Ok(Self { hand, path, last })
        };
        // What the preferred pitch is refused for says most about the plan.
        with_pitch(PITCH_DEG)
            .or_else(|e| OTHER_PITCHES_DEG.into_iter().find_map(|p| with_pitch(p).ok()).ok_or(e))
    }

    /// How long the whole motion takes.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.path.duration()
    }

    /// The goal at a time since the start of the episode. Calls have to come in the order of time.
    ///
    /// # Errors
    /// [`Error::Unreachable`](crate::Error::Unreachable) when a point is out of reach, which [`Self::new`] has ruled
    /// out.
    pub fn goal(&mut self, at: Duration) -> Result<Goal> {
        let (phase, posture) = self.path.at(at);
        self.last = self.hand.nearest_solution(&posture, &self.last)?;
        Ok(Goal { joints: joints(&self.last, posture.gripper), phase })
    }
}

fn way(home: Posture, setup: &EpisodeSetup, pitch: Radians) -> Path {
    let z_m = setup.object.size_m[2] + ABOVE_M + JAW_BACK_M;
    let place = |z_m: f64, gripper: Percent| Posture {
        fingertip_m: [setup.pose.x_m, setup.pose.y_m, z_m],
        pitch,
        gripper,
    };
    let mut path = Path::new(home);
    for (phase, to) in [
        (Phase::Approach, place(z_m + HIGHER_M, OPEN)),
        (Phase::Descend, place(z_m, OPEN)),
        (Phase::Release, place(z_m, CLOSED)),
        (Phase::Release, place(z_m, OPEN)),
        (Phase::Retreat, place(z_m + HIGHER_M, OPEN)),
        (Phase::Return, home),
    ] {
        path.push(Segment::minimum_jerk(phase, path.end(), to, TRAVEL_M_S));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Jitter, Plan};

    #[test]
    fn every_place_of_every_plan_is_visited_from_above_and_left_for_home() {
        let texts = [
            include_str!("../../../../tasks/push_left.toml"),
            include_str!("../../../../tasks/pick_place.toml"),
            include_str!("../../../../tasks/stack.toml"),
        ];
        let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
        for text in texts {
            let plan = Plan::parse(text, "plan").unwrap();
            for index in 0..plan.episodes() {
                let setup = plan.episode(3, index, Jitter::On).unwrap();
                let mut visit = Visit::new(&plan.home(), &setup, LeftOf::Robot).unwrap();
                assert!(visit.duration() < setup.cap, "{:?}", visit.duration());
                let (mut nearest_m, mut lowest_m) = (f64::MAX, f64::MAX);
                let periods = (visit.duration().as_secs_f64() * 30.0) as u32;
                for i in 0..=periods {
                    let goal = visit.goal(Duration::from_secs(i.into()) / 30).unwrap();
                    let [x_m, y_m, z_m] = arm.fk(&goal.joints.body.map(Radians::from)).position_m;
                    nearest_m = nearest_m.min((x_m - setup.pose.x_m).hypot(y_m - setup.pose.y_m));
                    lowest_m = lowest_m.min(z_m);
                }
                assert!(nearest_m < 0.002, "{nearest_m} {setup:?}");
                assert!(lowest_m > setup.object.size_m[2] + 0.04, "{lowest_m} {setup:?}");
            }
        }
    }
}
