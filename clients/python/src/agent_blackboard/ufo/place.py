"""Places of entries: how a client names an entry of a log before and after it knows its seq.

An entry is named by its seq, or by the operation that appends it, or by its position at a revision. The last two
become a seq when the server has answered.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .jsontext import approximate, exact
from .operation import Operation

if TYPE_CHECKING:
    from .answer import Answer
    from .channel import Channel

MEMORY = "agents/"


def log_path(log: str) -> str:
    """The address of a log below its session: an agent's name is percent-encoded in it."""
    if log.startswith(MEMORY):
        name = log.removeprefix(MEMORY).removesuffix("/memory")
        return f"{MEMORY}{quote(name, safe='')}/memory"
    return log


class Place:
    """The place of one entry in a log."""

    __slots__ = ("channel", "index", "log", "operation", "origin", "position", "revision", "seq")

    def __init__(self, channel: Channel, log: str, operation: Operation | None = None, index: int = 0) -> None:
        self.channel = channel
        self.log = log
        self.operation = operation
        self.index = index
        self.seq: int | None = None
        self.revision: int | None = None
        self.position: int | None = None
        self.origin: Place | None = None
        """The first place that this process knew of the same entry. It tells what to show, never where to write."""

    @property
    def root(self) -> Place:
        """The first place known of the entry."""
        return self.origin or self

    def same(self, other: Place) -> bool:
        """Whether two places are known to be one."""
        if self.root is other.root:
            return True
        if self.log != other.log:
            return False
        if self.seq is not None and other.seq is not None:
            return self.seq == other.seq
        return self.revision is not None and (self.revision, self.position) == (other.revision, other.position)

    def stored(self) -> str:
        """The place as an outbox keeps it: JSON."""
        named: dict[str, Any] = {"log": self.log}
        if self.seq is not None:
            named["seq"] = self.seq
        elif self.revision is not None:
            named |= {"revision": self.revision, "position": self.position}
        else:
            named["index"] = self.index
        return json.dumps(named)

    def change(self, key: str, value: Any) -> str:
        """The JSON Patch that sets a member. Raises UnsupportedValue on a board where the value is no JSON."""
        text = approximate(value)[0] if self.log.startswith(MEMORY) else exact(value)
        pointer = exact("/" + str(key).replace("~", "~0").replace("/", "~1"))
        return f'[{{"op":"add","path":{pointer},"value":{text}}}]'

    def write(self, change: str) -> None:
        """Send a JSON Patch to the entry. An entry that is gone stays so."""

        def effect(answer: Answer) -> None:
            for row in answer.matching(self):
                for part in json.loads(change):
                    row.item[part["path"][1:].replace("~1", "/").replace("~0", "~")] = part["value"]

        self.channel.write(
            Operation(
                method="PATCH",
                body=change,
                media_type="application/json-patch+json",
                place=self,
                effect=effect,
                quiet=self.log.startswith(MEMORY),
            )
        )

    def removal(self) -> Operation:
        """The operation that deletes the entry, if it still exists."""
        return Operation(method="DELETE", place=self, effect=lambda answer: answer.remove(self))
