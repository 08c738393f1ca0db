"""Fixtures of the LangGraph adapter's tests: a saver and a store on a server that all tests share."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from agent_blackboard import Client
from agent_blackboard.langgraph import BlackboardSaver, BlackboardStore


@pytest.fixture
def prefix(session_name: str) -> str:
    """The beginning of names of sessions that no other test has."""
    return re.sub(r"[^\w-]", "_", session_name[-80:], flags=re.ASCII) + ":"


@pytest.fixture
def saver(url: str, prefix: str) -> Iterator[BlackboardSaver]:
    """A saver whose threads no other test has."""
    with BlackboardSaver(url=url, prefix=prefix) as saver:
        yield saver


@pytest.fixture
def store(url: str, prefix: str) -> Iterator[BlackboardStore]:
    """A store whose namespaces no other test has."""
    with BlackboardStore(url=url, prefix=prefix) as store:
        yield store


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """A client of the server."""
    with Client(url) as client:
        yield client
