//! What is agreed with a camera before its stream starts.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::super::config::{CameraConfig, PixelFormat};
use super::super::yuyv::Range;
use super::super::{DeviceInfo, Stamps};
use super::abi::{
    CAP_DEVICE_CAPS, CAP_STREAMING, CAP_TIMEPERFRAME, CAP_VIDEO_CAPTURE, CAPTURE, Capability, FIELD_NONE,
    FULL_RANGE, Format, GetParm, JPEG, MJPG, QueryCap, SetFmt, SetParm, StreamParameters, YUYV,
};
use super::calls::{Calls, Errno};
use super::errors::Place;
use super::stream::Layout;
use super::{formats, fourcc_text, text_of};
use crate::error::{Error, Result};
use crate::frame::FrameSize;

/// Agrees on format, size and rate.
pub(super) fn agree<C: Calls>(
    calls: &mut C,
    config: &CameraConfig,
    place: &Place,
) -> Result<(DeviceInfo, Layout)> {
    config.validate()?;
    let capability = capability(calls, place)?;
    let code = pixel_format(calls, config, place)?;
    let format = set_format(calls, config, code, place)?;
    let fps = set_rate(calls, config.fps).map_err(|e| place.error("set the rate of", e))?;
    let info = DeviceInfo {
        path: Some(place.path.clone()),
        driver: text_of(&capability.driver),
        card: text_of(&capability.card),
        bus: text_of(&capability.bus_info),
        format: fourcc_text(format.pixelformat),
        format_wanted: config.format.fourcc().unwrap_or_default().to_string(),
        fps,
        fps_wanted: config.fps,
        stamps: Stamps::Arrival,
        controls: Vec::new(),
    };
    let layout = match format.pixelformat {
        YUYV => Layout::Yuyv {
            stride: (format.bytesperline as usize).max(2 * format.width as usize),
            range: if format.quantization == FULL_RANGE { Range::Full } else { Range::Limited },
        },
        _ => Layout::Jpeg,
    };
    Ok((info, layout))
}

/// Whether it is a camera at all: a webcam has a second node for metadata, a board has decoders.
fn capability<C: Calls>(calls: &mut C, place: &Place) -> Result<Capability> {
    let node = |what: &str| Error::CameraNode { what: what.to_string(), path: place.path.clone() };
    let mut capability = Capability::ZERO;
    match calls.ioctl::<QueryCap>(&mut capability) {
        Ok(()) => {}
        Err(Errno::NOTTY | Errno::INVAL) => return Err(node("it is no video device")),
        Err(errno) => return Err(place.error("ask about", errno)),
    }
    let abilities = if capability.capabilities & CAP_DEVICE_CAPS == 0 {
        capability.capabilities
    } else {
        capability.device_caps
    };
    if abilities & CAP_VIDEO_CAPTURE == 0 {
        return Err(node("it does not capture video"));
    }
    if abilities & CAP_STREAMING == 0 {
        return Err(node("it has no streaming interface"));
    }
    Ok(capability)
}

/// The pixel format to ask for.
fn pixel_format<C: Calls>(calls: &mut C, config: &CameraConfig, place: &Place) -> Result<u32> {
    let offered = formats::codes(calls).map_err(|e| place.error("list the formats of", e))?;
    let accepted: &[u32] = match config.format {
        PixelFormat::Mjpg => &[MJPG, JPEG],
        PixelFormat::Yuyv => &[YUYV],
        PixelFormat::Auto => &[MJPG, JPEG, YUYV],
    };
    let found = accepted.iter().find(|code| offered.contains(code)).copied();
    found.ok_or_else(|| {
        let names: Vec<String> = offered.iter().map(|&c| fourcc_text(c)).collect();
        let wanted = config.format.fourcc().unwrap_or("MJPG or YUYV").to_string();
        wrong_format(place, wanted, names.join(", "))
    })
}

fn set_format<C: Calls>(calls: &mut C, config: &CameraConfig, code: u32, place: &Place) -> Result<Format> {
    let FrameSize { width, height } = config.size;
    let mut format =
        Format { kind: CAPTURE, width, height, pixelformat: code, field: FIELD_NONE, ..Format::ZERO };
    calls.ioctl::<SetFmt>(&mut format).map_err(|e| place.error("set the format of", e))?;
    // The driver changes what it does not have, and calls that a success.
    let got = FrameSize::new(format.width, format.height);
    if got != config.size || format.pixelformat != code {
        let mut offered: Vec<String> = formats::sizes(calls, code)
            .map_err(|e| place.error("list the sizes of", e))?
            .iter()
            .map(|s| s.size.to_string())
            .collect();
        if offered.is_empty() {
            offered.push(format!("{} {got}", fourcc_text(format.pixelformat)));
        }
        return Err(wrong_format(
            place,
            format!("{} {}", fourcc_text(code), config.size),
            offered.join(", "),
        ));
    }
    Ok(format)
}

/// Asks for a rate; which one the camera takes is measured and judged by the pre-flight.
fn set_rate<C: Calls>(calls: &mut C, fps: u32) -> Result<Option<f64>, Errno> {
    let mut parameters = StreamParameters { kind: CAPTURE, ..StreamParameters::ZERO };
    let known = calls.ioctl::<GetParm>(&mut parameters);
    if known == Ok(()) && parameters.capability & CAP_TIMEPERFRAME != 0 {
        parameters.numerator = 1;
        parameters.denominator = fps;
        match calls.ioctl::<SetParm>(&mut parameters) {
            Ok(()) => {}
            Err(errno @ (Errno::NODEV | Errno::BUSY)) => return Err(errno),
            Err(_) => return Ok(None),
        }
    } else if known == Err(Errno::NODEV) {
        return Err(Errno::NODEV);
    }
    let told = known.is_ok() && parameters.numerator > 0 && parameters.denominator > 0;
    Ok(told.then(|| f64::from(parameters.denominator) / f64::from(parameters.numerator)))
}

fn wrong_format(place: &Place, wanted: String, offered: String) -> Error {
    Error::CameraFormat { camera: place.camera.clone(), wanted, offered, path: place.path.clone() }
}
