//! One camera's video while it is recorded: a bounded queue, a thread, an mp4.
//!
//! The control loop hands over a picture (a shared pointer, no copy) and goes on. The thread converts, counts the
//! statistics, encodes and writes. `pushes == pictures in the file` holds always: where the queue is full the
//! producer waits, or the picture before is encoded once more in the place of the missing one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use so101_hal::{CameraSpec, Frame};

use super::color::I420;
use super::encoder::Encoder;
use super::{Overflow, StreamConfig, VideoReport, video_info};
use crate::error::{Error, Result};
use crate::image_stats::ImageStats;
use crate::mp4::{Mp4Config, Mp4Writer};

/// Encodes the pictures of one camera into one mp4.
///
/// Dropping a stream that was not finished removes its file.
///
/// ```
/// use so101_dataset::video::{StreamConfig, VideoReader, VideoStream};
/// use so101_hal::{CameraSpec, Frame, FrameSize, Timestamp};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("main.mp4");
/// let mut stream = VideoStream::spawn(&path, &CameraSpec::new("main", 64, 48), &StreamConfig::default())?;
/// for i in 0..3 {
///     stream.push(Frame::new(FrameSize::new(64, 48), vec![90; 64 * 48 * 3], i, Timestamp::ZERO)?)?;
/// }
/// let report = stream.finish()?;
/// assert_eq!((report.frames, report.repeated), (3, 0));
/// assert_eq!(VideoReader::open(&path)?.frame(2)?.size(), FrameSize::new(64, 48));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct VideoStream {
    input: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<Result<VideoReport>>>,
    shared: Arc<Shared>,
    camera: CameraSpec,
    path: PathBuf,
    overflow: Overflow,
    pushed: u64,
    repeated: u64,
    /// Pictures refused by a full queue since the last one that went in.
    owed: u64,
}

/// A picture, and how often the one before it has to be shown again first.
struct Message {
    repeats_before: u64,
    frame: Frame,
}

#[derive(Default)]
struct Shared {
    abort: AtomicBool,
    /// Repeats of the last picture, for a queue that was full at the end; valid once the input is closed.
    repeats_at_end: AtomicU64,
}

impl VideoStream {
    /// Makes the file and starts the thread.
    ///
    /// # Errors
    /// [`Error::VideoSize`] for odd or too large pictures, [`Error::VideoSetting`]; a file or thread that cannot be
    /// made.
    pub fn spawn(path: &Path, camera: &CameraSpec, config: &StreamConfig) -> Result<Self> {
        let (encoder, mp4) = prepare(camera, config)?;
        Self::start(path, camera, config, encoder, Mp4Writer::create(path, &mp4)?)
    }

    /// [`spawn`](Self::spawn) on any storage.
    #[cfg(test)]
    pub(super) fn spawn_on(
        storage: Box<dyn crate::mp4::Storage>,
        path: &Path,
        camera: &CameraSpec,
        config: &StreamConfig,
    ) -> Result<Self> {
        let (encoder, mp4) = prepare(camera, config)?;
        Self::start(path, camera, config, encoder, Mp4Writer::create_on(storage, path, &mp4)?)
    }

    fn start(
        path: &Path,
        camera: &CameraSpec,
        config: &StreamConfig,
        encoder: Encoder,
        mp4: Mp4Writer,
    ) -> Result<Self> {
        let worker = Worker {
            encoder,
            mp4,
            picture: I420::new(camera.size)?,
            stats: ImageStats::new(),
            last: None,
            frames: 0,
            repeated: 0,
            path: path.into(),
            config: config.clone(),
            camera: camera.clone(),
        };
        let shared = Arc::new(Shared::default());
        let (input, queue) = sync_channel(config.queue_frames);
        let for_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name(format!("video-{}", camera.name))
            .spawn(move || worker.run(&queue, &for_thread))
            .map_err(|e| Error::io("start the encoder's thread for", path, e))?;
        Ok(Self {
            input: Some(input),
            thread: Some(thread),
            shared,
            camera: camera.clone(),
            path: path.into(),
            overflow: config.overflow,
            pushed: 0,
            repeated: 0,
            owed: 0,
        })
    }

    /// Hands over the next picture. With [`Overflow::RepeatAndReport`] this never waits.
    ///
    /// # Errors
    /// [`Error::FrameSize`]; whatever stopped the thread since the last call, such as [`Error::DiskFull`] (once, and
    /// the file is removed then); [`Error::VideoClosed`] afterwards.
    pub fn push(&mut self, frame: Frame) -> Result<()> {
        if frame.size() != self.camera.size {
            let (camera, expected) = (self.camera.name.clone(), self.camera.size);
            return Err(Error::FrameSize { camera, expected, got: frame.size() });
        }
        let Some(input) = &self.input else { return Err(self.closed()) };
        let message = Message { repeats_before: self.owed, frame };
        let sent = match self.overflow {
            Overflow::Block => input.send(message).is_ok(),
            Overflow::RepeatAndReport => match input.try_send(message) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    self.owed += 1;
                    self.repeated += 1;
                    self.pushed += 1;
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => false,
            },
        };
        if sent {
            self.owed = 0;
            self.pushed += 1;
            return Ok(());
        }
        // The thread has ended by itself, so it has an error to tell and does not keep us waiting.
        self.close_input();
        match self.wait() {
            Err(error) => Err(error),
            Ok(_) => Err(self.closed()),
        }
    }

    /// Pictures handed over so far: rows of the table.
    #[must_use]
    pub const fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Pictures so far that had no room in the queue.
    #[must_use]
    pub const fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Says that no picture comes any more, and returns at once; [`join`](Self::join) waits for the thread.
    pub fn close_input(&mut self) {
        self.shared.repeats_at_end.store(self.owed, Ordering::SeqCst);
        self.owed = 0;
        self.input = None;
    }

    /// Waits until every picture is encoded and the file is on the disk.
    ///
    /// # Errors
    /// Whatever stopped the thread; the file is removed then.
    pub fn join(mut self) -> Result<VideoReport> {
        if self.input.is_some() {
            self.close_input();
        }
        let pushed = self.pushed;
        let report = self.wait()?;
        if report.frames != pushed {
            let problem = format!("{pushed} pictures went in and {} came out", report.frames);
            return Err(Error::Encode { frame: report.frames, problem, path: self.path.clone() });
        }
        Ok(report)
    }

    /// [`close_input`](Self::close_input) and [`join`](Self::join).
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn finish(mut self) -> Result<VideoReport> {
        self.close_input();
        self.join()
    }

    /// Throws the video away: waits for the picture that is being encoded, then the file is removed.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn abort(mut self) -> Result<()> {
        self.stop()
    }

    fn stop(&mut self) -> Result<()> {
        self.shared.abort.store(true, Ordering::SeqCst);
        self.close_input();
        // It ends with an error of its own making, "thrown away".
        let _ = self.wait();
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove the unfinished video", &self.path, e))
            }
            _ => Ok(()),
        }
    }

    fn wait(&mut self) -> Result<VideoReport> {
        let Some(thread) = self.thread.take() else { return Err(self.closed()) };
        thread.join().unwrap_or_else(|_| {
            let problem = "the encoder's thread panicked".to_owned();
            Err(Error::Encode { frame: self.pushed, problem, path: self.path.clone() })
        })
    }

    fn closed(&self) -> Error {
        let state = if self.thread.is_some() { "was closed" } else { "has failed" };
        Error::VideoClosed { state, path: self.path.clone() }
    }
}

impl Drop for VideoStream {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Nobody is left to hear of a file that cannot be removed.
            let _ = self.stop();
        }
    }
}

/// Checks every setting before a file is made.
fn prepare(camera: &CameraSpec, config: &StreamConfig) -> Result<(Encoder, Mp4Config)> {
    if config.queue_frames == 0 {
        return Err(Error::VideoSetting { setting: "queue_frames", value: 0, rule: "at least 1" });
    }
    let encoder = Encoder::new(camera.size, config.fps, &config.encoder)?;
    Ok((encoder, Mp4Config::new(camera.size, config.fps).with_frames_hint(config.frames_hint)))
}

/// What the thread owns.
struct Worker {
    encoder: Encoder,
    mp4: Mp4Writer,
    picture: I420,
    stats: ImageStats,
    last: Option<Frame>,
    frames: u64,
    repeated: u64,
    path: PathBuf,
    config: StreamConfig,
    camera: CameraSpec,
}

impl Worker {
    fn run(self, queue: &Receiver<Message>, shared: &Shared) -> Result<VideoReport> {
        let path = self.path.clone();
        let result = self.encode_all(queue, shared);
        if result.is_err() {
            // A file that nobody can use must not keep the disk full.
            let _ = std::fs::remove_file(path);
        }
        result
    }

    fn encode_all(mut self, queue: &Receiver<Message>, shared: &Shared) -> Result<VideoReport> {
        let started = thread_cpu();
        for Message { repeats_before, frame } in queue {
            if shared.abort.load(Ordering::SeqCst) {
                return Err(Error::VideoClosed { state: "was thrown away", path: self.path });
            }
            self.repeat(repeats_before)?;
            self.picture.fill_from_rgb(frame.rgb())?;
            self.add(frame)?;
        }
        if shared.abort.load(Ordering::SeqCst) {
            return Err(Error::VideoClosed { state: "was thrown away", path: self.path });
        }
        self.repeat(shared.repeats_at_end.load(Ordering::SeqCst))?;
        let summary = self.mp4.finish(self.encoder.parameters())?;
        Ok(VideoReport {
            frames: summary.frames,
            repeated: self.repeated,
            bytes: summary.bytes,
            stats: self.stats,
            info: video_info(self.camera.size, self.config.fps, &self.config.encoder),
            encode_cpu: thread_cpu().saturating_sub(started),
        })
    }

    /// Encodes the last picture again; its planes are still there.
    fn repeat(&mut self, times: u64) -> Result<()> {
        for _ in 0..times {
            // The first picture always finds room in an empty queue, so there is a last one.
            if let Some(last) = self.last.take() {
                self.repeated += 1;
                self.add(last)?;
            }
        }
        Ok(())
    }

    /// Encodes what lies in `self.picture`, which is `frame` converted.
    fn add(&mut self, frame: Frame) -> Result<()> {
        self.stats.add(frame.size(), frame.rgb());
        let encoded = self.encoder.encode(&self.picture);
        let (sample, kind) = encoded.map_err(|problem| Error::Encode {
            frame: self.frames,
            problem,
            path: self.path.clone(),
        })?;
        self.mp4.write_sample(sample, kind)?;
        self.frames += 1;
        self.last = Some(frame);
        Ok(())
    }
}

/// CPU time that this thread has used.
fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
