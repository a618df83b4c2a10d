//! What the writer knows of the durable dataset, and what one more episode makes of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::episode::{ACTION, JOINT_COUNT, Job, Rows, STATE};
use crate::commit::{self, Base, Change};
use crate::error::{Error, Result};
use crate::features::{DType, camera_feature};
use crate::image_stats::ImageStats;
use crate::info::{INFO_PATH, Info, Version, to_indented_json};
use crate::mp4::Mp4Index;
use crate::reader::EpisodeRow;
use crate::reader::{Dataset, STATS_PATH, TASKS_PATH};
use crate::sidecar::{
    self, CameraRecord, EPISODES_FILE, EpisodeEntry, EpisodeRecord, RECORDING_FILE, SIDECAR_DIR, Sidecar,
    episode_key,
};
use crate::spec::{DatasetSpec, Recording};
use crate::stats::{FeatureSummary, VectorStats};
use crate::tables::{self, Column, EpisodeMeta, FilePosition, VideoSpan};
use crate::video::VideoReport;

/// File numbers have three digits; with more, the order of names were not the order of numbers.
const MAX_CHUNK_FILES: u64 = 1000;

/// The durable dataset.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub info: Info,
    pub base: Base,
    tasks: Vec<String>,
    /// Of all rows and pictures, in the order of the features.
    stats: Vec<(String, Total)>,
    recording: Recording,
    /// `episodes.jsonl`.
    lines: Vec<u8>,
    next_record: u64,
    next_data: FilePosition,
    next_meta: FilePosition,
    /// By video feature, in the order of the features.
    next_videos: Vec<(String, FilePosition)>,
}

/// Statistics of one feature.
#[derive(Clone, Debug)]
enum Total {
    Vector(VectorStats),
    Image(ImageStats),
}

impl Total {
    fn merge(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::Vector(a), Self::Vector(b)) => a.merge(b),
            (Self::Image(a), Self::Image(b)) => {
                a.merge(b);
                Ok(())
            }
            // The features of one dataset keep their kind.
            (a, b) => {
                a.clone_from(b);
                Ok(())
            }
        }
    }

    fn summary(&self) -> FeatureSummary {
        match self {
            Self::Vector(v) => v.summary(),
            Self::Image(i) => i.summary(),
        }
    }
}

/// The five columns that follow from an episode's place in the dataset.
struct Place {
    timestamp: Vec<f32>,
    frame_index: Vec<i64>,
    episode_index: Vec<i64>,
    index: Vec<i64>,
    task_index: Vec<i64>,
}

impl Place {
    fn new(info: &Info, rows: u64, task: u64) -> Self {
        let whole = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        let n = usize::try_from(rows).unwrap_or(usize::MAX);
        Self {
            // k / fps, not the measured time: LeRobot looks pictures up by it.
            timestamp: (0..rows).map(|k| (k as f64 / f64::from(info.fps)) as f32).collect(),
            frame_index: (0..rows).map(whole).collect(),
            episode_index: vec![whole(info.total_episodes); n],
            index: (info.total_frames..info.total_frames + rows).map(whole).collect(),
            task_index: vec![whole(task); n],
        }
    }

    fn columns<'a>(&'a self, rows: &'a Rows) -> [(&'static str, Column<'a>); 7] {
        [
            (ACTION, Column::F32(&rows.action)),
            (STATE, Column::F32(&rows.state)),
            ("timestamp", Column::F32(&self.timestamp)),
            ("frame_index", Column::I64(&self.frame_index)),
            ("episode_index", Column::I64(&self.episode_index)),
            ("index", Column::I64(&self.index)),
            ("task_index", Column::I64(&self.task_index)),
        ]
    }
}

impl State {
    /// Of a dataset that does not exist yet.
    pub(super) fn new(spec: &DatasetSpec) -> Self {
        let info = Info::new(spec.fps, spec.robot_type.clone(), spec.features());
        let next_videos =
            info.features.videos().map(|(n, _)| (n.to_owned(), FilePosition::default())).collect();
        Self {
            info,
            base: Base::Nothing,
            tasks: Vec::new(),
            stats: Vec::new(),
            recording: Recording::of(spec),
            lines: Vec::new(),
            next_record: 0,
            next_data: FilePosition::default(),
            next_meta: FilePosition::default(),
            next_videos,
        }
    }

    /// Of the dataset at `root`, which must be whole and match the specification.
    pub(super) fn load(root: &Path, spec: &DatasetSpec) -> Result<Self> {
        let set = Dataset::open(root)?;
        if set.info().version() < Version::V30 {
            let found = set.info().codebase_version.clone();
            return Err(Error::ReadOnlyVersion { found, path: root.into() });
        }
        commit::refuse_linked_folders(root)?;
        let foreign = |episode, lacking| Error::SidecarMissing { episode, lacking, path: root.into() };
        let sidecar = set.sidecar()?.ok_or_else(|| foreign(0, "unit of the joints"))?;
        let diff = spec.diff(set.info(), sidecar.recording());
        if !diff.is_empty() {
            return Err(Error::SpecMismatch { diff, path: root.into() });
        }
        if let Some(path) = set.missing_videos().first() {
            return Err(Error::MissingFile { what: "a video".to_owned(), path: path.clone() });
        }
        let mut state = Self::new(spec);
        state.info = set.info().clone();
        state.base = Base::Present;
        state.tasks = set.tasks().to_vec();
        state.recording = sidecar.recording().clone();
        state.go_on_after(root)?;
        for row in set.episodes() {
            state.next_data =
                state.next_data.max(state.after(FilePosition { chunk: row.data_chunk, file: row.data_file }));
            for video in &row.videos {
                check_video(&set, row, video)?;
                let after = state.after(FilePosition { chunk: video.chunk, file: video.file });
                if let Some((_, next)) = state.next_videos.iter_mut().find(|(key, _)| *key == video.key) {
                    *next = after.max(*next);
                }
            }
            let entry = state.take_stats(&set, &sidecar, row.episode)?;
            let entry = entry.ok_or_else(|| foreign(row.episode, "sidecar record"))?;
            state.lines.extend(sidecar::entry_line(&EpisodeEntry { episode: row.episode, ..entry }));
        }
        let used = sidecar.episodes().iter().filter_map(|e| sidecar::record_number(&e.record)).max();
        state.next_record = used.map_or(0, |n| n + 1);
        Ok(state)
    }

    /// Merges the statistics of a recorded episode; returns its sidecar line, if it has one.
    fn take_stats(&mut self, set: &Dataset, sidecar: &Sidecar, episode: u64) -> Result<Option<EpisodeEntry>> {
        let table = set.rows(episode)?;
        let key = sidecar::table_key(&table);
        let Some(entry) = sidecar.find(episode, &key) else { return Ok(None) };
        let record = sidecar.record(entry)?;
        let mut stats = Vec::new();
        for (name, feature) in self.info.features.iter() {
            let total = match feature.dtype {
                DType::Video => {
                    let camera = name.strip_prefix(&camera_feature("")).unwrap_or(name);
                    let Some(camera) = record.cameras.get(camera) else { return Ok(None) };
                    Total::Image(camera.stats.clone())
                }
                DType::Float32 => {
                    Total::Vector(VectorStats::from_f32(name, feature.width(), table.f32(name)?)?)
                }
                _ => Total::Vector(VectorStats::from_i64(name, table.i64(name)?)?),
            };
            stats.push((name.to_owned(), total));
        }
        self.merge_stats(&stats)?;
        Ok(Some(entry.clone()))
    }

    /// New metadata files come after all that are there, by name.
    fn go_on_after(&mut self, root: &Path) -> Result<()> {
        let files = crate::reader::files::glob_two_levels(&root.join("meta/episodes"), "parquet")?;
        let number = |name: Option<&std::ffi::OsStr>| -> Option<u64> {
            name?.to_str()?.trim_end_matches(".parquet").rsplit_once('-')?.1.parse().ok()
        };
        for path in files {
            let chunk = number(path.parent().and_then(Path::file_name));
            if let (Some(chunk), Some(file)) = (chunk, number(path.file_name())) {
                self.next_meta = self.next_meta.max(self.after(FilePosition { chunk, file }));
            }
        }
        Ok(())
    }

    fn after(&self, at: FilePosition) -> FilePosition {
        at.next(self.info.chunks_size.min(MAX_CHUNK_FILES))
    }

    fn merge_stats(&mut self, episode: &[(String, Total)]) -> Result<()> {
        if self.stats.is_empty() {
            self.stats = episode.to_vec();
            return Ok(());
        }
        self.stats.iter_mut().zip(episode).try_for_each(|((_, all), (_, one))| all.merge(one))
    }

    /// The state after one more episode, and the change of the folder that leads there.
    ///
    /// # Errors
    /// [`Error::NonFinite`], [`Error::Table`]; never for what `OpenEpisode::check` has let pass.
    pub(super) fn with_episode(
        &self,
        job: &Job,
        videos: &[(PathBuf, VideoReport)],
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<(Self, Change)> {
        let mut next = self.clone();
        let mut change = Change::default();
        let rows = job.rows.len();
        let task = next.task_index(&job.start.task);
        let (from, episode) = (self.info.total_frames, self.info.total_episodes);
        let place = Place::new(&self.info, rows, task);
        let columns = place.columns(&job.rows);

        let data = tables::data_file(&self.info.features, &columns)?;
        change.write.push((self.info.data_file(self.next_data.chunk, self.next_data.file)?, data));
        let mut spans = Vec::new();
        for ((key, at), (staged, report)) in self.next_videos.iter().zip(videos) {
            change.take.push((staged.clone(), self.info.video_file(key, at.chunk, at.file)?));
            let to_s = rows as f64 / f64::from(self.info.fps);
            spans.push(VideoSpan { key: key.clone(), at: *at, from_s: 0.0, to_s });
            next.describe_video(key, &report.info);
        }
        let stats = self.episode_stats(&columns, videos)?;
        next.merge_stats(&stats)?;
        let meta = EpisodeMeta {
            episode,
            tasks: vec![job.start.task.clone()],
            length: rows,
            data: self.next_data,
            rows: from..from + rows,
            videos: spans,
            stats: stats.iter().map(|(name, total)| (name.clone(), total.summary())).collect(),
            meta: self.next_meta,
        };
        let meta_path =
            format!("meta/episodes/chunk-{:03}/file-{:03}.parquet", meta.meta.chunk, meta.meta.file);
        change.write.push((meta_path.into(), tables::episodes_file(&meta)?));
        if next.tasks.len() != self.tasks.len() || self.base == Base::Nothing {
            change.write.push((TASKS_PATH.into(), tables::tasks_file(&next.tasks)?));
        }
        let entry = next.sidecar_line(job, episode);
        let record = record_of(&job.rows, videos);
        change.write.push((sidecar_path(&entry.record), sidecar::record_bytes(&record)));

        next.base = Base::Present;
        next.next_record += 1;
        next.next_data = self.after(self.next_data);
        next.next_meta = self.after(self.next_meta);
        for (_, at) in &mut next.next_videos {
            *at = self.after(*at);
        }
        next.info.set_totals(episode + 1, from + rows, next.tasks.len() as u64);
        next.write_shared(files, &mut change);
        Ok((next, change))
    }

    /// The change that only writes session files.
    pub(super) fn with_files(files: &BTreeMap<String, Vec<u8>>) -> Change {
        let write = files.iter().map(|(name, bytes)| (sidecar_path(name), bytes.clone())).collect();
        Change { write, take: Vec::new() }
    }

    /// Number of a task text; a new one goes to the end of the list.
    fn task_index(&mut self, task: &str) -> u64 {
        let at = self.tasks.iter().position(|t| t == task).unwrap_or_else(|| {
            self.tasks.push(task.to_owned());
            self.tasks.len() - 1
        });
        at as u64
    }

    /// Completes a video feature when its first episode is there.
    fn describe_video(&mut self, key: &str, video: &Map<String, Value>) {
        if let Some(feature) = self.info.features.get_mut(key)
            && !feature.info.as_ref().is_some_and(|i| i.contains_key("video.codec"))
        {
            feature.info = Some(video.clone());
        }
    }

    fn episode_stats(
        &self,
        columns: &[(&str, Column<'_>)],
        videos: &[(PathBuf, VideoReport)],
    ) -> Result<Vec<(String, Total)>> {
        let mut videos = videos.iter().map(|(_, report)| &report.stats);
        let mut stats = Vec::with_capacity(self.info.features.len());
        for (name, feature) in self.info.features.iter() {
            let column = columns.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
            let total = match column {
                Some(Column::F32(values)) => {
                    Total::Vector(VectorStats::from_f32(name, feature.width(), values)?)
                }
                Some(Column::I64(values)) => Total::Vector(VectorStats::from_i64(name, values)?),
                None => Total::Image(videos.next().cloned().unwrap_or_default()),
            };
            stats.push((name.to_owned(), total));
        }
        Ok(stats)
    }

    /// Adds the line of an episode, and returns it.
    fn sidecar_line(&mut self, job: &Job, episode: u64) -> EpisodeEntry {
        let entry = EpisodeEntry {
            episode,
            key: episode_key([(ACTION, job.rows.action.as_slice()), (STATE, job.rows.state.as_slice())]),
            length: job.rows.len(),
            task: job.start.task.clone(),
            lux: job.start.lux,
            object: job.start.object.clone(),
            seed: job.start.seed,
            success: job.end.success,
            note: job.end.note.clone(),
            timing: job.end.timing,
            record: sidecar::record_path(self.next_record),
        };
        self.lines.extend(sidecar::entry_line(&entry));
        entry
    }

    /// The files that every commit replaces; info.json last.
    fn write_shared(&self, files: &BTreeMap<String, Vec<u8>>, change: &mut Change) {
        let stats: Map<String, Value> =
            self.stats.iter().map(|(n, t)| (n.clone(), t.summary().to_json())).collect();
        change.write.extend(files.iter().map(|(name, bytes)| (sidecar_path(name), bytes.clone())));
        change.write.push((sidecar_path(RECORDING_FILE), sidecar::recording_bytes(&self.recording)));
        change.write.push((sidecar_path(EPISODES_FILE), self.lines.clone()));
        change.write.push((STATS_PATH.into(), to_indented_json(&Value::Object(stats))));
        change.write.push((INFO_PATH.into(), self.info.to_json_bytes()));
    }
}

fn record_of(rows: &Rows, videos: &[(PathBuf, VideoReport)]) -> EpisodeRecord {
    let cameras = rows.cameras.iter().zip(videos).map(|(times, (_, report))| {
        let record = CameraRecord {
            captured_ns: times.captured_ns.clone(),
            stale: times.stale.clone(),
            repeated: report.repeated,
            stats: report.stats.clone(),
        };
        (times.name.clone(), record)
    });
    // Rows without a moment among others with one would shift those behind them.
    let acted_ns =
        if rows.acted_ns.len() == rows.observed_ns.len() { rows.acted_ns.clone() } else { Vec::new() };
    EpisodeRecord { observed_ns: rows.observed_ns.clone(), acted_ns, cameras: cameras.collect() }
}

fn sidecar_path(name: &str) -> PathBuf {
    Path::new(SIDECAR_DIR).join(name)
}

/// The width that `Rows` relies on.
const _: () = assert!(JOINT_COUNT == so101_hal::JOINTS.len());

/// An episode's video has to hold its pictures: nobody wants to find out after another day of recording.
fn check_video(set: &Dataset, row: &EpisodeRow, video: &crate::reader::VideoSpan) -> Result<()> {
    let path = set.video_path(row.episode, &video.key)?;
    let found = Mp4Index::read(&path)?.samples.len() as u64;
    let needed = video.first_frame(set.info().fps).saturating_add(row.length);
    if found < needed {
        let problem = format!("{found} pictures, episode {} needs {needed}", row.episode);
        return Err(Error::Mp4 { at: "moov/trak/mdia/minf/stbl/stsz", problem, path });
    }
    Ok(())
}
