//! Tells the linker where this crate's own tests find MuJoCo at run time, and what speaks up where it is gone by then.
//!
//! A program that is linked to a missing library is stopped by the system's loader before its own first line. So the
//! folders that the loader searches have a second one: it holds a library of MuJoCo's name that only says what to do.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name that programs ask for.
const LIBRARY: &str = "libmujoco.so.3.17.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    let linked = std::env::var_os("CARGO_FEATURE_MUJOCO").is_some();
    let unix = std::env::var_os("CARGO_CFG_UNIX").is_some();
    let Ok(dir) = std::env::var("MUJOCO_DYNAMIC_LINK_DIR") else { return };
    if !linked || !unix || std::env::var_os("DOCS_RS").is_some() {
        return;
    }
    println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
    let native = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    // Without it the loader speaks for itself; nothing else depends on it.
    if native
        && linux
        && let Some(speaker) = speaker(&dir)
    {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", speaker.display());
        // For the build scripts of what depends on this crate: DEP_SO101_MUJOCO_SPEAKER.
        println!("cargo::metadata=speaker={}", speaker.display());
    }
}

/// Builds the library that says that MuJoCo is missing from `dir`, and returns its folder.
fn speaker(dir: &str) -> Option<PathBuf> {
    let real = Path::new(dir).join(LIBRARY);
    println!("cargo::rerun-if-changed={}", real.display());
    let symbols = Command::new("nm").args(["-D", "--defined-only"]).arg(&real).output().ok()?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR")?).join("speaker");
    std::fs::create_dir_all(&out).ok()?;
    let message = format!(
        "error: MuJoCo's library {LIBRARY} is gone from {dir}, where this program looks for it: run `./run setup`, or \
         set LD_LIBRARY_PATH to the folder that has it\\n"
    );
    let mut source = format!(
        "#include <string.h>\n#include <unistd.h>\n\
         __attribute__((constructor)) static void speak(void) {{\n\
         static const char text[] = \"{}\";\n\
         if (write(2, text, strlen(text)) < 0) _exit(4);\n_exit(3);\n}}\n",
        message.replace('"', "\\\"")
    );
    // The loader looks every symbol up before it runs the lines above. C++'s are not asked for.
    for line in String::from_utf8(symbols.stdout).ok()?.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(kind), Some(name)) = (words.next(), words.next()) else { continue };
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.starts_with("_Z") {
            continue;
        }
        let _ = match kind {
            "T" => writeln!(source, "void {name}(void) {{}}"),
            "B" | "D" | "R" => writeln!(source, "char {name}[4096];"),
            _ => Ok(()),
        };
    }
    let file = out.join("speaker.c");
    std::fs::write(&file, source).ok()?;
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-w", "-fno-builtin", &format!("-Wl,-soname,{LIBRARY}"), "-o"])
        .args([&out.join(LIBRARY), &file])
        .output()
        .ok()?;
    built.status.success().then_some(out)
}
