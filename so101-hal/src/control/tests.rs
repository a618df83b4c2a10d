use std::sync::Arc;
use std::vec::Vec;

use ::core::time::Duration;

use super::*;
use crate::arm::{Arm, ArmOptions, Armed, MotionLimits, OnDrop, Watchdog};
use crate::bus::{Bus, ServoBus};
use crate::calibration::Calibration;
use crate::clock::{Clock, SystemClock, VirtualClock};
use crate::emulator::{EmulatedBus, EmulatedPort, EmulatedServos, EmulatorOptions, Fault, FaultRule};
use crate::joint::{JOINTS, JointId};
use crate::port::Port;
use crate::protocol::Alarms;
use crate::registers;
use crate::units::Percent;

fn torque(servos: &EmulatedServos) -> [i32; 6] {
    JOINTS.map(|j| servos.register(j, &registers::TORQUE_ENABLE).unwrap())
}

fn servos_on(clock: Arc<dyn Clock>) -> EmulatedServos {
    let servos = EmulatedServos::new(clock, EmulatorOptions::default());
    servos.store_calibration(&Calibration::model()).unwrap();
    servos
}

fn armed<B: ServoBus>(bus: B, options: ArmOptions) -> Arm<B, Armed> {
    Arm::connect(bus, Calibration::model(), options).unwrap().into_armed().unwrap()
}

/// A loop on a virtual clock.
struct Rig {
    clock: VirtualClock,
    servos: EmulatedServos,
    core: ControlCore<EmulatedBus>,
}

impl Rig {
    fn new(limits: MotionLimits) -> Self {
        let clock = VirtualClock::new();
        let servos = servos_on(Arc::new(clock.clone()));
        let options = ArmOptions::new(Arc::new(clock.clone())).with_limits(limits);
        let arm = armed(servos.bus(), options);
        let core = ControlCore::new(arm, Arc::new(clock.clone()), LoopConfig::default()).unwrap();
        Self { clock, servos, core }
    }

    /// Cycles for a time; what was sent in each.
    fn run(&mut self, ms: u64) -> Vec<JointVector<Degrees>> {
        let until = self.clock.now() + Duration::from_millis(ms);
        let mut sent = Vec::new();
        while self.core.next_deadline() < until {
            self.clock.sleep_until(self.core.next_deadline());
            self.core.cycle().unwrap();
            sent.extend(self.core.snapshot().sent.map(|(joints, _)| joints));
        }
        self.clock.sleep_until(until);
        sent
    }

    fn goal(&mut self, pan: f64, gripper: f64) {
        let goal = JointVector { body: [pan, 0.0, 0.0, 0.0, 0.0].map(Degrees), gripper: Percent(gripper) };
        self.core.set_goal(&goal, self.clock.now()).unwrap();
    }

    fn state(&self) -> LoopState {
        self.core.snapshot().state
    }
}

#[test]
fn goals_at_30_hz_reach_the_servos_at_150_hz_without_steps_or_overshoot() {
    let mut rig = Rig::new(MotionLimits::unlimited());
    let (mut pans, mut highest) = (Vec::new(), 0.0_f64);
    for k in 0..60 {
        // A swing of 40 degrees a second, which turns round half way.
        let pan = 1.3 * f64::from(if k < 30 { k } else { 60 - k });
        highest = highest.max(pan);
        rig.goal(pan, 50.0);
        pans.extend(rig.run(100 / 3).iter().map(|j| j.body[0].0));
    }
    let steps: Vec<f64> = pans.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    let largest = steps.iter().fold(0.0, |a: f64, b| a.max(*b));
    // A fifth of the goals' own step, and a tick of rounding.
    assert!(largest < 1.3 / 5.0 * 1.2 + 0.09, "{largest}");
    assert!(pans.iter().all(|p| *p <= highest + 1e-9 && *p >= -0.09), "overshoot");
    let counters = rig.core.counters();
    assert_eq!((counters.overruns, counters.skipped, counters.stale, counters.goals), (0, 0, 0, 60));
    assert!((290..=298).contains(&counters.sent), "{}", counters.sent);
}

#[test]
fn interpolation_never_exceeds_the_limits_of_the_arm() {
    let limits = MotionLimits::default().with_speed(600.0, 6000.0);
    let mut rig = Rig::new(limits);
    let range = Calibration::model();
    for k in 0..40_i32 {
        rig.goal(if k % 7 < 4 { 900.0 } else { -900.0 }, if k % 2 == 0 { 400.0 } else { -400.0 });
        rig.run(33);
        let goal = rig.servos.register(JointId::ShoulderPan, &registers::GOAL_POSITION).unwrap();
        let c = range.get(JointId::ShoulderPan);
        assert!((c.range_min..=c.range_max).contains(&goal), "{goal}");
    }
    let mut last = None;
    rig.goal(100.0, 50.0);
    for _ in 0..30 {
        rig.clock.sleep_until(rig.core.next_deadline());
        rig.core.cycle().unwrap();
        let goal = rig.servos.register(JointId::ShoulderPan, &registers::GOAL_POSITION).unwrap();
        if let Some(last) = last.replace(goal) {
            let step: i32 = goal - last;
            assert!(step.abs() <= 5, "{step} ticks in a cycle are faster than 600 a second");
        }
    }
    assert!(rig.core.counters().clipped > 0);
}

#[test]
fn an_old_goal_stops_the_arm_on_its_way_and_the_next_one_starts_there() {
    let mut rig = Rig::new(MotionLimits::default());
    rig.run(20);
    assert_eq!(rig.state(), LoopState::Resting);
    // Decided long before it came: it is never followed.
    let goal = JointVector { gripper: Percent(90.0), ..JointVector::default() };
    rig.clock.sleep_until(Timestamp::from_start(Duration::from_secs(5)));
    rig.core.set_goal(&goal, Timestamp::from_start(Duration::from_secs(4))).unwrap();
    assert!(rig.run(20).is_empty());
    assert_eq!((rig.state(), rig.core.counters().expired), (LoopState::Resting, 1));
    // A stream that ends.
    rig.goal(20.0, 50.0);
    rig.run(290);
    assert_eq!(rig.state(), LoopState::Following);
    let sent = rig.core.counters().sent;
    rig.run(500);
    assert_eq!(rig.state(), LoopState::Resting);
    assert!(rig.core.counters().sent - sent <= 3);
    let rests = rig.core.snapshot().sent.unwrap().0;
    rig.goal(21.0, 50.0);
    let first = rig.run(8)[0];
    assert!((first.body[0].0 - rests.body[0].0).abs() < 0.5, "{first:?} after {rests:?}");
}

#[test]
fn a_goal_that_is_no_number_leaves_the_one_before() {
    let mut rig = Rig::new(MotionLimits::default());
    rig.goal(10.0, 50.0);
    let bad = JointVector { gripper: Percent(f64::NAN), ..JointVector::default() };
    assert!(matches!(rig.core.set_goal(&bad, rig.clock.now()), Err(Error::NonFinite { .. })));
    assert_eq!(rig.run(200).last().unwrap().body[0].0.round(), 10.0);
}

#[test]
fn a_slow_bus_is_counted_as_overruns_and_its_deadlines_are_left_out() {
    let mut rig = Rig::new(MotionLimits::default());
    rig.run(100);
    let before = *rig.core.counters();
    assert_eq!((before.overruns, before.skipped), (0, 0));
    // A servo that does not answer costs the whole patience of the bus, twice.
    rig.servos.inject(FaultRule::always(Fault::Drop).of(JointId::ElbowFlex.into()));
    rig.run(90);
    let counted = rig.core.counters().since(&before);
    assert!(counted.overruns >= 2 && counted.skipped >= counted.overruns, "{counted:?}");
    assert_eq!(counted.stale, counted.cycles);
    assert_eq!(counted.stale_by_joint, [0, 0, counted.cycles, 0, 0, 0]);
    assert!(counted.retries >= counted.cycles && counted.timeouts > 0, "{counted:?}");
    assert!(counted.total.max() > Duration::from_millis(20), "{:?}", counted.total);
    // The joints that do answer are new all the same.
    assert_eq!(rig.core.snapshot().states[0].missed, 0);
    // Deadlines stay on their grid: nothing is made up for.
    rig.servos.clear_faults();
    let cycles = rig.core.counters().cycles;
    rig.run(1000);
    assert!((148..=151).contains(&(rig.core.counters().cycles - cycles)));
}

#[test]
fn an_alarm_that_comes_and_goes_between_two_looks_stays_counted() {
    let mut rig = Rig::new(MotionLimits::default());
    rig.run(50);
    let before = *rig.core.counters();
    rig.servos.set_register(JointId::WristRoll, &registers::PRESENT_TEMPERATURE, 75).unwrap();
    rig.run(14);
    rig.servos.set_register(JointId::WristRoll, &registers::PRESENT_TEMPERATURE, 30).unwrap();
    rig.run(50);
    assert!(rig.core.snapshot().states.iter().all(|s| s.alarms.is_empty()));
    let counted = rig.core.counters().since(&before);
    assert_eq!(counted.alarms_seen()[4], Alarms::HEAT);
    assert!((1..=3).contains(&counted.alarms[4].cycles(Alarms::HEAT)));
    rig.run(50);
    let later = *rig.core.counters();
    assert_eq!(later.since(&later).alarms_seen(), [Alarms::NONE; 6]);
}

#[test]
fn silence_degrades_then_loses_the_arm_and_only_the_operator_resumes_from_where_it_is() {
    let mut rig = Rig::new(MotionLimits::default());
    rig.goal(15.0, 50.0);
    rig.run(250);
    rig.servos.inject(FaultRule::always(Fault::Drop));
    let goal_before = rig.servos.register(JointId::ShoulderPan, &registers::GOAL_POSITION).unwrap();
    rig.run(250);
    assert_eq!(rig.state(), LoopState::Degraded);
    rig.servos.clear_faults();
    rig.goal(15.0, 50.0);
    rig.run(100);
    assert_eq!(rig.state(), LoopState::Following, "a short silence ends by itself");

    rig.servos.inject(FaultRule::always(Fault::Drop));
    rig.run(1000);
    assert_eq!(rig.state(), LoopState::Lost);
    assert!(rig.core.resume().is_err(), "it does not answer yet");
    rig.servos.clear_faults();
    rig.servos.set_ticks(JointId::ShoulderPan, f64::from(goal_before) + 100.0);
    for _ in 0..5 {
        rig.goal(-60.0, 50.0);
        rig.run(50);
    }
    assert_eq!(rig.state(), LoopState::Lost, "goals do not wake it");
    assert_eq!(rig.servos.register(JointId::ShoulderPan, &registers::GOAL_POSITION).unwrap(), goal_before);
    rig.core.resume().unwrap();
    rig.run(20);
    assert_eq!(rig.state(), LoopState::Resting);
    rig.goal(15.0, 50.0);
    rig.run(50);
    assert_eq!(rig.state(), LoopState::Following);
}

#[test]
fn the_emergency_stop_ends_the_sending_and_reads_go_on() {
    let mut rig = Rig::new(MotionLimits::default());
    rig.goal(15.0, 50.0);
    rig.run(100);
    rig.core.arm().emergency_stop().stop().unwrap();
    rig.goal(30.0, 50.0);
    rig.run(50);
    assert_eq!((rig.state(), torque(&rig.servos)), (LoopState::Stopped, [0; 6]));
    let sequence = rig.core.snapshot().sequence;
    rig.goal(30.0, 50.0);
    rig.run(50);
    assert!(rig.core.snapshot().sequence > sequence);
    assert!(rig.core.resume().is_ok());
    assert_eq!((rig.state(), torque(&rig.servos)), (LoopState::Stopped, [0; 6]));
}

#[test]
fn a_rate_that_no_bus_has_is_refused() {
    let clock = VirtualClock::new();
    for bus_hz in [0.0, -3.0, f64::NAN, 501.0] {
        let servos = servos_on(Arc::new(clock.clone()));
        let arm = armed(servos.bus(), ArmOptions::new(Arc::new(clock.clone())));
        let refused =
            ControlCore::new(arm, Arc::new(clock.clone()), LoopConfig::default().with_bus_hz(bus_hz));
        assert!(matches!(refused, Err(Error::LoopRate { .. })), "{bus_hz}");
        assert_eq!(torque(&servos), [0; 6], "the arm was dropped");
    }
}

/// A port that can be pulled out, or made to panic.
struct Breakable {
    port: EmulatedPort,
    what: Arc<spin::Mutex<Breakage>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Breakage {
    None,
    Unplugged,
    Panic,
}

impl Breakable {
    fn check(&self) -> Result<()> {
        let what = *self.what.lock();
        match what {
            Breakage::None => Ok(()),
            Breakage::Unplugged => Err(Error::PortIo {
                doing: "read from",
                path: "test".into(),
                source: "no such device".into(),
            }),
            Breakage::Panic => {
                // Once: the arm that is dropped on the way down has a port that works.
                *self.what.lock() = Breakage::None;
                panic!("a defect")
            }
        }
    }
}

impl Port for Breakable {
    fn now(&self) -> Timestamp {
        self.port.now()
    }
    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.port.write_all(bytes)
    }
    fn read(&mut self, buffer: &mut [u8], deadline: Timestamp) -> Result<usize> {
        self.port.read(buffer, deadline)
    }
    fn discard_input(&mut self) -> Result<()> {
        self.port.discard_input()
    }
    fn reopen(&mut self) -> Result<()> {
        self.check()
    }
}

fn breakable(clock: Arc<dyn Clock>) -> (EmulatedServos, Arc<spin::Mutex<Breakage>>, Bus<Breakable>) {
    let servos = servos_on(clock);
    let what = Arc::new(spin::Mutex::new(Breakage::None));
    let bus = Bus::new(Breakable { port: servos.port(), what: Arc::clone(&what) });
    (servos, what, bus)
}

#[test]
fn an_adapter_that_comes_back_is_opened_again_and_waits_for_the_operator() {
    let clock = VirtualClock::new();
    let (_servos, what, bus) = breakable(Arc::new(clock.clone()));
    let arm = armed(bus, ArmOptions::new(Arc::new(clock.clone())));
    let mut core = ControlCore::new(arm, Arc::new(clock.clone()), LoopConfig::default()).unwrap();
    let run = |core: &mut ControlCore<_>, ms: u64| {
        let until = clock.now() + Duration::from_millis(ms);
        while core.next_deadline() < until {
            clock.sleep_until(core.next_deadline());
            core.cycle()?;
        }
        Ok::<(), Error>(())
    };
    run(&mut core, 50).unwrap();
    *what.lock() = Breakage::Unplugged;
    run(&mut core, 3000).unwrap();
    assert_eq!(core.snapshot().state, LoopState::Lost);
    assert!(core.counters().port_errors > 300);
    *what.lock() = Breakage::None;
    run(&mut core, 1000).unwrap();
    assert!(core.snapshot().is_fresh());
    assert_eq!(core.snapshot().state, LoopState::Lost);
    core.resume().unwrap();
    run(&mut core, 50).unwrap();
    assert_eq!(core.snapshot().state, LoopState::Resting);
    // One that stays away ends the loop with the port's own error.
    *what.lock() = Breakage::Unplugged;
    assert!(matches!(run(&mut core, 20_000), Err(Error::PortIo { .. })));
}

/// Waits on the machine's clock until something holds; for what another thread does.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while !holds() {
        assert!(clock.now().since_start() < Duration::from_secs(20), "it does not happen");
        std::thread::yield_now();
    }
}

#[test]
fn the_thread_follows_goals_and_gives_the_arm_back_holding() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let servos = servos_on(Arc::clone(&clock));
    let arm = armed(servos.bus(), ArmOptions::new(Arc::clone(&clock)));
    let handle = ControlLoop::spawn(arm, Arc::clone(&clock), LoopConfig::default()).unwrap();
    let goal = JointVector { gripper: Percent(70.0), ..handle.snapshot().unwrap().joints };
    wait_until(|| {
        handle.set_goal(&goal, clock.now()).unwrap();
        let snapshot = handle.snapshot().unwrap();
        snapshot.sequence > 3 && (snapshot.joints.gripper.0 - 70.0).abs() < 1.0
    });
    assert!(handle.stats().cycles > 3 && handle.stats().sent > 0);
    let arm = handle.stop().unwrap();
    assert_eq!(torque(&servos), [1; 6]);
    arm.relax().unwrap();
    assert_eq!(torque(&servos), [0; 6]);
}

#[test]
fn a_dropped_handle_relaxes_the_arm_or_keeps_it_as_the_options_say() {
    for (on_drop, left) in [(OnDrop::Relax, [0; 6]), (OnDrop::Hold, [1; 6])] {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let servos = servos_on(Arc::clone(&clock));
        let arm = armed(servos.bus(), ArmOptions::new(Arc::clone(&clock)).with_on_drop(on_drop));
        drop(ControlLoop::spawn(arm, clock, LoopConfig::default()).unwrap());
        assert_eq!(torque(&servos), left);
    }
}

#[test]
fn a_panic_in_the_thread_relaxes_the_arm_and_is_told_by_the_next_look_and_by_the_stop() {
    for stop in [false, true] {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (servos, what, bus) = breakable(Arc::clone(&clock));
        let arm = armed(bus, ArmOptions::new(Arc::clone(&clock)));
        let handle = ControlLoop::spawn(arm, clock, LoopConfig::default()).unwrap();
        assert_eq!(torque(&servos), [1; 6]);
        *what.lock() = Breakage::Panic;
        wait_until(|| torque(&servos) == [0; 6]);
        let told = |e: &Error| matches!(e, Error::LoopPanicked { what } if what == "a defect");
        if stop {
            assert!(told(&handle.stop().unwrap_err()));
            continue;
        }
        let mut error = None;
        wait_until(|| {
            error = handle.snapshot().err();
            error.is_some()
        });
        assert!(error.as_ref().is_some_and(told), "{error:?}");
        assert!(matches!(handle.snapshot(), Err(Error::LoopEnded)));
        assert!(matches!(handle.stop(), Err(Error::LoopEnded)));
    }
}

#[test]
fn the_emergency_stop_works_beside_the_running_thread() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let servos = servos_on(Arc::clone(&clock));
    let arm = armed(servos.bus(), ArmOptions::new(Arc::clone(&clock)));
    let handle = ControlLoop::spawn(arm, Arc::clone(&clock), LoopConfig::default()).unwrap();
    let goal = handle.snapshot().unwrap().joints;
    handle.set_goal(&goal, clock.now()).unwrap();
    handle.emergency_stop().stop().unwrap();
    wait_until(|| {
        handle.set_goal(&goal, clock.now()).unwrap();
        handle.snapshot().unwrap().state == LoopState::Stopped
    });
    wait_until(|| torque(&servos) == [0; 6]);
}

#[test]
fn watchdog_times_are_those_of_the_contract() {
    let watchdog = Watchdog::default();
    assert_eq!((watchdog.degraded_after.as_millis(), watchdog.lost_after.as_millis()), (100, 500));
}
