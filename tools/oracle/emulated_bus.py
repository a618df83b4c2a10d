"""The example `emulated_bus` as a child process, and a list of checks; for the scripts that put other people's clients on it."""
import atexit, math, subprocess, sys, tempfile, time
from pathlib import Path

JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]


class EmulatedBus:
    """Six emulated servos on a pseudo-terminal; `link` is the path that a client opens."""

    def __init__(self, program, *options):
        self._folder = tempfile.TemporaryDirectory(prefix="so101-bus-")
        self.link = str(Path(self._folder.name) / "arm")
        self._process = subprocess.Popen([program, "--quiet", "--link", self.link, *options], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, bufsize=1)
        atexit.register(self.close)
        first = self._process.stdout.readline().split()
        if first != ["ready", self.link]:
            sys.exit(f"FAIL {program} did not become ready: {first}")

    def tell(self, line):
        """Carries out one command and returns the lines of its answer."""
        self._process.stdin.write(line + "\n")
        answer = []
        while True:
            said = self._process.stdout.readline() or "error: it is gone"
            said = said.rstrip("\n")
            if said == "ok":
                return answer
            if said.startswith("error"):
                raise RuntimeError(f"emulated_bus to '{line}': {said}")
            answer.append(said)

    def register(self, servo, name):
        return int(self.tell(f"get {servo} {name}")[0])

    def place(self, servo, encoder_ticks):
        """A hand puts the servo there, whatever homing offset it has."""
        self.tell(f"hand {servo} {encoder_ticks - self.register(servo, 'Homing_Offset')}")

    def close(self):
        """Ends the program as Ctrl-C does."""
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.send_signal(2)
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._folder.cleanup()


class Checks:
    """Counts what holds; each check is a line."""

    def __init__(self):
        self.good, self.bad = 0, 0

    def equal(self, name, got, want):
        self.that(name, got == want, got if got == want else f"{got}, expected {want}")

    def near(self, name, got, want, tolerance):
        close = got.keys() == want.keys() and all(math.isclose(got[k], want[k], abs_tol=tolerance) for k in want)
        shown = {k: round(v, 2) for k, v in got.items()}
        self.that(name, close, shown if close else f"{shown}, expected {want} within {tolerance}")

    def that(self, name, holds, shown=""):
        self.good, self.bad = self.good + bool(holds), self.bad + (not holds)
        print(f"{'ok  ' if holds else 'FAIL'} {name:58s} {str(shown)[:150]}", flush=True)

    def raises(self, name, kind, text, call):
        try:
            got = call()
        except Exception as error:
            said = " ".join(str(error).split())
            self.that(name, isinstance(error, kind) and text in said, f"{type(error).__name__}: {said}")
        else:
            self.that(name, False, f"no error but {got}")

    def end(self, who):
        print("FAIL" if self.bad else "PASS", f"{who} on the emulated bus: {self.good} checks hold, {self.bad} do not")
        sys.exit(bool(self.bad))


def eventually(is_true, seconds=10.0):
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_true():
            return True
        time.sleep(0.002)
    return False
