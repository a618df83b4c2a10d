use super::*;

fn ids(bench: &EmulatedBench) -> [(i32, i32, i32); 6] {
    JOINTS.map(|j| {
        let read = |r| bench.motors[j.index()].register(j, r).unwrap();
        (read(&registers::ID), read(&registers::BAUD_RATE), read(&registers::LOCK))
    })
}

fn setup(joint: JointId, bench: &mut EmulatedBench) -> Done {
    let found = only_servo(bench, joint).unwrap().unwrap();
    set_up(bench, joint, found).unwrap()
}

#[test]
fn every_motor_gets_its_id_and_the_rate_of_the_bus_and_keeps_them_without_power() {
    let mut bench = EmulatedBench::new();
    for joint in JOINTS.into_iter().rev() {
        let done = setup(joint, &mut bench);
        assert_eq!(done.written == 0, joint == JointId::ShoulderPan, "{done:?}");
    }
    bench.motors.iter().for_each(so101_hal::EmulatedServos::power_cycle);
    assert_eq!(ids(&bench), [1, 2, 3, 4, 5, 6].map(|id| (id, 0, 1)));
    for joint in JOINTS {
        let done = setup(joint, &mut bench);
        assert_eq!(done.written, 0, "a second time writes nothing: {}", line(&done));
    }
}

#[test]
fn a_motor_that_was_used_before_is_found_at_its_own_id_and_rate() {
    let mut bench = EmulatedBench::new();
    let done = setup(JointId::ElbowFlex, &mut bench);
    assert_eq!((done.was.id.get(), done.was.rate), (7, BaudRate::K500));
    assert_eq!(line(&done), "elbow_flex: id 7 -> 3, 500000 -> 1000000 baud, read back");
}

#[test]
fn two_motors_are_refused_and_nothing_is_written() {
    let mut bench = EmulatedBench::new();
    let before = ids(&bench);
    bench.forgotten = Some(JointId::ElbowFlex);
    let err = only_servo(&mut bench, JointId::Gripper).unwrap_err();
    assert!(matches!(err, Error::Refused(_)), "{err}");
    bench.on_wire = vec![JointId::Gripper, JointId::ElbowFlex];
    let Look::Several(what) = look(&mut bench).unwrap() else { panic!("two are not one") };
    assert_eq!(what, "id 1 at 1000000 baud; id 7 at 500000 baud");
    assert_eq!(ids(&bench), before);
    bench.on_wire.clear();
    assert_eq!(look(&mut bench).unwrap(), Look::None);
}

#[test]
fn a_servo_of_another_model_is_refused_before_it_is_renamed() {
    let mut bench = EmulatedBench::new();
    let gripper = &bench.motors[JointId::Gripper.index()];
    gripper.set_register(JointId::Gripper, &registers::MODEL_NUMBER, 1284).unwrap();
    let found = only_servo(&mut bench, JointId::Gripper).unwrap().unwrap();
    let err = set_up(&mut bench, JointId::Gripper, found).unwrap_err();
    assert!(matches!(err, Error::Hal(so101_hal::Error::ServoModel { model: 1284, .. })), "{err}");
    assert_eq!(ids(&bench)[5].0, 1);
}

#[test]
fn a_name_of_a_motor_is_one_of_six() {
    assert_eq!(joint("wrist_roll"), Ok(JointId::WristRoll));
    assert!(joint("wrist").unwrap_err().contains("wrist_flex"));
}
