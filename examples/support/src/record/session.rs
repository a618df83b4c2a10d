//! A recording session: episode after episode, each reported when it is durable, and what is told in the end.

use std::path::{Path, PathBuf};
use std::time::Instant;

use so101_dataset::{DatasetWriter, SavedEpisode};
use so101_hal::{EpisodeEnd, EpisodeSink as _, EpisodeStart, Frame, Lux};

use super::args::RecordArgs;
use super::episode::{self, EpisodeLoop, Outcome};
use super::rigs::Rig;
use crate::cli::{result_line, say};
use crate::contact_sheet::ContactSheet;
use crate::error::{Error, Exit, Result};
use crate::host;
use crate::loop_stats::LoopStats;
use crate::plan::{EpisodeSetup, Home, Plan};
use crate::preflight::Preflight;

/// The one file of a dataset that depends on the host and the clock.
const HOST_LOG: &str = "host.jsonl";

/// What grows while episodes are recorded.
pub(super) struct Session<'a> {
    args: &'a RecordArgs,
    task: String,
    home: Home,
    lux: Option<Lux>,
    stats: LoopStats,
    saved: Vec<SavedEpisode>,
    sheet: ContactSheet,
    hosts: Vec<serde_json::Value>,
    bar: indicatif::ProgressBar,
    pub(super) interrupted: bool,
    /// Judged episodes that succeeded at the first attempt, and all judged ones.
    first_try: (u32, u32),
}

/// One run of the control loop.
struct Take {
    outcome: Outcome,
    stats: LoopStats,
    /// A few pictures of each camera.
    samples: Vec<Vec<Frame>>,
}

impl<'a> Session<'a> {
    pub(super) fn new(args: &'a RecordArgs, plan: &Plan, episodes: u32, lux: Option<Lux>) -> Self {
        let bar = if args.verbosity.bars() {
            let style =
                indicatif::ProgressStyle::with_template("{bar:30} {pos}/{len} episodes  {msg}  {eta} left");
            indicatif::ProgressBar::new(u64::from(episodes))
                .with_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()))
        } else {
            indicatif::ProgressBar::hidden()
        };
        Self {
            args,
            task: plan.task().to_owned(),
            home: plan.home(),
            lux,
            stats: LoopStats::default(),
            saved: Vec::new(),
            sheet: ContactSheet::new(2 * episode::SHEET_COLUMNS),
            hosts: Vec::new(),
            bar,
            interrupted: false,
            first_try: (0, 0),
        }
    }

    /// Records one episode; a failed one again, as `draw` says for the next attempt.
    pub(super) fn episode(
        &mut self,
        rig: &mut dyn Rig,
        writer: &mut DatasetWriter,
        retries: u32,
        draw: impl Fn(u32) -> Result<EpisodeSetup>,
    ) -> Result<()> {
        for attempt in 0..=retries {
            let setup = draw(attempt)?;
            self.bar.set_position(u64::from(setup.index));
            self.bar.set_message(label(&setup));
            let mut take = self.take(rig, writer, &setup)?;
            if take.outcome == Outcome::Interrupted {
                writer.discard().map_err(Error::sink)?;
                self.interrupted = true;
                return Ok(());
            }
            let success = rig.success()?;
            if attempt == 0 {
                self.first_try.0 += u32::from(success == Some(true));
                self.first_try.1 += u32::from(success.is_some());
            }
            if success == Some(false) && attempt < retries {
                tracing::info!("episode {} failed, attempt {} follows", setup.index, attempt + 2);
                writer.discard().map_err(Error::sink)?;
                continue;
            }
            // One that was handed over and could not be saved would leave its place in the plan to this one.
            let saved = writer.wait_saved()?;
            self.report(saved)?;
            let note = (attempt > 0).then(|| format!("attempt {}", attempt + 1));
            let waited = Instant::now();
            writer.end(&EpisodeEnd { success, note }).map_err(Error::sink)?;
            self.hosts.push(serde_json::json!({
                "episode": setup.index,
                "loop": take.stats.to_json(),
                "end_wait_ms": waited.elapsed().as_secs_f64() * 1e3,
            }));
            self.stats.absorb(&mut take.stats);
            let row: Vec<&Frame> = take.samples.iter().flatten().collect();
            self.sheet.add_row(&setup.index.to_string(), &row);
            break;
        }
        let saved = writer.drain_saved()?;
        self.report(saved)
    }

    /// Runs the control loop of one attempt into an open episode of the writer.
    fn take(&self, rig: &mut dyn Rig, writer: &mut DatasetWriter, setup: &EpisodeSetup) -> Result<Take> {
        rig.start(setup)?;
        let start = EpisodeStart {
            task: self.task.clone(),
            lux: self.lux,
            object: Some(setup.object.name.clone()),
            seed: Some(self.args.seed),
        };
        writer.begin(&start).map_err(Error::sink)?;
        let mut run = EpisodeLoop::new(&self.home, setup, self.args.left_of.into(), self.args.fps)?;
        match run.run(rig, writer) {
            Ok(outcome) => {
                let (stats, samples) = run.into_parts();
                Ok(Take { outcome, stats, samples })
            }
            Err(e) => {
                // Whatever went wrong, the episode is not whole; the first error is the one to tell.
                let _ = writer.discard();
                Err(e)
            }
        }
    }

    fn report(&mut self, saved: Vec<SavedEpisode>) -> Result<()> {
        for s in saved {
            let success = s.success.map_or("none", |ok| if ok { "true" } else { "false" });
            let line = format!("saved episode={} frames={} success={success}", s.episode, s.frames);
            self.bar.suspend(|| result_line(&line)).map_err(stdout_closed)?;
            self.hosts.push(serde_json::json!({
                "episode": s.episode,
                "commit_ms": s.commit_time.as_secs_f64() * 1e3,
                "encode_cpu_ms": s.encode_cpu.as_secs_f64() * 1e3,
                "repeated_pictures": s.repeated,
            }));
            self.saved.push(s);
        }
        Ok(())
    }

    /// After a failure: the lines of what becomes durable all the same. The first error is the one that is told.
    pub(super) fn report_rest(&mut self, writer: &mut DatasetWriter) {
        loop {
            match writer.wait_saved() {
                Ok(saved) if saved.is_empty() => return,
                Ok(saved) => {
                    if self.report(saved).is_err() {
                        return;
                    }
                }
                // Each call takes one failure off; the first was told already.
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }

    pub(super) fn finish(
        mut self,
        mut writer: DatasetWriter,
        checks: &Preflight,
        path: &Path,
    ) -> Result<Exit> {
        loop {
            let saved = match writer.wait_saved() {
                Ok(saved) => saved,
                Err(error) => {
                    self.report_rest(&mut writer);
                    return Err(error.into());
                }
            };
            if saved.is_empty() {
                break;
            }
            self.report(saved)?;
        }
        if !self.saved.is_empty() {
            let log = self.host_log(checks, path)?;
            writer.set_session_file(HOST_LOG, log)?;
        }
        let report = writer.finish()?;
        self.bar.finish_and_clear();
        let sheet = self.save_sheet(path);
        if self.args.verbosity.chatty() {
            self.summary(path, sheet.as_deref());
        }
        if self.interrupted {
            return Err(Error::Interrupted { saved: report.episodes });
        }
        if let (good, judged @ 1..) = self.first_try {
            result_line(&format!("first_try={good}/{judged}")).map_err(stdout_closed)?;
        }
        result_line(&path.display().to_string()).map_err(stdout_closed)?;
        Ok(Exit::Ok)
    }

    /// The log of earlier sessions and a line for this one.
    fn host_log(&self, checks: &Preflight, path: &Path) -> Result<Vec<u8>> {
        let file = path.join(so101_dataset::SIDECAR_DIR).join(HOST_LOG);
        let mut log = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(Error::Io { what: "read", path: file, source }),
        };
        let line = serde_json::json!({
            "host": host::facts(),
            "preflight": checks.host_json(),
            "episodes": self.hosts,
            "loop": self.stats.to_json(),
        });
        log.extend_from_slice(line.to_string().as_bytes());
        log.push(b'\n');
        Ok(log)
    }

    /// Writes the contact sheet beside the dataset. The recording is safe by now, so a sheet that cannot be written is a
    /// warning.
    fn save_sheet(&self, path: &Path) -> Option<PathBuf> {
        if self.sheet.is_empty() {
            return None;
        }
        let mut name = path.file_name()?.to_owned();
        name.push(".png");
        let sheet = path.with_file_name(name);
        match self.sheet.save(&sheet) {
            Ok(()) => Some(sheet),
            Err(error) => {
                tracing::warn!("no contact sheet: {}", error.one_line());
                None
            }
        }
    }

    fn summary(&self, path: &Path, sheet: Option<&Path>) {
        let frames: u64 = self.saved.iter().map(|s| s.frames).sum();
        say(&format!("{} episodes, {frames} frames", self.saved.len()));
        if let (Some(total), Some(record)) = (self.stats.total.figures(), self.stats.record.figures()) {
            say(&format!(
                "loop p50 {:.1} ms, p99 {:.1} ms, {} overruns; recording's share of it p50 {:.2} ms, p99 {:.2} ms",
                total.p50_ms, total.p99_ms, self.stats.overruns, record.p50_ms, record.p99_ms
            ));
        }
        if let Some(sheet) = sheet {
            say(&format!("contact sheet: {}", sheet.display()));
        }
        if self.interrupted {
            say(&format!("to go on: the same command with --resume --out {}", path.display()));
        } else {
            say(&format!("next: {}", next_command(path)));
        }
    }
}

fn label(setup: &EpisodeSetup) -> String {
    let [x, y] = setup.cell.mark_m.map(|m| m * 1e3);
    format!("{} at ({x:.0}, {y:.0}) mm", setup.object.name)
}

/// How to check the set, in the build that this program came from.
fn next_command(path: &Path) -> String {
    let target = std::env::var("CARGO_TARGET_DIR")
        .map_or_else(|_| String::new(), |dir| format!("CARGO_TARGET_DIR={dir} "));
    let profile = if cfg!(debug_assertions) { "" } else { "--release " };
    format!("{target}cargo run {profile}--example check_dataset -- {}", path.display())
}

fn stdout_closed(source: std::io::Error) -> Error {
    Error::Io { what: "write to", path: "stdout".into(), source }
}
