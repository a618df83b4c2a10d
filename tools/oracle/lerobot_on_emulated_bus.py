#!/usr/bin/env python3
"""LeRobot's own motor bus, follower and leader on this project's emulated servos.

    python lerobot_on_emulated_bus.py --program target/release/examples/emulated_bus

Nothing of LeRobot is replaced but the person: ENTER is pressed and the arm is moved by commands to the emulator. The
expected outcomes of the faults are what LeRobot was measured to do on an emulator of another make.
"""
import argparse, builtins, contextlib, io, json, os, tempfile, time
from pathlib import Path

from emulated_bus import JOINTS, Checks, EmulatedBus, eventually

SERVOS = dict(zip(JOINTS, range(1, 7)))


def motors():
    from lerobot.motors import Motor, MotorNormMode

    return {name: Motor(i, "sts3215", MotorNormMode.RANGE_0_100 if name == "gripper" else MotorNormMode.DEGREES)
            for name, i in SERVOS.items()}


class Person:
    """Moves the emulated arm when LeRobot asks for it, and presses ENTER."""

    def __init__(self, bus, middle, low, high):
        self.bus, self.middle, self.low, self.high = bus, middle, low, high
        self.asked, self.sweep = [], iter(())

    def at(self, places):
        for servo, ticks in zip(SERVOS.values(), places):
            self.bus.place(servo, ticks)

    def input(self, prompt=""):
        self.asked.append(prompt)
        if "middle of its range" in prompt:
            self.at(self.middle)
            self.sweep = iter([self.low, self.high, self.middle])
        return "c" if "type 'c'" in prompt else ""

    def enter_pressed(self):
        place = next(self.sweep, None)
        if place is None:
            return True
        self.at(place)
        return False

    @contextlib.contextmanager
    def present(self):
        import lerobot.motors.motors_bus as module

        before = builtins.input, module.enter_pressed
        builtins.input, module.enter_pressed = self.input, self.enter_pressed
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield self
        finally:
            builtins.input, module.enter_pressed = before


def raw(bus):
    return bus.sync_read("Present_Position", normalize=False)


def check_bus(checks, emulated):
    from lerobot.motors.feetech import FeetechMotorsBus

    bus = FeetechMotorsBus(emulated.link, motors())
    bus.connect()
    checks.that("bus: connect (six pings, one firmware)", bus.is_connected)
    checks.equal("bus: broadcast_ping", bus.broadcast_ping(), dict.fromkeys(range(1, 7), 777))
    bus.configure_motors()
    checks.equal("bus: configure_motors", [emulated.register(i, "Return_Delay_Time") for i in range(1, 7)], [0] * 6)
    for i in SERVOS.values():
        emulated.place(i, 2048 + 37 * i)
    checks.equal("bus: sync_read", list(raw(bus).values()), [2048 + 37 * i for i in range(1, 7)])
    bus.disable_torque()
    checks.equal("bus: set_half_turn_homings", bus.set_half_turn_homings(), {n: 1 + 37 * i for n, i in SERVOS.items()})
    checks.equal("bus: sync_read is in the middle then", list(raw(bus).values()), [2047] * 6)
    checks.equal("bus: nothing moves", bus.sync_read("Present_Velocity", normalize=False),
                 dict.fromkeys(JOINTS, 0))
    emulated.tell("load 3 -300")
    bus.enable_torque("elbow_flex")
    checks.that("bus: a load of -30 % is read",
                eventually(lambda: bus.read("Present_Load", "elbow_flex", normalize=False) == -300))
    emulated.tell("load 3 0")
    bus.disable_torque()
    bus.reset_calibration()
    bus.disconnect()


def check_scan(checks, emulated):
    from lerobot.motors.feetech import FeetechMotorsBus

    emulated.tell("set 5 Baud_Rate 1")
    emulated.tell("id 6 9")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = FeetechMotorsBus.scan_port(emulated.link)
    checks.equal("bus: scan_port finds one servo at 500 kbaud", found, {1_000_000: [1, 2, 3, 4, 9], 500_000: [5]})
    emulated.tell("set 5 Baud_Rate 0")
    checks.raises("bus: connect names the missing motor", Exception, "6",
                  lambda: FeetechMotorsBus(emulated.link, motors()).connect())
    emulated.tell("id 6 6")
    emulated.tell("set 2 Firmware_Minor_Version 9")
    checks.raises("bus: connect refuses a mixed firmware", RuntimeError, "different firmware",
                  lambda: FeetechMotorsBus(emulated.link, motors()).connect())
    emulated.tell("set 2 Firmware_Minor_Version 10")


def calibrates(checks, emulated, arm, person, who):
    with person.present():
        arm.connect()
    checks.that(f"{who}: connect asks for a calibration and does it", any("middle" in p for p in person.asked))
    got = {n: (c.homing_offset, c.range_min, c.range_max) for n, c in arm.calibration.items()}
    offsets = {n: m - 2047 for n, m in zip(JOINTS, person.middle)}
    want = {n: (offsets[n], low - offsets[n], high - offsets[n])
            for n, low, high in zip(JOINTS, person.low, person.high)}
    want["wrist_roll"] = (offsets["wrist_roll"], 0, 4095)
    checks.equal(f"{who}: the calibration is where the hand went", got, want)
    in_file = {n: (c["homing_offset"], c["range_min"], c["range_max"])
               for n, c in json.loads(arm.calibration_fpath.read_text()).items()}
    checks.equal(f"{who}: so says its file", in_file, want)
    registers = ("Homing_Offset", "Min_Position_Limit", "Max_Position_Limit")
    checks.equal(f"{who}: and so do the servos",
                 {n: tuple(emulated.register(i, r) for r in registers) for n, i in SERVOS.items()}, want)
    checks.that(f"{who}: is_calibrated", arm.is_calibrated)


def reconnects(checks, emulated, make, who):
    """With the calibration's file, and again after the servos had no power: nobody is asked anything."""
    nobody = Person(emulated, None, None, None)
    for when in ("reconnect", "reconnect after a power cycle"):
        if "power" in when:
            emulated.tell("power cycle")
        arm = make()
        with nobody.present():
            arm.connect()
        checks.that(f"{who}: {when}, is_calibrated", arm.is_calibrated and not nobody.asked, nobody.asked)
        if "power" not in when:
            arm.disconnect()
    return arm


def check_follower(checks, emulated, folder):
    from lerobot.robots.so_follower import SO101Follower, SO101FollowerConfig

    def make():
        return SO101Follower(SO101FollowerConfig(port=emulated.link, id="follower", calibration_dir=folder))

    middle = [2100, 1900, 2300, 2048, 1500, 2600]
    person = Person(emulated, middle, [m - 700 - 10 * i for i, m in enumerate(middle)],
                    [m + 800 + 13 * i for i, m in enumerate(middle)])
    arm = make()
    calibrates(checks, emulated, arm, person, "follower")
    for name, want in (("P_Coefficient", [16] * 6), ("I_Coefficient", [0] * 6), ("D_Coefficient", [32] * 6),
                       ("Return_Delay_Time", [0] * 6), ("Torque_Enable", [1] * 6), ("Lock", [1] * 6),
                       ("Acceleration", [254] * 6), ("Maximum_Acceleration", [254] * 6)):
        checks.equal(f"follower: {name} after connect", [emulated.register(i, name) for i in range(1, 7)], want)
    gripper = [emulated.register(6, r) for r in ("Max_Torque_Limit", "Protection_Current", "Overload_Torque")]
    checks.equal("follower: the gripper's limits in the EEPROM", gripper, [500, 250, 25])
    checks.equal("follower: but its torque limit is still the old one", emulated.register(6, "Torque_Limit"), 1000)
    arm.disconnect()
    checks.equal("follower: disconnect switches the torque off",
                 [emulated.register(i, "Torque_Enable") for i in range(1, 7)], [0] * 6)
    arm = reconnects(checks, emulated, make, "follower")
    checks.equal("follower: the power cycle brought the gripper's torque limit", emulated.register(6, "Torque_Limit"), 500)
    goal = dict(zip((f"{n}.pos" for n in JOINTS), (10.0, -12.0, 8.5, 5.0, -20.0, 62.0)))
    checks.equal("follower: send_action", arm.send_action(goal), goal)
    seen = {}

    def arrived():
        seen.update(arm.get_observation())
        return all(abs(seen[k] - v) < 0.5 for k, v in goal.items())

    eventually(arrived)
    checks.near("follower: get_observation is there soon", seen, goal, 0.5)
    # Still connected: the hand of a person who types c, on an arm that has an offset already.
    arm.bus.disable_torque()
    person = Person(emulated, [m + 40 for m in middle], person.low, person.high)
    with person.present():
        arm.calibrate()
    checks.equal("follower: calibrated a second time", arm.calibration["elbow_flex"].homing_offset, middle[2] + 40 - 2047)
    for i in SERVOS.values():
        emulated.tell(f"hand {i} {1990 + 31 * i}")
    arm.configure()
    check_faults(checks, emulated, arm.bus)
    arm.disconnect()
    check_unplug(checks, emulated, make)


def check_leader(checks, emulated, folder):
    from lerobot.teleoperators.so_leader import SO101Leader, SO101LeaderConfig

    def make():
        return SO101Leader(SO101LeaderConfig(port=emulated.link, id="leader", calibration_dir=folder))

    middle = [1700, 2500, 1900, 2200, 2047, 1400]
    person = Person(emulated, middle, [m - 900 + 10 * i for i, m in enumerate(middle)], [m + 1000 for m in middle])
    arm = make()
    calibrates(checks, emulated, arm, person, "leader")
    checks.equal("leader: the torque stays off", [emulated.register(i, "Torque_Enable") for i in range(1, 7)], [0] * 6)
    arm.disconnect()
    arm = reconnects(checks, emulated, make, "leader")
    want = {}
    for n, c in arm.calibration.items():
        ticks = (c.range_min + c.range_max) // 2 + 91
        emulated.tell(f"hand {SERVOS[n]} {ticks}")
        degrees = (ticks - (c.range_min + c.range_max) / 2) * 360 / 4095
        percent = (ticks - c.range_min) / (c.range_max - c.range_min) * 100
        want[f"{n}.pos"] = percent if n == "gripper" else degrees
    checks.near("leader: get_action is where the hand is", arm.get_action(), want, 1e-9)
    arm.disconnect()


def check_faults(checks, emulated, bus):
    """Servo 3 or the line misbehaves; LeRobot does what it was measured to do."""
    def positions():
        return list(raw(bus).values())

    truth = positions()

    def strike(*lines):
        emulated.tell("clear")
        time.sleep(0.1)
        bus.sync_read("Present_Position", normalize=False, num_retry=3)
        for line in lines:
            emulated.tell(line)

    for fault, kind, text in (("drop 1 3", ConnectionError, "no status packet"),
                              ("late 1 80 3", ConnectionError, "no status packet"),
                              ("trunc 1 3", ConnectionError, ""),
                              ("badck 1 3", ConnectionError, "Incorrect status packet"),
                              ("swap 1 3", ConnectionError, "")):
        strike(fault)
        checks.raises(f"fault {fault}: all six values are lost", kind, text, positions)
    for fault in ("junk 1 3", "dup 1 3", "late 1 20 3", "err 1 32 3", "echo 1"):
        strike(fault)
        checks.equal(f"fault {fault}: sync_read is right, and silent", positions(), truth)
    strike("err 1 32 3")
    checks.raises("fault err 1 32 3: a single read raises", RuntimeError, "verload",
                  lambda: bus.read("Present_Position", "elbow_flex", normalize=False))
    strike("echo 1")
    checks.raises("fault echo 1: a write takes its own echo for the reply", RuntimeError, "voltage",
                  lambda: bus.write("Torque_Enable", "elbow_flex", 1))
    strike("late 1 80 3")
    checks.raises("stale reply: the position comes too late", ConnectionError, "no status packet",
                  lambda: bus.read("Present_Position", "elbow_flex", normalize=False))
    emulated.tell("clear")
    time.sleep(0.06)
    checks.equal("stale reply: its low byte is read as the voltage", bus.read("Present_Voltage", "elbow_flex"),
                 truth[2] % 256)
    strike("volt 2 35")
    checks.equal("3.5 V: sync_read is right, and silent", positions(), truth)
    checks.raises("3.5 V: a single read raises", RuntimeError, "voltage",
                  lambda: bus.read("Present_Position", "shoulder_lift", normalize=False))
    emulated.tell("volt 2 74")
    strike("block 6")
    bus.write("Goal_Position", "gripper", truth[5] + 600, normalize=False)
    status = lambda: emulated.register(6, "Status")
    checks.that("blocked gripper: overload within 5 s", eventually(lambda: status() & 32, 5), status())
    checks.raises("blocked gripper: LeRobot says so", RuntimeError, "verload", lambda: bus.read("Status", "gripper"))
    with contextlib.suppress(RuntimeError):
        bus.disable_torque("gripper")
    checks.that("blocked gripper: torque off ends the overload", not status() & 32, status())
    strike("unblock 6")


def check_unplug(checks, emulated, make):
    arm = make()
    with Person(emulated, None, None, None).present():
        arm.connect()
    emulated.tell("unplug")
    checks.that("unplug: the link is gone", eventually(lambda: not os.path.lexists(emulated.link) or not os.path.exists(emulated.link)))
    checks.raises("unplug: sync_read is an error", Exception, "", lambda: raw(arm.bus))
    checks.equal("unplug: the servos keep their torque", emulated.register(1, "Torque_Enable"), 1)
    emulated.tell("replug")
    checks.that("replug: the link is back", eventually(lambda: os.path.exists(emulated.link)))
    with contextlib.suppress(Exception):
        arm.bus.port_handler.closePort()
    arm = make()
    with Person(emulated, None, None, None).present():
        arm.connect()
    checks.that("replug: a new object connects, is_calibrated", arm.is_calibrated)
    arm.disconnect()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--program", required=True, help="the built example emulated_bus")
    a = ap.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        emulated = EmulatedBus(a.program)
        check_bus(checks, emulated)
        check_scan(checks, emulated)
        emulated.close()
        checks.that("the link is gone with the program", not os.path.lexists(emulated.link))
        for part, name in ((check_follower, "follower"), (check_leader, "leader")):
            emulated = EmulatedBus(a.program)
            part(checks, emulated, Path(folder) / name)
            emulated.close()
        # The real thing takes its time.
        emulated = EmulatedBus(a.program, "--wire")
        check_bus(checks, emulated)
        emulated.close()
    checks.end("lerobot 0.6.1")


if __name__ == "__main__":
    main()
