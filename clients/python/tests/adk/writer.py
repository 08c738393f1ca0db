"""Writer of a session's events: loads, appends, and reloads when stale, until its events are stored.

It prints `ready` and begins at the first line that it is given.
"""

from __future__ import annotations

import asyncio
import sys

from google.adk.errors import StaleSessionError
from google.adk.events.event import Event

from agent_blackboard.adk import BlackboardSessionService

IDS = {"app_name": "app", "user_id": "u", "session_id": "s"}


async def write(url: str, author: str, turns: int) -> None:
    """Append turns of two events. Each turn prints the number of refusals so far."""
    refusals = 0
    async with BlackboardSessionService(url=url) as service:
        for number in range(turns):
            while True:
                session = await service.get_session(**IDS)
                assert session is not None
                begin, end = (Event(author=author, invocation_id=f"{author} {number}") for _ in range(2))
                begin.actions.state_delta = {"count": session.state.get("count", 0) + 1, "open": author}
                end.actions.state_delta = {"open": None, f"app:{author}": number, "user:last": author}
                try:
                    await service.append_event(session, begin)
                except StaleSessionError:
                    refusals += 1
                    continue
                break
            while True:
                try:
                    await service.append_event(session, end)
                except StaleSessionError:
                    refusals += 1
                    latest = await service.get_session(**IDS)
                    assert latest is not None
                    session = latest
                    continue
                break
            print(refusals, flush=True)


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3])))
