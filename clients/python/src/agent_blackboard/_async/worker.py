"""Worker: a loop that claims requests and works on each, whatever happens to one of them, until it is stopped."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._backend import AsyncSignals, AsyncWork, CallCancelled
from .._wire import Seconds
from ..errors import BlackboardError
from .tasks import AsyncTask

if TYPE_CHECKING:
    from .requests import AsyncRequests

logger = logging.getLogger("agent_blackboard")

RETRY_SECONDS = 1.0
"""The pause of a request after its first failed attempt, in seconds; doubled by each past attempt."""
RETRY_SECONDS_MAX = 300.0
"""The longest pause of a request after a failed attempt, in seconds."""
REASON_MAX = 2000
"""The longest text of an exception that becomes a reason, in characters."""


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
                await self._end(self._held, None)
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
            await self._end(self._held, None)
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
        await self._end(task, reason(error) if is_failure else None)

    async def _end(self, task: AsyncTask, failure: str | None) -> None:
        """Fail a request, or give it back."""
        if task.ended or task.lost:
            return
        try:
            if failure is None:
                await task.release()
            else:
                await task.fail(failure, retry_in=pause(task.past_attempts))
        except BlackboardError as error:
            logger.warning("request %d was not released, its claim will expire: %s", task.seq, error)


def pause(past_attempts: list[dict[str, Any]]) -> float:
    """The pause of a request after an attempt failed, in seconds. What was given back is no failure."""
    failures = sum(attempt["outcome"] != "released" for attempt in past_attempts)
    return min(float(RETRY_SECONDS * 2**failures), RETRY_SECONDS_MAX)


def reason(error: Exception) -> str:
    """The text of an exception with its class, as a reason."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text[:REASON_MAX].encode("utf-8", "replace").decode()
