//! Who moves the arm while it is calibrated: a person, or nobody at all on an emulated arm.

use std::sync::Arc;

use so101_hal::calibration::model_range;
use so101_hal::{Clock, EmulatedServos, EmulatorOptions, JOINTS, JointId, SystemClock, Ticks, VirtualClock};

use crate::cli::say;
use crate::enter::{Answer, Enter};
use crate::error::Result;

/// Something to do with the arm before ENTER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Relax,
    MidPose,
    Sweep,
    HandReference,
    ArmReference,
}

impl Step {
    const fn words(self) -> &'static str {
        match self {
            Self::Relax => "the torque is on: hold the arm, then press ENTER; it will go limp",
            Self::MidPose => "put every joint into the middle of its range, then press ENTER",
            Self::Sweep => {
                "move every joint slowly to both of its stops, the gripper too, wrist_roll as far as you like; ENTER \
                 when done"
            }
            Self::HandReference => {
                "put the hand level: the fixed finger below, the axis of the jaw's hinge parallel to the table, the \
                 mark of the wrist in the middle of its way; then press ENTER"
            }
            Self::ArmReference => {
                "put the arm into the model's zero pose: pan straight ahead, upper arm upright, forearm and hand \
                 level, hand as for a picture with its jaw to the side; then press ENTER"
            }
        }
    }
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    Busy,
    Done,
    Interrupted,
}

/// Who moves the arm.
pub(super) trait Hands {
    /// Begins to do this.
    fn begin(&mut self, step: Step);
    /// A little further; called after every sample.
    fn poll(&mut self) -> Result<Hand>;
    /// Whether another sweep may turn out better.
    fn may_try_again(&self) -> bool;
}

/// Somebody at the terminal.
pub(super) struct Person {
    enter: Enter,
}

impl Person {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { enter: Enter::at_stdin()? })
    }
}

impl Hands for Person {
    fn begin(&mut self, step: Step) {
        self.enter.forget();
        say(step.words());
    }

    fn poll(&mut self) -> Result<Hand> {
        Ok(match self.enter.pressed()? {
            None => Hand::Busy,
            Some(Answer::Enter) => Hand::Done,
            Some(Answer::Interrupted) => Hand::Interrupted,
        })
    }

    fn may_try_again(&self) -> bool {
        true
    }
}

/// Samples from one end of the sweep to the next.
const LEG: u32 = 60;

/// Where the lower stops of the emulated arm are on its encoders: three of its joints cross the encoder's wrap.
const LOWER_STOPS: [i32; 6] = [3100, 900, 2900, 200, 1500, 3600];

/// A hand that moves emulated servos, all joints at once: in a sweep to the lower stop, to the upper one, and back a
/// little; else to where the step wants them.
pub(super) struct EmulatedHands {
    servos: EmulatedServos,
    step: Step,
    /// Samples since the step began.
    sample: u32,
    from: [f64; 6],
}

/// Lower and upper stop of a joint, in encoder steps that do not wrap.
fn stops(joint: JointId) -> (f64, f64) {
    let low = f64::from(LOWER_STOPS[joint.index()]);
    (low, low + (model_range(joint).0 / 360.0 * 4096.0).floor())
}

fn middle(joint: JointId) -> f64 {
    let (low, high) = stops(joint);
    ((low + high) / 2.0).floor()
}

impl EmulatedHands {
    /// Servos that were never calibrated, on a clock that somebody can watch or on one that does not wait.
    pub(super) fn servos(watched: bool) -> (EmulatedServos, Arc<dyn Clock>) {
        let clock: Arc<dyn Clock> =
            if watched { Arc::new(SystemClock::new()) } else { Arc::new(VirtualClock::new()) };
        let mut options = EmulatorOptions::default();
        // As far off the middle as an arm that was just put together.
        options.start = JOINTS.map(|j| Ticks(middle(j) as i32 + 120));
        (EmulatedServos::new(Arc::clone(&clock), options), clock)
    }

    pub(super) fn new(servos: EmulatedServos) -> Self {
        Self { servos, step: Step::Relax, sample: 0, from: [0.0; 6] }
    }

    fn put(&self, place: impl Fn(JointId) -> f64) {
        JOINTS.into_iter().for_each(|j| self.servos.set_ticks(j, place(j)));
    }
}

impl Hands for EmulatedHands {
    fn begin(&mut self, step: Step) {
        say(&format!("emulated hand: {}", step.words()));
        self.step = step;
        self.sample = 0;
        self.from = self.servos.true_ticks();
    }

    fn poll(&mut self) -> Result<Hand> {
        if crate::interrupt::requested() {
            return Ok(Hand::Interrupted);
        }
        self.sample += 1;
        let (leg, share) = (self.sample / LEG, f64::from(self.sample % LEG) / f64::from(LEG));
        let legs = match self.step {
            Step::Relax => return Ok(Hand::Done),
            Step::Sweep => 3,
            Step::MidPose | Step::HandReference | Step::ArmReference => 1,
        };
        let (step, from) = (self.step, self.from);
        self.put(|joint| {
            let (low, high) = stops(joint);
            let start = from[joint.index()];
            let (a, b) = match (step, leg) {
                (Step::Sweep, 0) => (start, low),
                (Step::Sweep, 1) => (low, high),
                // Where it is let go of: far from any reference pose.
                (Step::Sweep, 2) => (high, high - 300.0),
                (Step::Sweep, _) => (high - 300.0, high - 300.0),
                // Nobody hits the middle exactly.
                (Step::MidPose, 0) => (start, middle(joint) + 25.0),
                (Step::MidPose, _) => (middle(joint) + 25.0, middle(joint) + 25.0),
                (_, 0) => (start, middle(joint)),
                _ => (middle(joint), middle(joint)),
            };
            a + (b - a) * share
        });
        Ok(if leg >= legs { Hand::Done } else { Hand::Busy })
    }

    fn may_try_again(&self) -> bool {
        false
    }
}
