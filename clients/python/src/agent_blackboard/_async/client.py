"""Client of a server: its sessions, and what reaches over all of them."""

from __future__ import annotations

import copy
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from typing_extensions import Self, Unpack

from .._backend import async_body
from .._wire import UNSET, Seconds, Unset, WriteOptions, json_bytes, seconds, segment
from ..errors import UnsupportedValue
from ..values import Answer, Entry, Notice, Written, entry, written
from .events import notices
from .session import AsyncSession
from .transport import READS, AsyncCall, AsyncTransport
from .waits import AsyncWait

URL = "http://127.0.0.1:8733"
JSON = "application/json"


class AsyncClient:
    """A client of one server, with a pool of connections. It may be shared, and is closed by `with` or `aclose`.

    `url` and `token` default to BLACKBOARD_URL and BLACKBOARD_TOKEN. `timeout` is the limit of one call with all its
    retries, in seconds; a wait has its own where that is longer. `agent` names the writer. An asynchronous client
    belongs to the event loop that it is first used in.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        agent: str | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 5.0,
        retry: bool = True,
        headers: Mapping[str, str] | None = None,
        verify: Any = True,
    ) -> None:
        checked_timeout(timeout)
        checked_timeout(connect_timeout)
        self.agent = agent
        self.timeout = timeout
        self._transport = AsyncTransport(
            url or os.environ.get("BLACKBOARD_URL") or URL,
            token or os.environ.get("BLACKBOARD_TOKEN") or None,
            connect_timeout=connect_timeout,
            retry=retry,
            headers=headers,
            verify=verify,
        )

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.url

    @property
    def transport(self) -> AsyncTransport:
        """The connections."""
        return self._transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    def with_options(self, *, agent: str | None = None, timeout: float | None = None) -> Self:
        """A client on the same connections with another agent or time limit."""
        other = copy.copy(self)
        other.agent = self.agent if agent is None else agent
        other.timeout = self.timeout if timeout is None else timeout
        return other

    def interruptible(self) -> Self:
        """A client with connections of its own, whose waits `transport.interrupt()` ends; to be closed."""
        other = copy.copy(self)
        other._transport = self._transport.interruptible()
        return other

    def session(self, name: str, agent: str | None = None) -> AsyncSession:
        """A session by name. Nothing is sent; the first write makes the session."""
        return AsyncSession(self if agent is None else self.with_options(agent=agent), name)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = UNSET,
        content: bytes | None = None,
        media_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        wait: Seconds | None = None,
        keyed: bool = True,
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """Make any call of the contract. `path` is percent-encoded.

        `wait` has any length: the server is asked in pieces of 25 s, also over proxies that cut a request and over
        broken connections. At its end the last answer is returned (304, 204, a page without news) or raised as
        ConditionNotMet, RevisionNotReached or WaitTimedOut, which are TimeoutErrors. While nothing answers, it ends no
        sooner than `timeout`.

        With `keyed=False` a write has no idempotency key, which the server would keep for 24 hours: for writes whose
        repetition does no harm.

        Raises Problem, ConnectionFailed, UnexpectedAnswer, IncompatibleServer, and UnsupportedValue for a value that
        is no JSON.
        """
        sent = dict(headers or {}) | self._headers(method, options)
        if not isinstance(json, Unset):
            content, media_type = json_bytes(json), media_type or JSON
        if content is not None:
            sent.setdefault("Content-Type", header("media_type", media_type or JSON))
        asked = {"claim": options.get("claim"), "fence": options.get("fence"), **(params or {})}
        given = options.get("timeout")
        limit = self.timeout if given is None else checked_timeout(given)
        call = AsyncCall(method, path, asked, content, sent, limit, keyed=keyed)
        if wait is None:
            return await self._transport.answer(call)
        return await AsyncWait(self._transport, call, seconds(wait)).answer()

    def _headers(self, method: str, options: WriteOptions) -> dict[str, str]:
        agent = self.agent if options.get("agent") is None else options.get("agent")
        made = {
            "X-Agent-ID": None if agent is None else encoded_agent(agent),
            "If-Match": options.get("if_match"),
            "If-None-Match": options.get("if_none_match"),
            "Idempotency-Key": None if method in READS else options.get("idempotency_key"),
        }
        return {name: header(name, value) for name, value in made.items() if value is not None}

    async def server(self) -> dict[str, Any]:
        """The server's name, version and addresses."""
        answer = await self.request("GET", "/", headers={"Accept": JSON})
        return dict(answer.json())

    async def sessions(
        self, *, prefix: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """All sessions that the token may see, in the order of their names."""
        label = [f"{key}:{value}" for key, value in labels.items()] if labels else None
        async for session in self._listed("/v1/sessions", "sessions", {"prefix": prefix, "label": label}):
            yield session

    async def inbox(self) -> AsyncIterator[Entry]:
        """The open questions of all sessions; `session` of an entry names its session."""
        async for raw in self._listed("/v1/questions", "questions", {}):
            yield entry(raw)

    async def work(self) -> AsyncIterator[Entry]:
        """The pending requests of all sessions."""
        async for raw in self._listed("/v1/requests", "requests", {}):
            yield entry(raw)

    async def search(
        self,
        q: str,
        *,
        session: str | None = None,
        prefix: str | None = None,
        log: str | None = None,
        agent: str | None = None,
        since: str | None = None,
        limit: int = 20,
        min_revision: int | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """At most `limit` hits over all sessions, best first: session, log, seq, score, snippet, at, agent."""
        named = {"q": q, "session": session, "prefix": prefix, "log": log, "agent": agent, "since": since}
        params = {**named, "min_revision": min_revision, "limit": min(limit, 100)}
        found = 0
        async for hit in self._listed("/v1/search", "hits", params):
            yield hit
            found += 1
            if found == limit:
                return

    async def _listed(self, path: str, name: str, params: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        after = None
        while True:
            page = (await self.request("GET", path, params={**params, "after": after})).json()
            for raw in page[name]:
                yield raw
            after = page.get("next")
            if after is None or not page[name] or page.get("more") is False:
                return

    async def notices(self) -> AsyncIterator[Notice]:
        """A notice for each commit of any session, without end; reconnects. After a gap `session` is None."""
        async for notice in notices(self):
            yield notice

    async def import_archive(self, name: str, path: str | os.PathLike[str], **options: Unpack[WriteOptions]) -> Written:
        """Restore an archive file under a name that does not exist. It is tried once."""
        headers = {"Content-Type": "application/x-ndjson", **self._headers("PUT", options)}
        place = f"/v1/sessions/{segment(name)}/archive"
        call = AsyncCall("PUT", place, {}, lambda: async_body(path), headers, options.get("timeout") or 600.0)
        call.retry = False
        return written(await self._transport.answer(call))


def encoded_agent(agent: str) -> str:
    """An agent's name as the header has it."""
    if not isinstance(agent, str) or not agent:
        raise UnsupportedValue(f"an agent's name must be non-empty text, not {agent!r}")
    try:
        return quote(agent, safe="")
    except UnicodeEncodeError as error:
        raise UnsupportedValue("an agent's name has an unpaired surrogate") from error


def header(name: str, value: Any) -> str:
    """A value that fits a header."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or not value.strip():
        raise UnsupportedValue(f"{name} must be printable ASCII text, not {value!r}")
    return value


def checked_timeout(seconds: float) -> float:
    """A time limit in seconds."""
    if not seconds > 0:
        raise UnsupportedValue(f"a timeout must be more than 0 seconds, not {seconds}")
    return seconds
