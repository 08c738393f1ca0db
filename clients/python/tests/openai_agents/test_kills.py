"""`add_items` while the server or the client is killed: no turn is duplicated or stored partly."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent_blackboard.openai_agents import BlackboardSession

from .writer import turn

WRITER = Path(__file__).with_name("writer.py")
TURNS = 60


def whole(turns: int) -> list[Any]:
    return [item for number in range(turns) for item in turn(number)]


async def stored(url: str, session_id: str) -> list[Any]:
    session = BlackboardSession(session_id, url=url)
    try:
        return list(await session.get_items())
    finally:
        await session.close()


def writer(url: str, session_id: str, killed_at: int = -1) -> list[str]:
    return [sys.executable, str(WRITER), url, session_id, str(TURNS), str(killed_at)]


async def test_a_killed_server_doubles_nothing_and_leaves_no_half(server: Any, session_name: str) -> None:
    session = BlackboardSession(session_name, url=server.url)
    reached = {number: asyncio.Event() for number in (12, 24, 36, 48)}

    async def add() -> None:
        for number in range(TURNS):
            if number in reached:
                reached[number].set()
            await session.add_items(turn(number))

    adding = asyncio.ensure_future(add())
    for event in reached.values():
        await event.wait()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
    await adding
    assert await session.get_items() == whole(TURNS)
    await session.close()


def test_a_killed_client_doubles_nothing_and_leaves_no_half(server: Any, session_name: str) -> None:
    killed = 0
    for end in range(5, TURNS, 11):
        command = writer(server.url, session_name, end)
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        killed += ended.returncode == -signal.SIGKILL
        assert ended.returncode in (-signal.SIGKILL, 0), ended.stderr
        items = asyncio.run(stored(server.url, session_name))
        assert items == whole(len(items) // 4)
        assert len(items) // 4 >= len(ended.stdout.split())
    assert killed >= 3
    subprocess.run(writer(server.url, session_name), check=True, capture_output=True, timeout=60)
    assert asyncio.run(stored(server.url, session_name)) == whole(TURNS)


def test_both_killed_together_double_nothing_and_leave_no_half(server: Any, session_name: str) -> None:
    acknowledged = 0
    for turns in (4, 13):
        with subprocess.Popen(writer(server.url, session_name), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(turns):
                acknowledged = int(process.stdout.readline()) + 1
            server.kill()
            process.kill()
        server.start()
        items = asyncio.run(stored(server.url, session_name))
        assert items == whole(len(items) // 4)
        assert len(items) // 4 >= acknowledged
