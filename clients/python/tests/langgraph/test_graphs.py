"""Graphs on the saver, as LangGraph's guides use them: interrupts, time travel, subgraphs and delta channels."""

from __future__ import annotations

import operator
import sys
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from agent_blackboard.langgraph import BlackboardSaver, DeltaChainBroken

from .threads import config, found, id_of, ids


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Foo(TypedDict):
    foo: str
    bar: Annotated[list[str], operator.add]


class Bar(TypedDict):
    bar: Annotated[list[str], operator.add]


def foo_graph(saver: Any) -> Any:
    """The graph of the guide to persistence."""
    graph = StateGraph(Foo)
    graph.add_node("node_a", lambda state: {"foo": "a", "bar": ["a"]})
    graph.add_node("node_b", lambda state: {"foo": "b", "bar": ["b"]})
    graph.add_edge(START, "node_a")
    graph.add_edge("node_a", "node_b")
    graph.add_edge("node_b", END)
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_history_is_the_same_as_with_langgraphs_own_saver(saver: BlackboardSaver, durability: Any) -> None:
    told = []
    for one in (saver, InMemorySaver()):
        graph = foo_graph(one)
        graph.invoke({"foo": "", "bar": []}, config(checkpoint_ns=None), durability=durability)
        graph.update_state(config(checkpoint_ns=None), {"foo": "2", "bar": ["c"]})
        history = list(graph.get_state_history(config(checkpoint_ns=None)))
        told.append([(state.values, state.next, state.metadata["step"]) for state in history])
        if durability == "sync":
            back = next(state for state in history if state.next == ("node_b",))
            assert graph.invoke(None, back.config)["bar"] == ["a", "b"]
            assert len(list(graph.get_state_history(config(checkpoint_ns=None)))) == len(history) + 2
    assert told[0] == told[1]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="LangGraph interrupts async graphs from Python 3.11 on")
async def test_a_person_answers_an_interrupt_later(saver: BlackboardSaver, url: str, prefix: str) -> None:
    def assistant(state: Chat) -> Any:
        answer = interrupt({"query": state["messages"][-1].content})
        return {"messages": [AIMessage(f"the expert says: {answer['data']}")]}

    def compiled(one: BlackboardSaver) -> Any:
        graph = StateGraph(Chat)
        graph.add_node("assistant", assistant)
        graph.add_edge(START, "assistant")
        return graph.compile(checkpointer=one)

    asked = await compiled(saver).ainvoke({"messages": [HumanMessage("help")]}, config(checkpoint_ns=None))
    assert asked["__interrupt__"][0].value == {"query": "help"}
    await saver.aclose()
    async with BlackboardSaver(url=url, prefix=prefix) as other:
        graph = compiled(other)
        assert (await graph.aget_state(config(checkpoint_ns=None))).next == ("assistant",)
        done = await graph.ainvoke(Command(resume={"data": "do"}), config(checkpoint_ns=None))
        assert [message.content for message in done["messages"]] == ["help", "the expert says: do"]
        assert len([state async for state in graph.aget_state_history(config(checkpoint_ns=None))]) == 3


def test_subgraphs_and_sends_have_their_namespaces(saver: BlackboardSaver) -> None:
    inner = StateGraph(Foo, output_schema=Bar)
    inner.add_node("ask", lambda state: {"bar": [f"{state['foo']}={interrupt('?')}"]})
    inner.add_edge(START, "ask")
    outer = StateGraph(Foo)
    outer.add_node("inner", inner.compile())
    outer.add_conditional_edges(START, lambda state: [Send("inner", {"foo": name, "bar": []}) for name in "xy"])
    graph = outer.compile(checkpointer=saver)
    graph.invoke({"foo": "", "bar": []}, config(checkpoint_ns=None))
    paused = graph.get_state(config(checkpoint_ns=None), subgraphs=True)
    assert len(paused.tasks) == 2
    namespaces = {one.config["configurable"]["checkpoint_ns"] for one in saver.list(config(checkpoint_ns=None))}
    assert len(namespaces) == 3
    saver.prune(["t"])
    answers = {task.interrupts[0].id: task.id[:4] for task in paused.tasks}
    done = graph.invoke(Command(resume=answers), config(checkpoint_ns=None))
    assert sorted(text[:2] for text in done["bar"]) == ["x=", "y="]


def gather(state: list[str] | None, writes: list[list[str]]) -> list[str]:
    return [*(state or []), *(text for write in writes for text in write)]


class Log(TypedDict):
    log: Annotated[list[str], DeltaChannel(gather, snapshot_frequency=7)]
    n: int


def log_graph(saver: Any) -> Any:
    graph = StateGraph(Log)
    graph.add_node("a", lambda state: {"log": [f"a{state['n']}"], "n": state["n"] + 1})
    graph.add_node("b", lambda state: {"log": [f"b{state['n']}"]})
    graph.add_node("c", lambda state: {"log": [f"c{state['n']}"]})
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("a", "c")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", ["sync", "exit"])
@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8])
def test_a_pruned_thread_keeps_the_chains_of_its_delta_channels(
    saver: BlackboardSaver, turns: int, durability: Any
) -> None:
    graph, model = log_graph(saver), log_graph(InMemorySaver())
    for turn in range(turns):
        for one in (graph, model):
            one.invoke({"n": turn, "log": [f"in{turn}"]}, config(checkpoint_ns=None), durability=durability)
    expected = model.get_state(config(checkpoint_ns=None)).values
    before = len(ids(saver.list(config())))
    saver.prune(["t"])
    kept = ids(saver.list(config()))
    assert len(kept) < before or turns <= 2 or durability == "exit"
    assert len(kept) <= 8 * 3
    assert graph.get_state(config(checkpoint_ns=None)).values == expected
    saver.prune(["t"])
    assert ids(saver.list(config())) == kept
    saver.copy_thread("t", "copy")
    for thread in ("t", "copy"):
        further = graph.invoke({"n": 9, "log": ["in9"]}, config(thread, checkpoint_ns=None))
        assert further["log"] == [*expected["log"], "in9", "a9", "b10", "c10"]


def test_branches_of_delta_channels_are_those_of_langgraphs_own_saver(saver: BlackboardSaver) -> None:
    graphs = [log_graph(saver), log_graph(InMemorySaver())]
    for steps in (3, 5, 2, 9):
        for graph in graphs:
            for turn in range(2):
                graph.invoke({"n": turn, "log": [f"in{turn}"]}, config(checkpoint_ns=None))
            back = list(graph.get_state_history(config(checkpoint_ns=None)))[steps]
            branch = graph.update_state(back.config, {"log": ["edited"]}, as_node="c")
            graph.invoke({"n": 7, "log": ["branch"]}, branch)
        ours, theirs = (list(graph.get_state_history(config(checkpoint_ns=None))) for graph in graphs)
        assert [state.values for state in ours] == [state.values for state in theirs]
    saver.prune(["t"])
    ours, theirs = (graph.get_state(config(checkpoint_ns=None)) for graph in graphs)
    assert ours.values == theirs.values


async def test_a_delta_history_is_that_of_the_base_class(saver: BlackboardSaver) -> None:
    graph = log_graph(saver)
    for turn in range(4):
        graph.invoke({"n": turn, "log": [f"in{turn}"]}, config(checkpoint_ns=None))
    base: Any = super(BlackboardSaver, saver)
    for one in saver.list(config()):
        ours = saver.get_delta_channel_history(config=one.config, channels=["log", "n", "none"])
        assert ours == base.get_delta_channel_history(config=one.config, channels=["log", "n", "none"])
        assert ours == await saver.aget_delta_channel_history(config=one.config, channels=["log", "n", "none"])
    assert saver.get_delta_channel_history(config=config(), channels=["log"])["log"]["writes"]
    assert saver.get_delta_channel_history(config=config(), channels=[]) == {}
    assert saver.get_delta_channel_history(config=config("none"), channels=["log"]) == {"log": {"writes": []}}
    await saver.aclose()


def test_runs_that_a_delta_channel_is_made_of_are_not_deleted(saver: BlackboardSaver) -> None:
    graph = log_graph(saver)
    for run_id in ("r1", "r2", "r3"):
        graph.invoke({"n": 0, "log": [run_id]}, {"configurable": {"thread_id": "t"}, "metadata": {"run_id": run_id}})
    foo_graph(saver).invoke(
        {"foo": "", "bar": []}, {"configurable": {"thread_id": "plain"}, "metadata": {"run_id": "r1"}}
    )
    expected = graph.get_state(config(checkpoint_ns=None)).values
    before, plain = ids(saver.list(config())), ids(saver.list(config("plain")))
    with pytest.raises(DeltaChainBroken, match="delta channels"):
        saver.delete_for_runs(["r1"])
    assert (ids(saver.list(config())), ids(saver.list(config("plain")))) == (before, plain)
    assert graph.get_state(config(checkpoint_ns=None)).values == expected
    saver.delete_for_runs(["r3"])
    assert {one.metadata.get("run_id") for one in saver.list(config())} == {"r1", "r2"}
    assert graph.get_state(config(checkpoint_ns=None)).values["log"][0] == "r1"
    assert id_of(found(saver, config()).config) == max(ids(saver.list(config())))
