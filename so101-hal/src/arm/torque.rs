//! From limp to held and back, with proof.

use alloc::vec::Vec;

use super::inner::Core;
use super::inspect::Torque;
use super::{Arm, Armed, Holding, Refused, Relaxed};
use crate::bus::ServoBus;
use crate::error::{Error, Result};
use crate::joint::JOINTS;
use crate::registers::{self, GOAL_POSITION};
use crate::units::Ticks;

/// A joint further than this from its goal is stopped where it is when an armed arm is to hold.
const SETTLED: i32 = 40;

impl<B: ServoBus> Core<B> {
    /// Switches the torque of all servos, reads it back, and tries again where it is not as wanted.
    pub(super) fn switch_torque(&mut self, wanted: Torque) -> Result<()> {
        let value = i32::from(wanted == Torque::On);
        let tries = self.options.tries.max(1);
        let mut differing = [true; 6];
        for _ in 0..tries {
            self.write_all(&registers::TORQUE_ENABLE, &[value; 6])?;
            let read = self.read_all(&registers::TORQUE_ENABLE)?;
            differing = read.map(|r| r != Some(value));
            if !differing.contains(&true) {
                self.torque = wanted;
                return Ok(());
            }
        }
        let ids: Vec<u8> =
            self.ids.iter().zip(differing).filter(|(_, d)| *d).map(|(id, _)| id.get()).collect();
        Err(Error::Torque { ids, wanted: wanted.name(), tries })
    }

    /// Makes the present positions the goals, then switches the torque on; both are read back.
    pub(super) fn grip(&mut self) -> Result<()> {
        self.check_stop()?;
        if self.unverified {
            self.verify()?;
        }
        let here = self.steady_positions()?;
        self.check_start(&here)?;
        // From here on the torque may be on, whatever happens (a servo takes a goal as a request for torque).
        self.in_charge = true;
        self.torque = Torque::On;
        // Here a limp joint is what is expected.
        self.may_be_limp = [false; 6];
        self.write_goals(&here)?;
        self.verify_goals(&here)?;
        self.switch_torque(Torque::On)?;
        self.settle_at(&here);
        self.found_again();
        self.check_stop()
    }

    /// Positions that two reads agree on: a wrong one would become a goal.
    fn steady_positions(&mut self) -> Result<[Ticks; 6]> {
        self.update()?;
        self.present()?;
        self.update()?;
        self.present()?;
        Ok(self.positions())
    }

    /// A joint far outside of its range would be driven back to it as soon as the torque is on.
    fn check_start(&self, here: &[Ticks; 6]) -> Result<()> {
        let margin = self.options.start_margin.0;
        for ((joint, c), ticks) in self.calibration.iter().zip(here) {
            let beyond = (c.range_min - ticks.0).max(ticks.0 - c.range_max);
            if beyond > margin {
                return Err(Error::OutsideRange {
                    joint,
                    id: c.id,
                    position: ticks.0,
                    min: c.range_min,
                    max: c.range_max,
                });
            }
        }
        Ok(())
    }

    fn verify_goals(&mut self, wanted: &[Ticks; 6]) -> Result<()> {
        let tries = self.options.tries.max(1);
        let mut read = [None; 6];
        for attempt in 0..tries {
            if attempt > 0 {
                self.write_goals(wanted)?;
            }
            read = self.read_all(&GOAL_POSITION)?;
            if (0..6).all(|i| self.took_goal(i, wanted[i], read[i])) {
                return Ok(());
            }
        }
        let i = (0..6).find(|i| !self.took_goal(*i, wanted[*i], read[*i])).unwrap_or(0);
        Err(Error::RegisterNotSet {
            id: self.ids[i].get(),
            register: GOAL_POSITION.name,
            wanted: wanted[i].0,
            got: read[i],
            tries,
        })
    }

    /// A servo may keep its goal within its own limits.
    fn took_goal(&self, i: usize, wanted: Ticks, read: Option<i32>) -> bool {
        let (min, max) = self.reports[i].position_limits;
        let limited = if min < max { wanted.0.clamp(min.0, max.0) } else { wanted.0 };
        read == Some(wanted.0) || read == Some(limited)
    }
}

impl<B: ServoBus> Arm<B, Relaxed> {
    /// Makes every present position the goal, then switches the torque on and reads it back.
    ///
    /// # Errors
    /// [`Refused`], with the arm relaxed again, as far as it answers: [`Error::EmergencyStopped`], [`Error::NoReply`]
    /// when a joint cannot be read, [`Error::OutsideRange`] when one would be driven back into its range,
    /// [`Error::RegisterNotSet`] and [`Error::Torque`] when the servos do not do what they are told, and when the
    /// port is gone.
    pub fn hold(mut self) -> Result<Arm<B, Holding>, Refused<Self>> {
        match self.core.grip() {
            Ok(()) => Ok(self.into_state()),
            Err(error) => {
                if self.core.torque != Torque::Off {
                    // The first error is the one to report; dropping the arm tries once more.
                    let _ = self.core.switch_torque(Torque::Off);
                }
                Err(Refused::new(self, error))
            }
        }
    }

    /// Switches the torque off once more and reads it back, for servos that somebody else has switched on.
    ///
    /// # Errors
    /// [`Error::Torque`] with the servos whose torque is not known to be off, and when the port is gone.
    pub fn torque_off(&mut self) -> Result<()> {
        self.core.switch_torque(Torque::Off)
    }

    /// Opens the latch of the emergency stop, once the torque was read as off. For the operator to say, never for a
    /// program by itself.
    ///
    /// # Errors
    /// As [`Self::torque_off`]; the latch stays closed then.
    pub fn release_stop(&mut self) -> Result<()> {
        self.core.switch_torque(Torque::Off)?;
        self.core.stop_carried_out = false;
        self.core.stop.release();
        Ok(())
    }
}

impl<B: ServoBus> Arm<B, Holding> {
    /// Switches the torque off and reads it back: the arm sinks.
    ///
    /// # Errors
    /// [`Refused`]: [`Error::Torque`] with the servos whose torque is not known to be off, and when the port is gone.
    pub fn relax(mut self) -> Result<Arm<B, Relaxed>, Refused<Self>> {
        match self.core.switch_torque(Torque::Off) {
            Ok(()) => Ok(self.into_state()),
            Err(error) => Err(Refused::new(self, error)),
        }
    }

    /// Makes the arm ready for goals. Nothing moves, and nothing is written.
    ///
    /// # Errors
    /// [`Refused`]: [`Error::EmergencyStopped`], [`Error::Torque`] when a motor is not on, [`Error::NoReply`] when a
    /// joint cannot be read, and when the port is gone.
    pub fn arm(mut self) -> Result<Arm<B, Armed>, Refused<Self>> {
        match self.core.ready() {
            Ok(()) => Ok(self.into_state()),
            Err(error) => Err(Refused::new(self, error)),
        }
    }
}

impl<B: ServoBus> Core<B> {
    fn ready(&mut self) -> Result<()> {
        self.check_stop()?;
        self.update()?;
        self.present()?;
        self.check_health()?;
        let torque = self.read_torque()?;
        let off: Vec<u8> =
            self.ids.iter().zip(torque).filter(|(_, t)| *t != Torque::On).map(|(id, _)| id.get()).collect();
        if !off.is_empty() {
            return Err(Error::Torque { ids: off, wanted: Torque::On.name(), tries: 1 });
        }
        let goals = match self.goals {
            Some(goals) => goals,
            None => self.goals_as_found()?,
        };
        self.goals = Some(goals);
        self.in_charge = true;
        self.settle_at(&goals);
        Ok(())
    }

    /// What an arm that was found holding was told by somebody else.
    fn goals_as_found(&mut self) -> Result<[Ticks; 6]> {
        let read = self.read_all(&GOAL_POSITION)?;
        let mut goals = [Ticks(0); 6];
        for (i, (goal, value)) in goals.iter_mut().zip(read).enumerate() {
            goal.0 = value.ok_or(Error::NoReply {
                what: "goal read",
                id: self.ids[i].get(),
                fault: crate::bus::ReplyFault::Missing,
            })?;
        }
        Ok(goals)
    }
}

impl<B: ServoBus> Arm<B, Armed> {
    /// Stands still. Joints that have arrived keep their goals, so that the arm does not sag; one still on its way gets
    /// its present position. A lost arm is told nothing. Nothing here can fail in a way that matters: whatever the bus
    /// does, the servos hold what they were told last.
    pub fn hold(mut self) -> Arm<B, Holding> {
        // See above: an error leaves the last goals in force, and health and the next call tell of it.
        let _ = self.core.stand_still();
        self.into_state()
    }

    /// [`Self::hold`], then torque off, read back.
    ///
    /// # Errors
    /// As [`Arm::<B, Holding>::relax`].
    pub fn relax(self) -> Result<Arm<B, Relaxed>, Refused<Arm<B, Holding>>> {
        self.hold().relax()
    }
}

impl<B: ServoBus> Core<B> {
    fn stand_still(&mut self) -> Result<()> {
        self.check_stop()?;
        self.update()?;
        let Some(mut goals) = self.goals else { return Ok(()) };
        if self.lost.is_some() {
            // Some servo may be limp, and a goal would switch it on: that is for the operator to say.
            return Ok(());
        }
        for (joint, goal) in JOINTS.into_iter().zip(&mut goals) {
            let i = joint.index();
            let here = self.states[i].telemetry.position;
            if self.is_fresh(i) && (here.0 - goal.0).abs() > SETTLED {
                *goal = here;
            }
        }
        if Some(goals) != self.goals {
            self.write_goals(&goals)?;
        }
        self.settle_at(&goals);
        self.check_stop()
    }
}
