//! Pictures of the emulated world: a small software rasteriser and the cameras that it feeds.
//!
//! Flat shading by one lamp, hard shadows on the table, no anti-aliasing. Only `+ - * /` and the square root touch the
//! pixels once a camera's pose is known, so that a posture gives the same bytes on every platform.

mod arm;
mod background;
mod geometry;
mod raster;
mod solid;
mod view;

use std::collections::VecDeque;

use so101_hal::kinematics::LinkPoses;
use so101_hal::{CameraSpec, Frame, Result, Timestamp};

use self::arm::ArmShape;
use self::geometry::{Rigid, Vec3, dot, single, unit};
use self::raster::Canvas;
use self::solid::{MAX_CORNERS, Solid, brightness};
use self::view::{Lens, View};
use crate::plan::{CameraMount, PlannedCamera};
use crate::scene::Scene;

/// Towards the lamp, base frame: high, a little in front and to the left.
const TO_LAMP: Vec3 = [0.28, 0.24, 0.93];
/// A bit above the table, so that no shadow fights with it for depth.
const SHADOW_Z_M: f32 = 0.0;
/// Pictures handed out that may be on their way back: the buffer of the oldest one is taken again if nobody has it.
const BUFFERS: usize = 6;

/// A camera whose pictures are drawn.
///
/// ```
/// use so101_hal::kinematics::Kinematics;
/// use so101_hal::{Radians, Timestamp};
/// use so101_support::draw::DrawnCamera;
/// use so101_support::plan::{Jitter, Plan};
/// use so101_support::scene::Scene;
/// let plan = Plan::push_left();
/// let setup = plan.episode(0, 0, Jitter::Off)?;
/// let scene = Scene::new(setup.object, setup.pose);
/// let links = Kinematics::links(&[Radians(0.0); 5], Radians(0.0));
/// let mut camera = DrawnCamera::new(&plan.cameras()[1]);
/// let frame = camera.draw(&links, &scene, Timestamp::ZERO)?;
/// assert_eq!(frame.size().to_string(), "320x240");
/// # Ok::<(), so101_support::Error>(())
/// ```
#[derive(Debug)]
pub struct DrawnCamera {
    spec: CameraSpec,
    mount: CameraMount,
    lens: Lens,
    arm: ArmShape,
    canvas: Canvas,
    /// Table and room, for a camera that does not move.
    still: Option<Canvas>,
    sequence: u64,
    handed_out: VecDeque<Frame>,
    scratch: Scratch,
}

/// Buffers that keep their capacity from picture to picture.
#[derive(Debug, Default)]
struct Scratch {
    seen: Vec<Vec3>,
    fallen: Vec<[f32; 2]>,
    hull: Vec<[f32; 2]>,
    polygon: Vec<Vec3>,
}

impl DrawnCamera {
    /// A camera of the plan.
    #[must_use]
    pub fn new(camera: &PlannedCamera) -> Self {
        Self {
            spec: camera.spec.clone(),
            mount: camera.mount,
            lens: Lens::new(camera),
            arm: ArmShape::so101(),
            canvas: Canvas::new(camera.spec.size),
            still: None,
            sequence: 0,
            handed_out: VecDeque::with_capacity(BUFFERS),
            scratch: Scratch::default(),
        }
    }

    /// Name and size.
    #[must_use]
    pub fn spec(&self) -> &CameraSpec {
        &self.spec
    }

    /// Draws the arm at this posture and the object where it lies.
    ///
    /// # Errors
    /// None in practice: the picture has the declared size by construction.
    pub fn draw(&mut self, links: &LinkPoses, scene: &Scene, at: Timestamp) -> Result<Frame> {
        let camera_from_base = view::camera_from_base(&self.mount, &links.gripper);
        let view = View { camera_from_base, lens: self.lens };
        self.paint_background(&view);
        let poses = link_poses(links);
        let (object, base_from_object) = object_solid(scene);

        let to_lamp = unit(TO_LAMP);
        let parts = || {
            let arm = self
                .arm
                .links
                .iter()
                .zip(&poses)
                .flat_map(|(solids, pose)| solids.iter().map(move |s| (s, pose)));
            arm.chain(std::iter::once((&object, &base_from_object)))
        };
        for (solid, pose) in parts() {
            cast_shadow(&mut self.canvas, &view, solid, pose, to_lamp, &mut self.scratch);
        }
        for (solid, pose) in parts() {
            fill_solid(&mut self.canvas, &view, solid, pose, to_lamp, &mut self.scratch);
        }
        self.hand_out(at)
    }

    fn paint_background(&mut self, view: &View) {
        match self.mount {
            CameraMount::Base { .. } => {
                let still = self.still.get_or_insert_with(|| {
                    let mut canvas = Canvas::new(self.spec.size);
                    background::paint(&mut canvas, view);
                    canvas
                });
                self.canvas.copy_from(still);
            }
            CameraMount::Gripper { .. } => {
                self.canvas.forget_shadows();
                background::paint(&mut self.canvas, view);
            }
        }
    }

    /// Gives the pixels away and takes a buffer for the next picture, an old one where nobody holds it any more.
    fn hand_out(&mut self, at: Timestamp) -> Result<Frame> {
        let oldest = if self.handed_out.len() >= BUFFERS { self.handed_out.pop_front() } else { None };
        let next = oldest.and_then(Frame::into_buffer).unwrap_or_else(|| vec![0; self.spec.size.rgb_len()]);
        let rgb = std::mem::replace(&mut self.canvas.rgb, next);
        let frame = Frame::new(self.spec.size, rgb, self.sequence, at)?;
        self.sequence += 1;
        self.handed_out.push_back(frame.clone());
        Ok(frame)
    }
}

/// In the order of [`ArmShape::links`].
fn link_poses(links: &LinkPoses) -> [Rigid; 7] {
    [
        Rigid::IDENTITY,
        Rigid::from(&links.shoulder),
        Rigid::from(&links.upper_arm),
        Rigid::from(&links.lower_arm),
        Rigid::from(&links.wrist),
        Rigid::from(&links.gripper),
        Rigid::from(&links.jaw),
    ]
}

/// The object as a solid whose frame has its origin in the middle of the base.
fn object_solid(scene: &Scene) -> (Solid, Rigid) {
    let half = single(scene.object().size_m).map(|edge| edge / 2.0);
    let lifted = Rigid { origin: [0.0, 0.0, half[2]], ..Rigid::IDENTITY };
    let solid = Solid::cuboid(half, &lifted, single(scene.object().rgb));
    let pose = scene.pose();
    let [x, y, cos, sin] = single([pose.x_m, pose.y_m, pose.yaw.0.cos(), pose.yaw.0.sin()]);
    (solid, Rigid::about_z(cos, sin, [x, y, 0.0]))
}

fn fill_solid(
    canvas: &mut Canvas,
    view: &View,
    solid: &Solid,
    base_from_solid: &Rigid,
    to_lamp: Vec3,
    scratch: &mut Scratch,
) {
    let camera_from_solid = view.camera_from_base.compose(base_from_solid);
    scratch.seen.clear();
    scratch.seen.extend(solid.vertices.iter().map(|&v| camera_from_solid.apply(v)));
    for face in &solid.faces {
        let mut polygon = [[0.0; 3]; MAX_CORNERS];
        let corners = solid.corners(face);
        for (p, &i) in polygon.iter_mut().zip(corners) {
            *p = scratch.seen[usize::from(i)];
        }
        let polygon = &polygon[..corners.len()];
        if dot(camera_from_solid.rotate(face.normal), polygon[0]) < 0.0 {
            let light = brightness(base_from_solid.rotate(face.normal), to_lamp);
            // Casts saturate at 0 and 255.
            canvas.fill(polygon, &view.lens, solid.rgb.map(|c| (c * light * 255.0) as u8));
        }
    }
}

/// Darkens the table where the solid stands between it and the lamp.
fn cast_shadow(
    canvas: &mut Canvas,
    view: &View,
    solid: &Solid,
    base_from_solid: &Rigid,
    to_lamp: Vec3,
    scratch: &mut Scratch,
) {
    let Scratch { fallen, hull, polygon, .. } = scratch;
    fallen.clear();
    fallen.extend(solid.vertices.iter().map(|&v| {
        let p = base_from_solid.apply(v);
        let along = p[2].max(0.0) / to_lamp[2];
        [p[0] - along * to_lamp[0], p[1] - along * to_lamp[1]]
    }));
    convex_hull(fallen, hull);
    polygon.clear();
    polygon.extend(hull.iter().map(|&[x, y]| view.camera_from_base.apply([x, y, SHADOW_Z_M])));
    canvas.shade(polygon, &view.lens);
}

/// Andrew's monotone chain; `points` get sorted, corners that are no corners are left out.
fn convex_hull(points: &mut [[f32; 2]], hull: &mut Vec<[f32; 2]>) {
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    hull.clear();
    let turns_left = |a: [f32; 2], b: [f32; 2], c: [f32; 2]| {
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) > 0.0
    };
    let mut chain = |points: &mut dyn Iterator<Item = [f32; 2]>| {
        let start = hull.len();
        for p in points {
            while hull.len() >= start + 2 && !turns_left(hull[hull.len() - 2], hull[hull.len() - 1], p) {
                hull.pop();
            }
            hull.push(p);
        }
        // The last point is the first one of the other chain.
        hull.pop();
    };
    chain(&mut points.iter().copied());
    chain(&mut points.iter().rev().copied());
}

#[cfg(test)]
mod tests;
