"""Processes that share one ADK session: two writers, and one that is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from google.adk.sessions import Session

from agent_blackboard.adk import BlackboardSessionService

WRITER = Path(__file__).with_name("writer.py")


class Writers:
    """Processes that write the session `s` of the user `u` of the app `app`."""

    def __init__(self, url: str, turns: int, *authors: str) -> None:
        self.url = url
        self.processes = [
            subprocess.Popen(
                [sys.executable, str(WRITER), url, author, str(turns)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for author in authors
        ]
        for process in self.processes:
            assert self.line(process) == "ready"
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()

    def line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def finish(self) -> list[int]:
        """Wait for all; the number of refusals of each."""
        outputs = [process.communicate(timeout=120)[0] for process in self.processes]
        assert [process.returncode for process in self.processes] == [0] * len(outputs)
        return [int(output.split()[-1]) for output in outputs]


async def made(url: str) -> None:
    async with BlackboardSessionService(url=url) as service:
        await service.create_session(app_name="app", user_id="u", session_id="s")


async def stored(url: str) -> Session:
    async with BlackboardSessionService(url=url) as service:
        session = await service.get_session(app_name="app", user_id="u", session_id="s")
        assert session is not None
        return session


def deltas(session: Session, key: str) -> list[Any]:
    return [event.actions.state_delta[key] for event in session.events if key in event.actions.state_delta]


def test_two_processes_never_interleave_within_what_they_know(server: Any) -> None:
    asyncio.run(made(server.url))
    refusals = Writers(server.url, 15, "left", "right").finish()
    assert sum(refusals) > 0
    session = asyncio.run(stored(server.url))
    assert len(session.events) == 60
    # No update of the count is lost: its writer had seen the one before.
    assert deltas(session, "count") == list(range(1, 31))
    assert session.state["count"] == 30
    assert (session.state["app:left"], session.state["app:right"]) == (14, 14)


def test_a_killed_writer_leaves_no_half_of_an_event(server: Any) -> None:
    asyncio.run(made(server.url))
    acknowledged = 0
    for number in range(3):
        writers = Writers(server.url, 1000, "left")
        (writer,) = writers.processes
        for _ in range(5 + number):
            writers.line(writer)
        writer.kill()
        acknowledged += 2 * (5 + number)
        writer.communicate()
        session = asyncio.run(stored(server.url))
        assert len(session.events) >= acknowledged
        assert deltas(session, "count") == list(range(1, session.state["count"] + 1))
        assert session.state["open"] == deltas(session, "open")[-1]
        assert session.state["app:left"] == deltas(session, "app:left")[-1]
        assert session.state["user:last"] == deltas(session, "user:last")[-1]
