//! The recording program: pre-flight, episodes one after another, durable commits reported as they happen.

pub mod args;
pub mod driver;
pub mod episode;
pub mod keys;
pub mod log;
pub mod out;
pub mod rigs;
mod session;
pub mod task;
pub mod who;

use std::process::ExitCode;

use clap::Parser;
use so101_dataset::{DatasetSpec, DatasetWriter, SessionInfo, Sidecar, WriterOptions};
use so101_hal::Lux;

use crate::cli::{self, say};
use crate::dotted;
use crate::error::{Error, Exit, Result};
use crate::expert::LeftOf;
use crate::hardware::HardwareRig;
use crate::interrupt;
use crate::plan::{EpisodeSetup, Jitter, Plan, PlanKind};
use crate::preflight::{self, Preflight};
use crate::rig::RealRig;
use crate::rig::real::{Consent, RealOptions, configs};

use args::{EndChoice, RecordArgs, RigChoice, TeleopChoice, USUAL_LUX};
use keys::{Operator, StopKey};
use out::{Continue, Scratch, Target};
use rigs::Rig;
use session::Session;
use who::Who;

/// A failed episode is recorded again, elsewhere around its mark, this many times; then it is kept as it is. On exact
/// marks it would only fail the same way.
const fn retries(jitter: Jitter) -> u32 {
    match jitter {
        Jitter::On => 2,
        Jitter::Off => 0,
    }
}

/// The whole of a recording program: `args` takes the options out of its command line, which may have LeRobot's flags
/// too, and `own` is the plan of a program that has one.
pub fn program<C: Parser>(args: impl FnOnce(C) -> RecordArgs, own: Option<fn() -> Plan>) -> ExitCode {
    let args = match dotted::parse::<C>(&[dotted::ROBOT, dotted::TELEOP, dotted::DATASET]) {
        Ok(parsed) => args(parsed),
        Err(code) => return code,
    };
    cli::run(args.verbosity, || run(&args, plan_of(&args, own)?))
}

/// The plan that the command line names: a file, push-left, or no plan but an instruction.
///
/// # Errors
/// As [`Plan::load`]; [`Error::Usage`] where neither a plan nor an instruction is given to a program that has no plan of
/// its own.
pub fn plan_of(args: &RecordArgs, own: Option<fn() -> Plan>) -> Result<Plan> {
    match (&args.plan, own, &args.task) {
        (Some(path), _, _) => Plan::load(path),
        (None, Some(own), _) => Ok(own()),
        (None, None, Some(task)) => Plan::free(task),
        (None, None, None) => Err(Error::Usage(
            "what shall be recorded? Give --plan tasks/pick_place.toml, tasks/stack.toml or tasks/push_left.toml, or \
             an instruction with --task"
                .to_owned(),
        )),
    }
}

/// Episodes of a set without a plan, LeRobot's number.
const FREE_EPISODES: u32 = 50;

/// Records `plan` as the command line asks.
///
/// # Errors
/// Everything in [`Error`]; its [`Error::exit`] is the program's exit code.
pub fn run(args: &RecordArgs, plan: Plan) -> Result<Exit> {
    let mut plan = adapted(args, plan)?;
    let all = if plan.kind() == PlanKind::Free { FREE_EPISODES } else { plan.episodes() };
    let episodes = args.episodes.unwrap_or(all);
    plan.check_count(episodes)?;
    warn_about_lux(args.lux);
    let resume = if args.resume { Continue::Yes } else { Continue::No };
    let target = out::choose(args.out.as_deref(), &args.default_out(), resume)?;
    let choice = rig_of(args, &target)?;
    let live = live_rig(args, choice);
    // Before the terminal is changed: a signal without a handler would leave it so.
    interrupt::install().map_err(|e| Error::Refused(format!("no handler for Ctrl-C: {e}")))?;
    let scratch;
    let (mut rig, who, operator) = match live {
        None => {
            // A wrong driver is told before a rig is built.
            let who = Who::of(args, &plan, None)?;
            let rig = rigs::open(choice, args.fps, &plan, args.left_of.into(), args.verbosity)?;
            scratch = out::scratch(target.path())?;
            (rig, who, None)
        }
        Some(hardware) => {
            let mut operator = Operator::at_stdin(StopKey::E)?;
            let who = Who::of(args, &plan, Some(&mut operator))?;
            scratch = out::scratch(target.path())?;
            let rig = open_live(args, hardware, &plan)?;
            plan = plan.with_cameras(&rig.description().cameras);
            (rig, who, Some(operator))
        }
    };
    let plan = &plan;

    let jitter = args.jitter();
    let draw = |index: u32, attempt: u32| plan.episode(attempt_seed(args.seed, attempt), index, jitter);
    if operator.is_none() {
        rig.start(&draw(0, 0)?)?;
    }
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
    let mut session = Session::new(args, plan, episodes, lux, (who, operator));
    let recorded = session.energise(rig.as_mut()).and_then(|()| {
        session.log_stages(rig.as_ref());
        all_episodes(&mut session, rig.as_mut(), &mut writer, episodes, draw)
    });
    // First the arm: what was handed over goes on to the disk by itself.
    let left = rig.finish();
    if let Err(error) = recorded.and(left) {
        // Episodes that were handed over before are still on their way to the disk.
        session.report_rest(&mut writer);
        return Err(error);
    }
    session.finish(writer, &checks, target.path())
}

/// The plan with what the command line changes of it.
fn adapted(args: &RecordArgs, mut plan: Plan) -> Result<Plan> {
    if let Some(name) = &args.object {
        plan.select_object(name)?;
    }
    if let Some(task) = &args.task {
        plan = plan.with_task(task)?;
    }
    if let Some(cap_s) = args.episode_s {
        plan = plan.with_cap_s(cap_s)?;
    }
    Ok(plan)
}

/// Episode after episode, until the set has all of them or somebody wants to end.
fn all_episodes(
    session: &mut Session<'_>,
    rig: &mut dyn Rig,
    writer: &mut DatasetWriter,
    episodes: u32,
    draw: impl Fn(u32, u32) -> Result<EpisodeSetup>,
) -> Result<()> {
    let first = u32::try_from(writer.episodes()).unwrap_or(u32::MAX);
    if first >= episodes {
        say(&format!("nothing to do: the set has {first} episodes, {episodes} were asked for"));
    }
    let retries = if rig.is_real_time() { 0 } else { retries(session.jitter()) };
    for index in first..episodes {
        if interrupt::requested() {
            session.interrupted = true;
        }
        if session.interrupted || session.stopped {
            break;
        }
        session.episode(rig, writer, retries, |attempt| draw(index, attempt))?;
    }
    Ok(())
}

/// The hardware of a rig on which time is real: a port, or emulated servos that somebody drives.
fn live_rig(args: &RecordArgs, choice: RigChoice) -> Option<HardwareRig> {
    let is_driven = args.teleop.is_some_and(TeleopChoice::is_live);
    match choice {
        RigChoice::Real => Some(HardwareRig::Real),
        RigChoice::Emulated if is_driven => Some(HardwareRig::Emulated),
        RigChoice::Auto | RigChoice::Emulated | RigChoice::Sim => None,
    }
}

fn open_live(args: &RecordArgs, hardware: HardwareRig, plan: &Plan) -> Result<Box<dyn Rig>> {
    let real = &args.real;
    let mut options = RealOptions::new(real.follower(hardware));
    let drawn = (hardware == HardwareRig::Emulated).then_some("synthetic");
    options.cameras = configs(real.cameras.as_deref().or(drawn), plan, args.fps)?;
    options.fps = args.fps;
    options.bus_hz = real.bus_hz;
    options.home_speed_deg_s = real.home_speed;
    options.max_relative_target = real.max_relative_target;
    options.accept.clone_from(&real.accept);
    options.consent = if real.yes { Consent::Given } else { Consent::Ask };
    options.hold_at_end = real.at_end == EndChoice::Hold;
    if options.cameras.is_empty() && args.verbosity.chatty() {
        say("no cameras: the set will have joints alone (--cameras)");
    }
    Ok(Box::new(RealRig::open(options, plan, args.left_of.into())?))
}

/// The rig that was asked for; `auto` goes on with the one that the set was recorded by, unless that is a real arm.
fn rig_of(args: &RecordArgs, target: &Target) -> Result<RigChoice> {
    let asked = args.rig_choice()?;
    let Target::Resume(path) = target else { return Ok(asked) };
    let sidecar = Sidecar::open(path)?;
    let recorded = sidecar.as_ref().and_then(|s| s.recording().session.fixed.get("rig")?.as_str());
    Ok(match (asked, recorded) {
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
    let (checks, frames) = match rig.camera_checks() {
        Some(seen) => seen,
        None => preflight::cameras(rig, clock.as_ref(), args.fps)?,
    };
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
    if plan.kind() != PlanKind::Free {
        spec.session = SessionInfo::with_object(&plan.object().name);
    }
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
    if let Some(facts) = rig.facts() {
        put("rig.json", &facts)?;
    }
    put("preflight.json", &checks.to_json())
}

/// Rows of an episode that lasts `cap`.
fn cap_frames(cap: std::time::Duration, fps: u32) -> u32 {
    (cap.as_secs_f64() * f64::from(fps)).ceil() as u32
}
