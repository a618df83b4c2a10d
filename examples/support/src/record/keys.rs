//! The operator's keys: LeRobot's, and letters for keyboards and pipes without arrows.
//!
//! | key | while an episode runs | before it | after it, with `--judge` |
//! |---|---|---|---|
//! | right arrow, n | ends it and keeps it | begins it | n: it failed |
//! | Enter, space | | begins it | nobody judges it |
//! | left arrow, r | throws it away and records it again | | throws it away |
//! | Esc, q | ends it, keeps it and ends the session | ends the session | keeps it and ends the session |
//! | y | | | it succeeded |
//! | e | emergency stop: torque off at once | the same | the same |
//!
//! Where the keyboard drives the arm too, r moves the hand up and only the left arrow records again; the other letters
//! of `Keys::Hand` are free.

use std::io::Read as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use so101_hal::teleop::{Key, Keys};

use crate::error::{Error, Result};
use crate::interrupt;

/// A key, or a key with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// Right arrow.
    Right,
    /// Left arrow.
    Left,
    /// Up arrow.
    Up,
    /// Down arrow.
    Down,
    /// Escape.
    Escape,
    /// Enter.
    Enter,
    /// Any other.
    Char(char),
}

/// What the operator wants of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// On to what comes next.
    Next,
    /// Once more.
    Again,
    /// No more.
    Stop,
    /// Torque off.
    Emergency,
}

/// What the operator says of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It counts, with or without a judgement.
    Keep(Option<bool>),
    /// It is recorded again.
    Again,
    /// It counts, unjudged, and is the last.
    Stop,
    /// Torque off.
    Emergency,
}

/// The operator at the keyboard, or a pipe that stands for one.
pub struct Operator {
    keys: Receiver<Press>,
    /// Where keys go that steer the arm, and which letters do.
    arm: Option<(Keys, Sender<Key>)>,
    closed: bool,
    terminal: Option<terminal::Raw>,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Operator {
    /// Listens to standard input; a terminal gives each key at once, without Enter, until this is dropped.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub fn at_stdin(stop_key: StopKey) -> Result<Self> {
        let terminal = terminal::Raw::enter();
        let (sender, keys) = channel();
        std::thread::Builder::new()
            .name("operator-keys".to_owned())
            .spawn(move || listen(&sender, stop_key))
            .map_err(|source| Error::Io { what: "listen to", path: "stdin".into(), source })?;
        Ok(Self { keys, arm: None, closed: false, terminal })
    }

    /// Keys from anywhere.
    #[must_use]
    pub fn from_keys(keys: Receiver<Press>) -> Self {
        Self { keys, arm: None, closed: false, terminal: None }
    }

    /// From now on keys of [`Keys::Hand`] go there while an episode runs.
    pub fn steer(&mut self, arm: Sender<Key>) {
        self.steer_with(Keys::Hand, arm);
    }

    /// From now on these keys go there; letters among them mean nothing else any more.
    pub fn steer_with(&mut self, letters: Keys, arm: Sender<Key>) {
        self.arm = Some((letters, arm));
    }

    /// Whether nobody can press a key any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.closed
    }

    /// What the operator wants at this moment, while an episode runs.
    pub fn wish(&mut self) -> Option<Wish> {
        loop {
            match self.keys.try_recv() {
                Ok(key) => {
                    if let Some(wish) = self.wish_of(key) {
                        return Some(wish);
                    }
                }
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    self.closed = true;
                    return None;
                }
            }
        }
    }

    fn wish_of(&self, key: Press) -> Option<Wish> {
        if let (Some((letters, arm)), Press::Char(letter)) = (&self.arm, key)
            && let Some(key) = letters.key(letter)
        {
            // A teleoperator that is gone needs no keys.
            let _ = arm.send(key);
            return None;
        }
        match key {
            Press::Right | Press::Char('n' | 'N') => Some(Wish::Next),
            Press::Left | Press::Char('r' | 'R') => Some(Wish::Again),
            Press::Escape | Press::Char('q' | 'Q') => Some(Wish::Stop),
            Press::Char('e' | 'E') => Some(Wish::Emergency),
            _ => None,
        }
    }

    /// Waits until the operator begins or ends, at most for `patience`; then, and where nobody is there, it begins.
    /// Ctrl-C ends.
    pub fn begin(&mut self, patience: Option<Duration>) -> Wish {
        let wish = |key: Press| match key {
            Press::Right | Press::Enter | Press::Char('n' | 'N' | ' ') => Some(Wish::Next),
            Press::Escape | Press::Char('q' | 'Q') => Some(Wish::Stop),
            Press::Char('e' | 'E') => Some(Wish::Emergency),
            _ => None,
        };
        self.wait(patience, wish, Wish::Stop).unwrap_or(Wish::Next)
    }

    /// Waits for a judgement. Where nobody is there, nobody judges.
    pub fn judge(&mut self) -> Judgement {
        let judgement = |key: Press| match key {
            Press::Char('y' | 'Y') => Some(Judgement::Keep(Some(true))),
            Press::Char('n' | 'N') => Some(Judgement::Keep(Some(false))),
            Press::Enter | Press::Char(' ' | 'u' | 'U') => Some(Judgement::Keep(None)),
            Press::Left | Press::Char('r' | 'R') => Some(Judgement::Again),
            Press::Escape | Press::Char('q' | 'Q') => Some(Judgement::Stop),
            Press::Char('e' | 'E') => Some(Judgement::Emergency),
            _ => None,
        };
        self.wait(None, judgement, Judgement::Stop).unwrap_or(Judgement::Keep(None))
    }

    /// Waits for yes: y or Enter. At a terminal, what was typed before the question is no answer to it.
    pub fn confirm(&mut self) -> bool {
        if self.terminal.is_some() {
            while self.keys.try_recv().is_ok() {}
        }
        let answer = |key: Press| match key {
            Press::Enter | Press::Char('y' | 'Y') => Some(true),
            Press::Escape | Press::Char('n' | 'N' | 'q' | 'Q' | 'e' | 'E') => Some(false),
            _ => None,
        };
        self.wait(None, answer, false).unwrap_or(false)
    }

    /// The first key that means something; `None` when the time is up or nobody is there.
    fn wait<T>(
        &mut self,
        patience: Option<Duration>,
        of: impl Fn(Press) -> Option<T>,
        on_interrupt: T,
    ) -> Option<T> {
        /// A signal has no key: this is how long it may go unnoticed.
        const LOOK: Duration = Duration::from_millis(50);
        let start = Instant::now();
        loop {
            if interrupt::requested() {
                return Some(on_interrupt);
            }
            let left = patience.map(|p| p.saturating_sub(start.elapsed()));
            if left.is_some_and(|l| l.is_zero()) {
                return None;
            }
            match self.keys.recv_timeout(left.unwrap_or(LOOK).min(LOOK)) {
                Ok(key) => {
                    if let Some(meaning) = of(key) {
                        return Some(meaning);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.closed = true;
                    // Whoever waits for time alone still has to.
                    let left = left?;
                    std::thread::sleep(left.min(LOOK));
                }
            }
        }
    }
}

/// Whether the key e stops the arm at once, or is a letter like others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKey {
    /// It stops every arm of [`interrupt::stop_at_once`], also while the program waits for something else.
    E,
    /// It only arrives.
    None,
}

/// Reads keys until standard input ends or nobody wants them any more.
fn listen(to: &Sender<Press>, stop_key: StopKey) {
    let mut bytes = [0; 64];
    loop {
        match std::io::stdin().read(&mut bytes) {
            Ok(0) => return,
            Ok(n) => {
                for key in presses(bytes.get(..n).unwrap_or(&[])) {
                    if stop_key == StopKey::E && matches!(key, Press::Char('e' | 'E')) {
                        interrupt::stop_arms();
                    }
                    if to.send(key).is_err() {
                        return;
                    }
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Keys in the bytes of a terminal. Arrows come as `ESC [ A` to `D` or `ESC O A` to `D`; other sequences mean nothing.
fn presses(mut bytes: &[u8]) -> Vec<Press> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        match (first, rest) {
            (0x1b, [b'[' | b'O', end, after @ ..]) => {
                keys.extend(match end {
                    b'A' => Some(Press::Up),
                    b'B' => Some(Press::Down),
                    b'C' => Some(Press::Right),
                    b'D' => Some(Press::Left),
                    _ => None,
                });
                bytes = after;
            }
            (0x1b, _) => keys.push(Press::Escape),
            (b'\r' | b'\n', _) => keys.push(Press::Enter),
            (byte, _) if byte.is_ascii_graphic() || *byte == b' ' => {
                keys.push(Press::Char(char::from(*byte)));
            }
            _ => {}
        }
    }
    keys
}

mod terminal {
    //! A terminal that gives keys at once and does not show them.

    use std::sync::Mutex;

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// How the terminal was before.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    /// The terminal goes back to what it was when this is dropped.
    pub(super) struct Raw;

    impl Raw {
        /// `None` where standard input is no terminal.
        pub(super) fn enter() -> Option<Self> {
            let before = tcgetattr(std::io::stdin()).ok()?;
            let mut raw = before.clone();
            // Signals stay: Ctrl-C is the way out.
            raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).ok()?;
            *BEFORE.lock().ok()? = Some(before);
            crate::interrupt::before_exit(restore);
            Some(Self)
        }
    }

    impl Drop for Raw {
        fn drop(&mut self) {
            restore();
        }
    }

    fn restore() {
        if let Ok(mut before) = BEFORE.try_lock()
            && let Some(before) = before.take()
        {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(keys: &[Press]) -> Operator {
        let (sender, receiver) = channel();
        keys.iter().for_each(|k| sender.send(*k).unwrap());
        Operator::from_keys(receiver)
    }

    #[test]
    fn arrows_escape_and_letters_are_told_apart_in_one_read() {
        assert_eq!(
            presses(b"n\x1b[C\x1bOD\x1b[A\x1b[B\x1b[Zy \r\n\x01q\x1b"),
            [
                Press::Char('n'),
                Press::Right,
                Press::Left,
                Press::Up,
                Press::Down,
                Press::Char('y'),
                Press::Char(' '),
                Press::Enter,
                Press::Enter,
                Press::Char('q'),
                Press::Escape,
            ]
        );
    }

    #[test]
    fn lerobots_keys_and_their_letters_mean_the_same() {
        let cases = [
            (Press::Right, Wish::Next),
            (Press::Char('n'), Wish::Next),
            (Press::Left, Wish::Again),
            (Press::Char('r'), Wish::Again),
            (Press::Escape, Wish::Stop),
            (Press::Char('q'), Wish::Stop),
            (Press::Char('e'), Wish::Emergency),
        ];
        for (key, wish) in cases {
            assert_eq!(operator(&[Press::Char('x'), key]).wish(), Some(wish), "{key:?}");
        }
        let mut silent = operator(&[Press::Up]);
        assert_eq!((silent.wish(), silent.is_gone()), (None, true));
    }

    #[test]
    fn letters_that_steer_the_arm_reach_it_and_do_not_steer_the_session() {
        let (sender, steered) = channel();
        let mut operator = operator(&[Press::Char('w'), Press::Char('r'), Press::Up, Press::Left]);
        operator.steer(sender);
        assert_eq!(operator.wish(), Some(Wish::Again));
        let expected = ['w', 'r'].map(|c| Keys::Hand.key(c).unwrap());
        assert_eq!(steered.try_iter().collect::<Vec<_>>(), expected);
        // No letter of the session steers, but for the one that is documented.
        let taken: Vec<char> = "nNqQeEyY".chars().filter(|c| Keys::Hand.key(*c).is_some()).collect();
        assert_eq!(taken, [' '; 0]);
    }

    #[test]
    fn success_is_what_the_operator_says_and_unjudged_where_nobody_is() {
        let cases = [
            (Some(Press::Char('y')), Judgement::Keep(Some(true))),
            (Some(Press::Char('n')), Judgement::Keep(Some(false))),
            (Some(Press::Enter), Judgement::Keep(None)),
            (Some(Press::Left), Judgement::Again),
            (Some(Press::Escape), Judgement::Stop),
            (None, Judgement::Keep(None)),
        ];
        for (key, judgement) in cases {
            let keys: Vec<Press> = key.into_iter().collect();
            assert_eq!(operator(&keys).judge(), judgement, "{key:?}");
        }
        assert!(operator(&[Press::Up, Press::Enter]).confirm());
        assert!(!operator(&[Press::Char('n'), Press::Enter]).confirm());
        assert!(!operator(&[]).confirm(), "nobody has said yes");
        assert_eq!(operator(&[]).begin(None), Wish::Next);
        assert_eq!(operator(&[Press::Char('q')]).begin(Some(Duration::from_secs(60))), Wish::Stop);
    }
}
