//! Registers that have to be right before an arm works: compared, written where they differ, read back, locked.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::inspect::inspect;
use super::{Arm, Relaxed};
use crate::bus::ServoBus;
use crate::error::{Error, Result};
use crate::joint::{JOINTS, JointId};
use crate::protocol::ServoId;
use crate::registers::{self, Area, PHASE_MULTI_TURN, Register};

/// Gains of a servo's position loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PidGains {
    /// Register 21.
    pub p: u8,
    /// Register 23.
    pub i: u8,
    /// Register 22.
    pub d: u8,
}

/// What keeps the gripper's motor from burning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GripperProtection {
    /// Registers 16 and 48, in 0.1 %. Register 16 acts when the power comes on, so 48 is set along with it.
    pub max_torque_permille: u16,
    /// Register 28, in 6.5 mA.
    pub protection_current_6_5ma: u16,
    /// Register 36, in percent.
    pub overload_torque_percent: u8,
}

/// The registers of an arm's role, stored with every dataset. The presets hold what LeRobot 0.6.1 writes when it
/// connects (`so_follower.py` and `so_leader.py`, `configure`), and register 48, which LeRobot forgets.
///
/// ```
/// use so101_hal::arm::ServoProfile;
/// let text = serde_json::to_string(&ServoProfile::follower()).unwrap();
/// assert_eq!(serde_json::from_str::<ServoProfile>(&text).unwrap(), ServoProfile::follower());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ServoProfile {
    /// Register 7, in 2 us.
    pub return_delay_2us: u8,
    /// Registers 41 and 85, in 100 steps a second squared.
    pub acceleration: u8,
    /// Gains of all joints; `None` = as they are.
    pub pid: Option<PidGains>,
    /// Limits of the gripper; `None` = as they are.
    pub gripper: Option<GripperProtection>,
}

impl ServoProfile {
    /// The arm that works: gains 16, 0, 32, half the torque in the gripper.
    #[must_use]
    pub const fn follower() -> Self {
        Self {
            return_delay_2us: 0,
            acceleration: 254,
            pid: Some(PidGains { p: 16, i: 0, d: 32 }),
            gripper: Some(GripperProtection {
                max_torque_permille: 500,
                protection_current_6_5ma: 250,
                overload_torque_percent: 25,
            }),
        }
    }

    /// The arm that a hand moves: gains and limits stay as they are.
    #[must_use]
    pub const fn leader() -> Self {
        Self { return_delay_2us: 0, acceleration: 254, pid: None, gripper: None }
    }

    /// Other gains.
    #[must_use]
    pub const fn with_pid(mut self, pid: Option<PidGains>) -> Self {
        self.pid = pid;
        self
    }

    /// Other limits of the gripper.
    #[must_use]
    pub const fn with_gripper(mut self, gripper: Option<GripperProtection>) -> Self {
        self.gripper = gripper;
        self
    }

    /// What this asks of the servo of a joint.
    #[must_use]
    pub fn settings(&self, joint: JointId) -> Vec<Setting> {
        let mut wanted = alloc::vec![
            Setting::value(registers::RETURN_DELAY_TIME, self.return_delay_2us.into()),
            Setting::value(registers::MAXIMUM_ACCELERATION, self.acceleration.into()),
            Setting::value(registers::ACCELERATION, self.acceleration.into()),
            Setting::clear(registers::PHASE, PHASE_MULTI_TURN),
            Setting::value(registers::OPERATING_MODE, 0),
        ];
        if let Some(pid) = self.pid {
            wanted.extend([
                Setting::value(registers::P_COEFFICIENT, pid.p.into()),
                Setting::value(registers::I_COEFFICIENT, pid.i.into()),
                Setting::value(registers::D_COEFFICIENT, pid.d.into()),
            ]);
        }
        if let (JointId::Gripper, Some(g)) = (joint, self.gripper) {
            wanted.extend([
                Setting::value(registers::MAX_TORQUE_LIMIT, g.max_torque_permille.into()),
                Setting::value(registers::TORQUE_LIMIT, g.max_torque_permille.into()),
                Setting::value(registers::PROTECTION_CURRENT, g.protection_current_6_5ma.into()),
                Setting::value(registers::OVERLOAD_TORQUE, g.overload_torque_percent.into()),
            ]);
        }
        wanted
    }
}

/// What one register is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The register.
    pub register: Register,
    value: i32,
    /// Bits that are to be 0, the others staying as they are; 0 = the whole register is to be `value`.
    clear: u8,
}

impl Setting {
    /// The register is to hold `value`.
    #[must_use]
    pub const fn value(register: Register, value: i32) -> Self {
        Self { register, value, clear: 0 }
    }

    /// These bits of the register are to be 0.
    #[must_use]
    pub const fn clear(register: Register, bits: u8) -> Self {
        Self { register, value: 0, clear: bits }
    }

    /// What the register has to hold, which holds `present` now.
    #[must_use]
    pub const fn wanted(&self, present: i32) -> i32 {
        if self.clear == 0 { self.value } else { present & !(self.clear as i32) }
    }
}

/// A register that was changed, and read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// The joint.
    pub joint: JointId,
    /// Its servo.
    pub id: ServoId,
    /// The register.
    pub register: Register,
    /// What it held.
    pub from: i32,
    /// What it holds now.
    pub to: i32,
}

/// What [`Arm::configure`] has changed: nothing, on an arm that was configured before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Configured {
    /// The changes, by joint and in the order in which they were made.
    pub written: Vec<RegisterWrite>,
}

impl Configured {
    /// Whether a register was changed that the servo looks at only when the power comes on.
    #[must_use]
    pub fn needs_power_cycle(&self) -> bool {
        let late = [registers::MAX_TORQUE_LIMIT, registers::PHASE];
        self.written.iter().any(|w| late.contains(&w.register))
    }
}

impl<B: ServoBus> Arm<B, Relaxed> {
    /// Brings the servos' registers to a profile, where they differ. The EEPROM is unlocked for that alone, every
    /// change is read back, and the EEPROM is locked again whatever happens. A second call changes nothing and writes
    /// nothing.
    ///
    /// # Errors
    /// [`Error::TorqueFoundOn`] when somebody else has energised the arm, [`Error::RegisterNotSet`],
    /// [`Error::NoReply`], and when the port is gone. Servos before the one in question are done.
    pub fn configure(&mut self, profile: &ServoProfile) -> Result<Configured> {
        let mut configured = Configured::default();
        for joint in JOINTS {
            self.apply(joint, &profile.settings(joint), &mut configured.written)?;
        }
        Ok(configured)
    }

    /// Brings homing offsets and position limits to those of the calibration, in the same way.
    ///
    /// # Errors
    /// As [`Self::configure`], and [`Error::RegisterValue`] for numbers that no register holds.
    pub fn store_calibration(&mut self) -> Result<Configured> {
        let mut configured = Configured::default();
        for joint in JOINTS {
            let c = *self.core.calibration.get(joint);
            let settings = [
                Setting::value(registers::HOMING_OFFSET, c.homing_offset),
                Setting::value(registers::MIN_POSITION_LIMIT, c.range_min),
                Setting::value(registers::MAX_POSITION_LIMIT, c.range_max),
            ];
            self.apply(joint, &settings, &mut configured.written)?;
        }
        let reports = inspect(&mut self.core.bus, &self.core.calibration)?;
        self.core.take_reports(reports);
        Ok(configured)
    }

    fn apply(
        &mut self,
        joint: JointId,
        settings: &[Setting],
        written: &mut Vec<RegisterWrite>,
    ) -> Result<()> {
        let (id, tries) = (self.core.ids[joint.index()], self.core.options.tries);
        let torque = self.core.bus.read_register(id, &registers::TORQUE_ENABLE)?.value;
        if torque != 0 {
            return Err(Error::TorqueFoundOn { ids: alloc::vec![id.get()] });
        }
        written.extend(apply_settings(&mut self.core.bus, joint, id, settings, tries)?);
        Ok(())
    }
}

/// Brings registers of one servo to their settings: compares, unlocks the EEPROM where one of its registers differs,
/// writes and reads back what differs, and locks the EEPROM again whatever happens (also one that was found unlocked,
/// as LeRobot leaves it). The torque has to be off.
///
/// # Errors
/// [`Error::RegisterNotSet`] when a register does not hold its value after `tries` tries, [`Error::RegisterValue`],
/// [`Error::NoReply`], and when the port is gone.
pub fn apply_settings(
    bus: &mut (impl ServoBus + ?Sized),
    joint: JointId,
    id: ServoId,
    settings: &[Setting],
    tries: u8,
) -> Result<Vec<RegisterWrite>> {
    let mut changes = Vec::new();
    for setting in settings {
        let from = bus.read_register(id, &setting.register)?.value;
        let to = setting.wanted(from);
        if from != to {
            changes.push(RegisterWrite { joint, id, register: setting.register, from, to });
        }
    }
    let lock = bus.read_register(id, &registers::LOCK)?.value;
    let unlocks = changes.iter().any(|change| is_stored(&change.register));
    if unlocks && lock != 0 {
        // The lock may be open even if this fails: closing it below comes first.
        let unlocked = set_register(bus, id, &registers::LOCK, 0, tries);
        let done = unlocked.and_then(|()| change_all(bus, id, &changes, tries));
        let locked = set_register(bus, id, &registers::LOCK, 1, tries);
        done.and(locked)?;
        return Ok(changes);
    }
    let done = change_all(bus, id, &changes, tries);
    if lock != 1 {
        let locked = set_register(bus, id, &registers::LOCK, 1, tries);
        done.and(locked)?;
        changes.push(RegisterWrite { joint, id, register: registers::LOCK, from: lock, to: 1 });
    } else {
        done?;
    }
    Ok(changes)
}

/// Whether a register outlives the power only when it is written with the lock open. The factory's registers from 80 on
/// are written so by LeRobot.
fn is_stored(register: &Register) -> bool {
    register.area == Area::Eeprom || register.address >= registers::MOVING_VELOCITY_THRESHOLD.address
}

fn change_all(
    bus: &mut (impl ServoBus + ?Sized),
    id: ServoId,
    changes: &[RegisterWrite],
    tries: u8,
) -> Result<()> {
    changes.iter().try_for_each(|change| set_register(bus, id, &change.register, change.to, tries))
}

/// Writes a register, reads it back, and tries again. A lost acknowledgement does not say whether the write was carried
/// out; reading does.
pub(super) fn set_register(
    bus: &mut (impl ServoBus + ?Sized),
    id: ServoId,
    register: &Register,
    value: i32,
    tries: u8,
) -> Result<()> {
    let tries = tries.max(1);
    let mut got = None;
    for _ in 0..tries {
        match bus.write_register(id, register, value) {
            Ok(_) | Err(Error::NoReply { .. }) => {}
            Err(e) => return Err(e),
        }
        match bus.read_register(id, register) {
            Ok(reading) if reading.value == value => return Ok(()),
            Ok(reading) => got = Some(reading.value),
            Err(Error::NoReply { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    Err(Error::RegisterNotSet { id: id.get(), register: register.name, wanted: value, got, tries })
}
