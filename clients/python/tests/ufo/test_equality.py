"""Random calls on a board and on local memories, which behave like the original: all results are equal."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from agent_blackboard import ufo
from agent_blackboard.ufo import Blackboard, Memory, MemoryItem

LOGS = ("questions", "requests", "trajectories", "screenshots")
KEYS = ["step", "a", "key", "status", "é/x", "~t", "", "metadata", "image_path", "image_str", "class", "答"]
STEPS = [1, 2, 3, True, 2.0, "1", None]
TEXTS = ["", "x", "é", "\u2028", "🙂", "a\0b", '"\\', "data:image/png;base64,iVBORw0KGgo=", "data:image/png;base64,!"]
HEADINGS = ["[Questions & Answers:]", "[Request History:]", "[Step Trajectories Completed Previously:]"]


class Local:
    """A board of four local memories, with the original's formulas for the whole."""

    def __init__(self) -> None:
        self.questions, self.requests, self.trajectories, self.screenshots = (Memory() for _ in LOGS)

    def blackboard_to_dict(self) -> dict[str, list[dict[str, Any]]]:
        return {log: getattr(self, log).to_list_of_dicts() for log in LOGS}

    def is_empty(self) -> bool:
        return all(getattr(self, log).is_empty() for log in LOGS)

    def blackboard_to_prompt(self) -> list[dict[str, Any]]:
        board = self.blackboard_to_dict()
        texts = [f"{heading}\n {json.dumps(board[log])}" for heading, log in zip(HEADINGS, LOGS, strict=False)]
        parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in ["[Blackboard:]", *texts]]
        for item in board["screenshots"]:
            parts.append({"type": "text", "text": json.dumps(item.get("metadata", ""))})
            parts.append({"type": "image_url", "image_url": {"url": item.get("image_str", "")}})
        return parts


class World:
    """A board with the items that a caller holds."""

    def __init__(self, board: Any) -> None:
        self.board = board
        self.held: list[MemoryItem] = []

    def log(self, name: str) -> Memory:
        log: Memory = getattr(self.board, name)
        return log


class Caller:
    """Random calls. Each is a function of a world, with its arguments fixed."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        kinds: list[Callable[[], Any]] = [
            lambda: self.pick.choice([None, True, False, 0, -1, 10**30, -0.0, 1e300]),
            lambda: self.pick.random() * 10,
            lambda: self.pick.choice(TEXTS),
        ]
        if depth < 3:
            kinds.append(lambda: [self.value(depth + 1) for _ in range(self.pick.randrange(3))])
            kinds.append(lambda: {self.pick.choice(KEYS): self.value(depth + 1) for _ in range(self.pick.randrange(3))})
        return self.pick.choice(kinds)()

    def item(self) -> dict[str, Any]:
        values = {self.pick.choice(KEYS): self.value() for _ in range(self.pick.randrange(4))}
        return values | ({"step": self.pick.choice(STEPS)} if self.pick.random() < 0.9 else {})

    def call(self) -> Callable[[World], Any]:
        log, values, number = self.pick.choice(LOGS), self.item(), self.pick.randrange(9)
        key, value, step = self.pick.choice(KEYS), self.value(), self.pick.choice(STEPS)
        steps, keys = self.pick.choices(STEPS, k=2), self.pick.choices(KEYS, k=2)
        items = [self.item() for _ in range(self.pick.randrange(4))]

        def add(world: World) -> None:
            item = MemoryItem()
            item.from_dict(values)
            world.held.append(item)
            world.log(log).add_memory_item(item)

        def set_held(world: World) -> None:
            if world.held:
                world.held[number % len(world.held)].set_value(key, value)

        def set_content(world: World) -> None:
            content = world.log(log).content
            if content:
                content[number % len(content)].set_value(key, value)
                # The original's content is the held item itself, here it is another that writes to the same entry.
                world.held.clear()

        def latest(world: World) -> Any:
            item = world.log(log).get_latest_item()
            return item and (item.to_dict(), item.filter(keys), item.get_value(key))

        often = [add, add, add, set_held, set_content, latest]
        often.append(lambda world: world.log(log).delete_memory_item(step))
        often.append(lambda world: world.log(log).filter_memory_from_steps(steps))
        often.append(lambda world: world.log(log).filter_memory_from_keys(keys))
        often.append(lambda world: (world.log(log).to_json(), world.log(log).length, world.log(log).list_content))
        often.append(lambda world: (world.board.is_empty(), world.board.blackboard_to_prompt()))
        seldom = [lambda world: world.log(log).clear(), lambda world: world.log(log).from_list_of_dicts(items)]
        return self.pick.choice(seldom if self.pick.random() < 0.08 else often)


def outcome(call: Callable[[World], Any], world: World) -> str:
    """The result of a call or its exception, as text."""
    try:
        return json.dumps(call(world))
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("ImageMemoryItem", "MemoryItem")


@pytest.mark.parametrize("seed", range(6))
def test_random_calls_have_equal_results(seed: int, drop_in: None) -> None:
    caller, here, there = Caller(seed), World(Local()), World(Blackboard())
    for number in range(120):
        call = caller.call()
        assert outcome(call, there) == outcome(call, here), f"call {number}"
    assert there.board.blackboard_to_dict() == here.board.blackboard_to_dict()
    assert ufo.refused() == []


def test_random_calls_have_equal_results_while_the_server_is_away(away: Any) -> None:
    caller, here, there = Caller(7), World(Local()), World(Blackboard())

    def compare(numbers: range) -> None:
        for number in numbers:
            call = caller.call()
            assert outcome(call, there) == outcome(call, here), f"call {number}"

    compare(range(50))
    with away():
        compare(range(50, 120))
    compare(range(120, 150))
    assert there.board.blackboard_to_dict() == here.board.blackboard_to_dict()
    assert ufo.refused() == []
