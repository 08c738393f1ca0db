"""Transport: requests with their retries, one idempotency key for all tries of a write, within one time limit."""

from __future__ import annotations

import re
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from .._backend import async_sleep
from .._version import __version__
from .._wire import Backoff, query
from ..errors import BlackboardError, ConnectionFailed, IncompatibleServer, Problem, UnexpectedAnswer, problem
from ..values import Answer

VERSION = "0.1"
"""The versions of the server that this client speaks, as the beginning of the number."""
SILENCE_MAX = 15.0
"""The longest time without a byte of an answer before a try is given up, in seconds; a wait is added."""
CONTENT_MAX = 512 << 20
"""The longest answer that is read into memory, in bytes."""
SERVER_SECONDS = 5.0
"""The limit of asking which server it is."""
PASSING = frozenset({429, 502, 503, 504})
"""The statuses of proxies that may go away by themselves."""
READS = frozenset({"GET", "HEAD"})
CONNECTED = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})
"""The events of httpcore that have a new connection."""
# Refusals that an older or newer server gives to calls of this client.
SESSION = re.compile(r"/v1/sessions/[^/]")
FOREIGN = frozenset({"route-not-found", "method-not-allowed", "unknown-parameter", "unknown-field"})


@dataclass
class AsyncCall:
    """One call: a request with all its tries."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | Callable[[], AsyncIterator[bytes]] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    """The limit of the call with all its tries, in seconds."""
    wait: float = 0.0
    """The time that the server may wait before it answers one try, in seconds; added to the limit."""
    retry: bool = True
    keyed: bool = True
    """Whether a write gets an idempotency key."""

    @property
    def key(self) -> str | None:
        """The idempotency key of a write."""
        return self.headers.get("Idempotency-Key")


class AsyncTransport:
    """Connections to one server."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        connect_timeout: float,
        retry: bool,
        headers: Mapping[str, str] | None,
        verify: Any,
        interruptible: bool = False,
    ) -> None:
        self.url = checked_url(url)
        self.retry = retry
        self.interrupted = False
        """Whether no wait goes on any more."""
        self._socket: Any = None
        """The connection opened last, of a transport that can be interrupted."""
        self._options = {"connect_timeout": connect_timeout, "retry": retry, "headers": headers, "verify": verify}
        self._token = token
        self._can_be_interrupted = interruptible
        self._connect_timeout = connect_timeout
        self._compatible = False
        every = {"User-Agent": f"agent-blackboard/{__version__}", **(headers or {})}
        if token is not None:
            every["Authorization"] = f"Bearer {checked_token(token)}"
        # Certificates are loaded for TLS only: that takes longer than a call.
        checked = verify if self.url.startswith("https:") else False
        # A connection for each request: only one that is new is known to `interrupt`.
        limits = httpx.Limits(max_keepalive_connections=0) if interruptible else httpx.Limits()
        self.http = httpx.AsyncClient(
            base_url=self.url, headers=every, verify=checked, follow_redirects=False, limits=limits
        )

    def interruptible(self) -> AsyncTransport:
        """Connections of the same kind for one call at a time, which another thread or a signal may interrupt."""
        return AsyncTransport(self.url, self._token, **self._options, interruptible=True)

    def interrupt(self) -> None:
        """End the waits of this transport. A claim that was won meanwhile is still found."""
        self.interrupted = True
        self._shut()

    def _shut(self) -> None:
        # A close would leave a thread that reads in its read.
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _extensions(self) -> dict[str, Any]:
        # After an interruption the client asks what came of the request that was cut.
        is_last = self.interrupted

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            if event in CONNECTED:
                self._socket = info["return_value"].get_extra_info("socket")
                if self.interrupted and not is_last:
                    self._shut()

        return {"trace": trace} if self._can_be_interrupted else {}

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def answer(self, call: AsyncCall) -> Answer:
        """Make a call. Raises Problem, ConnectionFailed, UnexpectedAnswer or IncompatibleServer."""
        self.key(call)
        deadline = time.monotonic() + call.timeout + call.wait
        backoff = Backoff()
        while True:
            try:
                return await self.attempt(call, deadline)
            except (ConnectionFailed, UnexpectedAnswer, Problem) as error:
                failure = error
            pause = backoff.pause(getattr(failure, "retry_after", None))
            if not (self.retry and call.retry and passing(failure)) or time.monotonic() + pause >= deadline:
                await self.check_server(failure)
                raise failure
            await async_sleep(pause)

    def key(self, call: AsyncCall) -> None:
        """Give a write its idempotency key, which all its tries have."""
        if call.keyed and call.method not in READS and call.key is None:
            call.headers["Idempotency-Key"] = str(uuid.uuid4())

    @asynccontextmanager
    async def stream(self, call: AsyncCall) -> AsyncIterator[httpx.Response]:
        """The answer to one try of a call, its body not read yet. An answer over 399 is raised."""
        if self.http.is_closed:
            raise BlackboardError("the client is closed")
        deadline = time.monotonic() + call.timeout + call.wait
        content = call.content() if callable(call.content) else call.content
        try:
            async with self.http.stream(
                call.method,
                call.path,
                params=query(call.params),
                content=content,
                headers=call.headers,
                timeout=self._timeouts(call, deadline),
                extensions=self._extensions(),
            ) as response:
                if response.status_code >= 300 and response.status_code != 304:
                    raise refusal(call, response, await self._body(response, deadline))
                yield response
        except httpx.TimeoutException as error:
            raise ConnectionFailed(self._failed(call, f"no answer in time ({_name(error)})"), call.key) from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise ConnectionFailed(self._failed(call, f"{error or _name(error)}"), call.key) from error

    async def attempt(self, call: AsyncCall, deadline: float | None = None) -> Answer:
        """Make one try of a call."""
        if deadline is None:
            deadline = time.monotonic() + call.timeout + call.wait
        async with self.stream(call) as response:
            content = await self._body(response, deadline)
        kind = response.headers.get("content-type", "").lower()
        # Every answer about a session tells its revision; every other one is JSON.
        ours = (
            "blackboard-revision" in response.headers
            if SESSION.match(call.path)
            else kind.startswith("application/json")
        )
        if not ours:
            text = self._failed(call, f"an answer {response.status_code} of type {kind or 'unknown'}")
            raise UnexpectedAnswer(text, response.status_code, content)
        return Answer(response.status_code, response.headers, content)

    async def _body(self, response: httpx.Response, deadline: float) -> bytes:
        blocks = bytearray()
        async for block in response.aiter_bytes():
            blocks += block
            if len(blocks) > CONTENT_MAX:
                raise UnexpectedAnswer(f"an answer of more than {CONTENT_MAX >> 20} MiB", response.status_code)
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("the answer did not end in time")
        return bytes(blocks)

    def _timeouts(self, call: AsyncCall, deadline: float) -> httpx.Timeout:
        left = max(deadline - time.monotonic(), 0.001)
        silence = min(left, SILENCE_MAX + call.wait) if self.retry and call.retry else left
        return httpx.Timeout(silence, connect=min(left, self._connect_timeout), pool=left)

    async def check_server(self, failure: BlackboardError) -> None:
        """Raise IncompatibleServer where a refusal comes from a server that this client does not speak with."""
        unexpected = isinstance(failure, UnexpectedAnswer) and failure.status < 500
        foreign = unexpected or (isinstance(failure, Problem) and failure.code in FOREIGN)
        if self._compatible or not foreign:
            return
        try:
            call = AsyncCall("GET", "/", headers={"Accept": "application/json"}, timeout=SERVER_SECONDS)
            answer = await self.attempt(call)
            described = answer.json()
        except (ConnectionFailed, Problem):
            return
        except UnexpectedAnswer:
            described = None
        if not isinstance(described, dict) or described.get("name") != "blackboard":
            raise IncompatibleServer(f"{self.url} is not a Blackboard server ({failure})") from failure
        version = str(described.get("version"))
        if re.match(rf"{re.escape(VERSION)}(\.|$)", version) is None:
            text = f"{self.url} is Blackboard {version}; this client needs {VERSION}"
            raise IncompatibleServer(f"{text} ({failure})") from failure
        self._compatible = True

    def _failed(self, call: AsyncCall, why: str) -> str:
        return f"{call.method} {self.url}{call.path}: {why}"


def passing(failure: BlackboardError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(failure, Problem):
        return failure.retryable
    if isinstance(failure, UnexpectedAnswer):
        return failure.status in PASSING
    return isinstance(failure, ConnectionFailed)


def refusal(call: AsyncCall, response: httpx.Response, content: bytes) -> BlackboardError:
    """The exception for an answer that is no success."""
    status, kind = response.status_code, response.headers.get("content-type", "")
    if kind.startswith("application/problem+json") and content:
        body = Answer(status, response.headers, content).json()
        if isinstance(body, dict):
            return problem(status, body, response.headers)
    if call.method == "HEAD" and status == 404:
        return problem(status, {"title": "Not found"}, response.headers)
    where = response.headers.get("location")
    to = f" to {where}" if where else ""
    return UnexpectedAnswer(
        f"{call.method} {response.url.copy_with(query=None)}: an answer {status}{to} of type {kind or 'unknown'}",
        status,
        content,
    )


def checked_url(url: str) -> str:
    """The address of a server, without a slash at its end. Raises ValueError for what is none."""
    try:
        parts, port = httpx.URL(url), urlsplit(url).port
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise ValueError(f"the server's address is not a URL: {error}") from error
    if parts.userinfo:
        raise ValueError("the server's address has a user or password; a token goes into `token` or BLACKBOARD_TOKEN")
    known = parts.scheme in ("http", "https") and parts.host and not re.search(r"[\s\x00-\x1f]", url)
    if not known or port == 0 or parts.query or parts.fragment:
        raise ValueError(f"the server's address must be like http://127.0.0.1:8733, not {url!r}")
    return url.rstrip("/")


def checked_token(token: str) -> str:
    """A token that fits a header. Raises ValueError; the token is not in the message."""
    if not token.isascii() or not token.isprintable() or not token.strip():
        raise ValueError("the token is empty or has invalid characters (BLACKBOARD_TOKEN?)")
    return token


def _name(error: Exception) -> str:
    return type(error).__name__
