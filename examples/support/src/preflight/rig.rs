//! All groups of checks of a rig in one call.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use so101_hal::bus::ServoBus;
use so101_hal::camera::framing::Reference;
use so101_hal::host::HostProbe;
use so101_hal::preflight::arm::{CalibrationFile, calibration_newest};
use so101_hal::preflight::cameras::CameraFacts;
use so101_hal::preflight::host::{ClockFacts, HostState};
use so101_hal::preflight::port::PortFacts;
use so101_hal::preflight::{
    self, Check, Item, Limits, PoseOptions, ServoOptions, SoakOptions, Survey, leader_pose,
};
use so101_hal::{Calibration, Camera, Clock, Degrees, Frame, JointVector, Lux};

use super::Preflight;
use crate::error::Result;

/// An arm to look at.
pub struct ArmUnderTest<'a> {
    /// Its servos.
    pub bus: &'a mut dyn ServoBus,
    /// The clock that reads are timed on.
    pub clock: &'a dyn Clock,
    /// Its calibration.
    pub calibration: &'a Calibration,
    /// The file that the calibration came from, and other files of the same arm.
    pub files: Option<(CalibrationFile, Vec<CalibrationFile>)>,
    /// How the servos are looked at.
    pub servos: ServoOptions,
    /// What the pose is compared with.
    pub pose: PoseOptions,
    /// How the bus is soaked.
    pub soak: SoakOptions,
    /// Where the leader stands, where there is one.
    pub leader: Option<JointVector<Degrees>>,
}

impl std::fmt::Debug for ArmUnderTest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArmUnderTest").field("servos", &self.servos).finish_non_exhaustive()
    }
}

impl<'a> ArmUnderTest<'a> {
    /// An arm that is looked at as usual: nothing is energised.
    pub fn new(bus: &'a mut dyn ServoBus, clock: &'a dyn Clock, calibration: &'a Calibration) -> Self {
        Self {
            bus,
            clock,
            calibration,
            files: None,
            servos: ServoOptions::default(),
            pose: PoseOptions::default(),
            soak: SoakOptions::default(),
            leader: None,
        }
    }
}

/// A camera to look at.
pub struct CameraUnderTest<'a> {
    /// The camera.
    pub camera: &'a mut dyn Camera,
    /// The rate that it should have.
    pub fps: u32,
    /// The picture that it gave when it was in place.
    pub reference: Option<Reference>,
}

impl std::fmt::Debug for CameraUnderTest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CameraUnderTest").field("camera", self.camera.spec()).finish_non_exhaustive()
    }
}

/// A whole real rig.
#[derive(Debug)]
pub struct RigUnderTest<'a> {
    /// The port, looked at before it was opened.
    pub port: Option<PortFacts>,
    /// The arm.
    pub arm: ArmUnderTest<'a>,
    /// The cameras.
    pub cameras: Vec<CameraUnderTest<'a>>,
    /// Reading of the light meter.
    pub lux: Option<Lux>,
}

/// What [`check`] saw beside its checks.
#[derive(Debug)]
pub struct Seen {
    /// The checks.
    pub preflight: Preflight,
    /// The servos' registers.
    pub survey: Survey,
    /// The last picture of each camera that gave one, in their order.
    pub frames: Vec<Option<Frame>>,
}

/// Looks at port, servos, pose, bus, cameras, light and computer of a real rig. What needs the dataset and the encoder
/// is in [`super::recorder`].
///
/// # Errors
/// When the bus is gone. Everything else is a failed check.
pub fn check(rig: RigUnderTest<'_>) -> Result<Seen> {
    let mut preflight = Preflight::default();
    if let Some(port) = &rig.port {
        preflight.extend(preflight::port(port));
    }
    let (checks, survey) = arm(rig.arm)?;
    preflight.extend(checks);
    let mut frames = Vec::new();
    for camera in rig.cameras {
        let (checks, frame) = self::camera(camera, &so101_hal::SystemClock::new())?;
        preflight.extend(checks);
        frames.push(frame);
    }
    preflight.extend([super::light(rig.lux)]);
    preflight.extend(computer(&so101_hal::SystemClock::new()));
    Ok(Seen { preflight, survey, frames })
}

/// Looks at servos, pose and bus of an arm.
///
/// # Errors
/// When the bus is gone.
pub fn arm(arm: ArmUnderTest<'_>) -> Result<(Vec<Check>, Survey)> {
    let ArmUnderTest { bus, clock, calibration, files, servos, pose, soak, leader } = arm;
    let limits = pose.limits.clone();
    let found = preflight::servos(bus, calibration, &servos, clock)?;
    let mut checks = found.checks;
    checks.push(match &files {
        Some((used, others)) => calibration_newest(used, others),
        None => Check::skipped(Item::CalibrationNewest, "not from a file"),
    });
    checks.extend(preflight::pose(&found.survey, calibration, &pose)?);
    let follower = preflight::arm::joints(&found.survey, calibration)?;
    checks.push(match (leader, follower) {
        (Some(leader), Some(follower)) => leader_pose(&leader, &follower, &limits),
        (Some(_), None) => Check::skipped(Item::LeaderPose, "not all servos answer"),
        (None, _) => Check::skipped(Item::LeaderPose, "no leader"),
    });
    checks.extend(preflight::bus_soak(bus, &found.survey.ids(), clock, &soak)?);
    Ok((checks, found.survey))
}

/// Looks at one camera on a clock that its pictures are paced by; its last picture comes back.
///
/// # Errors
/// A reference of another size than the camera's.
pub fn camera(under_test: CameraUnderTest<'_>, clock: &dyn Clock) -> Result<(Vec<Check>, Option<Frame>)> {
    let CameraUnderTest { camera, fps, reference } = under_test;
    let mut facts = CameraFacts::new(&camera.spec().name);
    if let Some(device) = camera.device() {
        facts.note_device(device);
    }
    let frame = facts.measure(camera, clock, fps);
    if let Some(frame) = &frame {
        facts.see(frame, reference.as_ref())?;
    }
    Ok((preflight::cameras(&facts, &Limits::default()), frame))
}

/// Looks at the computer.
#[must_use]
pub fn computer(clock: &dyn Clock) -> Vec<Check> {
    let mut state = HostState::of(&HostProbe::system().sample());
    state.clock_synced = clock_synced(Path::new("/"));
    state.clock = Some(ClockFacts::watch(clock, || SystemTime::now().duration_since(UNIX_EPOCH).ok()));
    preflight::host(&state, &Limits::default())
}

/// Whether a time server sets the clock, as far as systemd says.
fn clock_synced(root: &Path) -> Option<bool> {
    if root.join("run/systemd/timesync/synchronized").exists() {
        return Some(true);
    }
    let told = std::process::Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stderr(std::process::Stdio::null())
        .output()
        .ok()?;
    match String::from_utf8_lossy(&told.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// A calibration file with its age, and the files of the same name in the folders beside its own.
///
/// LeRobot has renamed the folder of a robot several times, so that an old and a new file of one arm may exist.
#[must_use]
pub fn calibration_files(file: &Path) -> Option<(CalibrationFile, Vec<CalibrationFile>)> {
    let of = |path: &Path| {
        let modified = std::fs::metadata(path).ok()?.modified().ok()?;
        let age: Duration = modified.duration_since(UNIX_EPOCH).ok()?;
        Some(CalibrationFile { path: path.display().to_string(), modified_unix_s: age.as_secs() })
    };
    let used = of(file)?;
    let name = file.file_name()?;
    let folders = file.parent()?.parent().and_then(|p| std::fs::read_dir(p).ok());
    let others = folders
        .into_iter()
        .flatten()
        .flatten()
        .map(|folder| folder.path().join(name))
        .filter(|other| other != file)
        .filter_map(|other| of(&other))
        .collect();
    Some((used, others))
}
