"""Events: server-sent events that reconnect, and go on where they broke off."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import httpx
from httpx_sse import EventSource, ServerSentEvent

from .._backend import async_sleep
from .._wire import Backoff, query
from ..errors import BlackboardError, ConnectionFailed, HistoryGap, UnexpectedAnswer
from ..values import Event, Notice
from .transport import AsyncCall, passing

if TYPE_CHECKING:
    from .client import AsyncClient
    from .session import AsyncSession

SILENCE_MAX = 45.0
"""The longest time without a frame, in seconds; the server sends one every 15 s."""


class AsyncSource:
    """A source of server-sent events. `cursor` is the id that a new connection goes on from."""

    def __init__(self, client: AsyncClient, path: str, params: Mapping[str, Any], cursor: int | None) -> None:
        self._client = client
        self._path = path
        self._params = params
        self.cursor = cursor

    async def frames(self) -> AsyncIterator[ServerSentEvent | None]:
        """All frames, those with only an id too, and None for each connection after the first.

        Raises ConnectionFailed after the client's time limit without contact.
        """
        backoff, contact = Backoff(), time.monotonic()
        again = False
        while True:
            failure: BlackboardError
            try:
                async with self._connected() as source:
                    if again:
                        yield None
                    again = True
                    contact = time.monotonic()
                    async for frame in source.aiter_sse():
                        backoff, contact = Backoff(), time.monotonic()
                        if frame.id.isdecimal():
                            self.cursor = int(frame.id)
                        yield frame
                failure = ConnectionFailed(f"the events of {self._client.url}{self._path} broke off")
            except BlackboardError as error:
                failure = error
            pause = backoff.pause(getattr(failure, "retry_after", None))
            late = time.monotonic() + pause - contact > self._client.timeout
            if late or not (passing(failure) and self._client.transport.retry):
                raise failure
            await async_sleep(pause)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[EventSource]:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        call = AsyncCall("GET", self._path, query({**self._params, "after": self.cursor}), None, headers, SILENCE_MAX)
        async with self._client.transport.stream(call) as response:
            kind = response.headers.get("content-type", "")
            if not kind.startswith("text/event-stream"):
                text = f"{self._client.url}{self._path} answered {kind or 'no type'} instead of events"
                raise UnexpectedAnswer(text, response.status_code)
            yield EventSource(response)


async def events(
    session: AsyncSession,
    after: int | None,
    *,
    on: Iterable[str] | None,
    agent: str | None,
    on_gap: Literal["raise", "resync"],
) -> AsyncIterator[Event]:
    """The commits of a session."""
    source = AsyncSource(session.client, f"{session.path}/events", {"on": on, "agent": agent}, after)
    async for frame in source.frames():
        if frame is None or not frame.data:
            continue
        raw = _parsed(frame)
        if frame.event == "resync":
            source.cursor = raw["revision"]
            if on_gap == "raise":
                text = f"events of session {session.name!r} before revision {raw['revision']} are no longer kept"
                raise HistoryGap(text, raw["revision"], raw.get("oldest_revision"))
        elif "changes" not in raw:
            continue
        yield Event(raw["revision"], frame.event, raw.get("at"), raw.get("agent"), raw.get("changes", []), raw)


async def notices(client: AsyncClient) -> AsyncIterator[Notice]:
    """The notices of all sessions. A new connection may have missed some, so it begins with a gap."""
    source = AsyncSource(client, "/v1/events", {}, None)
    async for frame in source.frames():
        if frame is None:
            yield Notice(None, None, [])
        if frame is None or not frame.data:
            continue
        raw = _parsed(frame)
        yield Notice(raw.get("session"), raw.get("revision"), list(raw.get("kinds", [])))


def _parsed(frame: ServerSentEvent) -> dict[str, Any]:
    try:
        raw = json.loads(frame.data)
    except ValueError as error:
        raise UnexpectedAnswer(f"an event is not JSON: {error}", httpx.codes.OK, frame.data.encode()) from error
    if not isinstance(raw, dict):
        raise UnexpectedAnswer("an event is not a JSON object", httpx.codes.OK, frame.data.encode())
    return raw
