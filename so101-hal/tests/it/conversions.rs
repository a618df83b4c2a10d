//! Conversions and calibration file against numbers that LeRobot itself computed, to the last bit.

use serde::Deserialize;
use serde::Serialize as _;
use so101_hal::convert::{SignBit, safe_goal};
use so101_hal::{Calibration, Degrees, JointCalibration, JointVector, Normalized, Percent, Rounding, Ticks};

#[derive(Deserialize)]
struct Reference {
    normalize: Vec<(String, u8, i32, i32, i32, String)>,
    unnormalize: Vec<(String, u8, i32, i32, String, i32)>,
    sign_magnitude: Vec<(u8, i32, u16)>,
    safe_goal: Vec<[String; 4]>,
    calibration_file: String,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../fixtures/lerobot_conversions.json")).unwrap()
}

fn joint(drive_mode: u8, range_min: i32, range_max: i32) -> JointCalibration {
    JointCalibration { id: 1, drive_mode, homing_offset: 0, range_min, range_max }
}

#[test]
fn every_position_gets_lerobots_value_to_the_last_bit() {
    let pairs = reference().normalize;
    for (mode, drive, min, max, raw, want) in &pairs {
        let (j, raw) = (joint(*drive, *min, *max), Ticks(*raw));
        let got = match mode.as_str() {
            "degrees" => j.degrees(raw).unwrap().get(),
            "range_m100_100" => j.normalized(raw).unwrap().get(),
            "range_0_100" => j.percent(raw).unwrap().get(),
            other => panic!("unknown mode {other}"),
        };
        assert_eq!(got, want.parse::<f64>().unwrap(), "{mode} {j:?} {raw}");
    }
    assert_eq!(pairs.len() + reference().unnormalize.len(), 948);
}

#[test]
fn every_value_gets_lerobots_position() {
    for (mode, drive, min, max, value, want) in reference().unnormalize {
        let j = joint(drive, min, max);
        let v: f64 = value.parse().unwrap();
        let got = match mode.as_str() {
            "degrees" => j.ticks_from_degrees(Degrees(v), Rounding::Truncate),
            "range_m100_100" => j.ticks_from_normalized(Normalized(v), Rounding::Truncate),
            "range_0_100" => j.ticks_from_percent(Percent(v), Rounding::Truncate),
            other => panic!("unknown mode {other}"),
        };
        assert_eq!(got.unwrap(), Ticks(want), "{mode} {j:?} {v}");
    }
}

#[test]
fn signed_registers_hold_lerobots_words() {
    let cases = reference().sign_magnitude;
    assert_eq!(cases.len(), 27);
    for (bit, value, word) in cases {
        let bit = match bit {
            10 => SignBit::Bit10,
            11 => SignBit::Bit11,
            15 => SignBit::Bit15,
            other => panic!("unknown sign bit {other}"),
        };
        assert_eq!(bit.encode(value).unwrap(), word, "{value} in {bit:?}");
        assert_eq!(bit.decode(word), value, "{word:#x} in {bit:?}");
    }
}

#[test]
fn a_goal_is_limited_as_lerobot_limits_it() {
    let cases = reference().safe_goal;
    assert_eq!(cases.len(), 4);
    for case in cases {
        let [goal, present, max, want] = case.map(|v| {
            let v: f64 = v.parse().unwrap();
            JointVector { body: [Degrees(v); 5], gripper: Percent(v) }
        });
        assert_eq!(safe_goal(&goal, &present, &max).unwrap(), want);
    }
}

#[test]
fn lerobots_calibration_file_round_trips_byte_for_byte() {
    let text = reference().calibration_file;
    let calibration: Calibration = serde_json::from_str(&text).unwrap();
    assert_eq!(calibration.to_json(), text);

    let mut through_serde = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    calibration.serialize(&mut serde_json::Serializer::with_formatter(&mut through_serde, indent)).unwrap();
    assert_eq!(String::from_utf8(through_serde).unwrap(), text);
}

#[test]
fn a_whole_arm_converts_as_its_joints_do() {
    let text = reference().calibration_file;
    let calibration: Calibration = serde_json::from_str(&text).unwrap();
    let raw = [Ticks(2047), Ticks(1000), Ticks(2500), Ticks(3000), Ticks(4095), Ticks(2900)];
    let q = calibration.to_degrees(&raw).unwrap();
    for ((joint, c), raw) in calibration.iter().zip(raw).take(5) {
        assert_eq!(q.body[joint.index()], c.degrees(raw).unwrap());
    }
    assert_eq!(q.gripper, calibration.joints()[5].percent(raw[5]).unwrap());
    assert_eq!(calibration.to_ticks(&q, Rounding::Nearest).unwrap(), raw);
    let n = calibration.to_normalized(&raw).unwrap();
    let back = calibration.normalized_to_ticks(&n, Rounding::Nearest).unwrap();
    for ((back, raw), (_, c)) in back.iter().zip(raw).zip(calibration.iter()) {
        assert_eq!(back.get(), raw.get().clamp(c.range_min, c.range_max));
    }
}
