"""Views: bounded JSON of any value, and what becomes of a channel by its writes."""

from __future__ import annotations

import dataclasses
import json
from collections import namedtuple
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite
from pydantic import BaseModel, SecretStr

from agent_blackboard.langgraph.display.folds import fold
from agent_blackboard.langgraph.display.views import ITEMS_MAX, TEXT_CHARACTERS_MAX, VIEW_CHARACTERS_MAX, view


class Model(BaseModel):
    name: str
    key: SecretStr


@dataclasses.dataclass
class Point:
    x: int
    y: Any = None


class Colour(Enum):
    RED = "red"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class BrokenDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no members")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (1 << 70, str(1 << 70)),
        (1 << 50_000, "<integer of 50,001 bits>"),
        ("ü\ud800", "ü?"),
        (b"abc", "<3 bytes>"),
        (datetime(2026, 1, 1, tzinfo=timezone.utc), "2026-01-01T00:00:00+00:00"),
        (Path("a/b"), "a/b"),
        (Colour.RED, "red"),
        ({"a": {1: (2,)}, "$blob": "0" * 64}, {"a": {"1": [2]}, "blob": "0" * 64}),
        (namedtuple("Pair", "a b")(1, 2), {"a": 1, "b": 2}),
        (Point(1, Point(2)), {"x": 1, "y": {"x": 2, "y": None}}),
        (Model(name="n", key=SecretStr("s")), {"name": "n", "key": "<SecretStr>"}),
        (Broken(), "<Broken>"),
        (BrokenDict(a=1), "<BrokenDict>"),
        (object, "<type>"),
        ({3}, [3]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_has_a_view(value: Any, shown: Any) -> None:
    assert view(value) == shown
    json.dumps(view(value), allow_nan=False).encode()


def test_a_message_is_its_role_its_text_and_its_calls() -> None:
    call = {"name": "look", "args": {"at": "sky"}, "id": "c1"}
    blocks = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
    ]
    assert view([HumanMessage(blocks), AIMessage("", tool_calls=[call]), ToolMessage("blue", tool_call_id="c1")]) == [
        {"role": "user", "content": "see\n[image_url]"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": "blue", "tool_call_id": "c1"},
    ]


def test_a_view_is_bounded_whatever_the_value() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    wide = {f"key {number}" * 100: "x" * 5000 for number in range(10_000)}
    for value in (deep, cyclic, wide, ["x" * 5000] * 10_000, "x" * 10_000_000, [wide] * 100, {"y": cyclic}):
        assert len(json.dumps(view(value))) < 2 * VIEW_CHARACTERS_MAX


def test_what_is_cut_leaves_a_mark() -> None:
    assert view("x" * 2500) == "x" * TEXT_CHARACTERS_MAX + "… (500 more characters)"
    numbers = view(list(range(120)))
    assert numbers == ["… 70 before", *range(70, 120)]
    assert view({str(number): number for number in range(120)})["…"] == "more"


@pytest.mark.parametrize(
    ("before", "write", "after"),
    [
        (None, ["a"], ["a"]),
        (["a"], ["b"], ["a", "b"]),
        (["a"], "b", ["a", "b"]),
        ({"a": 1}, {"b": 2, "a": None}, {"b": 2}),
        (None, {"a": 1}, {"a": 1}),
        (["a"], Overwrite(["b"]), ["b"]),
        (3, 4, 4),
    ],
)
def test_a_write_changes_the_view_of_its_channel(before: Any, write: Any, after: Any) -> None:
    assert fold(before, view(write)) == after


def test_messages_replace_and_remove_one_another() -> None:
    shown = fold(None, view([HumanMessage("a", id="1"), AIMessage("b", id="2")]))
    shown = fold(shown, view(AIMessage("c", id="2")))
    assert [message["content"] for message in shown] == ["a", "c"]
    assert fold(shown, view([RemoveMessage("1")])) == shown[1:]
    assert fold(shown, view([RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("d", id="3")])) == [
        {"role": "user", "id": "3", "content": "d"}
    ]


def test_a_long_list_keeps_its_newest_items() -> None:
    shown: Any = None
    for number in range(200):
        shown = view(fold(shown, [number]))
    assert (len(shown), shown[-1]) == (ITEMS_MAX, 199)
    assert shown[0].startswith("…")
