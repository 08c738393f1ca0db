"""A client for each event loop: connections belong to the loop that opened them, and frameworks run several."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from typing_extensions import Self

from .. import AsyncClient


class LoopClients:
    """The client that a caller gave, or one of its own for each event loop."""

    def __init__(self, client: AsyncClient | None, url: str | None, token: str | None) -> None:
        if client is not None and (url is not None or token is not None):
            raise ValueError("a client has its address and token already: give either it or these")
        self._given = client
        self._url = url
        self._token = token
        self._own: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = WeakKeyDictionary()

    def current(self) -> AsyncClient:
        """The client for the running event loop."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        client = self._own.get(loop)
        if client is None:
            client = self._own[loop] = AsyncClient(self._url, self._token)
        return client

    async def aclose(self) -> None:
        """Close the running loop's own client; one that the caller gave stays open."""
        client = self._own.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()


class Connected:
    """Base of what has connections: those of a client that was given, or its own for each event loop."""

    _clients: LoopClients

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the running event loop; a client that was given stays open."""
        await self._clients.aclose()
