//! A short recording and its playback, before a session begins.

use std::path::Path;
use std::time::Duration;

use so101_hal::{CameraSpec, Frame, FrameSize, Timestamp};

use super::color::I420;
use super::{StreamConfig, VideoReader, VideoStream};
use crate::error::{Error, Result};

const FRAMES: u64 = 6;

/// What a [`round_trip`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RoundTrip {
    /// Pictures encoded, written, read and decoded.
    pub frames: u64,
    /// The worst luma of them, as peak signal to noise ratio in decibels.
    pub psnr_y_db: f64,
    /// CPU time of the encoder's thread per picture.
    pub encode_cpu_per_frame: Duration,
}

/// Records a few drawn pictures of the camera's size into `folder`, plays them back, compares, and removes the file.
///
/// # Errors
/// Whatever recording or decoding meets.
pub fn round_trip(folder: &Path, camera: &CameraSpec, config: &StreamConfig) -> Result<RoundTrip> {
    round_trip_of(folder, camera, config, FRAMES)
}

/// The same with `frames` pictures.
///
/// # Errors
/// As [`round_trip`].
pub fn round_trip_of(
    folder: &Path,
    camera: &CameraSpec,
    config: &StreamConfig,
    frames: u64,
) -> Result<RoundTrip> {
    let path = folder.join(format!(".round-trip-{}-{}.mp4", camera.name, std::process::id()));
    let result = record_and_compare(&path, camera, config, frames);
    let removed = std::fs::remove_file(&path).or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(Error::io("remove the trial video", &path, e)),
    });
    result.and_then(|found| removed.map(|()| found))
}

fn record_and_compare(
    path: &Path,
    camera: &CameraSpec,
    config: &StreamConfig,
    frames: u64,
) -> Result<RoundTrip> {
    let mut stream = VideoStream::spawn(path, camera, config)?;
    let pictures: Vec<Frame> = (0..frames).map(|i| draw(camera.size, i)).collect::<Result<_>>()?;
    for picture in &pictures {
        stream.push(picture.clone())?;
    }
    let report = stream.finish()?;
    let mut video = VideoReader::open(path)?;
    let (mut before, mut after) = (I420::new(camera.size)?, I420::new(camera.size)?);
    let mut worst_db = f64::INFINITY;
    for (i, picture) in (0..).zip(&pictures) {
        before.fill_from_rgb(picture.rgb())?;
        after.fill_from_rgb(video.frame(i)?.rgb())?;
        worst_db = worst_db.min(psnr_db(before.luma(), after.luma()));
    }
    let encode_cpu_per_frame = report.encode_cpu / u32::try_from(report.frames.max(1)).unwrap_or(u32::MAX);
    Ok(RoundTrip { frames: report.frames, psnr_y_db: worst_db, encode_cpu_per_frame })
}

/// A gradient that moves, with some texture.
fn draw(size: FrameSize, i: u64) -> Result<Frame> {
    let mut rgb = Vec::with_capacity(size.rgb_len());
    let shift = i as u32 * 2;
    for y in 0..size.height {
        for x in 0..size.width {
            let texture = ((x + shift) / 4 * 37 + y / 4 * 61) % 23;
            let ramp = |at: u32, of: u32| (48 + at * 128 / of.max(1) + texture) as u8;
            rgb.extend([ramp(x, size.width), ramp(y, size.height), ramp(x + y, size.width + size.height)]);
        }
    }
    Frame::new(size, rgb, i, Timestamp::ZERO).map_err(|e| Error::Encode {
        frame: i,
        problem: e.to_string(),
        path: "drawn picture".into(),
    })
}

/// 10 log10(255^2 / mean squared difference).
pub(super) fn psnr_db(a: &[u8], b: &[u8]) -> f64 {
    let squares: u64 = a.iter().zip(b).map(|(&p, &q)| u64::from(p.abs_diff(q)).pow(2)).sum();
    10.0 * (255.0 * 255.0 * a.len() as f64 / (squares as f64).max(1e-9)).log10()
}
