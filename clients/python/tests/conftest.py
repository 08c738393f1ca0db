"""Fixtures: a real server on a free port of loopback, which a test may kill and start again."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import testing

# What was built last, unless the caller names another.
os.environ.setdefault("BLACKBOARD_BIN", str(Path(__file__).parents[3] / "target" / "debug" / "blackboard"))


class Server(testing.Server):
    """A server that runs from the first, and knows how much it was asked."""

    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__(directory, *options)
        self.directory = directory
        self.start()

    def requests(self) -> int:
        """The number of requests answered so far."""
        return self.log().count('"message":"answered"')


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
