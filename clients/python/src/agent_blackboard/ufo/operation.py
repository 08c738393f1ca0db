"""Operations: single writes, from the call that makes them to the server's answer.

An operation without a method is a step of a transaction: consecutive steps go to the server together. The others are
requests of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .jsontext import exact

if TYPE_CHECKING:
    from .answer import Answer
    from .place import Place

STEP_BYTES_MAX = 6 << 20
"""A longer append is a request of its own, which may have more bytes than a transaction."""


@dataclass(eq=False)
class Operation:
    """A write, and its outcome once the server has answered or refused it."""

    method: str = ""
    path: str = ""
    """Below the session, percent-encoded, with its query; empty where `place` names an entry."""
    body: str = ""
    media_type: str = "application/json"
    condition: str = ""
    """The header that makes the write conditional, with `*` as its value."""
    place: Place | None = None
    """The entry that is written."""
    agent: str | None = None
    effect: Callable[[Answer], None] | None = None
    """The change of a board's answer that the write makes, to be shown while the server is away."""
    quiet: bool = False
    """Whether a refusal is only logged: nobody reads a mirror to go on."""

    id: int = 0
    places: list[Place] = field(default_factory=list)
    """The places of the entries that the write makes."""
    finished: bool = False
    error: Exception | None = None
    revision: int | None = None
    """The revision of the commit; None while there is none, and where a condition did not hold."""

    def succeed(self, revision: int | None, seqs: Sequence[int] | None) -> None:
        """Take the server's answer: its revision and the seqs of the new entries, where it tells them."""
        self.finished, self.revision = True, revision
        for place in self.places:
            if seqs is None:
                place.revision, place.position = revision, place.index
            elif place.index < len(seqs):
                place.seq = seqs[place.index]
        self._release()

    def fail(self, error: Exception | None) -> None:
        """Take the server's refusal, or None where there was nothing left to write to."""
        self.finished, self.error, self.effect = True, error, None
        self._release()

    def _release(self) -> None:
        """Let go of the body, which may be a screenshot: a place lives as long as its board."""
        for place in self.places:
            place.operation = None


def append(log: str, path: str, text: str) -> Operation:
    """The operation that appends one item, given as its JSON text."""
    if len(text.encode()) > STEP_BYTES_MAX:
        return Operation(method="POST", path=path, body=text)
    return Operation(body=f'{{"append":{exact(log)},"item":{text}}}')
