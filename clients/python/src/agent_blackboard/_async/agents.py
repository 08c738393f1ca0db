"""Agents: participants with a status and a memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from .._wire import ReadOptions, Seconds, WriteOptions, segment
from ..errors import SessionNotFound
from ..values import Answer, Written, written

if TYPE_CHECKING:
    from .session import AsyncSession

MERGE = "application/merge-patch+json"


class AsyncAgents:
    """The agents of a session."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self, status: str | None = None, **options: Unpack[ReadOptions]) -> AsyncIterator[dict[str, Any]]:
        """All agents in the order of their names, or those of a status."""
        after = None
        while True:
            try:
                answer = await self._session.read("agents", {"status": status, "after": after}, **options)
            except SessionNotFound:
                return
            page = answer.json()
            for agent in page["agents"]:
                yield agent
            after = page["next"]
            if not page["more"]:
                return

    async def get(self, name: str, *, seen: bool = False, **options: Unpack[ReadOptions]) -> dict[str, Any]:
        """An agent; with `seen` the time of its last call too. Raises AgentNotFound."""
        answer = await self._session.read(_path(name), {"seen": seen or None}, **options)
        return dict(answer.json())

    async def put(self, name: str, fields: Mapping[str, Any], **options: Unpack[WriteOptions]) -> Written:
        """Register an agent: type, platform, host, status and any others."""
        return written(await self._session.request("PUT", _path(name), json=dict(fields), **options))

    async def patch(self, name: str, fields: Mapping[str, Any], **options: Unpack[WriteOptions]) -> Written:
        """Change fields of an agent."""
        answer = await self._session.request("PATCH", _path(name), json=dict(fields), media_type=MERGE, **options)
        return written(answer)

    async def set_status(self, name: str, status: str, **options: Unpack[WriteOptions]) -> Written:
        """Set an agent's status. Raises IllegalTransition where the agent cannot move to it."""
        return await self.patch(name, {"status": status}, **options)

    async def wait_status(self, name: str, status: str, wait: Seconds = 600.0) -> dict[str, Any]:
        """The agent when it has a status. Raises ConditionNotMet, a TimeoutError."""
        answer: Answer = await self._session.until(_path(name), f"status:{status}", wait)
        return dict(answer.json())

    async def delete(self, name: str, **options: Unpack[WriteOptions]) -> Written:
        """Delete an agent with its memory and its messages."""
        return written(await self._session.request("DELETE", _path(name), **options))

    async def clear(self, **options: Unpack[WriteOptions]) -> Written:
        """Delete all agents with their memories and messages."""
        return written(await self._session.request("DELETE", "agents", **options))


def _path(name: str) -> str:
    return f"agents/{segment(name)}"
