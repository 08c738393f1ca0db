"""Session service: each session of an app's user on a board of its own, with its events as trajectories.

An event and its change of the session's state are one commit, on the condition that the session is as the writer knew
it. State of an app and of a user is on boards of theirs. What an event changes there is noted in the event's commit and
then done once, by the writer or, where that dies, by the next one who reads the session.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from typing import Any, Final
from weakref import WeakValueDictionary

from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from pydantic_core import to_jsonable_python
from typing_extensions import override

from .. import (
    AsyncClient,
    AsyncSession,
    AsyncTransaction,
    ConditionFailed,
    HistoryCompacted,
    Problem,
    SessionNotFound,
    UnsupportedValue,
)
from .. import path as state_path
from .._adapters.entries import PAGE_MAX, newest_first
from .._adapters.names import key_of, text_of
from .._adapters.strings import gathered, packed, store, unpacked
from .service import Service

logger = logging.getLogger(__name__)

EVENTS: Final = "trajectories"
KEYS_MAX: Final = 900
"""Keys of the state that one event may change; the server's bound is 1,000 operations of a transaction."""

Deltas = dict[str, dict[str, Any]]
"""Changes of the state by scope: `app`, `user`, `session`."""


class BlackboardSessionService(Service, BaseSessionService):
    """Sessions on boards `adk:APP:USER:SESSION`, state of users and apps on `adk:APP:USER` and `adk:APP`.

    Of two writers that know the same session, the first to append an event wins; the other one gets StaleSessionError
    and has written nothing. It loads the session anew and may append again. A session that was made by hand is taken as
    current if its last event is the last one stored.

    A call that raises the client's ConnectionFailed was done whole or not at all. Where `append_event` raises it after
    the event was stored, a repeat with the same session raises StaleSessionError: the event is never stored twice.
    """

    PREFIX = "adk"

    def __init__(self, client: AsyncClient | None = None, *, url: str | None = None, token: str | None = None) -> None:
        super().__init__(client, url=url, token=token)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Make a session. Raises AlreadyExistsError where there is one with this id."""
        session_id = session_id or str(uuid.uuid4())
        ids = (app_name, user_id, session_id)
        deltas, head = _scoped(state or {}), _head(time.time())
        board = self._board(*ids)
        session = {"app_name": app_name, "user_id": user_id, "id": session_id}
        try:
            async with board.transaction() as commit:
                commit.require("head", absent=True)
                commit.put("session", {name: key_of(text) for name, text in session.items()})
                commit.put("head", head)
                commit.put("values", deltas["session"])
                _note(commit, head["commit"], deltas)
        except ConditionFailed as failed:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from failed
        await self._spread(ids, {head["commit"]: deltas})
        merged = await self._merged(ids, deltas["session"])
        return _session(ids, head, merged, [])

    @override
    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """A session as of one revision of its board; None where there is none."""
        ids = (app_name, user_id, session_id)
        board = self._board(*ids)
        while True:
            try:
                found = await board.state.read()
                if "head" not in found.value:
                    return None
                await self._finish(ids, found.value)
                events, merged = await asyncio.gather(
                    _events(board, found.revision, config or GetSessionConfig()),
                    self._merged(ids, found.value.get("values", {})),
                )
            except SessionNotFound:
                return None
            except HistoryCompacted:
                continue  # The revision was compacted while it was read.
            return _session(ids, found.value["head"], merged, events)

    @override
    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """All sessions of an app or of its user with their state, without events, by the time of their last update."""
        client = self._clients.current()
        names = await self._names(app_name) if user_id is None else await self._names(app_name, user_id)
        boards = await gathered(client.session(name).state.get(default={}) for name in names)
        found = [board for board in boards if "head" in board and "session" in board]
        users = {text_of(board["session"]["user_id"]) for board in found}
        app, *of_users = await gathered(self._values(app_name, *user) for user in [(), *((user,) for user in users)])
        by_user = dict(zip(users, of_users, strict=True))
        sessions = []
        for board in found:
            ids = _ids(board["session"])
            merged = _merge(app, by_user[ids[1]], board.get("values", {}))
            sessions.append(_session(ids, board["head"], merged, []))
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session with its events; nothing where there is none. State of its user and app stays."""
        await self._board(app_name, user_id, session_id).delete(missing_ok=True)

    @override
    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state of a user, without the prefix `user:`."""
        return _texts(await self._values(app_name, user_id))

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event and its change of the state by one commit, and append it to `session`.

        Raises StaleSessionError where the session has changed since it was loaded, SessionNotFoundError where it does
        not exist, and the client's exceptions. Changes of app and user state come after the commit; where they fail,
        that is raised although the event is stored, and they are tried again when the session is read.
        """
        if event.partial:
            return event
        ids = (session.app_name, session.user_id, session.id)
        # Branches of one invocation share a session object: in turn, each knows the event before its own.
        lock = self._locks.setdefault(self.board_name(*ids), asyncio.Lock())
        async with lock:
            deltas = _scoped(event.actions.state_delta if event.actions else {})
            head = _head(event.timestamp)
            await self._commit(session, event, head, deltas)
            session.last_update_time = head["update_time"]
            session._storage_update_marker = head["commit"]
            event = await super().append_event(session, event)
            await self._spread(ids, {head["commit"]: deltas})
        return event

    async def _commit(self, session: Session, event: Event, head: dict[str, Any], deltas: Deltas) -> None:
        board = self._board(session.app_name, session.user_id, session.id)
        blobs: dict[str, bytes] = {}
        item = packed(_stored(event), blobs)
        known = session._storage_update_marker or await _marker(board, session)
        await store(board, blobs)
        try:
            async with board.transaction() as commit:
                commit.require("head/commit", equals=known)
                commit.append(EVENTS, item)
                commit.put("head", head)
                for key, value in deltas["session"].items():
                    commit.put(state_path("values", key), value)
                _note(commit, head["commit"], deltas)
        except ConditionFailed as failed:
            raise await _refusal(board, session) from failed

    async def _finish(self, ids: tuple[str, str, str], board: dict[str, Any]) -> None:
        """Do what a writer noted and did not do. A refusal is logged: the session can be read all the same."""
        noted: dict[str, Deltas] = board.get("noted", {})
        if not noted:
            return
        try:
            await self._spread(ids, noted)
        except Problem as problem:
            logger.warning("state of %s was not changed as session %s asks for: %s", ids[:2], ids[2], problem)

    async def _spread(self, ids: tuple[str, str, str], noted: dict[str, Deltas]) -> None:
        """Change state of the user and the app as noted, and forget the notes; each change is done once."""
        for commit, deltas in noted.items():
            scopes = {"app": ids[:1], "user": ids[:2]}
            changes = {scope: deltas[scope] for scope in scopes if deltas.get(scope)}
            for scope, values in changes.items():
                then = [{"put": state_path("values", key), "value": value} for key, value in values.items()]
                await self._board(*scopes[scope]).transact(then, idempotency_key=f"adk-{commit}-{scope}")
            if changes:
                await self._board(*ids).state.delete(f"noted/{commit}", missing_ok=True)

    async def _merged(self, ids: tuple[str, str, str], values: dict[str, Any]) -> dict[str, Any]:
        app, user = await asyncio.gather(self._values(*ids[:1]), self._values(*ids[:2]))
        return _merge(app, user, values)

    async def _values(self, *ids: str) -> dict[str, Any]:
        values: dict[str, Any] = await self._board(*ids).state.get("values", {})
        return values


def _head(update_time: float) -> dict[str, Any]:
    """The head of a session: the commit that a writer must know, and the time of the last event."""
    return {"commit": uuid.uuid4().hex, "update_time": update_time}


def _scoped(delta: dict[str, Any]) -> Deltas:
    """A change of the state by scope, as JSON and with keys that a path can have, without the scope `temp`."""
    if len(delta) > KEYS_MAX:
        raise UnsupportedValue(f"an event can change at most {KEYS_MAX} keys of the state, not {len(delta)}")
    scoped: Deltas = {"app": {}, "user": {}, "session": {}}
    values: dict[str, Any] = to_jsonable_python(delta, serialize_unknown=True, bytes_mode="base64")
    for key, value in values.items():
        if key.startswith(State.APP_PREFIX):
            scoped["app"][key_of(key.removeprefix(State.APP_PREFIX))] = value
        elif key.startswith(State.USER_PREFIX):
            scoped["user"][key_of(key.removeprefix(State.USER_PREFIX))] = value
        elif not key.startswith(State.TEMP_PREFIX):
            scoped["session"][key_of(key)] = value
    return scoped


def _stored(event: Event) -> dict[str, Any]:
    """An event as JSON, without state of the scope `temp`."""
    stored = event.model_dump(mode="json", exclude_none=True)
    actions = stored.get("actions", {})
    delta = actions.get("state_delta", {})
    actions["state_delta"] = {key: value for key, value in delta.items() if not key.startswith(State.TEMP_PREFIX)}
    return stored


def _note(commit: AsyncTransaction, name: str, deltas: Deltas) -> None:
    """Note changes on other boards in the commit that asks for them."""
    noted = {scope: deltas[scope] for scope in ("app", "user") if deltas[scope]}
    if noted:
        commit.put(f"noted/{name}", noted)


def _texts(values: dict[str, Any]) -> dict[str, Any]:
    return {text_of(key): value for key, value in values.items()}


def _merge(app: dict[str, Any], user: dict[str, Any], session: dict[str, Any]) -> dict[str, Any]:
    """The state as a session shows it."""
    merged = _texts(session)
    merged.update({State.APP_PREFIX + key: value for key, value in _texts(app).items()})
    merged.update({State.USER_PREFIX + key: value for key, value in _texts(user).items()})
    return merged


def _ids(session: dict[str, Any]) -> tuple[str, str, str]:
    return text_of(session["app_name"]), text_of(session["user_id"]), text_of(session["id"])


def _session(ids: tuple[str, str, str], head: dict[str, Any], state: dict[str, Any], events: list[Event]) -> Session:
    app_name, user_id, session_id = ids
    session = Session(app_name=app_name, user_id=user_id, id=session_id, state=state, events=events)
    session.last_update_time = head["update_time"]
    session._storage_update_marker = head["commit"]
    return session


async def _events(board: AsyncSession, revision: int | None, config: GetSessionConfig) -> list[Event]:
    """The events as of a revision, oldest first."""
    wanted, begin = config.num_recent_events, config.after_timestamp
    if wanted == 0:
        return []
    items: list[dict[str, Any]] = []
    async for entry in newest_first(board, board.trajectories, wanted or PAGE_MAX, revision):
        if begin is None or entry.item.get("timestamp", 0.0) >= begin:
            items.append(entry.item)
        if len(items) == wanted:
            break
    return [Event.model_validate(item) for item in await unpacked(board, items[::-1])]


async def _marker(board: AsyncSession, session: Session) -> str:
    """The last commit of a session that was not loaded from here: it is known if the last event is."""
    head = await board.state.get("head")
    latest = await board.trajectories.latest(1)
    stored = latest[0].item.get("id") if latest else None
    if head is None or stored != (session.events[-1].id if session.events else None):
        raise await _refusal(board, session)
    return str(head["commit"])


async def _refusal(board: AsyncSession, session: Session) -> ValueError:
    if await board.state.get("head") is None:
        return SessionNotFoundError(f"Session {session.id} not found.")
    text = f"session {session.id!r} was changed since it was loaded; load it again before appending"
    return StaleSessionError(text)
