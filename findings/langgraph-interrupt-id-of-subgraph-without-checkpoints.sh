#!/usr/bin/env bash
# langgraph 1.2.24: an interrupt in a subgraph compiled with checkpointer=False cannot be resumed by its id.
#
# The id is made from the subgraph's own task, and without checkpoints that task has another id in each run. So
# `Command(resume={id: …})` matches nothing: the same question is raised again under a new id, without an error,
# however often it is answered. A value without an id does resume it. If several interrupts are pending, the id is
# required, so there such a graph never gets on. A subgraph with checkpoints keeps its ids.
#
# Seen:
#   checkpointer=None: one id, answered
#   checkpointer=False: 4 ids, not answered
#   checkpointer=False, without the id: answered
#
# Needs python3 with venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.24 langgraph-checkpoint==4.3.2
"$at/venv/bin/python" - <<'PYTHON' >"$at/seen"
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    answer: str


def compiled(checkpointer):
    inner = StateGraph(State)
    inner.add_node("ask", lambda state: {"answer": interrupt("Send it?")})
    inner.add_edge(START, "ask")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile(checkpointer=checkpointer))
    outer.add_edge(START, "inner")
    return outer.compile(checkpointer=InMemorySaver())


config = {"configurable": {"thread_id": "t"}}
for checkpointer in (None, False):
    app = compiled(checkpointer)
    result = app.invoke({}, config)
    ids = [result["__interrupt__"][0].id]
    for _ in range(3):
        result = app.invoke(Command(resume={ids[-1]: "yes"}), config)
        if "__interrupt__" not in result:
            break
        ids.append(result["__interrupt__"][0].id)
    count = "one id" if len(set(ids)) == 1 else f"{len(set(ids))} ids"
    print(f"checkpointer={checkpointer}: {count},", "answered" if result.get("answer") == "yes" else "not answered")
result = app.invoke(Command(resume="yes"), config)
print("checkpointer=False, without the id:", "answered" if result.get("answer") == "yes" else "not answered")
PYTHON
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
checkpointer=None: one id, answered
checkpointer=False: 4 ids, not answered
checkpointer=False, without the id: answered
SEEN
