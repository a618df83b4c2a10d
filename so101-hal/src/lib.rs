//! Hardware layer and shared vocabulary for the SO-101 robot arm.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;

pub mod arm;
pub mod bus;
pub mod calibration;
pub mod camera;
pub mod clock;
pub mod control;
pub mod convert;
pub mod discovery;
pub mod emulator;
pub mod error;
pub mod frame;
#[cfg(feature = "std")]
pub mod host;
pub mod joint;
pub mod kinematics;
mod math;
pub mod port;
pub mod preflight;
pub mod protocol;
pub mod registers;
pub mod robot;
pub mod safety;
#[cfg(feature = "serial")]
pub mod serial;
pub mod sink;
pub mod teleop;
pub mod units;

pub use arm::{
    Arm, ArmOptions, Armed, EmergencyStop, FoundArm, Holding, MotionLimits, Relaxed, Sent, ServoProfile,
};
pub use bus::{Bus, BusOptions, ServoBus};
pub use calibration::{Calibration, JointCalibration};
pub use camera::{Camera, CameraSpec};
#[cfg(feature = "std")]
pub use clock::SystemClock;
pub use clock::{Clock, Timestamp, VirtualClock};
pub use convert::{Rounding, SignBit};
pub use emulator::{EmulatedBus, EmulatedPort, EmulatedServos, EmulatorOptions};
pub use error::{BoxError, Error, Result};
pub use frame::{Frame, FrameSize};
pub use joint::{BODY_JOINTS, JOINTS, JointId, JointVector};
pub use port::Port;
pub use protocol::{Alarms, ServoId};
pub use registers::Telemetry;
pub use robot::{Action, NamedFrame, Observation, Robot, RobotDescription};
#[cfg(feature = "serial")]
pub use serial::SerialPort;
pub use sink::{EpisodeEnd, EpisodeSink, EpisodeStart, EpisodeTiming};
pub use teleop::Teleoperator;
pub use units::{Degrees, Lux, Normalized, Percent, Radians, Ticks};
