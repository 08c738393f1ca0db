"""Exceptions of the client: one class for each code of the server's problems, and those of the client's own.

A problem of the server (RFC 9457) is a `Problem`; its class is named after the code, under one class for each kind of
status. Codes of a later server that this client does not know are plain `Problem`s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class BlackboardError(Exception):
    """Base of all exceptions of this package."""


class UnsupportedValue(BlackboardError, ValueError):
    """A value that cannot be sent: no JSON, an impossible name or duration. Nothing was sent."""


class ConnectionFailed(BlackboardError, ConnectionError):
    """No answer came from the server within the time limit.

    A write may have been committed all the same: repeat it with `idempotency_key`, and it is done once.
    """

    def __init__(self, message: str, idempotency_key: str | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key


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


class Problem(BlackboardError):
    """A refusal or failure that the server explains. `code` is stable; `detail` is for people."""

    code_name: ClassVar[str] = ""
    _classes: ClassVar[dict[str, type[Problem]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.code_name:
            Problem._classes[cls.code_name] = cls

    def __init__(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        self.status = status
        self.body = dict(body)
        self.code = str(body.get("code", ""))
        self.title = str(body.get("title", ""))
        self.detail = str(body.get("detail", ""))
        self.instance = str(body.get("instance", ""))
        """The request's id, as in the server's log."""
        errors = body.get("errors")
        self.errors: list[dict[str, Any]] = (
            [part for part in errors if isinstance(part, dict)] if isinstance(errors, list) else []
        )
        """The faulty parts of the body, with JSON Pointers or lines."""
        self.retryable = body.get("retryable") is True
        """Whether the same call may succeed later."""
        self.outcome: str | None = body.get("outcome")
        """`unknown` where the write may have been committed: repeat it with its idempotency key."""
        self.current: Any = body.get("current")
        """The present value, entry or agent, where the server tells it."""
        self.oldest_revision: int | None = body.get("oldest_revision")
        self.etag = headers.get("etag")
        """The present tag of the target, if any."""
        revision = headers.get("blackboard-revision", "")
        self.revision = int(revision) if revision.isdecimal() and len(revision) < 20 else None
        retry_after = headers.get("retry-after", "")
        self.retry_after = float(retry_after) if retry_after.isdecimal() and len(retry_after) < 20 else None
        """The pause that the server asks for, in seconds."""
        parts = [f"{part.get('pointer') or part.get('line')}: {part.get('detail')}" for part in self.errors]
        listed = f" ({'; '.join(parts)})" if parts else ""
        super().__init__(f"{self.code or status}: {self.detail or self.title}{listed}")
        self._headers = dict(headers)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.body, self._headers)


def problem(status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Problem:
    """The exception for a problem document."""
    return Problem._classes.get(str(body.get("code", "")), Problem)(status, body, headers)


class BadRequest(Problem):
    """Refusal of a request that the server cannot read."""


class InvalidJson(BadRequest):
    """A body that is no JSON, with line and column."""

    code_name = "invalid-json"


class InvalidParameter(BadRequest):
    """A parameter's value that the server does not take."""

    code_name = "invalid-parameter"


class UnknownParameter(BadRequest):
    """A parameter that the server does not know."""

    code_name = "unknown-parameter"


class InvalidName(BadRequest):
    """A name of a session, agent or checkpoint against the rules of names."""

    code_name = "invalid-name"


class InvalidEncoding(BadRequest):
    """A part of the request that is not encoded as its kind requires."""

    code_name = "invalid-encoding"


class AgentRequired(BadRequest):
    """A call that needs an agent; name one by `agent=`."""

    code_name = "agent-required"


class AccessDenied(Problem):
    """Refusal of a call that the token does not allow."""


class Unauthorized(AccessDenied):
    """A token that is missing, wrong, expired or revoked."""

    code_name = "unauthorized"


class Forbidden(AccessDenied):
    """A token without the scope that the call needs."""

    code_name = "forbidden"


class NotFound(Problem):
    """Refusal of something that does not exist."""


class RouteNotFound(NotFound):
    """An address that the server does not have."""

    code_name = "route-not-found"


class SessionNotFound(NotFound):
    """A session that does not exist, or that the token may not see."""

    code_name = "session-not-found"


class EntryNotFound(NotFound):
    """An entry that does not exist or was deleted."""

    code_name = "entry-not-found"


class PathNotFound(NotFound, LookupError):
    """A state path without a value."""

    code_name = "path-not-found"


class AgentNotFound(NotFound):
    """An agent that is not registered."""

    code_name = "agent-not-found"


class CheckpointNotFound(NotFound):
    """A checkpoint that does not exist."""

    code_name = "checkpoint-not-found"


class RevisionNotFound(NotFound):
    """A revision above the session's head."""

    code_name = "revision-not-found"


class BlobNotFound(NotFound):
    """A blob that the session does not have."""

    code_name = "blob-not-found"


class NoImage(NotFound):
    """A screenshot without a stored image."""

    code_name = "no-image"


class UnsupportedRequest(Problem):
    """Refusal of a request that the address does not take."""


class MethodNotAllowed(UnsupportedRequest):
    """A method that the address does not have."""

    code_name = "method-not-allowed"


class UnsupportedMediaType(UnsupportedRequest):
    """A body of a type that the address does not take."""

    code_name = "unsupported-media-type"


class RangeNotSatisfiable(UnsupportedRequest):
    """A range outside the blob."""

    code_name = "range-not-satisfiable"


class UnknownHost(UnsupportedRequest):
    """A host name that the server is not allowed to answer to."""

    code_name = "unknown-host"


class Conflict(Problem):
    """Refusal of a write that the present board does not allow."""


class AlreadyAnswered(Conflict):
    """A question that has its answer."""

    code_name = "already-answered"


class AlreadyClaimed(Conflict):
    """A request that another agent holds."""

    code_name = "already-claimed"


class StaleFence(Conflict):
    """A claim that was won again, lapsed or was given back."""

    code_name = "stale-fence"


class NotAnObject(Conflict):
    """A path through a value that is no object."""

    code_name = "not-an-object"


class NotANumber(Conflict):
    """An addition to a value that is no number."""

    code_name = "not-a-number"


class IllegalTransition(Conflict):
    """A status that the agent cannot move to from its present one."""

    code_name = "illegal-transition"


class SessionExists(Conflict):
    """A session that exists already."""

    code_name = "session-exists"


class HasDependants(Conflict):
    """A request that others wait for."""

    code_name = "has-dependants"


class BudgetExhausted(Conflict):
    """A session whose costs have passed `cost_max`."""

    code_name = "budget-exhausted"


class Gone(Problem):
    """Refusal of history that is not kept any more."""


class HistoryCompacted(Gone):
    """A revision before the oldest that is kept."""

    code_name = "history-compacted"


class ConditionRefused(Problem):
    """Refusal of a condition that does not hold."""


class PreconditionFailed(ConditionRefused):
    """`if_match` or `if_none_match` does not hold; `current` and `etag` show the present value."""

    code_name = "precondition-failed"


class ConditionNotMet(ConditionRefused, TimeoutError):
    """The awaited condition was not met in time; `current` shows the present value."""

    code_name = "condition-not-met"


class TooLarge(Problem):
    """Refusal of something beyond a size limit."""


class BodyTooLarge(TooLarge):
    """A body beyond the limit of its address."""

    code_name = "body-too-large"


class ItemTooLarge(TooLarge):
    """An item beyond the limit of items."""

    code_name = "item-too-large"


class CommitTooLarge(TooLarge):
    """A commit beyond the limit of commits."""

    code_name = "commit-too-large"


class Unprocessable(Problem):
    """Refusal of a value that the server does not take."""


class UnsupportedItem(Unprocessable):
    """A value that is no item."""

    code_name = "unsupported-item"


class ValueRefused(Unprocessable):
    """A number, string or nesting that the server does not keep."""

    code_name = "unsupported-value"


class TooDeep(Unprocessable):
    """A value with more than 128 levels."""

    code_name = "too-deep"


class NotAnImage(Unprocessable):
    """Bytes that are no image of their declared type."""

    code_name = "not-an-image"


class NoBlob(Unprocessable):
    """A reference to a blob that the session does not have."""

    code_name = "no-blob"


class DigestMismatch(Unprocessable):
    """Bytes whose hash is not the one of the address."""

    code_name = "digest-mismatch"


class UnknownField(Unprocessable):
    """A field that the server does not know."""

    code_name = "unknown-field"


class InvalidField(Unprocessable):
    """A field with a value that the server does not take."""

    code_name = "invalid-field"


class ArrayRequired(Unprocessable):
    """A body that must be an array."""

    code_name = "array-required"


class IdempotencyKeyReused(Unprocessable):
    """An idempotency key that was used for another write."""

    code_name = "idempotency-key-reused"


class BudgetTooSmall(Unprocessable):
    """A prompt that does not fit `max_tokens`."""

    code_name = "budget-too-small"


class Unavailable(Problem):
    """Refusal of a server that cannot do it now."""


class RequestTimeout(Unavailable):
    """A request that was not sent within the server's time."""

    code_name = "request-timeout"


class RateLimited(Unavailable):
    """Too many requests."""

    code_name = "rate-limited"


class Internal(Unavailable):
    """A fault of the server."""

    code_name = "internal"


class Overloaded(Unavailable):
    """Too much under way."""

    code_name = "overloaded"


class StorePoisoned(Unavailable):
    """A store that takes no writes until the server starts again."""

    code_name = "store-poisoned"


class StoreUnavailable(Unavailable):
    """A store that does not answer."""

    code_name = "store-unavailable"


class RevisionNotReached(Unavailable):
    """A revision that did not come in time."""

    code_name = "revision-not-reached"


class SessionFull(Unavailable):
    """A session beyond its size."""

    code_name = "session-full"


class StoreFull(Unavailable):
    """A disk or store without space."""

    code_name = "store-full"
