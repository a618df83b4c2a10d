//! Machines that lack something: typed errors which say what helps, and neither a panic nor an abort.
//!
//! Each test runs this binary once more in an environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use so101_sim::{Error, Scene, StepPlan, World};

/// What the child prints in front of an error.
const LACKS: &str = "lacks: ";

/// Set for a child.
const CHILD: &str = "SO101_SIM_TEST_CHILD";

/// The child of the other tests: tries physics, then a picture, and prints what went wrong. By itself it does nothing.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let tried = StepPlan::for_rate(30).and_then(|plan| World::new(&Scene::default(), plan));
    match tried {
        Err(error) => {
            assert!(matches!(error, Error::MujocoVersion { .. }), "{error:?}");
            println!("{LACKS}{error}");
            for finding in so101_sim::doctor::examine() {
                let needs_it =
                    finding.part == "physics" || (finding.part == "picture" && cfg!(feature = "render"));
                assert!(!needs_it || finding.remedy == "run `./run setup` and build again", "{finding:?}");
            }
        }
        #[cfg(feature = "render")]
        Ok(_) => {
            if let Err(error) = crate::render::push_robot() {
                assert!(matches!(error, Error::NoEgl { .. }), "{error:?}");
                println!("{LACKS}{error}");
            }
        }
        #[cfg(not(feature = "render"))]
        Ok(_) => {}
    }
}

/// The folders in which this binary looks for its libraries.
#[cfg(all(feature = "render", target_os = "linux"))]
fn library_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("MUJOCO_DYNAMIC_LINK_DIR")?);
    folder.join("libmujoco.so.3.17.0").exists().then_some(folder)
}

#[cfg(all(feature = "render", target_os = "linux"))]
#[test]
fn a_program_whose_mujoco_is_gone_says_so_in_the_loaders_place() {
    let Some(folder) = library_folder() else {
        println!("skipped: MUJOCO_DYNAMIC_LINK_DIR is not the folder of libmujoco.so.3.17.0");
        return;
    };
    let Some(out) = run_hidden(folder.to_str().unwrap(), "libmujoco.so*") else {
        println!("skipped: no overlay in a mount namespace over {}", folder.display());
        return;
    };
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{text}");
    assert!(text.starts_with("error: MuJoCo's library libmujoco.so.3.17.0 is gone from"), "{text}");
    assert!(text.contains("run `./run setup`"), "{text}");
}

fn run_child(mut command: Command) -> Output {
    command.args(["--exact", "machine::child", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1").env("RUST_BACKTRACE", "0").output().unwrap()
}

/// What a child said that it lacks. Only a child that ended well counts.
fn lack(out: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    // The test harness does not end its line before the child's.
    text.lines().find_map(|l| l.split_once(LACKS)).map(|(_, error)| error.to_owned())
}

fn this_binary() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// A folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn another_mujoco_than_that_of_the_bindings_is_an_error_that_names_both_and_the_setup() {
    let dir = folder("version");
    for (symbol, value, found) in [
        ("int mj_version(void)", "3016000", "3.16.0"),
        ("int mj_version(void)", "-1", "version number -1"),
        ("const char* mj_versionString(void)", "\"3.17.1\"", "3.17.1"),
    ] {
        let (source, shim) = (dir.join("shim.c"), dir.join("shim.so"));
        std::fs::write(&source, format!("{symbol} {{ return {value}; }}\n")).unwrap();
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&shim, &source]).status();
        if !built.is_ok_and(|status| status.success()) {
            println!("skipped: no C compiler (cc) for a library with another version");
            return;
        }
        let mut command = Command::new(this_binary());
        command.env("LD_PRELOAD", &shim);
        let expected =
            format!("linked against mujoco {found}, expected 3.17.0: run `./run setup` and build again");
        assert_eq!(lack(&run_child(command)), Some(expected));
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// Hides files of a folder from one command: an overlay in a mount namespace, gone with the command.
#[cfg(feature = "render")]
const HIDE: &str = r#"
set -e
top=$1 dir=$2 files=$3; shift 3
mount -t tmpfs none "$top"
mkdir "$top/upper" "$top/work"
mount -t overlay overlay -o "lowerdir=$dir,upperdir=$top/upper,workdir=$top/work" "$dir"
(cd "$dir" && rm -f $files)
echo hidden
exec "$@"
"#;

/// The child where `files` (patterns of the shell) of `dir` are hidden, `None` where that cannot be done.
#[cfg(feature = "render")]
fn run_hidden(dir: &str, files: &str) -> Option<Output> {
    let top = folder("hidden");
    // As root first; else as the root of a namespace.
    let run = |flags: &str| {
        let mut command = Command::new("unshare");
        command.args([flags, "sh", "-c", HIDE, "sh"]).arg(&top).args([dir, files]).arg(this_binary());
        Some(run_child(command)).filter(|out| out.stdout.starts_with(b"hidden"))
    };
    let can = Command::new("unshare").args(["-m", "true"]).output().ok()?.status.success();
    let out = if can { run("-m") } else { run("-rm") };
    std::fs::remove_dir_all(top).unwrap();
    out
}

#[cfg(feature = "render")]
#[test]
fn a_missing_file_of_headless_opengl_is_an_error_that_names_its_package_alone() {
    if lack(&run_child(Command::new(this_binary()))).is_some() {
        println!("skipped: headless OpenGL is not complete here, so nothing can be hidden from it");
        return;
    }
    let libraries = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    for (dir, files, package) in [
        (libraries.as_str(), "libEGL.so*", "libegl1"),
        ("/usr/share/glvnd/egl_vendor.d", "*.json", "libegl-mesa0"),
        (libraries.as_str(), "libgallium* dri/*", "libgl1-mesa-dri"),
    ] {
        let Some(out) = run_hidden(dir, files) else {
            println!("skipped: no overlay in a mount namespace over {dir}");
            return;
        };
        let lacks = lack(&out).unwrap_or_default();
        assert!(lacks.starts_with("no headless OpenGL through EGL"), "{lacks}");
        assert!(
            lacks.contains(&format!(": apt-get install {package}, then look at `sim_doctor`")),
            "{lacks}"
        );
    }
}

#[cfg(feature = "render")]
#[test]
fn headless_opengl_that_does_not_come_up_is_an_error_that_names_every_package() {
    if lack(&run_child(Command::new(this_binary()))).is_some() {
        println!("skipped: headless OpenGL is not complete here, so nothing can be broken in it");
        return;
    }
    let empty = folder("empty-egl");
    for name in ["libEGL.so", "libEGL.so.1"] {
        std::fs::write(empty.join(name), "").unwrap();
    }
    for (variable, value) in [
        ("LD_LIBRARY_PATH", empty.as_path()),
        ("__EGL_VENDOR_LIBRARY_FILENAMES", Path::new("/nonexistent.json")),
        // Not a driver of Mesa.
        ("GALLIUM_DRIVER", Path::new("none")),
    ] {
        let mut command = Command::new(this_binary());
        command.env(variable, value);
        let lacks = lack(&run_child(command)).unwrap_or_default();
        assert!(lacks.starts_with("no headless OpenGL through EGL"), "{variable}: {lacks}");
        assert!(
            lacks.contains("apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri,"),
            "{variable}: {lacks}"
        );
    }
    std::fs::remove_dir_all(empty).unwrap();
}
