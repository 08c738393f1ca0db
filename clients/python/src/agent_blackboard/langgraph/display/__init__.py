"""What people see of a thread, beside what the saver needs: its steps, its values and its questions.

    trajectories          an entry for each superstep: the nodes that ran and what they wrote
    questions             an open question for each pending interrupt
    state langgraph       "step", "checkpoint" and "values": the latest checkpoint of the graph and its channels
          langgraph/interrupts   the pending interrupts

All of it stands in the transaction that stores the checkpoint or the writes. Values are bounded views; see `views`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from ..._wire import path
from ...errors import NotFound
from .. import names
from ..caches import Cache
from ..chains import Record
from ..exchange import Exchange, Request
from ..sessions import Operation, Sessions, place
from .interrupts import At, Condition, Interrupts, Task
from .steps import Step, Steps

ROOT = "langgraph"
ENTRIES_MAX = 1000
"""The entries of the trajectories and of the questions that a session keeps, by its settings."""
SHOWN_MAX = 10_000
"""The sessions of which it is known which checkpoint their values show."""


class Display:
    """The display of an adapter's threads."""

    def __init__(self, sessions: Sessions, agent: str) -> None:
        self._sessions = sessions
        self.interrupts = Interrupts(sessions, agent)
        self._steps = Steps()
        self._shown: Cache[str, str] = Cache(SHOWN_MAX)

    def step(
        self,
        at: At,
        parent: tuple[str | None, Record | None],
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Step:
        """The step that made a checkpoint."""
        return self._steps.step(at, parent, checkpoint, metadata, new_versions)

    def put(
        self, at: At, parent: str | None, step: Step, *, newer: bool, record: str
    ) -> Exchange[tuple[list[Condition], list[Operation]]]:
        """What a checkpoint's commit has besides. A checkpoint that is stored already has its entry."""
        session, namespace, checkpoint_id = at
        entry: list[Operation] = []
        if step.entry is not None:
            entry = [{"append": "trajectories", "item": step.entry}]
        if not newer:
            # Only an id that is not the newest may have been stored before.
            if (yield from self._sessions.read(session, record)) is not None:
                return [], []
            return [{"path": record, "absent": True}], entry
        conditions, operations = yield from self.interrupts.superseded(session, namespace, checkpoint_id)
        absent, asking, step.asked[:] = self.interrupts.deferred(at)
        values = [] if namespace else self._values(session, parent, checkpoint_id, step)
        return [*conditions, *absent], [*operations, *entry, *asking, *values]

    def _values(self, session: str, parent: str | None, checkpoint_id: str, step: Step) -> list[Operation]:
        """The operations that show the latest checkpoint: of the one before it only what has changed."""
        made: list[Operation] = []
        if parent is None or self._shown.get(session) != parent:
            values = {names.key(channel): shown for channel, shown in step.values.items()}
            made.append({"put": f"{ROOT}/values", "value": values})
        else:
            for channel in sorted(step.changed & step.values.keys()):
                made.append({"put": f"{ROOT}/values/{path(names.key(channel))}", "value": step.values[channel]})
            if gone := step.changed - step.values.keys():
                made.append({"patch": f"{ROOT}/values", "value": {names.key(channel): None for channel in gone}})
        return [*made, {"patch": ROOT, "value": {"step": step.number, "checkpoint": names.key(checkpoint_id)}}]

    def stored(self, at: At, parent: str | None, step: Step, *, newer: bool) -> None:
        """Note that a checkpoint's commit was made."""
        session, namespace, checkpoint_id = at
        self._steps.done(session, namespace, parent)
        if newer and not namespace:
            self._shown.put(session, checkpoint_id)
        if newer:
            self.interrupts.passed(session, namespace, checkpoint_id)
            self.interrupts.asked(step.asked)

    def refused(self, session: str) -> Exchange[None]:
        """Find out what is pending, since a commit was refused."""
        yield from self.interrupts.pending(session)

    def write(self, at: At, thread: str, task: str, task_path: str, pairs: Sequence[tuple[str, Any]]) -> Task | None:
        """Note what a task wrote; what it says of interrupts is returned."""
        self._steps.write(at, task, task_path, pairs)
        return self.interrupts.task(at, thread, task, lambda: self._steps.node(at, task_path), pairs)

    def load(self, at: At, checkpoint: Checkpoint, written: Iterable[tuple[str, str, str, Any]]) -> None:
        """Note a checkpoint that a graph goes on from, with what was written at it."""
        self._steps.load(at, checkpoint, written)

    def seen(self, at: At, history: Mapping[str, Any]) -> None:
        """Note what delta channels are made of at a checkpoint."""
        self._steps.seen(at, history)

    def removal(self, session: str, doomed: Mapping[str, Iterable[str]]) -> Exchange[list[Operation]]:
        """The operations of a commit that deletes checkpoints, given by namespace."""
        ids = {checkpoint_id for some in doomed.values() for checkpoint_id in some}
        made = yield from self.interrupts.removed(session, ids)
        shown = yield from self._sessions.read(session, f"{ROOT}/checkpoint")
        if shown is not None and names.text_of(str(shown.value)) in doomed.get("", ()):
            made.append({"patch": ROOT, "value": {"values": None, "step": None, "checkpoint": None}})
        return made

    def erase(self, session: str, doomed: Mapping[str, Iterable[str]]) -> Exchange[None]:
        """Delete the entries of checkpoints, given by namespace."""
        ids = {checkpoint_id for some in doomed.values() for checkpoint_id in some}
        for log in ("trajectories", "questions"):
            address = f"{place(session)}/{log}"
            after, more = 0, True
            while more:
                page = (
                    yield Request("GET", address, params={"after": after, "limit": 1000, "keys": "checkpoint"})
                ).json()
                after, more = page["next"], page["more"]
                for entry in page["entries"]:
                    if entry["item"].get("checkpoint") in ids:
                        yield from _delete(f"{address}/{entry['seq']}")

    def copied(self, session: str, thread: str) -> Exchange[None]:
        """Name the thread of a copy in the questions that it has taken along."""
        for interrupt in (yield from self.interrupts.pending(session)):
            yield from self.interrupts.rename(session, interrupt, thread)

    def forget(self, session: str) -> None:
        """Forget what is known of a session."""
        self.interrupts.forget(session)
        self._steps.forget(session)
        self._shown.drop(session)


def _delete(address: str) -> Exchange[None]:
    try:
        yield Request("DELETE", address)
    except NotFound:
        return
