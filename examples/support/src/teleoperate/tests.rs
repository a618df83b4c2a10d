use super::*;

fn args() -> TeleoperateArgs {
    TeleoperateArgs {
        arm: ArmArgs { rig: Some(HardwareRig::Emulated), ..ArmArgs::default() },
        fps: 50,
        max_gap: 25.0,
        key_step: 2.0,
        verbosity: Verbosity { verbose: 0, quiet: true },
        ..TeleoperateArgs::default()
    }
}

fn session(args: &TeleoperateArgs, at_end: AtEnd) -> Result<Session> {
    let teleop = teleoperator(args, &Where::Emulated, Pace::Virtual, &Arc::default())?;
    Session::open(&args.arm, Pace::Virtual, teleop, &FollowerOptions { max_relative_target: None, at_end })
}

#[test]
fn an_emulated_pair_follows_closely_from_its_first_action_on() {
    let mut session = session(&args(), AtEnd::Back).unwrap();
    let mut goals = Vec::new();
    let summary = session
        .run(50, |seen| {
            goals.push(seen.goal.to_row());
            if seen.since_start >= Duration::from_secs(4) { Goes::End } else { Goes::On }
        })
        .unwrap();
    session.finish().unwrap();
    assert_eq!((summary.actions, summary.late, summary.lasted), (201, 0, Duration::from_secs(4)));
    assert!(summary.bus_cycles >= 598 && summary.overruns == 0, "{summary}");
    // 30 degrees of sway in 3 s is up to 63 degrees a second, 3 of them in the time that the loop takes.
    assert!(summary.largest_lag.iter().all(|lag| *lag < 15.0), "{summary:?}");
    let moved = goals.iter().map(|g| g[0]).fold(0.0_f64, |a, b| a.max(b.abs()));
    assert!(moved > 20.0, "the hand has hardly moved: {moved}");
    assert!(goals[0].iter().zip(goals[1]).all(|(a, b)| (a - b).abs() < 2.5), "{goals:?}");
    assert!(summary.to_string().contains("rate_hz=50.0"), "{summary}");
}

#[test]
fn the_same_pair_moves_the_same_way_again() {
    let run = || {
        let mut session = session(&args(), AtEnd::Hold).unwrap();
        let mut rows = Vec::new();
        let end = |seen: &Seen| {
            rows.push(seen.snapshot.joints.to_row());
            if seen.since_start >= Duration::from_secs(1) { Goes::End } else { Goes::On }
        };
        session.run(50, end).unwrap();
        rows
    };
    assert_eq!(run(), run());
}

#[test]
fn a_script_is_played_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nod.toml");
    std::fs::write(
        &path,
        "name = \"nod\"\n[[waypoint]]\nat_s = 0\njoints = [0, 0, 0, 0, 0, 50]\n[[waypoint]]\nat_s = 1\njoints = [0, 0, 0, 20, 0, 50]\n",
    )
    .unwrap();
    let args = TeleoperateArgs { teleop: TeleopChoice::Script, script: Some(path.clone()), ..args() };
    let mut session = session(&args, AtEnd::Relax).unwrap();
    let mut wrist = 0.0;
    let summary = session
        .run(50, |seen| {
            wrist = seen.goal.body[3].0;
            Goes::On
        })
        .unwrap();
    assert!(summary.lasted < Duration::from_secs(2) && (wrist - 20.0).abs() < 1e-9, "{summary} {wrist}");
    std::fs::write(&path, "[[waypoint]]\nat_s = 0\njoints = [0]\n").unwrap();
    let err = load_script(&path).unwrap_err().one_line();
    assert!(err.contains("nod.toml"), "{err}");
}

#[test]
fn arms_that_are_too_far_apart_are_refused_before_any_torque() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("far.json");
    std::fs::write(&path, r#"{"waypoint": [{"at_s": 0, "joints": [90, 0, 0, 0, 0, 50]}]}"#).unwrap();
    let teleop = load_script(&path).unwrap().with_approach(CouplingOptions::default());
    let args = args();
    let err =
        Session::open(&args.arm, Pace::Virtual, Box::new(teleop), &FollowerOptions::default()).unwrap_err();
    assert!(matches!(&err, Error::Refused(m) if m.contains("shoulder_pan leader 90.0")), "{err}");
}

#[test]
fn numbers_that_make_no_sense_are_usage_errors() {
    for bad in [
        TeleoperateArgs { seconds: Some(f64::NAN), ..args() },
        TeleoperateArgs { max_gap: 0.0, ..args() },
        TeleoperateArgs { key_step: -1.0, ..args() },
        TeleoperateArgs { seconds: Some(1e300), ..args() },
    ] {
        assert!(matches!(check(&bad), Err(Error::Usage(_))), "{bad:?}");
    }
}
