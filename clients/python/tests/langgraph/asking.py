"""Graph that asks before it sends, as a process: `start` runs it up to its question and waits there, `resume` resumes.

Arguments: the server's address, a prefix of sessions, and which of the two.
"""

from __future__ import annotations

import sys
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agent_blackboard.langgraph import BlackboardSaver, resume

CONFIG: Any = {"configurable": {"thread_id": "mail"}}


class State(TypedDict, total=False):
    draft: str
    sent: bool


def compiled(saver: BlackboardSaver) -> Any:
    graph = StateGraph(State)
    graph.add_node("write", lambda state: {"draft": "Tea at four?"})
    graph.add_node("send", lambda state: {"sent": interrupt("Send it?") == "yes"})
    graph.add_edge(START, "write")
    graph.add_edge("write", "send")
    graph.add_edge("send", END)
    return graph.compile(checkpointer=saver)


if __name__ == "__main__":
    url, prefix, command = sys.argv[1:]
    with BlackboardSaver(url=url, prefix=prefix) as saver:
        if command == "start":
            compiled(saver).invoke({}, CONFIG)
        print(resume(compiled(saver), CONFIG, wait=60))
