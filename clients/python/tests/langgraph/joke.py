"""Prompt chain of LangGraph's guide to workflows, without a model, as a process that kills itself midway.

Arguments: the server's address, a prefix of sessions, a file that each node adds its name to, the graph (`chain` or
`parallel`) and the node that kills the process the first time.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from agent_blackboard.langgraph import BlackboardSaver

URL, PREFIX, FILE, GRAPH, DEADLY = sys.argv[1:]
CONFIG: Any = {"configurable": {"thread_id": "joke"}}


class State(TypedDict, total=False):
    topic: str
    joke: str
    story: str
    poem: str
    final: str


def ran(node: str) -> None:
    """Note that a node ran; a deadly one ends the process once the checkpointer has what came before it."""
    again = node in Path(FILE).read_text().split() if Path(FILE).exists() else False
    with open(FILE, "a") as file:
        file.write(f"{node}\n")
    if node != DEADLY or again:
        return
    with BlackboardSaver(url=URL, prefix=PREFIX) as saver:
        deadline = time.monotonic() + 30
        while not stored(saver) and time.monotonic() < deadline:
            time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def stored(saver: BlackboardSaver) -> bool:
    found = saver.get_tuple(CONFIG)
    if found is None:
        return False
    written = {channel for _, channel, _ in found.pending_writes or []}
    before = f"branch:to:{DEADLY}" in found.checkpoint["channel_values"]
    return {"joke", "story"} <= written if GRAPH == "parallel" else before


def node(name: str, **changes: str) -> Any:
    def run(state: State) -> dict[str, str]:
        ran(name)
        return {key: value.format(**{"joke": "", **state}) for key, value in changes.items()}

    return run


def compiled(saver: BlackboardSaver) -> Any:
    graph = StateGraph(State)
    if GRAPH == "chain":
        graph.add_node("generate_joke", node("generate_joke", joke="{topic}: why?"))
        graph.add_node("improve_joke", node("improve_joke", joke="{joke} Because."))
        graph.add_node("polish_joke", node("polish_joke", final="{joke} Ha!"))
        graph.add_edge(START, "generate_joke")
        graph.add_conditional_edges(
            "generate_joke",
            lambda state: "Fail" if "?" in state["joke"] else "Pass",
            {"Fail": "improve_joke", "Pass": END},
        )
        graph.add_edge("improve_joke", "polish_joke")
        graph.add_edge("polish_joke", END)
    else:
        for kind in ("joke", "story", "poem"):
            graph.add_node(f"call_{kind}", node(f"call_{kind}", **{kind: f"a {kind} of {{topic}}"}))
            graph.add_edge(START, f"call_{kind}")
            graph.add_edge(f"call_{kind}", "aggregator")
        graph.add_node("aggregator", node("aggregator", final="{joke}, {story}, {poem}"))
        graph.add_edge("aggregator", END)
    return graph.compile(checkpointer=saver)


if __name__ == "__main__":
    with BlackboardSaver(url=URL, prefix=PREFIX) as saver:
        graph = compiled(saver)
        begun = graph.get_state(CONFIG).next
        print(graph.invoke(None if begun else {"topic": "cats"}, CONFIG)["final"])
