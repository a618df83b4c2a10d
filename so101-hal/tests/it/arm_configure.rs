//! Registers of a profile: written once, read back, locked again.

use so101_hal::arm::{OffsetMismatch, PidGains, RegisterWrite, apply_settings};
use so101_hal::emulator::{Fault, FaultRule};
use so101_hal::protocol::ServoId;
use so101_hal::registers::{self, Register};
use so101_hal::{Arm, Calibration, Error, JOINTS, JointId, ServoProfile};

use crate::arm_support::Rig;

const BOTH: [JointId; 2] = [JointId::ShoulderPan, JointId::Gripper];

#[test]
fn a_fresh_follower_gets_what_lerobot_writes_and_register_48() {
    let rig = Rig::new();
    let mut arm = rig.relaxed();
    for joint in JOINTS {
        rig.servos.set_register(joint, &registers::PHASE, 12 | 0x10).unwrap();
    }
    let configured = arm.configure(&ServoProfile::follower()).unwrap();
    let all: [(Register, i32); 8] = [
        (registers::RETURN_DELAY_TIME, 0),
        (registers::MAXIMUM_ACCELERATION, 254),
        (registers::ACCELERATION, 254),
        (registers::PHASE, 12),
        (registers::OPERATING_MODE, 0),
        (registers::P_COEFFICIENT, 16),
        (registers::I_COEFFICIENT, 0),
        (registers::D_COEFFICIENT, 32),
    ];
    for (register, value) in all {
        assert_eq!(rig.register(&register), [value; 6], "{}", register.name);
    }
    for (register, value, others) in [
        (registers::MAX_TORQUE_LIMIT, 500, 1000),
        (registers::TORQUE_LIMIT, 500, 1000),
        (registers::PROTECTION_CURRENT, 250, 500),
        (registers::OVERLOAD_TORQUE, 25, 80),
    ] {
        assert_eq!(
            BOTH.map(|j| rig.servos.register(j, &register).unwrap()),
            [others, value],
            "{}",
            register.name
        );
    }
    assert_eq!(rig.register(&registers::LOCK), [1; 6]);
    assert_eq!(rig.torques(), [0; 6]);
    assert!(configured.needs_power_cycle());
    let p = configured.written.iter().find(|w| w.register == registers::P_COEFFICIENT).unwrap();
    assert_eq!((p.joint, p.from, p.to), (JointId::ShoulderPan, 32, 16));

    // It outlives the power: what is written then is what no EEPROM holds.
    rig.servos.power_cycle();
    assert_eq!(rig.register(&registers::P_COEFFICIENT), [16; 6]);
    assert_eq!(rig.servos.register(JointId::Gripper, &registers::TORQUE_LIMIT).unwrap(), 500);
}

#[test]
fn a_second_configure_writes_no_register_at_all() {
    for profile in [ServoProfile::follower(), ServoProfile::leader()] {
        let rig = Rig::new();
        let mut arm = rig.relaxed();
        let first = arm.configure(&profile).unwrap();
        assert!(!first.written.is_empty());
        let seen = std::sync::Arc::clone(&arm.bus_mut().seen);
        let writes = || std::mem::take(&mut seen.lock().unwrap().writes);
        assert!(writes().len() > first.written.len());
        let second = arm.configure(&profile).unwrap();
        assert_eq!((second.written, writes()), (vec![], vec![]));
        // Nor does connecting again.
        drop(arm);
        let mut arm = rig.relaxed();
        let fresh = std::sync::Arc::clone(&arm.bus_mut().seen);
        assert!(arm.configure(&profile).unwrap().written.is_empty());
        assert!(fresh.lock().unwrap().writes.is_empty());
    }
}

#[test]
fn the_eeprom_is_open_for_the_writes_alone_and_locked_first_of_all_when_one_fails() {
    let rig = Rig::new();
    let mut arm = rig.relaxed();
    arm.configure(&ServoProfile::follower()).unwrap();
    let seen = std::sync::Arc::clone(&arm.bus_mut().seen);
    seen.lock().unwrap().writes.clear();
    let pid = PidGains { p: 20, i: 0, d: 32 };
    arm.configure(&ServoProfile::follower().with_pid(Some(pid))).unwrap();
    let want: Vec<(u8, u8, Vec<u8>)> =
        (1..=6).flat_map(|id| [(id, 55, vec![0]), (id, 21, vec![20]), (id, 55, vec![1])]).collect();
    assert_eq!(seen.lock().unwrap().writes, want);

    // A profile that changes RAM alone opens nothing.
    seen.lock().unwrap().writes.clear();
    rig.servos.bus_write(JointId::Gripper, &registers::TORQUE_LIMIT, 900);
    arm.configure(&ServoProfile::follower().with_pid(Some(pid))).unwrap();
    assert_eq!(seen.lock().unwrap().writes, [(6, 48, vec![0xf4, 1])]);
}

/// Writes a register as another program on the bus would.
trait Meddle {
    fn bus_write(&self, joint: JointId, register: &Register, value: i32);
}

impl Meddle for so101_hal::EmulatedServos {
    fn bus_write(&self, joint: JointId, register: &Register, value: i32) {
        use so101_hal::ServoBus as _;
        self.bus().write_register(joint.into(), register, value).unwrap();
    }
}

#[test]
fn a_register_that_does_not_take_is_an_error_and_the_lock_is_closed_all_the_same() {
    use so101_hal::arm::Setting;
    let rig = Rig::new();
    let mut bus = rig.spy();
    // The present position is read-only in the servo.
    let settings = [
        Setting::value(registers::P_COEFFICIENT, 16),
        Setting::value(registers::PRESENT_POSITION, 77),
        Setting::value(registers::D_COEFFICIENT, 1),
    ];
    let err = apply_settings(&mut bus, JointId::ElbowFlex, ServoId::ARM[2], &settings, 3).unwrap_err();
    assert!(
        matches!(
            err,
            Error::RegisterNotSet {
                id: 3,
                register: "Present_Position",
                wanted: 77,
                got: Some(2048),
                tries: 3
            }
        ),
        "{err}"
    );
    assert_eq!(rig.servos.register(JointId::ElbowFlex, &registers::LOCK).unwrap(), 1);
    assert_eq!(rig.servos.register(JointId::ElbowFlex, &registers::D_COEFFICIENT).unwrap(), 32);
}

#[test]
fn a_servo_that_was_left_unlocked_is_locked() {
    let rig = Rig::new();
    let mut arm = rig.relaxed();
    arm.configure(&ServoProfile::follower()).unwrap();
    // As LeRobot's disconnect leaves it.
    rig.servos.bus_write(JointId::WristFlex, &registers::LOCK, 0);
    let configured = arm.configure(&ServoProfile::follower()).unwrap();
    let [RegisterWrite { joint: JointId::WristFlex, from: 0, to: 1, .. }] = configured.written.as_slice()
    else {
        panic!("{:?}", configured.written)
    };
    assert_eq!(rig.register(&registers::LOCK), [1; 6]);
}

#[test]
fn on_a_bad_line_every_register_ends_up_right_or_the_call_says_which_is_not() {
    for fault in [Fault::Drop, Fault::BadChecksum, Fault::BitFlip, Fault::Duplicate, Fault::Truncate] {
        let rig = Rig::new();
        let mut arm = rig.relaxed();
        rig.servos.inject(FaultRule::always(fault).with_probability(0.1));
        let mut calls = 0;
        let said = loop {
            calls += 1;
            match arm.configure(&ServoProfile::follower()) {
                Ok(_) => break calls,
                Err(Error::NoReply { .. } | Error::RegisterNotSet { .. }) if calls < 50 => {}
                Err(e) => panic!("{fault:?}: {e}"),
            }
        };
        rig.servos.clear_faults();
        assert!(arm.configure(&ServoProfile::follower()).unwrap().written.is_empty(), "{fault:?} {said}");
        assert_eq!(rig.register(&registers::LOCK), [1; 6]);
    }
}

#[test]
fn an_arm_that_somebody_else_has_energised_is_not_configured() {
    let rig = Rig::new();
    let mut arm = rig.relaxed();
    rig.servos.bus_write(JointId::WristRoll, &registers::TORQUE_ENABLE, 1);
    let err = arm.configure(&ServoProfile::follower()).unwrap_err();
    assert!(matches!(&err, Error::TorqueFoundOn { ids } if ids == &[5]), "{err}");
    arm.torque_off().unwrap();
    arm.configure(&ServoProfile::follower()).unwrap();
}

#[test]
fn a_calibration_is_stored_where_it_differs_and_then_the_arm_matches_it() {
    let rig = Rig::new();
    rig.servos.set_register(JointId::WristRoll, &registers::HOMING_OFFSET, -89).unwrap();
    let options = rig.options().with_offset_mismatch(OffsetMismatch::Accept);
    let found = Arm::connect(rig.spy(), Calibration::model(), options).unwrap();
    let mut arm = found.into_relaxed().unwrap();
    let stored = arm.store_calibration().unwrap();
    assert_eq!(stored.written.len(), 1);
    let write = &stored.written[0];
    assert_eq!((write.joint, write.from, write.to), (JointId::WristRoll, -89, 0));
    assert!(arm.reports().iter().zip(Calibration::model().joints()).all(|(r, c)| r.matches(c)));
    assert!(arm.store_calibration().unwrap().written.is_empty());
    assert_eq!(rig.register(&registers::LOCK), [1; 6]);
}

#[test]
fn a_profile_is_stored_with_the_dataset_and_refuses_what_it_does_not_know() {
    let text = serde_json::to_string(&ServoProfile::leader()).unwrap();
    assert_eq!(text, r#"{"return_delay_2us":0,"acceleration":254,"pid":null,"gripper":null}"#);
    let odd = text.replace("\"pid\"", "\"pdi\"");
    assert!(serde_json::from_str::<ServoProfile>(&odd).is_err());
}
