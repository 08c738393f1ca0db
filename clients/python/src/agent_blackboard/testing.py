"""A server for tests: on a free port of loopback, with a temporary directory, ended with the block that started it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Server", "binary", "server"]

START_SECONDS_MAX = 60
"""A debug build on a busy machine takes a few seconds."""

END_SECONDS_MAX = 60
"""The server drains for ten seconds at most."""

LOG_SHOWN = 2000
"""Bytes of the log's end in an exception."""


def binary() -> Path:
    """Return the server's command: BLACKBOARD_BIN, else that of the package blackboard-server, else the one on PATH."""
    if named := os.environ.get("BLACKBOARD_BIN"):
        return Path(named)
    try:
        import blackboard_server
    except ModuleNotFoundError:
        found = shutil.which("blackboard")
        if found is None:
            text = "no server here: pip install 'agent-blackboard[server]', or set BLACKBOARD_BIN to its command"
            raise FileNotFoundError(text) from None
        return Path(found)
    return Path(blackboard_server.binary())


class Server:
    """A server process with a data directory; its address stays the same over restarts."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.data = directory / "data"
        self.url = ""
        self._options = options
        self._log = directory / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        listen = self.url.removeprefix("http://") or "127.0.0.1:0"
        begun = self._log.stat().st_size if self._log.exists() else 0
        # Settings of the caller's shell do not reach it.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
        arguments: list[str | Path] = ["--listen", listen, "--data", self.data, "--log", "info", *self._options]
        command = [binary(), "serve", *arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the user's command
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not (found := self._listening(begun)):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the server did not start: {self.log()[-LOG_SHOWN:]}")
            time.sleep(0.02)
        self.url = found

    def _listening(self, begun: int) -> str:
        with self._log.open("rb") as log:
            log.seek(begun)
            for line in log:
                if b'"message":"listening"' in line and line.endswith(b"\n"):
                    return str(json.loads(line)["url"])
        return ""

    def stop(self) -> None:
        """End the server by SIGTERM: it answers what it has begun."""
        if self._process is not None:
            self._process.terminate()
            self._end()

    def kill(self) -> None:
        """End the server by SIGKILL, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.wait(END_SECONDS_MAX)
            self._process = None

    def token(self, *options: str) -> str:
        """Return a new token, which `blackboard token create` makes with these options."""
        command: Sequence[str | Path] = [binary(), "token", "create", "--data", self.data, *options]
        made = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - likewise
        return made.stdout.split()[-1]

    def log(self) -> str:
        """Return what the server has logged so far."""
        return self._log.read_text("utf-8", "replace")


@contextmanager
def server(*options: str) -> Iterator[Server]:
    """Run a server with these options of `blackboard serve` for the time of a block; its directory goes with it.

    It listens on a free port of loopback and has no tokens, so that only this machine reaches it.
    """
    with tempfile.TemporaryDirectory(prefix="blackboard-") as directory:
        running = Server(Path(directory), *options)
        running.start()
        try:
            yield running
        finally:
            running.stop()
