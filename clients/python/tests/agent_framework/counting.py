"""A workflow that counts, and that a signal ends in its work."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from agent_framework import CheckpointStorage, Executor, Workflow, WorkflowBuilder, WorkflowContext, handler

from agent_blackboard.agent_framework import BlackboardCheckpointStorage

LAST = 6


class Counter(Executor):
    """Sends numbers to itself, and keeps each with the process that saw it."""

    def __init__(self, killed_at: int) -> None:
        super().__init__(id="counter")
        self._killed_at = killed_at

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, list[list[int]]]) -> None:
        if number == self._killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        seen = [*(ctx.get_state("seen") or []), [number, os.getpid()]]
        ctx.set_state("seen", seen)
        await (ctx.send_message(number + 1) if number < LAST else ctx.yield_output(seen))


def counting(storage: CheckpointStorage, killed_at: int = -1) -> Workflow:
    counter = Counter(killed_at)
    builder = WorkflowBuilder(name="counting", start_executor=counter, checkpoint_storage=storage, output_from="all")
    return builder.add_edge(counter, counter).build()


async def main(url: str, session: str, killed_at: int) -> None:
    """Begin the workflow, or go on from its last checkpoint, and print what it saw."""
    async with BlackboardCheckpointStorage(url=url, session=session) as storage:
        latest = await storage.get_latest(workflow_name="counting")
        workflow = counting(storage, killed_at)
        begun = workflow.run(0) if latest is None else workflow.run(checkpoint_id=latest.checkpoint_id)
        print(json.dumps((await begun).get_outputs()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
