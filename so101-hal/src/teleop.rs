//! What tells the arm where to go when a person does: a leader arm, a keyboard, a script.
//!
//! A [`Teleoperator`] is engaged with the follower's pose first. A leader that is too far away refuses, with the joints
//! and their angles; one that is near enough is coupled softly: its first actions start at the follower's pose and catch
//! up with the leader at a limited speed, joint by joint.

mod coupling;
mod keyboard;
mod leader;
mod scripted;

pub use coupling::{Coupling, CouplingOptions, JointGap};
pub use keyboard::{EeAxis, Key, KeySource, KeySteps, Keyboard, Keys, Way};
pub use leader::{Leader, LeaderOptions};
pub use scripted::{Script, Scripted, Waypoint};

use alloc::boxed::Box;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::joint::JointVector;
use crate::robot::Action;
use crate::units::Degrees;

/// Who decides where the joints shall go.
///
/// Contract: `engage` once with the follower's pose, then `action` once a control period with moments that do not go
/// back. After an error of `action` the follower is not told anything new: it holds.
///
/// ```
/// use std::time::Duration;
/// use so101_hal::teleop::{Scripted, Teleoperator, Waypoint};
/// use so101_hal::{Degrees, JointVector, Timestamp};
/// # fn main() -> so101_hal::Result<()> {
/// let home = JointVector::<Degrees>::default();
/// let mut there = home;
/// there.body[0] = Degrees(20.0);
/// let mut teleop = Scripted::new("wave", vec![
///     Waypoint::new(Duration::ZERO, home),
///     Waypoint::new(Duration::from_secs(2), there),
/// ])?;
/// teleop.engage(&home)?;
/// teleop.action(Timestamp::ZERO)?;
/// let half = teleop.action(Timestamp::from_start(Duration::from_secs(1)))?;
/// assert_eq!(half.joints.body[0], Degrees(10.0));
/// # Ok(()) }
/// ```
pub trait Teleoperator: Send {
    /// Its name, for messages.
    fn name(&self) -> &str;

    /// Takes the follower's pose before the first action.
    ///
    /// # Errors
    /// [`Error::PoseGap`](crate::Error::PoseGap) where the follower would have to jump, and errors of its own hardware.
    fn engage(&mut self, follower: &JointVector<Degrees>) -> Result<()>;

    /// Where the operator wants the joints now: LeRobot degrees, gripper percent.
    ///
    /// # Errors
    /// [`Error::NotEngaged`](crate::Error::NotEngaged), and errors of its own hardware.
    fn action(&mut self, at: Timestamp) -> Result<Action>;

    /// Whether the operator has nothing more to say: a script at its end, a key to quit.
    fn is_finished(&self) -> bool {
        false
    }
}

macro_rules! forward_teleoperator {
    ($($target:ty),*) => {$(
        impl<T: Teleoperator + ?Sized> Teleoperator for $target {
            fn name(&self) -> &str {
                (**self).name()
            }
            fn engage(&mut self, follower: &JointVector<Degrees>) -> Result<()> {
                (**self).engage(follower)
            }
            fn action(&mut self, at: Timestamp) -> Result<Action> {
                (**self).action(at)
            }
            fn is_finished(&self) -> bool {
                (**self).is_finished()
            }
        }
    )*};
}

forward_teleoperator!(&mut T, Box<T>);
