"""Waits of any length, in pieces that pass through proxies.

Every call with a `wait` comes here. A piece that a proxy cuts, or whose connection breaks, is asked again.

All pieces of a claim have one idempotency key, so the claim that a lost piece won is found. The server takes a key
again only for the same request, `wait` included. So a piece without a wait follows a lost one. If the server rejects it
for its key, a former piece was done, and its repetition gets the answer.
"""

from __future__ import annotations

import time
from dataclasses import replace

from .._backend import async_sleep
from .._wire import WAIT_PIECE, Backoff, duration
from ..errors import (
    BlackboardError,
    ConditionImpossible,
    ConditionNotMet,
    IdempotencyKeyReused,
    Problem,
    RevisionNotReached,
    WaitTimedOut,
)
from ..values import Answer
from .transport import READS, AsyncCall, AsyncTransport, passing

EARLY = 0.9
"""The part of a piece's time before whose end an answer is early."""
NO_CONTENT = 204
NOT_MODIFIED = 304


class AsyncWait:
    """One wait. Its call is asked again until something has come or the time is over."""

    def __init__(self, transport: AsyncTransport, call: AsyncCall, seconds: float) -> None:
        begun = time.monotonic()
        self._transport = transport
        self._call = call
        self._deadline = begun + seconds
        self._limit = begun + max(seconds, call.timeout)
        """The end of the tries while nothing answers."""
        self._backoff = Backoff()
        self._is_write = call.method not in READS
        self._is_page = call.params.get("after") is not None and call.params.get("until") is None
        self._unknown: list[float] = []
        """The waits of a write's lost pieces, one of which may have been done."""
        self._next: float | None = None
        """The wait of the next piece, unless the time that is left decides."""
        self._was_unmet_early = False

    async def answer(self) -> Answer:
        """What has come, or the last answer that says that nothing has.

        At the deadline it raises ConditionNotMet or RevisionNotReached, or WaitTimedOut where the last request failed.
        Before, it raises ConditionImpossible, and any failure that a repetition cannot help.
        """
        self._transport.key(self._call)
        while True:
            piece, self._next = self._piece(), None
            begun = time.monotonic()
            try:
                answer = await self._transport.attempt(self._asking(piece))
            except (ConditionNotMet, RevisionNotReached) as unmet:
                if self._left() <= 0:
                    raise
                took = time.monotonic() - begun
                self._check_condition(unmet, took < EARLY * piece)
            except IdempotencyKeyReused:
                if not self._unknown:
                    raise
                self._next = self._unknown.pop()
                continue
            except BlackboardError as failure:
                await self._failed(failure, piece)
                continue
            else:
                took = time.monotonic() - begun
                if self._left() <= 0 or not self._is_open(answer, took >= piece):
                    return answer
            if took < EARLY * piece:
                await async_sleep(min(self._backoff.pause(), self._left()))
            elif piece > 0:
                self._backoff = Backoff()

    def _left(self) -> float:
        return 0.0 if self._transport.interrupted else max(self._deadline - time.monotonic(), 0.0)

    def _piece(self) -> float:
        return min(self._left(), WAIT_PIECE) if self._next is None else self._next

    def _asking(self, piece: float) -> AsyncCall:
        return replace(self._call, params={**self._call.params, "wait": duration(piece)}, wait=piece)

    def _is_open(self, answer: Answer, took_its_time: bool) -> bool:
        """Whether an answer says that nothing has come."""
        if answer.status == NO_CONTENT:
            # To a read it says that what should be absent is.
            return self._is_write
        # A page that came at the end of its time has nothing new, or is had at once when it is asked for again.
        return answer.status == NOT_MODIFIED or (self._is_page and took_its_time)

    def _check_condition(self, unmet: Problem, is_early: bool) -> None:
        """Raise a condition that can be met no more."""
        # A server that stops ends its waits too, but does not do so again.
        if is_early and self._was_unmet_early and isinstance(unmet, ConditionNotMet):
            raise ConditionImpossible.of(unmet) from None
        self._was_unmet_early = is_early

    async def _failed(self, failure: BlackboardError, piece: float) -> None:
        """Pause before the next piece. Raises where there is none."""
        if not (self._transport.retry and passing(failure)):
            await self._transport.check_server(failure)
            raise failure
        self._was_unmet_early = False
        if self._is_write:
            self._next = 0.0
            if piece not in self._unknown:
                self._unknown.append(piece)
        pause, left = self._backoff.pause(getattr(failure, "retry_after", None)), self._left()
        if left > 0:
            pause = min(pause, left)
        elif piece == 0 and (self._transport.interrupted or time.monotonic() + pause >= self._limit):
            raise WaitTimedOut(f"the wait is over, and its last request failed: {failure}", self._call.key) from failure
        await async_sleep(pause)
