use super::*;
use crate::hardware::HardwareRig;

fn args() -> LimitsArgs {
    LimitsArgs {
        arm: ArmArgs { rig: Some(HardwareRig::Emulated), ..ArmArgs::default() },
        seconds: 14.0,
        warmup_s: 1.0,
        fps: 30,
        verbosity: Verbosity { verbose: 0, quiet: true },
        ..LimitsArgs::default()
    }
}

#[test]
fn bounds_are_those_of_the_positions_and_of_the_hand() {
    let kinematics = Kinematics::new(Tcp::LEROBOT_FINGERTIP);
    let mut bounds = Bounds::EMPTY;
    for pan in [-10.0, 25.0, 3.0] {
        bounds.see(&JointVector::<Degrees>::from_row([pan, 0.0, 0.0, 0.0, 0.0, pan + 20.0]), &kinematics);
    }
    assert_eq!((bounds.samples, bounds.min_pos[0], bounds.max_pos[0]), (3, -10.0, 25.0));
    assert_eq!((bounds.min_pos[5], bounds.max_pos[5]), (10.0, 45.0));
    // Pan turns the hand to the right for positive angles: y becomes negative.
    assert!(bounds.max_ee_m[1] > 0.05 && bounds.min_ee_m[1] < -0.1, "{bounds:?}");
    let text = bounds.text(&Tcp::LEROBOT_FINGERTIP);
    assert!(
        text.contains("max_pos = [25.0000, 0.0000") && text.contains("shoulder_pan     -10.0 to   25.0 deg"),
        "{text}"
    );
}

#[test]
fn an_emulated_hand_and_an_emulated_leader_reach_what_they_sway() {
    let by_hand = by_hand(&args(), &Where::Emulated, &Tcp::LEROBOT_FINGERTIP).unwrap();
    let led = with_leader(&args(), &Where::Emulated, &Tcp::LEROBOT_FINGERTIP, |_| ()).unwrap();
    for bounds in [by_hand, led] {
        assert_eq!(bounds.samples, 421);
        // The pan sways 30 degrees about 5.
        assert!(
            (bounds.max_pos[0] - 35.0).abs() < 3.0 && (bounds.min_pos[0] + 25.0).abs() < 3.0,
            "{bounds:?}"
        );
    }
}

#[test]
fn times_that_make_no_sense_are_usage_errors() {
    for bad in [LimitsArgs { seconds: f64::NAN, ..args() }, LimitsArgs { warmup_s: -1.0, ..args() }] {
        assert!(matches!(run(&bad), Err(Error::Usage(_))));
    }
}
