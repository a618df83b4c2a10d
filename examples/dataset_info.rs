//! Prints what a LeRobot v3.0 dataset holds.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Value, json};
use so101_dataset::{Dataset, Feature};
use so101_support::cli::{self, Verbosity};
use so101_support::error::{Exit, Result};

/// Print what a LeRobot v3.0 dataset holds: features, cameras, tasks, episodes
///
/// Only the tables are read, so it is quick and works without the videos; absent ones are counted.
///
/// Exit codes: 0 done, 1 the dataset is damaged, 2 usage or no dataset at PATH.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The dataset's folder
    path: PathBuf,

    /// Print a line an episode too
    #[arg(long)]
    episodes: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    verbosity: Verbosity,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::run(cli.verbosity, || run(&cli))
}

fn run(cli: &Cli) -> Result<Exit> {
    let set = Dataset::open(&cli.path)?;
    let text = if cli.json { to_json(&set, cli.episodes)?.to_string() } else { to_text(&set, cli.episodes)? };
    cli::print_result(text.trim_end())?;
    Ok(Exit::Ok)
}

/// Episodes by verdict: succeeded, failed, unjudged.
fn verdicts(set: &Dataset) -> Result<Option<[usize; 3]>> {
    let Some(sidecar) = set.sidecar()? else { return Ok(None) };
    let count = |verdict| sidecar.episodes().iter().filter(|e| e.success == verdict).count();
    Ok(Some([Some(true), Some(false), None].map(count)))
}

fn seconds(set: &Dataset, frames: u64) -> f64 {
    frames as f64 / f64::from(set.info().fps)
}

fn to_text(set: &Dataset, with_episodes: bool) -> Result<String> {
    let info = set.info();
    let mut out = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:<10} {value}");
    };
    line("path", set.root().display().to_string());
    line("version", info.codebase_version.clone());
    line("robot", info.robot_type.clone().unwrap_or_else(|| "not said".into()));
    let (frames, fps) = (info.total_frames, info.fps);
    line(
        "episodes",
        format!("{} ({frames} frames, {:.1} s at {fps} Hz)", info.total_episodes, seconds(set, frames)),
    );
    if let Some([yes, no, none]) = verdicts(set)? {
        line("success", format!("{yes} yes, {no} no, {none} unjudged"));
    }
    for (name, feature) in info.features.iter() {
        line("feature", format!("{name}: {}", describe(feature)));
    }
    for (index, task) in set.tasks().iter().enumerate() {
        line("task", format!("{index}: {task}"));
    }
    line(
        "videos",
        match set.missing_videos() {
            [] if info.features.videos().next().is_none() => "none".into(),
            [] => "all there".into(),
            [first, ..] => {
                format!("{} files are missing, such as {}", set.missing_videos().len(), first.display())
            }
        },
    );
    for e in set.episodes().iter().filter(|_| with_episodes) {
        let tasks = e.tasks.join("; ");
        line(
            "episode",
            format!("{}: {} frames, {:.1} s, {tasks}", e.episode, e.length, seconds(set, e.length)),
        );
    }
    Ok(out)
}

/// Type, shape and names on one line.
fn describe(feature: &Feature) -> String {
    let mut text = format!("{} {:?}", feature.dtype, feature.shape);
    if let Some(codec) = feature.video_info().and_then(|i| i.get("video.codec")).and_then(Value::as_str) {
        let _ = write!(text, " {codec}");
    } else if let Some(names) = feature.element_names().filter(|n| n.len() > 1) {
        let _ = write!(text, " {}", names.join(" "));
    }
    text
}

fn to_json(set: &Dataset, with_episodes: bool) -> Result<Value> {
    let info = set.info();
    let features: serde_json::Map<_, _> = info
        .features
        .iter()
        .map(|(name, f)| {
            (name.to_owned(), json!({"dtype": f.dtype.name(), "shape": f.shape, "names": f.names}))
        })
        .collect();
    let mut value = json!({
        "path": set.root(),
        "version": info.codebase_version,
        "robot_type": info.robot_type,
        "fps": info.fps,
        "episodes": info.total_episodes,
        "frames": info.total_frames,
        "seconds": seconds(set, info.total_frames),
        "success": verdicts(set)?.map(|[yes, no, unjudged]| json!({"yes": yes, "no": no, "unjudged": unjudged})),
        "features": features,
        "tasks": set.tasks(),
        "missing_videos": set.missing_videos(),
    });
    if let (true, Some(map)) = (with_episodes, value.as_object_mut()) {
        map.insert("episode_list".into(), json!(set.episodes()));
    }
    Ok(value)
}
