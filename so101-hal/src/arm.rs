//! The follower arm: six servos with a calibration, in joint units.

mod inspect;

pub use inspect::{ServoReport, Torque, inspect};

use alloc::vec::Vec;

use crate::bus::{ServoBus, SyncReplies};
use crate::calibration::Calibration;
use crate::convert::{Rounding, finite, safe_goal};
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointVector};
use crate::protocol::{Alarms, ServoId, SyncRow};
use crate::registers::{self, Telemetry};
use crate::units::{Degrees, Percent, Ticks};

/// How often switching the torque is tried.
const TORQUE_TRIES: u8 = 3;

/// Whether connecting energises the motors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TorqueAtStart {
    /// Torque goes on, with every goal at the present position first.
    #[default]
    On,
    /// Nothing is written; see [`FollowerArm::torque_on`].
    AsFound,
}

/// What becomes of the torque when the driver is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TorqueAtDrop {
    /// Off, as far as the bus still works: the arm sinks.
    #[default]
    Off,
    /// As it is: the arm holds its last goal.
    Keep,
}

/// What a servo's homing offset that differs from the calibration's means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OffsetMismatch {
    /// The arm is refused: the positions mean something else than the calibration says.
    #[default]
    Refuse,
    /// The arm is taken; its angles are shifted by the difference.
    Accept,
}

/// How a [`FollowerArm`] behaves.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ArmOptions {
    /// LeRobot's `max_relative_target`: the most that a goal may differ from the present position, for each joint
    /// (body in degrees, gripper in percent). Costs one more read a goal. `None` = no limit but the range.
    pub max_relative_target: Option<JointVector<Degrees>>,
    /// How goals become encoder steps; the default truncates as LeRobot does.
    pub rounding: Rounding,
    /// Whether connecting energises the motors.
    pub torque_at_start: TorqueAtStart,
    /// What becomes of the torque when the driver is dropped.
    pub torque_at_drop: TorqueAtDrop,
    /// Whether another homing offset than the calibration's is taken.
    pub offset_mismatch: OffsetMismatch,
}

impl ArmOptions {
    /// The same step limit for all body joints, and one for the gripper.
    #[must_use]
    pub fn with_max_relative_target(mut self, body: Degrees, gripper: Percent) -> Self {
        self.max_relative_target = Some(JointVector { body: [body; 5], gripper });
        self
    }

    /// Another behaviour at the start.
    #[must_use]
    pub const fn with_torque_at_start(mut self, torque: TorqueAtStart) -> Self {
        self.torque_at_start = torque;
        self
    }

    /// Another behaviour when dropped.
    #[must_use]
    pub const fn with_torque_at_drop(mut self, torque: TorqueAtDrop) -> Self {
        self.torque_at_drop = torque;
        self
    }

    /// Another rounding of goals.
    #[must_use]
    pub const fn with_rounding(mut self, rounding: Rounding) -> Self {
        self.rounding = rounding;
        self
    }

    /// Another treatment of homing offsets that differ.
    #[must_use]
    pub const fn with_offset_mismatch(mut self, mismatch: OffsetMismatch) -> Self {
        self.offset_mismatch = mismatch;
        self
    }
}

/// What is known of one joint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JointState {
    /// The last telemetry that came.
    pub telemetry: Telemetry,
    /// The alarms beside it, and those of its status register.
    pub alarms: Alarms,
    /// Reads in a row that this joint has not answered: 0 = the telemetry is fresh.
    pub missed: u32,
}

/// An SO-101 follower on a bus.
///
/// Connecting pings all six servos, reads their registers, checks model and homing offset, makes every present
/// position the goal and only then switches the torque on. Each read takes the whole telemetry block, alarms
/// included. Goals are clamped to the calibrated range. Dropping the arm switches the torque off, as far as the bus
/// still works (see [`TorqueAtDrop`]); [`Self::torque_off`] does so with proof.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::arm::FollowerArm;
/// use so101_hal::{Calibration, Degrees, EmulatedServos, EmulatorOptions, JointVector, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// let mut arm = FollowerArm::connect(servos.bus(), Calibration::model())?;
/// let here = arm.read_joints()?;
/// let sent = arm.send(&JointVector { body: [Degrees(500.0); 5], ..here })?;
/// assert!(sent.body[0].get() < 111.0); // clamped to the calibrated range
/// arm.torque_off()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FollowerArm<B: ServoBus> {
    bus: B,
    calibration: Calibration,
    options: ArmOptions,
    ids: [ServoId; 6],
    reports: [ServoReport; 6],
    states: [JointState; 6],
    replies: SyncReplies,
    torque: Torque,
}

impl<B: ServoBus> FollowerArm<B> {
    /// Connects with the default options. To keep the bus, lend it: `&mut bus` is a bus too.
    ///
    /// # Errors
    /// [`Error::ServosSilent`], [`Error::ServoModel`], [`Error::HomingOffset`], [`Error::Torque`], errors of the
    /// calibration and of the bus. The torque is off again after an error.
    pub fn connect(bus: B, calibration: Calibration) -> Result<Self> {
        Self::connect_with(bus, calibration, ArmOptions::default())
    }

    /// Connects with options.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_with(mut bus: B, calibration: Calibration, options: ArmOptions) -> Result<Self> {
        let reports = inspect(&mut bus, &calibration)?;
        for (report, (joint, c)) in reports.iter().zip(calibration.iter()) {
            c.validate()?;
            if report.homing_offset.0 != c.homing_offset && options.offset_mismatch == OffsetMismatch::Refuse
            {
                return Err(Error::HomingOffset {
                    joint,
                    id: c.id,
                    servo: report.homing_offset.0,
                    calibration: c.homing_offset,
                });
            }
        }
        let states = reports.map(|r| JointState { telemetry: r.telemetry, alarms: r.alarms, missed: 0 });
        let torque = if reports.iter().all(|r| r.torque == Torque::Off) { Torque::Off } else { Torque::On };
        let ids = reports.map(|r| r.id);
        let at_start = options.torque_at_start;
        let mut arm =
            Self { bus, calibration, options, ids, reports, states, replies: SyncReplies::new(), torque };
        if at_start == TorqueAtStart::On {
            arm.torque_on()?;
        }
        Ok(arm)
    }

    /// What each servo said while connecting, in joint order.
    #[must_use]
    pub const fn reports(&self) -> &[ServoReport; 6] {
        &self.reports
    }

    /// What is known of each joint since the last read, in joint order.
    #[must_use]
    pub const fn states(&self) -> &[JointState; 6] {
        &self.states
    }

    /// The calibration.
    #[must_use]
    pub const fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The bus below, for what this driver does not do.
    pub const fn bus_mut(&mut self) -> &mut B {
        &mut self.bus
    }

    /// Reads the telemetry of all joints with one request; each joint that answers is updated in [`Self::states`],
    /// whatever the others do.
    ///
    /// # Errors
    /// When the port is gone. A joint that does not answer is no error here, see [`JointState::missed`].
    pub fn update(&mut self) -> Result<&[JointState; 6]> {
        self.bus.sync_read(registers::TELEMETRY, &self.ids, &mut self.replies)?;
        for (state, (_, reply)) in self.states.iter_mut().zip(self.replies.iter()) {
            match reply.map(|r| (r.alarms, <&[u8; Telemetry::LEN]>::try_from(r.data))) {
                Ok((alarms, Ok(bytes))) => {
                    let telemetry = Telemetry::from_bytes(bytes);
                    *state = JointState { telemetry, alarms: alarms | telemetry.status, missed: 0 };
                }
                _ => state.missed = state.missed.saturating_add(1),
            }
        }
        Ok(&self.states)
    }

    /// Reads all joints: body in LeRobot degrees, gripper in percent.
    ///
    /// # Errors
    /// [`Error::NoReply`] when a joint does not answer, even when asked again ([`Self::states`] has the others), and
    /// when the port is gone.
    pub fn read_joints(&mut self) -> Result<JointVector<Degrees>> {
        self.update()?;
        if let Some((id, fault)) = self.replies.iter().find_map(|(id, reply)| Some((id, reply.err()?))) {
            return Err(Error::NoReply { what: "telemetry read", id: id.get(), fault });
        }
        self.calibration.to_degrees(&self.states.map(|s| s.telemetry.position))
    }

    /// Sends a goal, clamped to the calibrated range (and to [`ArmOptions::max_relative_target`]), and returns what
    /// the servos were really told.
    ///
    /// # Errors
    /// [`Error::NonFinite`] for NaN or infinite goals; nothing is sent then. Errors of the bus.
    pub fn send(&mut self, goal: &JointVector<Degrees>) -> Result<JointVector<Degrees>> {
        for (value, joint) in goal.to_row().into_iter().zip(JOINTS) {
            finite(joint.feature_name(), value)?;
        }
        let mut goal = self.clamped(goal)?;
        if let Some(max_step) = self.options.max_relative_target {
            let present = self.read_joints()?;
            goal = self.clamped(&safe_goal(&goal, &present, &max_step)?)?;
        }
        let mut ticks = self.calibration.to_ticks(&goal, self.options.rounding)?;
        for (ticks, c) in ticks.iter_mut().zip(self.calibration.joints()) {
            ticks.0 = ticks.0.clamp(c.range_min, c.range_max);
        }
        self.write_goals(&ticks)?;
        self.calibration.to_degrees(&ticks)
    }

    /// Makes the present positions the goals, then switches the torque on and checks that it is.
    ///
    /// # Errors
    /// [`Error::NoReply`] when a joint cannot be read, [`Error::Torque`] when the torque of some joints stays off,
    /// and when the port is gone.
    pub fn torque_on(&mut self) -> Result<()> {
        self.read_joints()?;
        // From here on the torque may be on, whatever happens: the drop has to know.
        self.torque = Torque::On;
        self.write_goals(&self.states.map(|s| s.telemetry.position))?;
        self.switch_torque(Torque::On)
    }

    /// Switches the torque off, reads it back, and tries again where it is still on.
    ///
    /// # Errors
    /// [`Error::Torque`] with the servos whose torque is not known to be off, and when the port is gone.
    pub fn torque_off(&mut self) -> Result<()> {
        self.switch_torque(Torque::Off)
    }

    fn switch_torque(&mut self, wanted: Torque) -> Result<()> {
        let byte = [u8::from(wanted == Torque::On)];
        for _ in 0..TORQUE_TRIES {
            let rows = self.ids.map(|id| SyncRow { id, data: &byte });
            self.bus.sync_write(registers::TORQUE_ENABLE.address, &rows)?;
            self.bus.sync_read(registers::TORQUE_ENABLE.block(), &self.ids, &mut self.replies)?;
            if self.differing(byte[0]).next().is_none() {
                self.torque = wanted;
                return Ok(());
            }
        }
        let ids: Vec<u8> = self.differing(byte[0]).map(ServoId::get).collect();
        Err(Error::Torque { ids, wanted: wanted.name(), tries: TORQUE_TRIES })
    }

    /// Servos whose last reply is not this one byte.
    fn differing(&self, byte: u8) -> impl Iterator<Item = ServoId> {
        self.replies
            .iter()
            .filter(move |(_, r)| r.map(|r| r.data != [byte]).unwrap_or(true))
            .map(|(id, _)| id)
    }

    fn write_goals(&mut self, ticks: &[Ticks; 6]) -> Result<()> {
        let mut bytes = [[0; 2]; 6];
        for (bytes, ticks) in bytes.iter_mut().zip(ticks) {
            *bytes = registers::GOAL_POSITION.encode(ticks.0)?;
        }
        let rows: [SyncRow<'_>; 6] = core::array::from_fn(|i| SyncRow { id: self.ids[i], data: &bytes[i] });
        self.bus.sync_write(registers::GOAL_POSITION.address, &rows)
    }

    /// Body joints within the calibrated range, gripper within 0..=100.
    fn clamped(&self, goal: &JointVector<Degrees>) -> Result<JointVector<Degrees>> {
        let mut out = *goal;
        for (value, c) in out.body.iter_mut().zip(self.calibration.joints()) {
            let (low, high) = (c.degrees(Ticks(c.range_min))?, c.degrees(Ticks(c.range_max))?);
            value.0 = value.0.clamp(low.0, high.0);
        }
        out.gripper.0 = out.gripper.0.clamp(0.0, 100.0);
        Ok(out)
    }
}

impl<B: ServoBus> Drop for FollowerArm<B> {
    fn drop(&mut self) {
        if self.options.torque_at_drop == TorqueAtDrop::Off && self.torque != Torque::Off {
            // Nobody is left to tell; an e-stop or the power switch remain.
            let _ = self.torque_off();
        }
    }
}

#[cfg(test)]
mod tests;
