//! After silence: the operator resumes, or the adapter comes back.

use super::inner::Core;
use super::inspect::{ServoReport, Torque, inspect};
use super::{Arm, ArmState, Armed, Holding};
use crate::bus::ServoBus;
use crate::error::{Error, Result};
use crate::joint::JointId;
use crate::registers::GOAL_POSITION;

impl<B: ServoBus, S: ArmState> Arm<B, S> {
    /// Opens the port again after an unplug and makes sure that the same arm is behind it: model, homing offsets and
    /// position limits of all servos have to be those that were connected.
    ///
    /// The torque stays as it is found. Energised servos get their present position as goal, so that nothing jumps. An
    /// arm that was holding or armed is [`Health::Lost`](super::Health::Lost) afterwards: it follows no goal until the
    /// operator calls [`Arm::resume`].
    ///
    /// # Errors
    /// Errors of opening the port (try again later), [`Error::NotReopenable`], [`Error::OtherArm`],
    /// [`Error::ServosSilent`], [`Error::TorqueFoundOn`] when an arm that this driver has relaxed is energised now,
    /// and errors of the bus.
    pub fn reconnect(&mut self) -> Result<()> {
        let core = &mut self.core;
        if core.in_charge && S::TORQUE == Torque::On {
            core.lost.get_or_insert(JointId::ShoulderPan);
        }
        core.bus.reopen()?;
        core.unverified = true;
        core.stop.replace_writer(core.bus.emergency_writer());
        let reports = core.verify()?;
        // What was read before the unplug says nothing about now.
        core.stop_carried_out = false;
        core.carry_out_stop();
        if S::TORQUE == Torque::Off {
            let on: alloc::vec::Vec<u8> =
                reports.iter().filter(|r| r.torque != Torque::Off).map(|r| r.id.get()).collect();
            return if on.is_empty() { Ok(()) } else { Err(Error::TorqueFoundOn { ids: on }) };
        }
        if !core.in_charge || core.stop.stopped() {
            return Ok(());
        }
        let mut goals = core.positions();
        for (i, report) in reports.iter().enumerate() {
            // A goal would switch the torque of a limp servo on.
            if report.torque == Torque::On {
                core.write_one(i, &GOAL_POSITION, goals[i].0)?;
            } else {
                goals[i] = report.telemetry.position;
            }
        }
        core.goals = Some(goals);
        core.settle_at(&goals);
        Ok(())
    }
}

impl<B: ServoBus> Core<B> {
    /// Makes sure that the arm behind the port is the one that was connected. Until it is, nothing is energised.
    pub(super) fn verify(&mut self) -> Result<[ServoReport; 6]> {
        let reports = inspect(&mut self.bus, &self.calibration)?;
        for (was, is) in self.reports.iter().zip(&reports) {
            check_same(was, is)?;
        }
        self.take_reports(reports);
        self.unverified = false;
        Ok(reports)
    }
}

fn check_same(was: &ServoReport, is: &ServoReport) -> Result<()> {
    let print = |r: &ServoReport| {
        (i32::from(r.model), r.homing_offset.0, r.position_limits.0.0, r.position_limits.1.0)
    };
    let (before, now) = (print(was), print(is));
    for (what, before, now) in [
        ("model number", before.0, now.0),
        ("homing offset", before.1, now.1),
        ("lower position limit", before.2, now.2),
        ("upper position limit", before.3, now.3),
    ] {
        if before != now {
            return Err(Error::OtherArm { joint: was.joint, id: was.id.get(), what, before, now });
        }
    }
    Ok(())
}

macro_rules! resume {
    ($($state:ty),*) => {$(
        impl<B: ServoBus> Arm<B, $state> {
            /// Takes the arm up again after [`Health::Lost`](super::Health::Lost): reads it, makes every present
            /// position the goal, and switches the torque on where it has gone off. For the operator to say, who has
            /// looked at the arm. Servos that have restarted hold what their EEPROM says, which is not all of a
            /// profile: relax and [`configure`](Arm::configure) them.
            ///
            /// # Errors
            /// As [`Arm::<B, Relaxed>::hold`](Arm::hold), and [`Error::OtherArm`] when the port was opened again and
            /// another arm is behind it; the arm stays lost then.
            pub fn resume(&mut self) -> Result<()> {
                self.core.grip()
            }
        }
    )*};
}

resume!(Holding, Armed);
