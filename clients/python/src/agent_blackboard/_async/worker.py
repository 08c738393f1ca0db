"""Worker: a loop that claims requests and works on each, whatever happens to one of them, until it is stopped."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from .._backend import AsyncResult, AsyncSignals, AsyncTicker, AsyncWork, CallCancelled
from .._wire import Seconds, seconds
from ..errors import BlackboardError
from ..values import Entry
from .tasks import AsyncTask

if TYPE_CHECKING:
    from .requests import AsyncRequests

logger = logging.getLogger("agent_blackboard")


class AsyncWorker:
    """A worker on the requests of a session, made by `session.requests.worker(…)`. `run` may be called once."""

    def __init__(
        self,
        requests: AsyncRequests,
        function: Callable[[AsyncTask], AsyncResult],
        match: Mapping[str, Any] | None,
        *,
        ttl: Seconds = 60.0,
        wait: Seconds = math.inf,
        agent: str | None = None,
    ) -> None:
        self._requests = requests
        self._function = function
        self._match, self._ttl, self._wait, self._agent = match, ttl, wait, agent
        self._stopped = False
        self._held: AsyncTask | None = None
        """The last request that was won."""
        # Claims have connections of their own, so that `stop` ends a wait at once.
        self._client = requests.session.client.interruptible()

    def stop(self) -> None:
        """Let `run` end: at once if it waits for a request, else after the present one."""
        self._stopped = True
        self._client.transport.interrupt()

    async def run(self) -> None:
        """Work until `stop`, a signal, or the end of a `wait` in which no request came.

        In the main thread SIGTERM and SIGINT stop it after the present request; a second signal gives this one back.
        Claims of the same agent that nobody has renewed for half a `ttl` are released: an earlier run left them.
        """
        claims = self._client.session(self._requests.session.name).requests
        try:
            with AsyncSignals(self.stop):
                async with self._releasing(await self._earlier(claims)):
                    await self._work(claims)
        except BaseException:
            if self._held is not None:
                await self._held.give_up(None)
            raise
        finally:
            await self._client.aclose()

    async def _earlier(self, claims: AsyncRequests) -> list[Entry]:
        """The requests that this agent holds before the worker has claimed any."""
        agent = self._agent or claims.session.client.agent
        try:
            return [
                entry
                async for entry in claims.entries(keys=[])
                if entry.claim is not None and entry.claim["agent"] == agent
            ]
        except BlackboardError as error:
            # The first claim waits for a server that is away.
            logger.info("earlier claims were not looked for, and will expire: %s", error)
            return []

    @asynccontextmanager
    async def _releasing(self, earlier: list[Entry]) -> AsyncIterator[None]:
        """Release what nobody renews for half a ttl. A second worker under the same name renews more often."""

        async def release() -> bool:
            for entry in earlier:
                await self._release(entry)
            return False

        ticker = AsyncTicker(seconds(self._ttl) / 2, release)
        try:
            yield
        finally:
            await ticker.stop()

    async def _release(self, earlier: Entry) -> None:
        """Release a claim that is as it was."""
        try:
            if (await self._requests.get(earlier.seq)).claim != earlier.claim:
                return
            task = AsyncTask(self._requests, earlier, self._agent)
            await task.release()
        except BlackboardError as error:
            logger.warning("request %d was not released, its claim will expire: %s", earlier.seq, error)
        else:
            if not task.lost:
                logger.info("request %d was released: an earlier run of this agent had claimed it", earlier.seq)

    async def _work(self, claims: AsyncRequests) -> None:
        """Work on one request after another."""
        while not self._stopped:
            # A cancellation must not lose a claim whose answer is on its way.
            task = await AsyncWork(self._next, claims, self.stop).result()
            if task is None:
                return
            await self._attempt(task)

    async def _next(self, claims: AsyncRequests) -> AsyncTask | None:
        """The next request; None if none came in time, or the worker was stopped."""
        try:
            won = await claims.claim_next(self._match, ttl=self._ttl, wait=self._wait, agent=self._agent)
        except BlackboardError:
            if self._stopped:
                return None
            raise
        if won is None:
            return None
        self._held = AsyncTask(self._requests, won.entry, self._agent)
        if self._stopped:
            await self._held.give_up(None)
            return None
        return self._held

    async def _attempt(self, task: AsyncTask) -> None:
        """Work on a request. Its failure is the request's, not the worker's."""
        try:
            async with task.kept(self._ttl):
                work = AsyncWork(self._function, task)
                task.on_cancel(work.cancel)
                result = await work.result()
            if not task.ended:
                await task.finish(result)
        except Exception as error:  # noqa: BLE001 (whatever the function raises fails its request alone)
            await self._unsuccessful(task, error)

    async def _unsuccessful(self, task: AsyncTask, error: Exception) -> None:
        if task.lost:
            logger.warning("the claim on request %d was lost: %s", task.seq, error)
        elif task.cancelled:
            logger.info("request %d was cancelled", task.seq)
        else:
            logger.warning("request %d failed: %s", task.seq, error, exc_info=error)
        is_failure = not (task.cancelled and isinstance(error, CallCancelled))
        await task.give_up(error if is_failure else None)
