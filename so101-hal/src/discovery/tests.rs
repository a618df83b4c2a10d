#![cfg(feature = "std")]

use std::fs;
use std::path::Path;

use super::*;
use crate::emulator::{EmulatedServos, EmulatorOptions};
use crate::{Calibration, Error, JointCalibration, JointId, VirtualClock, registers};

fn put(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A computer with ports, as sysfs shows them.
struct Computer(tempfile::TempDir);

/// A USB device with one terminal.
struct Usb<'a> {
    tty: &'a str,
    socket: &'a str,
    vid: &'a str,
    pid: &'a str,
    serial: &'a str,
}

#[cfg(unix)]
impl Computer {
    fn new() -> Self {
        let computer = Self(tempfile::tempdir().unwrap());
        // A user in no group but his own.
        computer.user(&[54321]);
        computer.put("etc/passwd", "root:x:0:0::/home:/bin/sh\nme:x:54321:54321::/home/me:/bin/sh\n");
        computer.put("sys/class/tty/tty0/uevent", "");
        computer
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, file: &str, text: &str) {
        put(self.root(), file, text);
    }

    fn user(&self, groups: &[u32]) {
        let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
        let ids = "54321\t54321\t54321\t54321";
        let text = format!("Name:\tme\nUid:\t{ids}\nGid:\t{ids}\nGroups:\t{} \n", groups.join(" "));
        self.put("proc/self/status", &text);
    }

    fn discovery(&self) -> Discovery {
        Discovery::at(self.root())
    }

    fn link(&self, target: &str, link: &str) {
        let path = self.root().join(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    fn plug(&self, usb: &Usb<'_>) {
        let Usb { tty, socket, vid, pid, serial } = usb;
        let device = format!("sys/devices/usb1/{socket}");
        for (file, text) in [("idVendor", vid), ("idProduct", pid), ("serial", serial)] {
            if !text.is_empty() {
                self.put(&format!("{device}/{file}"), &format!("{text}\n"));
            }
        }
        self.put(&format!("{device}/product"), "USB Single Serial\n");
        // ttyACM hangs on the interface, ttyUSB one level below it.
        let parent = if tty.starts_with("ttyUSB") {
            format!("{device}/{socket}:1.0/{tty}")
        } else {
            format!("{device}/{socket}:1.0")
        };
        self.put(&format!("{parent}/uevent"), "");
        self.link(self.root().join(&parent).to_str().unwrap(), &format!("sys/class/tty/{tty}/device"));
        self.put(&format!("dev/{tty}"), "");
        if !serial.is_empty() {
            self.link(&format!("../../{tty}"), &format!("dev/serial/by-id/usb-{vid}_{serial}-if00"));
        }
        self.link(&format!("../../{tty}"), &format!("dev/serial/by-path/usb-0:{socket}:1.0"));
        self.mode(tty, 0o666);
    }

    fn unplug(&self, tty: &str) {
        fs::remove_dir_all(self.root().join(format!("sys/class/tty/{tty}"))).unwrap();
    }

    fn mode(&self, tty: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(self.root().join("dev").join(tty), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn gid(&self, tty: &str) -> u32 {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(self.root().join("dev").join(tty)).unwrap().gid()
    }
}

const FOLLOWER: Usb<'_> =
    Usb { tty: "ttyACM0", socket: "1-1.1", vid: "1a86", pid: "55d3", serial: "58FA083460" };
const LEADER: Usb<'_> =
    Usb { tty: "ttyACM1", socket: "1-1.2", vid: "1a86", pid: "55d3", serial: "58FA083461" };
const BARE: Usb<'_> = Usb { tty: "ttyUSB0", socket: "1-2", vid: "1a86", pid: "7523", serial: "" };

#[cfg(unix)]
#[test]
fn every_adapter_is_found_with_its_ids_and_links() {
    let computer = Computer::new();
    for usb in [
        FOLLOWER,
        LEADER,
        BARE,
        Usb { tty: "ttyACM2", socket: "1-3", vid: "1a86", pid: "55d4", serial: "0" },
        Usb { tty: "ttyUSB1", socket: "1-4", vid: "1a86", pid: "5523", serial: "" },
        Usb { tty: "ttyUSB2", socket: "1-5", vid: "10c4", pid: "ea60", serial: "0001" },
        Usb { tty: "ttyUSB10", socket: "1-6", vid: "0403", pid: "6001", serial: "A50285BI" },
        Usb { tty: "ttyUSB3", socket: "1-7", vid: "0403", pid: "6014", serial: "FT8" },
        Usb { tty: "ttyACM9", socket: "1-8", vid: "2341", pid: "0043", serial: "85430353" },
    ] {
        computer.plug(&usb);
    }
    computer.link("/dev/ttyACM0", "dev/so101_follower");
    // A UART of the board, and one that the driver only reserves.
    for (tty, kind) in [("ttyAMA0", "32\n"), ("ttyS4", "0\n")] {
        computer.put(&format!("sys/devices/platform/{tty}/uevent"), "");
        let device = computer.root().join(format!("sys/devices/platform/{tty}"));
        computer.link(device.to_str().unwrap(), &format!("sys/class/tty/{tty}/device"));
        computer.put(&format!("sys/class/tty/{tty}/type"), kind);
    }
    let ports = computer.discovery().ports();
    let found: Vec<(&str, Option<&str>, Likelihood)> =
        ports.iter().map(|p| (p.path.as_str(), p.adapter.map(|a| a.chip), p.likelihood())).collect();
    use Likelihood::{Likely, Possible, Unlikely};
    assert_eq!(
        found,
        [
            ("/dev/ttyACM0", Some("CH343"), Likely),
            ("/dev/ttyACM1", Some("CH343"), Likely),
            ("/dev/ttyACM2", Some("CH9102F"), Likely),
            ("/dev/ttyUSB0", Some("CH340"), Possible),
            ("/dev/ttyUSB1", Some("CH341"), Possible),
            ("/dev/ttyUSB2", Some("CP210x"), Possible),
            ("/dev/ttyUSB3", Some("FT232H"), Possible),
            ("/dev/ttyUSB10", Some("FT232R"), Possible),
            ("/dev/ttyACM9", None, Unlikely),
            ("/dev/ttyAMA0", None, Unlikely),
        ]
    );
    let [follower, leader, ..] = ports.as_slice() else { panic!() };
    assert_eq!(follower.serial.as_deref(), Some("58FA083460"));
    assert_eq!(follower.usb_id().as_deref(), Some("1a86:55d3"));
    assert_eq!(follower.usb_socket.as_deref(), Some("1-1.1"));
    assert_eq!(follower.by_path.as_deref(), Some("/dev/serial/by-path/usb-0:1-1.1:1.0"));
    assert_eq!(follower.stable_path(), "/dev/so101_follower");
    assert_eq!(leader.stable_path(), "/dev/serial/by-id/usb-1a86_58FA083461-if00");
    assert_eq!(ports[3].stable_path(), "/dev/serial/by-path/usb-0:1-2:1.0");
    assert_eq!((ports[3].serial.as_ref(), ports[9].stable_path()), (None, "/dev/ttyAMA0"));
}

#[cfg(unix)]
#[test]
fn a_computer_without_ports_has_none() {
    assert!(Computer::new().discovery().ports().is_empty());
    let nothing = tempfile::tempdir().unwrap();
    fs::create_dir_all(nothing.path().join("sys/class/tty")).unwrap();
    assert!(Discovery::at(nothing.path()).ports().is_empty());
}

#[cfg(unix)]
#[test]
fn where_no_group_may_open_a_port_only_a_rule_helps() {
    let computer = Computer::new();
    computer.plug(&FOLLOWER);
    assert_eq!(computer.discovery().access("/dev/ttyACM0"), PortAccess::Granted);
    computer.mode("ttyACM0", 0o600);
    let port = computer.discovery().port("/dev/ttyACM0").unwrap();
    assert_eq!(port.permission, PortAccess::Denied { group: None, member_after_login: false });
    let fix = port.permission.fix(&port).unwrap();
    assert!(!fix.contains("usermod") && fix.contains("MODE=\"0666\""), "{fix}");
}

#[cfg(unix)]
#[test]
fn the_group_that_may_is_named_and_a_member_only_has_to_log_in_again() {
    let computer = Computer::new();
    computer.plug(&FOLLOWER);
    computer.mode("ttyACM0", 0o660);
    // Root's group helps nobody; others keep their files in a group that the made-up user is not in.
    if computer.gid("ttyACM0") == 0 {
        std::os::unix::fs::chown(computer.root().join("dev/ttyACM0"), None, Some(20)).unwrap();
    }
    let gid = computer.gid("ttyACM0");
    computer.put("etc/group", &format!("root:x:0:\ndialout:x:{gid}:somebody\n"));
    let port = computer.discovery().port("/dev/serial/by-id/usb-1a86_58FA083460-if00").unwrap();
    let denied =
        |member_after_login| PortAccess::Denied { group: Some("dialout".into()), member_after_login };
    assert_eq!(port.permission, denied(false));
    let fix = port.permission.fix(&port).unwrap();
    assert!(fix.contains("usermod -aG dialout") && fix.contains("ATTRS{idProduct}==\"55d3\""), "{fix}");
    let opened = Error::PortPermission { path: "/dev/ttyACM0".into() };
    let text = explain(&computer.discovery(), opened).to_string();
    assert!(text.contains("dialout") && text.contains("1a86") && text.ends_with(": /dev/ttyACM0"), "{text}");

    computer.put("etc/group", &format!("root:x:0:\ndialout:x:{gid}:somebody,me\n"));
    let port = computer.discovery().port("/dev/ttyACM0").unwrap();
    assert_eq!(port.permission, denied(true));
    assert!(port.permission.fix(&port).unwrap().starts_with("log in again"));

    computer.user(&[gid]);
    assert_eq!(computer.discovery().access("/dev/ttyACM0"), PortAccess::Granted);
    assert_eq!(computer.discovery().access("/dev/ttyACM7"), PortAccess::Missing);
}

#[cfg(unix)]
#[test]
fn a_port_that_another_program_holds_names_it() {
    use std::os::unix::fs::MetadataExt as _;
    let computer = Computer::new();
    computer.plug(&FOLLOWER);
    computer.plug(&LEADER);
    computer.put("proc/4711/comm", "lerobot-record\n");
    computer.link("/dev/ttyACM0", "proc/4711/fd/7");
    computer.link("/dev/null", "proc/4711/fd/0");
    // Another user's process: its descriptors cannot be seen, its lock can.
    let meta = fs::metadata(computer.root().join("dev/ttyACM1")).unwrap();
    let device = format!("{:02x}:{:02x}:{}", meta.dev() >> 8 & 0xfff, meta.dev() & 0xff, meta.ino());
    computer.put("proc/locks", &format!("1: POSIX  ADVISORY  WRITE 12 00:01:99 0 EOF\n2: FLOCK  ADVISORY  WRITE 815 {device} 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 816 {device} 0 EOF\n"));
    let ports = computer.discovery().ports();
    let holders = |i: usize| match &ports[i].permission {
        PortAccess::Held { by } => by.iter().map(ToString::to_string).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(holders(0), ["lerobot-record (process 4711)"]);
    assert_eq!(holders(1), ["process 815"]);
    let busy = Error::PortBusy { path: "/dev/ttyACM0".into() };
    let text = explain(&computer.discovery(), busy).to_string();
    assert_eq!(text, "lerobot-record (process 4711) holds the serial port; end it: /dev/ttyACM0");
}

#[cfg(unix)]
#[test]
fn a_rule_takes_the_serial_number_and_the_socket_where_there_is_none_of_its_own() {
    let computer = Computer::new();
    let twin = Usb { tty: "ttyUSB1", socket: "1-3", vid: "10c4", pid: "ea60", serial: "0001" };
    for usb in [FOLLOWER, LEADER, BARE, twin] {
        computer.plug(&usb);
    }
    let ports = computer.discovery().ports();
    let rule = |i: usize| link_rule(&ports[i], "so101_follower", &ports).unwrap();
    assert_eq!(
        rule(0),
        "SUBSYSTEM==\"tty\", ATTRS{idVendor}==\"1a86\", ATTRS{idProduct}==\"55d3\", \
         ATTRS{serial}==\"58FA083460\", MODE=\"0666\", SYMLINK+=\"so101_follower\""
    );
    assert!(rule(2).contains("ATTRS{idProduct}==\"7523\", KERNELS==\"1-2\", MODE"), "{}", rule(2));
    assert!(rule(3).contains("KERNELS==\"1-3\""), "a serial number from the factory is no name: {}", rule(3));
    // Two boards with one serial number.
    let mut twins = ports.clone();
    twins[1].serial = twins[0].serial.clone();
    assert!(link_rule(&twins[0], "x", &twins).unwrap().contains("KERNELS==\"1-1.1\""));
    // What a device says is no part of the rule's grammar.
    let mut hostile = ports[0].clone();
    hostile.serial = Some("a\", RUN+=\"evil*".into());
    let text = link_rule(&hostile, "so101 \"x\n", &[]).unwrap();
    assert!(text.contains("ATTRS{serial}==\"a?, RUN??? evil?\"") || !text.contains("RUN+="), "{text}");
    assert!(text.ends_with("SYMLINK+=\"so101x\""), "{text}");
    assert_eq!(link_rule(&PortInfo::new("/dev/ttyAMA0"), "x", &[]), None);
}

#[cfg(unix)]
#[test]
fn what_comes_goes_or_gets_another_node_is_noticed() {
    let computer = Computer::new();
    computer.plug(&FOLLOWER);
    computer.plug(&BARE);
    let mut watch = PortWatch::new(computer.discovery());
    assert_eq!((watch.poll(), watch.ports().len()), (Vec::new(), 2));
    computer.plug(&LEADER);
    let [PortEvent::Appeared { port }] = &watch.poll()[..] else { panic!() };
    assert_eq!(port.path, "/dev/ttyACM1");
    computer.unplug("ttyUSB0");
    let [PortEvent::Vanished { port }] = &watch.poll()[..] else { panic!() };
    assert_eq!(port.path, "/dev/ttyUSB0");
    // Unplugged and plugged in again between two looks: another node, the same serial number.
    computer.unplug("ttyACM0");
    computer.plug(&Usb { tty: "ttyACM5", socket: "1-9", ..FOLLOWER });
    let [PortEvent::Moved { from, port }] = &watch.poll()[..] else { panic!() };
    assert_eq!((from.as_str(), port.path.as_str()), ("/dev/ttyACM0", "/dev/ttyACM5"));
    assert_eq!(watch.poll(), []);
}

#[test]
fn two_bare_adapters_that_swap_nodes_are_noticed_by_their_sockets() {
    let port = |path: &str, socket: &str| {
        let mut port = PortInfo::new(path);
        (port.vid, port.pid) = (Some(0x1a86), Some(0x7523));
        port.usb_socket = Some(socket.into());
        port
    };
    let before = [port("/dev/ttyUSB0", "1-1"), port("/dev/ttyUSB1", "1-2")];
    let after = [port("/dev/ttyUSB0", "1-2"), port("/dev/ttyUSB1", "1-1")];
    let moves: Vec<(String, String)> = changes(&before, &after)
        .into_iter()
        .map(|e| match e {
            PortEvent::Moved { from, port } => (from, port.path),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        moves,
        [("/dev/ttyUSB0".into(), "/dev/ttyUSB1".into()), ("/dev/ttyUSB1".into(), "/dev/ttyUSB0".into())]
    );
}

/// A calibration like no other.
fn calibration(seed: i32) -> Calibration {
    let model = Calibration::model();
    let joints = core::array::from_fn(|i| {
        let c = model.joints()[i];
        let shift = (seed * 37 + i as i32 * 101) % 400;
        let full = c.range_max == 4095;
        JointCalibration {
            homing_offset: shift - 200,
            range_min: if full { 0 } else { c.range_min + shift / 4 },
            range_max: if full { 4095 } else { c.range_max - shift / 5 },
            ..c
        }
    });
    Calibration::new(joints)
}

fn servos(calibration: &Calibration) -> EmulatedServos {
    let servos = EmulatedServos::new(std::sync::Arc::new(VirtualClock::new()), EmulatorOptions::default());
    servos.store_calibration(calibration).unwrap();
    servos
}

fn known() -> Vec<(String, Calibration)> {
    [("leader", 1), ("follower", 2), ("spare", 3)].map(|(id, n)| (id.to_string(), calibration(n))).into()
}

#[test]
fn an_arm_is_known_by_what_its_servos_hold_and_nothing_is_written() {
    for (id, calibration) in known() {
        let servos = servos(&calibration);
        let torque = |j| servos.register(j, &registers::TORQUE_ENABLE).unwrap();
        let before: Vec<i32> = crate::JOINTS.map(torque).into();
        let print = identify(&mut servos.bus()).unwrap();
        assert_eq!(print.answered(), 6);
        assert_eq!(match_calibration(&print, &known()), Match::Exact { ids: vec![id] });
        assert_eq!(crate::JOINTS.map(torque).to_vec(), before);
        assert_eq!(servos.transactions(), 4);
    }
}

#[test]
fn files_that_are_alike_are_all_named() {
    let mut files = known();
    files.push(("copy".into(), calibration(2)));
    let print = identify(&mut servos(&calibration(2)).bus()).unwrap();
    assert_eq!(
        match_calibration(&print, &files),
        Match::Exact { ids: vec!["follower".into(), "copy".into()] }
    );
}

#[test]
fn an_arm_with_a_new_servo_is_near_with_what_differs() {
    let arm = servos(&calibration(2));
    arm.set_register(JointId::ElbowFlex, &registers::HOMING_OFFSET, -11).unwrap();
    let print = identify(&mut arm.bus()).unwrap();
    let Match::Near { id, differences } = match_calibration(&print, &known()) else { panic!() };
    let file = calibration(2).get(JointId::ElbowFlex).homing_offset;
    let said: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(id, "follower");
    assert_eq!(said, [format!("elbow_flex homing_offset: servo -11, file {file}")]);
}

#[test]
fn arms_that_are_none_of_the_known_ones_are_told_apart() {
    let factory = servos(&calibration(9));
    for joint in crate::JOINTS {
        for (register, value) in [
            (registers::HOMING_OFFSET, 0),
            (registers::MIN_POSITION_LIMIT, 0),
            (registers::MAX_POSITION_LIMIT, 4095),
        ] {
            factory.set_register(joint, &register, value).unwrap();
        }
    }
    let print = identify(&mut factory.bus()).unwrap();
    assert_eq!(match_calibration(&print, &known()), Match::Uncalibrated);
    assert_eq!(print.likely_role(), None);
    let print = identify(&mut servos(&calibration(9)).bus()).unwrap();
    assert_eq!(match_calibration(&print, &known()), Match::Unknown);
    assert_eq!(match_calibration(&print, &[]), Match::Unknown);
    assert_eq!(match_calibration(&Fingerprint::default(), &known()), Match::Silent);
}

#[test]
fn a_follower_is_told_from_a_leader_by_what_lerobot_writes_into_it() {
    let arm = servos(&calibration(2));
    assert_eq!(identify(&mut arm.bus()).unwrap().likely_role(), Some(ArmRole::Leader));
    arm.set_register(JointId::Gripper, &registers::MAX_TORQUE_LIMIT, 500).unwrap();
    assert_eq!(identify(&mut arm.bus()).unwrap().likely_role(), Some(ArmRole::Follower));
}

#[test]
fn servos_that_do_not_answer_leave_gaps() {
    use crate::emulator::{Fault, FaultRule};
    let arm = servos(&calibration(2));
    arm.inject(FaultRule { servo: Some(crate::ServoId::ARM[4]), ..FaultRule::always(Fault::Drop) });
    let print = identify(&mut arm.bus()).unwrap();
    assert_eq!(print.answered(), 5);
    let Match::Near { id, differences } = match_calibration(&print, &known()) else { panic!() };
    assert_eq!((id.as_str(), differences.len()), ("follower", 1));
    assert_eq!(differences[0].to_string(), "wrist_roll: the servo does not answer");
}

#[test]
fn swapped_arms_are_named_with_the_port_where_they_are() {
    let expected = [("a", "leader"), ("b", "follower")];
    assert_eq!(misplaced(&expected, &[("a", "leader"), ("b", "follower")]), []);
    let swapped = misplaced(&expected, &[("a", "follower"), ("b", "leader")]);
    let said: Vec<_> = swapped.iter().map(|m| (m.id.as_str(), m.found_port.as_deref())).collect();
    assert_eq!(said, [("leader", Some("b")), ("follower", Some("a"))]);
    let gone = misplaced(&expected, &[("a", "leader")]);
    assert_eq!((gone.len(), gone[0].found_port.as_deref()), (1, None));
}
