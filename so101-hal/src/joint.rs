//! The six joints of the arm and a value for each of them.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::units::Percent;

/// One of the six joints, in LeRobot's order (which is also the order of the servo ids 1 to 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JointId {
    /// Turns the whole arm about the vertical.
    ShoulderPan,
    /// Leans the upper arm forward.
    ShoulderLift,
    /// Bends the forearm down.
    ElbowFlex,
    /// Bends the hand down.
    WristFlex,
    /// Turns the hand about the approach axis.
    WristRoll,
    /// Opens the moving jaw.
    Gripper,
}

/// All joints in order.
pub const JOINTS: [JointId; 6] = [
    JointId::ShoulderPan,
    JointId::ShoulderLift,
    JointId::ElbowFlex,
    JointId::WristFlex,
    JointId::WristRoll,
    JointId::Gripper,
];

/// The five joints that carry the hand, in order.
pub const BODY_JOINTS: [JointId; 5] =
    [JointId::ShoulderPan, JointId::ShoulderLift, JointId::ElbowFlex, JointId::WristFlex, JointId::WristRoll];

impl JointId {
    /// LeRobot's motor name, `shoulder_pan` to `gripper`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShoulderPan => "shoulder_pan",
            Self::ShoulderLift => "shoulder_lift",
            Self::ElbowFlex => "elbow_flex",
            Self::WristFlex => "wrist_flex",
            Self::WristRoll => "wrist_roll",
            Self::Gripper => "gripper",
        }
    }

    /// The name of this joint's column in a dataset, `shoulder_pan.pos` to `gripper.pos`.
    #[must_use]
    pub const fn feature_name(self) -> &'static str {
        match self {
            Self::ShoulderPan => "shoulder_pan.pos",
            Self::ShoulderLift => "shoulder_lift.pos",
            Self::ElbowFlex => "elbow_flex.pos",
            Self::WristFlex => "wrist_flex.pos",
            Self::WristRoll => "wrist_roll.pos",
            Self::Gripper => "gripper.pos",
        }
    }

    /// Position in a [`JointVector`], 0 to 5.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The id that LeRobot gives this joint's servo, 1 to 6.
    #[must_use]
    pub const fn servo_id(self) -> u8 {
        self as u8 + 1
    }
}

impl core::fmt::Display for JointId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// A value for each joint: five body joints in unit `U`, and the gripper in percent.
///
/// ```
/// use so101_hal::{Degrees, JointVector, Percent};
/// let q = JointVector { body: [Degrees(0.0); 5], gripper: Percent(40.0) };
/// assert_eq!(q.map(|d| d.0 as f32).body, [0.0; 5]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JointVector<U> {
    /// shoulder_pan, shoulder_lift, elbow_flex, wrist_flex, wrist_roll.
    pub body: [U; 5],
    /// 0 closed, 100 open.
    pub gripper: Percent,
}

impl<U: Copy> JointVector<U> {
    /// The same with each body joint mapped by `f`.
    pub fn map<V>(self, f: impl FnMut(U) -> V) -> JointVector<V> {
        JointVector { body: self.body.map(f), gripper: self.gripper }
    }
}

macro_rules! bare {
    ($unit:ty) => {
        impl JointVector<$unit> {
            /// From six bare numbers in the order of [`JOINTS`], body joints in this vector's unit, gripper in
            /// percent: the layout of `action` and `observation.state` in a dataset.
            #[must_use]
            pub fn from_row(row: [f64; 6]) -> Self {
                let [a, b, c, d, e, g] = row;
                Self { body: [a, b, c, d, e].map(<$unit>::from_bare), gripper: Percent(g) }
            }

            /// The six bare numbers in the order of [`JOINTS`]; the inverse of [`Self::from_row`].
            #[must_use]
            pub fn to_row(&self) -> [f64; 6] {
                let [a, b, c, d, e] = self.body.map(|v| v.0);
                [a, b, c, d, e, self.gripper.0]
            }

            /// `false` when any of the six is NaN or infinite.
            #[must_use]
            pub fn is_finite(&self) -> bool {
                self.to_row().iter().all(|v| v.is_finite())
            }
        }

        impl $unit {
            const fn from_bare(v: f64) -> Self {
                Self(v)
            }
        }
    };
}

bare!(crate::units::Degrees);
bare!(crate::units::Radians);
bare!(crate::units::Normalized);

/// The six column names of `action` and `observation.state`.
#[must_use]
pub fn feature_names() -> [String; 6] {
    JOINTS.map(|j| String::from(j.feature_name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Degrees;

    #[test]
    fn ids_names_and_indices_follow_lerobots_order() {
        for (i, j) in JOINTS.iter().enumerate() {
            assert_eq!((j.index(), usize::from(j.servo_id())), (i, i + 1));
            assert_eq!(j.feature_name(), alloc::format!("{j}.pos"));
        }
    }

    #[test]
    fn a_row_keeps_the_order_and_is_its_own_inverse() {
        let row = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let q = JointVector::<Degrees>::from_row(row);
        assert_eq!((q.body[1], q.gripper), (Degrees(2.0), Percent(6.0)));
        assert_eq!(q.to_row(), row);
    }
}
