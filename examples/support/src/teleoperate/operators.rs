//! Teleoperators of the examples: keys of a terminal, scripts from files, and an emulated hand on an emulated leader.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use so101_hal::bus::ServoBus;
use so101_hal::teleop::{Key, KeySource, KeySteps, Keyboard, Keys, Leader, Script, Scripted, Teleoperator};
use so101_hal::{
    Action, Calibration, Degrees, EmulatedServos, JOINTS, JointId, JointVector, Percent, Rounding, Timestamp,
};

use crate::cli::say;
use crate::error::{Error, Result};
use crate::record::keys::{Operator, StopKey, Wish};

/// Keys of the terminal. The terminal is as before when this is dropped.
#[derive(Debug)]
pub struct TerminalKeys {
    keys: Receiver<Key>,
    operator: Operator,
    emergency: Arc<AtomicBool>,
    ended: bool,
}

impl TerminalKeys {
    /// A keyboard at this terminal; the key e raises `emergency` where it steers nothing, and ends.
    ///
    /// # Errors
    /// Steps that are no numbers, and when the system starts no more threads.
    pub fn keyboard(keys: Keys, steps: KeySteps, emergency: Arc<AtomicBool>) -> Result<Keyboard<Self>> {
        let (sender, receiver) = channel();
        let mut operator = Operator::at_stdin(StopKey::None)?;
        operator.steer_with(keys, sender);
        Ok(Keyboard::new(Self { keys: receiver, operator, emergency, ended: false }).with_steps(steps)?)
    }
}

impl KeySource for TerminalKeys {
    fn next_key(&mut self) -> Option<Key> {
        // Keys that steer arrive in the channel while the operator is asked.
        match self.operator.wish() {
            Some(Wish::Emergency) => {
                self.emergency.store(true, Ordering::SeqCst);
                return Some(Key::Quit);
            }
            Some(Wish::Stop) => return Some(Key::Quit),
            Some(Wish::Next | Wish::Again) | None => {}
        }
        if let Ok(key) = self.keys.try_recv() {
            return Some(key);
        }
        // Nobody can press Esc any more. Said once in every round of questions, so that the round before the first
        // action, whose keys are forgotten, does not swallow it.
        self.ended = self.operator.is_gone() && !self.ended;
        self.ended.then_some(Key::Quit)
    }
}

/// Reads a script, TOML or JSON by the file's name.
///
/// # Errors
/// [`so101_hal::Error::Script`], and [`Error::Usage`] for waypoints that cannot be played.
pub fn load_script(path: &Path) -> Result<Scripted> {
    let script = if path.extension().is_some_and(|e| e == "json") {
        Script::load_json(path)?
    } else {
        let fail = |source: so101_hal::BoxError| so101_hal::Error::Script {
            path: path.display().to_string(),
            source,
        };
        let text = std::fs::read_to_string(path).map_err(|e| fail(e.into()))?;
        toml::from_str(&text).map_err(|e| fail(e.message().to_owned().into()))?
    };
    Scripted::from_script(script).map_err(|e| Error::Usage(format!("{e}: {}", path.display())))
}

/// How far an emulated hand moves each joint, degrees and percent, and the period of that, seconds.
const SWAY: [(f64, f64); 6] = [(30.0, 4.0), (20.0, 5.0), (25.0, 6.0), (30.0, 3.0), (40.0, 7.0), (35.0, 2.5)];

/// An emulated leader and the hand that sways it.
pub struct HandHeld<B: ServoBus> {
    leader: Leader<B>,
    servos: EmulatedServos,
    start: JointVector<Degrees>,
    began: Option<Timestamp>,
}

impl<B: ServoBus> std::fmt::Debug for HandHeld<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandHeld").finish_non_exhaustive()
    }
}

impl<B: ServoBus> HandHeld<B> {
    /// A hand on this leader, whose servos these are.
    pub fn new(leader: Leader<B>, servos: EmulatedServos) -> Self {
        say("emulated hand: sways the leader");
        Self { leader, servos, start: JointVector::default(), began: None }
    }

    fn put(&self, pose: &JointVector<Degrees>) -> so101_hal::Result<()> {
        let calibration: &Calibration = self.leader.calibration();
        let ticks = calibration.to_ticks(pose, Rounding::Nearest)?;
        for (joint, ticks) in JOINTS.into_iter().zip(ticks) {
            self.servos.set_ticks(joint, f64::from(ticks.0));
        }
        Ok(())
    }
}

impl<B: ServoBus> Teleoperator for HandHeld<B> {
    fn name(&self) -> &str {
        self.leader.name()
    }

    /// The hand brings the leader near to the follower, not quite to it.
    fn engage(&mut self, follower: &JointVector<Degrees>) -> so101_hal::Result<()> {
        self.start = follower.map(|v| Degrees(v.0 + 5.0));
        self.start.gripper = Percent(follower.gripper.0.clamp(40.0, 60.0));
        self.began = None;
        self.put(&self.start)?;
        self.leader.engage(follower)
    }

    fn action(&mut self, at: Timestamp) -> so101_hal::Result<Action> {
        let began = *self.began.get_or_insert(at);
        let t = at.since(began).as_secs_f64();
        let mut row = self.start.to_row();
        for ((value, (by, period)), joint) in row.iter_mut().zip(SWAY).zip(JOINTS) {
            *value += by * (std::f64::consts::TAU * t / period).sin();
            if joint == JointId::Gripper {
                *value = value.clamp(0.0, 100.0);
            }
        }
        self.put(&JointVector::<Degrees>::from_row(row))?;
        self.leader.action(at)
    }

    fn is_finished(&self) -> bool {
        self.leader.is_finished()
    }
}
