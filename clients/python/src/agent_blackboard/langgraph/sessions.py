"""Sessions of the adapter: reads and transactions on the state of a session with a layout and a short history.

The state's member `layout` says that a session was made by this adapter. Every transaction requires it, so a session
that another client deleted meanwhile is made again with its settings, never by accident without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._wire import segment, state_path
from ..errors import NotFound, SessionNotFound, TooLarge
from ..values import StateValue
from .caches import Cache
from .errors import IncompatibleLayout, TooManyConflicts, ValueTooLarge
from .exchange import Exchange, Request

LAYOUT = 1
"""The version of the layout."""
TRIES_MAX = 1000
"""The number of times that a write is tried against other writers."""
SEEN_MAX = 10_000
"""The number of sessions that are known to be missing."""

Operation = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """Settings and labels of the sessions that an adapter makes."""

    history: int | str
    labels: tuple[tuple[str, str], ...]
    entries_max: tuple[tuple[str, int], ...] = ()
    """The numbers of entries that logs keep."""

    def body(self) -> dict[str, Any]:
        """The body that makes a session."""
        bounded = {"max_items": dict(self.entries_max)} if self.entries_max else {}
        return {"settings": {"history": self.history, **bounded}, "labels": dict(self.labels)}


class Sessions:
    """The sessions of an adapter, written by an agent.

    Without `keyed`, its transactions are such that a repeat of one changes nothing.
    """

    def __init__(self, settings: Settings, *, keyed: bool = True, agent: str | None = None) -> None:
        self._settings = settings
        self._keyed = keyed
        self._agent = agent
        self._missing: Cache[str, bool] = Cache(SEEN_MAX)

    def read(self, session: str, path: str) -> Exchange[StateValue | None]:
        """A value of the state with its tag; None where there is none."""
        try:
            answer = yield Request("GET", f"{place(session)}/{state_path(path)}")
        except NotFound as error:
            if isinstance(error, SessionNotFound):
                self._missing.put(session, True)
            return None
        self._missing.drop(session)
        return StateValue(answer.json(), answer.etag, answer.revision)

    def commit(
        self,
        session: str,
        conditions: Sequence[dict[str, Any]],
        operations: Sequence[Operation],
        *,
        make: bool = True,
    ) -> Exchange[bool]:
        """One transaction, which makes the session where there is none. False where a condition does not hold.

        Without `make`, a missing session is such a condition. Raises ValueTooLarge where the server refuses the
        size.
        """
        for _ in range(TRIES_MAX):
            new = make and self._missing.get(session) is not None
            if new:
                yield from self.make(session)
            required = {"path": "layout", "absent": True} if new else {"path": "layout", "equals": LAYOUT}
            made = [{"put": "layout", "value": LAYOUT}] if new else []
            if (yield from self._transact(session, [required, *conditions], [*made, *operations])):
                self._missing.drop(session)
                return True
            layout = yield from self.read(session, "layout")
            if layout is None and (new or not make):
                return False
            if layout is None:
                self._missing.put(session, True)
            elif layout.value != LAYOUT:
                raise IncompatibleLayout(f"session {session!r} has layout {layout.value!r}, not {LAYOUT}")
            elif not new:
                return False
        raise TooManyConflicts(f"session {session!r} was deleted {TRIES_MAX} times while it was written")

    def delete(self, session: str, if_match: str | None = None) -> Exchange[None]:
        """Delete a session, if it exists."""
        self._missing.drop(session)
        try:
            yield Request("DELETE", place(session), if_match=if_match)
        except SessionNotFound:
            return

    def fork(self, session: str, to: str) -> Exchange[None]:
        """Copy a session as it is now. Raises SessionNotFound and SessionExists."""
        self._missing.drop(to)
        yield Request("POST", f"{place(session)}/fork", json={"to": to})

    def names(self, prefix: str) -> Exchange[list[str]]:
        """The names of all sessions that begin with a prefix, sorted."""
        found: list[str] = []
        after = None
        while True:
            answer = yield Request("GET", "/v1/sessions", params={"prefix": prefix, "limit": 1000, "after": after})
            page = answer.json()
            found += [session["session"] for session in page["sessions"]]
            after = page.get("next")
            if after is None or not page["sessions"]:
                return sorted(found)

    def make(self, session: str) -> Exchange[None]:
        """Make a session with its settings and labels, or set these."""
        yield Request("PUT", place(session), json=self._settings.body(), keyed=False)

    def _transact(
        self, session: str, conditions: Sequence[dict[str, Any]], operations: Sequence[Operation]
    ) -> Exchange[bool]:
        body = {"if": list(conditions), "then": list(operations)}
        try:
            address = f"{place(session)}/transactions"
            answer = yield Request("POST", address, json=body, keyed=self._keyed, agent=self._agent)
        except SessionNotFound:
            # The server makes no session by its first write.
            return False
        except TooLarge as error:
            raise ValueTooLarge(f"session {session!r}: {error}") from error
        return answer.json()["succeeded"] is True


def place(session: str) -> str:
    """The address of a session."""
    return f"/v1/sessions/{segment(session)}"
