"""Memory of an agent: UFO's `Memory`, kept in this process and mirrored to the server.

Reads cost nothing and answer with the objects that were put in, as the original does. Each write also goes to the
memory log of an agent on the server, for people and other programs to read. What JSON cannot hold is mirrored as its
`repr`. Changes made to the list behind `content` itself are not mirrored.
"""

from __future__ import annotations

import json
import logging
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import process
from .channel import Channel
from .item import MemoryItem, attach, detach
from .jsontext import approximate
from .operation import Operation, append
from .place import Place, log_path

__all__ = ["Memory", "MemoryItem"]

logger = logging.getLogger("agent_blackboard.ufo")


@dataclass(repr=False, eq=False)
class Memory:
    """A memory. `agent` names its log on the server; without a name it has one of its own."""

    _content: list[Any] = field(default_factory=list)
    agent: str | None = field(default=None, kw_only=True)

    def load(self, content: list[MemoryItem]) -> None:
        """Take a list of items as the content."""
        self._content = content
        self._mirror_all()

    def filter_memory_from_steps(self, steps: list[int]) -> list[dict[str, Any]]:
        """The items whose `step` is in `steps`, by Python's equality. Raises AttributeError for one without a step."""
        return [item.to_dict() for item in self._content if item.step in steps]

    def filter_memory_from_keys(self, keys: list[str]) -> list[dict[str, Any]]:
        """All items with these keys only."""
        return [item.filter(keys) for item in self._content]

    def add_memory_item(self, memory_item: MemoryItem) -> None:
        """Append an item."""
        self._content.append(memory_item)
        self._mirror_one(memory_item)

    def clear(self) -> None:
        """Remove all items."""
        self._content = []
        self._mirror_all()

    @property
    def length(self) -> int:
        """The number of items."""
        return len(self.content)

    def delete_memory_item(self, step: int) -> None:
        """Remove the items with this `step`. Raises AttributeError, and removes none, if an item has no step."""
        self._content = [item for item in self._content if item.step != step]
        self._mirror_all()

    def to_json(self) -> str:
        """The items as a JSON array."""
        return json.dumps([item.to_dict() for item in self._content if item is not None])

    def to_list_of_dicts(self) -> list[dict[str, Any]]:
        """The items as dictionaries."""
        return [item.to_dict() for item in self._content]

    def from_list_of_dicts(self, data: list[dict[str, Any]]) -> None:
        """Replace the items. As in the original, those before a malformed one stay."""
        self._content = []
        try:
            for values in data:
                item = MemoryItem()
                item.from_dict(values)
                self._content.append(item)
        finally:
            self._mirror_all()

    def get_latest_item(self) -> Any:
        """The last item, or None."""
        content = self.content
        return content[-1] if content else None

    @property
    def content(self) -> list[Any]:
        """The items."""
        return self._content

    @property
    def list_content(self) -> list[dict[str, Any]]:
        """The items as dictionaries."""
        return [item.to_dict() for item in self._content]

    def is_empty(self) -> bool:
        """Whether there are no items."""
        return self.length == 0

    def get_latest(self, n: int = 1) -> list[Any]:
        """The last `n` items, oldest first. Documented by UFO, and not in its code."""
        return self.content[-n:] if n > 0 else []

    def get_all(self) -> list[Any]:
        """All items, oldest first, in a new list. Documented by UFO, and not in its code."""
        return list(self.content)

    def filter_by_status(self, status: str) -> list[dict[str, Any]]:
        """The items with this `status`, or with a result of this status. Documented by UFO, and not in its code."""
        return [item for item in self.list_content if status in _statuses(item)]

    def get_total_cost(self) -> float:
        """The sum of the items' `cost`, of numbers only. Documented by UFO, and not in its code."""
        costs = [item.get("cost") for item in self.list_content]
        return math.fsum(cost for cost in costs if isinstance(cost, (int, float)) and not isinstance(cost, bool))

    def __eq__(self, other: object) -> bool:
        """Whether two memories hold equal items; items of one class are always equal, as in the original."""
        return self.content == other.content if isinstance(other, Memory) else NotImplemented

    def __repr__(self) -> str:
        return f"Memory(_content={self.content!r})"

    def __post_init__(self) -> None:
        if self._content:
            self._mirror_all()

    def _mirror(self) -> tuple[Channel, str]:
        if self.agent is None:
            self.agent = f"memory-{uuid.uuid4().hex[:12]}"
        return process.common_channel(), f"agents/{self.agent}/memory"

    def _mirror_one(self, item: object) -> None:
        try:
            channel, log = self._mirror()
            operation = append(log, log_path(log), _shown(item))
            self._send(channel, log, operation, [item])
        except Exception:
            logger.warning("a memory item was not mirrored to the server", exc_info=True)

    def _mirror_all(self) -> None:
        try:
            channel, log = self._mirror()
            items = list(self._content)
            for item in items:
                detach(item, channel, log)
            body = f"[{','.join(_shown(item) for item in items)}]"
            self._send(channel, log, Operation(method="PUT", path=log_path(log), body=body), items)
        except Exception:
            logger.warning("a memory was not mirrored to the server", exc_info=True)

    def _send(self, channel: Channel, log: str, operation: Operation, items: Sequence[object]) -> None:
        operation.quiet = True
        operation.places = [Place(channel, log, operation, index) for index in range(len(items))]
        channel.write(operation)
        for item, place in zip(items, operation.places, strict=True):
            attach(item, place)


_repr_told = False


def _shown(item: Any) -> str:
    """The JSON text of an item for its readers; it may be of any type, as in the original."""
    global _repr_told
    try:
        values = item.to_dict()
    except Exception:  # noqa: BLE001 - any object may be in a memory
        values = {"repr": item}
    text, changed = approximate(values if isinstance(values, dict) else {"repr": values})
    if changed and not _repr_told:
        _repr_told = True
        logger.warning("a memory item has values that JSON cannot hold; the server shows their repr instead")
    return text


def _statuses(item: dict[str, Any]) -> list[Any]:
    results = item.get("results")
    parts = results if isinstance(results, list) else []
    return [item.get("status"), *(part.get("status") for part in parts if isinstance(part, dict))]
