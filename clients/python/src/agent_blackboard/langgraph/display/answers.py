"""Answers to the interrupts of a thread: waits for them on the board, and goes on with the graph."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._wire import json_text
from ...errors import ConditionNotMet, NotFound, UnsupportedValue
from ...values import Entry, entry
from ..exchange import Exchange, Request
from ..sessions import place
from .interrupts import WITHDRAWN, Interrupts, Task, item, pending_path
from .requests import InvalidAnswer, question_text, value_of
from .views import text

if TYPE_CHECKING:
    from ..saver import BlackboardSaver

NODE = "the graph"
"""The node of an interrupt whose task is not known."""
WAIT_SECONDS = 600.0
"""The time for which `resume` waits for answers."""
PROBLEM_CHARACTERS_MAX = 300
"""The longest reason for which a question is asked again."""
WAIT_STEP_SECONDS = 25.0
"""The time of one request that waits; proxies end longer ones."""
PASS_SECONDS = 10.0
"""The time in which a thread whose display skips a question has gone on."""
LOOK_SECONDS = 0.3
"""The time between two looks at a thread that another call runs."""

KEPT = ("thread", "node", "checkpoint", "namespace")
"""The members of a question that stay when it is asked again."""

Given = dict[str, Any]
"""The values to resume with, by interrupt."""
Call = tuple[Any, str, tuple[Any, ...], dict[str, Any]]
"""A call by its object, method and arguments; without an object a sleep."""


def answers(
    interrupts: Interrupts, session: str, thread: str, raised: Iterable[Any], wait: float
) -> Exchange[Given | None]:
    """The values that answer some interrupts, when all questions are answered.

    Without those that the graph has taken already; None if all of them were taken meanwhile. Raises ConditionNotMet.
    """
    deadline = time.monotonic() + wait
    wanted = {str(one.id): one for one in raised}
    waiting: dict[str, Entry] = {}
    pending = yield from interrupts.pending(session)
    for one, interrupt in wanted.items():
        question = yield from interrupts.question(session, one)
        if question is None:
            question = yield from _ask(interrupts, session, thread, interrupt)
        elif one not in pending and "answer" in question.item:
            continue
        waiting[one] = question
    if not waiting:
        return {}
    given: Given = {}
    for one, question in waiting.items():
        with contextlib.suppress(_Passed):
            given[one] = yield from _value(interrupts, session, thread, wanted[one], question, deadline)
    pending = yield from interrupts.pending(session)
    return {one: value for one, value in given.items() if one in pending} or None


class _Passed(Exception):
    """The thread has gone on without the answer."""


def _value(
    interrupts: Interrupts, session: str, thread: str, interrupt: Any, question: Entry, deadline: float
) -> Exchange[Any]:
    """The value of an answer. A question is asked again if the graph takes no such answer, or if it was deleted."""
    one = str(interrupt.id)
    while True:
        try:
            answered = yield from _wait(interrupts, session, one, question.seq, deadline)
        except NotFound:
            question = yield from _ask(interrupts, session, thread, interrupt)
            continue
        given = answered.item.get("answer")
        try:
            if given is None and answered.item.get(WITHDRAWN) is True:
                yield from _passed(session, one)
                raise InvalidAnswer("its asker was about to go on without one, and ended before")
            return value_of(interrupt, given if given is None or isinstance(given, str) else json_text(given))
        except InvalidAnswer as error:
            question = yield from ask_again(interrupts, session, interrupt, str(error))


def _wait(interrupts: Interrupts, session: str, one: str, seq: int, deadline: float) -> Exchange[Entry]:
    address = f"{place(session)}/questions/{seq}"
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        try:
            answer = yield Request("GET", address, params={"until": "answered"}, wait=min(left, WAIT_STEP_SECONDS))
        except ConditionNotMet:
            if left <= WAIT_STEP_SECONDS:
                raise
            if one not in (yield from interrupts.pending(session)):
                raise _Passed from None
        else:
            return entry(answer.json(), answer.etag)


def _passed(session: str, one: str) -> Exchange[None]:
    """Raise _Passed once an interrupt is no longer pending, whose question is skipped shortly before."""
    address = f"{place(session)}/state/{pending_path(one)}"
    try:
        yield Request("GET", address, params={"until": "absent"}, wait=PASS_SECONDS)
    except NotFound:
        pass
    except ConditionNotMet:
        return
    raise _Passed


def _ask(interrupts: Interrupts, session: str, thread: str, interrupt: Any) -> Exchange[Entry]:
    """Ask what a process without a display has left unasked, or whose question was deleted."""
    one = str(interrupt.id)
    told = (yield from interrupts.pending(session)).get(one, {})
    node = str(told.get("node", NODE))
    namespace, checkpoint, name = (str(told.get(part, "")) for part in ("namespace", "checkpoint", "task"))
    task = Task(session, thread, namespace, checkpoint, name, lambda: node, {one: interrupt}, ())
    yield from interrupts.ask(task)
    question = yield from interrupts.question(session, one)
    return question or (yield from _post(interrupts, session, item(task, one)))


def ask_again(interrupts: Interrupts, session: str, interrupt: Any, problem: str) -> Exchange[Entry]:
    """Ask an interrupt once more, since its answer was not taken."""
    last = yield from interrupts.question(session, str(interrupt.id))
    before = {} if last is None else last.item
    task = Task(session, "", "", "", "", lambda: str(before.get("node", NODE)), {str(interrupt.id): interrupt}, ())
    asked = {**item(task, str(interrupt.id)), **{name: before[name] for name in before if name in KEPT}}
    why = f"(The last answer was not taken: {text(problem, PROBLEM_CHARACTERS_MAX)})"
    asked["question"] = f"{question_text(interrupt, task.node())}\n\n{why}"
    return (yield from _post(interrupts, session, asked))


def _post(interrupts: Interrupts, session: str, asked: dict[str, Any]) -> Exchange[Entry]:
    posted = yield Request("POST", f"{place(session)}/questions", json=asked, agent=interrupts.agent)
    made = posted.json()["entries"][0]
    return entry({**made, "revision": posted.json()["revision"], "item": asked})


def resume(graph: Any, config: Any, *, wait: float = WAIT_SECONDS, to_end: bool = False, **options: Any) -> Any:
    """Wait until the questions of a thread's interrupts are answered on the board, and go on with the graph.

    Returns what `graph.invoke` returns, which may be the next interrupt; `to_end` goes on until nothing is left to do.
    A graph that waits for nothing goes on where it was. A skipped question gives the node None. If the thread goes on
    by another call meanwhile, what it asks then is waited for. Raises a TimeoutError, such as ConditionNotMet, if an
    answer is missing after `wait` seconds; the questions stay open. `options` are for `invoke`.
    """
    calls = _resumption(graph, config, wait, to_end, options)
    try:
        on, name, args, more = next(calls)
        while True:
            try:
                made = getattr(on or time, name)(*args, **more)
            except Exception as error:  # noqa: BLE001 - any code of a node; what is not expected is raised again.
                on, name, args, more = calls.throw(error)
            else:
                on, name, args, more = calls.send(made)
    except StopIteration as end:
        return end.value


async def aresume(graph: Any, config: Any, *, wait: float = WAIT_SECONDS, to_end: bool = False, **options: Any) -> Any:
    """As `resume`."""
    calls = _resumption(graph, config, wait, to_end, options)
    try:
        on, name, args, more = next(calls)
        while True:
            try:
                made = await (getattr(on, f"a{name}") if on else asyncio.sleep)(*args, **more)
            except Exception as error:  # noqa: BLE001 - as in `resume`.
                on, name, args, more = calls.throw(error)
            else:
                on, name, args, more = calls.send(made)
    except StopIteration as end:
        return end.value


def _resumption(graph: Any, config: Any, wait: float, to_end: bool, options: Given) -> Generator[Call, Any, Any]:
    """`resume` as calls, whose results are sent in."""
    saver = _saver(graph)
    deadline = time.monotonic() + wait
    state = yield graph, "get_state", (config,), {}
    while True:
        given: Given | None = {}
        if state.interrupts:
            left = max(deadline - time.monotonic(), 0.0)
            given = yield saver, "answers", (config, state.interrupts), {"wait": left}
        if given is None:
            state = yield from _other(graph, config, deadline)
            if not _is_pending(state):
                return state.values
            continue
        try:
            made = yield graph, "invoke", (_command(given), config), options
        except Exception as error:
            if not _is_invalid(error):
                raise
            yield saver, "ask_again", (config, _checked(state.interrupts, given), str(error)), {}
            continue
        before, state = state, (yield graph, "get_state", (config,), {})
        alike = len(given) == 1 and _is_like(before, state)
        if alike and _is_unheard(state, (yield saver, "interrupts", (config,), {})):
            made = yield graph, "invoke", (_command_without_id(given), config), options
            state = yield graph, "get_state", (config,), {}
        if not to_end or not _is_pending(state) or _is_same(before, state):
            return made
        deadline = time.monotonic() + wait


def _other(graph: Any, config: Any, deadline: float) -> Generator[Call, Any, Any]:
    """The state of a thread that another call runs, when that asks or ends."""
    while True:
        state = yield graph, "get_state", (config,), {}
        if state.interrupts or not _is_pending(state):
            return state
        if time.monotonic() > deadline:
            raise TimeoutError("the thread has gone on by another call, which neither asks nor ends")
        yield None, "sleep", (LOOK_SECONDS,), {}


def _is_pending(state: Any) -> bool:
    """Whether a graph has anything left to do. After a kill it may be a checkpoint alone, of tasks that have ended."""
    return bool(state.next or state.tasks)


def _is_same(before: Any, after: Any) -> bool:
    """Whether a graph has not gone on at all."""
    return bool(before.config == after.config and before.interrupts == after.interrupts)


def _saver(graph: Any) -> BlackboardSaver:
    from ..saver import BlackboardSaver

    saver = getattr(graph, "checkpointer", None)
    if not isinstance(saver, BlackboardSaver):
        raise UnsupportedValue(f"the graph's checkpointer is {type(saver).__name__}, not BlackboardSaver")
    return saver


def _command(given: Mapping[str, Any]) -> Any:
    from langgraph.types import Command

    # By id, since a value without one is stored, and answers the node's next interrupt too if the graph is run again.
    return Command(resume=dict(given)) if given else None


def _command_without_id(given: Mapping[str, Any]) -> Any:
    from langgraph.types import Command

    return Command(resume=next(iter(given.values())))


def _is_like(before: Any, after: Any) -> bool:
    """Whether a graph stands where it stood, at an interrupt that differs in its id alone."""
    if before.config != after.config or len(before.interrupts) != 1 or len(after.interrupts) != 1:
        return False
    old, new = before.interrupts[0], after.interrupts[0]
    return bool(old.id != new.id and old.value == new.value)


def _is_unheard(after: Any, pending: Mapping[str, Any]) -> bool:
    """Whether an interrupt has got no answer yet: in a subgraph without checkpoints it has another id in each run."""
    told = pending.get(str(after.interrupts[0].id), {})
    return bool(told.get("namespace") == "" and told.get("slot") == 0)


def _checked(raised: Iterable[Any], given: Mapping[str, Any]) -> list[Any]:
    """The interrupts that check their answers."""
    return [one for one in raised if one.id in given and getattr(one, "response_schema", None) is not None]


def _is_invalid(error: Exception) -> bool:
    try:
        from langgraph.errors import is_invalid_resume
    except ImportError:  # LangGraph before `response_schema`.
        return False
    return bool(is_invalid_resume(error))
