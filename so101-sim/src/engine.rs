//! The only module that knows mujoco-rs: compiled model, state, stepping. Nothing of it is in the public API.

use std::sync::{Arc, Once};

use mujoco_rs::prelude::{MjData, MjModel, MjtObjBase, MjtWarning, install_logging_hook};
use so101_hal::JOINTS;

use crate::doctor::MUJOCO_VERSION;
use crate::error::{Error, Result};
use crate::mjcf::{FINGERTIP_SITE, OBJECT, PINCH_SITE};
use crate::push::ObjectState;
use crate::scene::MAX_PICTURE;
use crate::step::StepPlan;

/// Model and state.
pub(crate) struct Engine {
    data: MjData<Arc<MjModel>>,
    /// Index into qpos, into qvel and into ctrl of each joint.
    joints: [(usize, usize, usize); 6],
    /// First index into qpos and into qvel of the object's free joint.
    object: Option<(usize, usize)>,
    fingertip: usize,
    pinch: usize,
    step_s: f64,
}

/// The smallest arena (constraints, contacts and scratch) that a model may ask for. Our scenes step in a tenth of it;
/// MuJoCo's own choice is 13 MiB.
const MIN_ARENA_BYTES: u64 = 1 << 20;

/// The version of the linked library, in its own words.
pub(crate) fn linked_version() -> &'static str {
    mujoco_rs::mujoco_version()
}

/// Compiles MJCF text.
pub(crate) fn compile(mjcf: &str, step: StepPlan) -> Result<Arc<MjModel>> {
    check_version()?;
    route_messages();
    if mjcf.contains('\0') {
        return Err(Error::Mjcf { message: "the text holds a NUL character".into() });
    }
    let mut model =
        MjModel::from_xml_string(mjcf).map_err(|e| Error::Mjcf { message: one_line(&e.to_string()) })?;
    model.opt_mut().timestep = step.step_s();
    let arena = model.narena();
    if u64::try_from(arena).is_ok_and(|bytes| bytes < MIN_ARENA_BYTES) {
        // A full arena ends the process in the middle of a step.
        let message =
            format!("arena of {arena} bytes, expected {MIN_ARENA_BYTES} or more: leave <size memory> out");
        return Err(Error::Mjcf { message });
    }
    let global = &model.vis().global;
    for side in [global.offwidth, global.offheight] {
        // A buffer that the driver cannot allocate ends the process.
        if side < 1 || side.unsigned_abs() > MAX_PICTURE.width.min(MAX_PICTURE.height) {
            let message = format!("offscreen buffer of {side} pixels, expected 1 to {}", MAX_PICTURE.width);
            return Err(Error::Mjcf { message });
        }
    }
    Ok(Arc::new(model))
}

/// Compares the linked library's number and words with those of the bindings, which panic on another number and read
/// past the end of structures that have changed.
fn check_version() -> Result<()> {
    // SAFETY: takes nothing, returns a constant of the library and touches no state.
    #[expect(unsafe_code, reason = "mujoco-rs wraps the text only")]
    let number = unsafe { mujoco_rs::mujoco_c::mj_version() };
    let found = if u32::try_from(number) != Ok(mujoco_rs::mujoco_c::mjVERSION_HEADER) {
        dotted(number)
    } else if linked_version() != MUJOCO_VERSION {
        linked_version().into()
    } else {
        return Ok(());
    };
    Err(Error::MujocoVersion { found, expected: MUJOCO_VERSION })
}

/// MuJoCo's version number in the usual notation: 3017000 is 3.17.0 (older libraries count otherwise).
fn dotted(number: i32) -> String {
    if number < 1_000_000 {
        return format!("version number {number}");
    }
    format!("{}.{}.{}", number / 1_000_000, number / 1000 % 1000, number % 1000)
}

/// Sends MuJoCo's messages to the `log` crate instead of the console and a file in the working directory.
fn route_messages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the hook is a global of MuJoCo that must not change while another thread uses the library. Every use
        // of MuJoCo in this crate comes after `compile`, which waits here; a program that drives MuJoCo on its own
        // beside this crate has to create its first world before that.
        #[expect(unsafe_code, reason = "a global of the C library")]
        unsafe {
            install_logging_hook();
        }
    });
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Engine {
    pub(crate) fn new(model: Arc<MjModel>, step: StepPlan) -> Result<Self> {
        let lacks = |kind: &'static str, name: &str| Error::Lacks { kind, name: name.into() };
        let mut joints = [(0, 0, 0); 6];
        for (slot, joint) in joints.iter_mut().zip(JOINTS) {
            let name = joint.name();
            let (q, v) = addresses(&model, name).ok_or_else(|| lacks("joint", name))?;
            let actuator = model.name_to_id(MjtObjBase::mjOBJ_ACTUATOR, name);
            *slot = (q, v, actuator.ok_or_else(|| lacks("actuator", name))?);
        }
        let site =
            |name: &str| model.name_to_id(MjtObjBase::mjOBJ_SITE, name).ok_or_else(|| lacks("site", name));
        let (fingertip, pinch) = (site(FINGERTIP_SITE)?, site(PINCH_SITE)?);
        let object = addresses(&model, OBJECT);
        let data = MjData::try_new(model).map_err(|e| Error::Allocation { message: e.to_string() })?;
        Ok(Self { data, joints, object, fingertip, pinch, step_s: step.step_s() })
    }

    /// Back to time zero with the joints at model angles (radians), goals there, and the object (if any) at a pose.
    pub(crate) fn reset(&mut self, joints_rad: &[f64; 6], object: Option<([f64; 3], [f64; 4])>) {
        self.data.reset();
        for ((q, _, _), rad) in self.joints.into_iter().zip(joints_rad) {
            if let Some(slot) = self.data.qpos_mut().get_mut(q) {
                *slot = *rad;
            }
        }
        self.set_goal(joints_rad);
        if let (Some((q, _)), Some((position, quat))) = (self.object, object) {
            let slots = self.data.qpos_mut().iter_mut().skip(q);
            for (slot, value) in slots.zip(position.into_iter().chain(quat)) {
                *slot = value;
            }
        }
        self.data.forward();
    }

    pub(crate) fn set_goal(&mut self, joints_rad: &[f64; 6]) {
        for ((_, _, u), rad) in self.joints.into_iter().zip(joints_rad) {
            if let Some(slot) = self.data.ctrl_mut().get_mut(u) {
                *slot = *rad;
            }
        }
    }

    /// One physics step. The error names the check of MuJoCo that tripped; MuJoCo's own clock is back at zero then.
    pub(crate) fn step(&mut self) -> std::result::Result<(), &'static str> {
        self.data.step();
        let tripped = |w: MjtWarning| self.data.warning().get(w as usize).is_some_and(|s| s.number > 0);
        // MuJoCo has reset the state by itself when one of these is set.
        for (warning, what) in [
            (MjtWarning::mjWARN_BADQPOS, "position"),
            (MjtWarning::mjWARN_BADQVEL, "velocity"),
            (MjtWarning::mjWARN_BADQACC, "acceleration"),
            (MjtWarning::mjWARN_BADCTRL, "goal"),
        ] {
            if tripped(warning) {
                return Err(what);
            }
        }
        Ok(())
    }

    pub(crate) const fn step_s(&self) -> f64 {
        self.step_s
    }

    pub(crate) fn joints_rad(&self) -> [f64; 6] {
        let qpos = self.data.qpos();
        self.joints.map(|(q, _, _)| qpos.get(q).copied().unwrap_or(0.0))
    }

    pub(crate) const fn has_object(&self) -> bool {
        self.object.is_some()
    }

    pub(crate) fn object(&self) -> Option<ObjectState> {
        let (q, v) = self.object?;
        let &[x, y, z, qw, qx, qy, qz] = self.data.qpos().get(q..)?.first_chunk()?;
        let &[vx, vy, vz, wx, wy, wz] = self.data.qvel().get(v..)?.first_chunk()?;
        let length = |v: [f64; 3]| v.iter().map(|c| c * c).sum::<f64>().sqrt();
        Some(ObjectState {
            position_m: [x, y, z],
            quat_wxyz: [qw, qx, qy, qz],
            speed_m_s: length([vx, vy, vz]),
            spin_rad_s: length([wx, wy, wz]),
        })
    }

    pub(crate) fn fingertip_m(&self) -> [f64; 3] {
        self.data.site_xpos().get(self.fingertip).copied().unwrap_or_default()
    }

    pub(crate) fn pinch_m(&self) -> [f64; 3] {
        self.data.site_xpos().get(self.pinch).copied().unwrap_or_default()
    }

    #[cfg(feature = "render")]
    pub(crate) fn qpos(&self) -> &[f64] {
        self.data.qpos()
    }

    #[cfg(feature = "render")]
    pub(crate) fn model(&self) -> Arc<MjModel> {
        self.data.model_clone()
    }
}

/// First index into qpos and into qvel of a joint.
fn addresses(model: &MjModel, joint: &str) -> Option<(usize, usize)> {
    let id = model.name_to_id(MjtObjBase::mjOBJ_JOINT, joint)?;
    let q = usize::try_from(*model.jnt_qposadr().get(id)?).ok()?;
    Some((q, usize::try_from(*model.jnt_dofadr().get(id)?).ok()?))
}
