//! What inverse kinematics answers.

use core::fmt;

use super::geometry::finite;
use crate::error::{Error, Result};
use crate::joint::JointId;
use crate::units::{Degrees, Radians};

/// On which side of the pan axis the TCP is, seen along the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Facing {
    /// The arm is turned toward the target.
    Front,
    /// The arm is turned away and reaches over its own shoulder.
    Back,
}

/// How the elbow is bent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elbow {
    /// Above the line from shoulder to wrist (or straight).
    Up,
    /// Below it.
    Down,
}

/// Joint angles that reach a target, within the limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IkSolution {
    /// The five body joints, all within [`LIMITS`](super::LIMITS).
    pub q: [Radians; 5],
    /// Which way the arm is turned.
    pub facing: Facing,
    /// Which way the elbow is bent.
    pub elbow: Elbow,
    /// By how much the joint that lay furthest outside of its limits was moved to be inside; 0 when none was, and
    /// rounding errors when the target was made from angles at a limit.
    pub clamped: Radians,
    /// Distance of the TCP from the position asked for.
    pub position_error_m: f64,
    /// Angle from the orientation asked for; for position, pitch and roll, the larger error of pitch and roll.
    pub rotation_error: Radians,
}

/// One to four solutions, in a fixed order: front before back, elbow up before down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solutions {
    first: IkSolution,
    more: [IkSolution; 3],
    len: usize,
}

impl Solutions {
    pub(super) const fn new(first: IkSolution) -> Self {
        Self { first, more: [first; 3], len: 1 }
    }

    pub(super) fn push(&mut self, solution: IkSolution) {
        if let Some(slot) = self.more.get_mut(self.len - 1) {
            *slot = solution;
            self.len += 1;
        }
    }

    /// The first of them; there always is one.
    #[must_use]
    pub const fn first(&self) -> &IkSolution {
        &self.first
    }

    /// How many there are, 1 to 4.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &IkSolution> {
        core::iter::once(&self.first).chain(self.more.iter().take(self.len - 1))
    }

    /// The one whose joint angles are closest to `to` (sum of squares), the earlier one when two are as close.
    ///
    /// # Errors
    /// [`Error::NonFinite`] when `to` is not finite.
    pub fn nearest(&self, to: &[Radians; 5]) -> Result<&IkSolution> {
        finite("a joint angle in radians", &to.map(|v| v.0))?;
        let squares =
            |s: &IkSolution| s.q.iter().zip(to).map(|(a, b)| (a.0 - b.0) * (a.0 - b.0)).sum::<f64>();
        let mut best = (&self.first, squares(&self.first));
        for solution in self.iter().skip(1) {
            let distance = squares(solution);
            if distance < best.1 {
                best = (solution, distance);
            }
        }
        Ok(best.0)
    }
}

/// Why no joint angles reach a target: that of the branch that came closest.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unreachable {
    /// A joint would have to leave its limits.
    JointLimit {
        /// The joint.
        joint: JointId,
        /// How far outside.
        by: Radians,
    },
    /// The wrist would have to be further from the shoulder than upper arm and forearm are long.
    TooFar {
        /// By this much.
        by_m: f64,
    },
    /// The target is too close to the shoulder or to the pan axis.
    TooNear {
        /// By this much.
        by_m: f64,
    },
    /// The approach leaves the vertical plane that the arm moves in: five joints cannot turn the hand so.
    OffPlane {
        /// Distance of the wrist from where the plane has it.
        by_m: f64,
        /// Angle of the approach against the plane.
        by: Radians,
    },
}

impl Unreachable {
    /// Smaller is closer to a solution: limits first, then lengths, then orientations.
    pub(super) const fn rank(&self) -> (u8, f64) {
        match *self {
            Self::JointLimit { by, .. } => (0, by.0),
            Self::TooFar { by_m } | Self::TooNear { by_m } => (1, by_m),
            Self::OffPlane { by_m, by } => (2, by_m + 0.1 * by.0),
        }
    }

    pub(super) const fn error(self, position_m: [f64; 3]) -> Error {
        Error::Unreachable { position_m, why: self }
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::JointLimit { joint, by } => {
                write!(f, "{joint} would be {:.2} outside of its limits", Degrees::from(by))
            }
            Self::TooFar { by_m } => write!(f, "it is {:.1} mm too far away", by_m * 1e3),
            Self::TooNear { by_m } => {
                write!(f, "it is {:.1} mm too close to the shoulder or the pan axis", by_m * 1e3)
            }
            Self::OffPlane { by_m, by } => write!(
                f,
                "its orientation is {:.2} and {:.2} mm out of the plane of the arm, choose pitch and roll instead",
                Degrees::from(by),
                by_m * 1e3
            ),
        }
    }
}
