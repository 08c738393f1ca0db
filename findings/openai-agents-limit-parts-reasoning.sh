#!/usr/bin/env bash
# openai-agents 0.24.0: SQLiteSession parts a call from its reasoning.
#
# Reasoning models answer with a reasoning item before each call of a tool, and the Responses API wants both back
# together. `SQLiteSession.get_items(limit=n)` counts items alone, and `pop_item()` takes the newest item alone. So with a
# limit that falls between the two, the next turn begins with a call whose reasoning is missing; and after the call and
# its output were popped, its reasoning is left at the end with nothing behind it.
#
# Seen: a history of message, reasoning, call, output.
#   limit=2 gives: function_call, function_call_output
#   two pops leave: message, reasoning
#
# A store of sessions that keeps such a history must do the pairing itself. Needs python3 with venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check openai-agents==0.24.0
"$at/venv/bin/python" - <<'PYTHON' >"$at/seen"
import asyncio

from agents import SQLiteSession

HISTORY = [
    {"type": "message", "role": "user", "content": "Is the printer free?"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "yes"},
]


def kinds(items):
    return ", ".join(item["type"] for item in items)


async def main():
    session = SQLiteSession("one")
    await session.add_items(HISTORY)
    print("limit=2 gives:", kinds(await session.get_items(limit=2)))
    await session.pop_item()
    await session.pop_item()
    print("two pops leave:", kinds(await session.get_items()))


asyncio.run(main())
PYTHON
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
limit=2 gives: function_call, function_call_output
two pops leave: message, reasoning
SEEN
