"""Answers to the interrupts of a thread: waits for them on the board, and goes on with the graph."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import ConditionNotMet, UnsupportedValue
from ...values import Entry, entry
from ..exchange import Exchange, Request
from ..sessions import place
from .interrupts import Interrupts, Task, item
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

KEPT = ("thread", "node", "checkpoint", "namespace")
"""The members of a question that stay when it is asked again."""

Given = dict[str, Any]
"""The values to resume with, by interrupt."""


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
    given: Given = {}
    for one, question in waiting.items():
        given[one] = yield from _value(interrupts, session, wanted[one], question, deadline)
    if not given:
        return given
    pending = yield from interrupts.pending(session)
    return {one: value for one, value in given.items() if one in pending} or None


def _value(interrupts: Interrupts, session: str, interrupt: Any, question: Entry, deadline: float) -> Exchange[Any]:
    """The value of an answer. A question whose answer is none that the graph takes is asked again."""
    while True:
        answered = yield from _wait(session, question.seq, deadline)
        given = answered.item.get("answer")
        try:
            return value_of(interrupt, None if given is None else str(given))
        except InvalidAnswer as error:
            question = yield from ask_again(interrupts, session, interrupt, str(error))


def _wait(session: str, seq: int, deadline: float) -> Exchange[Entry]:
    address = f"{place(session)}/questions/{seq}"
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        try:
            answer = yield Request("GET", address, params={"until": "answered"}, wait=min(left, WAIT_STEP_SECONDS))
        except ConditionNotMet:
            if left <= WAIT_STEP_SECONDS:
                raise
        else:
            return entry(answer.json(), answer.etag)


def _ask(interrupts: Interrupts, session: str, thread: str, interrupt: Any) -> Exchange[Entry]:
    """Ask what a process without a display has left unasked."""
    task = Task(session, thread, "", "", "", lambda: NODE, {str(interrupt.id): interrupt}, ())
    yield from interrupts.ask(task)
    question = yield from interrupts.question(session, str(interrupt.id))
    if question is None:
        raise UnsupportedValue(f"session {session!r} keeps no question of interrupt {interrupt.id}")
    return question


def ask_again(interrupts: Interrupts, session: str, interrupt: Any, problem: str) -> Exchange[Entry]:
    """Ask an interrupt once more, since its answer was not taken."""
    last = yield from interrupts.question(session, str(interrupt.id))
    before = {} if last is None else last.item
    task = Task(session, "", "", "", "", lambda: str(before.get("node", NODE)), {str(interrupt.id): interrupt}, ())
    asked = {**item(task, str(interrupt.id)), **{name: before[name] for name in before if name in KEPT}}
    why = f"(The last answer was not taken: {text(problem, PROBLEM_CHARACTERS_MAX)})"
    asked["question"] = f"{question_text(interrupt, task.node())}\n\n{why}"
    posted = yield Request("POST", f"{place(session)}/questions", json=asked, agent=interrupts.agent)
    made = posted.json()["entries"][0]
    return entry({**made, "revision": posted.json()["revision"], "item": asked})


def resume(graph: Any, config: Any, *, wait: float = WAIT_SECONDS, **options: Any) -> Any:
    """Wait until the questions of a thread's interrupts are answered on the board, and go on with the graph.

    Returns what `graph.invoke` returns, which may be the next interrupt. A graph that waits for nothing goes on where
    it was. A skipped question gives the node None. Raises ConditionNotMet, a TimeoutError, where an answer is missing
    after `wait` seconds; the questions stay open. `options` are for `invoke`.
    """
    saver = _saver(graph)
    deadline = time.monotonic() + wait
    while True:
        state = graph.get_state(config)
        if not state.interrupts:
            return graph.invoke(None, config, **options)
        given = saver.answers(config, state.interrupts, wait=max(deadline - time.monotonic(), 0.0))
        if given is None:
            return graph.get_state(config).values
        try:
            made = graph.invoke(_command(given), config, **options)
        except Exception as error:
            if not _is_invalid(error):
                raise
            saver.ask_again(config, _checked(state.interrupts, given), str(error))
            continue
        after = graph.get_state(config) if len(given) == 1 else None
        if after is not None and _is_like(state, after) and _is_unheard(after, saver.interrupts(config)):
            return graph.invoke(_command_without_id(given), config, **options)
        return made


async def aresume(graph: Any, config: Any, *, wait: float = WAIT_SECONDS, **options: Any) -> Any:
    """As `resume`."""
    saver = _saver(graph)
    deadline = time.monotonic() + wait
    while True:
        state = await graph.aget_state(config)
        if not state.interrupts:
            return await graph.ainvoke(None, config, **options)
        given = await saver.aanswers(config, state.interrupts, wait=max(deadline - time.monotonic(), 0.0))
        if given is None:
            return (await graph.aget_state(config)).values
        try:
            made = await graph.ainvoke(_command(given), config, **options)
        except Exception as error:
            if not _is_invalid(error):
                raise
            await saver.aask_again(config, _checked(state.interrupts, given), str(error))
            continue
        after = await graph.aget_state(config) if len(given) == 1 else None
        if after is not None and _is_like(state, after) and _is_unheard(after, await saver.ainterrupts(config)):
            return await graph.ainvoke(_command_without_id(given), config, **options)
        return made


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
