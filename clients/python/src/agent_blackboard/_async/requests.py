"""Requests as tasks: claimed by one worker at a time, renewed while it works, and finished, failed or given back."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from typing_extensions import Unpack

from .._backend import AsyncTicker
from .._wire import UNSET, CallOptions, Seconds, WriteOptions, duration, seconds
from ..errors import BlackboardError, ConditionNotMet, Conflict, NotFound, SessionNotFound
from ..values import Appended, Entry, Written, entry, written
from .logs import AsyncLog
from .transactions import AsyncTransaction

logger = logging.getLogger("agent_blackboard")


class AsyncTask:
    """A request that this worker holds. `fence` guards writes: `append(…, claim=task.seq, fence=task.fence)`."""

    def __init__(self, requests: AsyncRequests, held: Entry, agent: str | None) -> None:
        claim = held.claim or {}
        self._requests = requests
        self._agent = agent
        self.entry = held
        self.seq = held.seq
        self.item = held.item
        self.agent = str(claim.get("agent"))
        self.fence = int(claim["fence"])
        self.lost = False
        """Whether the claim lapsed or another worker has it: stop, and write nothing more."""
        self.ended = False
        """Whether the task was finished, failed or given back."""

    @property
    def guard(self) -> WriteOptions:
        """Options that refuse a write once the claim is not held any more: `append(item, **task.guard)`."""
        return WriteOptions(claim=self.seq, fence=self.fence)

    async def done(self, result: Any = None) -> Written:
        """Finish the request. Raises StaleFence where the claim was lost."""
        self.ended = True
        return await self._requests.done(self.seq, self.fence, result, agent=self._agent)

    def finishing(self, result: Any = UNSET) -> AsyncTransaction:
        """A transaction that also finishes the request: both are one commit, so a kill repeats neither."""

        def committed() -> None:
            self.ended = True

        options = WriteOptions() if self._agent is None else WriteOptions(agent=self._agent)
        made = AsyncTransaction(self._requests.session, options, committed)
        return made.done(self.seq, self.fence, result)

    async def failed(self, reason: Any = None) -> Written:
        """Fail the request: it is claimable again until its attempts are spent."""
        self.ended = True
        return await self._requests.failed(self.seq, self.fence, reason, agent=self._agent)

    async def release(self) -> None:
        """Give the request back. Does nothing where the claim was lost."""
        self.ended = True
        try:
            await self._requests.release(self.seq, agent=self._agent, claim=self.seq, fence=self.fence)
        except (Conflict, NotFound):
            self.lost = True

    async def renew(self, ttl: Seconds, timeout: float | None = None) -> bool:
        """Renew the claim; False where it was lost."""
        try:
            receipt = await self._requests.claim(
                self.seq, ttl, agent=self._agent, timeout=timeout, claim=self.seq, fence=self.fence
            )
        except (Conflict, NotFound):
            self.lost = True
        except BlackboardError as error:
            logger.warning("the claim on request %d was not renewed: %s", self.seq, error)
        else:
            if receipt.raw["claim"]["fence"] != self.fence:
                # It lapsed, so another worker may have had it in between.
                self.lost = True
                await self._requests.release(self.seq, agent=self._agent)
        return not self.lost


class AsyncRequests(AsyncLog):
    """The requests of a session."""

    async def submit(
        self,
        item: Mapping[str, Any] | str,
        *,
        after: Iterable[int] | None = None,
        attempts: int | None = None,
        **options: Unpack[WriteOptions],
    ) -> Appended:
        """Append a request that is claimable when the requests `after` are done, and fails after so many attempts."""
        body = dict(item) if isinstance(item, Mapping) else item
        return await self._append(body, {"after": after, "attempts": attempts}, options)

    @asynccontextmanager
    async def next(
        self,
        match: Mapping[str, Any] | None = None,
        *,
        ttl: Seconds = 60.0,
        wait: Seconds | None = None,
        agent: str | None = None,
    ) -> AsyncIterator[AsyncTask | None]:
        """The oldest claimable request whose members equal `match`, held while the block runs, or None.

        The claim is renewed at every third of `ttl`. The block's end finishes the request, an exception fails it with
        its text as the reason, and a cancellation gives it back, unless the block did one of these itself.
        """
        task = await self.claim_next(match, ttl=ttl, wait=wait, agent=agent)
        if task is None:
            yield None
            return
        third = seconds(ttl) / 3

        async def renew() -> bool:
            return not task.ended and await task.renew(ttl, third)

        ticker = AsyncTicker(third, renew)
        try:
            yield task
        except Exception as error:
            await ticker.stop()
            await self._end(task, error)
            raise
        except BaseException:
            await ticker.stop()
            await self._end(task, None)
            raise
        await ticker.stop()
        if not task.ended:
            await task.done()

    async def _end(self, task: AsyncTask, error: Exception | None) -> None:
        """Fail or give back a task whose block was left by an exception, which stays the one that is raised."""
        if task.ended or task.lost:
            return
        try:
            if error is None:
                await task.release()
            else:
                await task.failed(f"{type(error).__name__}: {error}")
        except BlackboardError as second:
            logger.warning("request %d was not released, its claim will expire: %s", task.seq, second)

    async def claim_next(
        self,
        match: Mapping[str, Any] | None = None,
        *,
        ttl: Seconds = 60.0,
        wait: Seconds | None = None,
        agent: str | None = None,
    ) -> AsyncTask | None:
        """Claim the oldest claimable request that matches, or the next one that comes within `wait`."""
        body: dict[str, Any] = {"ttl": duration(ttl)}
        if match is not None:
            body["match"] = dict(match)
        deadline = time.monotonic() + (0.0 if wait is None else seconds(wait))
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            try:
                answer = await self.session.request(
                    "POST", f"{self.path}/claim", json=body, wait=left or None, agent=agent
                )
            except SessionNotFound:
                if not await self._comes(left):
                    return None
            else:
                return AsyncTask(self, entry(answer.json(), answer.etag), agent) if answer.status == 200 else None

    async def _comes(self, wait: float) -> bool:
        """Whether somebody makes the session within `wait` seconds."""
        try:
            await self.session.until("", "exists", wait)
        except (ConditionNotMet, SessionNotFound):
            return False
        return True

    async def claim(self, seq: int, ttl: Seconds = 60.0, **options: Unpack[WriteOptions]) -> Written:
        """Claim or renew one request; `raw["claim"]` of the receipt has the fence. Raises AlreadyClaimed."""
        body = {"ttl": duration(ttl)}
        return written(await self.session.request("PUT", f"{self.path}/{int(seq)}/claim", json=body, **options))

    async def release(self, seq: int, **options: Unpack[WriteOptions]) -> Written:
        """Give a claim back."""
        return written(await self.session.request("DELETE", f"{self.path}/{int(seq)}/claim", **options))

    async def done(
        self, seq: int, fence: int | None = None, result: Any = None, **options: Unpack[CallOptions]
    ) -> Written:
        """Finish a request."""
        return await self._put(seq, "done", _without_none({"fence": fence, "result": result}), options)

    async def failed(
        self, seq: int, fence: int | None = None, reason: Any = None, **options: Unpack[CallOptions]
    ) -> Written:
        """Fail a request's present attempt."""
        return await self._put(seq, "failed", _without_none({"fence": fence, "reason": reason}), options)

    async def retry(self, seq: int, **options: Unpack[WriteOptions]) -> Written:
        """Make a failed request claimable again, with its attempts anew."""
        return written(await self.session.request("POST", f"{self.path}/{int(seq)}/retry", **options))

    async def wait(
        self, seq: int, until: Literal["claimed", "done", "failed"] = "done", wait: Seconds = 600.0
    ) -> Entry:
        """The request when it is claimed, done or failed. Raises ConditionNotMet, a TimeoutError."""
        answer = await self.session.until(f"{self.path}/{int(seq)}", until, wait)
        return entry(answer.json(), answer.etag)

    async def _put(self, seq: int, verb: str, body: dict[str, Any], options: CallOptions) -> Written:
        return written(await self.session.request("PUT", f"{self.path}/{int(seq)}/{verb}", json=body, **options))


def _without_none(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
