"""Comparisons of two runs of the same turns: equality to the byte, order by writer, writes that each process sees."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from agents import HarnessFailed, Run

LOGS = {
    "questions": "add_questions",
    "requests": "add_requests",
    "trajectories": "add_trajectories",
    "screenshots": "add_image",
}
"""Logs of a board, each with the method that appends to it."""


def same(what: str, expected: Any, found: Any) -> int:
    """Length of both values if they are equal; otherwise the check fails and shows where they part."""
    left, right = (json.dumps(value, ensure_ascii=False) for value in (expected, found))
    if left == right:
        return len(expected)
    pairs = enumerate(zip(left, right, strict=False))
    at = next((number for number, (one, other) in pairs if one != other), min(len(left), len(right)))
    around = slice(max(at - 120, 0), at + 120)
    raise HarnessFailed(f"{what}: at character {at}\n  expected …{left[around]}…\n  found    …{right[around]}…")


def complaints(run: Run) -> list[str]:
    """Warnings and errors that UFO logged in the turns."""
    return [line for answer in run.answers for line in answer.complaints]


def writers(run: Run) -> dict[str, list[str]]:
    """Agent that wrote each item of the board, in the order of a run in which nobody waits."""
    found: dict[str, list[str]] = {log: [] for log in LOGS}
    logs = {method: log for log, method in LOGS.items()}
    for turn, answer in zip(run.turns, run.answers, strict=True):
        for call, _ in answer.calls:
            if log := logs.get(call.rpartition(".")[2]):
                found[log].append(turn.agent)
    return found


def board_after(original: Run, turns: int) -> dict[str, list[Any]]:
    """Board of a run as it was after its first turns."""
    calls = [call.rpartition(".")[2] for answer in original.answers[:turns] for call, _ in answer.calls]
    return {log: original.board[log][: calls.count(method)] for log, method in LOGS.items()}


def order_kept(original: Run, board: dict[str, list[Any]]) -> int:
    """Checks that `board` has every item of the original once, each writer's in order; returns how many moved."""
    displaced = 0
    for log, agents in writers(original).items():
        expected, found = ([json.dumps(item) for item in items[log]] for items in (original.board, board))
        lost, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
        if lost or extra:
            raise HarnessFailed(f"{log}: lost {list(lost)[:3]}, too many {list(extra)[:3]}")
        positions: dict[str, list[int]] = {}
        for position, item in reversed(list(enumerate(found))):
            positions.setdefault(item, []).append(position)
        places = [positions[item].pop() for item in expected]
        for agent in set(agents):
            own = [place for place, writer in zip(places, agents, strict=True) if writer == agent]
            if own != sorted(own):
                raise HarnessFailed(f"{log}: the items of {agent} stand at {own}")
        displaced += sum(left != right for left, right in zip(expected, found, strict=True))
    return displaced


def own_writes_seen(original: Run, run: Run) -> None:
    """Checks that each step's prompt shows every step that the same process wrote before, even to a server away."""
    written: dict[str, list[str]] = {}
    for turn, answer, item in zip(run.turns, run.answers, original.board["trajectories"], strict=True):
        mine = written.setdefault(turn.agent, [])
        if missing := [text for text in mine if text not in answer.prompts[0]]:
            raise HarnessFailed(f"step {turn.step} of {turn.agent} does not show what it wrote: {missing[0]}")
        mine.append(json.dumps(json.dumps(item))[1:-1])


def mirrored(run: Run, mirrors: list[list[dict[str, Any]]]) -> int:
    """Checks that each memory of a run's agents has a mirror with its items in order; returns their number."""
    agents = [run.memories[0]["host"], run.memories[1]["app1"], run.memories[2]["app2"]]
    for items in agents:
        shown = [
            [{name: mirror.get(name) for name in item} for item, mirror in zip(items, log, strict=True)]
            for log in mirrors
            if len(log) == len(items)
        ]
        if items not in shown:
            raise HarnessFailed(f"no memory on the server has these {len(items)} items: {json.dumps(items)[:300]}")
    return sum(map(len, agents))
