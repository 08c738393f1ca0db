"""Answers: a board's dictionary as the server gave it, with a place for each item.

The four logs are lists of rows. An answer that was given is never changed; a copy takes the effects of writes that
the server does not have yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .place import Place

if TYPE_CHECKING:
    from .channel import Channel

LOGS = ("questions", "requests", "trajectories", "screenshots")


@dataclass
class Row:
    """An item and its place."""

    item: dict[str, Any]
    place: Place


@dataclass
class Answer:
    """A board at a revision; revision 0 is the board of a session that does not exist."""

    revision: int
    etag: str | None
    logs: dict[str, list[Row]]

    def copy(self) -> Answer:
        """A copy whose items may be changed."""
        logs = {log: [Row(copied(row.item), row.place) for row in rows] for log, rows in self.logs.items()}
        return Answer(self.revision, None, logs)

    def matching(self, place: Place) -> list[Row]:
        """The row at a place, if it is known which."""
        return [row for row in self.logs.get(place.log, []) if row.place.same(place)]

    def remove(self, place: Place) -> None:
        """Remove the row at a place, if it is known which."""
        if place.log in self.logs:
            self.logs[place.log] = [row for row in self.logs[place.log] if not row.place.same(place)]


def empty() -> Answer:
    """The board of a session that does not exist."""
    return Answer(0, None, {log: [] for log in LOGS})


def parsed(channel: Channel, revision: int, etag: str | None, dictionary: dict[str, list[dict[str, Any]]]) -> Answer:
    """The answer that a board's dictionary is."""
    logs: dict[str, list[Row]] = {}
    for log in LOGS:
        logs[log] = []
        for position, item in enumerate(dictionary[log]):
            place = Place(channel, log)
            place.revision, place.position = revision, position
            logs[log].append(Row(item, place))
    return Answer(revision, etag, logs)


def link(answer: Answer, before: Answer) -> None:
    """Tie rows to the rows of an earlier answer that are the same entries, as far as their items and order tell.

    A board's dictionary has no seqs. Without the tie, a change of an older entry could not be shown while the server
    is away.
    """
    for log in LOGS:
        older = iter(before.logs[log])
        earlier = next(older, None)
        for row in answer.logs[log]:
            if earlier is None:
                break
            if row.item == earlier.item:
                row.place.origin = earlier.place.root
                earlier = next(older, None)


def copied(value: Any) -> Any:
    """A copy of a JSON value: its objects and arrays are new."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [copied(inner) for inner in value]
    return value
