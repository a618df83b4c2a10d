//! The driver on emulated servos, as the emulated rig uses them.

use std::sync::Arc;
use std::time::Duration;

use so101_hal::arm::{Arm, ArmOptions, MotionLimits};
use so101_hal::emulator::{Fault, FaultRule};
use so101_hal::registers::GOAL_POSITION;
use so101_hal::{
    Calibration, Clock as _, Degrees, EmulatedServos, EmulatorOptions, JOINTS, JointVector, Percent,
    Rounding, Timestamp, VirtualClock,
};

const PERIOD: Duration = Duration::from_nanos(33_333_333);

/// A smooth movement of all joints at once, at rest at both ends of its 4 s; at most 47 degrees a second.
fn wanted(t: f64) -> JointVector<Degrees> {
    let s = 0.5 - 0.5 * (t * std::f64::consts::TAU / 4.0).cos();
    JointVector {
        body: [60.0, -40.0, 30.0, 45.0, -60.0].map(|d| Degrees(d * s)),
        gripper: Percent(20.0 + 60.0 * s),
    }
}

/// Readings, in bits, of a run of `cycles`, and the furthest that a body joint was from where it was wanted.
fn run(cycles: u32, rule: Option<FaultRule>) -> (Vec<[u64; 6]>, f64) {
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    let calibration = Calibration::model();
    servos.store_calibration(&calibration).unwrap();
    let options = ArmOptions::new(Arc::new(clock.clone())).with_rounding(Rounding::Nearest);
    let mut arm = Arm::connect(servos.bus(), calibration, options).unwrap().into_armed().unwrap();
    if let Some(rule) = rule {
        servos.inject(rule);
    }
    let mut readings = Vec::new();
    let mut worst: f64 = 0.0;
    let settle = 30;
    for i in 0..cycles {
        let t = f64::from(i.saturating_sub(settle)) * PERIOD.as_secs_f64();
        let goal = wanted(t);
        // A reading may be missing on a bad line; it is never wrong.
        let asked = clock.now();
        if let Ok(joints) = arm.read_joints() {
            readings.push(joints.to_row().map(f64::to_bits));
            let truth = servos.true_joints(&calibration);
            for (a, b) in joints.body.iter().zip(truth.body) {
                // Half a tick, and what a servo may have moved while others were asked again.
                let moved = 300.0 * clock.now().since(asked).as_secs_f64();
                assert!((a.0 - b.0).abs() < 0.06 + moved, "read {a}, is at {b}");
            }
        }
        if i > settle {
            for (a, b) in servos.true_joints(&calibration).body.iter().zip(goal.body) {
                worst = worst.max((a.0 - b.0).abs());
            }
        }
        // Where a joint has been silent for too long nothing is sent.
        match arm.send(&goal, clock.now()) {
            Ok(_) | Err(so101_hal::Error::ArmDegraded { .. }) => {}
            Err(e) => panic!("{e}"),
        }
        clock.sleep_until(Timestamp::from_start(PERIOD * (i + 1)));
    }
    (readings, worst)
}

#[test]
fn the_arm_follows_a_smooth_movement_within_a_few_degrees() {
    let (readings, worst) = run(30 + 120, None);
    assert_eq!(readings.len(), 150);
    assert!((1.0..4.5).contains(&worst), "{worst} degrees");
}

#[test]
fn two_runs_read_the_same_to_the_last_bit() {
    assert_eq!(run(90, None), run(90, None));
}

#[test]
fn a_bad_line_costs_readings_and_never_yields_wrong_ones() {
    for fault in [Fault::Drop, Fault::BadChecksum, Fault::Junk, Fault::Duplicate] {
        let (readings, _) = run(200, Some(FaultRule::always(fault).with_probability(0.2)));
        let all = matches!(fault, Fault::Junk | Fault::Duplicate);
        assert!(readings.len() >= 100 && (readings.len() == 200) == all, "{fault:?}: {}", readings.len());
    }
}

#[test]
fn homing_offsets_of_a_real_arm_shift_the_encoder_and_not_the_angles() {
    let text = r#"{"shoulder_pan":{"id":1,"drive_mode":0,"homing_offset":-81,"range_min":841,"range_max":3411},
        "shoulder_lift":{"id":2,"drive_mode":0,"homing_offset":142,"range_min":668,"range_max":3058},
        "elbow_flex":{"id":3,"drive_mode":0,"homing_offset":-117,"range_min":1017,"range_max":3217},
        "wrist_flex":{"id":4,"drive_mode":0,"homing_offset":-19,"range_min":869,"range_max":3209},
        "wrist_roll":{"id":5,"drive_mode":0,"homing_offset":-89,"range_min":0,"range_max":4095},
        "gripper":{"id":6,"drive_mode":0,"homing_offset":104,"range_min":1926,"range_max":3376}}"#;
    let calibration: Calibration = serde_json::from_str(text).unwrap();
    let clock = VirtualClock::new();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), EmulatorOptions::default());
    servos.store_calibration(&calibration).unwrap();
    let options = ArmOptions::new(Arc::new(clock.clone())).with_limits(MotionLimits::unlimited());
    let mut arm = Arm::connect(servos.bus(), calibration, options).unwrap().into_armed().unwrap();
    assert!(arm.reports().iter().zip(calibration.joints()).all(|(r, c)| r.matches(c)));
    let goal = JointVector { body: [12.0, -20.0, 30.0, -5.0, 90.0].map(Degrees), gripper: Percent(50.0) };
    let sent = arm.send(&goal, clock.now()).unwrap().joints;
    clock.sleep_until(clock.now() + Duration::from_secs(2));
    assert_eq!(arm.read_joints().unwrap(), sent);
    for (joint, (a, b)) in JOINTS.into_iter().zip(sent.to_row().into_iter().zip(goal.to_row())) {
        assert!((a - b).abs() < 0.1, "{joint}: {a} for {b}");
        let goal_ticks = f64::from(servos.register(joint, &GOAL_POSITION).unwrap());
        assert_eq!(servos.true_ticks()[joint.index()], goal_ticks);
    }
}
