//! Robots to record with: the emulated arm, which needs no hardware, and the real one.
//!
//! The emulated one lives on a [`VirtualClock`](so101_hal::VirtualClock): nothing moves until the control loop sleeps,
//! and the same seed gives the same bytes. [`RealRig`] lives in real time.

mod emulated;
pub mod real;

pub use emulated::EmulatedRig;
pub use real::RealRig;

/// Whether a rig makes pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pictures {
    /// One a camera of the plan with every observation.
    #[default]
    On,
    /// None, and no cameras in its description: for what concerns joints and objects alone.
    Off,
}
