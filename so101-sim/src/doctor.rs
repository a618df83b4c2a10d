//! What a machine lacks for the simulation, found without starting it, and then by starting it.

use std::path::{Path, PathBuf};

use crate::error::{RENDER_PACKAGES, SETUP_COMMAND};

/// Version of MuJoCo that everything here is made for.
pub const MUJOCO_VERSION: &str = "3.17.0";

/// Where cargo's configuration puts the library, from the root of the repository.
const LIBRARY_DIR: &str = "third_party/mujoco/lib";

/// How a part of the simulation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// There, and works as far as was looked.
    Well,
    /// Missing or broken.
    Ill,
    /// Not looked at, because this build leaves it out.
    NotBuilt,
}

/// One part, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The part.
    pub part: &'static str,
    /// How it is.
    pub health: Health,
    /// What was found, in words.
    pub found: String,
    /// The command that helps; empty when nothing is needed.
    pub remedy: String,
}

impl Finding {
    fn well(part: &'static str, found: impl Into<String>) -> Self {
        Self { part, health: Health::Well, found: found.into(), remedy: String::new() }
    }

    fn ill(part: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part, health: Health::Ill, found: found.into(), remedy: remedy.into() }
    }
}

/// Looks at everything, in the order in which it is needed.
///
/// ```
/// let findings = so101_sim::doctor::examine();
/// assert_eq!(findings[0].part, "mujoco library");
/// ```
#[must_use]
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![library()];
    findings.push(physics());
    findings.extend(graphics_files().into_iter().map(GraphicsFile::finding));
    findings.push(picture());
    findings
}

/// The Debian packages of headless OpenGL whose files are not there; all of them when every file is, since then
/// something in them does not work.
#[must_use]
pub fn missing_render_packages() -> String {
    let missing: Vec<&str> = graphics_files().iter().filter(|f| f.at.is_none()).map(|f| f.package).collect();
    if missing.is_empty() { RENDER_PACKAGES.into() } else { missing.join(" ") }
}

/// The shared library's file.
fn library() -> Finding {
    const PART: &str = "mujoco library";
    // A program that runs has found it, wherever it was started.
    if let Some(path) = loaded_library() {
        return Finding::well(PART, path);
    }
    let dir =
        std::env::var_os("MUJOCO_DYNAMIC_LINK_DIR").map_or_else(|| PathBuf::from(LIBRARY_DIR), PathBuf::from);
    let names = [
        format!("libmujoco.so.{MUJOCO_VERSION}"),
        format!("libmujoco.{MUJOCO_VERSION}.dylib"),
        "mujoco.dll".into(),
    ];
    match names.iter().map(|n| dir.join(n)).find(|p| p.is_file()) {
        Some(path) => Finding::well(PART, path.display().to_string()),
        None => Finding::ill(
            PART,
            format!("no MuJoCo {MUJOCO_VERSION} in {}", dir.display()),
            format!("run `{SETUP_COMMAND}`"),
        ),
    }
}

/// MuJoCo's library in this process, where the system tells (Linux).
fn loaded_library() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
    paths.into_iter().find(|path| path.contains("libmujoco")).map(str::to_owned)
}

/// A file that headless OpenGL needs.
struct GraphicsFile {
    part: &'static str,
    package: &'static str,
    at: Option<PathBuf>,
}

impl GraphicsFile {
    fn finding(self) -> Finding {
        match self.at {
            Some(path) => Finding::well(self.part, path.display().to_string()),
            None => Finding::ill(self.part, "not found", format!("apt-get install {}", self.package)),
        }
    }
}

fn graphics_files() -> [GraphicsFile; 3] {
    let libraries = library_dirs();
    let egl = libraries.iter().map(|d| d.join("libEGL.so.1")).find(|p| p.exists());
    let vendor_dirs = ["/usr/share/glvnd/egl_vendor.d", "/etc/glvnd/egl_vendor.d"];
    let vendor = vendor_dirs.iter().find_map(|d| first_file(Path::new(d), |n| n.ends_with(".json")));
    // The software renderer: a driver file of its own in Mesa up to 24, part of libgallium later.
    let driver = libraries.iter().find_map(|d| {
        let software = first_file(&d.join("dri"), |n| n == "swrast_dri.so");
        software.or_else(|| first_file(d, |n| n.starts_with("libgallium")))
    });
    [
        GraphicsFile { part: "egl", package: "libegl1", at: egl },
        GraphicsFile { part: "egl vendor", package: "libegl-mesa0", at: vendor },
        GraphicsFile { part: "opengl driver", package: "libgl1-mesa-dri", at: driver },
    ]
}

/// Folders of shared libraries on Debian and most other systems, and those of LD_LIBRARY_PATH.
fn library_dirs() -> Vec<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH");
    let mut dirs: Vec<PathBuf> = named.iter().flat_map(std::env::split_paths).collect();
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    dirs.extend([multiarch.as_str(), "/usr/lib64", "/usr/lib", "/usr/local/lib"].map(PathBuf::from));
    dirs
}

fn first_file(dir: &Path, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).ok()?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.into_iter().find(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(&wanted))
}

#[cfg(not(feature = "mujoco"))]
fn physics() -> Finding {
    not_built("physics")
}

#[cfg(not(feature = "render"))]
fn picture() -> Finding {
    not_built("picture")
}

#[cfg(not(feature = "render"))]
fn not_built(part: &'static str) -> Finding {
    Finding {
        part,
        health: Health::NotBuilt,
        found: "this build has no simulation".into(),
        remedy: "build with `--features sim`".into(),
    }
}

#[cfg(feature = "mujoco")]
fn physics() -> Finding {
    use crate::{Scene, StepPlan, World};
    let tried =
        StepPlan::for_rate(30).and_then(|plan| World::new(&Scene::default(), plan)).and_then(|mut world| {
            world.steps(10)?;
            Ok(World::mujoco_version())
        });
    match tried {
        Ok(version) => Finding::well("physics", format!("MuJoCo {version} makes steps")),
        Err(e) => Finding::ill("physics", e.to_string(), rebuild()),
    }
}

#[cfg(feature = "mujoco")]
fn rebuild() -> String {
    format!("run `{SETUP_COMMAND}` and build again")
}

#[cfg(feature = "render")]
fn picture() -> Finding {
    use crate::{Error, Scene, SceneCamera, SimRobot};
    use so101_hal::{FrameSize, Robot as _, VirtualClock};
    let mut camera = SceneCamera::main();
    camera.spec.size = FrameSize::new(64, 48);
    let scene = Scene { cameras: vec![camera], ..Scene::default() };
    let clock = std::sync::Arc::new(VirtualClock::new());
    let packages = || format!("apt-get install {}", missing_render_packages());
    let mut robot = match SimRobot::new(&scene, 30, clock) {
        Ok(robot) => robot,
        Err(e @ Error::NoEgl { .. }) => return Finding::ill("picture", e.to_string(), packages()),
        // Not the pictures' fault.
        Err(e) => return Finding::ill("picture", e.to_string(), rebuild()),
    };
    let colours = |o: &so101_hal::Observation| {
        let rgb = o.frames.first().map_or(&[][..], |f| f.frame.rgb());
        rgb.chunks_exact(3).collect::<std::collections::BTreeSet<_>>().len()
    };
    match robot.observe() {
        Ok(seen) if colours(&seen) > 2 => {
            Finding::well("picture", format!("drawn, {} colours", colours(&seen)))
        }
        Ok(_) => Finding::ill("picture", "drawn, but empty", packages()),
        Err(e) => Finding::ill("picture", e.to_string(), packages()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ill_part_names_what_helps() {
        let findings = examine();
        assert_eq!(findings.len(), 6);
        for f in findings {
            assert_eq!(f.remedy.is_empty(), f.health == Health::Well, "{f:?}");
        }
    }

    #[test]
    fn a_missing_file_names_its_package() {
        let lost = GraphicsFile { part: "egl", package: "libegl1", at: None }.finding();
        assert_eq!((lost.health, lost.remedy.as_str()), (Health::Ill, "apt-get install libegl1"));
    }
}
