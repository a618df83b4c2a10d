//! The recording program: pre-flight, episodes one after another, durable commits reported as they happen.

pub mod args;
pub mod episode;
pub mod out;
pub mod rigs;
mod session;
pub mod task;

use so101_dataset::{DatasetSpec, DatasetWriter, SessionInfo, Sidecar, WriterOptions};
use so101_hal::Lux;

use crate::cli::say;
use crate::error::{Error, Exit, Result};
use crate::expert::LeftOf;
use crate::interrupt;
use crate::plan::{Jitter, Plan};
use crate::preflight::{self, Preflight};

use args::{RecordArgs, RigChoice, USUAL_LUX};
use out::{Continue, Scratch, Target};
use rigs::Rig;
use session::Session;

/// A failed episode is recorded again, elsewhere around its mark, this many times; then it is kept as it is. On exact
/// marks it would only fail the same way.
const fn retries(jitter: Jitter) -> u32 {
    match jitter {
        Jitter::On => 2,
        Jitter::Off => 0,
    }
}

/// Records `plan` as the command line asks.
///
/// # Errors
/// Everything in [`Error`]; its [`Error::exit`] is the program's exit code.
pub fn run(args: &RecordArgs, mut plan: Plan) -> Result<Exit> {
    let episodes = args.episodes.unwrap_or_else(|| plan.episodes());
    plan.check_count(episodes)?;
    if let Some(name) = &args.object {
        plan.select_object(name)?;
    }
    let plan = &plan;
    warn_about_lux(args.lux);
    let target = out::choose(args.out.as_deref(), if args.resume { Continue::Yes } else { Continue::No })?;
    let rig = rig_of(args, &target)?;
    let mut rig = rigs::open(rig, args.fps, plan, args.left_of.into(), args.verbosity)?;
    let scratch = out::scratch(target.path())?;
    interrupt::install().map_err(|e| Error::Refused(format!("no handler for Ctrl-C: {e}")))?;

    let jitter = args.jitter();
    let draw = |index: u32, attempt: u32| plan.episode(attempt_seed(args.seed, attempt), index, jitter);
    rig.start(&draw(0, 0)?)?;
    let lux = session_lux(args.lux, rig.as_ref())?;
    let checks = pre_flight(rig.as_mut(), args, plan, episodes, &scratch).map_err(|e| match e {
        // A disk with no room for the trial of the encoder has none for an episode.
        Error::Dataset(so101_dataset::Error::DiskFull { .. }) => Error::Refused(e.one_line()),
        other => other,
    })?;
    if args.verbosity.chatty() {
        say(checks.table().trim_end());
    }
    checks.require()?;
    drop(scratch);

    let mut writer = open_writer(rig.as_ref(), args, plan, &target)?;
    store_session(&mut writer, rig.as_ref(), plan, args.left_of.into(), &checks)?;
    let mut session = Session::new(args, plan, episodes, lux);
    let first = u32::try_from(writer.episodes()).unwrap_or(u32::MAX);
    if first >= episodes {
        say(&format!("nothing to do: the set has {first} episodes, {episodes} were asked for"));
    }
    for index in first..episodes {
        if interrupt::requested() {
            session.interrupted = true;
        }
        if session.interrupted {
            break;
        }
        let recorded =
            session.episode(rig.as_mut(), &mut writer, retries(jitter), |attempt| draw(index, attempt));
        if let Err(error) = recorded {
            // Episodes that were handed over before are still on their way to the disk.
            session.report_rest(&mut writer);
            return Err(error);
        }
    }
    session.finish(writer, &checks, target.path())
}

/// The rig that was asked for; `auto` goes on with the one that the set was recorded by, unless that is a real arm.
fn rig_of(args: &RecordArgs, target: &Target) -> Result<RigChoice> {
    let Target::Resume(path) = target else { return Ok(args.rig) };
    let sidecar = Sidecar::open(path)?;
    let recorded = sidecar.as_ref().and_then(|s| s.recording().session.fixed.get("rig")?.as_str());
    Ok(match (args.rig, recorded) {
        (RigChoice::Auto, Some("emulated")) => RigChoice::Emulated,
        (RigChoice::Auto, Some("sim")) => RigChoice::Sim,
        (asked, _) => asked,
    })
}

/// Each attempt draws the object's place anew: the same place would fail the same way.
pub(crate) fn attempt_seed(seed: u64, attempt: u32) -> u64 {
    seed ^ u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn warn_about_lux(lux: Option<Lux>) {
    if let Some(Lux(v)) = lux
        && !USUAL_LUX.contains(&v)
    {
        tracing::warn!(
            "--lux {v} is outside of the measured range of {} to {} lux",
            USUAL_LUX.start(),
            USUAL_LUX.end()
        );
    }
}

/// What is stored as illuminance: what the scene declares, or what somebody measured.
fn session_lux(asked: Option<Lux>, rig: &dyn Rig) -> Result<Option<Lux>> {
    match (rig.scene_lux(), asked) {
        (Some(Lux(scene)), Some(Lux(asked))) if scene != asked => Err(Error::Usage(format!(
            "--lux {asked}: this rig's scene is lit with {scene} lux and cannot be lit otherwise"
        ))),
        (Some(scene), _) => Ok(Some(scene)),
        (None, asked) => Ok(asked),
    }
}

fn pre_flight(
    rig: &mut dyn Rig,
    args: &RecordArgs,
    plan: &Plan,
    episodes: u32,
    scratch: &Scratch,
) -> Result<Preflight> {
    let mut all = Preflight::default();
    all.extend(rig.servo_checks()?);
    let clock = rig.clock();
    let (checks, frames) = preflight::cameras(rig, clock.as_ref(), args.fps)?;
    all.extend(checks);
    let mut step_bytes = 0;
    for (spec, frame) in rig.description().cameras.clone().iter().zip(&frames) {
        all.extend([preflight::encoder(scratch.path(), spec, args.fps)?]);
        step_bytes += preflight::bytes_per_frame(scratch.path(), spec, frame, args.fps)?;
    }
    all.extend([preflight::encoder_build()]);
    // Twice, since a moving picture takes more than a still one.
    let episode_bytes = step_bytes * 2 * u64::from(cap_frames(plan.cap(), args.fps));
    all.extend([preflight::free_disk(scratch.path(), episode_bytes, episode_bytes * u64::from(episodes))?]);
    Ok(all)
}

fn open_writer(rig: &dyn Rig, args: &RecordArgs, plan: &Plan, target: &Target) -> Result<DatasetWriter> {
    let description = rig.description();
    let mut spec = DatasetSpec::so101(args.fps, description.cameras.clone());
    spec.robot_type.clone_from(&description.robot_type);
    spec.session = SessionInfo::with_object(&plan.object().name);
    spec.session.fixed.insert("rig".to_owned(), description.rig.clone().into());
    let left = task::left_axis(args.left_of.into());
    for (key, value) in [("left", left), ("jitter", args.jitter().name()), ("plan", plan.fingerprint())] {
        spec.session.fixed.insert(key.to_owned(), value.into());
    }
    let mut options = WriterOptions::default();
    options.episode_frames_hint = cap_frames(plan.cap(), args.fps);
    // A run killed inside a commit may have left the set under another name for a moment: the writer brings it back, so
    // that "resume" has to be asked for even where no folder is seen yet.
    Ok(match (target, args.resume) {
        (Target::New(path), false) => DatasetWriter::create(path, spec, options)?,
        (Target::New(path) | Target::Resume(path), _) => DatasetWriter::resume(path, spec, options)?,
    })
}

fn store_session(
    writer: &mut DatasetWriter,
    rig: &dyn Rig,
    plan: &Plan,
    left_of: LeftOf,
    checks: &Preflight,
) -> Result<()> {
    let mut put = |name: &str, value: &serde_json::Value| -> Result<()> {
        let mut text = serde_json::to_string_pretty(value).map_err(|e| Error::Sink(e.into()))?;
        text.push('\n');
        writer.set_session_file(name, text.into_bytes())?;
        Ok(())
    };
    put("task.json", &task::describe(plan, left_of, rig))?;
    put("preflight.json", &checks.to_json())
}

/// Rows of an episode that lasts `cap`.
fn cap_frames(cap: std::time::Duration, fps: u32) -> u32 {
    (cap.as_secs_f64() * f64::from(fps)).ceil() as u32
}
