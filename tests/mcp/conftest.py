"""Fixtures: servers on free ports of loopback, boards, and each client of the installed generation."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Iterator

import pytest

import clients
from server import Board, Server

# A test's own limit; its waits end by events long before.
TEST_S_MAX = 300

# The protocol itself is tested beside the newer clients only.
collect_ignore = [
    "test_attention.py", "test_hostile.py", "test_protocol.py", "test_requests.py", "test_scripted_model.py",
    "test_tokens.py",
]  # fmt: skip
if clients.IS_RECENT:
    collect_ignore = []


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine, with a limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def bounded() -> None:
        async with asyncio.timeout(TEST_S_MAX):
            await pyfuncitem.obj(**arguments)

    asyncio.run(bounded())
    return True


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without tokens, with a host name of its own, that all tests share."""
    with Server(tmp_path_factory.mktemp("server"), "--allowed-hosts", "board.example") as server:
        yield server


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with tokens; `server.admin` is one with all rights."""
    with Server(tmp_path_factory.mktemp("guarded"), "--token-rate", "0") as server:
        server.admin = server.token("admin", "--scopes", "admin")
        yield server


@pytest.fixture(autouse=True)
def _no_fault(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test makes a server panic or fail."""
    yield
    for name in ("server", "guarded"):
        if name in request.fixturenames:
            assert not request.getfixturevalue(name).faults()


_numbers = itertools.count(1)


@pytest.fixture
def session() -> str:
    """A session's name that no other test has."""
    return f"sess-{next(_numbers)}"


@pytest.fixture
def board(server: Server, session: str) -> Board:
    """A session that has what the tools' examples speak of."""
    return server.board(session).fill()


@pytest.fixture(params=clients.ALL, ids=lambda connect: connect.__name__)
def connect(request: pytest.FixtureRequest) -> clients.Connect:
    """A way to connect: `async with connect(url, token) as client`."""
    return request.param
