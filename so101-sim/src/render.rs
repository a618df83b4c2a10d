//! Headless cameras: a thread with one OpenGL context a camera.
//!
//! OpenGL contexts and MuJoCo's rendering context belong to the thread that made them, a
//! [`Robot`](so101_hal::Robot) may move between threads: so pictures are made by a thread of their own, which is sent
//! the joint positions and sends back pixels.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use mujoco_rs::prelude::{MjData, MjModel, MjtObjBase, MjvCamera};
use mujoco_rs::renderer::MjRenderer;
use so101_hal::CameraSpec;

use crate::doctor::missing_render_packages;
use crate::error::{Error, Result};

type Pictures = Result<Vec<Vec<u8>>>;

/// The rendering thread's other end. Ends the thread when dropped.
pub(crate) struct Renderer {
    poses: Option<Sender<Vec<f64>>>,
    pictures: Receiver<Pictures>,
    thread: Option<JoinHandle<()>>,
}

impl Renderer {
    /// Opens one context a camera.
    pub(crate) fn new(model: Arc<MjModel>, cameras: Vec<CameraSpec>) -> Result<Self> {
        let (poses, requests) = channel::<Vec<f64>>();
        let (replies, pictures) = channel::<Pictures>();
        let body = move || {
            let mut stage = match Stage::new(model, &cameras) {
                Ok(stage) => stage,
                Err(e) => return drop(replies.send(Err(e))),
            };
            // The first reply says that the contexts are open.
            if replies.send(Ok(Vec::new())).is_err() {
                return;
            }
            while let Ok(qpos) = requests.recv() {
                if replies.send(stage.draw(&qpos)).is_err() {
                    return;
                }
            }
        };
        let spawned = std::thread::Builder::new().name("so101-render".into()).spawn(body);
        let thread = spawned.map_err(|e| no_egl(format!("no thread for it: {e}")))?;
        let renderer = Self { poses: Some(poses), pictures, thread: Some(thread) };
        renderer.reply()?;
        Ok(renderer)
    }

    /// One picture a camera, rows from the top, RGB.
    pub(crate) fn draw(&self, qpos: &[f64]) -> Pictures {
        let sent = self.poses.as_ref().is_some_and(|poses| poses.send(qpos.to_vec()).is_ok());
        if sent { self.reply() } else { Err(gone()) }
    }

    fn reply(&self) -> Pictures {
        self.pictures.recv().unwrap_or_else(|_| Err(gone()))
    }
}

fn no_egl(message: String) -> Error {
    Error::NoEgl { message, packages: missing_render_packages() }
}

fn gone() -> Error {
    Error::Render { camera: "all".into(), message: "the rendering thread has ended".into() }
}

impl Drop for Renderer {
    fn drop(&mut self) {
        self.poses = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the closed channel.
            let _ = thread.join();
        }
    }
}

/// What lives on the thread.
struct Stage {
    data: MjData<Arc<MjModel>>,
    views: Vec<(String, MjRenderer)>,
}

impl Stage {
    fn new(model: Arc<MjModel>, cameras: &[CameraSpec]) -> Result<Self> {
        let mut views = Vec::with_capacity(cameras.len());
        for camera in cameras {
            let name = &camera.name;
            let id = model.name_to_id(MjtObjBase::mjOBJ_CAMERA, name);
            let id = id.ok_or_else(|| Error::Lacks { kind: "camera", name: name.clone() })?;
            let view = MjRenderer::builder()
                .width(camera.size.width)
                .height(camera.size.height)
                .camera(MjvCamera::new_fixed(id))
                .build(&model)
                .map_err(|e| no_egl(chain(&e)))?;
            views.push((name.clone(), view));
        }
        let data = MjData::try_new(model).map_err(|e| Error::Allocation { message: e.to_string() })?;
        Ok(Self { data, views })
    }

    fn draw(&mut self, qpos: &[f64]) -> Pictures {
        for (to, from) in self.data.qpos_mut().iter_mut().zip(qpos) {
            *to = *from;
        }
        self.data.forward_kinematics();
        let mut pictures = Vec::with_capacity(self.views.len());
        for (name, view) in &mut self.views {
            let failed = |message: String| Error::Render { camera: name.clone(), message };
            view.sync_data(&mut self.data).map_err(|e| failed(chain(&e)))?;
            view.render().map_err(|e| failed(chain(&e)))?;
            let rgb = view.rgb_flat().ok_or_else(|| failed("no pixels came back".into()))?;
            pictures.push(rgb.to_vec());
        }
        Ok(pictures)
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(e) = below {
        text = format!("{text}: {e}");
        below = e.source();
    }
    text
}
