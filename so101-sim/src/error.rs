//! What can go wrong in this crate.

#[cfg(feature = "mujoco")]
use so101_hal::BoxError;
use so101_hal::FrameSize;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The command that brings MuJoCo, named in every message that needs it.
pub const SETUP_COMMAND: &str = "./run setup";

/// The Debian packages that headless rendering needs.
pub const RENDER_PACKAGES: &str = "libegl1 libegl-mesa0 libgl1-mesa-dri";

/// Everything that can go wrong in this crate: what, where, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that has to be finite is not.
    #[error("{what} is {value}, which is not a finite number")]
    NonFinite {
        /// What it was meant to be.
        what: &'static str,
        /// The value.
        value: f64,
    },

    /// A number lies outside of what a scene can have.
    #[error("{what} is {value}, expected {min} to {max}")]
    OutOfRange {
        /// What it was meant to be.
        what: &'static str,
        /// The value.
        value: f64,
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },

    /// A control rate that no whole number of physics steps can serve.
    #[error("a control rate of {fps} Hz is not possible, expected 1 to {max}")]
    Rate {
        /// The rate.
        fps: u32,
        /// The largest allowed.
        max: u32,
    },

    /// A camera asks for pictures larger than the offscreen buffer may become.
    #[error("camera {camera} asks for {size}, the offscreen buffer ends at {max}: use a smaller picture")]
    CameraSize {
        /// Name of the camera.
        camera: String,
        /// The size asked for.
        size: FrameSize,
        /// The largest size.
        max: FrameSize,
    },

    /// A name that is empty, used twice or not fit for MJCF.
    #[error("camera name {name:?} is not usable: use letters, digits, - and _, each name once")]
    CameraName {
        /// The name.
        name: String,
    },

    /// The scene has no object, but an object was placed (or the other way round).
    #[error("{what}")]
    Object {
        /// What does not fit.
        what: &'static str,
    },

    /// MuJoCo refused a model.
    #[error("mjcf refused by mujoco: {message}")]
    Mjcf {
        /// What MuJoCo said.
        message: String,
    },

    /// A model lacks something that this crate drives or reads.
    #[error("the model has no {kind} named {name:?}")]
    Lacks {
        /// Joint, actuator, camera, site or body.
        kind: &'static str,
        /// The name looked for.
        name: String,
    },

    /// The linked MuJoCo is another version than the bindings.
    #[error("linked against mujoco {found}, expected {expected}: run `{SETUP_COMMAND}` and build again")]
    MujocoVersion {
        /// What was found.
        found: String,
        /// What the bindings are made for.
        expected: &'static str,
    },

    /// MuJoCo could not allocate its state.
    #[error("mujoco could not allocate its state for this scene: {message}")]
    Allocation {
        /// What MuJoCo said.
        message: String,
    },

    /// The physics left the finite numbers and was stopped.
    #[error("the simulation diverged at {at_s:.3} s ({what}): reset it, and send smaller steps")]
    Diverged {
        /// Simulated time since the reset in seconds.
        at_s: f64,
        /// Which of MuJoCo's checks tripped.
        what: &'static str,
    },

    /// No offscreen OpenGL context can be had.
    #[error(
        "no headless OpenGL through EGL ({message}): apt-get install {packages}, then look at `sim_doctor`"
    )]
    NoEgl {
        /// What EGL said.
        message: String,
        /// Debian packages whose files are missing.
        packages: String,
    },

    /// Rendering failed after it had begun.
    #[error("rendering camera {camera}: {message}")]
    Render {
        /// Name of the camera.
        camera: String,
        /// What went wrong.
        message: String,
    },

    /// Cameras were asked for in a build without the feature `render`.
    #[error("this build has no cameras: enable the feature `render` of so101-sim")]
    NoRenderFeature,

    /// An error of the hardware layer's vocabulary.
    #[error(transparent)]
    Hal(#[from] so101_hal::Error),
}

#[cfg(feature = "mujoco")]
impl Error {
    /// The same as an error of the hardware layer, for its [`Robot`](so101_hal::Robot) trait.
    pub(crate) fn into_hal(self, what: &'static str) -> so101_hal::Error {
        match self {
            Self::Hal(e) => e,
            Self::NonFinite { what, value } => so101_hal::Error::NonFinite { what, value },
            other => so101_hal::Error::External { what, source: BoxError::from(other) },
        }
    }
}

/// `value`, or the error that names it when it is not finite.
pub(crate) fn finite(what: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFinite { what, value }) }
}

/// `value`, or the error that names it when it is not within `min` to `max`.
pub(crate) fn within(what: &'static str, value: f64, min: f64, max: f64) -> Result<f64> {
    finite(what, value)?;
    if (min..=max).contains(&value) { Ok(value) } else { Err(Error::OutOfRange { what, value, min, max }) }
}
