"""Interrupts as questions of the board: asked once, answered there or in the graph, and resumed by any process."""

from __future__ import annotations

import asyncio
import operator
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from agent_blackboard import Client, ConditionNotMet, Entry, UnsupportedValue
from agent_blackboard.langgraph import BlackboardSaver, aresume, resume
from agent_blackboard.langgraph.display import answers

from .asking import compiled as mail
from .test_display import Counting, board
from .threads import config, put

T: Any = config(checkpoint_ns=None)
ASKING = Path(__file__).with_name("asking.py")


class Said(TypedDict):
    said: Annotated[list[Any], operator.add]


def asker(*questions: Any, **options: Any) -> Any:
    """A node that asks one question after another."""
    return lambda state: {"said": [interrupt(question, **options) for question in questions]}


def asking(saver: Any, **nodes: Any) -> Any:
    """A graph of nodes that run beside one another."""
    graph = StateGraph(Said)
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    return graph.compile(checkpointer=saver)


def questions(saver: BlackboardSaver, client: Client, thread_id: str = "t") -> list[Entry]:
    return board(saver, client, thread_id).questions.latest(100)


def told(entries: list[Entry]) -> dict[str, Any]:
    """The questions in order, with their answers; what is open has an ellipsis."""
    return {entry.item["question"]: entry.item.get("answer", ...) for entry in entries}


def answer(saver: BlackboardSaver, client: Client, text: str | None, thread_id: str = "t") -> None:
    """Answer or skip the open question of a thread."""
    asked = board(saver, client, thread_id).questions
    (entry,) = [entry for entry in asked.latest(100) if "answer" not in entry.item]
    if text is None:
        asked.skip(entry.seq)
    else:
        asked.answer(entry.seq, text)


def test_an_interrupt_is_an_open_question_in_the_inbox(saver: BlackboardSaver, client: Client) -> None:
    value = {"question": "Which colour?", "options": ["red", "blue"], "draft": "A poster"}
    asking(saver, paint=asker(value)).invoke({"said": []}, T)
    (entry,) = [entry for entry in client.inbox() if entry.session == saver.session_name("t")]
    item = entry.item
    assert (item["question"], item["options"]) == ("Which colour?", ["red", "blue"])
    assert (item["thread"], item["node"], item["value"]) == ("t", "paint", value)
    assert entry.agent == "langgraph"
    assert saver.interrupts(T)[item["interrupt"]]["node"] == "paint"
    assert board(saver, client).state.get("langgraph/interrupts").keys() == {item["interrupt"]}


def test_an_answer_on_the_board_resumes_the_graph(saver: BlackboardSaver, client: Client) -> None:
    graph = mail(saver)
    graph.invoke({}, T)
    answer(saver, client, "yes")
    assert resume(graph, T) == {"draft": "Tea at four?", "sent": True}
    assert saver.interrupts(T) == {}
    assert resume(graph, T) == {"draft": "Tea at four?", "sent": True}, "a finished graph has its result"


async def test_the_async_methods_resume_too(saver: BlackboardSaver, client: Client) -> None:
    graph = asking(saver, ask=asker("first", "second"))
    await graph.ainvoke({"said": []}, T)
    answer(saver, client, "one")
    paused = await aresume(graph, T)
    assert paused["__interrupt__"][0].value == "second"
    answer(saver, client, "two")
    assert await aresume(graph, T) == {"said": ["one", "two"]}
    await saver.aclose()


def test_resume_waits_for_an_answer_that_comes_later(saver: BlackboardSaver, client: Client) -> None:
    graph = mail(saver)
    graph.invoke({}, T)
    with pytest.raises(ConditionNotMet):
        resume(graph, T, wait=0.1)
    assert told(questions(saver, client)) == {"Send it?": ...}
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(resume(graph, T, wait=60)))
    waiting.start()
    answer(saver, client, "no")
    waiting.join(60)
    assert results == [{"draft": "Tea at four?", "sent": False}]


def test_a_skipped_question_gives_the_node_none(saver: BlackboardSaver, client: Client) -> None:
    graph = asking(saver, ask=asker("Well?"))
    graph.invoke({"said": []}, T)
    answer(saver, client, None)
    assert resume(graph, T) == {"said": [None]}


def test_a_killed_process_is_resumed_by_another_one(url: str, prefix: str, client: Client) -> None:
    command = [sys.executable, str(ASKING), url, prefix]
    waiting = subprocess.Popen([*command, "start"])
    saver = BlackboardSaver(url=url, prefix=prefix)
    asked = client.session(saver.session_name("mail")).questions
    deadline = time.monotonic() + 60
    while not (client.session(saver.session_name("mail")).exists() and asked.latest(1)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    waiting.send_signal(signal.SIGKILL)
    assert waiting.wait(60) == -signal.SIGKILL
    asked.answer(1, "yes")
    again = subprocess.run([*command, "resume"], capture_output=True, text=True, timeout=120)
    assert (again.stdout.strip(), again.returncode) == ("{'draft': 'Tea at four?', 'sent': True}", 0), again.stderr
    assert [entry.item["answer"] for entry in asked.latest(10)] == ["yes"]
    saver.close()


@pytest.mark.parametrize("by_id", [True, False])
def test_an_answer_to_the_graph_closes_the_question(saver: BlackboardSaver, client: Client, by_id: bool) -> None:
    graph = asking(saver, ask=asker("first", "second", "third"))
    for given in ("one", {"n": 2}, ""):
        paused = graph.invoke({"said": []}, T) if given == "one" else graph.get_state(T)
        raised = paused["__interrupt__"][0] if given == "one" else paused.interrupts[0]
        graph.invoke(Command(resume={raised.id: given} if by_id or given == "" else given), T)
    assert graph.get_state(T).values == {"said": ["one", {"n": 2}, ""]}
    assert told(questions(saver, client)) == {"first": "one", "second": '{"n":2}', "third": None}
    assert saver.interrupts(T) == {}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_the_question_has_the_answer_that_the_graph_got(
    saver: BlackboardSaver, client: Client, durability: Any
) -> None:
    graph = asking(saver, ask=asker("Well?"))
    for number in range(5):
        graph.invoke({"said": []}, T, durability=durability)
        graph.invoke(Command(resume=f"answer {number}"), T, durability=durability)
        # With "exit" the saver sees no answers, only the last checkpoint.
        expected = None if durability == "exit" else f"answer {number}"
        assert questions(saver, client)[-1].item["answer"] == expected


def test_interrupts_beside_one_another_are_answered_together(saver: BlackboardSaver, client: Client) -> None:
    graph = asking(saver, a=asker("of a"), b=asker("of b", "then"), c=lambda state: {"said": ["c"]})
    graph.invoke({"said": []}, T)
    assert sorted(told(questions(saver, client))) == ["of a", "of b"]
    asked = board(saver, client).questions
    for entry in asked.latest(10):
        asked.answer(entry.seq, entry.item["question"].upper())
    assert resume(graph, T)["__interrupt__"][0].value == "then"
    answer(saver, client, "at last")
    assert sorted(resume(graph, T)["said"]) == ["OF A", "OF B", "at last", "c"]
    assert len(questions(saver, client)) == 3


def test_running_an_interrupted_graph_again_asks_nothing_twice(saver: BlackboardSaver, url: str, prefix: str) -> None:
    nodes = {"a": lambda state: {"said": [interrupt({"question": "of a", "at": time.time()})]}, "b": asker("of b")}
    graph = asking(saver, **nodes)
    graph.invoke({"said": []}, T)
    with BlackboardSaver(url=url, prefix=prefix) as other, Client(url) as client:
        for again in (graph, asking(other, **nodes)):
            again.invoke(None, T)
            assert sorted(told(questions(saver, client)).items()) == [("of a", ...), ("of b", ...)]
            assert len(questions(saver, client)) == 2


def test_a_thread_that_goes_on_closes_what_it_had_asked(saver: BlackboardSaver, client: Client) -> None:
    graph = asking(saver, ask=asker("Well?"))
    graph.invoke({"said": []}, T)
    graph.invoke({"said": ["new"]}, T)
    first, second = questions(saver, client)
    assert (first.item["answer"], first.item["skipped"]) == (None, True)
    assert "answer" not in second.item
    early = next(state for state in graph.get_state_history(T) if state.next == ("ask",) and state.tasks)
    graph.invoke(None, early.config)
    assert ["answer" in entry.item for entry in questions(saver, client)] == [True, True, False]
    fork = graph.update_state(early.config, {"said": ["forked"]}, as_node="__start__")
    graph.invoke(None, fork)
    assert ["answer" in entry.item for entry in questions(saver, client)] == [True, True, True, False]
    answer(saver, client, "yes")
    assert resume(graph, T)["said"][-1] == "yes"


@pytest.mark.parametrize("method", [resume, aresume])
def test_a_wait_turns_to_what_new_input_asks(saver: BlackboardSaver, client: Client, method: Any) -> None:
    taken: list[Any] = []

    def ask(state: Said) -> Any:
        taken.append(interrupt(f"after {state['said'][-1]}"))
        return {"said": taken[-1:]}

    graph = asking(saver, ask=ask)
    graph.invoke({"said": ["old"]}, T)
    results: list[Any] = []

    def wait() -> None:
        result = method(graph, T, wait=60)
        results.append(asyncio.run(result) if method is aresume else result)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.5)
    graph.invoke({"said": ["new"]}, T)
    waiting.join(1)
    assert (results, taken) == ([], [])
    assert told(questions(saver, client)) == {"after old": None, "after new": ...}
    answer(saver, client, "yes")
    waiting.join(60)
    assert results == [{"said": ["old", "new", "yes"]}]
    assert taken == ["yes"]


def test_a_wait_ends_with_a_thread_that_ends(saver: BlackboardSaver, client: Client) -> None:
    graph = mail(saver)
    graph.invoke({}, T)
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(resume(graph, T, wait=60)))
    waiting.start()
    time.sleep(0.5)
    graph.invoke(Command(resume="yes"), T)
    waiting.join(60)
    assert results == [{"draft": "Tea at four?", "sent": True}]


def test_a_skip_of_a_killed_process_is_no_answer(saver: BlackboardSaver, client: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(answers, "PASS_SECONDS", 0.1)
    graph = mail(saver)
    graph.invoke({}, T)
    # As a process leaves it that is killed between the skip and the commit by which the thread goes on.
    board(saver, client).questions.patch(1, {"withdrawn": True})
    answer(saver, client, None)
    with pytest.raises(ConditionNotMet):
        resume(graph, T, wait=0.5)
    answer(saver, client, "yes")
    assert resume(graph, T)["sent"] is True


@pytest.mark.parametrize("checkpointer", [None, True, False])
def test_an_interrupt_of_a_subgraph_is_asked_once_and_resumed(
    saver: BlackboardSaver, client: Client, checkpointer: bool | None
) -> None:
    inner = StateGraph(Said)
    inner.add_node("ask", asker("below"))
    inner.add_edge(START, "ask")
    graph = asking(saver, inner=inner.compile(checkpointer=checkpointer))
    graph.invoke({"said": []}, T)
    assert told(questions(saver, client)) == {"below": ...}
    assert len(questions(saver, client)) == 1
    answer(saver, client, "yes")
    assert resume(graph, T) == {"said": ["yes"]}
    assert all("answer" in entry.item for entry in questions(saver, client))
    assert saver.interrupts(T) == {}


def test_sends_to_subgraphs_ask_a_question_each(saver: BlackboardSaver, client: Client) -> None:
    inner = StateGraph(Said)
    inner.add_node("ask", lambda state: {"said": [interrupt(f"{state['said'][-1]}?")]})
    inner.add_edge(START, "ask")
    outer = StateGraph(Said)
    outer.add_node("inner", inner.compile())
    outer.add_conditional_edges(START, lambda state: [Send("inner", {"said": [name]}) for name in "xy"])
    graph = outer.compile(checkpointer=saver)
    graph.invoke({"said": []}, T)
    asked = board(saver, client).questions
    assert sorted(entry.item["question"] for entry in asked.latest(10)) == ["x?", "y?"]
    for entry in asked.latest(10):
        asked.answer(entry.seq, entry.item["question"] + "!")
    assert sorted(set(resume(graph, T)["said"])) == ["x", "x?!", "y", "y?!"]


class Count(BaseModel):
    n: int


def test_an_answer_that_is_not_taken_is_asked_for_again(saver: BlackboardSaver, client: Client) -> None:
    graph = asking(saver, ask=asker("How many?", response_schema=Count))
    graph.invoke({"said": []}, T)
    answer(saver, client, "many")
    with pytest.raises(ConditionNotMet):
        resume(graph, T, wait=0.5)
    again = questions(saver, client)[-1]
    assert again.item["question"].startswith("How many?\n\n(The last answer was not taken: ")
    assert (again.item["thread"], again.item["node"]) == ("t", "ask")
    answer(saver, client, '{"n": 3}')
    assert resume(graph, T) == {"said": [Count(n=3)]}
    graph.invoke({"said": []}, T)
    with pytest.raises(ValidationError):
        graph.invoke(Command(resume="many"), T)
    answer(saver, client, '{"n": 4}')
    assert resume(graph, T)["said"][-1] == Count(n=4)


def approval(*decisions: str, count: int = 1) -> dict[str, Any]:
    request = {"name": "send_mail", "args": {"to": "x"}, "description": "Send a mail to x"}
    config = {"action_name": "send_mail", "allowed_decisions": list(decisions)}
    return {"action_requests": [request] * count, "review_configs": [config]}


@pytest.mark.parametrize(
    ("decisions", "given", "taken"),
    [
        (("approve", "reject"), "approve", {"type": "approve"}),
        (("approve", "reject"), " Approve ", {"type": "approve"}),
        (("approve", "reject"), "too long", {"type": "reject", "message": "too long"}),
        (("approve", "respond"), "too long", {"type": "respond", "message": "too long"}),
        (("approve", "reject"), None, {"type": "reject"}),
        (("edit",), '{"type": "edit", "edited_action": {}}', {"type": "edit", "edited_action": {}}),
    ],
)
def test_an_approval_is_answered_by_a_word(
    saver: BlackboardSaver, client: Client, decisions: Any, given: str | None, taken: Any
) -> None:
    graph = asking(saver, ask=asker(approval(*decisions, count=2)))
    graph.invoke({"said": []}, T)
    asked = questions(saver, client)[0].item
    assert asked["question"] == "Send a mail to x\n\nSend a mail to x"
    assert asked.get("options", []) == [one for one in ("approve", "reject") if one in decisions]
    answer(saver, client, given)
    assert resume(graph, T) == {"said": [{"decisions": [taken, taken]}]}


def test_an_approval_takes_only_what_is_allowed(saver: BlackboardSaver, client: Client) -> None:
    graph = asking(saver, ask=asker(approval("approve")))
    graph.invoke({"said": []}, T)
    answer(saver, client, "reject")
    with pytest.raises(ConditionNotMet):
        resume(graph, T, wait=0.5)
    answer(saver, client, '{"decisions": [{"type": "approve"}]}')
    assert resume(graph, T) == {"said": [{"decisions": [{"type": "approve"}]}]}


def test_a_node_that_fails_after_its_answer_is_run_with_it_again(saver: BlackboardSaver, client: Client) -> None:
    runs: list[Any] = []

    def fails_once(state: Said) -> Any:
        runs.append(interrupt("Well?"))
        if len(runs) == 1:
            raise RuntimeError("no network")
        return {"said": runs}

    graph = asking(saver, ask=fails_once)
    graph.invoke({"said": []}, T)
    answer(saver, client, "yes")
    with pytest.raises(RuntimeError, match="no network"):
        resume(graph, T)
    assert resume(graph, T) == {"said": ["yes", "yes"]}
    assert len(questions(saver, client)) == 1


def test_a_copied_thread_has_questions_of_its_own(saver: BlackboardSaver, client: Client) -> None:
    graph = mail(saver)
    graph.invoke({}, T)
    saver.copy_thread("t", "copy")
    answer(saver, client, "no")
    assert questions(saver, client, "copy")[0].item["thread"] == "copy"
    answer(saver, client, "yes", "copy")
    assert resume(graph, T)["sent"] is False
    assert resume(graph, config("copy", checkpoint_ns=None))["sent"] is True


def test_deleted_and_pruned_threads_leave_no_open_question(saver: BlackboardSaver, client: Client) -> None:
    graph = mail(saver)
    named: Any = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": "r1"}}
    graph.invoke({}, named)
    saver.prune(["t"])
    assert told(questions(saver, client)) == {"Send it?": ...}
    saver.delete_for_runs(["r1"])
    assert questions(saver, client) == []
    graph.invoke({}, T)
    saver.delete_thread("t")
    graph.invoke({}, T)
    assert told(questions(saver, client)) == {"Send it?": ...}
    answer(saver, client, "yes")
    assert resume(graph, T)["sent"] is True


def test_a_question_that_no_display_asked_is_asked_by_resume(url: str, prefix: str, client: Client) -> None:
    with BlackboardSaver(url=url, prefix=prefix, visible=False) as hidden:
        mail(hidden).invoke({}, T)
        with pytest.raises(UnsupportedValue, match="visible=True"):
            resume(mail(hidden), T)
    with BlackboardSaver(url=url, prefix=prefix) as saver:
        with pytest.raises(ConditionNotMet):
            resume(mail(saver), T, wait=0.1)
        answer(saver, client, "yes")
        assert resume(mail(saver), T)["sent"] is True
        assert saver.interrupts(T) == {}
    with pytest.raises(UnsupportedValue, match="checkpointer"):
        resume(StateGraph(Said).add_node("a", asker("?")).add_edge(START, "a").compile(), T)


@pytest.mark.parametrize("meanwhile", [True, False])
def test_a_question_that_was_deleted_is_asked_again(saver: BlackboardSaver, client: Client, meanwhile: bool) -> None:
    graph = mail(saver)
    graph.invoke({}, T)
    asked = board(saver, client).questions
    deleting = threading.Timer(0.3 if meanwhile else 0, asked.clear)
    deleting.start()
    if not meanwhile:
        deleting.join()
    with ThreadPoolExecutor(1) as thread:
        resumed = thread.submit(resume, graph, T, wait=60)
        deadline = time.monotonic() + 60
        while not (found := questions(saver, client)) or found[-1].seq == 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        again = found[-1].item
        assert (again["question"], again["thread"], again["node"]) == ("Send it?", "t", "send")
        answer(saver, client, "yes")
        assert resumed.result()["sent"] is True
    assert saver.interrupts(T) == {}


def test_an_answer_that_is_no_text_is_its_json(saver: BlackboardSaver, client: Client) -> None:
    graph = asking(saver, ask=asker("Well?"))
    graph.invoke({"said": []}, T)
    board(saver, client).questions.patch(1, {"answer": {"a": 1}})
    assert resume(graph, T) == {"said": ['{"a":1}']}


def test_a_lost_answer_asks_nothing_twice(url: str, prefix: str, client: Client) -> None:
    with Counting(url) as losing:
        saver = BlackboardSaver(losing, prefix=prefix)
        graph = asking(saver, a=asker("of a", "then"), b=asker("of b"))
        Counting.lost = 1000
        try:
            raised = graph.invoke({"said": []}, T)["__interrupt__"]
            graph.invoke(Command(resume={one.id: "yes" for one in raised}), T)
        finally:
            Counting.lost = 0
        entries = questions(saver, client)
    assert sorted(told(entries).items(), key=str) == [("of a", "yes"), ("of b", "yes"), ("then", ...)]
    assert len(entries) == 3


def test_a_checkpoint_alone_asks_nothing(saver: BlackboardSaver, client: Client) -> None:
    put(saver, {"n": 1})
    assert questions(saver, client) == []
    assert "interrupts" not in board(saver, client).state.get("langgraph")
