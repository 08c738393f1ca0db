"""A claimed request: finished, failed or given back once, renewed and watched until then."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from typing_extensions import deprecated

from .._backend import AsyncTicker, AsyncWatch, async_sleep
from .._wire import UNSET, WAIT_PIECE, Seconds, WriteOptions, seconds
from ..errors import BlackboardError, Conflict, NotFound
from ..values import Entry, Written, entry
from .transactions import AsyncTransaction
from .transport import passing

if TYPE_CHECKING:
    from .requests import AsyncRequests

logger = logging.getLogger("agent_blackboard")

AGAIN_SECONDS = 1.0
"""The pause of a watch after a failed read, in seconds."""
NOT_MODIFIED = 304
RETRY_SECONDS = 1.0
"""The pause of a request after its first failed attempt, in seconds; doubled by each past attempt."""
RETRY_SECONDS_MAX = 300.0
"""The longest pause of a request after a failed attempt, in seconds."""
REASON_MAX = 2000
"""The longest text of an exception that becomes a reason, in characters."""


class AsyncTask:
    """A request that this worker holds. `fence` guards writes: `append(…, **task.guard)`."""

    def __init__(self, requests: AsyncRequests, held: Entry, agent: str | None) -> None:
        claim = held.claim or {}
        self._requests = requests
        self._agent = agent
        self._cancel: Callable[[], None] = lambda: None
        self.entry = held
        """The request as it was seen last."""
        self.seq = held.seq
        self.item = held.item
        self.past_attempts = held.past_attempts
        """The last claims that ended without success, oldest first: agent, from, to, outcome, reason."""
        self.agent = str(claim.get("agent"))
        self.fence = int(claim["fence"])
        self.cancelled = False
        """Whether the work is not wanted any more: the request was cancelled, or the claim was lost."""
        self.lost = False
        """Whether the claim lapsed or another worker has it: write nothing more."""
        self.ended = False
        """Whether the task was finished, failed or given back."""

    @property
    def guard(self) -> WriteOptions:
        """Options that refuse a write once the claim is not held any more: `append(item, **task.guard)`."""
        return WriteOptions(claim=self.seq, fence=self.fence)

    async def finish(self, result: Any = None) -> Written:
        """Finish the request, also one that was cancelled. Raises StaleFence if the claim was lost."""
        self.ended = True
        try:
            return await self._requests.finish(self.seq, self.fence, result, agent=self._agent)
        except BlackboardError as error:
            self._not_ended(error)
            raise

    def finishing(self, result: Any = UNSET) -> AsyncTransaction:
        """A transaction that also finishes the request: both are one commit, so a kill repeats neither."""

        def committed() -> None:
            self.ended = True

        options = WriteOptions() if self._agent is None else WriteOptions(agent=self._agent)
        made = AsyncTransaction(self._requests.session, options, committed)
        return made.done(self.seq, self.fence, result)

    async def fail(self, reason: Any = None, *, retry_in: Seconds | None = None) -> Written:
        """Fail this attempt: the request is claimable again, after `retry_in`, until its attempts are spent."""
        self.ended = True
        try:
            return await self._requests.fail(self.seq, self.fence, reason, retry_in=retry_in, agent=self._agent)
        except BlackboardError as error:
            self._not_ended(error)
            raise

    @deprecated("use finish")
    async def done(self, result: Any = None) -> Written:
        """The former name of `finish`."""
        return await self.finish(result)

    @deprecated("use fail")
    async def failed(self, reason: Any = None) -> Written:
        """The former name of `fail`."""
        return await self.fail(reason)

    async def release(self) -> None:
        """Give the request back. Does nothing if the claim was lost."""
        self.ended = True
        try:
            await self._requests.release(self.seq, agent=self._agent, claim=self.seq, fence=self.fence)
        except (Conflict, NotFound):
            self.cancel(lost=True)

    async def give_up(self, error: Exception | None) -> None:
        """Fail the attempt by an exception, with a pause before the next one; or give the request back.

        Does nothing if the request has ended or was lost. If the server does not accept the end, that is logged.
        """
        if self.ended or self.lost:
            return
        try:
            if error is None:
                await self.release()
            else:
                await self.fail(_reason(error), retry_in=_pause(self.past_attempts))
        except BlackboardError as second:
            logger.warning("request %d was not released, its claim will expire: %s", self.seq, second)

    def _not_ended(self, error: BlackboardError) -> None:
        """Go on after an end that the server did not accept."""
        self.ended = False
        if isinstance(error, (Conflict, NotFound)):
            self.cancel(lost=True)

    def cancel(self, *, lost: bool = False) -> None:
        """Note that the work is not wanted any more."""
        self.lost = self.lost or lost
        if not self.cancelled:
            self.cancelled = True
            self._cancel()

    def on_cancel(self, call: Callable[[], None]) -> None:
        """Make this call once the work is not wanted any more."""
        self._cancel = call
        if self.cancelled:
            call()

    async def renew(self, ttl: Seconds, timeout: float | None = None) -> bool:
        """Renew the claim; False if it was lost."""
        try:
            receipt = await self._requests.claim(
                self.seq, ttl, agent=self._agent, timeout=timeout, claim=self.seq, fence=self.fence
            )
        except (Conflict, NotFound):
            # A renewal may be late for a claim that this worker has ended.
            if not self.ended:
                self.cancel(lost=True)
        except BlackboardError as error:
            logger.warning("the claim on request %d was not renewed: %s", self.seq, error)
        else:
            if receipt.raw["claim"]["fence"] != self.fence:
                # It lapsed, so another worker may have had it in between.
                self.cancel(lost=True)
                await self._requests.release(self.seq, agent=self._agent)
        return not self.lost

    @asynccontextmanager
    async def kept(self, ttl: Seconds) -> AsyncIterator[None]:
        """Renew the claim at every third of `ttl` while the block runs, and watch for its loss and a cancellation."""
        third = seconds(ttl) / 3

        async def renew() -> bool:
            return not self.ended and await self.renew(ttl, third)

        ticker, watch = AsyncTicker(third, renew), AsyncWatch(self._look)
        try:
            yield
        finally:
            await watch.stop()
            await ticker.stop()

    async def _look(self) -> bool:
        """Wait for a change of the request; False if no other one matters."""
        path, tag = f"{self._requests.path}/{self.seq}", self.entry.etag
        if tag is None:
            logger.warning("request %d is not watched: a proxy removes ETag", self.seq)
            return False
        try:
            answer = await self._requests.session.request(
                "GET", path, headers={"If-None-Match": tag}, wait=WAIT_PIECE, agent=self._agent
            )
        except NotFound:
            self.cancel(lost=True)
        except BlackboardError as error:
            if not passing(error):
                # The renewals still notice a loss.
                logger.warning("request %d is not watched: %s", self.seq, error)
                return False
            await async_sleep(AGAIN_SECONDS)
        else:
            if answer.status != NOT_MODIFIED:
                found, before = entry(answer.json(), answer.etag), self.entry.revision
                self._seen(found)
                if found.revision == before:
                    # A proxy may change tags, so that none matches.
                    await async_sleep(AGAIN_SECONDS)
        return not (self.ended or self.cancelled)

    def _seen(self, found: Entry) -> None:
        self.entry = found
        # The end by this worker may be seen before its own answer.
        held = found.claim or found.done or found.in_review or {}
        if not self.ended and held.get("fence") != self.fence:
            self.cancel(lost=True)
        elif found.cancel is not None:
            self.cancel()


def _pause(past_attempts: list[dict[str, Any]]) -> float:
    """The pause of a request after an attempt failed, in seconds. What was given back is no failure."""
    failures = sum(attempt["outcome"] != "released" for attempt in past_attempts)
    return min(float(RETRY_SECONDS * 2**failures), RETRY_SECONDS_MAX)


def _reason(error: Exception) -> str:
    """The text of an exception with its class, as a reason."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text[:REASON_MAX].encode("utf-8", "replace").decode()
