#!/usr/bin/env python3
"""Unit conversion pairs out of LeRobot's own code.

    python make_hal_reference.py --compare [--fixture FILE]   compare the frozen fixture with this LeRobot
    python make_hal_reference.py --out FILE                   write a new one

A pair is one call of FeetechMotorsBus._normalize or ._unnormalize (948 of them: three modes, two drive modes, five
calibrated ranges), of the sign-magnitude encoding, or of ensure_safe_goal_position. No port is opened. Compared
are exact values: both sides compute in IEEE doubles.
"""
import argparse, json, random, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pairs():
    import importlib.metadata as md
    import logging

    logging.disable(logging.WARNING)
    from lerobot.motors import Motor, MotorCalibration, MotorNormMode
    from lerobot.motors.encoding_utils import decode_sign_magnitude, encode_sign_magnitude
    from lerobot.motors.feetech import FeetechMotorsBus
    from lerobot.robots.utils import ensure_safe_goal_position

    normalize, unnormalize, rng = [], [], random.Random(7)
    for mode in MotorNormMode:
        for drive_mode in (0, 1):
            for lo, hi in ((0, 4095), (741, 3344), (2029, 3512), (1000, 1001), (900, 2501)):
                bus = FeetechMotorsBus("/dev/null", {"m": Motor(1, "sts3215", mode)},
                                       {"m": MotorCalibration(1, drive_mode, 0, lo, hi)})
                head = [mode.value, drive_mode, lo, hi]
                raws = sorted({0, lo - 5, lo, lo + 1, (lo + hi) // 2, hi - 1, hi, hi + 7, 2047, 2048, 4095,
                               *[rng.randrange(4096) for _ in range(6)]})
                normalize += [[*head, raw, repr(bus._normalize({1: raw})[1])] for raw in raws if raw >= 0]
                values = [-180.0, -100.5, -100.0, -50.3, -0.04, 0.0, 0.04, 33.333, 50.0, 99.99, 100.0, 120.0]
                values += [rng.uniform(-110, 110) for _ in range(4)]
                unnormalize += [[*head, repr(v), bus._unnormalize({1: v})[1]] for v in values]
    signs = []
    for bit in (10, 11, 15):
        top = (1 << bit) - 1
        for value in (0, 1, -1, 7, -7, 500, -709, top, -top):
            encoded = encode_sign_magnitude(value, bit)
            assert decode_sign_magnitude(encoded, bit) == value
            signs.append([bit, value, encoded])
    goals = [[*map(repr, (g, p, mx, ensure_safe_goal_position({"m": (g, p)}, mx)["m"]))]
             for g, p, mx in ((10.0, 0.0, 5.0), (-10.0, 0.0, 5.0), (3.0, 0.0, 5.0), (40.0, 38.0, 1.5))]
    return {"source": f"lerobot {md.version('lerobot')}", "normalize": normalize, "unnormalize": unnormalize,
            "sign_magnitude": signs, "safe_goal": goals}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--compare", action="store_true")
    ap.add_argument("--fixture", type=Path, default=ROOT / "so101-hal/tests/fixtures/lerobot_conversions.json")
    ap.add_argument("--out", type=Path)
    a = ap.parse_args()
    if not a.compare and not a.out:
        ap.error("--compare or --out FILE")
    fresh = json.loads(json.dumps(pairs()))
    if a.out:
        rows = {k: v if isinstance(v, str) else [json.dumps(row) for row in v] for k, v in fresh.items()}
        body = ",\n".join(f' "{k}": ' + (json.dumps(v) if isinstance(v, str) else "[\n  " + ",\n  ".join(v) + "\n ]")
                          for k, v in rows.items())
        a.out.write_text("{\n" + body + "\n}\n")
        print(f"wrote {len(fresh['normalize']) + len(fresh['unnormalize'])} conversion pairs: {a.out}")
    if a.compare:
        frozen, bad, seen = json.loads(a.fixture.read_text()), [], 0
        for part in ("normalize", "unnormalize", "sign_magnitude", "safe_goal"):
            if len(frozen[part]) != len(fresh[part]):
                bad.append(f"{part}: {len(frozen[part])} pairs frozen, {len(fresh[part])} made")
            for i, (old, new) in enumerate(zip(frozen[part], fresh[part])):
                seen += 1
                if old != new:
                    bad.append(f"{part}[{i}]: frozen {old}, {fresh['source']} says {new}")
        print("FAIL" if bad else "PASS", f"{seen} pairs against {fresh['source']}: {a.fixture.name}", *bad[:5],
              sep="\n  " if bad else " ")
        sys.exit(bool(bad))


if __name__ == "__main__":
    main()
