"""Exchanges: requests and answers as generators, which a sync and an async driver run.

Each operation of the adapter is written once, as a generator that yields requests and is sent answers. A refusal is
thrown into it. Nothing in an operation knows how a request is made.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from .._async.client import AsyncClient
from .._sync.client import Client
from .._wire import UNSET
from ..errors import BlackboardError
from ..values import Answer

PLACE = ("method", "path")


@dataclass(frozen=True)
class Request:
    """A request of the contract; `path` is percent-encoded."""

    method: str
    path: str
    json: Any = UNSET
    content: bytes | None = None
    media_type: str | None = None
    params: dict[str, Any] | None = None
    if_match: str | None = None
    agent: str | None = None
    """The writer, where it is not the client's."""
    wait: float | None = None
    """The time for which the server may wait, in seconds."""
    keyed: bool = True
    """Whether a write has an idempotency key, which its session keeps for 24 hours; not where a repeat is harmless."""

    def options(self) -> dict[str, Any]:
        """The arguments of a client's `request`, besides method and path."""
        return {name: value for name, value in vars(self).items() if value is not None and name not in PLACE}


T = TypeVar("T")
Exchange = Generator[Request, Answer, T]


class Connections:
    """The clients of an adapter: one for all threads, and one for each event loop, made when they are needed.

    A client that was handed in is not closed.
    """

    def __init__(self, client: Client | None, async_client: AsyncClient | None, url: str | None, token: str | None):
        self._client = client
        self._given_async = async_client
        self._url = url
        self._token = token
        self._owned: Client | None = None
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def run(self, exchange: Exchange[T]) -> T:
        """Run an exchange in this thread."""
        client = self._sync()
        try:
            request = next(exchange)
            while True:
                try:
                    answer = client.request(request.method, request.path, **request.options())
                except BlackboardError as error:
                    request = exchange.throw(error)
                else:
                    request = exchange.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def arun(self, exchange: Exchange[T]) -> T:
        """Run an exchange in this event loop."""
        client = self._async()
        try:
            request = next(exchange)
            while True:
                try:
                    answer = await client.request(request.method, request.path, **request.options())
                except BlackboardError as error:
                    request = exchange.throw(error)
                else:
                    request = exchange.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def close(self) -> None:
        """Close the client of the threads, if it was made here."""
        with self._lock:
            owned, self._owned = self._owned, None
        if owned is not None:
            owned.close()

    async def aclose(self) -> None:
        """Close this event loop's client and that of the threads, where they were made here."""
        with self._lock:
            client = self._by_loop.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
        self.close()

    def _sync(self) -> Client:
        if self._client is not None:
            return self._client
        with self._lock:
            if self._owned is None:
                self._owned = Client(self._url, self._token)
            return self._owned

    def _async(self) -> AsyncClient:
        if self._given_async is not None:
            return self._given_async
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._by_loop.get(loop)
            if client is None:
                client = self._by_loop[loop] = AsyncClient(self._url, self._token)
            return client
