//! A picture of many pictures: one row an episode, one column a moment, small enough for a README.

pub(crate) mod font;
mod palette;

use std::path::Path;

use so101_hal::Frame;

use crate::error::{Error, Result};

/// The file is never larger than this; the pictures get smaller until it is not.
pub const MAX_BYTES: usize = 200_000;
/// Widths of a picture in pixels, tried from the largest.
const WIDTHS: [usize; 8] = [160, 128, 112, 96, 80, 64, 48, 32];
const GAP: usize = 4;
const PAPER: [u8; 3] = [24, 26, 30];
const INK: [u8; 3] = [235, 235, 235];
const INK_SCALE: usize = 2;

/// Collects rows of pictures (scaled down at once, so that it stays small) and writes them as one PNG.
///
/// ```
/// use so101_hal::{Frame, FrameSize, Timestamp};
/// use so101_support::contact_sheet::ContactSheet;
/// let size = FrameSize::new(64, 48);
/// let grey = Frame::new(size, vec![128; size.rgb_len()], 0, Timestamp::ZERO)?;
/// let mut sheet = ContactSheet::new(3);
/// sheet.add_row("0", &[&grey, &grey, &grey]);
/// assert!(sheet.encode()?.starts_with(b"\x89PNG"));
/// # Ok::<(), so101_support::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ContactSheet {
    columns: usize,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    label: String,
    pictures: Vec<Picture>,
}

/// 8-bit RGB, rows from the top.
#[derive(Clone, Debug)]
struct Picture {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl ContactSheet {
    /// A sheet of at most `columns` pictures a row.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Appends a row. Frames beyond the number of columns are left out; all pictures get the same width. The label
    /// may have digits, letters, the marks `%()+,-./:=_` and blanks; other characters leave a blank.
    pub fn add_row(&mut self, label: &str, frames: &[&Frame]) -> &mut Self {
        let pictures = frames.iter().take(self.columns).map(|f| Picture::of(f).to_width(WIDTHS[0])).collect();
        self.rows.push(Row { label: label.to_owned(), pictures });
        self
    }

    /// `true` while nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the PNG.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be written, and as [`Self::encode`].
    pub fn save(&self, path: &Path) -> Result<()> {
        let bytes = self.encode().map_err(|e| match e {
            Error::Picture { source, .. } => Error::Picture { path: path.to_owned(), source },
            other => other,
        })?;
        std::fs::write(path, bytes).map_err(|source| Error::Io {
            what: "write contact sheet",
            path: path.to_owned(),
            source,
        })
    }

    /// The PNG's bytes: 64 colours, at most [`MAX_BYTES`] (the smallest size there is when even that is more).
    ///
    /// # Errors
    /// [`Error::Picture`] when the encoder refuses, such as for a sheet of more rows than a PNG can have.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut png = Vec::new();
        for width in WIDTHS {
            png = encode_indexed(&self.compose(width)).map_err(|e| Error::Picture {
                path: "contact sheet".into(),
                source: image::ImageError::Encoding(image::error::EncodingError::new(
                    image::error::ImageFormatHint::Exact(image::ImageFormat::Png),
                    e,
                )),
            })?;
            if png.len() <= MAX_BYTES {
                break;
            }
        }
        Ok(png)
    }

    fn compose(&self, width: usize) -> Picture {
        let longest = self.rows.iter().map(|r| r.label.chars().count()).max().unwrap_or(0);
        let margin = GAP + longest * font::ADVANCE * INK_SCALE;
        let rows: Vec<(&str, Vec<Picture>)> = self
            .rows
            .iter()
            .map(|r| (r.label.as_str(), r.pictures.iter().map(|p| p.to_width(width)).collect()))
            .collect();
        let tall = |pictures: &[Picture]| {
            pictures.iter().map(|p| p.height).fold(font::HEIGHT * INK_SCALE, usize::max)
        };
        let columns = rows.iter().map(|(_, p)| p.len()).max().unwrap_or(0);
        let height = GAP + rows.iter().map(|(_, p)| tall(p) + GAP).sum::<usize>();
        let mut sheet = Picture::blank(margin + columns * (width + GAP) + GAP, height);
        let mut top = GAP;
        for (label, pictures) in &rows {
            font::draw(label, [GAP, top], INK_SCALE, |x, y| sheet.set(x, y, INK));
            for (i, picture) in pictures.iter().enumerate() {
                sheet.paste(picture, margin + i * (width + GAP), top);
            }
            top += tall(pictures) + GAP;
        }
        sheet
    }
}

impl Picture {
    fn blank(width: usize, height: usize) -> Self {
        Self { width, height, rgb: PAPER.repeat(width * height) }
    }

    fn of(frame: &Frame) -> Self {
        let size = frame.size();
        Self { width: size.width as usize, height: size.height as usize, rgb: frame.rgb().to_vec() }
    }

    /// Scaled down by averaging, shape kept; a narrower picture stays as it is.
    fn to_width(&self, width: usize) -> Self {
        if self.width <= width || self.height == 0 {
            return self.clone();
        }
        let height = (self.height * width / self.width).max(1);
        let mut rgb = Vec::with_capacity(3 * width * height);
        for y in 0..height {
            let rows = y * self.height / height..((y + 1) * self.height / height).max(1);
            for x in 0..width {
                let columns = x * self.width / width..(x + 1) * self.width / width;
                rgb.extend(self.average(columns, rows.clone()));
            }
        }
        Self { width, height, rgb }
    }

    fn average(&self, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> [u8; 3] {
        let count = (columns.len() * rows.len()).max(1);
        let mut sum = [count / 2; 3];
        for y in rows {
            let row = &self.rgb[3 * (y * self.width + columns.start)..3 * (y * self.width + columns.end)];
            for pixel in row.chunks_exact(3) {
                for (s, &v) in sum.iter_mut().zip(pixel) {
                    *s += usize::from(v);
                }
            }
        }
        sum.map(|s| (s / count).min(255) as u8)
    }

    fn set(&mut self, x: usize, y: usize, rgb: [u8; 3]) {
        if x < self.width && y < self.height {
            let i = 3 * (y * self.width + x);
            self.rgb[i..i + 3].copy_from_slice(&rgb);
        }
    }

    fn paste(&mut self, other: &Self, left: usize, top: usize) {
        for (y, row) in other.rgb.chunks_exact(3 * other.width.max(1)).enumerate() {
            let start = 3 * ((top + y) * self.width + left);
            self.rgb[start..start + row.len()].copy_from_slice(row);
        }
    }
}

fn encode_indexed(picture: &Picture) -> Result<Vec<u8>, png::EncodingError> {
    let (palette, indices) = palette::reduce(&picture.rgb);
    let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side(picture.width), side(picture.height));
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    encoder.set_compression(png::Compression::High);
    // Neighbouring indices of a palette are no neighbouring colours: a difference filter only adds noise.
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&indices)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use so101_hal::{FrameSize, Timestamp};

    fn frame(width: u32, height: u32, mut pixel: impl FnMut(u32, u32) -> [u8; 3]) -> Frame {
        let size = FrameSize::new(width, height);
        let rgb = (0..height)
            .flat_map(|y| (0..width).map(move |x| (x, y)))
            .flat_map(|(x, y)| pixel(x, y))
            .collect();
        Frame::new(size, rgb, 0, Timestamp::ZERO).unwrap()
    }

    fn decode(png: &[u8]) -> image::RgbImage {
        image::load_from_memory(png).unwrap().to_rgb8()
    }

    #[test]
    fn every_picture_stands_in_its_row_and_column_with_its_colours() {
        let colours = [[200, 30, 30], [30, 200, 30], [30, 30, 200], [210, 190, 20]];
        let frames = colours.map(|c| frame(320, 240, |_, _| c));
        let mut sheet = ContactSheet::new(2);
        sheet.add_row("10", &[&frames[0], &frames[1], &frames[2]]);
        sheet.add_row("7", &[&frames[2], &frames[3]]);
        let image = decode(&sheet.encode().unwrap());
        let margin = 4 + 2 * 12;
        assert_eq!((image.width(), image.height()), (margin + 2 * 164 + 4, 4 + 2 * 124));
        for (i, colour) in [0, 1, 2, 3].into_iter().zip(colours) {
            let at = image.get_pixel(margin + 80 + 164 * (i % 2), 64 + 124 * (i / 2));
            assert!(at.0.iter().zip(colour).all(|(a, b)| a.abs_diff(b) <= 8), "{at:?} {colour:?}");
        }
        let label_ink = (0..margin).any(|x| (4..18).any(|y| image.get_pixel(x, y).0[0] > 200));
        assert!(label_ink, "the label is written");
    }

    #[test]
    fn a_sheet_of_noise_still_fits_the_limit() {
        let mut state = 1_u32;
        let mut noise = || {
            frame(160, 120, |_, _| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                [state >> 24, (state >> 16) & 255, (state >> 8) & 255].map(|v| v as u8)
            })
        };
        let frames: Vec<Frame> = (0..8).map(|_| noise()).collect();
        let mut sheet = ContactSheet::new(8);
        for label in ["0", "1", "2"] {
            sheet.add_row(label, &frames.iter().collect::<Vec<_>>());
        }
        assert!(sheet.encode().unwrap().len() <= MAX_BYTES);
    }

    #[test]
    fn averaging_keeps_the_mean_of_odd_sizes() {
        let p = Picture::of(&frame(7, 5, |x, _| [if x < 4 { 255 } else { 0 }, 100, 0]));
        let small = p.to_width(3);
        assert_eq!((small.width, small.height), (3, 2));
        assert_eq!(&small.rgb[..9], &[255, 100, 0, 255, 100, 0, 0, 100, 0]);
    }

    #[test]
    fn an_unwritable_place_is_named() {
        let e = ContactSheet::new(1).save(Path::new("no/such/folder/sheet.png")).unwrap_err();
        assert!(e.one_line().contains("no/such/folder/sheet.png"), "{}", e.one_line());
    }
}
