"""Worker: a loop that claims requests and works on each, whatever happens to one of them, until it is stopped."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._backend import AsyncSignals, AsyncWork, CallCancelled
from .._wire import Seconds
from ..errors import BlackboardError
from .tasks import AsyncTask

if TYPE_CHECKING:
    from .requests import AsyncRequests

logger = logging.getLogger("agent_blackboard")


class AsyncWorker:
    """A worker on the requests of a session, made by `session.requests.worker(…)`. `run` may be called once."""

    def __init__(
        self,
        requests: AsyncRequests,
        function: Callable[[AsyncTask], Awaitable[Any]],
        match: Mapping[str, Any] | None,
        ttl: Seconds,
        wait: Seconds,
        agent: str | None,
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
        """
        claims = self._client.session(self._requests.session.name).requests
        try:
            with AsyncSignals(self.stop):
                while not self._stopped:
                    # A cancellation must not lose a claim whose answer is on its way.
                    task = await AsyncWork(self._next, claims, self.stop).result()
                    if task is None:
                        return
                    await self._attempt(task)
        except BaseException:
            if self._held is not None:
                await self._held.give_up(None)
            raise
        finally:
            await self._client.aclose()

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
