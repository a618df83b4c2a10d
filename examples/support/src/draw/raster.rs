//! Pixels and depth: fills convex flat polygons, nearer ones over farther ones.

use so101_hal::FrameSize;

use super::geometry::{Vec3, cross, dot, sub};
use super::solid::MAX_CORNERS;
use super::view::Lens;

/// Nothing nearer than this is drawn, metres.
const NEAR_M: f32 = 0.004;
/// A clipped convex polygon has one corner more.
const MAX_CLIPPED: usize = 2 * MAX_CORNERS;
/// Brightness in the shadow, in 256ths.
const SHADOW: u16 = 150;

/// A picture and the inverse depth of each pixel (1/m; 0 = infinitely far).
#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) rgb: Vec<u8>,
    pub(crate) inverse_depth: Vec<f32>,
    /// 1 where a shadow fell already: shadows of several parts do not add up.
    shadowed: Vec<u8>,
}

/// A flat polygon in the camera's frame, at most [`MAX_CORNERS`] corners.
pub(crate) type Polygon<'a> = &'a [Vec3];

#[derive(Clone, Copy)]
struct Span {
    row: usize,
    from: usize,
    to: usize,
}

impl Canvas {
    pub(crate) fn new(size: FrameSize) -> Self {
        let (width, height) = (size.width as usize, size.height as usize);
        let n = width * height;
        let rgb = vec![0; 3 * n];
        Self { width, height, rgb, inverse_depth: vec![0.0; n], shadowed: vec![0; n] }
    }

    /// Starts a picture over another one of the same size.
    pub(crate) fn copy_from(&mut self, background: &Self) {
        self.rgb.copy_from_slice(&background.rgb);
        self.inverse_depth.copy_from_slice(&background.inverse_depth);
        self.shadowed.fill(0);
    }

    pub(crate) fn forget_shadows(&mut self) {
        self.shadowed.fill(0);
    }

    /// Fills a polygon where nothing nearer is.
    pub(crate) fn fill(&mut self, polygon: Polygon<'_>, lens: &Lens, rgb: [u8; 3]) {
        let Some(plane) = Plane::through(polygon, lens) else { return };
        let width = self.width;
        let (pixels, depth) = (&mut self.rgb, &mut self.inverse_depth);
        scan(polygon, lens, (width, self.height), |Span { row, from, to }| {
            let start = row * width;
            let depth = &mut depth[start + from..start + to];
            let pixels = &mut pixels[3 * (start + from)..3 * (start + to)];
            let mut w = plane.at(from, row);
            for (d, p) in depth.iter_mut().zip(pixels.chunks_exact_mut(3)) {
                if w > *d {
                    *d = w;
                    p.copy_from_slice(&rgb);
                }
                w += plane.per_column;
            }
        });
    }

    /// Darkens what a polygon on the table covers; to be called before anything but the table is drawn.
    pub(crate) fn shade(&mut self, polygon: Polygon<'_>, lens: &Lens) {
        let width = self.width;
        let (pixels, depth, shadowed) = (&mut self.rgb, &self.inverse_depth, &mut self.shadowed);
        scan(polygon, lens, (width, self.height), |Span { row, from, to }| {
            let start = row * width;
            for i in start + from..start + to {
                if depth[i] > 0.0 && shadowed[i] == 0 {
                    shadowed[i] = 1;
                    for channel in &mut pixels[3 * i..3 * i + 3] {
                        // At most 255 * 150 / 256.
                        *channel = ((u16::from(*channel) * SHADOW) >> 8) as u8;
                    }
                }
            }
        });
    }
}

/// Inverse depth of a plane is linear over the picture.
struct Plane {
    per_column: f32,
    per_row: f32,
    at_origin: f32,
}

impl Plane {
    /// `None` when the camera lies in the plane: it is seen edge-on.
    fn through(polygon: Polygon<'_>, lens: &Lens) -> Option<Self> {
        let [a, b, c, ..] = polygon else { return None };
        let normal = cross(sub(*b, *a), sub(*c, *a));
        let distance = dot(normal, *a);
        if distance.abs() < 1e-12 {
            return None;
        }
        // normal . (ray / w) = distance with ray = ((x - cx) / f, (y - cy) / f, 1).
        let [nx, ny, nz] = normal.map(|v| v / distance);
        let (per_column, per_row) = (nx / lens.focal, ny / lens.focal);
        let at_origin = nz - per_column * lens.center[0] - per_row * lens.center[1];
        Some(Self { per_column, per_row, at_origin })
    }

    #[allow(clippy::cast_precision_loss, reason = "a picture is at most 4096 pixels wide")]
    fn at(&self, column: usize, row: usize) -> f32 {
        self.at_origin + self.per_column * (column as f32 + 0.5) + self.per_row * (row as f32 + 0.5)
    }
}

/// Calls `span` for each row of pixels whose middles lie inside of the polygon.
fn scan(polygon: Polygon<'_>, lens: &Lens, (width, height): (usize, usize), mut span: impl FnMut(Span)) {
    let mut corners = [[0.0_f32; 2]; MAX_CLIPPED];
    let n = clip_and_project(polygon, lens, &mut corners);
    let corners = &corners[..n];
    if n < 3 {
        return;
    }
    let (mut top, mut bottom) = (f32::INFINITY, f32::NEG_INFINITY);
    for c in corners {
        top = top.min(c[1]);
        bottom = bottom.max(c[1]);
    }
    for row in pixels_between(top, bottom, height) {
        #[allow(clippy::cast_precision_loss, reason = "a picture is at most 4096 pixels high")]
        let y = row as f32 + 0.5;
        let (mut left, mut right) = (f32::INFINITY, f32::NEG_INFINITY);
        for (i, a) in corners.iter().enumerate() {
            let b = &corners[(i + 1) % n];
            if (a[1] <= y) != (b[1] <= y) {
                let x = a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
                left = left.min(x);
                right = right.max(x);
            }
        }
        let columns = pixels_between(left, right, width);
        if !columns.is_empty() {
            span(Span { row, from: columns.start, to: columns.end });
        }
    }
}

/// Pixels whose middles lie in [low, high), within the picture. Casts saturate, so infinities are harmless.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the picture")]
fn pixels_between(low: f32, high: f32, count: usize) -> std::ops::Range<usize> {
    let first = (low - 0.5).ceil().max(0.0) as usize;
    let last = (high - 0.5).ceil().max(0.0) as usize;
    first.min(count)..last.min(count)
}

/// Cuts off what is nearer than [`NEAR_M`] and returns the number of projected corners.
fn clip_and_project(polygon: Polygon<'_>, lens: &Lens, out: &mut [[f32; 2]; MAX_CLIPPED]) -> usize {
    let mut n = 0;
    let mut push = |p: Vec3| {
        if let Some(slot) = out.get_mut(n) {
            *slot = lens.project(p);
            n += 1;
        }
    };
    for (i, &a) in polygon.iter().enumerate() {
        let b = polygon[(i + 1) % polygon.len()];
        if a[2] >= NEAR_M {
            push(a);
        }
        if (a[2] >= NEAR_M) != (b[2] >= NEAR_M) {
            let t = (NEAR_M - a[2]) / (b[2] - a[2]);
            push([a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1]), NEAR_M]);
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENS: Lens = Lens { focal: 8.0, center: [8.0, 6.0] };
    const SIZE: FrameSize = FrameSize::new(16, 12);

    fn square(half: f32, z: f32) -> [Vec3; 4] {
        [[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]]
    }

    fn lit(canvas: &Canvas) -> usize {
        canvas.rgb.chunks_exact(3).filter(|p| p != &[0, 0, 0]).count()
    }

    #[test]
    fn a_square_covers_the_pixels_whose_middles_it_covers() {
        let mut canvas = Canvas::new(SIZE);
        canvas.fill(&square(0.5, 1.0), &LENS, [9, 9, 9]); // 8 by 8 pixels
        assert_eq!(lit(&canvas), 64);
        let at = |x: usize, y: usize| canvas.rgb[3 * (16 * y + x)];
        assert_eq!([at(4, 2), at(11, 9), at(3, 2), at(12, 9), at(4, 1)], [9, 9, 0, 0, 0]);
    }

    #[test]
    fn the_nearer_polygon_wins_in_either_order() {
        for order in [[0, 1], [1, 0]] {
            let mut canvas = Canvas::new(SIZE);
            for i in order {
                canvas.fill(&square(0.2, [1.0, 0.5][i]), &LENS, [[1, 1, 1], [2, 2, 2]][i]);
            }
            assert_eq!(canvas.rgb[3 * (16 * 6 + 8)], 2);
        }
    }

    #[test]
    fn a_polygon_that_passes_the_camera_is_cut_not_mirrored() {
        let mut canvas = Canvas::new(SIZE);
        // The ground, from behind the camera to far ahead: nothing above the horizon.
        let ground = [[-9.0, 1.0, -5.0], [9.0, 1.0, -5.0], [9.0, 1.0, 50.0], [-9.0, 1.0, 50.0]];
        canvas.fill(&ground, &LENS, [7, 7, 7]);
        let rows: Vec<usize> = (0..12).filter(|y| canvas.rgb[3 * (16 * y + 8)] == 7).collect();
        assert_eq!(rows, [6, 7, 8, 9, 10, 11]);
        // Behind the camera altogether: nothing.
        let mut canvas = Canvas::new(SIZE);
        canvas.fill(&square(0.5, -1.0), &LENS, [7, 7, 7]);
        assert_eq!(lit(&canvas), 0);
    }

    #[test]
    fn overlapping_shadows_darken_once() {
        let mut canvas = Canvas::new(SIZE);
        canvas.rgb.fill(200);
        canvas.inverse_depth.fill(0.1);
        canvas.shade(&square(0.2, 1.0), &LENS);
        let once = canvas.clone();
        canvas.shade(&square(0.2, 1.0), &LENS);
        assert_eq!(canvas.rgb, once.rgb);
        assert_eq!(canvas.rgb[3 * (16 * 6 + 8)], 117);
    }

    proptest! {
        #[test]
        fn no_polygon_leaves_the_picture_or_panics(
            p in prop::collection::vec(prop::array::uniform3(-2.0_f32..2.0), 0..=MAX_CORNERS),
        ) {
            let mut canvas = Canvas::new(SIZE);
            canvas.fill(&p, &LENS, [1, 1, 1]);
            canvas.shade(&p, &LENS);
        }
    }
}
