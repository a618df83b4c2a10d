//! The videos of one episode, one a camera.

use std::path::{Path, PathBuf};

use so101_hal::{CameraSpec, Frame};

use super::WriterOptions;
use crate::error::{Error, Result};
use crate::video::VideoReport;

#[cfg(feature = "video")]
use crate::video::{StreamConfig, VideoStream};

/// In a build without encoder there are no cameras, so no stream is ever made.
#[cfg(not(feature = "video"))]
type VideoStream = core::convert::Infallible;

/// One encoder a camera, in the order of the cameras.
pub(super) struct Tracks(Vec<(PathBuf, VideoStream)>);

impl Tracks {
    /// # Errors
    /// [`Error::Spec`] for cameras in a build without the feature `video`.
    pub(super) fn check_available(cameras: &[CameraSpec]) -> Result<()> {
        if cfg!(feature = "video") || cameras.is_empty() {
            return Ok(());
        }
        let (what, value) = ("the number of cameras", cameras.len().to_string());
        Err(Error::Spec { what, value, rule: "0 in a build without the feature video of so101-dataset" })
    }

    /// No cameras.
    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Starts the encoders; their files go into `dir`.
    #[cfg(feature = "video")]
    pub(super) fn spawn(
        dir: &Path,
        cameras: &[CameraSpec],
        fps: u32,
        options: &WriterOptions,
    ) -> Result<Self> {
        let config = StreamConfig::default()
            .with_fps(fps)
            .with_encoder(options.encoder)
            .with_queue(options.queue_frames, options.overflow)
            .with_frames_hint(options.episode_frames_hint);
        let mut tracks = Vec::with_capacity(cameras.len());
        for camera in cameras {
            let path = dir.join(format!("{}.mp4", camera.name));
            let stream = VideoStream::spawn(&path, camera, &config)?;
            tracks.push((path, stream));
        }
        Ok(Self(tracks))
    }

    #[cfg(not(feature = "video"))]
    pub(super) fn spawn(_: &Path, cameras: &[CameraSpec], _: u32, _: &WriterOptions) -> Result<Self> {
        Self::check_available(cameras).map(|()| Self(Vec::new()))
    }

    /// Hands one picture to camera number `camera`.
    pub(super) fn push(&mut self, camera: usize, frame: Frame) -> Result<()> {
        match self.0.get_mut(camera) {
            #[cfg(feature = "video")]
            Some((_, stream)) => stream.push(frame),
            #[cfg(not(feature = "video"))]
            Some((_, never)) => match *never {},
            // `OpenEpisode::check` has compared the cameras with the specification that made the tracks.
            None => {
                drop(frame);
                Err(Error::CameraSet { expected: self.0.len().to_string(), got: (camera + 1).to_string() })
            }
        }
    }

    /// Says that no picture comes any more, without waiting.
    pub(super) fn close_input(&mut self) {
        #[cfg(feature = "video")]
        for (_, stream) in &mut self.0 {
            stream.close_input();
        }
    }

    /// Waits for the encoders.
    pub(super) fn join(self) -> Result<Vec<(PathBuf, VideoReport)>> {
        #[cfg(feature = "video")]
        return self.0.into_iter().map(|(path, stream)| Ok((path, stream.join()?))).collect();
        #[cfg(not(feature = "video"))]
        return Ok(Vec::new());
    }

    /// Throws the videos away.
    pub(super) fn abort(self) -> Result<()> {
        #[cfg(feature = "video")]
        for (_, stream) in self.0 {
            stream.abort()?;
        }
        Ok(())
    }
}

impl core::fmt::Debug for Tracks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(path, _)| path)).finish()
    }
}
