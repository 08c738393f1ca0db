"""Backends of the two clients: the few parts that `_async` and `_sync` do not share by text.

Each pair has one name that begins with `Async` or `async_`, and one without.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from os import PathLike
from typing import Any

CHUNK = 1 << 20

AsyncResult = Awaitable[Any]
"""What the function of a worker returns."""
Result = Any
"""What the function of a worker returns."""


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


class AsyncWatch:
    """A task that makes a call again and again until it is stopped, or the call says so by False."""

    def __init__(self, call: Callable[[], Awaitable[bool]]) -> None:
        self._task = asyncio.create_task(self._run(call))

    async def _run(self, call: Callable[[], Awaitable[bool]]) -> None:
        while await call():
            pass

    async def stop(self) -> None:
        """Stop, and abandon a call under way."""
        self._task.cancel()
        await asyncio.wait([self._task])


class Watch:
    """A thread that makes a call again and again until it is stopped, or the call says so by False."""

    def __init__(self, call: Callable[[], bool]) -> None:
        self._stopped = False
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], bool]) -> None:
        try:
            while not self._stopped and call():
                pass
        except Exception:
            # Its client may be closed meanwhile.
            if not self._stopped:
                raise

    def stop(self) -> None:
        """Stop. A call under way ends by itself."""
        self._stopped = True


class CallCancelled(Exception):
    """A call that was cancelled before it had a result."""


class AsyncWork:
    """A coroutine of a worker, which runs at once and has ended when its result is had, cancelled or not.

    If the caller of `result` is cancelled, `interrupt` ends the coroutine, which is cancelled if there is none.
    """

    def __init__(
        self,
        function: Callable[[Any], Awaitable[Any]],
        argument: Any,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        self._task = asyncio.ensure_future(function(argument))
        self._interrupt = interrupt or self.cancel

    def cancel(self) -> None:
        """Cancel the coroutine."""
        self._task.cancel()

    async def result(self) -> Any:
        """The result, or what the coroutine raises. Raises CallCancelled if it was cancelled."""
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            self._interrupt()
            await asyncio.wait([self._task])
            raise
        if self._task.cancelled():
            raise CallCancelled("the call was cancelled")
        return self._task.result()


class Work:
    """A call of a worker, which runs when its result is wanted. Nothing can cancel it."""

    def __init__(self, function: Callable[[Any], Any], argument: Any, _: Callable[[], None] | None = None) -> None:
        self._function, self._argument = function, argument

    def cancel(self) -> None:
        """Do nothing: the function looks at `task.cancelled`."""

    def result(self) -> Any:
        """The result, or what the function raises."""
        return self._function(self._argument)


class Signals:
    """SIGTERM and SIGINT within a `with` block of the main thread: the first one calls `stop`, the next interrupts."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._came = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._handle)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, *_: object) -> None:
        if self._came:
            self._interrupt()
        self._came = True
        self._stop()

    def _interrupt(self) -> None:
        raise KeyboardInterrupt


class AsyncSignals(Signals):
    """As Signals, for a task of an event loop, which the second signal cancels."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__(stop)
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()

    def _interrupt(self) -> None:
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)


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
