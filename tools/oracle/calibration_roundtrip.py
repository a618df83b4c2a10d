#!/usr/bin/env python3
"""Calibration files of ours read by LeRobot, and LeRobot's read by ours.

    python calibration_roundtrip.py --program PATH     PATH = the built example `calibrate`

1. The example calibrates emulated servos, in both orders and both roles, and saves where LeRobot looks. LeRobot's own
   SO101Follower and SO101Leader find each file by its id and load it: every value equal to the file's JSON, ids,
   homing offsets and ranges within what LeRobot's bus can write. What LeRobot then saves has the same bytes.
2. LeRobot writes 50 seeded calibrations. Ours reads each, puts it into emulated servos (`--write-file`), and prints
   what it has read (`--dump`) with the same bytes.
No port is opened.
"""
import argparse, json, os, random, subprocess, sys, tempfile
from pathlib import Path


def lerobot_arm(role, name):
    """LeRobot's device class; it loads the calibration of its id when it is made."""
    from lerobot.robots.so_follower import SO101Follower, SO101FollowerConfig
    from lerobot.teleoperators.so_leader import SO101Leader, SO101LeaderConfig

    if role == "follower":
        return SO101Follower(SO101FollowerConfig(port="/dev/null", id=name))
    return SO101Leader(SO101LeaderConfig(port="/dev/null", id=name))


def calibrate(program, env, *args):
    done = subprocess.run([program, "--rig", "emulated", "-q", *args], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAIL {program} {args}: {done.stderr}")
    return done.stdout


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--program", required=True)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        root = Path(tmp) / "calibration"
        # Before LeRobot is imported: it reads the variable once.
        os.environ["HF_LEROBOT_CALIBRATION"] = str(root)
        env = dict(os.environ)
        from lerobot.motors import MotorCalibration

        files = values = 0
        for role in ("follower", "leader"):
            for name, order in (("swept", ()), ("posed", ("--lerobot-order",))):
                calibrate(a.program, env, "--role", role, "--id", name, *order)
                device = lerobot_arm(role, name)
                path = device.calibration_fpath
                assert path.is_file(), f"LeRobot looks for {path}, ours saved elsewhere"
                ours = json.loads(path.read_text())
                theirs = {m: vars(c) for m, c in device.calibration.items()}
                assert theirs == ours, f"{path}: LeRobot read {theirs}"
                assert list(ours) == list(device.bus.motors), f"order of motors: {list(ours)}"
                before = path.read_bytes()
                device._save_calibration()
                assert path.read_bytes() == before, f"{path}: LeRobot writes other bytes"
                for motor, c in device.calibration.items():
                    assert c.id == device.bus.motors[motor].id
                    # Raises for an offset that fits no register, and for a range that is empty.
                    device.bus._encode_sign("Homing_Offset", {c.id: c.homing_offset})
                    device.bus._normalize({c.id: (c.range_min + c.range_max) // 2})
                    values += 5
                files += 1
        rng = random.Random(a.seed)
        for k in range(50):
            role = rng.choice(["follower", "leader"])
            device = lerobot_arm(role, f"theirs{k}")
            device.calibration = {}
            for motor, m in device.bus.motors.items():
                lo = rng.randrange(0, 2000)
                full = motor == "wrist_roll"
                device.calibration[motor] = MotorCalibration(
                    m.id, rng.choice([0, 0, 0, 1]), rng.randrange(-2047, 2048), 0 if full else lo,
                    4095 if full else rng.randrange(lo + 900, 4096))
            device._save_calibration()
            path, before = device.calibration_fpath, device.calibration_fpath.read_bytes()
            said = calibrate(a.program, env, "--role", role, "--id", f"theirs{k}", "--write-file", "--dump")
            held = json.loads(said[said.index("{"):said.rindex("}") + 1])
            assert held == json.loads(before), f"{path}: ours read {held}"
            text = said[said.index("{"):said.rindex("}") + 1]
            assert text.encode() == before, f"{path}: ours would write other bytes"
            assert path.read_bytes() == before
            files += 1
            values += 30
        print(f"PASS {files} calibration files, {values} values, both ways and byte for byte")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as e:
        sys.exit(f"FAIL {e}")
