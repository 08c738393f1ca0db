"""Counters of the kernel and the processor for each request, by `perf stat` where it is available."""

import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

# By the event's name: the column's title, and the factor from perf's unit.
EVENTS = {
    "task-clock": ("CPU µs", 1000),
    "context-switches": ("switches", 1),
    "page-faults": ("page faults", 1),
    "instructions": ("instructions", 1),
    "cycles": ("cycles", 1),
}


def may_count() -> bool:
    """True if perf is there and the kernel permits it."""
    if shutil.which("perf") is None:
        return False
    tried = subprocess.run(["perf", "stat", "-e", "task-clock", "true"], capture_output=True, check=False)
    return tried.returncode == 0


@contextmanager
def counting(pids: list[int]):
    """Counts these processes meanwhile; the mapping that it gives is filled at the end, by event."""
    counts: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts"
        command = ["perf", "stat", "-x", ",", "-o", str(file), "-e", ",".join(EVENTS)]
        # Without a command of its own, perf counts until it is told to end.
        command += ["-p", ",".join(str(pid) for pid in pids)]
        perf = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield counts
        finally:
            perf.send_signal(signal.SIGINT)
            perf.wait()
        counts.update(parsed(file.read_text() if file.exists() else ""))


def parsed(text: str) -> dict[str, float]:
    """The counts of the events that this machine has."""
    found = {}
    for line in text.splitlines():
        value, _, event, *_ = [*line.split(","), "", "", ""]
        name = event.partition(":")[0]
        if name in EVENTS and value.replace(".", "", 1).isdigit():
            found[name] = float(value) * EVENTS[name][1]
    return found
