"""Connection of the drop-in to one server: every request is one attempt and is counted; failures are sorted."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

from .. import Answer, Client
from ..errors import ConnectionFailed, IncompatibleServer, Problem, Unauthorized, UnexpectedAnswer
from .settings import Settings

SEND_TIMEOUT = 30.0
"""The limit of one request that no caller waits for, in seconds."""

_counting = threading.Lock()
_trips = 0


def trips() -> int:
    """The number of requests that this process has made through the drop-in, failed ones included."""
    return _trips


def _count() -> None:
    global _trips
    with _counting:
        _trips += 1


def restart_counting() -> None:
    """Count on in a forked process, whose parent may have been counting at that moment."""
    global _counting
    _counting = threading.Lock()


def unreached(error: Exception) -> bool:
    """Whether the same request may succeed later: nothing answered, or the server asked to come again."""
    if isinstance(error, Problem):
        return error.retryable or error.status == 507
    if isinstance(error, IncompatibleServer) and isinstance(error.__cause__, UnexpectedAnswer):
        error = error.__cause__
    # A proxy before a server that is away answers 502 with a page of its own.
    return isinstance(error, ConnectionFailed) or (isinstance(error, UnexpectedAnswer) and error.status >= 500)


def misdirected(error: Exception | None) -> bool:
    """Whether no request at all can succeed with this address and token."""
    return isinstance(error, (Unauthorized, UnexpectedAnswer, IncompatibleServer)) and not unreached(error)


class Connection:
    """A client of one server."""

    def __init__(self, settings: Settings) -> None:
        # A TLS context takes 50 ms to make, for each of UFO's boards.
        tls = not settings.url.startswith("http:")
        self._client = Client(settings.url, settings.token, retry=False, timeout=SEND_TIMEOUT, verify=tls)

    def ask(
        self,
        method: str,
        session: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = SEND_TIMEOUT,
        wait: float | None = None,
    ) -> Answer:
        """Make one request about a session. Raises Problem, ConnectionFailed or UnexpectedAnswer."""
        _count()
        place = f"/v1/sessions/{quote(session, safe='')}/{path}"
        return self._client.request(
            method, place, params=params, content=content, headers=headers, timeout=timeout, wait=wait
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
