//! The plan as it stands in the file, and its checks.

use std::time::Duration;

use serde::Deserialize;
use so101_hal::{CameraSpec, Degrees, Percent, Radians};

use super::{CameraMount, Home, Plan, PlanKind, PlannedCamera, Prop};
use crate::error::{Error, Result};
use crate::scene::{ObjectPose, ObjectSpec};

/// The arm reaches 480 mm; nothing of a plan lies farther out than this.
const MAX_DISTANCE_MM: f64 = 2000.0;
pub(super) const MAX_CAP_S: f64 = 600.0;
const MAX_EPISODES: usize = 10_000;
const MAX_CAMERA_PIXELS: u32 = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    task: String,
    #[serde(default)]
    kind: PlanKind,
    episode_cap_s: f64,
    positions_mm: Vec<[f64; 2]>,
    yaw_deg: Vec<f64>,
    repetitions: u32,
    jitter_mm: f64,
    objects: Vec<ObjectFile>,
    #[serde(default)]
    props: Vec<PropFile>,
    home: HomeFile,
    cameras: Vec<CameraFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectFile {
    name: String,
    size_mm: [f64; 3],
    mass_g: f64,
    rgb: [f64; 3],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PropFile {
    name: String,
    size_mm: [f64; 3],
    rgb: [f64; 3],
    position_mm: [f64; 2],
    yaw_deg: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeFile {
    fingertip_mm: [f64; 3],
    pitch_deg: f64,
    gripper_percent: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CameraFile {
    name: String,
    width: u32,
    height: u32,
    fovy_deg: f64,
    mount: MountFile,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum MountFile {
    Base { position_mm: [f64; 3], look_at_mm: [f64; 3] },
    Gripper { position_mm: [f64; 3], turn_x_rad: f64 },
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Plan> {
    let file: PlanFile = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(String::new(), |s| format!("line {}: ", line_of(text, s.start)));
        Error::Plan { origin: origin.to_owned(), what: format!("{line}{}", e.message().replace('\n', "; ")) }
    })?;
    build(file, origin, fingerprint(text)).map_err(|what| Error::Plan { origin: origin.to_owned(), what })
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&b| b == b'\n').count()
}

/// FNV-1a of 64 bits over the text, line ends aside (Fowler, Noll, Vo).
fn fingerprint(text: &str) -> String {
    let bytes = text.bytes().filter(|b| *b != b'\r');
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

fn build(file: PlanFile, origin: &str, fingerprint: String) -> Result<Plan, String> {
    require("task", !file.task.trim().is_empty(), &file.task, "a sentence")?;
    in_range("episode_cap_s", file.episode_cap_s, 0.1, MAX_CAP_S)?;
    in_range("jitter_mm", file.jitter_mm, 0.0, 100.0)?;
    for p in &file.positions_mm {
        points("positions_mm", p)?;
    }
    for &yaw in &file.yaw_deg {
        in_range("yaw_deg", yaw, -360.0, 360.0)?;
    }
    let count = (file.repetitions as usize).saturating_mul(file.positions_mm.len() * file.yaw_deg.len());
    require(
        "repetitions x positions x yaws",
        (1..=MAX_EPISODES).contains(&count),
        &count,
        "from 1 to 10000 episodes",
    )?;
    require("objects", !file.objects.is_empty(), &0, "at least one")?;
    distinct("objects", file.objects.iter().map(|o| o.name.as_str()))?;
    let things = file.objects.iter().map(|o| o.name.as_str());
    distinct("objects and props", things.chain(file.props.iter().map(|p| p.name.as_str())))?;
    distinct("cameras", file.cameras.iter().map(|c| c.name.as_str()))?;
    Ok(Plan {
        origin: origin.to_owned(),
        fingerprint,
        kind: file.kind,
        task: file.task,
        cap: Duration::from_secs_f64(file.episode_cap_s),
        positions_m: file.positions_mm.iter().map(|p| p.map(metres)).collect(),
        yaws: file.yaw_deg.iter().map(|&d| Radians::from(Degrees(d))).collect(),
        repetitions: file.repetitions,
        jitter_m: metres(file.jitter_mm),
        objects: file.objects.into_iter().map(object).collect::<Result<_, _>>()?,
        selected: 0,
        props: file.props.into_iter().map(prop).collect::<Result<_, _>>()?,
        home: home(&file.home)?,
        cameras: file.cameras.into_iter().map(camera).collect::<Result<_, _>>()?,
    })
}

fn object(o: ObjectFile) -> Result<ObjectSpec, String> {
    require("objects.name", !o.name.is_empty(), &o.name, "a name")?;
    for v in o.size_mm {
        in_range("objects.size_mm", v, 5.0, 200.0)?;
    }
    in_range("objects.mass_g", o.mass_g, 1.0, 1000.0)?;
    for v in o.rgb {
        in_range("objects.rgb", v, 0.0, 1.0)?;
    }
    Ok(ObjectSpec { name: o.name, size_m: o.size_mm.map(metres), mass_kg: o.mass_g / 1000.0, rgb: o.rgb })
}

fn prop(p: PropFile) -> Result<Prop, String> {
    require("props.name", !p.name.is_empty(), &p.name, "a name")?;
    for v in p.size_mm {
        in_range("props.size_mm", v, 1.0, 1000.0)?;
    }
    for v in p.rgb {
        in_range("props.rgb", v, 0.0, 1.0)?;
    }
    points("props.position_mm", &p.position_mm)?;
    in_range("props.yaw_deg", p.yaw_deg, -360.0, 360.0)?;
    let [x_m, y_m] = p.position_mm.map(metres);
    let pose = ObjectPose { x_m, y_m, yaw: Degrees(p.yaw_deg).into() };
    Ok(Prop { name: p.name, size_m: p.size_mm.map(metres), rgb: p.rgb, pose })
}

fn home(h: &HomeFile) -> Result<Home, String> {
    points("home.fingertip_mm", &h.fingertip_mm)?;
    in_range("home.pitch_deg", h.pitch_deg, -90.0, 120.0)?;
    in_range("home.gripper_percent", h.gripper_percent, 0.0, 100.0)?;
    Ok(Home {
        fingertip_m: h.fingertip_mm.map(metres),
        pitch: Degrees(h.pitch_deg).into(),
        gripper: Percent(h.gripper_percent),
    })
}

fn camera(c: CameraFile) -> Result<PlannedCamera, String> {
    let named = !c.name.is_empty() && c.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    require("cameras.name", named, &c.name, "letters, digits and _")?;
    for pixels in [c.width, c.height] {
        let fits = (16..=MAX_CAMERA_PIXELS).contains(&pixels) && pixels % 2 == 0;
        require("cameras.width and height", fits, &pixels, "an even number from 16 to 4096")?;
    }
    in_range("cameras.fovy_deg", c.fovy_deg, 5.0, 150.0)?;
    let mount = match c.mount {
        MountFile::Base { position_mm, look_at_mm } => {
            points("cameras.mount.base.position_mm", &position_mm)?;
            points("cameras.mount.base.look_at_mm", &look_at_mm)?;
            // Straight down there is no direction that could be "up" in the picture.
            let level_mm = (look_at_mm[0] - position_mm[0]).abs() + (look_at_mm[1] - position_mm[1]).abs();
            require("cameras.mount.base.look_at_mm", level_mm > 1.0, &level_mm, "a point beside the camera")?;
            CameraMount::Base { position_m: position_mm.map(metres), look_at_m: look_at_mm.map(metres) }
        }
        MountFile::Gripper { position_mm, turn_x_rad } => {
            points("cameras.mount.gripper.position_mm", &position_mm)?;
            in_range("cameras.mount.gripper.turn_x_rad", turn_x_rad, -3.2, 3.2)?;
            CameraMount::Gripper { position_m: position_mm.map(metres), turn_x: Radians(turn_x_rad) }
        }
    };
    Ok(PlannedCamera {
        spec: CameraSpec::new(c.name, c.width, c.height),
        fovy: Degrees(c.fovy_deg).into(),
        mount,
    })
}

fn metres(mm: f64) -> f64 {
    mm / 1000.0
}

fn points(key: &str, p_mm: &[f64]) -> Result<(), String> {
    p_mm.iter().try_for_each(|&v| in_range(key, v, -MAX_DISTANCE_MM, MAX_DISTANCE_MM))
}

/// NaN is in no range.
fn in_range(key: &str, v: f64, lowest: f64, highest: f64) -> Result<(), String> {
    if (lowest..=highest).contains(&v) {
        return Ok(());
    }
    Err(format!("{key} is {v}, which has to be from {lowest} to {highest}"))
}

fn require(key: &str, holds: bool, value: &impl std::fmt::Display, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{key} is {value}, which has to be {rule}")) }
}

fn distinct<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = Vec::new();
    for name in names {
        require(key, !seen.contains(&name), &format!("{name} twice"), "of distinct names")?;
        seen.push(name);
    }
    Ok(())
}
