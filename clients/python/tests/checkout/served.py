"""Blackboard server of the harness: a port that stays the same over restarts, its access log as the count of trips."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

START_SECONDS = 30


@dataclass(frozen=True)
class Trip:
    """Request that the server answered, in milliseconds of its own time."""

    method: str
    route: str
    status: int
    milliseconds: float


class Server:
    """Process of `blackboard serve` on loopback, started at once."""

    def __init__(self, binary: Path, directory: Path) -> None:
        self._binary = binary
        self._directory = directory
        self._listen = "127.0.0.1:0"
        self._process: subprocess.Popen[bytes] | None = None
        self._log = directory / "server.log"
        directory.mkdir(parents=True)
        self._log.touch()
        self._markers = 0
        self.url = ""
        self.start()

    def start(self) -> None:
        """Starts the process and returns when it listens."""
        seen = len(self._lines("listening"))
        command = [
            str(self._binary),
            "serve",
            "--listen",
            self._listen,
            "--data",
            str(self._directory / "data"),
            "--log",
            "info",
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        deadline = time.monotonic() + START_SECONDS
        while len(lines := self._lines("listening")) == seen:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {self._log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.05)
        self.url = lines[-1]["url"]
        self._listen = self.url.removeprefix("http://")

    def kill(self) -> None:
        """Ends the process by SIGKILL."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stops the process without ending it: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets the process go on."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends the process by SIGTERM."""
        self._end(signal.SIGTERM)

    def trips(self, session: str) -> list[Trip]:
        """Requests about a session answered since the first start, once the log is known to have them all."""
        self._markers += 1
        marker = f"marker-{self._markers}"
        self.ask("GET", marker)
        deadline = time.monotonic() + START_SECONDS
        while marker not in {line["session"] for line in self._answered()}:
            if time.monotonic() > deadline:
                raise RuntimeError("the server's log does not show its last answers")
            time.sleep(0.02)
        found = [line for line in self._answered() if line["session"] == session]
        return [Trip(line["method"], line["route"], line["status"], line["ms"]) for line in found]

    def board(self, session: str) -> dict[str, list[Any]]:
        """Dictionary of a session's board, read past the drop-in; empty logs where there is no session."""
        board: dict[str, list[Any]] | None = self.ask("GET", f"{session}/blackboard")
        return board or {log: [] for log in ("questions", "requests", "trajectories", "screenshots")}

    def memories(self, session: str) -> list[list[dict[str, Any]]]:
        """Items of each agent's memory in a session."""
        agents = self.ask("GET", f"{session}/agents") or {"agents": []}
        logs = [f"{session}/agents/{quote(agent['agent'], safe='')}/memory?limit=1000" for agent in agents["agents"]]
        return [[entry["item"] for entry in self.ask("GET", log)["entries"]] for log in logs]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """JSON answer to a request below the sessions, made as any HTTP client makes it; None for a 404."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/sessions/{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def _end(self, number: signal.Signals) -> None:
        self._signal(number)
        if self._process is not None:
            self._process.wait(START_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _answered(self) -> list[dict[str, Any]]:
        return [line for line in self._lines("answered") if "session" in line]

    def _lines(self, message: str) -> list[dict[str, Any]]:
        return list(self._parsed(message))

    def _parsed(self, message: str) -> Iterator[dict[str, Any]]:
        for line in self._log.read_text(encoding="utf-8").splitlines():
            if f'"message":"{message}"' in line and line.endswith("}"):
                yield json.loads(line)
