//! The table with its squares, and the room behind it: one ray a pixel.

use super::geometry::Vec3;
use super::raster::Canvas;
use super::view::View;

/// The table top, base frame, metres.
const TABLE_X: [f32; 2] = [-0.38, 0.80];
const TABLE_Y: [f32; 2] = [-0.55, 0.55];
const SQUARES_PER_M: f32 = 20.0;
const SQUARES: [[u8; 3]; 2] = [[186, 184, 180], [170, 168, 165]];
const RIM: [u8; 3] = [120, 116, 112];
const RIM_M: f32 = 0.008;
const FLOOR: Vec3 = [88.0, 92.0, 98.0];
const WALL: Vec3 = [150.0, 160.0, 170.0];

/// Pixels that are computed together, so that the compiler can use vector instructions.
const LANES: usize = 16;

/// What a ray meets.
const ON_RIM: u8 = 2;
const ON_ROOM: u8 = 3;

/// A row of rays: the one through the middle of its first pixel, the step from pixel to pixel, the component along the
/// optical axis 1.
struct Rays {
    eye: Vec3,
    first: Vec3,
    step: Vec3,
}

/// Overwrites the whole picture; the table gets its depth, the room is infinitely far.
pub(crate) fn paint(canvas: &mut Canvas, view: &View) {
    let base_from_camera = view.camera_from_base.inverse();
    let lens = &view.lens;
    let width = canvas.width;
    let step = base_from_camera.rotate([1.0 / lens.focal, 0.0, 0.0]);
    let rows = canvas.rgb.chunks_exact_mut(3 * width).zip(canvas.inverse_depth.chunks_exact_mut(width));
    for (row, (pixels, depths)) in rows.enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "a picture is at most 4096 pixels high")]
        let down = (row as f32 + 0.5 - lens.center[1]) / lens.focal;
        let first = base_from_camera.rotate([(0.5 - lens.center[0]) / lens.focal, down, 1.0]);
        let rays = Rays { eye: base_from_camera.origin, first, step };
        let groups = pixels.chunks_mut(3 * LANES).zip(depths.chunks_mut(LANES));
        for (group, (pixels, depths)) in groups.enumerate() {
            let (met, inverse_depth) = rays.meet(group * LANES);
            depths.copy_from_slice(&inverse_depth[..depths.len()]);
            for (lane, pixel) in pixels.chunks_exact_mut(3).enumerate() {
                pixel.copy_from_slice(&match met[lane] {
                    ON_ROOM => room(rays.at(group * LANES + lane)),
                    ON_RIM => RIM,
                    square => SQUARES[usize::from(square & 1)],
                });
            }
        }
    }
}

impl Rays {
    #[allow(clippy::cast_precision_loss, reason = "a picture is at most 4096 pixels wide")]
    fn at(&self, column: usize) -> Vec3 {
        let n = column as f32;
        std::array::from_fn(|i| self.first[i] + n * self.step[i])
    }

    /// What the rays of [`LANES`] pixels from `column` on meet (a square's colour, the rim, the room), and its inverse
    /// depth.
    fn meet(&self, column: usize) -> ([u8; LANES], [f32; LANES]) {
        let (eye, start) = (self.eye, self.at(column));
        // Of a ray that meets the table, z falls from the eye's height to 0.
        let per_height = if eye[2] > 0.0 { 1.0 / eye[2] } else { 0.0 };
        let mut met = [ON_ROOM; LANES];
        let mut inverse_depth = [0.0; LANES];
        for lane in 0..LANES {
            #[allow(clippy::cast_precision_loss, reason = "fewer than 16")]
            let ray: Vec3 = std::array::from_fn(|i| start[i] + lane as f32 * self.step[i]);
            let w = -ray[2] * per_height;
            let depth = 1.0 / w;
            let (x, y) = (eye[0] + depth * ray[0], eye[1] + depth * ray[1]);
            // Distance to the nearest edge, positive inside.
            let inside = (x - TABLE_X[0]).min(TABLE_X[1] - x).min(y - TABLE_Y[0]).min(TABLE_Y[1] - y);
            let on_table = (w > 0.0) & (inside > 0.0);
            let surface = if inside > RIM_M { odd(x) ^ odd(y) } else { ON_RIM };
            met[lane] = if on_table { surface } else { ON_ROOM };
            inverse_depth[lane] = if on_table { w } else { 0.0 };
        }
        (met, inverse_depth)
    }
}

/// Whether the square of this coordinate is an odd one, 0 or 1.
fn odd(coordinate: f32) -> u8 {
    // Added to 1.5 * 2^23 a number keeps no fraction: the last bit is that of the nearest whole number.
    const WHOLE: f32 = 12_582_912.0;
    ((coordinate * SQUARES_PER_M - 0.5 + WHOLE).to_bits() & 1) as u8
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two colours")]
fn room(ray: Vec3) -> [u8; 3] {
    let slope = ray[2] / (ray[0] * ray[0] + ray[1] * ray[1] + 1e-6).sqrt();
    let t = (slope * 4.0 + 2.2).clamp(0.0, 1.0);
    std::array::from_fn(|i| (FLOOR[i] + t * (WALL[i] - FLOOR[i])) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_change_every_50_mm() {
        let colours: Vec<u8> = [-0.09, -0.04, 0.01, 0.04, 0.06, 0.11].map(odd).to_vec();
        assert_eq!(colours, [0, 1, 0, 0, 1, 0]);
    }

    #[test]
    fn a_ray_meets_the_table_where_it_should_and_the_room_elsewhere() {
        // From half a metre above the origin, rays along the optical axis x turned down by 45 degrees.
        let down = Rays { eye: [0.0, 0.0, 0.5], first: [1.0, 0.0, -1.0], step: [0.0, 0.1, 0.0] };
        let (met, w) = down.meet(0);
        assert_eq!((met[0], w[0]), (odd(0.5) ^ odd(0.0), 2.0));
        assert_eq!((met[15], w[15]), (ON_ROOM, 0.0), "0.75 m to the left the table has ended");
        let up = Rays { first: [1.0, 0.0, 0.2], ..down };
        assert_eq!(up.meet(0).0, [ON_ROOM; LANES]);
        let under = Rays { eye: [0.0, 0.0, -0.1], ..up };
        assert_eq!(under.meet(0), ([ON_ROOM; LANES], [0.0; LANES]));
    }
}
