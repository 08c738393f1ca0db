"""Fixtures: a real server on a free port of loopback, which a test may kill and start again."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]
START_SECONDS = 60


class Server:
    """A server process with a data directory; its port stays the same over restarts."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.url = ""
        self._options = options
        self._log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def binary(self) -> Path:
        return Path(os.environ.get("BLACKBOARD_BIN") or REPOSITORY / "target" / "debug" / "blackboard")

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        begun = self._log.stat().st_size if self._log.exists() else 0
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.binary, "serve", "--listen", listen, "--data", self.data, "--log", "info", *self._options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        deadline = time.monotonic() + START_SECONDS
        while not (found := self._listening(begun)):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self._log.read_text()[-2000:])
            time.sleep(0.02)
        self.url = found

    def _listening(self, begun: int) -> str:
        with self._log.open("rb") as log:
            log.seek(begun)
            for line in log:
                if b'"message":"listening"' in line and line.endswith(b"\n"):
                    return str(json.loads(line)["url"])
        return ""

    def kill(self) -> None:
        """End the process by SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the process by SIGTERM."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def token(self, *options: str) -> str:
        """A new token, made by the server's command."""
        made = subprocess.run(
            [self.binary, "token", "create", "--data", self.data, *options], check=True, capture_output=True, text=True
        )
        return made.stdout.split()[-1]

    def requests(self) -> int:
        """The number of requests answered so far."""
        return self._log.read_bytes().count(b'"message":"answered"')


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture
def url(shared_server: Server) -> str:
    """The address of a server that all tests share."""
    return shared_server.url


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to kill and start again."""
    server = Server(tmp_path)
    yield server
    server.stop()


_numbers = itertools.count()


@pytest.fixture
def session_name(request: pytest.FixtureRequest) -> str:
    """A session's name that no other test has."""
    return f"{request.node.name}-{os.getpid()}-{next(_numbers)}".replace("/", "_")[:200]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the caller's shell do not reach a test."""
    for name in [name for name in os.environ if name.startswith("BLACKBOARD_") and name != "BLACKBOARD_BIN"]:
        monkeypatch.delenv(name)


def pytest_make_parametrize_id(config: pytest.Config, val: Any, argname: str) -> str | None:
    return getattr(val, "__name__", None)
