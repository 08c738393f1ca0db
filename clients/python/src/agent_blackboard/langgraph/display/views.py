"""Views: any Python value as bounded JSON that people read.

A view is never read back. Its cost depends on the bounds below and not on the value, and no value makes it fail.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

VIEW_CHARACTERS_MAX = 16_000
"""The longest view, in characters of its texts."""
TEXT_CHARACTERS_MAX = 2000
"""The longest text in a view."""
ITEMS_MAX = 50
"""The items of a list, and the members of an object, that a view shows."""
LEVELS_MAX = 16
"""The levels of a view. The server's limit is 128."""
LINE_CHARACTERS_MAX = 300
"""The longest summary."""

CUT = "…"
"""The beginning of a mark for what is left out."""
ROLES = {"human": "user", "ai": "assistant"}
_INTEGER_MAX = 2**53

View = Any


def view(value: Any, characters: int = VIEW_CHARACTERS_MAX) -> View:
    """The view of a value. What has no JSON form is its type in angle brackets."""
    return _Pass(characters).of(value, LEVELS_MAX)


def text(value: str, characters: int = TEXT_CHARACTERS_MAX) -> str:
    """A text that every JSON parser takes, cut with a mark."""
    kept = value[:characters].encode("utf-8", "replace").decode()
    left = len(value) - characters
    return f"{kept}{CUT} ({left:,} more characters)" if left > 0 else kept


def label(name: str) -> str:
    """The name of a member. `$blob` would be a reference to a blob, which would have to exist."""
    return "blob" if name == "$blob" else text(name)


def line(shown: View) -> str:
    """A view in one short line."""
    words = " ".join(_words(shown).split())
    return words if len(words) <= LINE_CHARACTERS_MAX else words[:LINE_CHARACTERS_MAX] + CUT


class _Pass:
    """One walk over a value, with the number of characters that are left."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def of(self, value: Any, levels: int) -> View:
        try:
            return self._of(value, levels)
        except Exception:  # noqa: BLE001 - a value may have any code of its own, and a graph must not fail by it.
            return _type(value)

    def _of(self, value: Any, levels: int) -> View:
        if self._left <= 0 or levels == 0:
            return CUT
        self._left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, Enum):
            return self._of(value.value, levels - 1)
        if isinstance(value, int):
            return int(value) if abs(value) <= _INTEGER_MAX else _integer(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, BaseMessage):
            return self._message(value, levels)
        if (members := _members(value)) is not None:
            return self._object(members, levels)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"<{len(value):,} bytes>"
        if isinstance(value, (Sequence, set, frozenset)):
            return self._list(value, levels)
        if isinstance(value, (datetime, date, time)):
            return value.isoformat()
        if isinstance(value, (timedelta, Decimal, UUID, PurePath)):
            return self._text(str(value))
        return _type(value)

    def _text(self, value: str) -> str:
        shown = text(value, min(TEXT_CHARACTERS_MAX, self._left))
        self._left -= len(shown)
        return shown

    def _object(self, members: Iterable[tuple[Any, Any]], levels: int) -> View:
        shown: dict[str, View] = {}
        for number, (key, value) in enumerate(members):
            if number == ITEMS_MAX or self._left <= 0:
                shown[CUT] = "more"
                break
            name = self._text(key if isinstance(key, str) else str(self.of(key, levels - 1)))
            shown[label(name)] = self.of(value, levels - 1)
        return shown

    def _list(self, items: Any, levels: int) -> list[View]:
        """The last items of a sequence, whose end is the newest part; of a set some."""
        shown: list[View] = []
        ordered = reversed(items) if isinstance(items, Sequence) else iter(items)
        for item in islice(ordered, ITEMS_MAX):
            if self._left <= 0:
                break
            shown.append(self.of(item, levels - 1))
        if isinstance(items, Sequence):
            shown.reverse()
        left = len(items) - len(shown)
        return [f"{CUT} {left:,} before", *shown] if left else shown

    def _message(self, message: BaseMessage, levels: int) -> View:
        """A message by role and text. Its id stays, by which later messages replace or remove it."""
        shown: dict[str, View] = {"role": ROLES.get(message.type, message.type)}
        if message.name:
            shown["name"] = self.of(message.name, levels - 1)
        if message.id:
            shown["id"] = self.of(message.id, levels - 1)
        if content := self._content(message.content):
            shown["content"] = content
        if isinstance(message, AIMessage) and message.tool_calls:
            calls = [{name: call[name] for name in ("name", "args", "id")} for call in message.tool_calls]
            shown["tool_calls"] = self.of(calls, levels - 1)
        if isinstance(message, ToolMessage):
            shown["tool_call_id"] = self.of(message.tool_call_id, levels - 1)
        return shown

    def _content(self, content: Any) -> str:
        if isinstance(content, str):
            return self._text(content)
        parts = []
        for block in content[:ITEMS_MAX]:
            if isinstance(block, str):
                parts.append(block)
            elif isinstance(block.get("text"), str):
                parts.append(block["text"])
            elif block.get("type") not in ("tool_use", "tool_call"):
                parts.append(f"[{block.get('type')}]")
        return self._text("\n".join(parts))


def _members(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """The members of what is shown as an object; None for other values."""
    if isinstance(value, Mapping):
        return value.items()
    if isinstance(value, BaseModel):
        return ((name, getattr(value, name)) for name in type(value).model_fields)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)
    return None


def _integer(value: int) -> str:
    # `str` of a very long integer raises, and takes a time that grows with its square.
    return str(int(value)) if value.bit_length() <= 4096 else f"<integer of {value.bit_length():,} bits>"


def _type(value: Any) -> str:
    return f"<{type(value).__name__}>"


def _words(shown: View) -> str:
    if shown in (None, [], {}):
        return "none"
    if isinstance(shown, dict):
        if "role" in shown:
            calls = [f"calls {call.get('name')}" for call in shown.get("tool_calls", ()) if isinstance(call, dict)]
            return f"{shown['role']}: {'; '.join(filter(None, [str(shown.get('content', '')), *calls]))}"
        return ", ".join(f"{name}: {_words(part)}" for name, part in shown.items())
    if isinstance(shown, list):
        return ", ".join(_words(part) for part in shown)
    return str(shown)
