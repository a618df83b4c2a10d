//! The thread that turns finished episodes into commits, one after the other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use super::SavedEpisode;
use super::episode::{Job, Rows};
use super::state::State;
use super::tracks::Tracks;
use crate::commit::{Base, Place, commit};
use crate::error::{Error, Result};
use crate::video::VideoReport;

/// What the control thread hands over.
pub(super) enum Message {
    /// An episode; boxed, since it is large.
    Episode(Box<Job>),
    /// Session files that no episode takes along.
    Files(BTreeMap<String, Vec<u8>>),
}

/// The owner of the dataset while a writer lives.
pub(super) struct Committer {
    place: Place,
    state: State,
    /// Session files whose commit failed wait for the next.
    files: BTreeMap<String, Vec<u8>>,
}

impl Committer {
    pub(super) const fn new(place: Place, state: State) -> Self {
        Self { place, state, files: BTreeMap::new() }
    }

    /// Answers every message once, in order, until the control thread hangs up.
    pub(super) fn run(mut self, jobs: &Receiver<Message>, results: &Sender<Result<SavedEpisode>>) {
        for message in jobs {
            let result = match message {
                Message::Episode(job) => self.save(*job),
                Message::Files(files) => self.save_files(files),
            };
            // Nobody listens to a writer that is being dropped; the episodes are saved all the same.
            let _ = results.send(result);
        }
    }

    fn save(&mut self, mut job: Job) -> Result<SavedEpisode> {
        self.files.append(&mut job.session_files);
        let tracks = std::mem::replace(&mut job.tracks, Tracks::none());
        let videos = tracks.join()?;
        let started = Instant::now();
        check_counts(&job.rows, &videos)?;
        let (next, change) = self.state.with_episode(&job, &videos, &self.files)?;
        let committed = commit(&self.place, self.state.base, &change)?;
        let episode = self.state.info.total_episodes;
        self.state = next;
        self.files.clear();
        // Its videos have moved into the dataset.
        drop(job.staging);
        if let Some(error) = committed.unconfirmed {
            return Err(error);
        }
        let saved = SavedEpisode {
            episode,
            frames: job.rows.len(),
            success: job.end.success,
            repeated: videos.iter().map(|(_, v)| v.repeated).sum(),
            encode_cpu: videos.iter().map(|(_, v)| v.encode_cpu).sum(),
            commit_time: started.elapsed(),
        };
        if saved.repeated > 0 {
            let repeated = saved.repeated;
            tracing::warn!(episode, repeated, "the encoders could not keep up, pictures were repeated");
        }
        tracing::debug!(episode, frames = saved.frames, commit = ?saved.commit_time, "saved an episode");
        Ok(saved)
    }

    /// Without any episode there is no folder for them, and they are dropped.
    fn save_files(&mut self, mut files: BTreeMap<String, Vec<u8>>) -> Result<SavedEpisode> {
        self.files.append(&mut files);
        let started = Instant::now();
        if self.state.base == Base::Present {
            let committed = commit(&self.place, Base::Present, &State::with_files(&self.files))?;
            self.files.clear();
            if let Some(error) = committed.unconfirmed {
                return Err(error);
            }
        }
        Ok(SavedEpisode {
            episode: self.state.info.total_episodes,
            frames: 0,
            success: None,
            repeated: 0,
            encode_cpu: Duration::ZERO,
            commit_time: started.elapsed(),
        })
    }
}

/// A video that lost or gained a picture is shifted against the rows: such an episode is worth nothing.
fn check_counts(rows: &Rows, videos: &[(PathBuf, VideoReport)]) -> Result<()> {
    let (cameras, rows) = (&rows.cameras, rows.len());
    for (times, (_, video)) in cameras.iter().zip(videos) {
        let frames = video.frames;
        if frames != rows || video.stats.frames() != rows {
            return Err(Error::FrameCountMismatch { camera: times.name.clone(), rows, frames });
        }
    }
    if videos.len() != cameras.len() {
        let (expected, got) = (cameras.len().to_string(), videos.len().to_string());
        return Err(Error::CameraSet { expected, got });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_stats::ImageStats;
    use crate::video::{EncoderConfig, video_info};
    use so101_hal::FrameSize;

    fn video(frames: u64) -> (PathBuf, VideoReport) {
        let size = FrameSize::new(2, 2);
        let mut stats = ImageStats::new();
        for _ in 0..frames {
            stats.add(size, &[0; 12]);
        }
        let info = video_info(size, 30, &EncoderConfig::default());
        (
            PathBuf::new(),
            VideoReport { frames, repeated: 0, bytes: 0, stats, info, encode_cpu: Duration::ZERO },
        )
    }

    #[test]
    fn an_episode_with_more_or_fewer_pictures_than_rows_is_refused() {
        let rows = Rows::for_test(&["main", "gripper"], 3);
        assert!(check_counts(&rows, &[video(3), video(3)]).is_ok());
        for frames in [0, 2, 4] {
            let refused = check_counts(&rows, &[video(3), video(frames)]).unwrap_err();
            let names_it = matches!(&refused, Error::FrameCountMismatch { camera, rows: 3, frames: f }
                if camera == "gripper" && *f == frames);
            assert!(names_it, "{refused}");
        }
        assert!(matches!(check_counts(&rows, &[video(3)]), Err(Error::CameraSet { .. })));
    }
}
