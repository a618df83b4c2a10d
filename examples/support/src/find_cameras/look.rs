//! Takes pictures of one camera and measures them.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use so101_hal::camera::framing::{FramingShift, Reference};
use so101_hal::camera::quality::{self, Clipped, Pace};
use so101_hal::camera::{Buffers, CameraConfig, CameraInfo, CameraSource, DeviceInfo, v4l2};
use so101_hal::{Clock, Frame, Timestamp};

use super::{Candidate, FindCamerasArgs};
use crate::error::{Error, Result};

/// Pictures that a camera needs to get used to the light, as LeRobot gives it a second.
const WARM_UP: u32 = 10;

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) mean_luma: f64,
    pub(super) clipped: Clipped,
    pub(super) focus: f64,
}

/// A camera and what was seen of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Seen {
    pub(super) config: CameraConfig,
    pub(super) info: Option<CameraInfo>,
    pub(super) formats: Vec<v4l2::FormatInfo>,
    pub(super) device: Option<DeviceInfo>,
    pub(super) pace: Option<Pace>,
    pub(super) damaged: u64,
    pub(super) figures: Option<Figures>,
    pub(super) framing: Option<FramingShift>,
    /// Why there is no picture.
    pub(super) error: Option<String>,
    #[serde(skip)]
    pub(super) frame: Option<Frame>,
}

impl Seen {
    /// A camera of which no picture is taken.
    pub(super) fn listed(candidate: Candidate) -> Self {
        let Candidate { config, info, formats, closed } = candidate;
        Self {
            config,
            info,
            formats,
            device: None,
            pace: None,
            damaged: 0,
            figures: None,
            framing: None,
            error: closed,
            frame: None,
        }
    }
}

/// Takes pictures and measures them. What the camera does wrong is told in the result.
pub(super) fn look(candidate: Candidate, args: &FindCamerasArgs, clock: &Arc<dyn Clock>) -> Result<Seen> {
    let mut seen = Seen::listed(candidate);
    if seen.error.is_some() {
        return Ok(seen);
    }
    if args.record_calls {
        record_calls(&seen.config, args)?;
    }
    match pictures(&mut seen, args, clock) {
        Ok(()) => {}
        Err(e) => seen.error = Some(Error::from(e).one_line()),
    }
    if let Some(frame) = &seen.frame {
        seen.figures = Some(Figures {
            mean_luma: quality::mean_luma(frame),
            clipped: quality::clipped_share(frame),
            focus: quality::focus_measure(frame),
        });
        let reference = args.out.join(format!("{}.pgm", seen.config.name));
        seen.framing = match framing(&reference, frame) {
            // One that cannot be read is stored anew.
            Err(_) if args.save_reference => None,
            shift => shift?,
        };
    }
    Ok(seen)
}

fn pictures(seen: &mut Seen, args: &FindCamerasArgs, clock: &Arc<dyn Clock>) -> so101_hal::Result<()> {
    let mut source = seen.config.source(clock)?;
    let spec = source.spec().clone();
    let mut buffers = Buffers::new();
    let mut stamps: Vec<(u64, Timestamp)> = Vec::with_capacity(args.frames as usize);
    for k in 0..WARM_UP + args.frames {
        let picture = source.grab(&mut buffers)?;
        if k >= WARM_UP {
            stamps.push((picture.sequence, picture.captured));
        }
        match picture.decode(&spec, &mut buffers) {
            Ok(frame) => {
                if let Some(buffer) = seen.frame.replace(frame).and_then(Frame::into_buffer) {
                    buffers.give(buffer);
                }
            }
            Err(so101_hal::Error::PictureDamaged { .. }) => seen.damaged += 1,
            Err(other) => return Err(other),
        }
        seen.device = source.device().cloned();
        seen.pace = Some(Pace::of(&stamps));
    }
    if seen.frame.is_none() {
        let what = "every picture came damaged: use another cable, USB port or size".to_owned();
        return Err(so101_hal::Error::PictureDamaged { camera: spec.name, sequence: seen.damaged, what });
    }
    Ok(())
}

/// Against the reference of an earlier call, where there is one.
fn framing(reference: &Path, frame: &Frame) -> Result<Option<FramingShift>> {
    if !reference.is_file() {
        return Ok(None);
    }
    let reference = Reference::load(reference)?;
    // Another size than then cannot be compared.
    Ok(reference.shift_of(frame).ok())
}

fn record_calls(config: &CameraConfig, args: &FindCamerasArgs) -> Result<()> {
    let CameraSource::V4l2(device) = &config.source else { return Ok(()) };
    let text = v4l2::record_calls(config, device, args.frames)?;
    let path = args.out.join(format!("{}.v4l2", config.name));
    let io = |source| Error::Io { what: "write", path: path.clone(), source };
    std::fs::create_dir_all(&args.out).map_err(io)?;
    std::fs::write(&path, text).map_err(io)
}
