"""Memories of agents: local like the original's, and mirrored to a log of the server."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from agent_blackboard import Client, ufo
from agent_blackboard.ufo import Blackboard, ImageMemoryItem, ImageMemoryItemNames, Memory, MemoryItem
from agent_blackboard.ufo.process import common_channel

pytestmark = pytest.mark.usefixtures("drop_in")


def item(**values: Any) -> MemoryItem:
    made = MemoryItem()
    made.from_dict(values)
    return made


def mirrored(client: Client, memory: Memory) -> list[dict[str, Any]]:
    """The memory's log as other programs see it."""
    assert memory.agent is not None
    return list(client.session(common_channel().session).memory(memory.agent).items())


def test_a_memory_is_local_and_mirrored(client: Client) -> None:
    memory = Memory(agent="Äpp Agent")
    first = item(step=1, a="x")
    memory.add_memory_item(first)
    assert memory.content[0] is first
    assert memory.get_latest_item() is first
    first.set_value("a", "y")
    memory.add_memory_item(item(step=2))
    memory.add_memory_item(item(step=3))
    assert mirrored(client, memory) == memory.list_content == [{"step": 1, "a": "y"}, {"step": 2}, {"step": 3}]
    memory.delete_memory_item(2)
    first.set_value("a", "z")
    assert mirrored(client, memory) == memory.list_content == [{"step": 1, "a": "z"}, {"step": 3}]
    memory.from_list_of_dicts([{"b": 1}])
    assert mirrored(client, memory) == [{"b": 1}]
    memory.clear()
    assert mirrored(client, memory) == []
    assert memory.is_empty()
    assert memory.get_latest_item() is None


def test_reads_of_a_memory_cost_no_trip() -> None:
    memory = Memory([item(step=1), item(step=2, cost=0.25)])
    before = ufo.trips()
    assert memory.filter_memory_from_steps([2]) == [{"step": 2, "cost": 0.25}]
    assert memory.filter_memory_from_keys([]) == [{}, {}]
    assert memory.length == 2
    assert memory.to_json() == '[{"step": 1}, {"step": 2, "cost": 0.25}]'
    assert memory.get_total_cost() == 0.25
    assert ufo.trips() == before


def test_memory_and_board_are_in_one_session(client: Client) -> None:
    memory, board = Memory(), Blackboard()
    memory.add_memory_item(item(a=1))
    board.add_requests("r")
    names = [agent["agent"] for agent in client.session(board.session).agents.list()]
    assert names == [memory.agent]


def test_what_json_cannot_hold_is_mirrored_as_text(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory()
    inner: dict[Any, Any] = {"x": float("inf"), 5: {1, 2}, "big": 10**5000, "s": "\ud800", "t": (1, None)}
    inner["self"] = inner
    whole = item(value=inner)
    memory.add_memory_item(whole)
    memory.add_memory_item(None)  # type: ignore[arg-type]
    memory.add_memory_item({"no": "to_dict"})  # type: ignore[arg-type]
    assert memory.content[0].value is inner
    found = mirrored(client, memory)
    assert "self" in found[0]["value"]
    assert found[0]["value"] | {"self": 0} == {
        "x": "inf",
        "5": "{1, 2}",
        "big": hex(10**5000),
        "s": "\\ud800",
        "t": [1, None],
        "self": 0,
    }
    assert found[1:] == [{"repr": None}, {"repr": {"no": "to_dict"}}]
    assert caplog.text.count("JSON cannot hold") == 1
    whole.set_value("value", object)
    assert mirrored(client, memory)[0] == {"value": "<class 'object'>"}


def test_a_memory_works_where_it_cannot_be_mirrored(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    ufo.configure(outbox=tmp_path / "file" / "outbox")
    memory = Memory()
    memory.add_memory_item(item(a=1))
    memory.load([item(step=1)])
    assert memory.list_content == [{"step": 1}]
    assert "was not mirrored" in caplog.text


def test_items_and_memories_are_equal_as_the_originals() -> None:
    assert item(a=1) == item(b=2)
    assert item() != ImageMemoryItem()
    assert Memory([item(a=1)]) == Memory([item(b=2)])
    assert Memory() != Memory([item()])
    assert Memory() != []
    assert repr(Memory([item()])) == "Memory(_content=[MemoryItem()])"
    with pytest.raises(TypeError):
        hash(Memory())


def test_a_copied_or_pickled_item_has_no_entry(client: Client) -> None:
    memory = Memory()
    first = item(a=1)
    memory.add_memory_item(first)
    for other in (copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        other.set_value("a", 2)
        assert other.to_dict() == {"a": 2}
    assert mirrored(client, memory) == memory.list_content == [{"a": 1}]


def test_items_keep_the_originals_ways() -> None:
    made = item(a=1)
    made.plain = 5
    assert made.to_json() == '{"a": 1}'
    made.add_values_from_dict({"plain": 6})
    assert made.to_dict() == {"a": 1, "plain": 6}
    assert made.filter() == {}
    assert made.filter(["a", "x"]) == {"a": 1}
    assert made.get_value("to_dict") == made.to_dict
    assert "plain" in item().attributes
    assert ImageMemoryItem().attributes[:3] == ["METADATA", "IMAGE_PATH", "IMAGE_STR"]
    names = ImageMemoryItemNames
    assert (names.METADATA, names.IMAGE_PATH, names.IMAGE_STR) == ("metadata", "image_path", "image_str")
    with pytest.raises(TypeError):
        made.set_value(5, 5)  # type: ignore[arg-type]
