//! LeRobot's command lines, taken as they are: `--robot.port=/dev/ttyACM0` becomes this project's `--port /dev/ttyACM0`.
//!
//! The keys are those of LeRobot 0.6's `lerobot-record`, `lerobot-teleoperate`, `lerobot-calibrate` and their sisters.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::error::{Error, Exit, Result};

/// What becomes of one of LeRobot's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum To {
    /// A flag with the same value.
    Flag(&'static str),
    /// A flag that takes no value, given where LeRobot's value is `true`.
    Switch(&'static str),
    /// A flag whose value has another name here: pairs of LeRobot's and ours.
    Named(&'static str, &'static [(&'static str, &'static str)]),
    /// Nothing: these values are what this program does anyway, others are refused.
    Always(&'static [&'static str]),
    /// Nothing, whatever the value.
    Nothing,
}

/// One key, without its dashes, and what becomes of it.
pub type Key = (&'static str, To);

const SO101_FOLLOWERS: &[&str] = &["so101_follower", "so100_follower", "so_follower"];

/// Keys about the follower.
pub const ROBOT: &[Key] = &[
    ("robot.type", To::Always(SO101_FOLLOWERS)),
    ("robot.port", To::Flag("--port")),
    ("robot.id", To::Flag("--id")),
    ("robot.calibration_dir", To::Flag("--calibration")),
    ("robot.cameras", To::Flag("--cameras")),
    ("robot.max_relative_target", To::Flag("--max-relative-target")),
    ("robot.use_degrees", To::Always(&["true"])),
    ("robot.disable_torque_on_disconnect", To::Always(&["true"])),
];

/// Keys about what drives it.
pub const TELEOP: &[Key] = &[
    (
        "teleop.type",
        To::Named(
            "--teleop",
            &[
                ("so101_leader", "leader"),
                ("so100_leader", "leader"),
                ("so_leader", "leader"),
                ("keyboard", "keyboard"),
                ("keyboard_ee", "keyboard"),
            ],
        ),
    ),
    ("teleop.port", To::Flag("--leader-port")),
    ("teleop.id", To::Flag("--leader-id")),
    ("teleop.calibration_dir", To::Flag("--leader-calibration")),
    ("teleop.use_degrees", To::Always(&["true"])),
    ("teleop_time_s", To::Flag("--seconds")),
    ("fps", To::Flag("--fps")),
    ("display_data", To::Nothing),
];

/// Keys about the one arm that a program handles, leader or follower.
pub const DEVICE: &[Key] = &[
    ("robot.type", To::Named("--role", FOLLOWER_ROLE)),
    ("robot.port", To::Flag("--port")),
    ("robot.id", To::Flag("--id")),
    ("robot.calibration_dir", To::Flag("--calibration")),
    ("robot.use_degrees", To::Always(&["true"])),
    ("teleop.type", To::Named("--role", LEADER_ROLE)),
    ("teleop.port", To::Flag("--port")),
    ("teleop.id", To::Flag("--id")),
    ("teleop.calibration_dir", To::Flag("--calibration")),
    ("teleop.use_degrees", To::Always(&["true"])),
    ("teleop_time_s", To::Flag("--seconds")),
];

const FOLLOWER_ROLE: &[(&str, &str)] =
    &[("so101_follower", "follower"), ("so100_follower", "follower"), ("so_follower", "follower")];
const LEADER_ROLE: &[(&str, &str)] =
    &[("so101_leader", "leader"), ("so100_leader", "leader"), ("so_leader", "leader")];

/// Keys about the dataset.
pub const DATASET: &[Key] = &[
    ("dataset.repo_id", To::Flag("--repo-id")),
    ("dataset.root", To::Flag("--out")),
    ("dataset.single_task", To::Flag("--task")),
    ("dataset.num_episodes", To::Flag("--episodes")),
    ("dataset.fps", To::Flag("--fps")),
    ("dataset.episode_time_s", To::Flag("--episode-s")),
    ("dataset.reset_time_s", To::Flag("--reset-s")),
    ("dataset.push_to_hub", To::Always(&["false"])),
    ("dataset.video", To::Always(&["true"])),
    ("dataset.streaming_encoding", To::Nothing),
    ("dataset.encoder_threads", To::Nothing),
    ("dataset.num_image_writer_processes", To::Nothing),
    ("dataset.num_image_writer_threads_per_camera", To::Nothing),
    ("dataset.video_encoding_batch_size", To::Nothing),
    ("resume", To::Switch("--resume")),
    ("play_sounds", To::Nothing),
];

/// Parses the command line of the process; LeRobot's keys of `tables` are taken too. Prints help and usage errors as
/// `clap` does.
///
/// # Errors
/// The exit code, when there is nothing more to do.
pub fn parse<C: Parser + CommandFactory>(tables: &[&[Key]]) -> Result<C, ExitCode> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let args = match translate::<C>(args, tables) {
        Ok(args) => args,
        Err(error) => {
            crate::cli::say(&format!("error: {}", error.one_line()));
            return Err(Exit::Usage.into());
        }
    };
    C::try_parse_from(args).map_err(|e| {
        let _ = e.print();
        // clap's own codes: 0 for help and version, 2 for usage.
        ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(Exit::Usage as u8))
    })
}

/// The arguments with LeRobot's keys as this program's flags. Everything else stays as it is.
///
/// # Errors
/// [`Error::Usage`] for a dotted key that is not known (with the nearest one), a key that this program has no use for,
/// and a value that it cannot take.
pub fn translate<C: CommandFactory>(
    args: impl IntoIterator<Item = OsString>,
    tables: &[&[Key]],
) -> Result<Vec<OsString>> {
    let command = C::command();
    let has = |flag: &str| {
        let name = flag.trim_start_matches("--");
        command
            .get_arguments()
            .any(|a| a.get_long() == Some(name) || a.get_all_aliases().is_some_and(|all| all.contains(&name)))
    };
    let mut out = Vec::new();
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        if arg == "--" {
            out.push(arg);
            out.extend(args);
            break;
        }
        let Some(body) = arg.to_str().and_then(|a| a.strip_prefix("--")) else {
            out.push(arg);
            continue;
        };
        let (key, value) = match body.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (body.to_owned(), None),
        };
        let known = tables.iter().flat_map(|t| t.iter()).find(|(k, _)| *k == key);
        let Some((_, to)) = known else {
            if key.contains('.') {
                return Err(Error::Usage(unknown(&key, tables)));
            }
            out.push(arg);
            continue;
        };
        // `--fps 30` and `--resume` are this program's own spelling too.
        if !key.contains('.') && value.is_none() && has(&format!("--{key}")) {
            out.push(arg);
            continue;
        }
        let value = match value {
            Some(value) => value,
            None => args
                .next_if(|next| !next.to_string_lossy().starts_with("--"))
                .and_then(|next| next.into_string().ok())
                .ok_or_else(|| Error::Usage(format!("--{key} needs a value: --{key}=VALUE")))?,
        };
        out.extend(words(&key, *to, value, &has)?.into_iter().map(OsString::from));
    }
    Ok(out)
}

/// Our flag and its value.
fn words(key: &str, to: To, value: String, has: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
    let checked = |flag: &str| {
        if has(flag) {
            Ok(())
        } else {
            Err(Error::Usage(format!("--{key} has no use in this program: leave it away")))
        }
    };
    let wrong = |allowed: &str| Err(Error::Usage(format!("--{key}={value}: this program takes {allowed}")));
    match to {
        To::Flag(flag) => {
            checked(flag)?;
            Ok(vec![format!("{flag}={value}")])
        }
        To::Switch(flag) => {
            checked(flag)?;
            match value.to_ascii_lowercase().as_str() {
                "true" => Ok(vec![flag.to_owned()]),
                "false" => Ok(Vec::new()),
                _ => wrong("true or false"),
            }
        }
        To::Named(flag, names) => {
            checked(flag)?;
            match names.iter().find(|(theirs, ours)| *theirs == value || *ours == value) {
                Some((_, ours)) => Ok(vec![format!("{flag}={ours}")]),
                None => wrong(&list(names.iter().map(|(theirs, _)| *theirs))),
            }
        }
        To::Always(values) => {
            if values.contains(&value.to_ascii_lowercase().as_str()) {
                Ok(Vec::new())
            } else {
                wrong(&list(values.iter().copied()))
            }
        }
        To::Nothing => {
            tracing::debug!("--{key}={value} has no meaning here");
            Ok(Vec::new())
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn unknown(key: &str, tables: &[&[Key]]) -> String {
    let nearest = tables
        .iter()
        .flat_map(|t| t.iter())
        .map(|(k, _)| *k)
        .min_by_key(|k| strsim::damerau_levenshtein(k, key));
    match nearest {
        Some(nearest) => {
            format!("--{key} is no key of LeRobot's that this program knows; the nearest is --{nearest}")
        }
        None => format!("--{key} is not known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser, Debug)]
    struct Cli {
        #[arg(long)]
        port: Option<String>,
        #[arg(long)]
        id: Option<String>,
        #[arg(long)]
        teleop: Option<String>,
        #[arg(long)]
        leader_port: Option<String>,
        #[arg(long)]
        episodes: Option<u32>,
        #[arg(long)]
        fps: Option<u32>,
        #[arg(long)]
        resume: bool,
        #[arg(long)]
        cameras: Option<String>,
        rest: Vec<String>,
    }

    fn parsed(line: &[&str]) -> Result<Cli> {
        let args = std::iter::once("program").chain(line.iter().copied()).map(OsString::from);
        Ok(Cli::try_parse_from(translate::<Cli>(args, &[ROBOT, TELEOP, DATASET])?).unwrap())
    }

    #[test]
    fn a_command_line_of_lerobot_is_taken_as_it_is() {
        let cli = parsed(&[
            "--robot.type=so101_follower",
            "--robot.port=/dev/ttyACM0",
            "--robot.id",
            "arm one",
            "--robot.cameras={ front: {type: opencv, index_or_path: 0, width: 640, height: 480, fps: 30}}",
            "--teleop.type=so101_leader",
            "--teleop.port=-odd",
            "--dataset.num_episodes=5",
            "--display_data=true",
            "--resume=true",
        ])
        .unwrap();
        assert_eq!(cli.port.as_deref(), Some("/dev/ttyACM0"));
        assert_eq!(cli.id.as_deref(), Some("arm one"));
        assert_eq!(cli.teleop.as_deref(), Some("leader"));
        assert_eq!(cli.leader_port.as_deref(), Some("-odd"));
        assert_eq!((cli.episodes, cli.resume), (Some(5), true));
        assert!(cli.cameras.unwrap().starts_with("{ front"));
    }

    #[test]
    fn our_own_spelling_stays_as_it_is() {
        let cli = parsed(&["--fps", "20", "--resume", "--port", "x.y", "--", "--robot.port=z"]).unwrap();
        assert_eq!((cli.fps, cli.resume, cli.port.as_deref()), (Some(20), true, Some("x.y")));
        assert_eq!(cli.rest, ["--robot.port=z"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_way_out() {
        for (line, said) in [
            ("--robot.prot=x", "the nearest is --robot.port"),
            ("--robot.type=koch_follower", "this program takes so101_follower, so100_follower, so_follower"),
            ("--robot.use_degrees=false", "this program takes true"),
            ("--teleop.type=gamepad", "so101_leader"),
            ("--dataset.push_to_hub=true", "this program takes false"),
            ("--dataset.single_task=x", "has no use in this program"),
            ("--robot.port", "needs a value"),
        ] {
            let error = parsed(&[line]).unwrap_err().to_string();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
