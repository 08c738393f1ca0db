"""Logs of a board: a `Memory` whose items are on the server.

Items are what JSON makes of the values that were given, and every member's name is plain data. A value that is no
JSON raises UnsupportedValue at once, and nothing is written.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

from .answer import Answer, Row, copied
from .channel import Channel
from .item import ImageMemoryItem, MemoryItem, attach, detach
from .jsontext import exact
from .memory import Memory
from .operation import Operation, append
from .place import Place

BEGIN_MAX = 999
"""The questions that a session begins with, and the value that says so, are one transaction."""

logger = logging.getLogger("agent_blackboard.ufo")
_IMAGE_MEMBERS = {"metadata", "image_path", "image_str"}


class Log(Memory):
    """A log of a board, which any number of processes write."""

    def __init__(self, channel: Channel, name: str) -> None:
        self.agent = None
        self.name = name
        self._channel = channel
        self._written: list[Place] = []

    @property
    def content(self) -> list[Any]:
        """The items, in a new list. Values set on one are written to its entry."""
        return [self._item(row) for row in self._rows()]

    @property
    def _content(self) -> list[Any]:  # type: ignore[override]
        return self.content

    @property
    def length(self) -> int:
        """The number of items."""
        return len(self._rows())

    @property
    def list_content(self) -> list[dict[str, Any]]:
        """The items as dictionaries."""
        return [copied(row.item) for row in self._rows()]

    def to_list_of_dicts(self) -> list[dict[str, Any]]:
        """The items as dictionaries."""
        return self.list_content

    def to_json(self) -> str:
        """The items as a JSON array."""
        return json.dumps([row.item for row in self._rows()])

    def filter_memory_from_steps(self, steps: list[int]) -> list[dict[str, Any]]:
        """The items whose `step` is in `steps`, by Python's equality. Raises AttributeError for one without a step."""
        return [copied(row.item) for row in self._rows() if _step(row) in steps]

    def filter_memory_from_keys(self, keys: list[str]) -> list[dict[str, Any]]:
        """All items with these keys only."""
        return [{key: copied(value) for key, value in row.item.items() if key in keys} for row in self._rows()]

    def add_memory_item(self, memory_item: Any) -> None:
        """Append an item: anything with `to_dict`. Later values of a MemoryItem are written to the entry too."""
        self.append([memory_item])

    def append(self, items: list[Any], *aside: Operation) -> None:
        """Append items and write `aside`, all in one request where their size allows it."""
        operations = self._appends([exact(_values(item)) for item in items])
        self._channel.write(*operations, *aside)
        self._own([operation.places[0] for operation in operations], items)

    def begin(self, items: list[Any], mark: str, value: Any) -> None:
        """Append items and set a value of the state, unless the value is there already."""
        steps = self._appends([exact(_values(item)) for item in items[-BEGIN_MAX:]])
        if len(items) > BEGIN_MAX:
            logger.warning("of %d questions to begin with, the last %d are taken", len(items), BEGIN_MAX)
        put = f'{{"put":{exact(mark)},"value":{exact(value)}}}'
        body = f'{{"if":[{{"path":{exact(mark)},"absent":true}}],"then":[{",".join([*(s.body for s in steps), put])}]}}'
        operation = Operation(method="POST", path="transactions", body=body)
        operation.places = [self._place(operation, index) for index in range(len(steps))]

        def effect(answer: Answer) -> None:
            for step in steps:
                if step.effect is not None:
                    step.effect(answer)

        operation.effect = effect
        self._channel.write(operation)
        if self._channel.own:
            self._own(operation.places, items)

    def delete_memory_item(self, step: int) -> None:
        """Delete the items with this `step`. Raises AttributeError, and deletes none, if an item has no step."""
        self._channel.write(*[row.place.removal() for row in self._rows() if _step(row) == step])

    def clear(self) -> None:
        """Delete the items that this board has written, or all with the setting `clear="all"`."""
        self._channel.write(*self.clearing())

    def clearing(self) -> list[Operation]:
        """The operations of `clear`."""
        written, self._written = self._written, []
        if self._channel.settings.clear == "all":
            return [Operation(method="DELETE", path=self.name, effect=lambda answer: answer.logs[self.name].clear())]
        return [place.removal() for place in written]

    def load(self, content: list[MemoryItem]) -> None:
        """Replace all items, those of other writers included."""
        items = list(content)
        self._replace([_values(item) for item in items], items)

    def from_list_of_dicts(self, data: list[dict[str, Any]]) -> None:
        """Replace all items, those of other writers included. Malformed data changes nothing."""
        self._replace(checked(data))

    def replaced(self, operation: Operation, values: list[dict[str, Any]]) -> None:
        """Prepare an operation that replaces the whole log: name the entries that it will make."""
        made = [self._place(operation, index) for index in range(len(values))]
        operation.places += made

        def effect(answer: Answer, before: Any = operation.effect) -> None:
            if before is not None:
                before(answer)
            texts = [json.loads(exact(value)) for value in values]
            answer.logs[self.name] = [Row(item, place) for item, place in zip(texts, made, strict=True)]

        operation.effect = effect

    def taken(self, operation: Operation, items: Iterable[object] = ()) -> None:
        """Take the entries of an operation that has replaced the log for those that this board has written."""
        items = list(items)
        for item in items:
            detach(item, self._channel, self.name)
        self._written = []
        self._own([place for place in operation.places if place.log == self.name], items)

    def _replace(self, values: list[dict[str, Any]], items: Iterable[object] = ()) -> None:
        body = f"[{','.join(exact(value) for value in values)}]"
        operation = Operation(method="PUT", path=self.name, body=body)
        self.replaced(operation, values)
        self._channel.write(operation)
        self.taken(operation, items)

    def _appends(self, texts: list[str]) -> list[Operation]:
        operations = []
        for text in texts:
            operation = append(self.name, self.name, text)
            operation.places = [self._place(operation, 0)]
            operation.effect = appending(operation.places[0], text)
            operations.append(operation)
        return operations

    def _own(self, places: list[Place], items: Iterable[object]) -> None:
        self._written += places
        for item, place in zip(items, places, strict=False):
            attach(item, place)

    def _place(self, operation: Operation, index: int) -> Place:
        return Place(self._channel, self.name, operation, index)

    def _rows(self) -> list[Row]:
        return self._channel.answer().logs[self.name]

    def _item(self, row: Row) -> MemoryItem:
        item = ImageMemoryItem() if _is_image(row) else MemoryItem()
        # Not by set_value: other writers' items may have members that Python objects refuse, such as `__class__`.
        item.__dict__.update(copied(row.item))
        item.attributes.extend(key for key in row.item if key not in item.attributes)
        attach(item, row.place)
        return item


def checked(data: Any) -> list[dict[str, Any]]:
    """Dictionaries, each of which a MemoryItem takes. Raises what the original raises for anything else."""
    values = []
    for value in data:
        MemoryItem().from_dict(value)
        values.append(dict(value.items()))
    return values


def _values(item: Any) -> dict[str, Any]:
    """An item's values, also where one of them is called `to_dict`."""
    values: dict[str, Any] = type(item).to_dict(item) if isinstance(item, MemoryItem) else item.to_dict()
    return values


def appending(place: Place, text: str) -> Callable[[Answer], None]:
    """The effect of appending an item, given as its JSON text."""
    return lambda answer: answer.logs[place.log].append(Row(json.loads(text), place))


def _is_image(row: Row) -> bool:
    return row.place.log == "screenshots" and row.item.keys() == _IMAGE_MEMBERS


def _step(row: Row) -> Any:
    if "step" not in row.item:
        name = "ImageMemoryItem" if _is_image(row) else "MemoryItem"
        raise AttributeError(f"'{name}' object has no attribute 'step'", name="step", obj=row.item)
    return row.item["step"]
