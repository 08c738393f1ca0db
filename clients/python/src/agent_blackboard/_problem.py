"""Problems of the server, by kind of status; `_problems` has a class for each code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from . import _headers


class BlackboardError(Exception):
    """Base of all exceptions of this package."""


class Problem(BlackboardError):
    """An error that the server explains. `code` is stable; `detail` is for people."""

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
        """`unknown` if the write may have been committed: repeat it with its idempotency key."""
        self.current: Any = body.get("current")
        """The current value, entry or agent, if the server reports it."""
        self.oldest_revision: int | None = body.get("oldest_revision")
        self.etag = _headers.tag(headers)
        """The current tag of the target, if any."""
        self.revision = _headers.revision(headers)
        pause = _headers.retry_after(headers)
        self.retry_after = None if pause is None else float(pause)
        """The pause that the server asks for, in seconds."""
        parts = [f"{part.get('pointer') or part.get('line')}: {part.get('detail')}" for part in self.errors]
        listed = f" ({'; '.join(parts)})" if parts else ""
        super().__init__(f"{self.code or status}: {self.detail or self.title}{listed}")
        self.headers = dict(headers)
        """The headers of the answer."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.body, self.headers)


def problem(status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Problem:
    """The exception for a problem document."""
    return Problem._classes.get(str(body.get("code", "")), Problem)(status, body, headers)


class BadRequest(Problem):
    """The request is malformed."""


class AccessDenied(Problem):
    """The token is missing, invalid, or does not allow the call."""


class NotFound(Problem):
    """The target does not exist."""


class UnsupportedRequest(Problem):
    """The address does not support this method, media type, range or host."""


class Conflict(Problem):
    """The write conflicts with the current board."""


class Gone(Problem):
    """The history is no longer retained."""


class ConditionRefused(Problem):
    """A condition of the request does not hold."""


class TooLarge(Problem):
    """Something exceeds a size limit."""


class Unprocessable(Problem):
    """The server does not accept a value."""


class Unavailable(Problem):
    """The server cannot do it now."""
