//! The cameras of this computer: what they offer, what they see, and what to write into a plan.

mod look;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use so101_hal::camera::synthetic::SyntheticOptions;
use so101_hal::camera::{CameraConfig, CameraInfo, CameraSource, PixelFormat, lerobot, list_cameras, v4l2};
use so101_hal::{Clock, FrameSize, SystemClock, VirtualClock};

use self::look::Seen;
use crate::cli::{Verbosity, print_result, say};
use crate::error::{Error, Exit, Result};

/// LeRobot's names of camera makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Make {
    /// Any camera of the system
    Opencv,
    /// Depth cameras of Intel, which this program does not have
    Realsense,
}

/// Where the cameras are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CameraRig {
    /// Drawn cameras; needs nothing
    Emulated,
    /// Cameras that are plugged in
    Real,
}

/// Command line of `find_cameras`.
#[derive(Clone, Debug, Args)]
pub struct FindCamerasArgs {
    /// As for LeRobot's program: which make to look for
    #[arg(value_enum, default_value = "opencv", hide = true)]
    pub make: Make,

    /// Drawn cameras, or those that are plugged in [default: real]
    #[arg(long, value_enum)]
    pub rig: Option<CameraRig>,

    /// The same as --rig emulated
    #[arg(long, conflicts_with = "rig")]
    pub synthetic: bool,

    /// Only this device, a path or a number; may be given several times
    #[arg(long, value_name = "PATH")]
    pub camera: Vec<String>,

    /// Cameras as LeRobot describes them, or a TOML file with tables `cameras`
    #[arg(long, value_name = "TEXT|FILE", conflicts_with_all = ["camera", "rig", "synthetic"])]
    pub cameras: Option<String>,

    /// Only list, take no pictures
    #[arg(long)]
    pub list: bool,

    /// Size of the pictures [default: 640x480 where a camera has it, else its first]
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub size: Option<FrameSize>,

    /// Pictures a second
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub fps: u32,

    /// Pictures of each camera that rate and losses are measured on
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub frames: u32,

    /// Folder for the pictures
    #[arg(long, value_name = "DIR", default_value = "outputs/cameras")]
    pub out: PathBuf,

    /// Keep the pictures as references, NAME.pgm in the folder, that later calls compare the framing with
    #[arg(long)]
    pub save_reference: bool,

    /// Write all calls of the driver down, NAME.v4l2 in the folder: for the report of a camera that does not work
    #[arg(long)]
    pub record_calls: bool,

    /// The result as JSON
    #[arg(long)]
    pub json: bool,

    /// How much to say
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// A camera to look at.
#[derive(Clone, Debug)]
struct Candidate {
    config: CameraConfig,
    info: Option<CameraInfo>,
    formats: Vec<v4l2::FormatInfo>,
    /// Why it cannot even be opened.
    closed: Option<String>,
}

/// Runs the program.
///
/// # Errors
/// [`Error::Usage`], and files that cannot be written. A camera that does not work is a part of the result.
pub fn run(args: &FindCamerasArgs) -> Result<Exit> {
    if args.make == Make::Realsense {
        return Err(Error::Usage(
            "realsense cameras are not supported: use their colour stream as opencv".into(),
        ));
    }
    let emulated = args.synthetic || args.rig == Some(CameraRig::Emulated);
    let candidates = match &args.cameras {
        Some(text) => described(text)?,
        None if emulated => synthetic(args),
        None => plugged_in(args)?,
    };
    if candidates.is_empty() {
        say(NO_CAMERA);
        if args.json {
            print_result("[]")?;
        }
        return Ok(Exit::Failed);
    }
    let clock: Arc<dyn Clock> =
        if emulated { Arc::new(VirtualClock::new()) } else { Arc::new(SystemClock::new()) };
    let mut seen = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        seen.push(if args.list { Seen::listed(candidate) } else { look::look(candidate, args, &clock)? });
    }
    if !args.list {
        report::save(&seen, args)?;
    }
    print_result(&if args.json { report::json(&seen)? } else { report::text(&seen) })?;
    let failed = seen.iter().any(|s| s.error.is_some());
    Ok(if failed { Exit::Failed } else { Exit::Ok })
}

const NO_CAMERA: &str = "no camera found: plug one in and look at `ls -l /dev/v4l/by-id /dev/video*`; \
    `lsusb` shows whether the USB bus sees it at all, `sudo dmesg | tail` what the kernel says of it; \
    cameras of a Raspberry Pi's ribbon cable need libcamera and are none of V4L2's; \
    --rig emulated shows this program without one";

fn size(text: &str) -> Result<FrameSize, String> {
    let parse = |t: &str| t.parse().ok().filter(|&n: &u32| (1..=8192).contains(&n));
    text.split_once('x')
        .and_then(|(w, h)| Some(FrameSize::new(parse(w)?, parse(h)?)))
        .ok_or_else(|| "write WIDTHxHEIGHT, such as 640x480".to_owned())
}

/// LeRobot's text, or a file of ours.
fn described(text: &str) -> Result<Vec<Candidate>> {
    #[derive(serde::Deserialize)]
    struct File {
        cameras: Vec<CameraConfig>,
    }
    let configs = if text.trim_start().starts_with('{') {
        lerobot::parse(text).map_err(|e| Error::Usage(format!("--cameras: {e}")))?
    } else {
        let content = std::fs::read_to_string(text).map_err(|source| Error::Io {
            what: "read cameras",
            path: text.into(),
            source,
        })?;
        let file: File = toml::from_str(&content).map_err(|e| {
            Error::Usage(format!("cameras {text}: {}", e.to_string().trim().replace('\n', "; ")))
        })?;
        for config in &file.cameras {
            config.validate().map_err(|e| Error::Usage(format!("cameras {text}: {e}")))?;
        }
        file.cameras
    };
    Ok(configs.into_iter().map(|config| candidate(config, None)).collect())
}

/// Two drawn cameras, as on the usual rig.
fn synthetic(args: &FindCamerasArgs) -> Vec<Candidate> {
    let camera = |name: &str, seed| {
        let mut options = SyntheticOptions::default();
        (options.seed, options.noise) = (seed, 2);
        let mut config = CameraConfig::new(name, CameraSource::Synthetic(options));
        config.fps = args.fps;
        config.size = args.size.unwrap_or(config.size);
        Candidate { config, info: None, formats: Vec::new(), closed: None }
    };
    vec![camera("main", 1), camera("gripper", 2)]
}

/// The devices of this computer that give pictures, or those that were named.
fn plugged_in(args: &FindCamerasArgs) -> Result<Vec<Candidate>> {
    let mut infos = list_cameras();
    let named = |info: &CameraInfo, name: &String| {
        [Some(&info.path), info.by_id.as_ref(), info.by_path.as_ref()].contains(&Some(name))
            || name.parse() == Ok(info.index)
    };
    if args.camera.is_empty() {
        infos.retain(CameraInfo::gives_pictures);
    } else {
        for name in &args.camera {
            if !infos.iter().any(|i| named(i, name)) && name.parse::<u32>().is_ok() {
                return Err(Error::Usage(format!(
                    "there is no camera {name}: call without --camera for a list"
                )));
            }
        }
    }
    let wanted: Vec<(String, Option<CameraInfo>)> = if args.camera.is_empty() {
        infos.into_iter().map(|i| (i.stable_path().to_owned(), Some(i))).collect()
    } else {
        let info = |name: &String| infos.iter().find(|i| named(i, name)).cloned();
        args.camera
            .iter()
            .map(|name| (info(name).map_or_else(|| name.clone(), |i| i.path), info(name)))
            .collect()
    };
    let candidates = wanted.into_iter().enumerate().map(|(k, (path, info))| {
        let name = info.as_ref().map_or_else(|| format!("camera{k}"), |i| format!("video{}", i.index));
        let mut found = candidate(CameraConfig::new(name, CameraSource::V4l2(path.into())), info);
        choose(&mut found, args);
        found
    });
    // A board's decoders have nodes too: what says itself that it is no camera is left out, unless it was named.
    let is_camera = |c: &Candidate| !args.camera.is_empty() || c.closed.is_some() || !c.formats.is_empty();
    Ok(candidates.filter(is_camera).collect())
}

/// Asks a device for its formats.
fn candidate(config: CameraConfig, info: Option<CameraInfo>) -> Candidate {
    let (mut formats, mut closed) = (Vec::new(), None);
    if let CameraSource::V4l2(path) = &config.source {
        match v4l2::formats_of(path) {
            Ok(found) => formats = found,
            Err(e) => closed = Some(Error::from(e).one_line()),
        }
    }
    Candidate { config, info, formats, closed }
}

/// Takes 640 x 480 MJPG at the wanted rate where the camera has it, else what comes nearest.
fn choose(candidate: &mut Candidate, args: &FindCamerasArgs) {
    let config = &mut candidate.config;
    config.fps = args.fps;
    let of = |fourcc: &str| candidate.formats.iter().find(|f| f.fourcc == fourcc);
    let Some(format) = of("MJPG").or_else(|| of("JPEG")).or_else(|| of("YUYV")) else { return };
    config.format = if format.fourcc == "YUYV" { PixelFormat::Yuyv } else { PixelFormat::Mjpg };
    config.size = args.size.unwrap_or(config.size);
    let has = |size| format.sizes.iter().find(|s| s.size == size);
    let chosen = has(config.size).or_else(|| if args.size.is_none() { format.sizes.first() } else { None });
    if let Some(chosen) = chosen {
        config.size = chosen.size;
        let highest = chosen.fps.iter().copied().fold(0.0, f64::max);
        if highest >= 1.0 {
            config.fps = args.fps.min(highest as u32);
        }
    }
}
