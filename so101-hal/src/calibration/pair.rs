//! What a leader and a follower need to agree beyond their calibrations.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::joint::JointVector;
use crate::units::Degrees;

/// What is added to a leader's roll to get the follower's.
///
/// The roll has no stops to be centred between: its zero is where the operator held the hand, on each arm, and two
/// hands are seldom held alike. Measured once with both hands in the same orientation, stored for the pair.
///
/// ```
/// use so101_hal::calibration::PairOffset;
/// use so101_hal::{Degrees, JointVector};
/// # fn main() -> so101_hal::Result<()> {
/// let at = |roll| JointVector::<Degrees>::from_row([0.0, 0.0, 0.0, 0.0, roll, 50.0]);
/// let pair = PairOffset::measure(&at(-3.0), &at(4.5))?;
/// assert_eq!(pair.apply(&at(10.0)).body[4], Degrees(17.5));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairOffset {
    /// Added to the leader's wrist_roll.
    #[serde(rename = "wrist_roll_deg")]
    pub wrist_roll: Degrees,
}

impl PairOffset {
    /// The offset of two arms whose hands are in the same orientation, by the shorter way around.
    ///
    /// # Errors
    /// [`Error::NonFinite`](crate::Error::NonFinite).
    pub fn measure(leader: &JointVector<Degrees>, follower: &JointVector<Degrees>) -> Result<Self> {
        let [.., leader_roll] = leader.body;
        let [.., follower_roll] = follower.body;
        let difference = crate::convert::finite("the roll of an arm", follower_roll.0 - leader_roll.0)?;
        let turns = crate::math::round(difference / 360.0);
        Ok(Self { wrist_roll: Degrees(difference - 360.0 * turns) })
    }

    /// A leader's pose as the follower's.
    #[must_use]
    pub fn apply(&self, leader: &JointVector<Degrees>) -> JointVector<Degrees> {
        let mut pose = *leader;
        let [.., roll] = &mut pose.body;
        roll.0 += self.wrist_roll.0;
        pose
    }
}

#[cfg(feature = "std")]
mod stored {
    use std::path::PathBuf;

    use super::PairOffset;
    use crate::calibration::Folders;
    use crate::calibration::file::{Existing, save_text, show};
    use crate::error::{Error, Result};

    impl PairOffset {
        /// Reads the offset of a pair of arms; `None` where none was stored.
        ///
        /// # Errors
        /// [`Error::CalibrationFile`] and [`Error::ArmName`].
        pub fn load(folders: &Folders, leader: &str, follower: &str) -> Result<Option<Self>> {
            let path = folders.pair_path(leader, follower)?;
            let fail = |source| Error::CalibrationFile { doing: "read", path: show(&path), source };
            match std::fs::read_to_string(&path) {
                Ok(text) => serde_json::from_str(&text).map(Some).map_err(|e| fail(e.into())),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(fail(e.into())),
            }
        }

        /// Stores the offset of a pair of arms, beside their calibrations: `so101_pairs/LEADER--FOLLOWER.json`.
        ///
        /// # Errors
        /// [`Error::CalibrationFile`] and [`Error::ArmName`].
        pub fn save(&self, folders: &Folders, leader: &str, follower: &str) -> Result<PathBuf> {
            let path = folders.pair_path(leader, follower)?;
            let text = format!("{{\n    \"wrist_roll_deg\": {:?}\n}}\n", self.wrist_roll.0);
            save_text(&path, &text, Existing::Backup)?;
            Ok(path)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_goes_the_shorter_way_and_touches_the_roll_alone() {
        let at = |roll: f64| JointVector::<Degrees>::from_row([1.0, 2.0, 3.0, 4.0, roll, 5.0]);
        for (leader, follower, offset) in [(170.0, -175.0, 15.0), (-170.0, 175.0, -15.0), (0.0, 90.0, 90.0)] {
            let pair = PairOffset::measure(&at(leader), &at(follower)).unwrap();
            assert!((pair.wrist_roll.0 - offset).abs() < 1e-9);
            assert_eq!(pair.apply(&at(leader)).to_row()[..4], [1.0, 2.0, 3.0, 4.0]);
        }
        assert!(PairOffset::measure(&at(f64::NAN), &at(0.0)).is_err());
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_pair_is_stored_by_the_names_of_its_arms() {
        let dir = tempfile::tempdir().unwrap();
        let folders = crate::calibration::Folders::new(dir.path());
        assert_eq!(PairOffset::load(&folders, "l", "f").unwrap(), None);
        let pair = PairOffset { wrist_roll: Degrees(-7.25) };
        pair.save(&folders, "l", "f").unwrap();
        assert_eq!(PairOffset::load(&folders, "l", "f").unwrap(), Some(pair));
        assert_eq!(PairOffset::load(&folders, "f", "l").unwrap(), None);
    }
}
