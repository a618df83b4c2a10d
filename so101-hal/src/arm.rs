//! The arm: six servos with a calibration, in joint units, whose state is part of its type.
//!
//! | type | motors | may |
//! |---|---|---|
//! | `Arm<B, Relaxed>` | off, the arm is limp | change the EEPROM ([`Arm::configure`]), be moved by hand |
//! | `Arm<B, Holding>` | on, every goal stands still | ramp to a pose, relax |
//! | `Arm<B, Armed>` | on | follow goals ([`Arm::send`]) |
//!
//! # What a process leaves behind
//! A servo holds its last goal until somebody switches its torque off or the power goes; losing the host does not relax
//! it. So:
//!
//! | the process ends by | `Relaxed` | `Holding`, `Armed` |
//! |---|---|---|
//! | [`Arm::finish`] (what a program does on Ctrl-C and SIGTERM) | off | as the [`Ending`] says: off, ramp to rest then off, or held |
//! | drop, a panic's unwinding included | off | [`OnDrop`]: off and read back (default), or held |
//! | panic with [`install_panic_hook`](crate::safety::install_panic_hook) | off | off at once by a broadcast, then as for drop |
//! | [`EmergencyStop::stop`], second Ctrl-C | off | off at once by a broadcast |
//! | SIGKILL, loss of the host, unplugged adapter | off | held at the last goal, which is at most one limited step away |
//!
//! # What is never done
//! Connecting writes nothing. Torque never goes on before every goal is the present position, read twice. A goal that
//! is no number, too old, or meant for an arm whose state is not known is refused. EEPROM is written only while the
//! arm is relaxed, only where it differs, and is locked again.

mod burden;
mod configure;
mod connect;
mod ending;
mod estop;
mod inner;
mod inspect;
mod limits;
mod options;
mod recover;
mod send;
mod torque;

pub use burden::{Incident, IncidentKind};
pub use configure::{
    Configured, GripperProtection, PidGains, RegisterWrite, ServoProfile, Setting, apply_settings,
};
pub use connect::FoundArm;
pub use ending::{Ending, Ramp};
pub use estop::EmergencyStop;
pub use inspect::{ServoReport, Torque, inspect};
pub use limits::Clip;
pub use options::{ArmOptions, MotionLimits, OffsetMismatch, OnDrop, OverloadPolicy, StallRule, Watchdog};
pub use send::Sent;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use self::inner::Core;
use crate::bus::ServoBus;
use crate::calibration::Calibration;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::joint::JointVector;
use crate::protocol::Alarms;
use crate::registers::Telemetry;
use crate::units::Degrees;

mod sealed {
    pub trait Sealed {}
}

/// What an arm's motors do, as far as its driver is concerned: [`Relaxed`], [`Holding`] or [`Armed`].
pub trait ArmState: sealed::Sealed + Send + Sync + fmt::Debug + 'static {
    /// The state's name, lower case.
    const NAME: &'static str;
    /// Whether the motors are on.
    const TORQUE: Torque;
}

macro_rules! states {
    ($($(#[$doc:meta])* $state:ident, $name:literal, $torque:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $state;
        impl sealed::Sealed for $state {}
        impl ArmState for $state {
            const NAME: &'static str = $name;
            const TORQUE: Torque = Torque::$torque;
        }
    )*};
}

states! {
    /// Limp; the only state in which the EEPROM may be written.
    Relaxed, "relaxed", Off;
    /// Energised, with goals that stand still.
    Holding, "holding", On;
    /// Energised, and told where to go.
    Armed, "armed", On;
}

/// What is known of one joint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JointState {
    /// The last telemetry that came.
    pub telemetry: Telemetry,
    /// The alarms beside it, and those of its status register.
    pub alarms: Alarms,
    /// Reads in a row that this joint has not answered: 0 = the telemetry is fresh.
    pub missed: u32,
    /// When the telemetry came.
    pub at: Timestamp,
    /// Readings that were not believed: a jump that no servo makes, gone when it was asked again.
    pub implausible: u32,
}

/// Whether the arm's state is known well enough to steer it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Health {
    /// Every joint answers.
    #[default]
    Good,
    /// A joint has been silent for [`Watchdog::degraded_after`]: no goal is sent until it answers.
    Degraded,
    /// A joint was silent for [`Watchdog::lost_after`]: the arm holds, and only [`Arm::resume`] makes it follow again.
    Lost,
}

/// A step that an arm did not take: the arm as it was, and why. Turns into its error with `?`.
pub struct Refused<A> {
    /// The arm, in its old state.
    pub arm: Box<A>,
    /// Why.
    pub error: Error,
}

impl<A> Refused<A> {
    pub(crate) fn new(arm: A, error: Error) -> Self {
        Self { arm: Box::new(arm), error }
    }
}

impl<A> fmt::Debug for Refused<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<A> fmt::Display for Refused<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<A> core::error::Error for Refused<A> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.error.source()
    }
}

impl<A> From<Refused<A>> for Error {
    fn from(refused: Refused<A>) -> Self {
        refused.error
    }
}

/// An SO-101 arm on a bus, in state `S`. See the [module](self) for what each state may do.
///
/// Each read takes the whole telemetry of all joints, alarms included. Steps that may fail give the arm back, see
/// [`Refused`].
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::arm::{Arm, ArmOptions, Clip, MotionLimits};
/// use so101_hal::{Calibration, Clock, Degrees, EmulatedServos, EmulatorOptions, JointVector, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let clock = VirtualClock::new();
/// let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
/// let options = ArmOptions::new(Arc::new(clock.clone())).with_limits(MotionLimits::unlimited());
///
/// let found = Arm::connect(servos.bus(), Calibration::model(), options)?; // writes nothing
/// let mut arm = found.into_holding()?.arm()?; // goals at the present positions, then torque, read back
/// let here = arm.read_joints()?;
/// let sent = arm.send(&JointVector { body: [Degrees(500.0); 5], ..here }, clock.now())?;
/// assert!(sent.joints.body[0].get() < 111.0 && sent.clipped[0] == Clip::RANGE);
/// arm.relax()?; // read back from all six
/// # Ok(()) }
/// ```
pub struct Arm<B: ServoBus, S: ArmState = Relaxed> {
    core: Box<Core<B>>,
    state: PhantomData<S>,
}

impl<B: ServoBus, S: ArmState> fmt::Debug for Arm<B, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arm")
            .field("state", &S::NAME)
            .field("torque", &self.core.torque)
            .field("health", &self.core.health())
            .field("stopped", &self.core.stop.stopped())
            .finish_non_exhaustive()
    }
}

impl<B: ServoBus, S: ArmState> Arm<B, S> {
    fn new(core: Box<Core<B>>) -> Self {
        Self { core, state: PhantomData }
    }

    fn into_state<T: ArmState>(self) -> Arm<B, T> {
        Arm::new(self.core)
    }

    /// Reads the telemetry of all joints with one request; each joint that answers is updated in [`Self::states`],
    /// whatever the others do. On an energised arm, overloaded and stalled joints are eased on the way, see
    /// [`Self::take_incidents`].
    ///
    /// # Errors
    /// When the port is gone. A joint that does not answer is no error here, see [`JointState::missed`].
    pub fn update(&mut self) -> Result<&[JointState; 6]> {
        self.core.update()?;
        Ok(&self.core.states)
    }

    /// Reads all joints: body in LeRobot degrees, gripper in percent.
    ///
    /// # Errors
    /// [`Error::NoReply`] when a joint does not answer, even when asked again ([`Self::states`] has the others), and
    /// when the port is gone.
    pub fn read_joints(&mut self) -> Result<JointVector<Degrees>> {
        self.core.update()?;
        self.core.present()
    }

    /// What is known of each joint since the last read, in joint order.
    #[must_use]
    pub fn states(&self) -> &[JointState; 6] {
        &self.core.states
    }

    /// What each servo said when it was connected or calibrated last, in joint order.
    #[must_use]
    pub fn reports(&self) -> &[ServoReport; 6] {
        &self.core.reports
    }

    /// The calibration.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.core.calibration
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &ArmOptions {
        &self.core.options
    }

    /// The bus below, for what this driver does not do. What is written there is not known here.
    pub fn bus_mut(&mut self) -> &mut B {
        &mut self.core.bus
    }

    /// Every alarm that came since this was asked last, in joint order: also those that had gone by the next read.
    pub fn take_alarms(&mut self) -> [Alarms; 6] {
        core::mem::take(&mut self.core.latched)
    }

    /// [`Self::take_alarms`] without forgetting them.
    #[must_use]
    pub fn alarms(&self) -> &[Alarms; 6] {
        &self.core.latched
    }

    /// What the driver did about overloaded and stalled joints since this was asked last, oldest first.
    pub fn take_incidents(&mut self) -> Vec<Incident> {
        core::mem::take(&mut self.core.incidents)
    }

    /// Whether the arm's state is known well enough to steer it, as of the last read.
    #[must_use]
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// What the motors were told last; [`Self::read_torque`] asks them.
    #[must_use]
    pub fn torque(&self) -> Torque {
        self.core.torque
    }

    /// Reads the state of each motor.
    ///
    /// # Errors
    /// [`Error::NoReply`], and when the port is gone.
    pub fn read_torque(&mut self) -> Result<[Torque; 6]> {
        self.core.read_torque()
    }

    /// A handle that switches the torque off from any thread. All handles of an arm share one latch.
    #[must_use]
    pub fn emergency_stop(&self) -> EmergencyStop {
        self.core.stop.clone()
    }
}

#[cfg(test)]
mod tests;
