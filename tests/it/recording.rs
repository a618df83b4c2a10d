//! What the main job records: the same bytes for the same seed, pictures that show the push, help that stays.

use std::path::Path;

use so101_dataset::Dataset;
use so101_dataset::video::VideoReader;
use so101_hal::kinematics::{Kinematics, Tcp};
use so101_hal::{Frame, Radians};

use crate::programs::{files, record, stdout, succeed};

fn same_but_host(a: &Path, b: &Path) -> Result<(), String> {
    let (a, b) = (files(a), files(b));
    let names = |f: &[(std::path::PathBuf, Vec<u8>)]| f.iter().map(|x| x.0.clone()).collect::<Vec<_>>();
    if names(&a) != names(&b) {
        return Err(format!("other files: {:?} and {:?}", names(&a), names(&b)));
    }
    let differing: Vec<_> = a
        .iter()
        .zip(&b)
        .filter(|(x, y)| x.1 != y.1 && x.0 != Path::new("meta/so101/host.jsonl"))
        .map(|(x, _)| x.0.display().to_string())
        .collect();
    if differing.is_empty() { Ok(()) } else { Err(format!("other bytes: {differing:?}")) }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_gives_other_actions_and_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    let out = succeed(&mut record(&a, 2));
    succeed(&mut record(&b, 2));
    succeed(record(&c, 2).args(["--seed", "8"]));
    same_but_host(&a, &b).unwrap();

    let lines: Vec<String> = stdout(&out).lines().map(str::to_owned).collect();
    assert!(lines[0].starts_with("saved episode=0 frames="), "{lines:?}");
    assert!(lines[1].ends_with("success=none"), "{lines:?}");
    assert_eq!(lines[2..], [a.display().to_string()]);

    let (a, c) = (files(&a), files(&c));
    let bytes = |f: &[(std::path::PathBuf, Vec<u8>)], what: &str| {
        f.iter().find(|x| x.0.to_string_lossy().contains(what)).map(|x| x.1.clone()).unwrap()
    };
    for part in ["data/chunk-000", "videos/observation.images.main", "videos/observation.images.gripper"] {
        assert_ne!(bytes(&a, part), bytes(&c, part), "{part} does not depend on the seed");
    }
}

/// Main camera of the plan: at (750, 0, 450) mm, looking at (250, 0, 50), fovy 45 degrees, 640x480.
fn project_main(p_m: [f64; 3]) -> ([f64; 2], f64) {
    let (eye, target) = ([0.750, 0.0, 0.450], [0.250, 0.0, 0.050]);
    let sub = |a: [f64; 3], b: [f64; 3]| [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let unit = |a: [f64; 3]| a.map(|v| v / dot(a, a).sqrt());
    let forward = unit(sub(target, eye));
    let right = unit(cross(forward, [0.0, 0.0, 1.0]));
    let down = cross(forward, right);
    let d = sub(p_m, eye);
    let depth = dot(d, forward);
    let f = 240.0 / 22.5f64.to_radians().tan();
    ([320.0 + f * dot(d, right) / depth, 240.0 + f * dot(d, down) / depth], depth / f)
}

struct Blob {
    pixels: Vec<[f64; 2]>,
    centre: [f64; 2],
}

fn yellow(frame: &Frame) -> Blob {
    let w = frame.size().width as usize;
    let is_yellow = |p: &[u8]| {
        p[0] > 90 && p[1] > 80 && i32::from(p[2]) * 2 < i32::from(p[1]) && p[0].abs_diff(p[1]) < 60
    };
    let at = frame.rgb().chunks_exact(3).enumerate().filter(|(_, p)| is_yellow(p));
    let pixels: Vec<[f64; 2]> = at.map(|(i, _)| [(i % w) as f64, (i / w) as f64]).collect();
    let n = pixels.len().max(1) as f64;
    let centre = [0, 1].map(|k| pixels.iter().map(|p| p[k]).sum::<f64>() / n);
    Blob { pixels, centre }
}

/// Judges the pictures of one episode: the yellow object ends `to the left`, and the jaw is at it while it moves.
fn judge(frames: &[Frame], states: &[[f64; 6]], left_sign: f64) -> Result<(), String> {
    let hand = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let blobs: Vec<Blob> = frames.iter().map(yellow).collect();
    if let Some(i) = blobs.iter().position(|b| b.pixels.len() < 60) {
        return Err(format!("frame {i} shows {} yellow pixels", blobs[i].pixels.len()));
    }
    let (_, scale) = project_main([0.25, 0.0, 0.015]);
    let (first, last) = (&blobs[0], &blobs[blobs.len() - 1]);
    let moved_mm = (last.centre[0] - first.centre[0]) * left_sign * scale * 1e3;
    if moved_mm < 60.0 {
        return Err(format!("the object moved {moved_mm:.0} mm to the left in the picture"));
    }
    for (i, pair) in blobs.windows(2).enumerate() {
        if (pair[1].centre[0] - pair[0].centre[0]).abs() < 3.0 {
            continue;
        }
        let q: [Radians; 5] = std::array::from_fn(|j| Radians(states[i + 1][j].to_radians()));
        let (tip, scale) = project_main(hand.fk(&q).position_m);
        let near = |b: &Blob| {
            b.pixels.iter().map(|p| (p[0] - tip[0]).hypot(p[1] - tip[1])).fold(f64::MAX, f64::min)
                * scale
                * 1e3
        };
        let distance_mm = near(&pair[0]).min(near(&pair[1]));
        if distance_mm > 15.0 {
            return Err(format!("the object moves in frame {} with the jaw {distance_mm:.0} mm away", i + 1));
        }
    }
    Ok(())
}

#[test]
fn the_pictures_show_the_jaw_pushing_the_yellow_object_to_the_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    succeed(&mut record(&path, 2));
    let task: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path.join("meta/so101/task.json")).unwrap()).unwrap();
    assert_eq!(task["frame"]["left"], "+y");
    let left_sign = match task["frame"]["left_in_image"]["main"].as_str() {
        Some("right") => 1.0,
        Some("left") => -1.0,
        other => panic!("left_in_image.main is {other:?}"),
    };
    // The camera faces the robot: +y of the base has to come out on the same side by projection.
    let step = project_main([0.25, 0.05, 0.015]).0[0] - project_main([0.25, 0.0, 0.015]).0[0];
    assert_eq!(step.signum(), left_sign);

    let set = Dataset::open(&path).unwrap();
    for episode in 0..2 {
        let table = set.rows(episode).unwrap();
        let state = table.f32("observation.state").unwrap();
        let states: Vec<[f64; 6]> =
            state.chunks_exact(6).map(|r| std::array::from_fn(|j| f64::from(r[j]))).collect();
        let mut video =
            VideoReader::open(&set.video_path(episode, "observation.images.main").unwrap()).unwrap();
        let frames: Vec<Frame> = (0..states.len() as u64).map(|i| video.frame(i).unwrap()).collect();
        judge(&frames, &states, left_sign).unwrap();

        let still: Vec<Frame> = frames.iter().map(|_| frames[0].clone()).collect();
        assert!(judge(&still, &states, left_sign).is_err(), "a still picture passes");
        assert!(judge(&frames, &states, -left_sign).is_err(), "a push to the right passes");
        let parked: Vec<[f64; 6]> = states.iter().map(|_| states[0]).collect();
        assert!(judge(&frames, &parked, left_sign).is_err(), "an object that moves by itself passes");
    }
}

#[test]
fn resume_goes_on_where_the_set_ends_and_refuses_another_object_unit_or_rate_with_a_diff() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
    succeed(&mut record(&whole, 3));
    succeed(&mut record(&parts, 1));
    let again = succeed(record(&parts, 3).arg("--resume"));
    assert!(stdout(&again).starts_with("saved episode=1 "), "{}", stdout(&again));
    let rows = |path: &Path| {
        let set = Dataset::open(path).unwrap();
        (0..3).map(|e| set.rows(e).unwrap().f32("action").unwrap().to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&whole), rows(&parts));

    let plan = include_str!("../../tasks/push_left.toml");
    let other_object = dir.path().join("other.toml");
    std::fs::write(&other_object, plan.replace("yellow-large", "blue-small")).unwrap();
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--fps", "20"], &["fps", "10", "20"]),
        (&["--plan", other_object.to_str().unwrap()], &["object", "yellow-large", "blue-small"]),
        (&["--left-of", "camera"], &["left", "+y", "-y"]),
        (&["--no-jitter"], &["jitter", "on", "off"]),
    ];
    for (args, says) in cases {
        let refused = record(&parts, 4).arg("--resume").args(args).output().unwrap();
        let text = crate::programs::stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {text}");
        assert!(says.iter().all(|s| text.contains(s)), "{args:?}: {text}");
    }
    // Sets say their unit beside LeRobot's files.
    let file = parts.join("meta/so101/recording.json");
    let degrees = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, degrees.replace("\"degrees\"", "\"normalized\"")).unwrap();
    let refused = record(&parts, 4).arg("--resume").output().unwrap();
    let text = crate::programs::stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(["unit", "normalized", "degrees"].iter().all(|s| text.contains(s)), "{text}");
}

#[test]
fn a_resumed_recording_has_the_bytes_of_an_undisturbed_one() {
    // 30 rows a second do not divide a millisecond: whatever depends on the time of day of a rig would show.
    let dir = tempfile::tempdir().unwrap();
    let (whole, parts) = (dir.path().join("whole"), dir.path().join("parts"));
    let at_30 = |out: &Path, episodes: u32| {
        let mut c = record(out, episodes);
        c.args(["--fps", "30"]);
        c
    };
    succeed(&mut at_30(&whole, 2));
    succeed(&mut at_30(&parts, 1));
    succeed(at_30(&parts, 2).arg("--resume"));
    same_but_host(&whole, &parts).unwrap();
}

#[cfg(feature = "sim")]
#[test]
fn the_simulated_arm_succeeds_with_the_same_bytes_for_the_same_seed_and_takes_no_other_light() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let sim = |out: &Path| {
        let mut c = record(out, 1);
        c.args(["--rig", "sim"]);
        c
    };
    let out = stdout(&succeed(&mut sim(&a)));
    succeed(&mut sim(&b));
    same_but_host(&a, &b).unwrap();
    assert!(out.contains("success=true\nfirst_try=1/1\n"), "{out}");
    let entry = std::fs::read_to_string(a.join("meta/so101/episodes.jsonl")).unwrap();
    assert!(entry.contains("\"lux\":300.0"), "{entry}");

    let refused = sim(&dir.path().join("c")).args(["--lux", "120"]).output().unwrap();
    let text = crate::programs::stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("--lux 120") && text.contains("300 lux"), "{text}");
}
