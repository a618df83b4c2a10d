//! The moment in which a follower begins to follow.

use alloc::vec::Vec;
use core::fmt;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId, JointVector};
use crate::units::{Degrees, Percent};

/// How far apart two arms may be, and how fast the difference is taken up.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CouplingOptions {
    /// The largest difference, for each joint, that is taken up at all.
    pub max_gap: JointVector<Degrees>,
    /// How fast it is taken up, a second.
    pub catch_up: JointVector<Degrees>,
}

impl Default for CouplingOptions {
    /// 25 degrees and 60 % of the gripper, at 40 degrees and 80 % a second.
    fn default() -> Self {
        Self {
            max_gap: JointVector { body: [Degrees(25.0); 5], gripper: Percent(60.0) },
            catch_up: JointVector { body: [Degrees(40.0); 5], gripper: Percent(80.0) },
        }
    }
}

impl CouplingOptions {
    /// Another largest difference of the body joints.
    #[must_use]
    pub const fn with_max_gap(mut self, gap: Degrees) -> Self {
        self.max_gap.body = [gap; 5];
        self
    }

    /// No largest difference: everything is taken up, at the limited speed.
    #[must_use]
    pub const fn with_any_gap(mut self) -> Self {
        self.max_gap = JointVector { body: [Degrees(f64::INFINITY); 5], gripper: Percent(f64::INFINITY) };
        self
    }
}

/// A joint in which leader and follower are too far apart. Degrees, for the gripper percent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct JointGap {
    /// The joint.
    pub joint: JointId,
    /// Where the leader has it.
    pub leader: f64,
    /// Where the follower is.
    pub follower: f64,
    /// The largest difference.
    pub limit: f64,
}

impl fmt::Display for JointGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.joint == JointId::Gripper { "%" } else { "deg" };
        let Self { joint, leader, follower, limit } = self;
        write!(f, "{joint} leader {leader:.1} follower {follower:.1} {unit}, at most {limit:.0} apart")
    }
}

/// Couples a follower to a leader: refuses a gap, then takes up what is left of it at a limited speed.
///
/// ```
/// use std::time::Duration;
/// use so101_hal::teleop::{Coupling, CouplingOptions};
/// use so101_hal::{Degrees, JointVector, Timestamp};
/// # fn main() -> so101_hal::Result<()> {
/// let follower = JointVector::<Degrees>::default();
/// let mut leader = follower;
/// leader.body[0] = Degrees(8.0);
/// let mut coupling = Coupling::engage(&leader, &follower, CouplingOptions::default())?;
/// let at = |ms| Timestamp::from_start(Duration::from_millis(ms));
/// assert_eq!(coupling.follow(&leader, at(0)).body[0], Degrees(0.0));
/// assert_eq!(coupling.follow(&leader, at(100)).body[0], Degrees(4.0));
/// assert_eq!(coupling.follow(&leader, at(300)).body[0], Degrees(8.0));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Coupling {
    options: CouplingOptions,
    goal: [f64; 6],
    last: Option<Timestamp>,
    caught: [bool; 6],
}

impl Coupling {
    /// Checks the difference of all joints. The first goal is the follower's pose.
    ///
    /// # Errors
    /// [`Error::PoseGap`] with every joint that is too far away, and [`Error::NonFinite`].
    pub fn engage(
        leader: &JointVector<Degrees>,
        follower: &JointVector<Degrees>,
        options: CouplingOptions,
    ) -> Result<Self> {
        let limits = options.max_gap.to_row();
        let mut gaps = Vec::new();
        for (((joint, leader), follower), limit) in
            JOINTS.into_iter().zip(leader.to_row()).zip(follower.to_row()).zip(limits)
        {
            crate::convert::finite("a leader's joint", leader)?;
            crate::convert::finite("a follower's joint", follower)?;
            if (leader - follower).abs() > limit {
                gaps.push(JointGap { joint, leader, follower, limit });
            }
        }
        if !gaps.is_empty() {
            return Err(Error::PoseGap { gaps });
        }
        Ok(Self { options, goal: follower.to_row(), last: None, caught: [false; 6] })
    }

    /// The follower's goal while the leader is at `leader`. A joint whose difference was taken up follows at once from
    /// then on.
    #[must_use]
    pub fn follow(&mut self, leader: &JointVector<Degrees>, at: Timestamp) -> JointVector<Degrees> {
        let passed_s = self.last.map_or(0.0, |last| at.since(last).as_secs_f64());
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
        let speeds = self.options.catch_up.to_row();
        for (((goal, caught), leader), speed) in
            self.goal.iter_mut().zip(&mut self.caught).zip(leader.to_row()).zip(speeds)
        {
            let (gap, step) = (leader - *goal, speed * passed_s);
            if *caught || gap.abs() <= step {
                (*goal, *caught) = (leader, true);
            } else {
                *goal += step.copysign(gap);
            }
        }
        JointVector::<Degrees>::from_row(self.goal)
    }

    /// Whether every joint has caught up.
    #[must_use]
    pub fn is_caught_up(&self) -> bool {
        self.caught.iter().all(|c| *c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use proptest::prelude::*;

    fn row(values: [f64; 6]) -> JointVector<Degrees> {
        JointVector::<Degrees>::from_row(values)
    }

    #[test]
    fn every_joint_that_is_too_far_away_is_named_with_its_figures() {
        let leader = row([10.0, 0.0, -40.2, 0.0, 0.0, 90.0]);
        let follower = row([-20.3, 20.0, 0.0, 0.0, 24.9, 10.0]);
        let err = Coupling::engage(&leader, &follower, CouplingOptions::default()).unwrap_err();
        let said = alloc::format!("{err}");
        for part in [
            "shoulder_pan leader 10.0 follower -20.3 deg, at most 25 apart",
            "elbow_flex leader -40.2 follower 0.0 deg",
            "gripper leader 90.0 follower 10.0 %, at most 60 apart",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!said.contains("lift") && !said.contains("roll"), "{said}");
    }

    #[test]
    fn a_pose_that_is_no_number_is_refused() {
        let nan = row([f64::NAN; 6]);
        let options = CouplingOptions::default().with_any_gap();
        assert!(Coupling::engage(&nan, &row([0.0; 6]), options).is_err());
        assert!(Coupling::engage(&row([0.0; 6]), &nan, options).is_err());
    }

    proptest! {
        #[test]
        fn the_follower_never_jumps_and_ends_on_the_leader(
            gap in prop::array::uniform6(-24.0..24.0_f64),
            moves in prop::collection::vec(-0.3..0.3_f64, 40),
        ) {
            let (start, mut leader) = (row([1.0, 2.0, 3.0, 4.0, 5.0, 50.0]), row([1.0, 2.0, 3.0, 4.0, 5.0, 50.0]));
            for (joint, gap) in leader.body.iter_mut().zip(gap) {
                joint.0 += gap;
            }
            let mut coupling = Coupling::engage(&leader, &start, CouplingOptions::default()).unwrap();
            let mut before = start.to_row();
            for (k, step) in moves.into_iter().enumerate() {
                leader.body[1].0 += step;
                let goal = coupling.follow(&leader, Timestamp::from_start(Duration::from_millis(33 * k as u64))).to_row();
                for (now, before) in goal.iter().zip(before) {
                    // 40 deg/s for 33 ms, or as far as the leader itself moves.
                    prop_assert!((now - before).abs() <= 1.32 + 1e-9, "{before} to {now}");
                }
                before = goal;
            }
            prop_assert!(coupling.is_caught_up());
            prop_assert_eq!(before, leader.to_row());
        }
    }
}
