"""Another machine: a network namespace that a cable joins to this one, with curl and a token of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

# The two ends of the cable.
HERE, THERE = "10.0.0.6", "10.0.0.7"
WAIT_S_MAX = 300
LOOK_S = 0.2


def until(what: str, look: Callable[[], Any]) -> Any:
    """The first true value of `look`."""
    end = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(LOOK_S)
    raise AssertionError(f"{what}: not within {WAIT_S_MAX} s")


@contextlib.contextmanager
def cable() -> Iterator[tuple[str, ...]]:
    """Makes the other machine; gives what runs a command there."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        own = os.readlink("/proc/self/ns/net")
        until("the other machine is there", lambda: os.readlink(f"/proc/{holder.pid}/ns/net") != own)
        enter = ("nsenter", "--target", str(holder.pid), "--net")
        for command in (
            f"ip link add cable type veth peer name cable netns {holder.pid}",
            f"ip address add {HERE}/24 dev cable",
            "ip link set cable up",
            f"{' '.join(enter)} ip address add {THERE}/24 dev cable",
            f"{' '.join(enter)} ip link set cable up",
        ):
            subprocess.run(command.split(), check=True)
        yield enter
    finally:
        holder.kill()
        holder.wait()


@dataclass
class Other:
    """Who sends from there."""

    enter: tuple[str, ...]
    session: str  # the session's URL
    token: str

    def curl(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request, which must succeed."""
        command = [*self.enter, "curl", "-sS", "--fail-with-body", "-X", method, "-H", f"X-API-Key: {self.token}"]
        command += ["--json", json.dumps(body)] if body is not None else []
        done = subprocess.run([*command, self.session + path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def send(self, agent: str, text: str) -> int:
        """Sends a message to an agent; its seq."""
        answer = self.curl("POST", f"/agents/{agent}/messages", {"text": text})
        return int(answer["entries"][0]["seq"])

    def own(self, agent: str) -> list[Any]:
        """The messages to the sender itself."""
        return list(self.curl("GET", f"/agents/{agent}/messages")["entries"])
