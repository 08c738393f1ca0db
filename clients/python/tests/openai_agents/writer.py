"""Writer of a conversation: adds turns until it is killed, each turn once however often it is started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from agent_blackboard.openai_agents import BlackboardSession


def turn(number: int) -> list[dict[str, str]]:
    """The items of a turn: a question, a call, its output and an answer."""
    return [
        {"role": "user", "content": f"turn {number}"},
        {"type": "function_call", "call_id": f"call {number}", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"call {number}", "output": "seen"},
        {"role": "assistant", "content": f"turn {number} is done"},
    ]


async def write(url: str, session_id: str, turns: int, killed_at: int) -> None:
    """Add the turns that are missing. At turn `killed_at` the process ends by SIGKILL while the call is under way."""
    session = BlackboardSession(session_id, url=url)
    done = len(await session.get_items()) // 4
    for number in range(done, turns):
        adding = asyncio.ensure_future(session.add_items(turn(number)))
        if number == killed_at:
            await asyncio.sleep(0)  # The call has begun: it is on its way, or done, or not.
            asyncio.get_running_loop().call_later(killed_at % 7 / 2000, os.kill, os.getpid(), signal.SIGKILL)
        await adding
        print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
