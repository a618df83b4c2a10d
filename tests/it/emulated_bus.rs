//! The example `emulated_bus` as other programs see it: a port, a link to it, and lines on stdin.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use so101::hal::bus::{Bus, ServoBus as _, SyncReplies};
use so101::hal::port::FdPort;
use so101::hal::registers::{GOAL_POSITION, PRESENT_POSITION, TORQUE_ENABLE};
use so101::hal::{Alarms, Error, ServoId};

use crate::programs::{example, stderr, stdout, succeed};

/// The program, ended when the test is over.
struct Emulated {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    link: PathBuf,
}

impl Emulated {
    fn start(link: &Path, options: &[&str]) -> Self {
        let mut command = example("emulated_bus");
        command.arg("--quiet").arg("--link").arg(link).args(options);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut emulated = Self { child, stdin, stdout, link: link.to_owned() };
        assert_eq!(emulated.line(), format!("ready {}", link.display()));
        emulated
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the program is gone");
        line.trim_end().to_owned()
    }

    /// What the program answers to a command, up to its last word.
    fn tell(&mut self, command: &str) -> Vec<String> {
        writeln!(self.stdin.as_ref().unwrap(), "{command}").unwrap();
        let mut answer = Vec::new();
        loop {
            let line = self.line();
            let is_last = line == "ok" || line.starts_with("error ");
            answer.push(line);
            if is_last {
                return answer;
            }
        }
    }

    fn bus(&self) -> Bus<FdPort> {
        Bus::new(FdPort::open(self.link.to_str().unwrap()).unwrap())
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that the other process does.
#[track_caller]
fn eventually(mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < end, "it did not happen");
        std::thread::yield_now();
    }
}

fn id(id: u8) -> ServoId {
    ServoId::new(id).unwrap()
}

#[test]
fn a_client_reads_and_moves_the_servos_through_the_link() {
    let dir = tempfile::tempdir().unwrap();
    let mut emulated = Emulated::start(&dir.path().join("arm"), &["--fw", "3.9", "--seed", "5"]);
    let mut bus = emulated.bus();
    let mut replies = SyncReplies::new();
    bus.sync_read(PRESENT_POSITION.block(), &ServoId::ARM, &mut replies).unwrap();
    assert!(replies.iter().all(|(_, reply)| reply.is_ok()));
    assert_eq!(emulated.tell("get 4 Firmware_Minor_Version"), ["9", "ok"]);
    bus.write_register(id(6), &GOAL_POSITION, 2300).unwrap();
    eventually(|| bus.read_register(id(6), &PRESENT_POSITION).unwrap().value == 2300);
    assert_eq!(emulated.tell("get gripper Torque_Enable"), ["1", "ok"]);
}

#[test]
fn lines_on_stdin_make_faults_and_their_end_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut emulated = Emulated::start(&dir.path().join("arm"), &[]);
    let mut bus = emulated.bus();
    assert_eq!(emulated.tell("drop 1 3"), ["ok"]);
    assert!(bus.ping(id(3)).is_err() && bus.ping(id(4)).is_ok());
    assert_eq!(emulated.tell("clear"), ["ok"]);
    assert_eq!(emulated.tell("err 1 32 3"), ["ok"]);
    eventually(|| bus.ping(id(3)).is_ok_and(|alarms| alarms == Alarms::OVERLOAD));
    assert_eq!(emulated.tell("clear"), ["ok"]);
    let refused = emulated.tell("dorp 1 3");
    assert!(
        refused.len() == 1 && refused[0].starts_with("error ") && refused[0].contains("dorp"),
        "{refused:?}"
    );
    assert!(emulated.tell("help").iter().any(|line| line.contains("brownout")));
    emulated.stdin = None;
    // The program goes on without anybody who commands.
    eventually(|| bus.ping(id(3)).is_ok());
    bus.write_register(id(1), &GOAL_POSITION, 2100).unwrap();
    eventually(|| bus.read_register(id(1), &PRESENT_POSITION).unwrap().value == 2100);
    assert_eq!(emulated.child.try_wait().unwrap(), None);
}

#[test]
fn an_unplugged_adapter_is_an_error_and_comes_back_under_the_same_link() {
    let dir = tempfile::tempdir().unwrap();
    let mut emulated = Emulated::start(&dir.path().join("arm"), &[]);
    let mut bus = emulated.bus();
    bus.write_register(id(2), &TORQUE_ENABLE, 1).unwrap();
    assert_eq!(emulated.tell("unplug"), ["ok"]);
    eventually(|| matches!(bus.ping(id(2)), Err(Error::PortIo { .. })));
    eventually(|| !emulated.link.exists());
    assert!(matches!(bus.reopen(), Err(Error::PortNotFound { .. })));
    assert_eq!(emulated.tell("replug"), ["ok"]);
    eventually(|| bus.reopen().is_ok());
    // Losing the adapter relaxes nobody.
    assert_eq!(bus.read_register(id(2), &TORQUE_ENABLE).unwrap().value, 1);
}

#[test]
fn a_brown_out_takes_the_torque_and_an_open_eeprom_write_and_raises_the_voltage_alarm() {
    let dir = tempfile::tempdir().unwrap();
    let mut emulated = Emulated::start(&dir.path().join("arm"), &[]);
    let mut bus = emulated.bus();
    bus.write_register(id(5), &TORQUE_ENABLE, 1).unwrap();
    assert_eq!(emulated.tell("brownout"), ["ok"]);
    let reading = bus.read_register(id(5), &TORQUE_ENABLE).unwrap();
    assert_eq!((reading.value, reading.alarms), (0, Alarms::VOLTAGE));
}

#[test]
fn only_servos_at_the_clients_rate_hear_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut emulated = Emulated::start(&dir.path().join("arm"), &["--ids", "1,2,9"]);
    assert_eq!(emulated.tell("set 2 Baud_Rate 1"), ["ok"]);
    let mut bus = emulated.bus();
    let heard: Vec<u8> = (1..=9).filter(|n| bus.ping(id(*n)).is_ok()).collect();
    assert_eq!(heard, [1, 9]);
    let slow = so101::hal::SerialPort::open_at(
        emulated.link.canonicalize().unwrap().to_str().unwrap(),
        so101::hal::registers::BaudRate::K500,
    );
    // The port is for one program at a time.
    assert!(matches!(slow, Err(Error::PortBusy { .. } | Error::PortHeld { .. })), "{slow:?}");
    drop(bus);
    let port = so101::hal::SerialPort::open_at(
        emulated.link.to_str().unwrap(),
        so101::hal::registers::BaudRate::K500,
    );
    let mut bus = Bus::new(port.unwrap());
    let heard: Vec<u8> = (1..=9).filter(|n| bus.ping(id(*n)).is_ok()).collect();
    assert_eq!(heard, [2]);
}

#[test]
fn a_second_program_is_refused_a_dead_ones_link_is_taken_and_signals_clean_up() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("arm");
    let mut emulated = Emulated::start(&link, &[]);
    let second = example("emulated_bus").arg("--link").arg(&link).output().unwrap();
    assert_eq!(second.status.code(), Some(3), "{}", stderr(&second));
    assert!(stderr(&second).contains("another emulated bus"), "{}", stderr(&second));
    emulated.bus().ping(id(1)).unwrap();
    emulated.child.kill().unwrap();
    emulated.end();
    assert!(link.is_symlink(), "nobody could clean up");

    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let mut emulated = Emulated::start(&link, &[]);
        emulated.signal(signal);
        assert_eq!(emulated.end(), Some(130), "{signal:?}");
        assert!(!link.is_symlink(), "{signal:?}");
    }

    std::fs::write(&link, "precious").unwrap();
    let refused = example("emulated_bus").arg("--link").arg(&link).output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert_eq!(std::fs::read_to_string(&link).unwrap(), "precious");
}

#[test]
fn the_help_lists_the_commands() {
    let help = stdout(&succeed(example("emulated_bus").arg("--help")));
    for word in ["--link", "--wire", "--calibration", "drop|trunc", "late PROBABILITY MS", "unplug, replug"] {
        assert!(help.contains(word), "{word}: {help}");
    }
}
