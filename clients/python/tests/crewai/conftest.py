"""Environment in which CrewAI reports nothing to anybody, and the two persistences that are compared."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# They are read when CrewAI is imported.
os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_STORAGE_DIR"] = tempfile.mkdtemp(prefix="crewai-")

from crewai.flow.persistence import SQLiteFlowPersistence

from agent_blackboard import Client, Session
from agent_blackboard.crewai import BlackboardFlowPersistence


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client


@pytest.fixture
def persistence(client: Client) -> BlackboardFlowPersistence:
    return BlackboardFlowPersistence(client=client)


@pytest.fixture
def sqlite(tmp_path: Path) -> SQLiteFlowPersistence:
    """The framework's own persistence: what it does is right."""
    return SQLiteFlowPersistence(str(tmp_path / "flows.db"))


@pytest.fixture
def board(client: Client, persistence: BlackboardFlowPersistence, session_name: str) -> Session:
    """The session of the flow whose id is the test's name."""
    return client.session(persistence.board(session_name))
