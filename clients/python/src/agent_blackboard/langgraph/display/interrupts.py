"""Interrupts of a thread's graph as open questions.

The state's `langgraph/interrupts` has each pending interrupt by its id, and is absent while there is none. A
transaction that brings an interrupt requires that the id is absent there, so a question is asked once however often a
task is run again. A checkpoint requires that nothing is pending, and so costs no request to find out.

A task may raise an interrupt before the checkpoint that it runs at is stored, as both are written side by side. Its
question then waits for the checkpoint and stands in that commit: a killed graph would otherwise forget what was asked.

An interrupt ends when its task has taken an answer, or when the thread has gone on without it. Its question is closed
before the commit that removes it here: what a killed process leaves is closed by the next one. A question that is
skipped so is marked first, since a person's skip is an answer for the node and this one is none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT, RESUME

from ..._wire import json_text, path
from ...errors import AlreadyAnswered, NotFound
from ...values import Entry, entry
from .. import names
from ..caches import Cache
from ..errors import TooManyConflicts
from ..exchange import Exchange, Request
from ..sessions import TRIES_MAX, Operation, Sessions, place
from .requests import options, question_text
from .views import View, text, view

PENDING = "langgraph/interrupts"
DEFERRED_MAX = 1000
"""The checkpoints with which questions are to be asked."""
QUESTION_CHARACTERS_MAX = 200
"""The beginning of a question that stands in the state."""
ASKED_MAX = 10_000
"""The interrupts that are known to have been asked, and the sessions whose pending ones are known."""
WITHDRAWN = "withdrawn"
"""The mark of a question that the display skips."""
NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""The task of an answer that is for whichever interrupt is pending."""

Condition = dict[str, Any]
At = tuple[str, str, str]
"""A checkpoint by session, namespace and id."""


@dataclass
class Task:
    """What a task wrote about interrupts."""

    session: str
    thread: str
    namespace: str
    checkpoint: str
    task: str
    node: Callable[[], str]
    raised: dict[str, Any]
    """The interrupts by their ids."""
    answers: Sequence[Any]
    """The answers that the task has taken, in the order of its interrupts."""
    repeated: bool = False
    """Whether the task has written before."""
    stored: bool = True
    """Whether the checkpoint is stored."""
    closed: frozenset[str] = frozenset()
    """The interrupts that end by its commit."""

    @property
    def at(self) -> At:
        """The checkpoint that the task runs at."""
        return self.session, self.namespace, self.checkpoint

    @property
    def concerned(self) -> bool:
        """Whether there is anything to be asked or closed."""
        return bool(self.raised or self.answers)


class Interrupts:
    """The interrupts of an adapter's threads."""

    def __init__(self, sessions: Sessions, agent: str) -> None:
        self._sessions = sessions
        self.agent = agent
        self._asked: Cache[tuple[str, str], bool] = Cache(ASKED_MAX)
        self._known: Cache[str, dict[str, View]] = Cache(ASKED_MAX)
        self._resumed: Cache[At, Any] = Cache(ASKED_MAX)
        self._taken: Cache[tuple[str, str], Sequence[Any]] = Cache(ASKED_MAX)
        self._deferred: OrderedDict[At, list[Task]] = OrderedDict()
        self._lock = threading.Lock()

    def task(
        self, at: At, thread: str, task: str, node: Callable[[], str], pairs: Iterable[tuple[str, Any]]
    ) -> Task | None:
        """What a task's writes say of interrupts; None if nothing."""
        raised: dict[str, Any] = {}
        answers: Sequence[Any] = ()
        for channel, value in pairs:
            if channel == RESUME and task == NULL_TASK:
                self._resumed.put(at, value)
            elif channel == RESUME:
                answers = value if isinstance(value, list) else [value]
                # The checkpoint that ends the interrupt may be stored before these writes.
                self._taken.put((at[0], task), answers)
            elif channel == INTERRUPT:
                listed = value if isinstance(value, (list, tuple)) else [value]
                raised |= {str(one.id): one for one in listed if hasattr(one, "id") and hasattr(one, "value")}
        session, namespace, checkpoint = at
        found = Task(session, thread, namespace, checkpoint, task, node, raised, answers)
        return found if found.concerned else None

    def written(self, task: Task) -> Exchange[tuple[list[Condition], list[Operation]]]:
        """The conditions and operations of a task's commit. Questions that end by it are closed."""
        if not (task.answers or task.repeated):
            new = self._new(task, {}) if task.stored else []
            return _absent(new), self._asking(task, new)
        condition, present = yield from self._read(task.session)
        mine = {one: told for one, told in present.items() if told.get("task") == task.task and one not in task.raised}
        for one, told in mine.items():
            given = self._given(task.session, told)
            yield from self.close(task.session, one, self._resumed.get(task.at) if given is None else given)
        new = self._new(task, present) if task.stored else []
        asking = self._asking(task, new)
        removing = self._removal(present, mine)
        if removing and "delete" in removing[0] and new:
            removing = []
            asking = [{"put": PENDING, "value": {}}, *asking]
        task.closed = frozenset(mine)
        return [condition], [*removing, *asking]

    def committed(self, task: Task) -> None:
        """Note that a task's commit was made. What it has not asked is asked with the checkpoint."""
        self._forget(task.session, task.closed)
        if task.stored:
            self._note(task)
            return
        with self._lock:
            self._deferred.setdefault(task.at, []).append(task)
            if len(self._deferred) > DEFERRED_MAX:
                self._deferred.popitem(last=False)

    def deferred(self, at: At) -> tuple[list[Condition], list[Operation], list[Task]]:
        """The conditions, operations and tasks of what is asked in a checkpoint's commit."""
        with self._lock:
            tasks = list(self._deferred.get(at, ()))
        conditions: list[Condition] = []
        operations: list[Operation] = []
        for task in tasks:
            new = self._new(task, {})
            conditions += _absent(new)
            operations += self._asking(task, new)
        return conditions, operations, tasks

    def asked(self, tasks: Iterable[Task]) -> None:
        """Note that a checkpoint's commit has asked what tasks had deferred."""
        for task in tasks:
            self._note(task)
            with self._lock:
                left = [one for one in self._deferred.get(task.at, ()) if one is not task]
                self._deferred[task.at] = left
                if not left:
                    del self._deferred[task.at]

    def ask_deferred(self, at: At) -> Exchange[None]:
        """Ask what is still deferred at a checkpoint that is stored."""
        with self._lock:
            tasks = self._deferred.pop(at, [])
        for task in tasks:
            yield from self.ask(task)

    def ask(self, task: Task) -> Exchange[None]:
        """Ask the interrupts of a task that are not pending, in a commit of their own."""
        for _ in range(TRIES_MAX):
            condition, present = yield from self._read(task.session)
            asking = self._asking(task, [one for one in task.raised if one not in present])
            if not asking or (yield from self._sessions.commit(task.session, [condition], asking)):
                self._note(task)
                return
        raise TooManyConflicts(f"session {task.session!r} was written by others {TRIES_MAX} times in a row")

    def _note(self, task: Task) -> None:
        known = self._known.get(task.session) or {}
        self._known.put(task.session, {**known, **{one: _told(task) for one in self._new(task, known)}})
        for one in task.raised:
            self._asked.put((task.session, one), True)

    def superseded(
        self, session: str, namespace: str, checkpoint: str
    ) -> Exchange[tuple[list[Condition], list[Operation]]]:
        """The conditions and operations of a checkpoint's commit: what was pending before it ends, unanswered."""
        known = self._known.get(session) or {}
        if known and not _older(known, namespace, checkpoint):
            return [], []
        if not known:
            return [{"path": PENDING, "absent": True}], []
        condition, present = yield from self._read(session)
        old = _older(present, namespace, checkpoint)
        for one, told in old.items():
            yield from self.close(session, one, self._given(session, told))
        return [condition], self._removal(present, old)

    def removed(self, session: str, checkpoints: Iterable[str]) -> Exchange[list[Operation]]:
        """The operations of a commit that deletes checkpoints. The questions of their interrupts are closed."""
        present = yield from self.pending(session)
        gone = set(checkpoints)
        old = {one: told for one, told in present.items() if str(told.get("checkpoint")) in gone}
        for one in old:
            yield from self.close(session, one, None)
        return self._removal(present, old)

    def pending(self, session: str) -> Exchange[dict[str, View]]:
        """The pending interrupts of a session as the server has them now."""
        return (yield from self._read(session))[1]

    def _read(self, session: str) -> Exchange[tuple[Condition, dict[str, View]]]:
        """The pending interrupts of a session, and the condition that they are still these."""
        read = yield from self._sessions.read(session, PENDING)
        if read is None:
            self._known.drop(session)
            return {"path": PENDING, "absent": True}, {}
        present = read.value if isinstance(read.value, dict) else {}
        found = {names.text_of(key): told for key, told in present.items() if isinstance(told, dict)}
        self._known.put(session, found)
        return {"path": PENDING, "etag": read.etag}, found

    def question(self, session: str, interrupt: str) -> Exchange[Entry | None]:
        """The newest question of an interrupt."""
        params = {"contains": interrupt, "latest": 100}
        try:
            answer = yield Request("GET", f"{place(session)}/questions", params=params)
        except NotFound:
            return None
        found = [raw for raw in answer.json()["entries"] if raw["item"].get("interrupt") == interrupt]
        return entry(found[-1]) if found else None

    def close(self, session: str, interrupt: str, given: Any) -> Exchange[None]:
        """Close the question of an interrupt, if it is open: by the answer that the graph got, or as skipped."""
        question = yield from self.question(session, interrupt)
        if question is None or "answer" in question.item:
            return
        answer = given if isinstance(given, str) else None if given is None else json_text(view(given))
        body = {"answer": text(answer)} if answer is not None and answer.strip() else {"skip": True}
        address = f"{place(session)}/questions/{question.seq}"
        try:
            if "skip" in body:
                yield Request("PATCH", address, json={WITHDRAWN: True}, agent=self.agent)
            yield Request("PUT", f"{address}/answer", json=body, agent=self.agent)
        except (AlreadyAnswered, NotFound):
            return

    def rename(self, session: str, interrupt: str, thread: str) -> Exchange[None]:
        """Set the thread that the question of an interrupt names."""
        question = yield from self.question(session, interrupt)
        if question is not None and "answer" not in question.item:
            address = f"{place(session)}/questions/{question.seq}"
            yield Request("PATCH", address, json={"thread": text(thread)}, agent=self.agent)

    def forget(self, session: str) -> None:
        """Forget what is known of a session."""
        self._known.drop(session)
        for cache in (self._asked, self._resumed, self._taken):
            cache.drop_where(lambda known: known[0] == session)

    def passed(self, session: str, namespace: str, checkpoint: str) -> None:
        """Note that a checkpoint was stored, by which what was pending before it has ended."""
        known = self._known.get(session) or {}
        self._forget(session, _older(known, namespace, checkpoint))

    def _forget(self, session: str, ended: Iterable[str]) -> None:
        left = dict(self._known.get(session) or {})
        for one in ended:
            left.pop(one, None)
        if left:
            self._known.put(session, left)
        else:
            self._known.drop(session)

    def _given(self, session: str, told: Mapping[str, View]) -> Any:
        """The answer that an interrupt's task has taken, as far as it is known."""
        taken = self._taken.get((session, str(told.get("task")))) or ()
        slot = told.get("slot", 0)
        return taken[slot] if slot < len(taken) else None

    def _new(self, task: Task, present: Mapping[str, View]) -> list[str]:
        return [one for one in task.raised if one not in present and self._asked.get((task.session, one)) is None]

    def _asking(self, task: Task, new: Iterable[str]) -> list[Operation]:
        operations: list[Operation] = []
        for one in new:
            question = item(task, one)
            told = {"question": question["question"][:QUESTION_CHARACTERS_MAX], **_told(task)}
            operations += [{"put": pending_path(one), "value": told}, {"append": "questions", "item": question}]
        return operations

    @staticmethod
    def _removal(present: Mapping[str, View], old: Mapping[str, View]) -> list[Operation]:
        if not old:
            return []
        if len(old) == len(present):
            return [{"delete": PENDING}]
        return [{"patch": PENDING, "value": {names.key(one): None for one in old}}]


def item(task: Task, interrupt: str) -> dict[str, View]:
    """The question of an interrupt, as the log has it."""
    raised = task.raised[interrupt]
    asked: dict[str, View] = {"question": question_text(raised, task.node())}
    if choices := options(raised):
        asked["options"] = choices
    told = {"thread": task.thread, "node": task.node(), "interrupt": interrupt, "checkpoint": task.checkpoint}
    asked |= {name: text(value) for name, value in told.items()}
    if task.namespace:
        asked["namespace"] = text(task.namespace)
    if not isinstance(raised.value, str):
        asked["value"] = view(raised.value)
    if (schema := getattr(raised, "response_schema", None)) is not None:
        asked["response_schema"] = view(schema)
    return asked


def _absent(interrupts: Iterable[str]) -> list[Condition]:
    return [{"path": pending_path(one), "absent": True} for one in interrupts]


def pending_path(interrupt: str) -> str:
    """The state path of a pending interrupt."""
    return f"{PENDING}/{path(names.key(interrupt))}"


def _told(task: Task) -> dict[str, View]:
    """What the state has of an interrupt of a task."""
    named = {"node": task.node(), "namespace": task.namespace, "checkpoint": task.checkpoint, "task": task.task}
    return {**{name: text(value) for name, value in named.items()}, "slot": len(task.answers)}


def _older(present: Mapping[str, View], namespace: str, checkpoint: str) -> dict[str, View]:
    """The interrupts that a later checkpoint of a namespace ends."""
    return {
        one: told
        for one, told in present.items()
        if _within(str(told.get("namespace", "")), namespace) and str(told.get("checkpoint")) < checkpoint
    }


def _within(namespace: str, above: str) -> bool:
    return above in ("", namespace) or namespace.startswith(f"{above}|")
