"""Memory items: UFO's `MemoryItem` and `ImageMemoryItem`.

Every member, default and side effect is the original's, the class-wide list of attributes included. Besides, an item
remembers which entries of the server show it, and writes its later changes through to them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from .channel import Channel
    from .place import Place


@dataclass
class MemoryItem:
    """An item of one step. Two items of one class are equal, as in the original, whose dataclass has no fields."""

    __slots__ = ("__dict__", "__weakref__", "_blackboard_entries")
    _memory_attributes: ClassVar[list[str]] = []

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def to_dict(self) -> dict[str, Any]:
        """The values set so far, in the order in which they were set first."""
        return {key: value for key, value in self.__dict__.items() if key in self._memory_attributes}

    def from_dict(self, data: dict[str, Any]) -> None:
        """Set each value of `data`; other values stay."""
        for key, value in data.items():
            self.set_value(key, value)

    def to_json(self) -> str:
        """The JSON text of `to_dict()`."""
        return json.dumps(self.to_dict())

    def filter(self, keys: list[str] = []) -> dict[str, Any]:  # noqa: B006 - the original's default
        """The values under these keys; `{}` for no keys."""
        return {key: value for key, value in self.to_dict().items() if key in keys}

    def set_value(self, key: str, value: Any) -> None:
        """Set an attribute. An item that a board or a memory holds is changed on the server too.

        Raises UnsupportedValue where a board holds the item and the value is no JSON; nothing is set then.
        """
        changes = [(place, place.change(key, value)) for place in places(self)]
        setattr(self, key, value)
        if key not in self._memory_attributes:
            self._memory_attributes.append(key)
        for place, change in changes:
            place.write(change)

    def add_values_from_dict(self, values: dict[str, Any]) -> None:
        """Set each value of `values`, in their order."""
        for key, value in values.items():
            self.set_value(key, value)

    def get_value(self, key: str) -> Any:
        """The attribute of this name, a method included, or None."""
        return getattr(self, key, None)

    def get_values(self, keys: list[str]) -> dict[str, Any]:
        """The attributes of these names, None for those that are absent."""
        return {key: self.get_value(key) for key in keys}

    @property
    def attributes(self) -> list[str]:
        """The names that any item of this class was ever given: one list for all of them, as in the original."""
        return self._memory_attributes

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a pickled item is an item of its own: it has no entries."""
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the values."""
        self.__dict__.update(state)


@dataclass
class ImageMemoryItemNames:
    """The names of a screenshot's members."""

    METADATA: str = "metadata"
    IMAGE_PATH: str = "image_path"
    IMAGE_STR: str = "image_str"


@dataclass
class ImageMemoryItem(MemoryItem):
    """A screenshot's item. Its list of attributes begins with the names of the constants, as in the original."""

    _memory_attributes: ClassVar[list[str]] = ["METADATA", "IMAGE_PATH", "IMAGE_STR"]


# Without the class's attribute the slot has no name, so that no value of an item is stored in its place.
_entries: Any = MemoryItem.__dict__["_blackboard_entries"]
delattr(MemoryItem, "_blackboard_entries")


def places(item: MemoryItem) -> list[Place]:
    """The entries that show an item."""
    try:
        return list(_entries.__get__(item))
    except AttributeError:
        return []


def attach(item: object, place: Place) -> None:
    """Tie an item to an entry, so that its later changes are written there. An item of another class stays as it is."""
    if isinstance(item, MemoryItem):
        _entries.__set__(item, [*places(item), place])


def detach(item: object, channel: Channel, log: str) -> None:
    """Untie an item from its entries in a log, which are replaced."""
    if isinstance(item, MemoryItem):
        others = [place for place in places(item) if place.channel is not channel or place.log != log]
        _entries.__set__(item, others)
