//! What a process leaves behind: it is ended in every state and in every way, then the servos' torque is read.
//!
//! The process is this test binary once more, running [`child`] on a pseudo-terminal whose other end are emulated
//! servos; it opens that terminal by its path, as it would open an adapter.
#![cfg(all(unix, feature = "serial"))]
#![allow(clippy::exit, reason = "the child ends as a program does")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use so101_hal::arm::{ArmOptions, Ending, FoundArm, Ramp};
use so101_hal::port::{FdPort, Port as _};
use so101_hal::registers::{GOAL_POSITION, TORQUE_ENABLE};
use so101_hal::safety::{Shutdown, Urgency, install_panic_hook};
use so101_hal::{
    Arm, Bus, Calibration, Clock, Degrees, EmulatedServos, EmulatorOptions, JOINTS, SystemClock, Timestamp,
};

/// Names the terminal, state, and behaviour of the child; without it [`child`] has nothing to do.
const SPEC: &str = "SO101_ARM_CHILD";
/// What the child says when it is in its state.
const READY: &str = "the arm is in its state";
/// The pose that is ramped to, in degrees of all body joints.
const REST_DEG: f64 = 15.0;

/// Real time, which the test may put forward when nobody else lives in it.
struct Time {
    system: SystemClock,
    extra_ms: AtomicU64,
}

impl Clock for Time {
    fn now(&self) -> Timestamp {
        self.system.now() + Duration::from_millis(self.extra_ms.load(Ordering::SeqCst))
    }
    fn sleep_until(&self, deadline: Timestamp) {
        std::thread::sleep(deadline.since(self.now()));
    }
}

/// Emulated servos behind a pseudo-terminal.
struct Terminal {
    servos: EmulatedServos,
    time: Arc<Time>,
    path: String,
    is_over: Arc<AtomicBool>,
    /// Kept open, so that the line outlives the child.
    _line: OwnedFd,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Terminal {
    fn new() -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let time = Arc::new(Time { system: SystemClock::new(), extra_ms: AtomicU64::new(0) });
        let servos = EmulatedServos::new(Arc::clone(&time) as Arc<dyn Clock>, EmulatorOptions::default());
        servos.store_calibration(&Calibration::model()).unwrap();
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let line = rustix::fs::open(path.as_str(), flags, rustix::fs::Mode::empty()).unwrap();
        let mut raw = rustix::termios::tcgetattr(&line).unwrap();
        raw.make_raw();
        rustix::termios::tcsetattr(&line, rustix::termios::OptionalActions::Now, &raw).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (servos, is_over) = (servos.clone(), Arc::clone(&is_over));
            move || serve(&master, &servos, &is_over)
        });
        Self { servos, time, path, is_over, _line: line, thread: Some(thread) }
    }

    fn torques(&self) -> [i32; 6] {
        JOINTS.map(|j| self.servos.register(j, &TORQUE_ENABLE).unwrap())
    }

    fn goals(&self) -> [i32; 6] {
        JOINTS.map(|j| self.servos.register(j, &GOAL_POSITION).unwrap())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn serve(master: &OwnedFd, servos: &EmulatedServos, is_over: &AtomicBool) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut port = servos.port();
    let mut buffer = [0; 512];
    let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !is_over.load(Ordering::SeqCst) {
        let mut fds = [PollFd::new(master, PollFlags::IN)];
        if poll(&mut fds, Some(&moment)).unwrap_or(0) == 0 {
            continue;
        }
        let Ok(n) = rustix::io::read(master, &mut buffer) else { continue };
        port.write_all(&buffer[..n]).unwrap();
        loop {
            let now = port.now();
            let n = port.read(&mut buffer, now).unwrap();
            if n == 0 {
                break;
            }
            let _ = rustix::io::write(master, &buffer[..n]);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Relaxed,
    Holding,
    Armed,
}

/// The process in which the tests below end an arm; does nothing when it is run as a test.
#[test]
fn child() {
    let Ok(spec) = std::env::var(SPEC) else { return };
    let [path, state, behaviour] = spec.split(' ').collect::<Vec<_>>()[..] else { panic!("{spec}") };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let bus = Bus::new(FdPort::open(path).unwrap());
    let found = Arm::connect(bus, Calibration::model(), ArmOptions::new(Arc::clone(&clock))).unwrap();
    let stop = match &found {
        FoundArm::Relaxed(arm) => arm.emergency_stop(),
        FoundArm::Holding(arm) => arm.emergency_stop(),
    };

    // What a program's signal handler does; see the examples.
    let shutdown = Shutdown::new();
    let (raised, line) = (shutdown.clone(), stop.clone());
    ctrlc::set_handler(move || {
        if raised.request() == Urgency::Immediate {
            let mut stopped = line.stop();
            for _ in 0..2 {
                // A goal that was under way may have followed the frame.
                std::thread::sleep(Duration::from_millis(5));
                stopped = stopped.and(line.stop());
            }
            std::process::exit(if stopped.is_ok() { 130 } else { 1 });
        }
        say("asked");
    })
    .unwrap();
    if behaviour == "panic_hook" {
        install_panic_hook(stop);
    }

    let rest = so101_hal::JointVector { body: [Degrees(REST_DEG); 5], gripper: so101_hal::Percent(50.0) };
    let ending = match behaviour {
        "ramp" => Ending::RampThenRelax(Ramp::new(rest, 90.0)),
        "hold" => Ending::Hold,
        _ => Ending::Relax,
    };
    let panics = behaviour.starts_with("panic");
    let is_done = || behaviour != "deaf" && shutdown.is_requested();
    let mut cycles = 0;
    // One cycle; the child is ready after a few, and those that are to panic do so then.
    let mut cycle = |clock: &Arc<dyn Clock>| {
        clock.sleep_until(clock.now() + Duration::from_millis(10));
        cycles += 1;
        if cycles == 10 {
            say(READY);
            assert!(!panics, "this panic is a test");
        }
    };
    match state {
        "Relaxed" => {
            let mut arm = found.into_relaxed().unwrap();
            while !is_done() {
                arm.update().unwrap();
                cycle(&clock);
            }
        }
        "Holding" => {
            let mut arm = found.into_holding().unwrap();
            while !is_done() {
                arm.update().unwrap();
                cycle(&clock);
            }
            arm.finish(&ending).unwrap();
        }
        _ => {
            let mut arm = found.into_armed().unwrap();
            let mut goal = arm.read_joints().unwrap();
            while !is_done() {
                arm.update().unwrap();
                goal.body[0].0 -= 0.5;
                goal.body[2].0 += 0.5;
                match arm.send(&goal, clock.now()) {
                    // The process is being ended by its signal handler.
                    Ok(_) | Err(so101_hal::Error::EmergencyStopped) => {}
                    Err(e) => panic!("{e}"),
                }
                cycle(&clock);
            }
            arm.finish(&ending).unwrap();
        }
    }
    std::process::exit(130);
}

/// Past the test harness, which keeps what is printed.
fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).unwrap();
}

/// A child on a terminal, in its state.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(terminal: &Terminal, state: State, behaviour: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "arm_process::child", "--nocapture", "--test-threads", "1"])
            .env(SPEC, format!("{} {state:?} {behaviour}", terminal.path))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut running = Self { child, lines };
        running.await_line(READY);
        running
    }

    fn await_line(&mut self, wanted: &str) {
        assert!(self.lines.by_ref().any(|line| line.unwrap().contains(wanted)), "the child has ended early");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn ended(mut self) -> ExitStatus {
        // Whatever it still says must not block it.
        self.lines.by_ref().for_each(drop);
        self.child.wait().unwrap()
    }
}

const OFF: [i32; 6] = [0; 6];
const ON: [i32; 6] = [1; 6];

#[test]
fn a_killed_process_leaves_the_arm_relaxed_or_held_at_its_last_goal() {
    for (state, torque) in [(State::Relaxed, OFF), (State::Holding, ON), (State::Armed, ON)] {
        let terminal = Terminal::new();
        let running = Running::start(&terminal, state, "loop");
        running.signal(Signal::KILL);
        assert!(!running.ended().success());
        assert_eq!(terminal.torques(), torque, "{state:?}");
        let goals = terminal.goals();
        // Two seconds later it stands at what it was told last: nothing runs on, nothing sinks.
        terminal.time.extra_ms.fetch_add(2000, Ordering::SeqCst);
        let there = terminal.servos.true_ticks();
        if state != State::Relaxed {
            assert_eq!(there, goals.map(f64::from), "{state:?}");
        }
        assert_eq!(there[0] < 2048.0, state == State::Armed, "only an armed arm has moved: {there:?}");
        assert_eq!((terminal.torques(), terminal.goals()), (torque, goals));
    }
}

#[test]
fn ctrl_c_and_sigterm_relax_the_arm_in_every_state() {
    for signal in [Signal::INT, Signal::TERM] {
        for state in [State::Relaxed, State::Holding, State::Armed] {
            let terminal = Terminal::new();
            let running = Running::start(&terminal, state, "loop");
            running.signal(signal);
            assert_eq!(running.ended().code(), Some(130), "{state:?}");
            assert_eq!(terminal.torques(), OFF, "{state:?} {signal:?}");
        }
    }
}

#[test]
fn a_panic_relaxes_the_arm_with_and_without_the_hook() {
    for behaviour in ["panic", "panic_hook"] {
        for state in [State::Relaxed, State::Holding, State::Armed] {
            let terminal = Terminal::new();
            let running = Running::start(&terminal, state, behaviour);
            // 101 is what a test binary ends with when a test has panicked.
            assert_eq!(running.ended().code(), Some(101), "{state:?} {behaviour}");
            assert_eq!(terminal.torques(), OFF, "{state:?} {behaviour}");
        }
    }
}

#[test]
fn where_it_is_asked_for_the_arm_is_ramped_to_rest_first_or_held() {
    for state in [State::Holding, State::Armed] {
        let terminal = Terminal::new();
        let running = Running::start(&terminal, state, "ramp");
        running.signal(Signal::TERM);
        assert_eq!(running.ended().code(), Some(130), "{state:?}");
        assert_eq!(terminal.torques(), OFF, "{state:?}");
        let truth = terminal.servos.true_joints(&Calibration::model());
        for d in truth.body {
            assert!((d.0 - REST_DEG).abs() < 4.0, "{state:?}: {truth:?}");
        }

        let terminal = Terminal::new();
        let running = Running::start(&terminal, state, "hold");
        running.signal(Signal::INT);
        assert_eq!(running.ended().code(), Some(130), "{state:?}");
        assert_eq!(terminal.torques(), ON, "{state:?}");
    }
}

#[test]
fn a_second_ctrl_c_stops_an_arm_whose_program_does_not_listen() {
    for state in [State::Holding, State::Armed] {
        let terminal = Terminal::new();
        let mut running = Running::start(&terminal, state, "deaf");
        running.signal(Signal::INT);
        running.await_line("asked");
        assert_eq!(terminal.torques(), ON, "{state:?}");
        running.signal(Signal::INT);
        assert_eq!(running.ended().code(), Some(130), "{state:?}");
        assert_eq!(terminal.torques(), OFF, "{state:?}");
    }
}
