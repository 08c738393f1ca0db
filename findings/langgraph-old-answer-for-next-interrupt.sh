#!/usr/bin/env bash
# langgraph 1.2.24: running a graph again answers its next interrupt with the last answer.
#
# `Command(resume="…")` stores the answer with the checkpoint, and keeps it after the node has taken it. If the node then
# stops at a second interrupt, `invoke(None, config)` gives the stored answer to that one too. This call is how a run is
# continued after a crash, so a question that nobody was asked counts as answered, here "Delete it?" by a file's name.
# An answer by the interrupt's id, `Command(resume={id: "…"})`, is not stored in that way, and the graph waits.
#
# Seen:
#   one value: Which file? / Delete it? / deleted notes.txt: notes.txt
#   by id: Which file? / Delete it? / Delete it?
# Expected: the same from both.
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
    done: str


def ask(state):
    file = interrupt("Which file?")
    sure = interrupt("Delete it?")
    return {"done": f"deleted {file}: {sure}"}


def said(result):
    return result["__interrupt__"][0].value if "__interrupt__" in result else result["done"]


graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_edge(START, "ask")
app = graph.compile(checkpointer=InMemorySaver())
for name in ("one value", "by id"):
    config = {"configurable": {"thread_id": name}}
    first = app.invoke({}, config)
    answer = "notes.txt" if name == "one value" else {first["__interrupt__"][0].id: "notes.txt"}
    second = app.invoke(Command(resume=answer), config)
    again = app.invoke(None, config)
    print(f"{name}:", " / ".join(said(result) for result in (first, second, again)))
PYTHON
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
one value: Which file? / Delete it? / deleted notes.txt: notes.txt
by id: Which file? / Delete it? / Delete it?
SEEN
