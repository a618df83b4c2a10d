//! Each item has a case in which it does not pass, on the emulated arm or a synthetic camera.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod pictures;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::arm::{CalibrationFile, calibration_newest};
use super::bus::judge_soak;
use super::cameras::{CameraFacts, lux};
use super::host::{ClockFacts, HostState};
use super::port::PortFacts;
use super::power::Supply;
use super::*;
use crate::arm::Torque;
use crate::bus::{Bus, BusStats, ServoBus, SyncReplies};
use crate::camera::framing::Reference;
use crate::camera::synthetic::{SyntheticCamera, SyntheticOptions};
use crate::camera::{Automatic, ControlReport};
use crate::clock::{Clock as _, VirtualClock};
use crate::emulator::{EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::error::Result;
use crate::frame::Frame;
use crate::protocol::{Alarms, Block, SyncRow};
use crate::units::{Degrees, Lux, Percent};
use crate::{Calibration, CameraSpec, JointId, JointVector, ServoId, registers};

/// An arm in order: calibrated, configured as a follower, in the middle of its ranges.
fn good_arm() -> (EmulatedServos, VirtualClock) {
    let clock = VirtualClock::new();
    let mut options = EmulatorOptions::default();
    let middle = JointVector { body: [Degrees(0.0); 5], gripper: Percent(50.0) };
    options.start = Calibration::model().to_ticks(&middle, crate::Rounding::Nearest).unwrap();
    let servos = EmulatedServos::new(Arc::new(clock.clone()), options);
    servos.store_calibration(&Calibration::model()).unwrap();
    for joint in crate::JOINTS {
        for (register, value) in
            [(&registers::P_COEFFICIENT, 16), (&registers::RETURN_DELAY_TIME, 0), (&registers::PHASE, 12)]
        {
            servos.set_register(joint, register, value).unwrap();
        }
    }
    for (register, value) in [
        (&registers::MAX_TORQUE_LIMIT, 500),
        (&registers::TORQUE_LIMIT, 500),
        (&registers::PROTECTION_CURRENT, 250),
        (&registers::OVERLOAD_TORQUE, 25),
    ] {
        servos.set_register(JointId::Gripper, register, value).unwrap();
    }
    (servos, clock)
}

fn options() -> ServoOptions {
    ServoOptions { expected: Some(Expected::default()), hold: HoldTest::Energise, ..ServoOptions::default() }
}

/// Servos, pose and soak of an arm that somebody has spoiled.
fn look_with(servos: &EmulatedServos, clock: &VirtualClock, options: &ServoOptions) -> Report {
    let model = Calibration::model();
    let mut bus = SaggingBus { bus: servos.bus(), servos: servos.clone(), under_load_dv: None };
    look_at(&mut bus, clock, options, &model)
}

fn look_at(
    bus: &mut dyn ServoBus,
    clock: &VirtualClock,
    options: &ServoOptions,
    calibration: &Calibration,
) -> Report {
    let found = servos(bus, calibration, options, clock).unwrap();
    let reference = JointVector { body: [Degrees(0.0); 5], gripper: Percent(50.0) };
    let pose = pose(&found.survey, calibration, &PoseOptions::default().with_reference(reference)).unwrap();
    let soak = bus_soak(bus, &found.survey.ids(), clock, &SoakOptions::default()).unwrap();
    found.checks.into_iter().chain(pose).chain(soak).collect()
}

/// What a spoiled arm gives for one item.
fn spoiled(item: Item, spoil: impl FnOnce(&EmulatedServos)) -> Check {
    let (servos, clock) = good_arm();
    spoil(&servos);
    pick(&look_with(&servos, &clock, &options()), item)
}

fn pick(report: &Report, item: Item) -> Check {
    report.of(item).next().cloned().unwrap_or_else(|| panic!("no check {item:?}"))
}

fn register(
    joint: JointId,
    register: &'static crate::registers::Register,
    value: i32,
) -> impl FnOnce(&EmulatedServos) {
    move |servos| servos.set_register(joint, register, value).unwrap()
}

/// Every servo's supply falls when a torque goes on.
struct SaggingBus<B> {
    bus: B,
    servos: EmulatedServos,
    under_load_dv: Option<i32>,
}

impl<B: ServoBus> ServoBus for SaggingBus<B> {
    fn ping(&mut self, id: ServoId) -> Result<Alarms> {
        self.bus.ping(id)
    }
    fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms> {
        self.bus.read(id, address, out)
    }
    fn write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.bus.write(id, address, data)
    }
    fn reg_write(&mut self, id: ServoId, address: u8, data: &[u8]) -> Result<Alarms> {
        self.bus.reg_write(id, address, data)
    }
    fn action(&mut self) -> Result<()> {
        self.bus.action()
    }
    fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()> {
        self.bus.sync_read(block, ids, replies)
    }
    fn sync_write(&mut self, address: u8, rows: &[SyncRow<'_>]) -> Result<()> {
        if let (40, Some(dv)) = (address, self.under_load_dv) {
            for joint in crate::JOINTS {
                self.servos.set_register(joint, &registers::PRESENT_VOLTAGE, dv)?;
            }
        }
        self.bus.sync_write(address, rows)
    }
    fn broadcast_write(&mut self, address: u8, data: &[u8]) -> Result<()> {
        self.bus.broadcast_write(address, data)
    }
    fn stats(&self) -> BusStats {
        self.bus.stats()
    }
}

fn sagging(dv: i32) -> Check {
    let (servos, clock) = good_arm();
    let mut bus = SaggingBus { bus: servos.bus(), servos: servos.clone(), under_load_dv: Some(dv) };
    pick(&look_at(&mut bus, &clock, &options(), &Calibration::model()), Item::VoltageHold)
}

fn filmed(item: Item, spoil: impl FnOnce(&mut SyntheticOptions)) -> Check {
    let clock = VirtualClock::new();
    let mut options = SyntheticOptions::default();
    spoil(&mut options);
    let mut camera = SyntheticCamera::new(CameraSpec::new("main", 64, 48), options, Arc::new(clock.clone()));
    let mut facts = CameraFacts::new("main");
    let reference = Reference::of("main", &still(SyntheticOptions::default()));
    if let Some(frame) = facts.measure(&mut camera, &clock, 30) {
        // A picture of another size cannot be compared.
        let _ = facts.see(&frame, Some(&reference));
    }
    pick(&cameras(&facts, &Limits::default()).into_iter().collect(), item)
}

/// The picture that [`filmed`] sees last.
fn still(options: SyntheticOptions) -> Frame {
    let clock = VirtualClock::new();
    let mut camera = SyntheticCamera::new(CameraSpec::new("main", 64, 48), options, Arc::new(clock.clone()));
    CameraFacts::new("main").measure(&mut camera, &clock, 30).unwrap()
}

fn seen(item: Item, spoil: impl FnOnce(&mut CameraFacts)) -> Check {
    let mut facts = CameraFacts::new("main");
    spoil(&mut facts);
    pick(&cameras(&facts, &Limits::default()).into_iter().collect(), item)
}

fn control(wanted: Option<i64>, got: Option<i64>, automatic: Automatic) -> ControlReport {
    ControlReport { name: "exposure", unit: "us", wanted, got, automatic, range: None, fault: None }
}

fn of_port(item: Item, facts: PortFacts) -> Check {
    pick(&port(&facts).into_iter().collect(), item)
}

fn of_host(item: Item, facts: HostState) -> Check {
    pick(&host(&facts, &Limits::default()).into_iter().collect(), item)
}

fn torque_expected_off() -> Check {
    let (servos, clock) = good_arm();
    servos.set_register(JointId::WristFlex, &registers::TORQUE_ENABLE, 1).unwrap();
    let options = ServoOptions { torque: Some(Torque::Off), ..options() };
    pick(&look_with(&servos, &clock, &options), Item::TorqueState)
}

fn start_pose_off() -> Check {
    let present = JointVector { body: [Degrees(0.0); 5], gripper: Percent(50.0) };
    let mut reference = present;
    reference.body[1] = Degrees(-30.0);
    arm::start_pose(&present, &reference, &Limits::default())
}

fn leader_away() -> Check {
    let follower = JointVector { body: [Degrees(0.0); 5], gripper: Percent(50.0) };
    leader_pose(&JointVector { gripper: Percent(95.0), ..follower }, &follower, &Limits::default())
}

fn late_replies() -> Check {
    spoiled(Item::BusP99, |s| s.inject(FaultRule::always(Fault::Late(Duration::from_millis(15)))))
}

fn file(path: &str, modified_unix_s: u64) -> CalibrationFile {
    CalibrationFile { path: path.into(), modified_unix_s }
}

fn usb_port() -> PortFacts {
    PortFacts { path: "/dev/ttyACM0".into(), exists: true, ..PortFacts::default() }
}

/// One case an item: what was found, the judgement that it must get, and a word of the advice.
fn cases() -> Vec<(Item, Check, Verdict, &'static str)> {
    use JointId::{ElbowFlex, Gripper, ShoulderLift, ShoulderPan, WristFlex, WristRoll};
    use Verdict::{Fail, Warn};
    let c = |check: Check, verdict, advice| (check.item, check, verdict, advice);
    vec![
        c(of_port(Item::PortExists, PortFacts::default()), Fail, "find_port"),
        c(
            of_port(Item::PortPermission, PortFacts { denied: Some("dialout".into()), ..usb_port() }),
            Fail,
            "dialout",
        ),
        c(
            of_port(Item::PortFree, PortFacts { held_by: Some(vec!["x (pid 1)".into()]), ..usb_port() }),
            Fail,
            "end the other one",
        ),
        c(of_port(Item::PortAdapter, PortFacts { usb: Some((1, 2)), ..usb_port() }), Warn, "find_port"),
        c(spoiled(Item::ServosAnswer, register(Gripper, &registers::ID, 9)), Fail, "cable behind servo 5"),
        c(spoiled(Item::ServoModel, register(WristRoll, &registers::MODEL_NUMBER, 2825)), Fail, "STS3215"),
        c(spoiled(Item::DuplicateIds, register(ElbowFlex, &registers::ID, 2)), Fail, "two servos share id 2"),
        c(spoiled(Item::StrayIds, register(Gripper, &registers::ID, 9)), Warn, "setup_motors"),
        c(
            spoiled(Item::FirmwareEqual, register(WristFlex, &registers::FIRMWARE_MINOR, 9)),
            Warn,
            "one version",
        ),
        c(spoiled(Item::BaudRate, register(ShoulderPan, &registers::BAUD_RATE, 4)), Warn, "run diagnose"),
        c(
            spoiled(Item::ResponseLevel, register(Gripper, &registers::RESPONSE_STATUS_LEVEL, 0)),
            Fail,
            "register 8",
        ),
        c(
            spoiled(Item::ReturnDelay, register(ElbowFlex, &registers::RETURN_DELAY_TIME, 250)),
            Warn,
            "configure",
        ),
        c(spoiled(Item::PhaseBit4, register(WristRoll, &registers::PHASE, 0x1c)), Fail, "calibrate"),
        c(
            spoiled(Item::OperatingMode, register(ShoulderPan, &registers::OPERATING_MODE, 1)),
            Fail,
            "configure",
        ),
        c(spoiled(Item::VoltageIdle, register(Gripper, &registers::PRESENT_VOLTAGE, 35)), Fail, "too low"),
        c(
            spoiled(Item::VoltageVariant, |s| {
                for joint in crate::JOINTS {
                    register(joint, &registers::MIN_VOLTAGE_LIMIT, 95)(s);
                }
            }),
            Fail,
            "12 V",
        ),
        c(sagging(66), Fail, "supply"),
        c(
            spoiled(Item::Temperature, register(ShoulderLift, &registers::PRESENT_TEMPERATURE, 61)),
            Fail,
            "rest",
        ),
        c(
            spoiled(Item::Alarms, register(ShoulderLift, &registers::PRESENT_TEMPERATURE, 90)),
            Fail,
            "heat: let the arm rest",
        ),
        c(
            spoiled(Item::CalibrationEqual, register(ElbowFlex, &registers::HOMING_OFFSET, -300)),
            Fail,
            "calibrate again",
        ),
        c(calibration_newest(&file("so101/a.json", 5), &[file("so100/a.json", 9)]), Warn, "--calibration"),
        c(
            spoiled(Item::GripperLimits, register(Gripper, &registers::TORQUE_LIMIT, 1000)),
            Fail,
            "power cycle",
        ),
        c(spoiled(Item::PidProfile, register(ShoulderPan, &registers::P_COEFFICIENT, 32)), Fail, "configure"),
        c(torque_expected_off(), Fail, "relax"),
        c(spoiled(Item::JointRange, |s| s.set_ticks(ShoulderPan, 700.0)), Fail, "by hand"),
        c(spoiled(Item::JointWrap, |s| s.set_ticks(WristRoll, 4090.0)), Fail, "by hand"),
        c(start_pose_off(), Fail, "started in"),
        c(leader_away(), Fail, "leader"),
        c(
            spoiled(Item::BusErrors, |s| {
                s.inject(FaultRule::always(Fault::Drop).of(ServoId::ARM[3]).with_probability(0.3));
            }),
            Fail,
            "servo 4",
        ),
        c(late_replies(), Warn, "diagnose_stall"),
        c(
            spoiled(Item::BusGap, |s| s.inject(FaultRule::always(Fault::BadChecksum).of(ServoId::ARM[0]))),
            Fail,
            "nobody knew",
        ),
        c(seen(Item::CameraPath, |f| f.path = Some("/dev/video2".into())), Warn, "by-id"),
        c(
            seen(Item::CameraFormat, |f| f.format = Some(("YUYV".into(), "MJPG".into()))),
            Fail,
            "find_cameras",
        ),
        c(filmed(Item::CameraSize, |x| x.delivers = Some(crate::FrameSize::new(16, 12))), Fail, "size"),
        c(filmed(Item::CameraRate, |x| x.fps = 15), Fail, "exposure"),
        c(filmed(Item::CameraJitter, |x| x.late_ms = 20), Fail, "unevenly"),
        c(filmed(Item::CameraDrops, |x| x.drop_every = 4), Fail, "lost"),
        c(
            seen(Item::CameraControls, |f| {
                f.controls = Some(vec![control(Some(15_600), Some(15_700), Automatic::Off)]);
            }),
            Fail,
            "did not take it",
        ),
        c(filmed(Item::CameraLuma, |x| x.luminance = 9.0), Fail, "too dark"),
        c(filmed(Item::CameraClipped, |x| x.luminance = 254.0), Fail, "exposure"),
        c(filmed(Item::CameraFocus, |x| x.blur_px = 4), Fail, "blurred"),
        c(filmed(Item::CameraFraming, |x| x.shift_px = [9.0, -3.0]), Fail, "moved"),
        c(lux(Some(Lux(900.0)), &Limits::default()), Warn, "curtains"),
        c(
            of_host(Item::ClockSynced, HostState { clock_synced: Some(false), ..HostState::default() }),
            Warn,
            "ntp",
        ),
        c(
            of_host(
                Item::ClockMonotonic,
                HostState {
                    clock: Some(ClockFacts { readings: 9, backward: 1, wall_drift: None }),
                    ..HostState::default()
                },
            ),
            Fail,
            "this clock",
        ),
        c(
            of_host(Item::HostThrottling, HostState { throttled: Some(1), ..HostState::default() }),
            Fail,
            "27 W",
        ),
        c(
            of_host(Item::HostTemperature, HostState { temperature_c: Some(84.0), ..HostState::default() }),
            Fail,
            "fan",
        ),
    ]
}

#[test]
fn every_item_has_a_case_in_which_it_does_not_pass_and_says_what_to_do() {
    let cases = cases();
    for (item, check, verdict, advice) in &cases {
        assert_eq!(check.verdict, *verdict, "{check:?}");
        assert!(check.advice.contains(advice), "{item:?}: {check:?}");
    }
    let covered: BTreeSet<Item> = cases.iter().map(|(item, ..)| *item).collect();
    // The recording program has its own test for the items that need a dataset.
    for item in Item::ALL.iter().filter(|i| i.group() != Group::Recorder) {
        assert!(covered.contains(item), "{item:?} has no failing case");
    }
}

#[test]
fn an_arm_in_order_passes_every_item_and_is_left_as_it_was() {
    let (servos, clock) = good_arm();
    let before = servos.register(JointId::ElbowFlex, &registers::TORQUE_ENABLE).unwrap();
    let report = look_with(&servos, &clock, &options());
    for check in report.checks() {
        assert_eq!(check.verdict, Verdict::Pass, "{check:?}");
    }
    assert_eq!((before, servos.register(JointId::ElbowFlex, &registers::TORQUE_ENABLE).unwrap()), (0, 0));
    // 200 reads at 100 Hz on virtual time.
    assert!(clock.now().since_start() >= Duration::from_millis(1990));
}

#[test]
fn looking_writes_nothing_unless_the_test_under_load_is_asked_for() {
    /// Every write is an error.
    struct ReadOnly<B>(B);
    impl<B: ServoBus> ServoBus for ReadOnly<B> {
        fn ping(&mut self, id: ServoId) -> Result<Alarms> {
            self.0.ping(id)
        }
        fn read(&mut self, id: ServoId, address: u8, out: &mut [u8]) -> Result<Alarms> {
            self.0.read(id, address, out)
        }
        fn write(&mut self, _: ServoId, address: u8, _: &[u8]) -> Result<Alarms> {
            panic!("write to {address}")
        }
        fn reg_write(&mut self, _: ServoId, address: u8, _: &[u8]) -> Result<Alarms> {
            panic!("write to {address}")
        }
        fn action(&mut self) -> Result<()> {
            panic!("action")
        }
        fn sync_read(&mut self, block: Block, ids: &[ServoId], replies: &mut SyncReplies) -> Result<()> {
            self.0.sync_read(block, ids, replies)
        }
        fn sync_write(&mut self, address: u8, _: &[SyncRow<'_>]) -> Result<()> {
            panic!("write to {address}")
        }
        fn broadcast_write(&mut self, address: u8, _: &[u8]) -> Result<()> {
            panic!("write to {address}")
        }
    }
    let (servos, clock) = good_arm();
    let quiet = ServoOptions { hold: HoldTest::Skip, ..options() };
    let report = look_at(&mut ReadOnly(servos.bus()), &clock, &quiet, &Calibration::model());
    assert_eq!(pick(&report, Item::VoltageHold).verdict, Verdict::Skip);
    assert_eq!(report.count(Verdict::Fail), 0, "{}", report.table());
}

#[test]
fn the_test_under_load_leaves_motors_that_were_on_and_never_moves_the_arm() {
    let (servos, clock) = good_arm();
    // A goal far away that was given while the torque was off must not be followed.
    servos.set_register(JointId::ElbowFlex, &registers::GOAL_POSITION, 2900).unwrap();
    let mut bus = servos.bus();
    bus.write_register(JointId::WristRoll.into(), &registers::TORQUE_ENABLE, 1).unwrap();
    let before = servos.true_ticks();
    let report = look_with(&servos, &clock, &options());
    assert_eq!(pick(&report, Item::VoltageHold).verdict, Verdict::Pass);
    assert_eq!(servos.true_ticks(), before);
    let torque = |joint| servos.register(joint, &registers::TORQUE_ENABLE).unwrap();
    assert_eq!((torque(JointId::WristRoll), torque(JointId::ElbowFlex)), (1, 0));
}

#[test]
fn a_sag_of_seven_tenths_fails_and_of_six_passes() {
    assert_eq!(sagging(68).verdict, Verdict::Pass, "{:?}", sagging(68));
    assert_eq!(sagging(67).verdict, Verdict::Fail);
}

#[test]
fn a_seven_volt_servo_on_twelve_volts_and_mixed_variants_are_named() {
    let low = |joint| {
        move |s: &EmulatedServos| {
            register(joint, &registers::MAX_VOLTAGE_LIMIT, 80)(s);
        }
    };
    let on_twelve = spoiled(Item::VoltageVariant, |s| {
        for joint in crate::JOINTS {
            low(joint)(s);
            register(joint, &registers::PRESENT_VOLTAGE, 121)(s);
        }
    });
    assert!(on_twelve.value.contains("servo 1 (shoulder_pan): a 7.4 V variant on 12 V"), "{on_twelve:?}");
    let mixed = spoiled(Item::VoltageVariant, |s| {
        low(JointId::ShoulderPan)(s);
        register(JointId::Gripper, &registers::MIN_VOLTAGE_LIMIT, 95)(s);
    });
    assert!(
        mixed.value.contains("servo 6 (gripper): a 12 V servo") && mixed.verdict == Verdict::Fail,
        "{mixed:?}"
    );
    assert_eq!(Supply::of_limits(40, 140), None);
}

#[test]
fn damage_at_one_id_is_a_shared_id_and_losses_are_a_loose_plug() {
    let of = |fault, probability| {
        spoiled(Item::DuplicateIds, move |s| {
            s.inject(FaultRule::always(fault).of(ServoId::ARM[3]).with_probability(probability));
        })
    };
    let collision = of(Fault::BadChecksum, 0.9);
    assert!(
        collision.verdict == Verdict::Fail && collision.advice.contains("two servos share id 4"),
        "{collision:?}"
    );
    let loose = of(Fault::Drop, 0.3);
    assert!(loose.verdict == Verdict::Warn && loose.advice.contains("press its plugs in"), "{loose:?}");
}

#[test]
fn a_dead_arm_and_a_dead_chain_still_give_a_whole_report() {
    let (servos, clock) = good_arm();
    servos.inject(FaultRule::always(Fault::Drop));
    let report = look_with(&servos, &clock, &options());
    assert_eq!(pick(&report, Item::ServosAnswer).value, "no servo answers");
    assert_eq!(pick(&report, Item::Temperature).verdict, Verdict::Skip);
    assert_eq!(pick(&report, Item::BusErrors).verdict, Verdict::Fail);
    servos.clear_faults();
    for id in [4, 5, 6] {
        servos.inject(FaultRule::always(Fault::Drop).of(ServoId::new(id).unwrap()));
    }
    let report = look_with(&servos, &clock, &options());
    assert_eq!(pick(&report, Item::ServosAnswer).value, "the chain is dead after id 3");
    assert_eq!(pick(&report, Item::VoltageHold).verdict, Verdict::Skip);
}

#[test]
fn slow_reads_warn_then_fail_and_the_last_gap_counts() {
    let soak = |p99_ms, gap_ms| bus::Soak {
        cycles: 200,
        p99: Duration::from_millis(p99_ms),
        max_gap: Duration::from_millis(gap_ms),
        ..bus::Soak::default()
    };
    for (p99, gap, expected) in [
        (9, 32, [Verdict::Pass, Verdict::Pass]),
        (10, 33, [Verdict::Warn, Verdict::Warn]),
        (20, 100, [Verdict::Fail, Verdict::Fail]),
    ] {
        let checks = judge_soak(&soak(p99, gap), &Limits::default());
        assert_eq!([checks[1].verdict, checks[2].verdict], expected, "{checks:?}");
    }
}

#[test]
fn two_reports_of_one_arm_are_the_same_bytes() {
    let text = || -> String {
        let (servos, clock) = good_arm();
        servos.inject(FaultRule::always(Fault::Drop).with_probability(0.05));
        serde_json::to_string(&look_with(&servos, &clock, &options()).stored()).unwrap()
    };
    assert_eq!(text(), text());
}

#[test]
fn groups_work_on_a_boxed_bus_too() {
    let (servos, clock) = good_arm();
    let mut bus: Box<dyn ServoBus> = Box::new(Bus::new(servos.port()));
    let report = look_at(bus.as_mut(), &clock, &options(), &Calibration::model());
    assert_eq!(report.verdict(), Verdict::Pass, "{}", report.table());
}
