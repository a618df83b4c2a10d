//! What stands in the scene: table, object, cameras, light.

use so101_hal::{CameraSpec, FrameSize, Lux};

use crate::error::{Error, Result, finite, within};

/// The largest picture that a camera may deliver: the offscreen buffer is made for the largest camera, and MuJoCo
/// ends the process when the driver cannot allocate it.
pub const MAX_PICTURE: FrameSize = FrameSize::new(4096, 4096);

/// The illuminance that the scene's lights stand for.
pub const SCENE_LUX: Lux = Lux(300.0);

/// A box that lies on the table and can be pushed and grasped.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSpec {
    /// Length (along its own x), width and height in metres.
    pub size_m: [f64; 3],
    /// Mass in kg.
    pub mass_kg: f64,
    /// Colour, each channel 0 to 1.
    pub rgb: [f64; 3],
    /// Coefficient of sliding friction on the table.
    pub friction: f64,
}

impl ObjectSpec {
    /// The plan's `yellow-large`: 60 x 30 x 30 mm, 60 g.
    #[must_use]
    pub const fn yellow_large() -> Self {
        Self { size_m: [0.060, 0.030, 0.030], mass_kg: 0.060, rgb: [0.9, 0.8, 0.1], friction: 0.6 }
    }

    fn check(&self) -> Result<()> {
        for size in self.size_m {
            within("a side of the object in metres", size, 0.002, 1.0)?;
        }
        within("the mass of the object in kg", self.mass_kg, 1e-4, 10.0)?;
        within("the friction of the object", self.friction, 0.0, 10.0)?;
        for channel in self.rgb {
            within("a colour channel of the object", channel, 0.0, 1.0)?;
        }
        Ok(())
    }
}

/// Where a camera is mounted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Mount {
    /// Fixed in the room, looking at a point, upright. Metres in the base frame.
    Room {
        /// Viewpoint.
        from_m: [f64; 3],
        /// A point on the optical axis.
        look_at_m: [f64; 3],
    },
    /// On the hand, in the gripper link's frame, turned about its x axis from looking along the fingers.
    Hand {
        /// Viewpoint, metres in the gripper link's frame.
        from_m: [f64; 3],
        /// Turn about the gripper link's x axis in radians, negative towards the fingers.
        tilt_rad: f64,
    },
}

/// A camera of the scene.
#[derive(Clone, Debug, PartialEq)]
pub struct SceneCamera {
    /// Name and picture size.
    pub spec: CameraSpec,
    /// Where it is.
    pub mount: Mount,
    /// Vertical field of view in degrees.
    pub fovy_deg: f64,
}

impl SceneCamera {
    /// The main camera: 640x480, in front of the arm and facing it, 45 degrees.
    #[must_use]
    pub fn main() -> Self {
        Self {
            spec: CameraSpec::new("main", 640, 480),
            mount: Mount::Room { from_m: [0.750, 0.0, 0.450], look_at_m: [0.250, 0.0, 0.050] },
            fovy_deg: 45.0,
        }
    }

    /// The gripper camera: 320x240, on the hand (Menagerie's `wrist_cam`).
    #[must_use]
    pub fn gripper() -> Self {
        Self {
            spec: CameraSpec::new("gripper", 320, 240),
            mount: Mount::Hand { from_m: [0.0, 0.055, -0.045], tilt_rad: -0.57 },
            fovy_deg: 48.5,
        }
    }

    fn check(&self) -> Result<()> {
        let name = &self.spec.name;
        let usable = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(usable) {
            return Err(Error::CameraName { name: name.clone() });
        }
        let size = self.spec.size;
        let fits = |v: u32, max: u32| (1..=max).contains(&v);
        if !fits(size.width, MAX_PICTURE.width) || !fits(size.height, MAX_PICTURE.height) {
            return Err(Error::CameraSize { camera: name.clone(), size, max: MAX_PICTURE });
        }
        within("the vertical field of view of a camera in degrees", self.fovy_deg, 1.0, 170.0)?;
        match self.mount {
            Mount::Room { from_m, look_at_m } => {
                let mut apart = 0.0;
                for (a, b) in from_m.into_iter().zip(look_at_m) {
                    within("a camera's coordinate in metres", a, -100.0, 100.0)?;
                    within("a camera's coordinate in metres", b, -100.0, 100.0)?;
                    apart += (a - b) * (a - b);
                }
                let across = (from_m[0] - look_at_m[0]).hypot(from_m[1] - look_at_m[1]);
                within(
                    "the distance of a camera from the point it looks at in metres",
                    f64::sqrt(apart),
                    1e-3,
                    200.0,
                )?;
                within(
                    "the horizontal distance of a camera from the point it looks at in metres",
                    across,
                    1e-4,
                    200.0,
                )?;
            }
            Mount::Hand { from_m, tilt_rad } => {
                for v in from_m {
                    within("a hand camera's coordinate in metres", v, -1.0, 1.0)?;
                }
                within("a hand camera's tilt in radians", tilt_rad, -7.0, 7.0)?;
            }
        }
        Ok(())
    }
}

/// Everything that a model is generated from.
///
/// ```
/// use so101_sim::{Scene, StepPlan};
/// let text = Scene::push_table().mjcf(StepPlan::for_rate(30)?)?;
/// assert!(text.starts_with("<mujoco model=\"so101\">"));
/// # Ok::<(), so101_sim::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Length and width of the table in metres; its top is the plane z = 0, the base stands at its rear edge. `None`:
    /// the base floats and nothing is in the arm's way, not even itself.
    pub table_m: Option<[f64; 2]>,
    /// The object, if there is one.
    pub object: Option<ObjectSpec>,
    /// Cameras, in the order of the pictures.
    pub cameras: Vec<SceneCamera>,
}

impl Default for Scene {
    fn default() -> Self {
        Self { table_m: Some([0.80, 1.20]), object: None, cameras: Vec::new() }
    }
}

impl Scene {
    /// The main job's scene: table, `yellow-large`, main and gripper camera.
    #[must_use]
    pub fn push_table() -> Self {
        Self {
            object: Some(ObjectSpec::yellow_large()),
            cameras: vec![SceneCamera::main(), SceneCamera::gripper()],
            ..Self::default()
        }
    }

    /// The same without cameras, for physics alone.
    #[must_use]
    pub fn without_cameras(mut self) -> Self {
        self.cameras.clear();
        self
    }

    /// The arm alone: no table, no object, no camera.
    #[must_use]
    pub fn empty() -> Self {
        Self { table_m: None, object: None, cameras: Vec::new() }
    }

    /// The same with another object, or none.
    #[must_use]
    pub fn with_object(mut self, object: Option<ObjectSpec>) -> Self {
        self.object = object;
        self
    }

    /// The smallest offscreen buffer that holds every camera's picture.
    #[must_use]
    pub fn offscreen(&self) -> FrameSize {
        let sizes = || self.cameras.iter().map(|c| c.spec.size);
        let width = sizes().map(|s| s.width).max().unwrap_or(64);
        FrameSize::new(width, sizes().map(|s| s.height).max().unwrap_or(64))
    }

    /// Whether a model can be made of this.
    ///
    /// # Errors
    /// The first number or name that is not usable.
    pub fn check(&self) -> Result<()> {
        for side in self.table_m.into_iter().flatten() {
            within("a side of the table in metres", finite("a side of the table", side)?, 0.05, 20.0)?;
        }
        if let Some(object) = &self.object {
            object.check()?;
        }
        for (i, camera) in self.cameras.iter().enumerate() {
            camera.check()?;
            if self.cameras.iter().take(i).any(|c| c.spec.name == camera.spec.name) {
                return Err(Error::CameraName { name: camera.spec.name.clone() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_scenes_are_refused_by_name() {
        let with = |f: fn(&mut Scene)| {
            let mut scene = Scene::push_table();
            f(&mut scene);
            scene.check().unwrap_err().to_string()
        };
        for (message, expected) in [
            (with(|s| s.table_m = Some([f64::NAN, 1.2])), "side of the table"),
            (with(|s| s.object.as_mut().unwrap().size_m[1] = -0.01), "side of the object"),
            (with(|s| s.object.as_mut().unwrap().mass_kg = 0.0), "mass of the object"),
            (with(|s| s.object.as_mut().unwrap().rgb[2] = f64::INFINITY), "colour channel"),
            (with(|s| s.cameras[0].spec.name = "a\"b".into()), "camera name"),
            (with(|s| s.cameras[1].spec.name = "main".into()), "camera name"),
            (with(|s| s.cameras[0].spec.size.width = 4097), "4097x480"),
            (with(|s| s.cameras[0].spec.size.height = 0), "640x0"),
            (with(|s| s.cameras[0].fovy_deg = 180.0), "field of view"),
            (
                with(|s| s.cameras[0].mount = Mount::Room { from_m: [0.0; 3], look_at_m: [0.0, 0.0, 1.0] }),
                "horizontal",
            ),
        ] {
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn the_offscreen_buffer_holds_the_widest_and_the_highest_picture() {
        assert_eq!(Scene::push_table().offscreen(), FrameSize::new(640, 480));
        assert_eq!(Scene::default().offscreen(), FrameSize::new(64, 64));
    }
}
