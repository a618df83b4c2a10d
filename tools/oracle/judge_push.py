"""Judges pushes again from dumped object poses, without the predicate's code.

usage: judge_push.py POSES.jsonl

Reads what `sim_eval --dump` wrote: one JSON object a line, with rows (t, x, y, z, qw, qx, qy, qz) at the control rate.
Speeds are differences of poses, not the simulator's velocities. Prints the success rate; exit code 1 when it is below
95 % or when a judgement differs from the one in the file.
"""

import json
import math
import sys

DISTANCE, SIDEWAYS, HEIGHT = 0.080, 0.040, 0.003  # m
TILT = math.radians(10)
SPEED, SPIN, HOLD = 0.01, 0.5, 0.5  # m/s, rad/s, s
# A judgement that hangs on less than this is nobody's mistake.
NARROW = 1e-4
MIN_RATE = 0.95


def tilt(q):
    w, x, y, z = q
    up = 1 - 2 * (x * x + y * y) / (w * w + x * x + y * y + z * z)
    return math.acos(max(-1.0, min(1.0, up)))


def turned(a, b):
    dot = abs(sum(p * q for p, q in zip(a, b)))
    norm = math.hypot(*a) * math.hypot(*b)
    return 2 * math.acos(min(1.0, dot / norm))


def judge(episode):
    """Whether the push counts, and how far it is from counting the other way (m)."""
    sign = {"robot": 1, "camera": -1}[episode["left_of"]]
    rows = episode["poses"]
    start, end = rows[0], rows[-1]
    margins = []
    for row in rows:
        if row[0] < end[0] - HOLD - 1e-9:
            continue
        margins += [
            sign * (row[2] - start[2]) - DISTANCE,
            SIDEWAYS - abs(row[1] - start[1]),
            HEIGHT - abs(row[3] - start[3]),
            TILT - tilt(row[4:]),
        ]
    last = [row for row in rows if row[0] >= end[0] - HOLD - 1e-9]
    still = True
    for a, b in zip(last, last[1:]):
        dt = b[0] - a[0]
        still &= math.dist(a[1:4], b[1:4]) < SPEED * dt and turned(a[4:], b[4:]) < SPIN * dt
    return min(margins) >= 0 and still, min(map(abs, margins))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    n = good = differing = 0
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            episode = json.loads(line)
            success, margin = judge(episode)
            n += 1
            good += success
            if success != episode["success"] and margin > NARROW:
                differing += 1
                print(f"seed {episode['seed']}: judged {success}, the file says {episode['success']}")
    if n == 0:
        sys.exit("no episodes in the file")
    print(f"{good} of {n} succeeded ({100 * good / n:.1f} %), {differing} judged differently")
    few = good < MIN_RATE * n
    if few:
        print(f"below {100 * MIN_RATE:.0f} %")
    sys.exit(1 if differing or few else 0)


if __name__ == "__main__":
    main()
