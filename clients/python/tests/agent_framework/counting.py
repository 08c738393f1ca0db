"""A workflow that counts, and that a signal ends in its work."""

from __future__ import annotations

import asyncio
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


if __name__ == "__main__":
    asyncio.run(counting(BlackboardCheckpointStorage(url=sys.argv[1], session=sys.argv[2]), int(sys.argv[3])).run(0))
