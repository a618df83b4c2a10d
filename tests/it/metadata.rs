//! Gates over the workspace as `cargo metadata` and git see it: edges, licences, banned crates, manifests, files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Licences of dependencies that this project may be distributed with. MPL-2.0 binds the files of `serialport` only.
const ALLOWED_LICENCES: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that the default tree must not hold, and why.
const BANNED: [(&str, &str); 5] = [
    ("arrow2", "unmaintained, RUSTSEC-2025-0038 has no fix"),
    ("parquet2", "the parquet half of arrow2"),
    ("openssl-sys", "a system library that a clone cannot bring along"),
    ("libudev-sys", "a system library that a clone cannot bring along"),
    ("ffmpeg-sys-next", "a system library that a clone cannot bring along"),
];

const MAX_FILE_BYTES: u64 = 2_000_000;
const MAX_HAL_CRATES: usize = 15;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cargo() -> Command {
    let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.current_dir(root());
    c
}

fn stdout(c: &mut Command) -> String {
    let out = c.output().unwrap();
    assert!(out.status.success(), "{c:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The resolved default tree of this machine's platform: what a plain `cargo build` downloads and compiles.
fn metadata() -> Value {
    let rustc = stdout(Command::new("rustc").arg("-vV").current_dir(root()));
    let host = rustc.lines().find_map(|l| l.strip_prefix("host: ")).unwrap();
    let args = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    serde_json::from_str(&stdout(cargo().args(args))).unwrap()
}

fn list<'a>(v: &'a Value, key: &str) -> &'a [Value] {
    v[key].as_array().unwrap()
}

fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap()
}

/// Packages of the workspace.
fn members(metadata: &Value) -> Vec<&Value> {
    let ids: BTreeSet<&str> = list(metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    list(metadata, "packages").iter().filter(|p| ids.contains(text(p, "id"))).collect()
}

fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

fn manifest(package: &Value) -> String {
    std::fs::read_to_string(text(package, "manifest_path")).unwrap()
}

/// Files that git knows or would add; `None` outside of a repository.
fn repository_files() -> Option<Vec<PathBuf>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let out =
        Command::new("git").args(args).current_dir(root()).output().ok().filter(|o| o.status.success())?;
    let names = String::from_utf8(out.stdout).unwrap();
    let files: Vec<PathBuf> = names.split('\0').filter(|n| !n.is_empty()).map(PathBuf::from).collect();
    // A listing without this very file is of some outer repository.
    files.iter().any(|f| f == Path::new("tests/it/metadata.rs")).then_some(files)
}

#[test]
fn library_crates_depend_on_so101_hal_alone_and_without_its_default_features() {
    let metadata = metadata();
    let members = members(&metadata);
    let names: BTreeSet<&str> = members.iter().map(|p| text(p, "name")).collect();
    for package in &members {
        let name = text(package, "name");
        for edge in list(package, "dependencies") {
            let to = text(edge, "name");
            if !names.contains(to) {
                continue;
            }
            // The facade and the examples' own crate are where libraries meet; nobody depends on the facade.
            assert_ne!(to, "so101", "{name} depends on the facade");
            if name == "so101" || !is_published(package) {
                continue;
            }
            assert_eq!(to, "so101-hal", "{name} depends on {to}: libraries know so101-hal only");
            assert_eq!(
                edge["uses_default_features"], false,
                "{name} takes so101-hal with its default features"
            );
        }
    }
    assert!(names.contains("so101-hal") && names.contains("so101-dataset"), "{names:?}");
}

#[test]
fn unpublished_crates_are_reached_through_dev_dependencies_only() {
    let metadata = metadata();
    let members = members(&metadata);
    let private: BTreeSet<&str> =
        members.iter().filter(|p| !is_published(p)).map(|p| text(p, "name")).collect();
    assert!(private.contains("so101-support"), "{private:?}");
    for package in members.iter().filter(|p| is_published(p)) {
        for edge in list(package, "dependencies").iter().filter(|e| private.contains(text(e, "name"))) {
            assert_eq!(
                edge["kind"],
                "dev",
                "{} cannot be published with {}",
                text(package, "name"),
                text(edge, "name")
            );
        }
    }
}

#[test]
fn the_default_tree_has_allowed_licences_and_no_banned_crate() {
    let metadata = metadata();
    let in_tree: BTreeSet<&str> = list(&metadata["resolve"], "nodes").iter().map(|n| text(n, "id")).collect();
    for package in list(&metadata, "packages").iter().filter(|p| in_tree.contains(text(p, "id"))) {
        let name = text(package, "name");
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            panic!("{name} is in the default tree: {why}");
        }
        let licence = package["license"].as_str().unwrap_or("none stated");
        assert!(
            licence_is_allowed(licence),
            "{name} {}: licence {licence} is not on the list",
            package["version"]
        );
    }
}

#[test]
fn a_licence_expression_is_judged_as_spdx_means_it() {
    for good in
        ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(GPL-2.0 OR MIT) AND Unicode-3.0", "MIT AND (ISC OR X)"]
    {
        assert!(licence_is_allowed(good), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "none stated", "(MIT OR ISC) AND X", "", "MIT AND"] {
        assert!(!licence_is_allowed(bad), "{bad}");
    }
}

#[test]
fn every_member_inherits_version_edition_lints_and_minimum_rust() {
    for package in members(&metadata()) {
        let (name, manifest) = (text(package, "name"), manifest(package));
        assert_eq!(text(package, "rust_version"), "1.95", "{name}");
        for line in ["version", "edition", "rust-version", "license"] {
            assert!(
                manifest.contains(&format!("\n{line}.workspace = true")),
                "{name}: {line} is not the workspace's"
            );
        }
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name}: lints are not the workspace's");
        assert!(
            manifest.contains("[lib]\nbench = false"),
            "{name}: libtest would swallow the flags of cargo bench"
        );
    }
}

#[test]
fn a_published_crate_is_ready_for_its_page() {
    for package in members(&metadata()).into_iter().filter(|p| is_published(p)) {
        let name = text(package, "name");
        let folder = Path::new(text(package, "manifest_path")).parent().unwrap();
        let readme =
            folder.join(package["readme"].as_str().unwrap_or_else(|| panic!("{name} names no readme")));
        assert!(
            std::fs::read_to_string(&readme).is_ok_and(|t| t.lines().count() > 5),
            "{}",
            readme.display()
        );
        for key in ["description", "license"] {
            assert!(!text(package, key).is_empty(), "{name}: {key}");
        }
        assert!(!list(package, "keywords").is_empty() && !list(package, "categories").is_empty(), "{name}");
        assert_eq!(
            package["metadata"]["docs"]["rs"]["all-features"], true,
            "{name} has no metadata for docs.rs"
        );
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "NOTICE"] {
        assert!(root().join(licence).is_file(), "{licence}");
    }
}

#[test]
fn a_downstream_crate_of_so101_hal_alone_stays_small() {
    let manifest = "tests/downstream/hal_only/Cargo.toml";
    let args = ["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let tree = stdout(cargo().args(args).args(["--manifest-path", manifest]));
    let crates: BTreeSet<&str> =
        tree.lines().map(|l| l.trim_end_matches(" (*)")).filter(|l| !l.is_empty()).collect();
    assert!(crates.iter().any(|c| c.starts_with("so101-hal ")), "{crates:?}");
    assert!(crates.len() < MAX_HAL_CRATES, "{} crates: {crates:?}", crates.len());
}

#[test]
fn no_file_of_the_repository_is_large() {
    let Some(files) = repository_files() else {
        println!("skipped: file sizes, this is no git checkout");
        return;
    };
    for file in files {
        let bytes = std::fs::metadata(root().join(&file)).map_or(0, |m| m.len());
        assert!(bytes <= MAX_FILE_BYTES, "{} has {bytes} bytes: keep large data out of git", file.display());
    }
}

#[test]
fn no_file_names_a_machine_or_switches_a_test_off() {
    let Some(files) = repository_files() else {
        println!("skipped: forbidden texts, this is no git checkout");
        return;
    };
    // Taken apart, since this file is searched too.
    let everywhere = [
        concat!("/wo", "rk/"),
        concat!("/fa", "rm/"),
        concat!("/tmp/se", "tup"),
        concat!("/ro", "ot/"),
        concat!("index.crates", ".io"),
        concat!("static.crates", ".io"),
        concat!("py", "pi.org"),
        concat!("pythonhos", "ted.org"),
        concat!("registry.np", "mjs.org"),
        concat!("deb.deb", "ian.org"),
    ];
    let in_code =
        [concat!("#[ign", "ore"), concat!("```ign", "ore"), concat!("todo", "!("), concat!("FIX", "ME")];
    for file in files {
        // What cannot be read as text holds no text to search; a deleted file is not there.
        let Ok(body) = std::fs::read_to_string(root().join(&file)) else { continue };
        let is_code = file.extension().is_some_and(|e| e == "rs" || e == "md");
        let wanted = everywhere.iter().chain(if is_code { in_code.iter() } else { [].iter() });
        for bad in wanted {
            let line = body.lines().position(|l| l.contains(bad));
            assert!(line.is_none(), "{}:{}: {bad}", file.display(), line.unwrap_or(0) + 1);
        }
    }
}

#[test]
fn the_readme_is_short_and_its_table_names_every_published_crate() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 180, "the README has {} lines", readme.lines().count());
    for package in members(&metadata()).into_iter().filter(|p| is_published(p)) {
        let name = text(package, "name");
        assert!(
            readme.contains(&format!("| [`{name}`](")) || name == "so101",
            "{name} is not in the README's table"
        );
    }
}

/// Whether an SPDX expression can be met with [`ALLOWED_LICENCES`] alone; `A/B` is the old spelling of `A OR B`.
fn licence_is_allowed(expression: &str) -> bool {
    let spaced =
        expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "\u{1}");
    let tokens: Vec<String> = spaced.split_whitespace().map(|t| t.replace('\u{1}', " WITH ")).collect();
    let mut at = 0;
    let allowed = any_of(&tokens, &mut at);
    allowed && at == tokens.len()
}

fn any_of(tokens: &[String], at: &mut usize) -> bool {
    let mut allowed = all_of(tokens, at);
    while tokens.get(*at).is_some_and(|t| t == "OR") {
        *at += 1;
        // Not short-circuited: the rest has to be parsed.
        allowed |= all_of(tokens, at);
    }
    allowed
}

fn all_of(tokens: &[String], at: &mut usize) -> bool {
    let mut allowed = one(tokens, at);
    while tokens.get(*at).is_some_and(|t| t == "AND") {
        *at += 1;
        allowed &= one(tokens, at);
    }
    allowed
}

fn one(tokens: &[String], at: &mut usize) -> bool {
    let Some(token) = tokens.get(*at) else { return false };
    *at += 1;
    if token != "(" {
        return ALLOWED_LICENCES.contains(&token.as_str());
    }
    let allowed = any_of(tokens, at);
    let closed = tokens.get(*at).is_some_and(|t| t == ")");
    *at += 1;
    allowed && closed
}
