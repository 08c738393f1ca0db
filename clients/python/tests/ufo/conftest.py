"""Fixtures of the drop-in's tests: each configures the process for a server, and resets it after the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import Client, ufo
from agent_blackboard.ufo.process import common_channel
from agent_blackboard.ufo.settings import Settings


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    """The directory of the outboxes."""
    return tmp_path / "outbox"


@pytest.fixture
def drop_in(url: str, outbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drop-in on the shared server, in an empty working directory."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    ufo.configure(url=url, outbox=outbox)


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """A client of the shared server, for what other programs see and do."""
    with Client(url) as client:
        yield client


@pytest.fixture(autouse=True)
def _reset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test has anything of the one before it: the outboxes are released, the settings are the defaults."""
    yield
    monkeypatch.setattr("agent_blackboard.ufo.process.EXIT_WAIT", 0.1)
    ufo.close()
    ufo.configure(**dict.fromkeys(field.name for field in fields(Settings)))


@pytest.fixture
def on_own_server(server: Any, outbox: Path, session_name: str) -> Any:
    """The drop-in on a server of the test's own, in one named session."""
    ufo.configure(url=server.url, outbox=outbox, session=session_name)
    return server


@pytest.fixture
def away(on_own_server: Any) -> Callable[[], AbstractContextManager[None]]:
    """A while without the server, in which no call waits long for it; at its end the server has all writes."""

    def wait_at_most(seconds: float) -> None:
        ufo.configure(block_max=seconds)
        # The channel of a present board takes it here.
        common_channel()

    @contextmanager
    def away() -> Iterator[None]:
        on_own_server.kill()
        wait_at_most(0.2)
        yield
        wait_at_most(4.5)
        on_own_server.start()
        assert ufo.flush(30)

    return away


@pytest.fixture
def run_python(tmp_path: Path, outbox: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A Python process that runs a text as its program, with settings as keywords."""

    def run(program: str, *command: str, check: bool = True, **settings: str) -> subprocess.CompletedProcess[str]:
        variables = {f"BLACKBOARD_{name.upper()}": value for name, value in settings.items()}
        (tmp_path / "program.py").write_text(program)
        done = subprocess.run(
            [*command, sys.executable, "program.py"],
            cwd=tmp_path,
            env={**os.environ, "BLACKBOARD_OUTBOX": str(outbox), **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    return run
