//! The calibration procedure: a sequence of steps over a bus, driven by its caller, without input or output of its own.

use alloc::vec::Vec;

use super::eeprom;
use super::plan::{self, CalibrationPlan, HomingOrder, JointInput, ReferencePoint};
use super::sweep::JointSweep;
use super::{Calibration, JointCalibration};
use crate::bus::{ServoBus, SyncReplies};
use crate::convert::{MAX_TICK, TURN};
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId, JointVector};
use crate::protocol::ServoId;
use crate::registers::{self, PHASE_MULTI_TURN, STS3215};
use crate::units::{Degrees, Radians, Ticks};

/// What a servo may show beside what was computed, after its homing offset was written: a hand is never quite still.
const SHOWN_TOLERANCE: Ticks = Ticks(100);

/// How often reading all six servos is tried where all are needed.
const READ_TRIES: u8 = 5;

/// A pose of known angles that the operator puts the arm into.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReferencePose {
    /// Only the hand is in its place: the roll at the model's zero, the hinge of the jaw to the left of the fixed finger
    /// seen from behind, its axis level with the table.
    Roll,
    /// The whole arm is in a pose whose model angles are these; the middles of the sweeps are measured against it.
    Arm([Radians; 5]),
}

/// How a [`Calibrator`] works.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CalibratorOptions {
    /// What comes first.
    pub order: HomingOrder,
    /// A sweep has to cover this share of the model's range, 0 to 1.
    pub min_share: f64,
}

impl Default for CalibratorOptions {
    /// Sweep first, 60 % of the model's range.
    fn default() -> Self {
        Self { order: HomingOrder::SweepFirst, min_share: 0.6 }
    }
}

impl CalibratorOptions {
    /// Another order.
    #[must_use]
    pub const fn with_order(mut self, order: HomingOrder) -> Self {
        self.order = order;
        self
    }
}

/// What a servo held before, to be put back when the procedure is given up.
#[derive(Clone, Copy, Debug)]
struct Before {
    entry: JointCalibration,
    phase: i32,
    mode: i32,
    lock: i32,
}

/// What was done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibrated {
    /// What the servos hold now; what goes into the file.
    pub calibration: Calibration,
    /// What it was computed from, and what there is to say about it.
    pub plan: CalibrationPlan,
    /// Registers that were written at the end; those that were right already are not.
    pub written: u32,
}

/// Calibrates the arm on a bus. The steps:
///
/// 1. [`Self::begin`]: the torque must be off on all six servos (somebody holds the arm). Clears phase bit 4, sets
///    position mode, no homing offset, limits 0 to 4095; each compared first, then written and read back.
/// 2. [`Self::sample`], again and again while the operator moves every joint to both of its stops.
///    [`Self::restart`] forgets the sweep of a joint.
/// 3. [`Self::take_reference`] in a reference pose: the zero of the roll, which has no stops to be centred between.
///    (LeRobot's order instead: [`Self::take_mid_pose`] before step 2.)
/// 4. [`Self::plan`] computes offsets, ranges and the report, or names every joint whose sweep is no good; back to 2 then.
/// 5. [`Self::finish`] writes registers 31, 9 and 11, reads them back, checks that the servos show what was computed,
///    and locks the EEPROM.
///
/// Dropped or [aborted](Self::abort) before that, what the servos held is put back.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::calibration::{Calibrator, CalibratorOptions, ReferencePose};
/// use so101_hal::{EmulatedServos, EmulatorOptions, JOINTS, VirtualClock};
/// # fn main() -> so101_hal::Result<()> {
/// let servos = EmulatedServos::new(Arc::new(VirtualClock::new()), EmulatorOptions::default());
/// let mut calibrator = Calibrator::begin(servos.bus(), CalibratorOptions::default())?;
/// for to in (1000..=2000).rev().step_by(100).chain((1000..=3100).step_by(100)) {
///     JOINTS.iter().for_each(|j| servos.set_ticks(*j, f64::from(to)));
///     calibrator.sample()?;
/// }
/// calibrator.take_reference(ReferencePose::Roll)?;
/// let plan = calibrator.plan()?;
/// let done = calibrator.finish(&plan)?;
/// assert_eq!(done.calibration.joints()[0].homing_offset, 2050 - 2048);
/// # Ok(()) }
/// ```
pub struct Calibrator<B: ServoBus> {
    bus: B,
    options: CalibratorOptions,
    ids: [ServoId; 6],
    before: [Before; 6],
    sweeps: [JointSweep; 6],
    references: [Option<ReferencePoint>; 6],
    mid_pose: Option<[i32; 6]>,
    replies: SyncReplies,
    restore: bool,
}

impl<B: ServoBus> core::fmt::Debug for Calibrator<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Calibrator").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<B: ServoBus> Calibrator<B> {
    /// Checks the servos 1 to 6 and makes them ready for the sweep. To keep the bus, lend it: `&mut bus` is a bus too.
    ///
    /// # Errors
    /// [`Error::ServosSilent`], [`Error::ServoModel`], [`Error::Energised`] while any torque is on (nothing was written
    /// then), [`Error::RegisterNotTaken`], and errors of the bus.
    pub fn begin(mut bus: B, options: CalibratorOptions) -> Result<Self> {
        let ids = ServoId::ARM;
        let before = look(&mut bus, &ids)?;
        let start = [JointSweep::new(Ticks(0), bus.now()); 6];
        let mut calibrator = Self {
            bus,
            options,
            ids,
            before,
            sweeps: start,
            references: [None; 6],
            mid_pose: None,
            replies: SyncReplies::new(),
            restore: true,
        };
        for (id, before) in ids.into_iter().zip(before) {
            let bus = &mut calibrator.bus;
            eeprom::ensure(bus, id, &registers::LOCK, 0)?;
            eeprom::ensure(bus, id, &registers::PHASE, before.phase & !i32::from(PHASE_MULTI_TURN))?;
            eeprom::ensure(bus, id, &registers::OPERATING_MODE, 0)?;
            eeprom::ensure(bus, id, &registers::HOMING_OFFSET, 0)?;
            eeprom::ensure(bus, id, &registers::MIN_POSITION_LIMIT, 0)?;
            eeprom::ensure(bus, id, &registers::MAX_POSITION_LIMIT, MAX_TICK)?;
        }
        let positions = read_all(&mut calibrator.bus, &ids, &mut calibrator.replies)?;
        let at = calibrator.bus.now();
        calibrator.sweeps = positions.map(|p| JointSweep::new(p, at));
        Ok(calibrator)
    }

    /// Reads all six positions once. A joint that does not answer keeps its last one; see [`JointSweep::missed`].
    ///
    /// # Errors
    /// When the port is gone.
    pub fn sample(&mut self) -> Result<&[JointSweep; 6]> {
        self.bus.sync_read(registers::PRESENT_POSITION.block(), &self.ids, &mut self.replies)?;
        let at = self.bus.now();
        for (sweep, (_, reply)) in self.sweeps.iter_mut().zip(self.replies.iter()) {
            match reply.ok().and_then(|r| registers::PRESENT_POSITION.decode(r.data).ok()) {
                Some(position) => {
                    sweep.feed(Ticks(position), at);
                }
                None => sweep.miss(),
            }
        }
        Ok(&self.sweeps)
    }

    /// The sweeps so far, in joint order.
    #[must_use]
    pub const fn sweeps(&self) -> &[JointSweep; 6] {
        &self.sweeps
    }

    /// How this procedure works.
    #[must_use]
    pub const fn options(&self) -> &CalibratorOptions {
        &self.options
    }

    /// Forgets the sweep of a joint, and begins it again where it is. A reference pose or middle pose that was taken
    /// stays: positions go on being counted from the same zero.
    pub fn restart(&mut self, joint: JointId) {
        let i = joint.index();
        let anchor = self.mid_pose.map(|pose| pose[i]).or(self.references[i].map(|r| r.at));
        match anchor {
            Some(anchor) if self.sweeps[i].jumps() > 0 => self.sweeps[i].restart_near(anchor),
            _ => self.sweeps[i].restart(),
        }
    }

    /// Takes the present positions as a reference pose.
    ///
    /// # Errors
    /// [`Error::NoReply`] where a joint does not answer, [`Error::NonFinite`], and when the port is gone.
    pub fn take_reference(&mut self, pose: ReferencePose) -> Result<()> {
        let now = self.whole_sample()?;
        let model: [Option<Degrees>; 5] = match pose {
            ReferencePose::Roll => [None, None, None, None, Some(Degrees(0.0))],
            ReferencePose::Arm(angles) => {
                for angle in angles {
                    crate::convert::finite("an angle of the reference pose", angle.0)?;
                }
                angles.map(|a| Some(Degrees::from(a)))
            }
        };
        for ((slot, (model, at)), joint) in
            self.references.iter_mut().zip(model.into_iter().zip(now)).zip(JOINTS)
        {
            *slot = model.map(|m| {
                // Of the roll the zero is kept, which is where the pose is less its angle, whole turns aside.
                let to_zero = if joint == JointId::WristRoll {
                    (m.0 % 360.0 / 360.0 * f64::from(TURN)) as i32
                } else {
                    0
                };
                ReferencePoint { at: at - to_zero, model: Some(m) }
            });
        }
        Ok(())
    }

    /// LeRobot's order: takes the present positions for the middle of every joint, and begins all sweeps here.
    ///
    /// # Errors
    /// As [`Self::take_reference`].
    pub fn take_mid_pose(&mut self) -> Result<()> {
        self.mid_pose = Some(self.whole_sample()?);
        self.sweeps.iter_mut().for_each(JointSweep::restart);
        Ok(())
    }

    /// Offsets, ranges and report of what was swept so far. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Sweep`] with every joint whose sweep cannot be used, and [`Error::CalibrationStep`] where LeRobot's order
    /// was asked for and no middle pose was taken.
    pub fn plan(&self) -> Result<CalibrationPlan> {
        if self.options.order == HomingOrder::MidPoseFirst && self.mid_pose.is_none() {
            return Err(Error::CalibrationStep { missing: "the middle pose" });
        }
        let inputs: [JointInput; 6] = JOINTS.map(|joint| {
            let i = joint.index();
            JointInput {
                joint,
                id: self.ids[i].get(),
                sweep: self.sweeps[i],
                reference: self.references[i],
                mid_pose: self.mid_pose.map(|pose| pose[i]),
            }
        });
        plan::plan(&inputs, self.options.order, self.options.min_share)
    }

    /// Writes a plan of this arm into its servos, reads it back, checks that they show what was computed, and locks the
    /// EEPROM.
    ///
    /// # Errors
    /// [`Error::RegisterNotTaken`], [`Error::ShownPosition`], [`Error::NoReply`] and errors of the bus; what the servos
    /// held before is put back then, as far as the bus still works.
    pub fn finish(mut self, plan: &CalibrationPlan) -> Result<Calibrated> {
        // Without offset: the encoder itself.
        let encoder = self.whole_sample()?;
        let mut written = 0;
        for (id, (_, c)) in self.ids.into_iter().zip(plan.calibration.iter()) {
            written += write_entry(&mut self.bus, id, c)?;
        }
        let shown = read_all(&mut self.bus, &self.ids, &mut self.replies)?;
        for ((joint, c), (encoder, shown)) in plan.calibration.iter().zip(encoder.into_iter().zip(shown)) {
            let expected = (encoder - c.homing_offset).rem_euclid(TURN);
            let off = (shown.0 - expected + TURN / 2).rem_euclid(TURN) - TURN / 2;
            if off.abs() > SHOWN_TOLERANCE.0 {
                return Err(Error::ShownPosition { joint, id: c.id, expected, shown: shown.0 });
            }
        }
        for id in self.ids {
            written += u32::from(eeprom::ensure(&mut self.bus, id, &registers::LOCK, 1)?);
        }
        self.restore = false;
        Ok(Calibrated { calibration: plan.calibration, plan: plan.clone(), written })
    }

    /// Puts back what the servos held before.
    ///
    /// # Errors
    /// [`Error::RegisterNotTaken`] and errors of the bus.
    pub fn abort(mut self) -> Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<()> {
        self.restore = false;
        let mut all = Ok(());
        for (id, before) in self.ids.into_iter().zip(self.before) {
            // A servo that fails does not keep the others from theirs.
            all = all.and(put_back_one(&mut self.bus, id, &before));
        }
        all
    }

    /// Samples until all six have answered.
    fn whole_sample(&mut self) -> Result<[i32; 6]> {
        for _ in 0..READ_TRIES {
            self.sample()?;
            if self.replies.is_complete() {
                break;
            }
        }
        if let Some((id, fault)) = self.replies.iter().find_map(|(id, r)| Some((id, r.err()?))) {
            return Err(Error::NoReply { what: "position read", id: id.get(), fault });
        }
        Ok(self.sweeps.map(|s| s.now().0))
    }
}

impl<B: ServoBus> Drop for Calibrator<B> {
    fn drop(&mut self) {
        if self.restore {
            // Nobody is left to tell.
            let _ = self.put_back();
        }
    }
}

fn put_back_one(bus: &mut (impl ServoBus + ?Sized), id: ServoId, before: &Before) -> Result<()> {
    eeprom::ensure(bus, id, &registers::LOCK, 0)?;
    eeprom::ensure(bus, id, &registers::PHASE, before.phase)?;
    eeprom::ensure(bus, id, &registers::OPERATING_MODE, before.mode)?;
    write_entry(bus, id, &before.entry)?;
    eeprom::ensure(bus, id, &registers::LOCK, before.lock)?;
    Ok(())
}

fn write_entry(bus: &mut (impl ServoBus + ?Sized), id: ServoId, c: &JointCalibration) -> Result<u32> {
    let mut written = 0;
    for (register, value) in [
        (&registers::HOMING_OFFSET, c.homing_offset),
        (&registers::MIN_POSITION_LIMIT, c.range_min),
        (&registers::MAX_POSITION_LIMIT, c.range_max),
    ] {
        written += u32::from(eeprom::ensure(bus, id, register, value)?);
    }
    Ok(written)
}

fn entry_of(bus: &mut (impl ServoBus + ?Sized), id: ServoId) -> Result<(i32, i32, i32)> {
    Ok((
        bus.read_register(id, &registers::HOMING_OFFSET)?.value,
        bus.read_register(id, &registers::MIN_POSITION_LIMIT)?.value,
        bus.read_register(id, &registers::MAX_POSITION_LIMIT)?.value,
    ))
}

/// Pings, models and torque of all servos, and what they hold. Writes nothing.
fn look(bus: &mut (impl ServoBus + ?Sized), ids: &[ServoId; 6]) -> Result<[Before; 6]> {
    let mut silent = Vec::new();
    for id in ids {
        match bus.ping(*id) {
            Ok(_) => {}
            Err(Error::NoReply { id, .. }) => silent.push(id),
            Err(e) => return Err(e),
        }
    }
    if !silent.is_empty() {
        return Err(Error::ServosSilent { ids: silent });
    }
    let empty = JointCalibration { id: 0, drive_mode: 0, homing_offset: 0, range_min: 0, range_max: 0 };
    let mut before = [Before { entry: empty, phase: 0, mode: 0, lock: 1 }; 6];
    let mut on = Vec::new();
    for ((id, slot), joint) in ids.iter().copied().zip(&mut before).zip(JOINTS) {
        let mut value = |register| Ok::<i32, Error>(bus.read_register(id, register)?.value);
        let model = value(&registers::MODEL_NUMBER)? as u16;
        if model != STS3215 {
            return Err(Error::ServoModel { joint, id: id.get(), model, expected: STS3215 });
        }
        if value(&registers::TORQUE_ENABLE)? != 0 {
            on.push(id.get());
        }
        (slot.phase, slot.mode) = (value(&registers::PHASE)?, value(&registers::OPERATING_MODE)?);
        slot.lock = value(&registers::LOCK)?;
        let (homing_offset, range_min, range_max) = entry_of(bus, id)?;
        slot.entry = JointCalibration { id: id.get(), homing_offset, range_min, range_max, ..empty };
    }
    if on.is_empty() { Ok(before) } else { Err(Error::Energised { ids: on }) }
}

/// Positions of all six, however often it takes.
fn read_all(
    bus: &mut (impl ServoBus + ?Sized),
    ids: &[ServoId; 6],
    replies: &mut SyncReplies,
) -> Result<[Ticks; 6]> {
    let mut positions = [None; 6];
    let mut last = None;
    for _ in 0..READ_TRIES {
        bus.sync_read(registers::PRESENT_POSITION.block(), ids, replies)?;
        for (slot, (id, reply)) in positions.iter_mut().zip(replies.iter()) {
            match reply {
                Ok(reply) => *slot = Some(Ticks(registers::PRESENT_POSITION.decode(reply.data)?)),
                Err(fault) => last = Some((id, fault)),
            }
        }
        if let [Some(a), Some(b), Some(c), Some(d), Some(e), Some(g)] = positions {
            return Ok([a, b, c, d, e, g]);
        }
    }
    let (id, fault) = last.unwrap_or((ids[0], crate::bus::ReplyFault::Missing));
    Err(Error::NoReply { what: "position read", id: id.get(), fault })
}

/// The joints of a calibration as degrees, for showing where a calibrated arm is.
///
/// # Errors
/// [`Error::NoReply`] where a joint does not answer, errors of the calibration and of the bus.
pub fn read_pose(
    bus: &mut (impl ServoBus + ?Sized),
    calibration: &Calibration,
) -> Result<JointVector<Degrees>> {
    let mut ids = ServoId::ARM;
    for (id, c) in ids.iter_mut().zip(calibration.joints()) {
        *id = ServoId::new(c.id)?;
    }
    calibration.to_degrees(&read_all(bus, &ids, &mut SyncReplies::new())?)
}

#[cfg(test)]
mod tests;
