"""Display of a thread: its steps in the trajectories and its values in the state, beside what the saver needs."""

from __future__ import annotations

import json
import operator
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from agent_blackboard import Answer, Client
from agent_blackboard.langgraph import BlackboardSaver
from agent_blackboard.langgraph.display import steps

from .test_graphs import log_graph
from .threads import chain, config, id_of, put


class Chat(MessagesState, total=False):
    topic: str


def chat_graph(saver: Any) -> Any:
    call = {"name": "look_up", "args": {"word": "tea"}, "id": "call_1"}
    graph = StateGraph(Chat)
    graph.add_node("model", lambda state: {"messages": [AIMessage("Let me see.", tool_calls=[call])]})
    graph.add_node("note", lambda state: {"topic": "tea"})
    graph.add_edge(START, "model")
    graph.add_edge("model", "note")
    graph.add_edge("note", END)
    return graph.compile(checkpointer=saver)


def board(saver: BlackboardSaver, client: Client, thread_id: str = "t") -> Any:
    return client.session(saver.session_name(thread_id))


def items(log: Any) -> list[dict[str, Any]]:
    return [entry.item for entry in log.latest(1000)]


def test_each_superstep_is_an_entry_that_people_read(saver: BlackboardSaver, client: Client) -> None:
    chat_graph(saver).invoke({"messages": [HumanMessage("What is tea?")]}, config(checkpoint_ns=None))
    entries = board(saver, client).trajectories.latest(10)
    assert {entry.agent for entry in entries} == {"langgraph"}
    first, second, third = [entry.item for entry in entries]
    assert (first["step"], first["source"], first["text"]) == (-1, "input", "input: messages: user: What is tea?")
    assert (second["step"], second["text"]) == (1, "model: messages: assistant: Let me see.; calls look_up")
    wrote = second["nodes"][0]["wrote"]["messages"][0]
    assert second["nodes"][0]["node"] == "model"
    assert (wrote["role"], wrote["content"]) == ("assistant", "Let me see.")
    assert wrote["tool_calls"] == [{"name": "look_up", "args": {"word": "tea"}, "id": "call_1"}]
    assert (third["nodes"], third["text"]) == ([{"node": "note", "wrote": {"topic": "tea"}}], "note: topic: tea")


async def test_the_async_methods_show_the_same(url: str, prefix: str, client: Client) -> None:
    shown = []
    async with BlackboardSaver(url=url, prefix=prefix) as saver:
        graph = chat_graph(saver)
        graph.invoke({"messages": [HumanMessage("hi", id="1")]}, config("sync", checkpoint_ns=None))
        await graph.ainvoke({"messages": [HumanMessage("hi", id="1")]}, config("async", checkpoint_ns=None))
        for thread_id in ("sync", "async"):
            read = board(saver, client, thread_id)
            shown.append([item["text"] for item in items(read.trajectories)])
            assert read.state.get("langgraph/values/topic") == "tea"
        saver.close()
    assert shown[0] == shown[1]


def test_the_state_has_the_present_values_of_the_channels(saver: BlackboardSaver, client: Client) -> None:
    graph = chat_graph(saver)
    graph.invoke({"messages": [HumanMessage("hi")]}, config(checkpoint_ns=None))
    shown = board(saver, client).state.get("langgraph")
    assert (shown["step"], shown["values"]["topic"]) == (2, "tea")
    assert [message["role"] for message in shown["values"]["messages"]] == ["user", "assistant"]
    assert shown["checkpoint"] == id_of(graph.get_state(config(checkpoint_ns=None)).config)
    graph.update_state(config(checkpoint_ns=None), {"topic": "coffee"})
    assert board(saver, client).state.get("langgraph/values/topic") == "coffee"
    assert items(board(saver, client).trajectories)[-1]["changed"] == {"topic": "coffee"}


def test_going_back_shows_the_values_of_then(saver: BlackboardSaver, client: Client) -> None:
    graph = chat_graph(saver)
    graph.invoke({"messages": [HumanMessage("hi")]}, config(checkpoint_ns=None))
    early = next(state for state in graph.get_state_history(config(checkpoint_ns=None)) if state.next == ("model",))
    graph.update_state(early.config, {"topic": "water"}, as_node="note")
    shown = board(saver, client).state.get("langgraph/values")
    assert (shown["topic"], [message["role"] for message in shown["messages"]]) == ("water", ["user"])


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_delta_channels_are_shown_though_checkpoints_have_none(
    saver: BlackboardSaver, url: str, prefix: str, client: Client, durability: Any
) -> None:
    for turn in range(6):
        with BlackboardSaver(url=url, prefix=prefix) as other:
            graph = log_graph(other if turn % 2 else saver)
            graph.invoke({"n": turn, "log": [f"in{turn}"]}, config(checkpoint_ns=None), durability=durability)
            if durability == "exit":
                continue
            values = graph.get_state(config(checkpoint_ns=None)).values
            assert board(saver, client).state.get("langgraph/values") == values


def test_tasks_that_write_at_once_are_all_shown(
    saver: BlackboardSaver, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = put(saver, {"log": []})
    both = threading.Barrier(2)
    superstep = steps.Superstep

    def made_by_both() -> steps.Superstep:
        # Neither thread goes on before the other one has looked for the superstep too.
        both.wait(30)
        return superstep()

    def write(node: str) -> None:
        saver.put_writes(parent, [("log", [node])], node, f"~__pregel_pull, {node}")

    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as threads:
        patch.setattr(steps, "Superstep", made_by_both)
        list(threads.map(write, "bc"))
    put(saver, {"log": ["b", "c"]}, parent, step=1)
    nodes = items(board(saver, client).trajectories)[-1]["nodes"]
    assert nodes == [{"node": "b", "wrote": {"log": ["b"]}}, {"node": "c", "wrote": {"log": ["c"]}}]


def test_sends_and_subgraphs_have_their_nodes(saver: BlackboardSaver, client: Client) -> None:
    class State(TypedDict):
        done: Annotated[list[str], operator.add]

    inner = StateGraph(State)
    inner.add_node("work", lambda state: {"done": ["w"]})
    inner.add_edge(START, "work")
    outer = StateGraph(State)
    outer.add_node("worker", inner.compile())
    outer.add_conditional_edges(START, lambda state: [Send("worker", {"done": [name]}) for name in "ab"])
    outer.compile(checkpointer=saver).invoke({"done": []}, config(checkpoint_ns=None))
    entries = items(board(saver, client).trajectories)
    assert [node["node"] for node in entries[-1]["nodes"]] == ["worker", "worker"]
    below = [entry for entry in entries if entry.get("namespace", "").startswith("worker:")]
    assert [entry["nodes"][0]["node"] for entry in below if "nodes" in entry] == ["work", "work"]


def test_functions_show_what_they_return(saver: BlackboardSaver, client: Client) -> None:
    @task
    def double(number: int) -> int:
        return 2 * number

    @entrypoint(checkpointer=saver)
    def flow(number: int) -> int:
        return int(double(number).result()) + 1

    assert flow.invoke(4, config(checkpoint_ns=None)) == 9
    nodes = items(board(saver, client).trajectories)[-1]["nodes"]
    assert {node["node"]: node["wrote"] for node in nodes} == {"task": {"returned": 8}, "flow": {"returned": 9}}


def test_values_that_are_no_json_never_fail_a_graph(saver: BlackboardSaver, client: Client) -> None:
    class State(TypedDict, total=False):
        odd: Any

    odd = {"$blob": "0" * 64, "n": float("inf"), 3: {b"x"}, "text": "\ud800", "": [1 << 60], "..": {"/": None}}
    graph = StateGraph(State)
    graph.add_node("node", lambda state: {"odd": odd})
    graph.add_edge(START, "node")
    assert graph.compile(checkpointer=saver).invoke({}, config(checkpoint_ns=None)) == {"odd": odd}
    shown = board(saver, client).state.get("langgraph/values/odd")
    assert shown == {
        "blob": "0" * 64,
        "n": "inf",
        "3": ["<1 bytes>"],
        "text": "?",
        "": [str(1 << 60)],
        "..": {"/": None},
    }


def test_what_is_shown_of_large_values_is_bounded(saver: BlackboardSaver, client: Client) -> None:
    large = {f"channel {number}": ["x" * 100_000] * 100 for number in range(100)}
    put(saver, large, step=1)
    shown = board(saver, client).state.get("langgraph")
    assert len(shown["values"]) == 64
    assert len(json.dumps(shown)) < 64 * 20_000
    assert len(json.dumps(items(board(saver, client).trajectories))) < 20_000


def test_a_saver_with_a_serializer_of_its_own_shows_nothing(url: str, prefix: str, client: Client) -> None:
    class Own:
        def __init__(self) -> None:
            self.inner = BlackboardSaver(url=url).serde

        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return self.inner.dumps_typed(obj)

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return self.inner.loads_typed(data)

    for number, (options, shown) in enumerate(
        [({"serde": Own()}, False), ({"visible": False}, False), ({"serde": Own(), "visible": True}, True)]
    ):
        with BlackboardSaver(url=url, prefix=prefix, **options) as saver:
            chat_graph(saver).invoke({"messages": ["hi"]}, config(str(number), checkpoint_ns=None))
            read = board(saver, client, str(number))
            assert bool(items(read.trajectories)) is shown
            assert ("langgraph" in read.state.get()) is shown


@pytest.mark.parametrize(
    ("given", "agent", "author"),
    [(None, None, "langgraph"), (None, "writer", "writer"), ("mine", None, "mine"), ("mine", "writer", "writer")],
)
def test_the_author_is_the_savers_or_the_clients_agent(
    url: str, prefix: str, client: Client, given: Any, agent: Any, author: str
) -> None:
    with Client(url, agent=given) as own:
        saver = BlackboardSaver(own, prefix=prefix, agent=agent)
        put(saver, {"n": 1})
        assert [entry.agent for entry in board(saver, client).trajectories.latest(1)] == [author]


class Counting(Client):
    """A client that counts its requests, and loses the answers to some."""

    count: ClassVar[int] = 0
    lost: ClassVar[int] = 0

    def request(self, method: str, path: str, **options: Any) -> Answer:
        Counting.count += 1
        answer = super().request(method, path, **options)
        if Counting.lost and method == "POST" and "/transactions" in path:
            Counting.lost -= 1
            # As the transport does where an answer is lost: the same call once more.
            answer = super().request(method, path, **options)
        return answer


def test_a_display_costs_no_request(url: str, prefix: str) -> None:
    def requests(visible: bool, run: int) -> int:
        saver = BlackboardSaver(client, prefix=f"{prefix}{visible}-{run}:", visible=visible)
        Counting.count = 0
        chat_graph(saver).invoke({"messages": ["hi"]}, config(checkpoint_ns=None), durability="sync")
        return Counting.count

    with Counting(url) as client:
        # A write of LangGraph's threads that meets another one is sent again, so the fewest of some runs are compared.
        hidden, shown = (min(requests(visible, run) for run in range(4)) for visible in (False, True))
    assert hidden == shown


def test_a_lost_answer_shows_nothing_twice(url: str, prefix: str, client: Client) -> None:
    with Counting(url) as losing:
        saver = BlackboardSaver(losing, prefix=prefix)
        Counting.lost = 1000
        try:
            made = chain(saver, 5)
            put(saver, {"n": 9}, id="0", step=9)
        finally:
            Counting.lost = 0
        entries = items(board(saver, client).trajectories)
    assert [entry["checkpoint"] for entry in entries] == [*map(id_of, made), "0"]


def test_writers_of_one_thread_show_each_step_once(url: str, prefix: str, client: Client) -> None:
    savers = [BlackboardSaver(url=url, prefix=prefix) for _ in range(4)]
    made: list[str] = []

    def write(saver: BlackboardSaver) -> None:
        made.extend(id_of(stored) for stored in chain(saver, 10))

    writers = [threading.Thread(target=write, args=(saver,)) for saver in savers]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    read = board(savers[0], client)
    assert sorted(entry["checkpoint"] for entry in items(read.trajectories)) == sorted(made)
    assert read.state.get("langgraph/checkpoint") == max(made)
    for saver in savers:
        saver.close()


def test_a_deleted_run_is_forgotten_by_the_board_too(saver: BlackboardSaver, client: Client) -> None:
    graph = chat_graph(saver)
    for run_id in ("r1", "r2"):
        told: Any = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": run_id}}
        graph.invoke({"messages": [HumanMessage(f"of {run_id}")]}, told)
    saver.delete_for_runs(["r2"])
    read = board(saver, client)
    assert "of r2" not in json.dumps([items(read.trajectories), read.state.get("langgraph")])
    assert "of r1" in json.dumps(items(read.trajectories))
    graph.invoke({"messages": [HumanMessage("again")]}, config(checkpoint_ns=None))
    assert [message["content"] for message in read.state.get("langgraph/values/messages")][::2] == ["of r1", "again"]


def test_a_search_finds_what_a_graph_wrote(saver: BlackboardSaver, client: Client) -> None:
    chat_graph(saver).invoke({"messages": [HumanMessage("Zanzibar")]}, config(checkpoint_ns=None))
    read = board(saver, client)
    revision = read.describe()["revision"]
    hits = list(client.search("zanzibar", session=read.name, min_revision=revision))
    assert {hit["log"] for hit in hits} == {"trajectories"}
