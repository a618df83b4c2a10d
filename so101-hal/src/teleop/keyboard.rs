//! A keyboard: each key moves a joint, the gripper, or the hand by one step.

use super::Teleoperator;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::joint::{BODY_JOINTS, JointId, JointVector};
use crate::kinematics::{Kinematics, LIMITS, Tcp};
use crate::robot::Action;
use crate::units::{Degrees, Percent, Radians};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// To larger values.
    Plus,
    /// To smaller values.
    Minus,
}

impl Way {
    const fn sign(self) -> f64 {
        match self {
            Self::Plus => 1.0,
            Self::Minus => -1.0,
        }
    }
}

/// A way of the hand, in the base frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EeAxis {
    /// Forward.
    X,
    /// To the left.
    Y,
    /// Up.
    Z,
    /// Nose down.
    Pitch,
    /// About the approach: the joint wrist_roll.
    Roll,
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Key {
    /// A body joint, or the gripper, by one step.
    Joint(JointId, Way),
    /// The hand by one step, through inverse kinematics.
    Hand(EeAxis, Way),
    /// The end.
    Quit,
}

/// Which letters mean what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Keys {
    /// `1`..`6` move joints up, `q w e r t y` below them move the same joints down.
    #[default]
    Joints,
    /// `w s` forward and back, `a d` left and right, `r f` up and down, `t g` pitch, `z x` roll, `o c` gripper.
    Hand,
}

impl Keys {
    /// The key of a character; `None` for those that mean nothing. Escape quits in both.
    #[must_use]
    pub fn key(self, character: char) -> Option<Key> {
        use EeAxis::{Pitch, Roll, X, Y, Z};
        use Way::{Minus, Plus};
        const UP: &str = "123456";
        const DOWN: &str = "qwerty";
        let character = character.to_ascii_lowercase();
        if character == '\u{1b}' {
            return Some(Key::Quit);
        }
        if self == Self::Joints {
            let joint = |row: &str| crate::joint::JOINTS.get(row.find(character)?).copied();
            return joint(UP)
                .map(|j| Key::Joint(j, Plus))
                .or_else(|| joint(DOWN).map(|j| Key::Joint(j, Minus)));
        }
        Some(match character {
            'w' => Key::Hand(X, Plus),
            's' => Key::Hand(X, Minus),
            'a' => Key::Hand(Y, Plus),
            'd' => Key::Hand(Y, Minus),
            'r' => Key::Hand(Z, Plus),
            'f' => Key::Hand(Z, Minus),
            't' => Key::Hand(Pitch, Plus),
            'g' => Key::Hand(Pitch, Minus),
            'z' => Key::Hand(Roll, Plus),
            'x' => Key::Hand(Roll, Minus),
            'o' => Key::Joint(JointId::Gripper, Plus),
            'c' => Key::Joint(JointId::Gripper, Minus),
            _ => return None,
        })
    }

    /// The legend, one line.
    #[must_use]
    pub const fn legend(self) -> &'static str {
        match self {
            Self::Joints => {
                "1 2 3 4 5 6 move pan, lift, elbow, wrist, roll, gripper up, q w e r t y down, esc ends"
            }
            Self::Hand => {
                "w s forward/back, a d left/right, r f up/down, t g pitch, z x roll, o c gripper, esc ends"
            }
        }
    }
}

/// How far one key goes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeySteps {
    /// A body joint, pitch and roll.
    pub angle: Degrees,
    /// The gripper.
    pub gripper: Percent,
    /// The hand.
    pub hand_m: f64,
}

impl KeySteps {
    const DEFAULT: Self = Self { angle: Degrees(2.0), gripper: Percent(5.0), hand_m: 0.005 };
}

impl Default for KeySteps {
    /// 2 degrees, 5 %, 5 mm.
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where keys come from, without waiting: a channel from a thread that reads the terminal, or a queue.
pub trait KeySource: Send {
    /// The next key that was pressed, `None` where there is none at this moment.
    fn next_key(&mut self) -> Option<Key>;
}

impl KeySource for alloc::collections::VecDeque<Key> {
    fn next_key(&mut self) -> Option<Key> {
        self.pop_front()
    }
}

#[cfg(feature = "std")]
impl KeySource for std::sync::mpsc::Receiver<Key> {
    fn next_key(&mut self) -> Option<Key> {
        self.try_recv().ok()
    }
}

/// Moves the arm by keys. Nothing moves without one: the goal is the follower's pose when it was engaged, and every key
/// moves it by one step, inside of the model's limits.
///
/// Steps of the hand go through inverse kinematics on the joint angles as they are: a calibration whose zero is not the
/// model's turns them by as much. A step that no joint angles reach is left out; see [`Self::refused`].
///
/// ```
/// use so101_hal::teleop::{Key, Keyboard, Teleoperator, Way};
/// use so101_hal::{Degrees, JointId, JointVector, Timestamp};
/// # fn main() -> so101_hal::Result<()> {
/// let (keyboard, keys) = std::sync::mpsc::channel();
/// let mut teleop = Keyboard::new(keys);
/// teleop.engage(&JointVector::default())?;
/// keyboard.send(Key::Joint(JointId::ElbowFlex, Way::Minus)).ok();
/// assert_eq!(teleop.action(Timestamp::ZERO)?.joints.body[2], Degrees(-2.0));
/// # Ok(()) }
/// ```
pub struct Keyboard<S> {
    keys: S,
    steps: KeySteps,
    kinematics: Kinematics,
    goal: Option<JointVector<Degrees>>,
    refused: Option<Error>,
    finished: bool,
}

impl<S> core::fmt::Debug for Keyboard<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Keyboard")
            .field("steps", &self.steps)
            .field("goal", &self.goal)
            .finish_non_exhaustive()
    }
}

impl<S: KeySource> Keyboard<S> {
    /// A keyboard with the default steps; the hand's position is that of LeRobot's fingertip.
    pub const fn new(keys: S) -> Self {
        Self {
            keys,
            steps: KeySteps::DEFAULT,
            kinematics: Kinematics::new(Tcp::LEROBOT_FINGERTIP),
            goal: None,
            refused: None,
            finished: false,
        }
    }

    /// Other steps.
    ///
    /// # Errors
    /// [`Error::NonFinite`] and [`Error::Negative`].
    pub fn with_steps(mut self, steps: KeySteps) -> Result<Self> {
        for (what, value) in [
            ("an angle step in degrees", steps.angle.0),
            ("a gripper step in percent", steps.gripper.0),
            ("a step of the hand in metres", steps.hand_m),
        ] {
            if crate::convert::finite(what, value)? < 0.0 {
                return Err(Error::Negative { what, value });
            }
        }
        self.steps = steps;
        Ok(self)
    }

    /// Another tool centre point.
    #[must_use]
    pub const fn with_tcp(mut self, tcp: Tcp) -> Self {
        self.kinematics = Kinematics::new(tcp);
        self
    }

    /// Why the last step was left out, once.
    pub const fn refused(&mut self) -> Option<Error> {
        self.refused.take()
    }

    fn press(&mut self, key: Key) {
        let Some(goal) = &mut self.goal else { return };
        match key {
            Key::Quit => self.finished = true,
            Key::Joint(JointId::Gripper, way) => {
                let low = goal.gripper.0.min(0.0);
                let high = goal.gripper.0.max(100.0);
                goal.gripper.0 = (goal.gripper.0 + way.sign() * self.steps.gripper.0).clamp(low, high);
            }
            Key::Joint(joint, way) => turn(goal, joint, way.sign() * self.steps.angle.0),
            Key::Hand(EeAxis::Roll, way) => turn(goal, JointId::WristRoll, way.sign() * self.steps.angle.0),
            Key::Hand(axis, way) => match self.hand_step(axis, way.sign()) {
                Ok(body) => {
                    if let Some(goal) = &mut self.goal {
                        goal.body = body;
                    }
                }
                Err(error) => self.refused = Some(error),
            },
        }
    }

    /// The nearest joint angles that have the hand one step further.
    fn hand_step(&self, axis: EeAxis, sign: f64) -> Result<[Degrees; 5]> {
        let Some(goal) = &self.goal else { return Err(Error::NotEngaged { name: "keyboard".into() }) };
        let q = goal.body.map(Radians::from);
        let [mut x, mut y, mut z] = self.kinematics.fk(&q).position_m;
        let (mut pitch, by) = (Kinematics::pitch(&q), sign * self.steps.hand_m);
        match axis {
            EeAxis::X => x += by,
            EeAxis::Y => y += by,
            EeAxis::Z => z += by,
            EeAxis::Pitch => pitch.0 += (sign * self.steps.angle.0).to_radians(),
            EeAxis::Roll => {}
        }
        let [.., roll] = q;
        let solutions = self.kinematics.ik([x, y, z], pitch, roll)?;
        let nearest = solutions.nearest(&q)?;
        // The other branch of the arm is not one step away.
        let far = nearest.q.iter().zip(&q).map(|(a, b)| (a.0 - b.0).abs()).fold(0.0, f64::max);
        if far > MAX_STEP_RAD {
            return Err(Error::HandStep { turn: Degrees(far.to_degrees()) });
        }
        Ok(nearest.q.map(Degrees::from))
    }
}

/// A step of the hand that turns a joint by more than this is none.
const MAX_STEP_RAD: f64 = 0.35;

/// Turns a body joint, not further out of the model's limits than it is.
fn turn(goal: &mut JointVector<Degrees>, joint: JointId, by_deg: f64) {
    let i = BODY_JOINTS.iter().position(|j| *j == joint);
    let slot = i.and_then(|i| Some((goal.body.get_mut(i)?, LIMITS.get(i)?)));
    if let Some((angle, limits)) = slot {
        let low = Degrees::from(limits.lower).0.min(angle.0);
        let high = Degrees::from(limits.upper).0.max(angle.0);
        angle.0 = (angle.0 + by_deg).clamp(low, high);
    }
}

impl<S: KeySource> Teleoperator for Keyboard<S> {
    fn name(&self) -> &str {
        "keyboard"
    }

    fn engage(&mut self, follower: &JointVector<Degrees>) -> Result<()> {
        for angle in follower.to_row() {
            crate::convert::finite("a follower's joint", angle)?;
        }
        self.goal = Some(*follower);
        self.finished = false;
        // What was pressed before belongs to nothing.
        while self.keys.next_key().is_some() {}
        Ok(())
    }

    fn action(&mut self, _at: Timestamp) -> Result<Action> {
        while self.goal.is_some() {
            let Some(key) = self.keys.next_key() else { break };
            self.press(key);
        }
        self.goal
            .map(|joints| Action { joints })
            .ok_or_else(|| Error::NotEngaged { name: self.name().into() })
    }

    fn is_finished(&self) -> bool {
        self.finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use core::time::Duration;

    fn pose() -> JointVector<Degrees> {
        JointVector::<Degrees>::from_row([0.0, -20.0, 40.0, 50.0, 0.0, 30.0])
    }

    /// Engaged at [`pose`], then these keys.
    fn pressed(keys: &[Key]) -> (Keyboard<VecDeque<Key>>, JointVector<Degrees>) {
        let mut teleop = Keyboard::new(VecDeque::new());
        teleop.engage(&pose()).unwrap();
        teleop.keys.extend(keys);
        let joints = teleop.action(Timestamp::ZERO).unwrap().joints;
        (teleop, joints)
    }

    #[test]
    fn nothing_moves_without_a_key_and_keys_from_before_are_forgotten() {
        let mut teleop = Keyboard::new(VecDeque::from([Key::Joint(JointId::ShoulderPan, Way::Plus); 3]));
        assert!(matches!(teleop.action(Timestamp::ZERO), Err(Error::NotEngaged { .. })));
        teleop.engage(&pose()).unwrap();
        for ms in [0, 500, 10_000] {
            let at = Timestamp::from_start(Duration::from_millis(ms));
            assert_eq!(teleop.action(at).unwrap().joints, pose());
        }
    }

    #[test]
    fn a_key_moves_one_joint_by_one_step_and_not_out_of_its_limits() {
        let (_, joints) =
            pressed(&[Key::Joint(JointId::WristFlex, Way::Plus), Key::Joint(JointId::Gripper, Way::Minus)]);
        assert_eq!(joints.to_row(), [0.0, -20.0, 40.0, 52.0, 0.0, 25.0]);
        let (_, joints) = pressed(&[Key::Joint(JointId::ShoulderPan, Way::Minus); 80]);
        assert!((joints.body[0].0 + 1.91986_f64.to_degrees()).abs() < 1e-9, "{joints:?}");
        let (_, joints) = pressed(&[Key::Joint(JointId::Gripper, Way::Plus); 80]);
        assert_eq!(joints.gripper, Percent(100.0));
    }

    #[test]
    fn a_joint_that_starts_outside_of_its_limits_does_not_jump_back() {
        let mut teleop = Keyboard::new(VecDeque::new());
        let outside = JointVector::<Degrees>::from_row([0.0, 0.0, 99.0, 0.0, 0.0, 104.0]);
        teleop.engage(&outside).unwrap();
        teleop
            .keys
            .extend([Key::Joint(JointId::ElbowFlex, Way::Plus), Key::Joint(JointId::Gripper, Way::Plus)]);
        assert_eq!(teleop.action(Timestamp::ZERO).unwrap().joints, outside);
        teleop.keys.push_back(Key::Joint(JointId::ElbowFlex, Way::Minus));
        assert_eq!(teleop.action(Timestamp::ZERO).unwrap().joints.body[2], Degrees(97.0));
    }

    #[test]
    fn a_step_of_the_hand_moves_it_along_its_axis_alone() {
        let arm = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
        let at = |q: &JointVector<Degrees>| {
            let q = q.body.map(Radians::from);
            (arm.fk(&q).position_m, Kinematics::pitch(&q).0)
        };
        let (start, pitch) = at(&pose());
        for (axis, i) in [(EeAxis::X, 0), (EeAxis::Y, 1), (EeAxis::Z, 2)] {
            for (way, sign) in [(Way::Plus, 1.0), (Way::Minus, -1.0)] {
                let (mut teleop, joints) = pressed(&[Key::Hand(axis, way); 4]);
                assert!(teleop.refused().is_none());
                let mut expected = start;
                expected[i] += sign * 0.02;
                let (now, now_pitch) = at(&joints);
                let off: f64 = now.iter().zip(expected).map(|(a, b)| (a - b).abs()).sum();
                assert!(
                    off < 1e-9 && (now_pitch - pitch).abs() < 1e-9,
                    "{axis:?} {way:?}: {now:?} {expected:?}"
                );
            }
        }
        let (_, joints) = pressed(&[Key::Hand(EeAxis::Pitch, Way::Plus)]);
        let (now, now_pitch) = at(&joints);
        assert!((now_pitch - pitch - 2.0_f64.to_radians()).abs() < 1e-9 && (now[2] - start[2]).abs() < 1e-9);
        let (_, joints) = pressed(&[Key::Hand(EeAxis::Roll, Way::Minus)]);
        assert_eq!(joints.body[4], Degrees(-2.0));
    }

    #[test]
    fn a_step_out_of_reach_is_left_out_and_says_why() {
        let (mut teleop, joints) = pressed(&[Key::Hand(EeAxis::X, Way::Plus); 100]);
        let refused = teleop.refused().unwrap();
        assert!(matches!(refused, Error::Unreachable { .. } | Error::HandStep { .. }), "{refused}");
        assert!(joints.is_finite());
    }

    #[test]
    fn letters_have_their_meaning_and_escape_ends() {
        assert_eq!(Keys::Joints.key('3'), Some(Key::Joint(JointId::ElbowFlex, Way::Plus)));
        assert_eq!(Keys::Joints.key('Y'), Some(Key::Joint(JointId::Gripper, Way::Minus)));
        assert_eq!(Keys::Hand.key('f'), Some(Key::Hand(EeAxis::Z, Way::Minus)));
        assert_eq!((Keys::Hand.key('1'), Keys::Joints.key('o')), (None, None));
        let (teleop, _) = pressed(&[Keys::Hand.key('\u{1b}').unwrap()]);
        assert!(teleop.is_finished());
    }

    #[test]
    fn steps_have_to_be_numbers() {
        let with = |steps| Keyboard::new(VecDeque::new()).with_steps(steps);
        assert!(with(KeySteps { hand_m: f64::NAN, ..KeySteps::default() }).is_err());
        assert!(with(KeySteps { angle: Degrees(-1.0), ..KeySteps::default() }).is_err());
    }
}
