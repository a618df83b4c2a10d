use super::*;
use crate::clock::Timestamp;
use proptest::prelude::*;

/// A sweep over `min..=max` in steps of at most 500, that ends at `now`.
fn swept(min: i32, max: i32, now: i32) -> JointSweep {
    let feed = |sweep: &mut JointSweep, to: i32| {
        while sweep.now().0 != to {
            let next = sweep.now().0 + (to - sweep.now().0).clamp(-500, 500);
            sweep.feed(Ticks(next.rem_euclid(TURN)), Timestamp::ZERO);
        }
    };
    let mut sweep = JointSweep::new(Ticks(min.rem_euclid(TURN)), Timestamp::ZERO);
    let shift = min.rem_euclid(TURN) - min;
    for to in [max, now] {
        feed(&mut sweep, to + shift);
    }
    sweep
}

/// All joints swept well around `middle`, the roll at its reference.
fn inputs(middle: i32) -> [JointInput; 6] {
    JOINTS.map(|joint| {
        let half = (model_range(joint).0 / 360.0 * f64::from(TURN) / 2.0) as i32;
        let sweep = swept(middle - half, middle + half, middle);
        let at = sweep.now().0;
        JointInput {
            joint,
            id: joint.servo_id(),
            sweep,
            reference: Some(ReferencePoint { at, model: None }),
            mid_pose: None,
        }
    })
}

fn faults(inputs: &[JointInput; 6], order: HomingOrder) -> Vec<SweepFault> {
    match plan(inputs, order, 0.6) {
        Err(Error::Sweep { faults }) => faults,
        other => panic!("{other:?}"),
    }
}

#[test]
fn offsets_stay_within_the_register_and_the_half_turn_becomes_2047() {
    for (offset, wrapped) in [
        (0, 0),
        (2047, 2047),
        (2048, -2047),
        (-2048, -2047),
        (-2047, -2047),
        (4096, 0),
        (-4000, 96),
        (6144, -2047),
    ] {
        assert_eq!(wrap_offset(offset), wrapped, "{offset}");
    }
}

#[test]
fn a_sweep_that_is_too_small_is_refused_with_its_figures() {
    let mut all = inputs(2048);
    all[2].sweep = swept(2000, 2600, 2300);
    all[5].sweep = swept(2000, 2001, 2000);
    let faults = faults(&all, HomingOrder::SweepFirst);
    let joints: Vec<JointId> = faults.iter().map(|f| f.joint).collect();
    assert_eq!(joints, [JointId::ElbowFlex, JointId::Gripper]);
    assert_eq!(
        faults[0].to_string(),
        "elbow_flex was moved by 53 deg, at least 116 deg are needed: move it to both of its stops"
    );
}

#[test]
fn jumps_silence_and_a_whole_turn_are_refused() {
    let mut all = inputs(2048);
    all[0].sweep.feed(Ticks(2048 + 1500), Timestamp::ZERO);
    all[1].sweep.miss();
    all[3].sweep = swept(0, 4200, 2000);
    let kinds: Vec<SweepFaultKind> =
        faults(&all, HomingOrder::SweepFirst).into_iter().map(|f| f.kind).collect();
    assert!(matches!(
        kinds[..],
        [
            SweepFaultKind::Jumped { jumps: 1 },
            SweepFaultKind::Silent { missed: 1 },
            SweepFaultKind::FullTurn { .. }
        ]
    ));
}

#[test]
fn lerobots_order_gives_lerobots_numbers_and_refuses_a_wrap_inside_the_travel() {
    let mut all = inputs(3900);
    for input in &mut all {
        input.mid_pose = Some(input.sweep.now().0 + 20);
    }
    let planned = plan(&all, HomingOrder::MidPoseFirst, 0.6).unwrap();
    for (joint, c) in planned.calibration.iter() {
        // LeRobot: offset = reading - int(4095 / 2), here 3920 - 2047; the middle of the travel is 20 lower.
        assert_eq!(c.homing_offset, 1873, "{joint}");
        if joint == JointId::WristRoll {
            assert_eq!((c.range_min, c.range_max), (0, 4095));
        } else {
            assert_eq!((c.range_min + c.range_max) / 2, 2027, "{joint}");
        }
    }
    all[0].mid_pose = Some(3900 + 1200);
    let fault = faults(&all, HomingOrder::MidPoseFirst)[0];
    assert!(fault.to_string().starts_with("shoulder_pan crosses the wrap"), "{fault}");
    assert!(
        matches!(fault.kind, SweepFaultKind::WrapInside { off_middle } if (off_middle.0 - 105.5).abs() < 0.2)
    );
}

#[test]
fn the_middle_is_bounded_by_what_the_sweep_lacks_and_measured_by_a_reference_pose() {
    let mut all = inputs(100);
    all[0].sweep = swept(100 - 1252, 100 + 1252 - 114, 100); // 10 deg short at the upper end
    let planned = plan(&all, HomingOrder::SweepFirst, 0.6).unwrap();
    let pan = &planned.report[0];
    assert!((pan.middle_within.0 - 5.0).abs() < 0.1 && pan.middle_measured.is_none(), "{pan:?}");
    all[0].reference = Some(ReferencePoint { at: all[0].sweep.min().0 + 1252, model: Some(Degrees(0.0)) });
    let planned = plan(&all, HomingOrder::SweepFirst, 0.6).unwrap();
    // The model's zero is 57 steps above the middle of what was swept: that middle is at -5 deg of the model.
    let measured = planned.report[0].middle_measured.unwrap();
    assert!((measured.0 + 5.0).abs() < 0.1, "{measured}");
    assert!(planned.table().contains("shoulder_pan") && planned.table().contains("-5.0 deg, measured"));
}

#[test]
fn a_roll_that_crosses_its_wrap_is_noted_with_the_angle() {
    let mut all = inputs(2048);
    let roll = JointId::WristRoll.index();
    let at = all[roll].sweep.min().0 + 228; // a reference 20 deg from the lower stop: the wrap is 200 deg above that stop
    all[roll].reference = Some(ReferencePoint { at, model: None });
    let planned = plan(&all, HomingOrder::SweepFirst, 0.6).unwrap();
    assert!(
        matches!(planned.report[roll].notes[..], [SweepNote::RollWraps { beyond }] if (beyond.0 - 120.0).abs() < 0.2),
        "{:?}",
        planned.report[roll].notes
    );
    all[roll].reference = None;
    all[roll].sweep.restart();
    let notes = plan(&all, HomingOrder::SweepFirst, 0.6).unwrap().report[roll].notes.clone();
    assert_eq!(notes, [SweepNote::RollZeroByChance, SweepNote::RollNotSwept]);
}

proptest! {
    #[test]
    fn the_middle_of_any_sweep_reads_2048_and_no_wrap_lies_in_it(middle in -5000..9000_i32, seed in 0..900_i32) {
        let mut all = inputs(middle);
        for input in &mut all {
            let half = 900 + seed;
            if input.joint != JointId::WristRoll {
                input.sweep = swept(middle - half, middle + half, middle + seed / 3);
            }
        }
        let planned = plan(&all, HomingOrder::SweepFirst, 0.6).unwrap();
        for (joint, c) in planned.calibration.iter() {
            prop_assert!((-2047..=2047).contains(&c.homing_offset));
            let shown = |encoder: i32| (encoder - c.homing_offset).rem_euclid(TURN);
            if joint == JointId::WristRoll {
                prop_assert!((shown(middle) - 2048).abs() <= 1);
                continue;
            }
            // What the servo will show at the stops and in the middle is what the file says.
            prop_assert_eq!(shown(middle - 900 - seed), c.range_min);
            prop_assert_eq!(shown(middle + 900 + seed), c.range_max);
            prop_assert!((shown(middle) - 2048).abs() <= 1);
            prop_assert!(c.range_min >= 0 && c.range_max <= 4095);
        }
    }
}
