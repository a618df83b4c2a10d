//! Tells the linker where this crate's own tests find MuJoCo at run time.

fn main() {
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    let linked = std::env::var_os("CARGO_FEATURE_SIM").is_some();
    let unix = std::env::var_os("CARGO_CFG_UNIX").is_some();
    let Ok(dir) = std::env::var("MUJOCO_DYNAMIC_LINK_DIR") else { return };
    if linked && unix && std::env::var_os("DOCS_RS").is_none() {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{dir}");
        // What so101-sim's build script made for the case that MuJoCo is gone by then.
        if let Ok(speaker) = std::env::var("DEP_SO101_MUJOCO_SPEAKER") {
            println!("cargo::rustc-link-arg=-Wl,-rpath,{speaker}");
        }
    }
}
