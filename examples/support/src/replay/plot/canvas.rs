//! A picture to draw on: text, lines, smooth curves.

use std::io::Cursor;

use crate::contact_sheet::font;

/// Pixels of the picture for one of the font.
const TEXT_SCALE: usize = 2;
/// Height of a line of text in pixels.
pub(super) const TEXT_HEIGHT: usize = font::HEIGHT * TEXT_SCALE;

/// Width of a text in pixels.
pub(super) fn text_width(text: &str) -> usize {
    (text.chars().count() * font::ADVANCE).saturating_sub(1) * TEXT_SCALE
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ink {
    pub(super) rgb: [u8; 3],
    /// In pixels.
    pub(super) width: f32,
}

/// A part of the picture, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Rect {
    /// The whole picture.
    pub(super) fn of(canvas: &Canvas) -> Self {
        Self { left: 0, top: 0, width: canvas.width, height: canvas.height }
    }

    /// The column behind the last one.
    pub(super) const fn right(self) -> usize {
        self.left + self.width
    }

    /// The row below the last one.
    pub(super) const fn bottom(self) -> usize {
        self.top + self.height
    }
}

/// 8-bit RGB, rows from the top. What lies outside is not drawn.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize, paper: [u8; 3]) -> Self {
        Self { width, height, rgb: paper.repeat(width * height) }
    }

    #[cfg(test)]
    pub(super) fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = 3 * (y * self.width + x);
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// The file's bytes.
    pub(super) fn to_png(&self) -> Result<Vec<u8>, image::ImageError> {
        let mut bytes = Cursor::new(Vec::new());
        let side = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let color = image::ExtendedColorType::Rgb8;
        image::write_buffer_with_format(
            &mut bytes,
            &self.rgb,
            side(self.width),
            side(self.height),
            color,
            image::ImageFormat::Png,
        )?;
        Ok(bytes.into_inner())
    }

    /// A line of text with its upper left corner at `at`.
    pub(super) fn text(&mut self, text: &str, at: [usize; 2], rgb: [u8; 3]) {
        font::draw(text, at, TEXT_SCALE, |x, y| self.blend(x, y, rgb, 1.0));
    }

    /// A row of pixels across `rect`.
    pub(super) fn horizontal(&mut self, rect: Rect, y: f32, rgb: [u8; 3]) {
        for x in rect.left..rect.right() {
            self.blend(x, y.round() as usize, rgb, 1.0);
        }
    }

    /// A column of pixels through `rect`.
    pub(super) fn vertical(&mut self, rect: Rect, x: f32, rgb: [u8; 3]) {
        for y in rect.top..rect.bottom() {
            self.blend(x.round() as usize, y, rgb, 1.0);
        }
    }

    /// The edge of `rect`.
    pub(super) fn frame(&mut self, rect: Rect, rgb: [u8; 3]) {
        self.horizontal(rect, rect.top as f32, rgb);
        self.horizontal(rect, (rect.bottom() - 1) as f32, rgb);
        self.vertical(rect, rect.left as f32, rgb);
        self.vertical(rect, (rect.right() - 1) as f32, rgb);
    }

    /// A curve through points, with soft edges and round joints, inside of `clip`.
    pub(super) fn curve(&mut self, points: &[[f32; 2]], ink: Ink, clip: Rect) {
        // Every pixel is covered once, by the segment that covers it most: no darker spots where segments meet.
        let mut cover = vec![0.0_f32; clip.width * clip.height];
        for pair in points.windows(2) {
            if let &[a, b] = pair {
                segment(&mut cover, clip, a, b, ink.width);
            }
        }
        for (i, share) in cover.into_iter().enumerate().filter(|(_, share)| *share > 0.0) {
            self.blend(clip.left + i % clip.width, clip.top + i / clip.width, ink.rgb, share);
        }
    }

    fn blend(&mut self, x: usize, y: usize, rgb: [u8; 3], share: f32) {
        if x >= self.width || y >= self.height {
            return;
        }
        let at = 3 * (y * self.width + x);
        for (old, new) in self.rgb.iter_mut().skip(at).zip(rgb) {
            *old = (f32::from(*old) + share * (f32::from(new) - f32::from(*old))).round() as u8;
        }
    }
}

/// Raises the coverage of the pixels within half a width of the segment from `a` to `b`.
fn segment(cover: &mut [f32], clip: Rect, a: [f32; 2], b: [f32; 2], width: f32) {
    let reach = width / 2.0 + 0.5;
    let range = |axis: usize, first: usize, len: usize| {
        let (low, high) = (a[axis].min(b[axis]) - reach, a[axis].max(b[axis]) + reach);
        let from = (low.floor().max(first as f32) as usize).min(first + len);
        from..((high.ceil().max(0.0) as usize).saturating_add(1)).clamp(from, first + len)
    };
    let along = [b[0] - a[0], b[1] - a[1]];
    let length2 = along[0] * along[0] + along[1] * along[1];
    for y in range(1, clip.top, clip.height) {
        for x in range(0, clip.left, clip.width) {
            let to = [x as f32 - a[0], y as f32 - a[1]];
            let share = if length2 > 0.0 { (to[0] * along[0] + to[1] * along[1]) / length2 } else { 0.0 };
            let share = share.clamp(0.0, 1.0);
            let distance = (to[0] - share * along[0]).hypot(to[1] - share * along[1]);
            let covered = (reach - distance).clamp(0.0, 1.0);
            let at = (y - clip.top) * clip.width + x - clip.left;
            if let Some(slot) = cover.get_mut(at) {
                *slot = slot.max(covered);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: [u8; 3] = [255; 3];
    const RED: Ink = Ink { rgb: [200, 0, 0], width: 3.0 };

    #[test]
    fn a_curve_is_as_wide_as_its_ink_and_ends_at_its_clip() {
        let mut canvas = Canvas::new(40, 20, WHITE);
        let clip = Rect { left: 5, top: 2, width: 20, height: 16 };
        canvas.curve(&[[-100.0, 10.0], [15.0, 10.0], [500.0, 10.0]], RED, clip);
        for x in 0..40 {
            let inked = (0..20).filter(|&y| canvas.pixel(x, y) == RED.rgb).count();
            assert_eq!(inked, if (5..25).contains(&x) { 3 } else { 0 }, "column {x}");
        }
    }

    #[test]
    fn what_lies_outside_is_left_out_without_harm() {
        let mut canvas = Canvas::new(8, 8, WHITE);
        let all = Rect::of(&canvas);
        canvas.curve(&[[-9.0, -9.0], [-5.0, -7.0]], RED, all);
        canvas.curve(&[[90.0, 90.0], [95.0, 97.0]], RED, all);
        canvas.curve(&[[f32::NAN, 1.0], [3.0, 3.0]], RED, all);
        canvas.text("far away", [100, 100], [0; 3]);
        assert_eq!(canvas.pixel(7, 0), WHITE);
    }

    #[test]
    fn every_character_that_a_replay_writes_has_a_shape() {
        let all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.,:/%()+=";
        let mut seen = std::collections::BTreeSet::new();
        for c in all.chars() {
            let mut dots = Vec::new();
            font::draw(&c.to_string(), [0, 0], 1, |x, y| dots.push((x, y)));
            assert!(!dots.is_empty(), "{c} is blank");
            assert!(seen.insert(dots), "{c} looks like another");
        }
    }
}
