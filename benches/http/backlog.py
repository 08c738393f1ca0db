"""Backlog of a server: what its index and its compaction still have to do for writes that were answered."""

import json
import re
import time

import load
from contenders import SESSION, Running

# Once this has passed without work, the index has been tidied too, which begins two seconds after its last change.
QUIET_SECONDS = 3
# What an idle server may use of a processor.
IDLE_PART = 0.02
CAUGHT_UP_SECONDS = 600
LOOK_SECONDS = 0.1


def wait(running: Running):
    """Returns once the index and the compaction of our server have caught up with all writes, and have tidied up."""
    deadline = time.monotonic() + CAUGHT_UP_SECONDS
    index(running, deadline)
    while uncompacted_bytes(running) > 0:
        pause(deadline)
    since, used = time.monotonic(), running.cpu_seconds()
    while time.monotonic() < since + QUIET_SECONDS:
        pause(deadline)
        now = running.cpu_seconds()
        if now - used > IDLE_PART * QUIET_SECONDS:
            since, used = time.monotonic(), now


def pause(deadline: float):
    if time.monotonic() > deadline:
        raise load.Failed(f"index and compaction have not caught up within {CAUGHT_UP_SECONDS} s")
    time.sleep(LOOK_SECONDS)


def index(running: Running, deadline: float):
    """Returns once the index has the session's last revision, at once if there is no index."""
    revision = json.loads(running.request("GET", SESSION)[2])["revision"]
    name = SESSION.rpartition("/")[2]
    while True:
        path = f"/v1/search?q=zz&session={name}&min_revision={revision}&wait=10s"
        status, _, answer = running.request("GET", path)
        if status in (200, 404):
            return
        if status != 503:
            raise load.Failed(f"GET {path}: {status} {answer[:200]!r}")
        pause(deadline)


def uncompacted_bytes(running: Running) -> int:
    """Bytes of the journal that are not compacted."""
    return int(metric(running, r"journal_(?:uncompacted|unsettled)_bytes"))


def metric(running: Running, name: str) -> float:
    """A figure of the server's metrics."""
    text = running.request("GET", "/metrics")[2].decode()
    found = re.search(rf"^blackboard_{name} (\S+)$", text, re.MULTILINE)
    if found is None:
        raise load.Failed(f"the metrics have no blackboard_{name}")
    return float(found[1])
