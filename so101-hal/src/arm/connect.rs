//! Taking an arm as it is found.

use alloc::boxed::Box;

use super::inner::Core;
use super::inspect::{ServoReport, Torque, inspect};
use super::options::{ArmOptions, OffsetMismatch};
use super::{Arm, Armed, Holding, Refused, Relaxed};
use crate::bus::ServoBus;
use crate::calibration::Calibration;
use crate::error::{Error, Result};

/// An arm just connected, with its torque as it was found. Dropped, it stays so.
#[derive(Debug)]
pub enum FoundArm<B: ServoBus> {
    /// All motors are off.
    Relaxed(Arm<B, Relaxed>),
    /// Some motor is on; whether all are, [`FoundArm::into_holding`] and [`Arm::arm`] check.
    Holding(Arm<B, Holding>),
}

impl<B: ServoBus> Arm<B, Relaxed> {
    /// Connects: pings all six servos, reads their registers, checks model and homing offset. Writes nothing, so an
    /// arm that holds goes on holding. To keep the bus, lend it: `&mut bus` is a bus too.
    ///
    /// # Errors
    /// [`Error::ServosSilent`], [`Error::ServoModel`], [`Error::HomingOffset`], errors of the calibration, of the
    /// options and of the bus. The arm stays as it was found.
    pub fn connect(mut bus: B, calibration: Calibration, options: ArmOptions) -> Result<FoundArm<B>> {
        options.validate()?;
        for c in calibration.joints() {
            c.validate()?;
        }
        let reports = inspect(&mut bus, &calibration)?;
        if options.offset_mismatch == OffsetMismatch::Refuse {
            check_offsets(&reports, &calibration)?;
        }
        let is_relaxed = reports.iter().all(|r| r.torque == Torque::Off);
        let core = Box::new(Core::new(bus, calibration, options, reports));
        Ok(if is_relaxed { FoundArm::Relaxed(Arm::new(core)) } else { FoundArm::Holding(Arm::new(core)) })
    }
}

fn check_offsets(reports: &[ServoReport; 6], calibration: &Calibration) -> Result<()> {
    for (report, (joint, c)) in reports.iter().zip(calibration.iter()) {
        if report.homing_offset.0 != c.homing_offset {
            return Err(Error::HomingOffset {
                joint,
                id: c.id,
                servo: report.homing_offset.0,
                calibration: c.homing_offset,
            });
        }
    }
    Ok(())
}

impl<B: ServoBus> FoundArm<B> {
    /// What each servo said, in joint order.
    #[must_use]
    pub fn reports(&self) -> &[ServoReport; 6] {
        match self {
            Self::Relaxed(arm) => arm.reports(),
            Self::Holding(arm) => arm.reports(),
        }
    }

    /// The arm with its torque off: an arm that was found holding is relaxed, and sinks.
    ///
    /// # Errors
    /// [`Refused`], as [`Arm::<B, Holding>::relax`].
    pub fn into_relaxed(self) -> Result<Arm<B, Relaxed>, Refused<Self>> {
        match self {
            Self::Relaxed(arm) => Ok(arm),
            Self::Holding(arm) => {
                arm.relax().map_err(|r| Refused { arm: Box::new(Self::Holding(*r.arm)), error: r.error })
            }
        }
    }

    /// The arm with all motors on. One that holds already is left alone; where only some motors are on, every present
    /// position becomes the goal first.
    ///
    /// # Errors
    /// [`Refused`], as [`Arm::<B, Relaxed>::hold`].
    pub fn into_holding(self) -> Result<Arm<B, Holding>, Refused<Self>> {
        match self {
            Self::Relaxed(arm) => {
                arm.hold().map_err(|r| Refused { arm: Box::new(Self::Relaxed(*r.arm)), error: r.error })
            }
            Self::Holding(mut arm) => {
                let holds = |torque: [Torque; 6]| torque == [Torque::On; 6];
                let taken = match arm.core.read_torque().map(holds) {
                    Ok(true) => Ok(()),
                    Ok(false) => arm.core.grip(),
                    Err(e) => Err(e),
                };
                match taken {
                    Ok(()) => Ok(arm),
                    Err(error) => Err(Refused::new(Self::Holding(arm), error)),
                }
            }
        }
    }

    /// [`Self::into_holding`], then [`Arm::arm`].
    ///
    /// # Errors
    /// As those two.
    pub fn into_armed(self) -> Result<Arm<B, Armed>> {
        Ok(self.into_holding()?.arm()?)
    }
}
