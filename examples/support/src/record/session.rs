//! A recording session: episode after episode, each reported when it is durable, and what is told in the end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use so101_dataset::{DatasetWriter, SavedEpisode};
use so101_hal::{EpisodeEnd, EpisodeSink as _, EpisodeStart, Frame, Lux};

use super::args::RecordArgs;
use super::episode::{self, EpisodeLoop, Outcome, Taken};
use super::keys::{Judgement, Operator, Wish};
use super::log::SessionLog;
use super::rigs::Rig;
use super::who::Who;
use crate::cli::{result_line, say};
use crate::contact_sheet::ContactSheet;
use crate::error::{Error, Exit, Result};
use crate::host;
use crate::loop_stats::LoopStats;
use crate::plan::{EpisodeSetup, Plan, PlanKind};
use crate::preflight::Preflight;

/// The one file of a dataset that depends on the host and the clock.
const HOST_LOG: &str = "host.jsonl";

/// What grows while episodes are recorded.
pub(super) struct Session<'a> {
    args: &'a RecordArgs,
    plan: &'a Plan,
    who: Who,
    /// Somebody at the keyboard, where time is real.
    operator: Option<Operator>,
    log: SessionLog,
    lux: Option<Lux>,
    stats: LoopStats,
    saved: Vec<SavedEpisode>,
    sheet: ContactSheet,
    hosts: Vec<serde_json::Value>,
    bar: indicatif::ProgressBar,
    pub(super) interrupted: bool,
    /// The operator wants no more episodes.
    pub(super) stopped: bool,
    /// Judged episodes that succeeded at the first attempt, and all judged ones.
    first_try: (u32, u32),
}

/// What becomes of a take.
enum Verdict {
    /// It counts, judged or not.
    Keep(Option<bool>),
    /// It is recorded again, from the same setup.
    Again,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        args: &'a RecordArgs,
        plan: &'a Plan,
        episodes: u32,
        lux: Option<Lux>,
        (who, operator): (Who, Option<Operator>),
    ) -> Self {
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
            plan,
            who,
            operator,
            log: SessionLog::none(),
            lux,
            stats: LoopStats::default(),
            saved: Vec::new(),
            sheet: ContactSheet::new(plan.cameras().len().max(2) * episode::SHEET_COLUMNS),
            hosts: Vec::new(),
            bar,
            interrupted: false,
            stopped: false,
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
            let Some((mut take, success)) = self.kept_take(rig, writer, &setup)? else { return Ok(()) };
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
            writer.end(&EpisodeEnd { success, note, timing: take.timing }).map_err(Error::sink)?;
            let mut entry = serde_json::json!({
                "episode": setup.index,
                "loop": take.stats.to_json(),
                "end_wait_ms": waited.elapsed().as_secs_f64() * 1e3,
            });
            if let (Some(counted), Some(entry)) = (&take.control, entry.as_object_mut()) {
                entry.insert("control".to_owned(), serde_json::json!(counted));
            }
            self.hosts.push(entry);
            self.stats.absorb(&mut take.stats);
            let row: Vec<&Frame> = take.samples.iter().flatten().collect();
            self.sheet.add_row(&setup.index.to_string(), &row);
            break;
        }
        let saved = writer.drain_saved()?;
        self.report(saved)
    }

    /// Takes until one counts. `None` when nothing is to be kept: somebody wants to end.
    fn kept_take(
        &mut self,
        rig: &mut dyn Rig,
        writer: &mut DatasetWriter,
        setup: &EpisodeSetup,
    ) -> Result<Option<(Taken, Option<bool>)>> {
        loop {
            let Some(take) = self.take(rig, writer, setup)? else { return Ok(None) };
            let verdict = match take.outcome {
                Outcome::Interrupted => {
                    writer.discard().map_err(Error::sink)?;
                    self.interrupted = true;
                    return Ok(None);
                }
                Outcome::Emergency => {
                    writer.discard().map_err(Error::sink)?;
                    return Err(Error::Hal(so101_hal::Error::EmergencyStopped));
                }
                Outcome::Again => Verdict::Again,
                Outcome::Stop | Outcome::Done => {
                    self.stopped |= take.outcome == Outcome::Stop;
                    self.judge(rig)?
                }
            };
            match verdict {
                Verdict::Keep(success) if writer.open_rows() > Some(0) => return Ok(Some((take, success))),
                // The operator went on before the first row.
                Verdict::Keep(_) if self.stopped => {
                    writer.discard().map_err(Error::sink)?;
                    return Ok(None);
                }
                Verdict::Keep(_) | Verdict::Again => {
                    writer.discard().map_err(Error::sink)?;
                    self.tell(&format!("episode {} again", setup.index));
                }
            }
        }
    }

    /// The predicate of the task where it has one, the operator where somebody is asked.
    fn judge(&mut self, rig: &mut dyn Rig) -> Result<Verdict> {
        if self.plan.kind() == PlanKind::PushLeft
            && let Some(success) = rig.success()?
        {
            return Ok(Verdict::Keep(Some(success)));
        }
        if !self.args.real.judge || self.stopped {
            return Ok(Verdict::Keep(None));
        }
        self.tell("did it succeed? y, n, Enter: not judged, left arrow or r: record it again");
        match self.operator.as_mut().map(Operator::judge) {
            None => Ok(Verdict::Keep(None)),
            Some(Judgement::Keep(success)) => Ok(Verdict::Keep(success)),
            Some(Judgement::Again) => Ok(Verdict::Again),
            Some(Judgement::Stop) => {
                self.stopped = true;
                Ok(Verdict::Keep(None))
            }
            Some(Judgement::Emergency) => {
                rig.emergency_stop()?;
                Err(Error::Hal(so101_hal::Error::EmergencyStopped))
            }
        }
    }

    /// Runs the control loop of one attempt into an open episode of the writer; `None` when the operator or Ctrl-C ends
    /// the session before it.
    fn take(
        &mut self,
        rig: &mut dyn Rig,
        writer: &mut DatasetWriter,
        setup: &EpisodeSetup,
    ) -> Result<Option<Taken>> {
        rig.start(setup)?;
        if !self.ready(rig, setup)? {
            return Ok(None);
        }
        let start = EpisodeStart {
            task: self.plan.task().to_owned(),
            lux: self.lux,
            object: (self.plan.kind() != PlanKind::Free).then(|| setup.object.name.clone()),
            seed: Some(self.args.seed),
        };
        writer.begin(&start).map_err(Error::sink)?;
        let driver = self.who.driver(self.plan, setup, self.args.left_of.into());
        let taken = driver.and_then(|driver| {
            EpisodeLoop::new(driver, setup, self.args.fps, self.operator.as_mut(), &mut self.log)
                .run(rig, writer)
        });
        if taken.is_err() {
            // Whatever went wrong, the episode is not whole; the first error is the one to tell.
            let _ = writer.discard();
        }
        taken.map(Some)
    }

    /// Waits for the operator where there is one, and couples the driver to the arm. `false` = no more episodes.
    fn ready(&mut self, rig: &mut dyn Rig, setup: &EpisodeSetup) -> Result<bool> {
        /// A leader that nobody answers for is looked at again after this time, this often.
        const AGAIN: Duration = Duration::from_secs(1);
        const TRIES_ALONE: u32 = 10;
        let mut tries_alone = 0;
        loop {
            if self.operator.is_some() {
                self.tell(&self.invitation(setup));
            }
            let patience = self.args.real.reset_s.map(|s| Duration::try_from_secs_f64(s).unwrap_or_default());
            match self.operator.as_mut().map(|o| o.begin(patience)) {
                None | Some(Wish::Next | Wish::Again) => {}
                Some(Wish::Stop) => {
                    self.interrupted |= crate::interrupt::requested();
                    self.stopped = true;
                    return Ok(false);
                }
                Some(Wish::Emergency) => {
                    rig.emergency_stop()?;
                    return Err(Error::Hal(so101_hal::Error::EmergencyStopped));
                }
            }
            let Who::Teleop(_) = &self.who else { return Ok(true) };
            let follower = rig.observe()?.joints;
            let mut driver = self.who.driver(self.plan, setup, self.args.left_of.into())?;
            match driver.engage(&follower) {
                Ok(()) => return Ok(true),
                // Somebody can mend that.
                Err(error @ Error::Hal(so101_hal::Error::PoseGap { .. })) => {
                    if self.operator.as_ref().is_none_or(Operator::is_gone) {
                        tries_alone += 1;
                        if tries_alone >= TRIES_ALONE {
                            return Err(error);
                        }
                        std::thread::sleep(AGAIN);
                    }
                    self.tell(&error.one_line());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What the operator has to do before an episode.
    fn invitation(&self, setup: &EpisodeSetup) -> String {
        let place = match self.plan.kind() {
            PlanKind::Free => "set the scene up".to_owned(),
            PlanKind::PushLeft | PlanKind::Teleoperated => {
                let [x, y] = [setup.pose.x_m, setup.pose.y_m].map(|m| m * 1e3);
                let yaw = setup.pose.yaw.0.to_degrees();
                format!("put {} at x {x:.0}, y {y:.0} mm, turned by {yaw:.0} deg", setup.object.name)
            }
        };
        let how = match self.args.real.reset_s {
            Some(seconds) => format!("it begins in {seconds} s, or by Enter or the right arrow"),
            None => "Enter or the right arrow begins".to_owned(),
        };
        format!("episode {}: {place}; {how}, q ends", setup.index)
    }

    /// A line for the operator, whatever the verbosity: without it nobody knows what is asked.
    fn tell(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    /// Asks the operator and switches the torque on, where the arm is real.
    pub(super) fn energise(&mut self, rig: &mut dyn Rig) -> Result<()> {
        match &mut self.operator {
            // Who has asked to stop meanwhile gets no arm that goes home first.
            Some(_) if crate::interrupt::requested() => {
                self.interrupted = true;
                Ok(())
            }
            Some(operator) => {
                rig.energise(operator)?;
                say(
                    "keys: right arrow or n ends an episode, left arrow or r records it again, esc or q stops, e: emergency",
                );
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether objects lie beside their marks.
    pub(super) fn jitter(&self) -> crate::plan::Jitter {
        self.args.jitter()
    }

    /// Begins the log of stage times.
    pub(super) fn log_stages(&mut self, rig: &dyn Rig) {
        self.log = SessionLog::start(self.args.fps, &rig.description().cameras);
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
            self.log.committed(s.commit_time);
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
    fn host_log(&mut self, checks: &Preflight, path: &Path) -> Result<Vec<u8>> {
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
        log.append(&mut self.log.finish());
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
