#!/usr/bin/env python3
"""Kills the recorder at seeded moments and lets LeRobot judge what is left.

    python kill_recording.py --program PATH --work DIR [--kills 50] [--seed 1] [--episodes 3]

An undisturbed run comes first. Then a set is recorded with `--resume` again and again, and killed (SIGKILL) each
time: at a random moment, before a given frame, or inside a commit (`SO101_CRASH_AT`, where the program ends itself
without unwinding); when it is whole, the next set begins. After every kill:

  - a folder that does not exist counts as no set; else check_with_lerobot.py must say PASS;
  - every episode whose `saved` line was printed is there, with that many frames;
  - every row that is there equals the undisturbed run's.

Every whole set must equal the undisturbed one. One line a kill, then `PASS` or `FAIL`; exits 0 or 1.
"""
import argparse, collections, os, random, re, shutil, signal, subprocess, sys, threading, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What the hook knows on a file system that swaps two folders in one step.
COMMIT_STEPS = ["links", "files", "fsync", "exchange-before", "exchange-after", "cleanup"]
SAVED = re.compile(r"^saved episode=(\d+) frames=(\d+) success=(true|false|none)$")


def command(a, out, *more):
    return [str(a.program), "--rig", "emulated", "--seed", "5", "--episodes", str(a.episodes), "--quiet",
            "--out", str(out), *more]


def table(root):
    """All rows by episode, as {episode: {column: list}}; and the lengths of meta/episodes."""
    import pyarrow as pa, pyarrow.parquet as pq
    data = pa.concat_tables([pq.read_table(p) for p in sorted(root.glob("data/*/*.parquet"))])
    meta = pa.concat_tables([pq.read_table(p, columns=["episode_index", "length"])
                             for p in sorted(root.glob("meta/episodes/*/*.parquet"))])
    rows = {}
    index = data["episode_index"].to_numpy()
    for e in sorted(set(index.tolist())):
        rows[e] = data.filter(pa.array(index == e)).to_pydict()
    return rows, dict(zip(meta["episode_index"].to_pylist(), meta["length"].to_pylist()))


def judge(root):
    p = subprocess.run([sys.executable, str(HERE / "check_with_lerobot.py"), str(root), "--true-quantiles"],
                       capture_output=True, text=True)
    return p.returncode == 0, p.stdout.strip() or p.stderr.strip()[-300:]


def record(a, out, crash_at=None, kill_after_s=None):
    """Runs the program; returns its status and the (episode, frames) pairs that it said were saved."""
    env = dict(os.environ)
    env.pop("SO101_CRASH_AT", None)
    if crash_at:
        env["SO101_CRASH_AT"] = crash_at
    p = subprocess.Popen(command(a, out, "--resume"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    timer = None
    if kill_after_s is not None:
        timer = threading.Timer(kill_after_s, p.kill)
        timer.start()
    stdout, stderr = p.communicate()
    if timer:
        timer.cancel()
    saved = [(int(m[1]), int(m[2])) for m in map(SAVED.match, stdout.splitlines()) if m]
    return p.returncode, saved, stderr.strip()


def survivor(root, reference, saved):
    """What is wrong with the set that a kill left, and its (episode, frames) pairs."""
    if not root.exists():
        return [f"saved lines {saved} but no folder"] if saved else [], []
    try:
        rows, lengths = table(root)
    except Exception as e:
        return [f"cannot be read: {type(e).__name__}: {e}"], []
    ok, line = judge(root)
    bad = [] if ok else [line]
    for episode, frames in saved:
        if lengths.get(episode) != frames:
            bad.append(f"episode {episode} was saved with {frames} frames, the set has {lengths.get(episode)}")
    for episode, columns in rows.items():
        if columns != reference.get(episode):
            bad.append(f"episode {episode} differs from the undisturbed run")
    return bad, sorted(lengths.items())


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--program", type=Path, required=True)
    ap.add_argument("--work", type=Path, required=True)
    ap.add_argument("--kills", type=int, default=50)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--episodes", type=int, default=3)
    a = ap.parse_args()
    a.program, a.work = a.program.resolve(), a.work.resolve()
    shutil.rmtree(a.work, ignore_errors=True)
    a.work.mkdir(parents=True)
    rng = random.Random(a.seed)

    whole = a.work / "undisturbed"
    t = time.perf_counter()
    status, _, err = record(a, whole)
    whole_s = time.perf_counter() - t
    if status:
        sys.exit(f"FAIL the undisturbed run ended with {status}: {err}")
    reference, lengths = table(whole)
    frames = [lengths[e] for e in range(a.episodes)]
    print(f"undisturbed: {frames} frames in {whole_s:.1f} s", flush=True)

    kinds, failed, kills, sets, tries = collections.Counter(), 0, 0, 0, 0
    out, saved = a.work / "set-0", []
    while kills < a.kills and tries < 4 * a.kills:
        tries += 1
        done = len(saved)
        kind = rng.choices(["moment", "frame", "commit"], weights=[4, 3, 3])[0]
        crash_at = kill_after_s = None
        if kind == "moment":
            kill_after_s = rng.uniform(0.02, whole_s * 1.05)
        elif kind == "frame":
            e = rng.randrange(min(done, a.episodes - 1), a.episodes)
            crash_at = f"frame:{e}:{rng.randrange(frames[e])}"
        else:
            # Commits are counted within one process, from 1.
            crash_at = f"commit:{rng.randint(1, max(1, a.episodes - done))}:{rng.choice(COMMIT_STEPS)}"
        status, more, err = record(a, out, crash_at, kill_after_s)
        bad, present = survivor(out, reference, saved + more)
        # An episode may be durable whose line was not printed yet: what is there counts from here on.
        saved = present
        if status == -signal.SIGKILL or (status == -signal.SIGABRT and kind == "commit"):
            kills += 1
            kinds[kind] += 1
        elif status == 0:
            if len(saved) != a.episodes:
                bad.append(f"whole, but with {len(saved)} episodes")
            if leftovers := [p.name for p in a.work.glob(f".{out.name}.*")]:
                bad.append(f"left beside it: {leftovers}")
        else:
            bad.append(f"ended with {status}: {err[-300:]}")
        where = crash_at or f"after {kill_after_s:.2f} s"
        end = "whole" if status == 0 else f"{len(saved)} episodes left"
        print(" | ".join([f"{'FAIL' if bad else 'ok'} {kills:3d} {out.name} {where}: {end}", *bad]), flush=True)
        failed += bool(bad)
        if status == 0 or bad:
            # A bad set stays for a look.
            if not bad:
                shutil.rmtree(out)
            sets += 1
            out, saved = a.work / f"set-{sets}", []
    if kills < a.kills:
        failed += 1
    print("FAIL" if failed else "PASS", f"{kills} kills ({dict(kinds)}) in {tries} runs, {failed} bad")
    sys.exit(bool(failed))

if __name__ == "__main__":
    main()
