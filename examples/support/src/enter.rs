//! Somebody at the terminal who does something with the arm and then presses ENTER.

use std::io::BufRead as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::interrupt;

/// A signal has no key: this is how long it may go unnoticed.
const LOOK: Duration = Duration::from_millis(50);

/// What came instead of an answer, or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// ENTER.
    Enter,
    /// Ctrl-C.
    Interrupted,
}

/// Lines of standard input.
#[derive(Debug)]
pub struct Enter {
    lines: Receiver<()>,
}

impl Enter {
    /// Listens to standard input.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub fn at_stdin() -> Result<Self> {
        let (sender, lines) = channel();
        std::thread::Builder::new()
            .name("enter".to_owned())
            .spawn(move || {
                for line in std::io::stdin().lock().lines() {
                    if line.is_err() || sender.send(()).is_err() {
                        return;
                    }
                }
            })
            .map_err(|source| Error::Io { what: "listen to", path: "stdin".into(), source })?;
        Ok(Self { lines })
    }

    /// ENTERs from anywhere.
    #[must_use]
    pub const fn from_lines(lines: Receiver<()>) -> Self {
        Self { lines }
    }

    /// Forgets what was pressed before.
    pub fn forget(&mut self) {
        while self.lines.try_recv().is_ok() {}
    }

    /// Waits for ENTER or Ctrl-C.
    ///
    /// # Errors
    /// [`Error::Usage`] when standard input has ended: nobody is there.
    pub fn wait(&mut self) -> Result<Answer> {
        loop {
            if interrupt::requested() {
                return Ok(Answer::Interrupted);
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(()) => return Ok(Answer::Enter),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(nobody()),
            }
        }
    }

    /// Whether ENTER or Ctrl-C was pressed since the last look.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn pressed(&mut self) -> Result<Option<Answer>> {
        if interrupt::requested() {
            return Ok(Some(Answer::Interrupted));
        }
        match self.lines.try_recv() {
            Ok(()) => Ok(Some(Answer::Enter)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(nobody()),
        }
    }
}

fn nobody() -> Error {
    Error::Usage(
        "somebody has to press ENTER: run this in a terminal, or try it with --rig emulated".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enter_is_seen_once_and_an_end_is_an_error() {
        let (sender, lines) = channel();
        let mut enter = Enter::from_lines(lines);
        assert_eq!(enter.pressed().unwrap(), None);
        sender.send(()).unwrap();
        sender.send(()).unwrap();
        assert_eq!(enter.wait().unwrap(), Answer::Enter);
        assert_eq!(enter.pressed().unwrap(), Some(Answer::Enter));
        sender.send(()).unwrap();
        enter.forget();
        assert_eq!(enter.pressed().unwrap(), None);
        drop(sender);
        assert!(matches!(enter.pressed(), Err(Error::Usage(_))));
        assert!(matches!(enter.wait(), Err(Error::Usage(_))));
    }
}
