//! Says when the H.264 library loses its assembly: its own build script drops it without a word.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for variable in ["NASM", "OPENH264_NO_ASM", "PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let codec = env::var_os("CARGO_FEATURE_VIDEO").is_some();
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let asm = match (codec, arch.as_str()) {
        (true, "x86" | "x86_64") if has_nasm() => "present",
        (true, "x86" | "x86_64") => "missing",
        (true, "arm" | "aarch64") => "present",
        _ => "not applicable",
    };
    if asm == "missing" {
        println!(
            "cargo::warning=nasm not found: H.264 takes twice the time; install nasm, then run \
             cargo clean -p openh264-sys2 -p so101-dataset and build again"
        );
    }
    println!("cargo::rustc-env=SO101_H264_ASM={asm}");
}

/// The way in which openh264's build script looks for it.
fn has_nasm() -> bool {
    let program = env::var_os("NASM").unwrap_or_else(|| "nasm".into());
    env::var_os("OPENH264_NO_ASM").is_none()
        && Command::new(program).arg("-v").output().is_ok_and(|o| o.status.success())
}
