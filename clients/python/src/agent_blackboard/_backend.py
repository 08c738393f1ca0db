"""Backends of the two clients: the few parts that `_async` and `_sync` do not share by text.

Each pair has one name that begins with `Async` or `async_`, and one without.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from os import PathLike
from typing import Any

CHUNK = 1 << 20


async def async_sleep(seconds: float) -> None:
    """Sleep."""
    await asyncio.sleep(seconds)


def sync_sleep(seconds: float) -> None:
    """Sleep."""
    time.sleep(seconds)


async def async_body(path: str | PathLike[str]) -> AsyncIterator[bytes]:
    """A file's bytes in blocks."""
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            yield block


def sync_body(path: str | PathLike[str]) -> Iterator[bytes]:
    """A file's bytes in blocks."""
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            yield block


class AsyncTicker:
    """A task that makes a call again and again until it is stopped, or the call says so by False."""

    def __init__(self, interval: float, call: Callable[[], Awaitable[bool]]) -> None:
        self._stopped = asyncio.Event()
        self._task = asyncio.create_task(self._run(interval, call))

    async def _run(self, interval: float, call: Callable[[], Awaitable[bool]]) -> None:
        while not await self._stops_within(interval) and await call():
            pass

    async def _stops_within(self, interval: float) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), interval)
        return self._stopped.is_set()

    async def stop(self) -> None:
        """Stop, and wait until no call is under way."""
        self._stopped.set()
        await self._task


class Ticker:
    """A thread that makes a call again and again until it is stopped, or the call says so by False."""

    def __init__(self, interval: float, call: Callable[[], bool]) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(interval, call), daemon=True)
        self._thread.start()

    def _run(self, interval: float, call: Callable[[], bool]) -> None:
        while not self._stopped.wait(interval) and call():
            pass

    def stop(self) -> None:
        """Stop, and wait until no call is under way."""
        self._stopped.set()
        self._thread.join()


class AsyncStateItems:
    """No subscripts: an asynchronous state has `get`, `set` and `delete`."""


class StateItems:
    """Subscripts of a state: `state["tasks/t1"]`, assignment, `del` and `in`."""

    def __getitem__(self, path: str) -> Any:
        return self.read(path).value  # type: ignore[attr-defined]

    def __setitem__(self, path: str, value: Any) -> None:
        self.set(path, value)  # type: ignore[attr-defined]

    def __delitem__(self, path: str) -> None:
        self.delete(path)  # type: ignore[attr-defined]

    def __contains__(self, path: str) -> bool:
        return bool(self.get(path, _ABSENT) is not _ABSENT)  # type: ignore[attr-defined]


_ABSENT = object()
