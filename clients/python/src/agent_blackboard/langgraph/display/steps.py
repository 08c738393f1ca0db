"""Steps of a graph: what the tasks of a superstep wrote, as an entry of the trajectories and as the values of channels.

The writes of tasks come before the checkpoint that they make. They are kept in memory until then, so that a checkpoint
needs no further request. A process that did not see them shows the changed channels instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from ..caches import Cache
from ..chains import COUNTERS, Record
from .folds import fold
from .interrupts import At, Task
from .views import ITEMS_MAX, View, label, line, text, view

SUPERSTEPS_MAX = 1000
"""The number of supersteps whose writes are kept until their checkpoint."""
TASKS_MAX = 1000
"""The tasks of a superstep that are noted."""
SAID_MAX = 10
"""The maximum number of tasks that the line of a superstep names."""
WRITES_MAX = 500
"""The last writes to a delta channel that count for its view."""
CHANNELS_MAX = 64
"""The channels of a thread that are shown."""

START = "__start__"
_SENDS = "__pregel_tasks"
_PUSHED = "~__pregel_push, "
_RETURNS = ("__return__", "__end__")
"""The channels of what the functions of the functional API return."""
_INTERNAL = ("__", "branch:", "join:")


@dataclass
class Superstep:
    """What the tasks at a checkpoint wrote, by path and id, and the nodes to which it sends tasks."""

    tasks: dict[tuple[str, str], dict[str, View]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """A checkpoint as people see it: its entry, None where there is nothing to say, and the values of its channels."""

    number: int | None
    entry: dict[str, View] | None
    values: dict[str, View]
    changed: frozenset[str]
    asked: list[Task] = field(default_factory=list)
    """The tasks whose questions the checkpoint's commit asks."""


class Steps:
    """The steps of an adapter's threads."""

    def __init__(self) -> None:
        self._supersteps: Cache[At, Superstep] = Cache(SUPERSTEPS_MAX)
        self._folded: Cache[At, dict[str, View]] = Cache(SUPERSTEPS_MAX)

    def write(self, place: At, task: str, task_path: str, pairs: Sequence[tuple[str, Any]]) -> None:
        """Note what a task wrote."""
        superstep = self._superstep(place)
        wrote: dict[str, View] = {}
        for channel, value in pairs:
            if (name := _name(channel)) is not None and (name in wrote or len(wrote) < CHANNELS_MAX):
                shown = view(value)
                wrote[name] = fold(wrote[name], shown) if name in wrote else shown
        key = (task_path, task)
        if len(superstep.tasks) < TASKS_MAX or key in superstep.tasks:
            superstep.tasks[key] = wrote

    def node(self, place: At, task_path: str) -> str:
        """The node of a task at a checkpoint. A `Send` names it in the checkpoint, which may come after its writes."""
        superstep = self._supersteps.get(place)
        return _node(task_path, [] if superstep is None else superstep.sent)

    def load(self, place: At, checkpoint: Checkpoint, written: Iterable[tuple[str, str, str, Any]]) -> None:
        """Note a checkpoint that a graph goes on from: task, path, channel and value of what was written at it."""
        if self._supersteps.get(place) is not None:
            return
        self._send(place, checkpoint)
        tasks: dict[tuple[str, str], list[tuple[str, Any]]] = {}
        for task, task_path, channel, value in written:
            tasks.setdefault((task, task_path), []).append((channel, value))
        for (task, task_path), pairs in tasks.items():
            self.write(place, task, task_path, pairs)

    def seen(self, place: At, history: Mapping[str, Any]) -> None:
        """Note the values of delta channels at a checkpoint, from the history that a graph has asked for."""
        shown = {}
        for channel, told in history.items():
            base = view(_content(told.get("seed")))
            for _, _, value in told["writes"][-WRITES_MAX:]:
                base = fold(base, view(value))
            shown[label(channel)] = view(base)
        self._folded.put(place, {**(self._folded.get(place) or {}), **shown})

    def step(
        self,
        place: At,
        parent: tuple[str | None, Record | None],
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Step:
        """The step that made a checkpoint. The parent is given by its id and, where it is known, its record."""
        session, namespace, _ = place
        before = (session, namespace, parent[0] or "")
        superstep = self._supersteps.get(before) or Superstep()
        self._send(place, checkpoint)
        # An update stands for a node, and has no task. What ran at its parent, or at that of a fork, led elsewhere.
        ran = metadata.get("source") not in ("update", "fork")
        tasks = [
            {"node": node, **({"wrote": wrote} if wrote else {})}
            for (task_path, _), wrote in sorted(superstep.tasks.items(), key=lambda part: part[0])
            if bool(node := _node(task_path, superstep.sent)) == ran
        ]
        values, folded = self._values(before, checkpoint, metadata, tasks, new_versions)
        if folded:
            self._folded.put(place, folded)
        changed = frozenset(label(channel) for channel in new_versions if not channel.startswith(_INTERNAL))
        number = metadata.get("step")
        number = number if type(number) is int else None
        entry = _entry(place, parent[1], checkpoint, metadata, tasks, values, changed)
        return Step(number, None if entry is None else {"step": number, **entry}, values, changed)

    def done(self, session: str, namespace: str, parent: str | None) -> None:
        """Forget what led to a checkpoint that is stored."""
        self._supersteps.drop((session, namespace, parent or ""))
        self._folded.drop((session, namespace, parent or ""))

    def forget(self, session: str) -> None:
        """Forget what is known of a session."""
        self._supersteps.drop_where(lambda place: place[0] == session)
        self._folded.drop_where(lambda place: place[0] == session)

    def _send(self, place: At, checkpoint: Checkpoint) -> None:
        """Note the nodes to which a checkpoint sends tasks."""
        if sent := checkpoint["channel_values"].get(_SENDS):
            self._superstep(place).sent = [str(getattr(one, "node", "?")) for one in sent]

    def _superstep(self, place: At) -> Superstep:
        # A graph's parallel tasks write in threads: the superstep that one makes must not replace another's.
        return self._supersteps.setdefault(place, Superstep())

    def _values(
        self,
        before: At,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        tasks: Sequence[View],
        new_versions: ChannelVersions,
    ) -> tuple[dict[str, View], dict[str, View]]:
        """The values of the channels; and of these the delta channels, whose value a checkpoint does not have."""
        present = checkpoint["channel_values"]
        counters: Any = metadata.get(COUNTERS) or ()
        deltas = {*counters, *(name for name in present if _is_delta(present[name]))}
        known = self._folded.get(before) or {}
        folded: dict[str, View] = {}
        for channel in sorted(deltas):
            name = label(channel)
            if channel in present:
                folded[name] = view(_content(present[channel]))
                continue
            if name in known:
                folded[name] = known[name]
            for task in tasks if channel in new_versions else ():
                if name in task.get("wrote", {}):
                    folded[name] = view(fold(folded.get(name), task["wrote"][name]))
        shown = [name for name in present if not name.startswith(_INTERNAL) and name not in deltas]
        views = {label(name): view(present[name]) for name in shown[:CHANNELS_MAX]}
        return views | dict(list(folded.items())[: CHANNELS_MAX - len(views)]), folded


def _entry(
    place: At,
    parent: Record | None,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    tasks: Sequence[View],
    values: Mapping[str, View],
    changed: frozenset[str],
) -> dict[str, View] | None:
    source = metadata.get("source")
    entry: dict[str, View] = {"text": "", "source": view(source)}
    ran = [task for task in tasks if task["node"] not in ("", START)]
    if source == "input":
        entry["input"] = view(checkpoint["channel_values"].get(START))
        entry["text"] = f"input: {line(entry['input'])}"
    elif ran:
        entry["nodes"] = view(ran)
        entry["text"] = "; ".join(_said(task["node"], task.get("wrote")) for task in ran[:SAID_MAX])
    elif source == "fork":
        entry["text"] = f"fork of step {metadata.get('step')}"
    elif any(task["node"] for task in tasks):
        # The first step only takes the input apart, whose entry stands above.
        return None
    else:
        nodes = _ran(checkpoint, parent)
        entry["nodes"] = [{"node": node} for node in nodes[:ITEMS_MAX]]
        entry["changed"] = view({channel: values[channel] for channel in sorted(changed & values.keys())})
        entry["text"] = _said(", ".join(nodes) or str(entry["source"]), entry["changed"])
    _, namespace, checkpoint_id = place
    return {**entry, "checkpoint": view(checkpoint_id), **({"namespace": view(namespace)} if namespace else {})}


def _said(node: str, wrote: View) -> str:
    return f"{node}: {line(wrote)}" if wrote else node


def _ran(checkpoint: Checkpoint, parent: Record | None) -> list[str]:
    """The nodes that saw channels which they had not seen at the parent."""
    before = {} if parent is None else parent["checkpoint"].get("versions_seen", {})
    seen = checkpoint.get("versions_seen", {})
    return [node for node in seen if not node.startswith("__") and seen[node] != before.get(node)]


def _node(task_path: str, sent: Sequence[str]) -> str:
    """The node of a task: the last part of its path, or the node that the index of a `Send` stands for.

    It is empty for writes that no task made, such as the answer to whichever interrupt is pending.
    """
    if not task_path.startswith(_PUSHED):
        return text(task_path.rsplit(", ", 1)[-1])
    index = task_path.removeprefix(_PUSHED).split(", ", 1)[0]
    return sent[int(index)] if index.isdecimal() and int(index) < len(sent) else "task"


def _name(channel: str) -> str | None:
    """The name by which a write to a channel is shown; None for the graph's own channels."""
    if channel in _RETURNS:
        return "returned"
    return None if channel.startswith(_INTERNAL) else label(channel)


def _is_delta(value: Any) -> bool:
    return isinstance(value, _DeltaSnapshot)


def _content(value: Any) -> Any:
    return value.value if _is_delta(value) else value
