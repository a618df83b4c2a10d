//! One episode of the demonstrator without recording: for success rates over many seeds.

use so101_hal::{Action, Robot as _};
use so101_sim::PushVerdict;

use super::SimRig;
use crate::error::Result;
use crate::expert::{PushConfig, PushLeft};
use crate::plan::{EpisodeSetup, Plan};
use crate::record::episode::{period, periods};

/// The object at one control period: time in seconds, position in metres, orientation w x y z.
pub type PoseRow = [f64; 8];

/// What came of an episode.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The predicate's judgement at the episode's end.
    pub verdict: PushVerdict,
    /// Where the object was, one row a control period, the last one at the end.
    pub poses: Vec<PoseRow>,
}

impl SimRig {
    /// Lets the demonstrator do `setup` for as long as the recorder would, so that the rate is that of recordings.
    ///
    /// The demonstrator is not told where the object goes: on a face with friction, a hand that follows a slipping
    /// object drags it farther away.
    ///
    /// # Errors
    /// When the push is out of reach, or the simulation diverges.
    pub fn trial(&mut self, plan: &Plan, setup: &EpisodeSetup, config: PushConfig) -> Result<Trial> {
        let mut expert = PushLeft::new(&plan.home(), setup, config)?;
        self.begin(setup)?;
        let (clock, fps) = (self.clock(), self.fps);
        let last = periods(&expert, setup, fps);
        let start = clock.now();
        let mut poses = Vec::new();
        for tick in 0..=last {
            let at = period(tick, fps);
            self.observe()?;
            poses.extend(self.object_state().map(|o| {
                let ([x, y, z], [qw, qx, qy, qz]) = (o.position_m, o.quat_wxyz);
                [at.as_secs_f64(), x, y, z, qw, qx, qy, qz]
            }));
            if tick == last {
                break;
            }
            self.act(&Action { joints: expert.goal(at)?.joints })?;
            clock.sleep_until(start + period(tick + 1, fps));
        }
        let verdict = self.judge()?;
        Ok(Trial { verdict, poses })
    }
}
