//! What the thread of a camera and those who ask it share. The lock is held for copies of a few words only, never while
//! a picture is waited for, copied or decoded.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::super::picture::{Buffers, Content, Picture, Source};
use super::super::{CameraSpec, DeviceInfo};
use super::{CameraStats, Decode};
use crate::clock::Timestamp;
use crate::error::Error;
use crate::frame::Frame;

/// Capture times that the rate is measured on.
const STAMPS: usize = 128;

/// The newest picture, and what was counted.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) latest: Option<Picture>,
    /// The newest whole picture, where the newest one is not.
    pub(super) last_good: Option<Frame>,
    /// Why the thread has ended; taken by the first who asks.
    pub(super) ended: Option<Error>,
    /// The same in words, for all others.
    pub(super) why: Option<String>,
    pub(super) device: Option<DeviceInfo>,
    pub(super) stats: CameraStats,
    ring: Vec<(u64, Timestamp)>,
    ring_at: usize,
}

/// [`State`] behind a lock.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    state: Mutex<State>,
    fresh: Condvar,
    pub(super) stop: AtomicBool,
}

impl Mailbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here is left half done by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        self.fresh.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    /// Counts what is wrong with a picture.
    pub(super) fn note(&mut self, error: &Error) {
        match error {
            Error::PictureDamaged { .. } => self.stats.jpeg_errors += 1,
            Error::CameraSize { .. } => self.stats.size_errors += 1,
            _ => {}
        }
    }

    /// Numbers and capture times of the last pictures, oldest first.
    pub(super) fn stamps(&self) -> Vec<(u64, Timestamp)> {
        let (new, old) = self.ring.split_at(self.ring_at.min(self.ring.len()));
        old.iter().chain(new).copied().collect()
    }

    /// Puts a picture in; the one that was there comes back.
    fn put(&mut self, picture: Picture) -> Option<Picture> {
        self.stats.frames += 1;
        if let Some(last) = &self.latest {
            self.stats.dropped += picture.sequence.saturating_sub(last.sequence).saturating_sub(1);
        }
        match &picture.content {
            Content::Damaged(_) => self.stats.jpeg_errors += 1,
            Content::OtherSize(_) => self.stats.size_errors += 1,
            Content::Jpeg(_) | Content::Frame(_) => {}
        }
        let stamp = (picture.sequence, picture.captured);
        match self.ring.get_mut(self.ring_at) {
            Some(slot) => *slot = stamp,
            None => self.ring.push(stamp),
        }
        self.ring_at = (self.ring_at + 1) % STAMPS;
        let is_whole = matches!(picture.content, Content::Frame(_) | Content::Jpeg(_));
        let old = self.latest.replace(picture);
        if is_whole {
            self.last_good = None;
        } else if let Some(Picture { content: Content::Frame(frame), .. }) = &old {
            self.last_good = Some(frame.clone());
        }
        old
    }
}

/// Tells those who wait when the thread ends by a panic, of a driver or a decoder.
struct Farewell<'a>(&'a Mailbox);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().why = Some("its thread has panicked".to_string());
            self.0.fresh.notify_all();
        }
    }
}

/// The thread: takes pictures of the driver until it is told to stop or the driver fails.
pub(super) fn fill(mut source: Box<dyn Source>, mailbox: &Mailbox, decode: Decode) {
    let _farewell = Farewell(mailbox);
    let spec: CameraSpec = source.spec().clone();
    let mut buffers = Buffers::new();
    mailbox.lock().ring.reserve_exact(STAMPS);
    while !mailbox.stop.load(Ordering::Acquire) {
        match source.grab(&mut buffers) {
            Ok(mut picture) => {
                if decode == Decode::OnThread {
                    picture = picture.decoded(&spec, &mut buffers);
                }
                let mut state = mailbox.lock();
                if state.stats.frames == 0 {
                    state.device = source.device().cloned();
                }
                let old = state.put(picture);
                drop(state);
                mailbox.fresh.notify_all();
                if let Some(old) = old {
                    buffers.recycle(old);
                }
            }
            // A camera may come back from a silence by itself; a capture in between is stale.
            Err(Error::CameraSilent { .. }) => mailbox.lock().stats.silences += 1,
            Err(error) => {
                let mut state = mailbox.lock();
                state.why = Some(error.to_string());
                state.ended = Some(error);
                drop(state);
                mailbox.fresh.notify_all();
                return;
            }
        }
    }
}
