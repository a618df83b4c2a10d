//! Pictures from files, as if a camera took them.

mod stream;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};

use super::jpeg;
use super::picture::{Buffers, Content, Picture, Source};
use super::{Camera, CameraSpec, DeviceInfo};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameSize};

/// Bytes of the pixels of a PNG file, and of what its decoder needs besides, at most.
const MAX_PNG_BYTES: usize = 256 << 20;

/// What happens behind the last picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// The first one comes again; sequence numbers go on.
    #[default]
    Loop,
    /// [`Error::PicturesEnded`].
    Stop,
}

/// How pictures from files are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Pictures a second.
    pub fps: u32,
    /// What happens behind the last one.
    pub at_end: AtEnd,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { fps: 30, at_end: AtEnd::default() }
    }
}

/// A camera whose pictures are files: a folder of PNG and JPEG files in the order of their names (numbers in names count as
/// numbers), one such file, or a `.mjpg` stream of JPEG files one after the other. JPEG files stay with the frames.
///
/// The first picture is taken when the camera is opened, the others at their rate on the clock.
pub struct FileCamera {
    spec: CameraSpec,
    path: PathBuf,
    pictures: Pictures,
    options: FileOptions,
    clock: Arc<dyn Clock>,
    start: Timestamp,
    next: u64,
    buffers: Buffers,
    device: DeviceInfo,
}

enum Pictures {
    Files(Vec<PathBuf>),
    Stream(stream::JpegStream),
}

impl core::fmt::Debug for FileCamera {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FileCamera")
            .field("path", &self.path)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl FileCamera {
    /// Opens a file or folder. Its pictures are of the size of the first one.
    ///
    /// # Errors
    /// [`Error::PictureFile`] where there is no picture or the first one cannot be read, [`Error::CameraIo`].
    pub fn open(
        name: impl Into<String>,
        path: &Path,
        options: FileOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let pictures = Pictures::open(path)?;
        let mut camera = Self {
            spec: CameraSpec { name: name.into(), size: FrameSize::new(0, 0) },
            path: path.to_owned(),
            pictures,
            options,
            start: clock.now(),
            clock,
            next: 0,
            buffers: Buffers::new(),
            device: DeviceInfo {
                path: Some(path.display().to_string()),
                driver: "file".into(),
                card: "pictures from files".into(),
                fps: Some(f64::from(options.fps.max(1))),
                fps_wanted: options.fps,
                ..DeviceInfo::default()
            },
        };
        let first = camera.read(0)?.ok_or_else(|| unusable("there is none in it", path))?;
        (camera.spec.size, camera.device.format) = match &first {
            Content::Frame(frame) => (frame.size(), "PNG".into()),
            Content::Jpeg(file) => match jpeg::size_of(file) {
                Ok(size) => (size, "MJPG".into()),
                Err(fault) => return Err(unusable(&format!("the first one is damaged ({fault:?})"), path)),
            },
            Content::Damaged(why) => {
                return Err(unusable(&format!("the first one is damaged ({why})"), path));
            }
            Content::OtherSize(_) => return Err(unusable("the first one has no size", path)),
        };
        camera.pictures.rewind(path)?;
        Ok(camera)
    }

    /// Size of the pictures.
    pub(crate) const fn spec_size(&self) -> FrameSize {
        self.spec.size
    }

    /// Picture `number`; `None` behind the last one of a pass.
    fn read(&mut self, number: u64) -> Result<Option<Content>> {
        match &mut self.pictures {
            Pictures::Files(files) => {
                let pass = files.len() as u64;
                if self.options.at_end == AtEnd::Stop && number >= pass {
                    return Ok(None);
                }
                match files.get((number % pass.max(1)) as usize) {
                    Some(file) => read_file(file, number, self.start).map(Some),
                    None => Ok(None),
                }
            }
            Pictures::Stream(stream) => {
                let mut content = stream.next(&self.path)?;
                if content.is_none() && self.options.at_end == AtEnd::Loop && number > 0 {
                    stream.rewind(&self.path)?;
                    content = stream.next(&self.path)?;
                }
                Ok(content)
            }
        }
    }
}

impl Source for FileCamera {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    fn grab(&mut self, _buffers: &mut Buffers) -> Result<Picture> {
        let sequence = self.next;
        let Some(content) = self.read(sequence)? else {
            let path = self.path.display().to_string();
            return Err(Error::PicturesEnded { camera: self.spec.name.clone(), shown: sequence, path });
        };
        let nanos = u128::from(sequence) * 1_000_000_000 / u128::from(self.options.fps.max(1));
        let captured = self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.clock.sleep_until(captured);
        self.next += 1;
        let content = match content {
            Content::Frame(mut frame) => {
                (frame.sequence, frame.captured) = (sequence, captured);
                Content::Frame(frame)
            }
            other => other,
        };
        Ok(Picture { sequence, captured, content })
    }

    fn device(&self) -> Option<&DeviceInfo> {
        Some(&self.device)
    }
}

impl Camera for FileCamera {
    fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    /// Waits until the next picture is due.
    fn capture(&mut self) -> Result<Frame> {
        let mut buffers = core::mem::take(&mut self.buffers);
        let frame = self.grab(&mut buffers).and_then(|p| p.decode(&self.spec, &mut buffers));
        self.buffers = buffers;
        frame
    }

    fn device(&self) -> Option<&DeviceInfo> {
        Some(&self.device)
    }
}

impl Pictures {
    fn open(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return match kind(path) {
                Some(Kind::Stream) => stream::JpegStream::open(path).map(Self::Stream),
                Some(Kind::Picture) => Ok(Self::Files(alloc::vec![path.to_owned()])),
                None => Err(unusable("they are no folder, PNG, JPEG or MJPG file", path)),
            };
        }
        let entries = fs::read_dir(path).map_err(|e| io("list", path, e))?;
        let mut files: Vec<PathBuf> =
            entries.flatten().map(|e| e.path()).filter(|p| kind(p) == Some(Kind::Picture)).collect();
        if files.is_empty() {
            return Err(unusable("the folder has no PNG or JPEG file", path));
        }
        files.sort_by_cached_key(|file| natural(&file.file_name().unwrap_or_default().to_string_lossy()));
        Ok(Self::Files(files))
    }

    fn rewind(&mut self, path: &Path) -> Result<()> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Stream(stream) => stream.rewind(path),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Picture,
    Stream,
}

fn kind(path: &Path) -> Option<Kind> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "png" | "jpg" | "jpeg" => Some(Kind::Picture),
        "mjpg" | "mjpeg" => Some(Kind::Stream),
        _ => None,
    }
}

/// The order of names in which 2 comes before 10: texts and numbers in turn.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(text_end);
        let number_end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(number_end);
        parts.push((text.into(), number.parse().unwrap_or(u64::MAX)));
        rest = behind;
    }
    parts
}

fn read_file(file: &Path, number: u64, captured: Timestamp) -> Result<Content> {
    let bytes = fs::read(file).map_err(|e| io("read a picture of", file, e))?;
    if bytes.starts_with(b"\x89PNG") {
        return Ok(match png_rgb(&bytes) {
            Ok((size, rgb)) => Content::Frame(Frame::new(size, rgb, number, captured)?),
            Err(why) => Content::Damaged(why.into()),
        });
    }
    Ok(match jpeg::trim(&bytes) {
        Some(jpeg) => Content::Jpeg(Arc::from(jpeg)),
        None => Content::Damaged(format!("no whole PNG or JPEG file: {}", file.display()).into()),
    })
}

/// A PNG file as RGB: palettes and 16 bits become 8 bits, grey becomes three equal channels, transparency is left out.
fn png_rgb(bytes: &[u8]) -> Result<(FrameSize, Vec<u8>), String> {
    let text = |e: png::DecodingError| format!("{e}");
    let limits = png::Limits { bytes: MAX_PNG_BYTES };
    let mut decoder = png::Decoder::new_with_limits(std::io::Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(text)?;
    // The decoder's own limit leaves the picture itself out.
    let len = reader.output_buffer_size().filter(|&len| len <= MAX_PNG_BYTES);
    let len = len.ok_or_else(|| String::from("it is too large"))?;
    let mut pixels = alloc::vec![0; len];
    let info = reader.next_frame(&mut pixels).map_err(text)?;
    pixels.truncate(info.buffer_size());
    let channels = info.color_type.samples();
    let rgb = match channels {
        3 => pixels,
        4 => pixels.chunks_exact(4).flat_map(|p| p.iter().take(3).copied()).collect(),
        _ => pixels
            .chunks_exact(channels.max(1))
            .flat_map(|p| [p.first().copied().unwrap_or_default(); 3])
            .collect(),
    };
    Ok((FrameSize::new(info.width, info.height), rgb))
}

fn unusable(what: &str, path: &Path) -> Error {
    Error::PictureFile { what: what.into(), path: path.display().to_string() }
}

fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::CameraIo { doing, path: path.display().to_string(), source: source.into() }
}

#[cfg(test)]
mod tests;
