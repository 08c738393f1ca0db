"""Exceptions of the client: one class for each code of the server's problems, and those of the client's own.

A problem of the server (RFC 9457) is a `Problem`; its class is named after the code, under one class for each kind of
status. Codes of a later server that this client does not know are plain `Problem`s. `hatch_build.py` makes the classes
of the codes, `_problems`, from the server's table of errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._problem import *  # noqa: F403
from ._problem import BlackboardError, ConditionRefused, Problem
from ._problems import *  # noqa: F403

if TYPE_CHECKING:
    from .values import Entry


class UnsupportedValue(BlackboardError, ValueError):
    """A value that cannot be sent: no JSON, an impossible name or duration. Nothing was sent."""


class ConnectionFailed(BlackboardError, ConnectionError):
    """No answer came from the server within the time limit.

    A write may have been committed all the same: repeat it with `idempotency_key`, and it is done once.
    """

    def __init__(self, message: str, idempotency_key: str | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key


class WaitTimedOut(ConnectionFailed, TimeoutError):
    """A wait's time is over, and its last request failed. `__cause__` is that failure."""


class ConditionImpossible(ConditionRefused):
    """A condition that a wait was for can hold no more, so the wait ended early. `detail` and `current` say why.

    It has the code of ConditionNotMet, and is no TimeoutError.
    """

    @classmethod
    def of(cls, unmet: Problem) -> ConditionImpossible:
        """Returns the same problem as a ConditionImpossible."""
        return cls(unmet.status, unmet.body, unmet.headers)


class _RequestEnded(ConditionImpossible):
    """A request that ended otherwise than a wait was for."""

    _end = ""
    _told = ""

    def __init__(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        from .values import Members, entry

        super().__init__(status, body, headers)
        self.entry: Entry = entry(Members(self.current), self.etag)
        """The request as it ended."""
        self.reason: Any = (self.entry.raw[self._end]).get("reason")
        """The reason, if one was given."""
        told = "no reason given" if self.reason is None else self.reason
        self.args = (f"request {self.entry.seq} {self._told}: {told}",)


class RequestFailed(_RequestEnded):
    """A request that a wait was for has failed: its attempts are spent, or its deadline has passed."""

    _end = "failed"
    _told = "has failed"


class RequestCancelled(_RequestEnded):
    """A request that a wait was for was cancelled."""

    _end = "cancelled"
    _told = "was cancelled"


def request_ended(unmet: Problem) -> Problem:
    """The exception for a wait that was not met, which names the end of the request if it has one."""
    for kind in (RequestFailed, RequestCancelled):
        if isinstance(unmet.current, dict) and isinstance(unmet.current.get(kind._end), dict):
            return kind(unmet.status, unmet.body, unmet.headers)
    return unmet


class UnexpectedAnswer(BlackboardError):
    """An answer that no Blackboard server gives: HTML, a redirect, broken JSON."""

    def __init__(self, message: str, status: int, content: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.content = content


class IncompatibleServer(BlackboardError):
    """A server that is no Blackboard, or one of a version that this client does not speak."""


class HistoryGap(BlackboardError):
    """Events after the cursor are not kept any more: read the board anew and go on from `revision`."""

    def __init__(self, message: str, revision: int, oldest_revision: int | None) -> None:
        super().__init__(message)
        self.revision = revision
        self.oldest_revision = oldest_revision


class ConditionFailed(BlackboardError):
    """A condition of a transaction did not hold; nothing was written. `revision` is the board's at that time."""

    def __init__(self, message: str, revision: int) -> None:
        super().__init__(message)
        self.revision = revision


class LeaseHeld(BlackboardError, TimeoutError):
    """The lease has another holder, and was not released in time."""

    def __init__(self, message: str, holder: str | None) -> None:
        super().__init__(message)
        self.holder = holder


class LeaseLost(BlackboardError):
    """The lease expired or was deleted while it was held."""
