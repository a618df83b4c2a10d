//! A camera with a thread of its own: the driver's pictures go into a mailbox that holds the newest one.
//!
//! Whoever asks gets the newest picture at once, with its number and capture time, so that a control loop never waits for a
//! camera. A picture that is too old is an error, not an answer; so is a damaged one, as long as it is the newest.

mod mailbox;

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::sync::Arc;
use core::time::Duration;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use self::mailbox::{Mailbox, fill};
use super::picture::{Buffers, Content, Picture, Source};
use super::quality::Pace;
use super::{Camera, CameraSpec, DeviceInfo};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::frame::Frame;

/// Where JPEG pictures become pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decode {
    /// On the camera's thread, each picture: nobody waits for it. The choice where most pictures are used.
    #[default]
    OnThread,
    /// When asked for, on the thread of the one who asks: pictures that nobody uses cost nothing.
    OnCapture,
}

/// How a [`CameraThread`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadOptions {
    /// Older pictures are [`Error::CameraStale`]. (LeRobot reuses pictures up to 500 ms old and does not say so.)
    pub max_age: Duration,
    /// How long the first picture may take: cameras need a second or two to start.
    pub first_picture: Duration,
    /// Where JPEG pictures become pixels.
    pub decode: Decode,
}

impl Default for ThreadOptions {
    fn default() -> Self {
        Self {
            max_age: Duration::from_millis(200),
            first_picture: Duration::from_secs(5),
            decode: Decode::OnThread,
        }
    }
}

/// What a camera has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CameraStats {
    /// Deliveries that came, damaged ones included.
    pub frames: u64,
    /// Pictures that were lost between the sensor and this program: gaps of the sequence numbers.
    pub dropped: u64,
    /// How often the newest picture was asked for and was too old.
    pub stale: u64,
    /// How often the same picture was given again.
    pub repeated: u64,
    /// Deliveries that were no whole picture.
    pub jpeg_errors: u64,
    /// Deliveries of another size than the camera's.
    pub size_errors: u64,
    /// Times without any picture, longer than the driver waits.
    pub silences: u64,
    /// Pictures a second over the last ones that came.
    pub fps: f64,
    /// 99th percentile of how far the time between two pictures was from their period, over the last ones.
    pub jitter: Duration,
}

/// A camera with a thread of its own; [`Camera::capture`] gives the newest picture.
///
/// ```
/// use std::sync::Arc;
/// use so101_hal::camera::synthetic::{SyntheticCamera, SyntheticOptions};
/// use so101_hal::camera::{CameraThread, ThreadOptions};
/// use so101_hal::{Camera, CameraSpec, Clock, SystemClock};
/// # fn main() -> so101_hal::Result<()> {
/// let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
/// let spec = CameraSpec::new("main", 64, 48);
/// let source = SyntheticCamera::new(spec, SyntheticOptions::default(), clock.clone());
/// let mut camera = CameraThread::spawn(Box::new(source), clock, ThreadOptions::default())?;
/// let first = camera.capture()?;
/// let later = camera.wait_newer(first.sequence)?;
/// assert!(later.sequence > first.sequence);
/// # Ok(()) }
/// ```
pub struct CameraThread {
    spec: CameraSpec,
    device: Option<DeviceInfo>,
    mailbox: Arc<Mailbox>,
    clock: Arc<dyn Clock>,
    options: ThreadOptions,
    thread: Option<JoinHandle<()>>,
    /// Number of the picture that was given last.
    given: Option<u64>,
    /// The picture that was decoded last here: asked for twice, it is decoded once.
    decoded: Option<Frame>,
    buffers: Buffers,
}

impl core::fmt::Debug for CameraThread {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CameraThread")
            .field("spec", &self.spec)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl CameraThread {
    /// Starts the thread, and waits for the first picture, so that a camera that gives none fails here. `clock` has to be
    /// the one of the source.
    ///
    /// # Errors
    /// What the driver says until then, [`Error::CameraSilent`] where nothing comes, [`Error::CameraIo`] where there can
    /// be no thread.
    pub fn spawn(source: Box<dyn Source>, clock: Arc<dyn Clock>, options: ThreadOptions) -> Result<Self> {
        let spec = source.spec().clone();
        let mailbox = Arc::new(Mailbox::default());
        let thread = std::thread::Builder::new()
            .name(std::format!("camera {}", spec.name))
            .spawn({
                let mailbox = Arc::clone(&mailbox);
                move || fill(source, &mailbox, options.decode)
            })
            .map_err(|e| Error::CameraIo {
                doing: "start the thread of",
                path: spec.name.clone(),
                source: e.into(),
            })?;
        let mut camera = Self {
            spec,
            device: None,
            mailbox,
            clock,
            options,
            thread: Some(thread),
            given: None,
            decoded: None,
            buffers: Buffers::new(),
        };
        camera.picture_after(None, options.first_picture)?;
        camera.device = camera.mailbox.lock().device.take();
        Ok(camera)
    }

    /// The next picture behind number `sequence`, as soon as it has come; at once where a newer one is there.
    ///
    /// # Errors
    /// As [`Camera::capture`], and [`Error::CameraSilent`] where nothing comes for as long as a first picture may take.
    pub fn wait_newer(&mut self, sequence: u64) -> Result<Frame> {
        let picture = self.picture_after(Some(sequence), self.options.first_picture)?;
        self.give(picture)
    }

    /// The newest picture that was whole, however old: to be used only by who looks at its number and capture time.
    #[must_use]
    pub fn last_good(&self) -> Option<Frame> {
        let state = self.mailbox.lock();
        match &state.latest {
            Some(Picture { content: Content::Frame(frame), .. }) => Some(frame.clone()),
            _ => state.last_good.clone().or_else(|| self.decoded.clone()),
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> CameraStats {
        let state = self.mailbox.lock();
        let (mut stats, stamps) = (state.stats, state.stamps());
        drop(state);
        let pace = Pace::of(&stamps);
        (stats.fps, stats.jitter) = (pace.fps, pace.jitter);
        stats
    }

    /// The newest picture that is newer than `sequence`, waited for up to `limit` where there is none.
    fn picture_after(&self, sequence: Option<u64>, limit: Duration) -> Result<Picture> {
        let end = std::time::Instant::now() + limit;
        let mut state = self.mailbox.lock();
        loop {
            // A picture that was there before the end still counts.
            if let Some(picture) = &state.latest
                && sequence.is_none_or(|s| picture.sequence > s)
            {
                return Ok(picture.clone());
            }
            if let Some(error) = state.ended.take() {
                return Err(error);
            }
            if let Some(why) = &state.why {
                return Err(Error::CameraStopped { camera: self.spec.name.clone(), why: why.clone() });
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                let waited_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                return Err(Error::CameraSilent { camera: self.spec.name.clone(), waited_ms });
            }
            state = self.mailbox.wait(state, left);
        }
    }

    fn give(&mut self, picture: Picture) -> Result<Frame> {
        if self.given == Some(picture.sequence) {
            self.mailbox.lock().stats.repeated += 1;
        }
        self.given = Some(picture.sequence);
        if !matches!(picture.content, Content::Jpeg(_)) {
            return picture.decode(&self.spec, &mut self.buffers);
        }
        if let Some(frame) = self.decoded.as_ref().filter(|f| f.sequence == picture.sequence) {
            return Ok(frame.clone());
        }
        match picture.decode(&self.spec, &mut self.buffers) {
            Ok(frame) => {
                let old = self.decoded.replace(frame.clone());
                if let Some(buffer) = old.and_then(Frame::into_buffer) {
                    self.buffers.give(buffer);
                }
                Ok(frame)
            }
            Err(error) => {
                self.mailbox.lock().note(&error);
                Err(error)
            }
        }
    }
}

impl Camera for CameraThread {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    /// The newest picture, at once.
    ///
    /// # Errors
    /// [`Error::CameraStale`] where it is older than [`ThreadOptions::max_age`]; [`Error::PictureDamaged`] and
    /// [`Error::CameraSize`] where it is none ([`CameraThread::last_good`] gives the one before); what ended the thread,
    /// and [`Error::CameraStopped`] from then on.
    fn capture(&mut self) -> Result<Frame> {
        {
            // A camera that is gone says so at once, not when its last picture is too old.
            let mut state = self.mailbox.lock();
            if let Some(error) = state.ended.take() {
                return Err(error);
            }
            if let Some(why) = &state.why {
                return Err(Error::CameraStopped { camera: self.spec.name.clone(), why: why.clone() });
            }
        }
        let picture = self.picture_after(None, self.options.first_picture)?;
        let age = self.clock.now().since(picture.captured);
        if age > self.options.max_age {
            self.mailbox.lock().stats.stale += 1;
            let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
            return Err(Error::CameraStale {
                camera: self.spec.name.to_string(),
                age_ms: ms(age),
                max_age_ms: ms(self.options.max_age),
            });
        }
        self.give(picture)
    }

    fn device(&self) -> Option<&DeviceInfo> {
        self.device.as_ref()
    }
}

impl Drop for CameraThread {
    fn drop(&mut self) {
        self.mailbox.stop.store(true, Ordering::Release);
        // A driver waits a second or two for a picture at most, so that this ends.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
