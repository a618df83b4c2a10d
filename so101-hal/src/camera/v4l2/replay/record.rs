//! Writes the calls down that another implementation makes, as a text that [`Replay`](super::Replay) plays.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use super::super::abi::{Buffer, Fields, Request};
use super::super::calls::{Calls, Errno, Ready};
use super::{show, words};

/// What a [`Recorder`] has written down; stays when the recorder is gone. Clones share the text.
#[derive(Clone, Debug, Default)]
pub struct CallLog(Arc<Mutex<String>>);

impl CallLog {
    /// The calls so far. Pictures themselves are left out: a `DQBUF` line has their number of bytes.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, line: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(line);
    }
}

/// Passes all calls on and writes them down.
#[derive(Debug)]
pub struct Recorder<C> {
    inner: C,
    log: CallLog,
}

impl<C: Calls> Recorder<C> {
    /// Listens to `inner`.
    pub fn new(inner: C) -> Self {
        Self { inner, log: CallLog::default() }
    }

    /// What it has written down and will.
    #[must_use]
    pub fn log(&self) -> CallLog {
        self.log.clone()
    }

    fn note(
        &mut self,
        call: &str,
        before: &[(String, String)],
        result: Result<Vec<(String, String)>, Errno>,
    ) {
        let answer = match result {
            Err(Errno(number)) => {
                Errno(number).name().map_or_else(|| format!("errno{number}"), ToString::to_string)
            }
            Ok(after) => {
                let changed: Vec<_> = after.into_iter().filter(|field| !before.contains(field)).collect();
                let text = words("", &changed);
                if text.is_empty() { "ok".to_string() } else { text.trim_start().to_string() }
            }
        };
        self.log.push(&format!("{} -> {answer}\n", words(call, before)));
    }
}

impl<C: Calls> Calls for Recorder<C> {
    fn ioctl<R: Request>(&mut self, argument: &mut R::Argument) -> Result<(), Errno> {
        let before = show(argument);
        let result = self.inner.ioctl::<R>(argument);
        self.note(R::NAME, &before, result.map(|()| show(argument)));
        result
    }

    fn map(&mut self, index: u32, length: u32, offset: u32) -> Result<(), Errno> {
        self.inner.map(index, length, offset)
    }

    fn queue(&mut self, buffer: &mut Buffer) -> Result<(), Errno> {
        let result = self.inner.queue(buffer);
        if let Err(errno) = result {
            self.note("QBUF", &show(buffer), Err(errno));
        }
        result
    }

    fn dequeue(&mut self, buffer: &mut Buffer) -> Result<(), Errno> {
        let result = self.inner.dequeue(buffer);
        let fields = |buffer: &mut dyn Fields| {
            let mut fields = show(buffer);
            fields.retain(|(k, _)| {
                ["index", "bytesused", "flags", "sequence", "seconds", "microseconds"].contains(&k.as_str())
            });
            fields
        };
        match result {
            Err(Errno::AGAIN) => {}
            _ => self.note("DQBUF", &[], result.map(|()| fields(buffer))),
        }
        result
    }

    fn taken(&self, index: u32) -> Option<&[u8]> {
        self.inner.taken(index)
    }

    fn wait(&mut self, limit: Duration) -> Result<Ready, Errno> {
        let result = self.inner.wait(limit);
        // A look without waiting is no silence.
        if result == Ok(Ready::TimedOut) && !limit.is_zero() {
            self.log.push("WAIT -> TIMEOUT\n");
        }
        result
    }

    fn monotonic_now(&self) -> Duration {
        self.inner.monotonic_now()
    }
}
