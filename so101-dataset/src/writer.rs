//! Records episodes into a dataset that is whole at every moment.
//!
//! ```text
//! begin ─ add ─ add ─ ... ─ end        control thread: buffers rows, hands pictures to the encoders
//!           │                 │
//!      encoder threads        │        one a camera, into .NAME.rec-N/
//!           └──────── join ── committer thread: tables, statistics, one commit an episode
//! ```
//!
//! Each episode is its own data file, metadata row and mp4 a camera. An episode is either complete in the dataset or
//! not in it at all; `crate::commit` says how.

mod committer;
mod episode;
mod state;
mod tracks;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use so101_hal::{Action, BoxError, EpisodeEnd, EpisodeSink, EpisodeStart, Observation, Timestamp};

use crate::commit::{self, Lock, Place};
use crate::error::{Error, Result};
use crate::info::INFO_PATH;
use crate::sidecar::{EPISODES_FILE, RECORDING_FILE};
use crate::spec::DatasetSpec;
use crate::video::{EncoderConfig, Overflow};
use committer::{Committer, Message};
use episode::OpenEpisode;
use state::State;
use tracks::Tracks;

/// Episodes that may wait for the committer before [`EpisodeSink::end`] waits too.
const WAITING_EPISODES: usize = 2;

/// Settings of a [`DatasetWriter`] that leave no trace in what later sessions must match.
///
/// ```
/// use so101_dataset::WriterOptions;
/// let mut options = WriterOptions::default();
/// options.queue_frames = 8;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Settings of the video encoder.
    pub encoder: EncoderConfig,
    /// Pictures a camera that may wait for the encoder, from 1.
    pub queue_frames: usize,
    /// What happens when they wait already.
    pub overflow: Overflow,
    /// Rows that an episode is expected to have; longer ones cost a rewrite of the video's index.
    pub episode_frames_hint: u32,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            encoder: EncoderConfig::default(),
            queue_frames: 30,
            overflow: Overflow::default(),
            episode_frames_hint: 30 * 60,
        }
    }
}

/// An episode that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedEpisode {
    /// Its number in the dataset.
    pub episode: u64,
    /// Rows.
    pub frames: u64,
    /// As [`EpisodeEnd`] had it.
    pub success: Option<bool>,
    /// Pictures of all cameras that the encoders repeated, since they could not keep up.
    pub repeated: u64,
    /// CPU time of the encoders, all cameras.
    pub encode_cpu: Duration,
    /// From the last encoded picture until the episode was durable.
    pub commit_time: Duration,
}

/// What a closed writer leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FinishReport {
    /// The dataset; it exists only when it has episodes.
    pub path: PathBuf,
    /// Episodes in it.
    pub episodes: u64,
    /// Rows in it.
    pub frames: u64,
    /// Episodes that were saved since the last [`DatasetWriter::drain_saved`].
    pub saved: Vec<SavedEpisode>,
}

/// Writes a LeRobot v3.0 dataset, episode by episode.
///
/// The dataset's folder does not exist before its first episode is durable. Calls are cheap enough for a control loop:
/// rows are buffered, pictures go to an encoder thread each, and [`end`](EpisodeSink::end) only hands over. A writer
/// that is dropped throws the open episode away and waits for those handed over.
///
/// ```
/// use so101_dataset::{DatasetSpec, DatasetWriter, WriterOptions};
/// use so101_hal::{Action, Degrees, EpisodeEnd, EpisodeSink, EpisodeStart, JointVector, Observation, Timestamp};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("set");
/// let mut writer = DatasetWriter::create(&path, DatasetSpec::so101(30, vec![]), WriterOptions::default())?;
/// writer.begin(&EpisodeStart { task: "wave".into(), ..Default::default() })?;
/// for i in 0..3 {
///     let joints = JointVector::<Degrees>::from_row([f64::from(i); 6]);
///     let observation = Observation { at: Timestamp::ZERO, joints, frames: vec![] };
///     writer.add(&observation, &Action { joints })?;
/// }
/// writer.end(&EpisodeEnd::default())?;
/// assert_eq!(writer.finish()?.frames, 3);
/// assert_eq!(so101_dataset::Dataset::open(&path)?.tasks(), ["wave"]);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug)]
pub struct DatasetWriter {
    place: Place,
    spec: DatasetSpec,
    options: WriterOptions,
    open: Option<OpenEpisode>,
    /// Files for `meta/so101/` that go with the next episode.
    session_files: BTreeMap<String, Vec<u8>>,
    input: Option<SyncSender<Message>>,
    results: Receiver<Result<SavedEpisode>>,
    /// Episodes handed over whose result was not seen yet.
    outstanding: u64,
    /// Results that were seen and not yet returned.
    seen: VecDeque<Result<SavedEpisode>>,
    episodes: u64,
    frames: u64,
    thread: Option<JoinHandle<()>>,
    /// Given back last.
    _lock: Lock,
}

impl DatasetWriter {
    /// Starts a new dataset at `path`, which must not exist; the folders above it are made.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] for a dataset, [`Error::NotADataset`] for anything else at `path`; [`Error::Locked`],
    /// [`Error::Spec`], [`Error::Io`], [`Error::DiskFull`].
    pub fn create(path: impl AsRef<Path>, spec: DatasetSpec, options: WriterOptions) -> Result<Self> {
        let (place, lock) = Self::claim(path.as_ref(), &spec)?;
        let root = place.root();
        if root.join(INFO_PATH).exists() {
            return Err(Error::AlreadyExists { path: path.as_ref().into() });
        }
        if root.exists() {
            let missing = "though the folder exists";
            return Err(Error::NotADataset { missing, path: path.as_ref().into() });
        }
        let state = State::new(&spec);
        Self::start(place, lock, spec, options, state)
    }

    /// Goes on with the dataset at `path`, which must match `spec`, or starts a new one where nothing is. New episodes
    /// go into new files; statistics are rebuilt from the rows and the sidecar.
    ///
    /// # Errors
    /// [`Error::SpecMismatch`] with the differences; [`Error::SidecarMissing`] for a dataset of another program;
    /// [`Error::LinkedFolder`]; [`Error::NotADataset`]; what [`Dataset::open`](crate::Dataset::open) finds wrong with it;
    /// [`Error::MissingFile`] for an absent video; [`Error::Locked`], [`Error::Spec`], [`Error::Io`], [`Error::DiskFull`].
    pub fn resume(path: impl AsRef<Path>, spec: DatasetSpec, options: WriterOptions) -> Result<Self> {
        let (place, lock) = Self::claim(path.as_ref(), &spec)?;
        let root = place.root();
        let state = if root.exists() { State::load(&root, &spec)? } else { State::new(&spec) };
        Self::start(place, lock, spec, options, state)
    }

    /// Checks the specification, takes the lock, and clears up after a killed run.
    fn claim(path: &Path, spec: &DatasetSpec) -> Result<(Place, Lock)> {
        spec.validate()?;
        Tracks::check_available(&spec.cameras)?;
        let place = Place::new(path)?;
        commit::make_dirs(place.parent())?;
        let lock = Lock::take(&place)?;
        commit::recover(&place, &lock)?;
        Ok((place, lock))
    }

    fn start(
        place: Place,
        lock: Lock,
        spec: DatasetSpec,
        options: WriterOptions,
        state: State,
    ) -> Result<Self> {
        let (episodes, frames) = (state.info.total_episodes, state.info.total_frames);
        let (input, jobs) = sync_channel(WAITING_EPISODES);
        let (report, results) = channel();
        let committer = Committer::new(place.clone(), state);
        let thread = std::thread::Builder::new()
            .name("dataset-commit".to_owned())
            .spawn(move || committer.run(&jobs, &report))
            .map_err(|e| Error::io("start the writer thread for", place.root(), e))?;
        Ok(Self {
            place,
            spec,
            options,
            open: None,
            session_files: BTreeMap::new(),
            input: Some(input),
            results,
            outstanding: 0,
            seen: VecDeque::new(),
            episodes,
            frames,
            thread: Some(thread),
            _lock: lock,
        })
    }

    /// The dataset's folder.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.place.root()
    }

    /// Episodes in the dataset, those handed over included.
    #[must_use]
    pub const fn episodes(&self) -> u64 {
        self.episodes + self.outstanding
    }

    /// Rows of the open episode.
    #[must_use]
    pub fn open_rows(&self) -> Option<u64> {
        self.open.as_ref().map(OpenEpisode::len)
    }

    /// Sets a file under `meta/so101/`, such as `task.json`; it is written with the next episode, or by
    /// [`finish`](Self::finish) when none comes. Only `host.jsonl` may depend on the time or the host.
    ///
    /// # Errors
    /// [`Error::Spec`] for a name with folders in it, or of a file that the writer writes itself.
    pub fn set_session_file(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Result<()> {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
        if !plain || [RECORDING_FILE, EPISODES_FILE, "episodes"].contains(&name) {
            let (what, value) = ("the name of a session file", format!("{name:?}"));
            return Err(Error::Spec {
                what,
                value,
                rule: "a plain name that the writer does not use itself",
            });
        }
        self.session_files.insert(name.to_owned(), bytes.into());
        Ok(())
    }

    /// Episodes that have become durable since the last call, in order; does not wait.
    ///
    /// # Errors
    /// Why an episode could not be saved; it is lost, and nothing that was durable. Later ones are returned by
    /// the next calls. [`Error::DiskFull`], [`Error::FrameCountMismatch`], [`Error::Encode`], [`Error::Io`],
    /// [`Error::WriterGone`].
    pub fn drain_saved(&mut self) -> Result<Vec<SavedEpisode>> {
        let finished = |w: &Self| w.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.note_results(finished);
        self.take_seen()
    }

    /// As [`drain_saved`](Self::drain_saved), but waits until every episode handed over is durable or lost. Call it
    /// until it returns nothing.
    ///
    /// # Errors
    /// As [`drain_saved`](Self::drain_saved).
    pub fn wait_saved(&mut self) -> Result<Vec<SavedEpisode>> {
        while self.outstanding > 0 {
            match self.results.recv() {
                Ok(result) => self.note(result),
                Err(_) => self.give_up_waiting(),
            }
        }
        self.take_seen()
    }

    /// Waits for the episodes handed over, writes session files that are due, and closes. An open episode is thrown
    /// away.
    ///
    /// # Errors
    /// The first of the reasons that [`wait_saved`](Self::wait_saved) would give; to hear of each, call that before.
    pub fn finish(mut self) -> Result<FinishReport> {
        self.open = None;
        let files = std::mem::take(&mut self.session_files);
        let flushed = match &self.input {
            Some(input) if !files.is_empty() => {
                self.outstanding += 1;
                input.send(Message::Files(files)).is_ok()
            }
            _ => true,
        };
        let mut saved = Vec::new();
        loop {
            let more = self.wait_saved()?;
            if more.is_empty() {
                break;
            }
            saved.extend(more);
        }
        self.close();
        if !flushed {
            return Err(Error::WriterGone { path: self.place.root() });
        }
        // Session files are reported as an episode without rows.
        saved.retain(|s: &SavedEpisode| s.frames > 0);
        Ok(FinishReport { path: self.place.root(), episodes: self.episodes, frames: self.frames, saved })
    }

    /// Notes the results that are there; `finished` says whether the committer has ended.
    fn note_results(&mut self, finished: impl FnOnce(&Self) -> bool) {
        self.note_waiting();
        if self.outstanding > 0 && finished(self) {
            // It may have answered between the two looks.
            self.note_waiting();
            if self.outstanding > 0 {
                self.give_up_waiting();
            }
        }
    }

    fn note_waiting(&mut self) {
        while let Ok(result) = self.results.try_recv() {
            self.note(result);
        }
    }

    fn note(&mut self, result: Result<SavedEpisode>) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if let Ok(saved) = &result {
            self.episodes += u64::from(saved.frames > 0);
            self.frames += saved.frames;
        }
        self.seen.push_back(result);
    }

    /// The committer is gone without an answer.
    fn give_up_waiting(&mut self) {
        self.outstanding = 0;
        self.seen.push_back(Err(Error::WriterGone { path: self.place.root() }));
    }

    /// What was saved before the first failure, or else that failure.
    fn take_seen(&mut self) -> Result<Vec<SavedEpisode>> {
        let good = self.seen.iter().take_while(|r| r.is_ok()).count();
        if good == 0
            && let Some(first) = self.seen.pop_front()
        {
            return first.map(|saved| vec![saved]);
        }
        self.seen.drain(..good).collect()
    }

    /// Lets the committer finish and waits for it.
    fn close(&mut self) {
        self.open = None;
        self.input = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there has been seen as `WriterGone`.
            let _ = thread.join();
        }
    }

    fn opened(&mut self, problem: &'static str) -> Result<&mut OpenEpisode> {
        self.open.as_mut().ok_or(Error::EpisodeState { problem })
    }

    fn begin_episode(&mut self, start: &EpisodeStart) -> Result<()> {
        if self.open.is_some() {
            return Err(Error::EpisodeState { problem: "begin while an episode is open" });
        }
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(Error::WriterGone { path: self.place.root() });
        }
        self.open = Some(OpenEpisode::begin(&self.place, &self.spec, &self.options, start)?);
        Ok(())
    }

    fn add_row(
        &mut self,
        observation: &Observation,
        action: &Action,
        acted: Option<Timestamp>,
    ) -> Result<()> {
        let episode = self.opened("add without an open episode")?;
        let row = episode.check(observation, action)?;
        if let Err(e) = episode.push(row, observation, acted) {
            // One camera may have taken the picture and another not: this episode cannot be right any more.
            self.open = None;
            return Err(e);
        }
        Ok(())
    }

    fn end_episode(&mut self, end: &EpisodeEnd) -> Result<()> {
        self.opened("end without an open episode")?;
        let Some(episode) = self.open.take() else { return Ok(()) };
        if episode.len() == 0 {
            return Err(Error::EmptyEpisode);
        }
        let job = episode.close(end.clone(), std::mem::take(&mut self.session_files));
        let sent =
            self.input.as_ref().is_some_and(|input| input.send(Message::Episode(Box::new(job))).is_ok());
        if !sent {
            return Err(Error::WriterGone { path: self.place.root() });
        }
        self.outstanding += 1;
        Ok(())
    }

    fn discard_episode(&mut self) -> Result<()> {
        self.opened("discard without an open episode")?;
        self.open.take().map_or(Ok(()), OpenEpisode::discard)
    }
}

impl EpisodeSink for DatasetWriter {
    fn begin(&mut self, start: &EpisodeStart) -> Result<(), BoxError> {
        Ok(self.begin_episode(start)?)
    }

    /// A row that does not fit is refused and the episode goes on without it; when the disk is full or an encoder
    /// fails, the open episode is gone.
    fn add(&mut self, observation: &Observation, action: &Action) -> Result<(), BoxError> {
        Ok(self.add_row(observation, action, None)?)
    }

    /// The moments of the actions are kept in the sidecar when every row of an episode has one.
    fn add_acted(
        &mut self,
        observation: &Observation,
        action: &Action,
        acted: Timestamp,
    ) -> Result<(), BoxError> {
        Ok(self.add_row(observation, action, Some(acted))?)
    }

    fn end(&mut self, end: &EpisodeEnd) -> Result<(), BoxError> {
        Ok(self.end_episode(end)?)
    }

    fn discard(&mut self) -> Result<(), BoxError> {
        Ok(self.discard_episode()?)
    }
}

impl Drop for DatasetWriter {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_result_of_a_committer_that_has_just_ended_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let (path, spec) = (dir.path().join("set"), DatasetSpec::so101(30, Vec::new()));
        let mut writer = DatasetWriter::create(path, spec, WriterOptions::default()).unwrap();
        let (report, results) = channel();
        writer.results = results;
        writer.outstanding = 1;
        let saved = SavedEpisode {
            episode: 0,
            frames: 3,
            success: None,
            repeated: 0,
            encode_cpu: Duration::ZERO,
            commit_time: Duration::ZERO,
        };
        // It answers and ends after the first look for results.
        let last = saved.clone();
        writer.note_results(move |_| report.send(Ok(last)).is_ok());
        assert_eq!(writer.take_seen().unwrap(), [saved]);
        assert_eq!(writer.episodes(), 1);
        // And one that ends without an answer is told.
        writer.outstanding = 1;
        writer.note_results(|_| true);
        assert!(matches!(writer.take_seen(), Err(Error::WriterGone { .. })));
    }
}
