"""Snapshots of AG-UI threads on a board, for the AG-UI endpoint of Microsoft Agent Framework.

A thread is a session. Its snapshot is one value of the session's state; each save also appends the messages that are
new to `trajectories`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agent_framework_ag_ui import AGUIThreadSnapshot

from . import (
    AsyncClient,
    AsyncSession,
    ConditionFailed,
    PathNotFound,
    PreconditionFailed,
    SessionNotFound,
)
from ._adapters.clients import Connected, LoopClients
from ._adapters.names import SEPARATOR, joined
from ._adapters.strings import gathered, packed, references, store, unpacked
from .values import StateValue

__all__ = ["BlackboardThreadSnapshotStore"]

TRIES_MAX: Final = 100
"""Saves of one call, each rejected because another writer was faster."""
LOGGED_MAX: Final = 900
"""New messages of one save that are appended to the log, the last ones; a transaction has at most 1,000 operations."""
THREAD: Final = "thread"
"""The state path of a thread's snapshot."""


class BlackboardThreadSnapshotStore(Connected):
    """Snapshots of AG-UI threads; it has the methods of the protocol `AGUIThreadSnapshotStore`.

    Each thread of a scope is a session, which `board` names. `save` is one commit: the snapshot at `thread`, and the
    messages that are new or changed in `trajectories`. A snapshot replaces the former one as a whole, and the last
    writer wins, as with the framework's own store.

    A snapshot has `session_state`, which clients of the endpoint must not see: give access to the sessions by tokens.
    """

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        prefix: str = "ag-ui",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Connect by `client`, which stays the caller's to close, or by `url` and `token` (BLACKBOARD_URL, …_TOKEN).

        `settings` are those of a session that is made here, such as `{"ttl": "30d"}`.
        """
        self._clients = LoopClients(client, url, token)
        self.prefix = prefix
        self.settings = dict(settings or {})

    def board(self, scope: str, thread_id: str) -> str:
        """The name of a thread's session on the server. Raises TypeError or ValueError for an id that is none."""
        return joined(self.prefix, _checked(scope, "scope"), _checked(thread_id, "thread_id"))

    async def save(self, *, scope: str, thread_id: str, snapshot: AGUIThreadSnapshot) -> None:
        """Store the latest snapshot of a thread.

        Raises UnsupportedValue if it is no JSON, ItemTooLarge for a new message of more than 1 MiB, and BodyTooLarge
        for more than 8 MiB together with the new messages. Long strings do not count. After these and the client's
        other exceptions the former snapshot stays.
        """
        session = self._session(scope, thread_id)
        blobs: dict[str, bytes] = {}
        value = packed({"scope": scope, "id": thread_id, **_members(snapshot)}, blobs)
        for _ in range(TRIES_MAX):
            found = await _found(session)
            if found is None:
                await self._make(session)
            known = set() if found is None else set(references(found.value))
            await store(session, {digest: content for digest, content in blobs.items() if digest not in known})
            condition = {"path": THREAD, "absent": True} if found is None else {"path": THREAD, "etag": found.etag}
            new = _new(found, value["messages"])[-LOGGED_MAX:]
            appends = [{"append": "trajectories", "item": message} for message in new]
            result = await session.transact([{"put": THREAD, "value": value}, *appends], [condition])
            if result.succeeded:
                return
        text = f"thread {thread_id!r} was changed by others {TRIES_MAX} times while it was saved"
        raise ConditionFailed(text, result.revision)

    async def get(self, *, scope: str, thread_id: str) -> AGUIThreadSnapshot | None:
        """The latest snapshot of a thread as a new object, or None. Raises ValueError if the value is none."""
        session = self._session(scope, thread_id)
        found = await _found(session)
        if found is None:
            return None
        (value,) = await unpacked(session, [found.value])
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            raise ValueError(f"session {session.name!r} has no snapshot of a thread")
        return AGUIThreadSnapshot(
            messages=value["messages"],
            state=value.get("state"),
            interrupt=value.get("interrupt"),
            session_state=value.get("session_state"),
        )

    async def delete(self, *, scope: str, thread_id: str) -> bool:
        """Delete a thread's session with all that it has; returns False if there is no snapshot."""
        session = self._session(scope, thread_id)
        if await _found(session) is None:
            return False
        try:
            await session.delete(missing_ok=False)
        except SessionNotFound:
            return False
        return True

    async def clear(self, *, scope: str | None = None) -> None:
        """Delete the sessions of all threads of a scope, or of all scopes, one after another."""
        beginning = self.prefix if scope is None else joined(self.prefix, _checked(scope, "scope"))
        client = self._clients.current()
        names = [found["session"] async for found in client.sessions(prefix=beginning + SEPARATOR)]
        await gathered(client.session(name).delete() for name in names)

    def _session(self, scope: str, thread_id: str) -> AsyncSession:
        return self._clients.current().session(self.board(scope, thread_id))

    async def _make(self, session: AsyncSession) -> None:
        """Make the session with its settings; one that exists keeps its own."""
        if self.settings:
            try:
                await session.configure(self.settings, if_none_match="*")
            except PreconditionFailed:
                return


async def _found(session: AsyncSession) -> StateValue | None:
    try:
        return await session.state.read(THREAD)
    except (PathNotFound, SessionNotFound):
        return None


def _members(snapshot: AGUIThreadSnapshot) -> dict[str, Any]:
    """The members of a snapshot that it has; None is absent."""
    members = {
        "messages": snapshot.messages,
        "state": snapshot.state,
        "interrupt": snapshot.interrupt,
        "session_state": snapshot.session_state,
    }
    return {name: value for name, value in members.items() if value is not None}


def _new(found: StateValue | None, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that a former snapshot does not have as they are now."""
    former = found.value.get("messages") if found is not None and isinstance(found.value, dict) else None
    known = {_text(message) for message in former} if isinstance(former, list) else set()
    return [message for message in messages if _text(message) not in known]


def _text(message: Any) -> str:
    # What the client rejects on its way out is rejected there, with a reason.
    return json.dumps(message, default=repr)


def _checked(identifier: str, name: str) -> str:
    if not isinstance(identifier, str):
        raise TypeError(f"{name} is a string, not a {type(identifier).__name__}")
    if not identifier:
        raise ValueError(f"{name} is empty")
    return identifier
