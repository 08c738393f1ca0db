"""Process of a graph that plans, drafts and polishes, as LangGraph's tutorial of prompt chaining does.

A model stands in for the tutorial's; `polish` waits for ever in the first run, so that the process can be killed in it.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from agent_blackboard.langgraph import BlackboardSaver


class State(TypedDict, total=False):
    """State of the tutorial's graph."""

    topic: str
    joke: str
    improved_joke: str
    final_joke: str


def main(url: str, trace: str, wait: str) -> None:
    """Run the graph, or go on with it, and print its final state."""

    def called(name: str) -> None:
        with Path(trace).open("a") as file:
            file.write(name + "\n")

    def generate_joke(state: State) -> dict[str, Any]:
        called("generate_joke")
        return {"joke": f"A joke about {state['topic']}!"}

    def improve_joke(state: State) -> dict[str, Any]:
        called("improve_joke")
        return {"improved_joke": state["joke"] + " With wordplay."}

    def polish_joke(state: State) -> dict[str, Any]:
        called("polish_joke")
        print("polishing", flush=True)
        if wait == "wait":
            threading.Event().wait()
        return {"final_joke": state["improved_joke"] + " And a twist."}

    def check_punchline(state: State) -> str:
        return "Pass" if "!" in state["joke"] else "Fail"

    graph = StateGraph(State)
    for node in (generate_joke, improve_joke, polish_joke):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "generate_joke")
    graph.add_conditional_edges("generate_joke", check_punchline, {"Pass": "improve_joke", "Fail": END})
    graph.add_edge("improve_joke", "polish_joke")
    graph.add_edge("polish_joke", END)
    with BlackboardSaver(url=url) as saver:
        chain = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "joke"}}
        begun = chain.get_state(config).next
        print(json.dumps(chain.invoke(None if begun else {"topic": "cats"}, config, durability="sync")), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
