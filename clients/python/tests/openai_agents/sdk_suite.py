"""Pytest plugin that runs the SDK's own tests with a session on a board in the place of its SQLiteSession."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import agents
import agents.memory
import agents.memory.sqlite_session

from agent_blackboard.openai_agents import BlackboardSession

_in_memory = itertools.count()


class Substitute(BlackboardSession):
    """A session with the constructor of SQLiteSession: one database is one set of boards."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **options: Any) -> None:
        place = f"{os.getpid()} {next(_in_memory)}" if str(db_path) == ":memory:" else str(db_path)
        super().__init__(f"{place} {session_id}", url=os.environ["SDK_SUITE_URL"], **options)
        self.session_id = session_id

    def close(self) -> None:  # type: ignore[override]
        """Nothing: the suite closes without `await`, in loops that end with it."""


for module in (agents, agents.memory, agents.memory.sqlite_session):
    module.SQLiteSession = Substitute
