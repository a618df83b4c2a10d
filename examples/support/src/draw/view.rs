//! A pinhole camera: where it is, and which ray each pixel looks along.
//!
//! Inside of the rasteriser a camera looks along its +z, with +x to the right and +y down the picture.

use so101_hal::FrameSize;
use so101_hal::kinematics::Pose;

use super::geometry::{Rigid, Vec3, cross, single, sub, unit};
use crate::plan::{CameraMount, PlannedCamera};

#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// From the base frame to the camera's.
    pub(crate) camera_from_base: Rigid,
    pub(crate) lens: Lens,
}

/// Square pixels, optical axis through the middle of the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lens {
    /// Focal length in pixels.
    pub(crate) focal: f32,
    /// Middle of the picture, pixels.
    pub(crate) center: [f32; 2],
}

impl Lens {
    #[allow(clippy::cast_precision_loss, reason = "a picture is at most 4096 pixels wide")]
    pub(crate) fn new(camera: &PlannedCamera) -> Self {
        let FrameSize { width, height } = camera.spec.size;
        let [half_tangent] = single([(camera.fovy.0 / 2.0).tan()]);
        let center = [width as f32 / 2.0, height as f32 / 2.0];
        Self { focal: center[1] / half_tangent, center }
    }

    /// Where a point in front of the camera appears, pixels.
    pub(crate) fn project(&self, p: Vec3) -> [f32; 2] {
        [self.center[0] + self.focal * p[0] / p[2], self.center[1] + self.focal * p[1] / p[2]]
    }
}

/// The camera's pose for this pose of the gripper link.
pub(crate) fn camera_from_base(mount: &CameraMount, base_from_gripper: &Pose) -> Rigid {
    match *mount {
        CameraMount::Base { position_m, look_at_m } => {
            look_at(single(position_m), single(look_at_m)).inverse()
        }
        CameraMount::Gripper { position_m, turn_x } => {
            let [s, c] = single([turn_x.0.sin(), turn_x.0.cos()]);
            // MuJoCo's camera axes, turned about x, with y and z flipped to ours.
            let rows = [[1.0, 0.0, 0.0], [0.0, -c, s], [0.0, -s, -c]];
            let gripper_from_camera = Rigid { rows, origin: single(position_m) };
            Rigid::from(base_from_gripper).compose(&gripper_from_camera).inverse()
        }
    }
}

fn look_at(from: Vec3, to: Vec3) -> Rigid {
    let forward = unit(sub(to, from));
    let right = unit(cross(forward, [0.0, 0.0, 1.0]));
    let down = cross(forward, right);
    let row = |i: usize| [right[i], down[i], forward[i]];
    Rigid { rows: [row(0), row(1), row(2)], origin: from }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn near(a: &[f32], b: &[f32], tolerance: f32) {
        for (x, y) in a.iter().zip(b) {
            assert!((x - y).abs() < tolerance, "{a:?} {b:?}");
        }
    }

    const LINK: Pose =
        Pose { position_m: [0.0; 3], rotation: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] };

    #[test]
    fn the_main_camera_faces_the_robot() {
        let plan = Plan::push_left();
        let main = &plan.cameras()[0];
        let from_base = camera_from_base(&main.mount, &LINK);
        let lens = Lens::new(main);
        near(&lens.project(from_base.apply([0.25, 0.0, 0.05])), &[320.0, 240.0], 1e-3);
        // The robot's left is on the picture's right, its front nearer and lower.
        let left = lens.project(from_base.apply([0.25, 0.1, 0.05]));
        let front = lens.project(from_base.apply([0.35, 0.0, 0.05]));
        assert!(left[0] > 330.0 && (left[1] - 240.0).abs() < 1e-3 && front[1] > 250.0, "{left:?} {front:?}");
        // Straight above the middle by the tangent of half the field of view: the upper edge.
        let distance = (0.5_f32 * 0.5 + 0.4 * 0.4).sqrt();
        let edge = from_base.inverse().apply([0.0, -(std::f32::consts::PI / 8.0).tan() * distance, distance]);
        near(&lens.project(from_base.apply(edge)), &[320.0, 0.0], 1e-2);
    }

    #[test]
    fn the_gripper_camera_follows_mujocos_convention() {
        let plan = Plan::push_left();
        let from_base = camera_from_base(&plan.cameras()[1].mount, &LINK);
        // Forward of the camera is -z turned by -0.57 rad about x: (0, sin(-0.57), -cos(-0.57)).
        let ahead = [0.0, 0.055 - 0.1 * 0.57_f32.sin(), -0.045 - 0.1 * 0.57_f32.cos()];
        near(&from_base.apply(ahead), &[0.0, 0.0, 0.1], 1e-6);
        // x stays x; +y of MuJoCo's camera is up, which is -y of ours.
        let up = [0.01, 0.055 + 0.1 * 0.57_f32.cos(), -0.045 - 0.1 * 0.57_f32.sin()];
        near(&from_base.apply(up), &[0.01, -0.1, 0.0], 1e-6);
    }
}
