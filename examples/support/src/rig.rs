//! Robots that need no hardware.
//!
//! They live on a [`VirtualClock`](so101_hal::VirtualClock): nothing moves until the control loop sleeps, and the same
//! seed gives the same bytes.

mod emulated;

pub use emulated::EmulatedRig;

/// Whether a rig makes pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pictures {
    /// One a camera of the plan with every observation.
    #[default]
    On,
    /// None, and no cameras in its description: for what concerns joints and objects alone.
    Off,
}
