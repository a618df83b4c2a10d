//! The cameras that the example `preflight` looks at.

use std::path::Path;
use std::sync::Arc;

use so101_hal::camera::framing::Reference;
use so101_hal::camera::{self, CameraConfig, CameraSource, SyntheticCamera};
use so101_hal::preflight::cameras::CameraFacts;
use so101_hal::preflight::{Check, Item, Limits, Verdict, cameras};
use so101_hal::{Camera, CameraSpec, Clock, SystemClock};

use super::Preflight;
use super::program::PreflightArgs;
use super::rig::{self, CameraUnderTest};
use crate::error::Result;
use crate::plan::Plan;

/// Looks at the cameras of the command line, those of an emulated arm on its clock; the sizes of their pictures.
pub(super) fn look(
    args: &PreflightArgs,
    emulated: Option<&Arc<dyn Clock>>,
    all: &mut Preflight,
) -> Result<Vec<CameraSpec>> {
    let asked = args.cameras.as_deref().or(emulated.map(|_| "synthetic"));
    let configs = crate::rig::real::cameras::configs(asked, &Plan::push_left(), args.fps)?;
    for config in &configs {
        all.extend(one(args, config, emulated)?);
    }
    Ok(configs.iter().map(CameraConfig::spec).collect())
}

fn one(args: &PreflightArgs, config: &CameraConfig, emulated: Option<&Arc<dyn Clock>>) -> Result<Vec<Check>> {
    let real: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let (clock, opened): (_, so101_hal::Result<Box<dyn Camera>>) = match (emulated, &config.source) {
        // No thread: on a virtual clock it would run ahead.
        (Some(clock), CameraSource::Synthetic(options)) => {
            (clock, Ok(Box::new(SyntheticCamera::new(config.spec(), options.clone(), Arc::clone(clock)))))
        }
        _ => (&real, camera::open(config, &real)),
    };
    let mut camera = match opened {
        Ok(camera) => camera,
        Err(error) => return Ok(blind(config, &crate::Error::from(error).one_line())),
    };
    let file = args.references.as_ref().map(|folder| folder.join(format!("{}.pgm", config.name)));
    let reference = match &file {
        Some(file) if file.exists() => Some(Reference::load(file)?),
        _ => None,
    };
    let new = reference.is_none();
    let under_test = CameraUnderTest { camera: camera.as_mut(), fps: config.fps, reference };
    let (checks, frame) = rig::camera(under_test, clock.as_ref())?;
    if let (true, true, Some(file), Some(frame)) = (args.store_references, new, &file, &frame) {
        store(file, &config.name, frame)?;
    }
    Ok(checks)
}

fn store(file: &Path, name: &str, frame: &so101_hal::Frame) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|source| crate::Error::Io {
            what: "make the folder",
            path: folder.to_owned(),
            source,
        })?;
    }
    Reference::of(name, frame).save(file)?;
    Ok(())
}

/// A camera that does not open gives no picture, and says why.
fn blind(config: &CameraConfig, why: &str) -> Vec<Check> {
    let mut facts = CameraFacts::new(&config.name);
    facts.size = Some((None, config.size));
    if let CameraSource::V4l2(path) = &config.source {
        facts.path = Some(path.display().to_string());
    }
    let told = |check: Check| match check.item {
        Item::CameraSize => check.advice(why),
        _ => check,
    };
    let checks = cameras(&facts, &Limits::default()).into_iter().map(told);
    checks.filter(|c| c.verdict != Verdict::Skip).collect()
}
