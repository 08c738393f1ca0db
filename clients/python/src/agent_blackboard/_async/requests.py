"""Requests as tasks: claimed by one worker at a time, renewed while it works, and finished, failed or given back."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from typing_extensions import Unpack, deprecated

from .._backend import AsyncResult
from .._wire import CallOptions, Seconds, Time, WorkOptions, WriteOptions, duration, moment, seconds, without_none
from ..errors import ConditionImpossible, ConditionNotMet, SessionNotFound, request_ended
from ..values import Appended, Entry, Written, entry, written
from .logs import AsyncLog
from .tasks import AsyncTask
from .worker import AsyncWorker


class AsyncRequests(AsyncLog):
    """The requests of a session."""

    async def submit(
        self,
        item: Mapping[str, Any] | str,
        *,
        after: Iterable[int] | None = None,
        attempts: int | None = None,
        priority: int | None = None,
        not_before: Time | None = None,
        deadline: Time | None = None,
        review: bool = False,
        **options: Unpack[WriteOptions],
    ) -> Appended:
        """Append a request that is claimable when the requests `after` are done, and fails after so many attempts.

        Of those that can be claimed, the one with the highest `priority` (-100 to 100) is next, then the oldest. It
        cannot be claimed before `not_before`, and fails at its `deadline`. With `review` its result is done once
        another agent accepts it.
        """
        body = dict(item) if isinstance(item, Mapping) else item
        terms = {
            "after": after,
            "attempts": attempts,
            "priority": priority,
            "not_before": None if not_before is None else moment(not_before),
            "deadline": None if deadline is None else moment(deadline),
            "review": review or None,
        }
        return await self._append(body, terms, options)

    def worker(
        self,
        function: Callable[[AsyncTask], AsyncResult],
        match: Mapping[str, Any] | None = None,
        **options: Unpack[WorkOptions],
    ) -> AsyncWorker:
        """A worker that calls the function with each request whose members equal `match`, one at a time.

        What the function returns is the request's result. An exception is logged and fails the attempt, with its text
        as the reason; the request is tried again after 1 s, doubled by each past attempt, up to 5 min. Once the request
        is cancelled or its claim is lost, `task.cancelled` is true, and a coroutine is cancelled.
        """
        return AsyncWorker(self, function, match, **options)

    async def work(
        self,
        function: Callable[[AsyncTask], AsyncResult],
        match: Mapping[str, Any] | None = None,
        **options: Unpack[WorkOptions],
    ) -> None:
        """Run a `worker` until a signal, or the end of a `wait` in which no request came."""
        await self.worker(function, match, **options).run()

    @asynccontextmanager
    async def next(
        self,
        match: Mapping[str, Any] | None = None,
        *,
        ttl: Seconds = 60.0,
        wait: Seconds | None = None,
        agent: str | None = None,
    ) -> AsyncIterator[AsyncTask | None]:
        """The next claimable request whose members equal `match`, held while the block runs, or None.

        The claim is renewed at every third of `ttl`. The block's end finishes the request, and a cancellation gives it
        back. An exception fails the attempt with its text as the reason; the request pauses as after a worker's
        failure. None of these happens if the block ended the request itself.
        """
        task = await self.claim_next(match, ttl=ttl, wait=wait, agent=agent)
        if task is None:
            yield None
            return
        try:
            async with task.kept(ttl):
                yield task
        except Exception as error:
            await task.give_up(error)
            raise
        except BaseException:
            await task.give_up(None)
            raise
        if not task.ended:
            await task.finish()

    async def claim_next(
        self,
        match: Mapping[str, Any] | None = None,
        *,
        ttl: Seconds = 60.0,
        wait: Seconds | None = None,
        agent: str | None = None,
    ) -> AsyncTask | None:
        """Claim the next claimable request that matches, or one that comes within `wait`."""
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

    async def finish(
        self, seq: int, fence: int | None = None, result: Any = None, **options: Unpack[CallOptions]
    ) -> Written:
        """Finish a request."""
        return await self._put(seq, "done", {"fence": fence, "result": result}, options)

    async def fail(
        self,
        seq: int,
        fence: int | None = None,
        reason: Any = None,
        *,
        retry_in: Seconds | None = None,
        **options: Unpack[CallOptions],
    ) -> Written:
        """Fail a request's present attempt: it is claimable again, after `retry_in`, until its attempts are spent."""
        pause = None if retry_in is None else duration(retry_in)
        return await self._put(seq, "failed", {"fence": fence, "reason": reason, "retry_in": pause}, options)

    @deprecated("use finish")
    async def done(
        self, seq: int, fence: int | None = None, result: Any = None, **options: Unpack[CallOptions]
    ) -> Written:
        """The former name of `finish`."""
        return await self.finish(seq, fence, result, **options)

    @deprecated("use fail")
    async def failed(
        self, seq: int, fence: int | None = None, reason: Any = None, **options: Unpack[CallOptions]
    ) -> Written:
        """The former name of `fail`."""
        return await self.fail(seq, fence, reason, **options)

    async def cancel(self, seq: int, reason: Any = None, **options: Unpack[CallOptions]) -> Written:
        """Cancel a request. One that is claimed ends with its claim, or at once by a second cancellation."""
        return await self._put(seq, "cancelled", {"reason": reason}, options)

    async def verdict(
        self, seq: int, accept: bool, *, fence: int, reason: Any = None, **options: Unpack[CallOptions]
    ) -> Written:
        """Accept or refuse the result of a request in review, whose `in_review` has the fence.

        Raises Forbidden for the agent that did the request. One that was refused is a failed attempt.
        """
        return await self._put(seq, "verdict", {"accept": accept, "fence": fence, "reason": reason}, options)

    async def retry(self, seq: int, *, deadline: Time | None = None, **options: Unpack[WriteOptions]) -> Written:
        """Make a failed or cancelled request claimable again, with its attempts anew and without its old deadline."""
        body = {} if deadline is None else {"deadline": moment(deadline)}
        return written(await self.session.request("POST", f"{self.path}/{int(seq)}/retry", json=body, **options))

    async def wait(
        self,
        seq: int,
        until: Literal["claimed", "done", "failed", "cancelled", "ended"] = "done",
        wait: Seconds = 600.0,
    ) -> Entry:
        """The request when it is claimed, done, failed or cancelled; `ended` is any of the last three.

        Raises ConditionNotMet, a TimeoutError, if none is so in time. Raises RequestFailed or RequestCancelled, with
        the reason, as soon as such an end makes the condition impossible.
        """
        try:
            answer = await self.session.until(f"{self.path}/{int(seq)}", until, wait)
        except (ConditionImpossible, ConditionNotMet) as unmet:
            raise request_ended(unmet) from unmet.__cause__
        return entry(answer.json(), answer.etag)

    async def _put(self, seq: int, verb: str, body: dict[str, Any], options: CallOptions) -> Written:
        path = f"{self.path}/{int(seq)}/{verb}"
        return written(await self.session.request("PUT", path, json=without_none(body), **options))
