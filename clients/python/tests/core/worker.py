"""Process of the worker tests: `quick` tasks end at once, `slow` ones once the state has `go`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agent_blackboard import AsyncClient, Client


def work(url: str, session: str, name: str, match: dict[str, Any], ttl: float) -> None:
    """Work by the synchronous client."""
    with Client(url, agent=name) as client:
        board = client.session(session)

        def called(task: Any) -> None:
            print(task.seq, flush=True)
            if task.item["work"] == "slow":
                board.state.wait("go", wait=600)

        worker = board.requests.worker(called, match, ttl=ttl)
        told(worker)
        worker.run()


async def work_async(url: str, session: str, name: str, match: dict[str, Any], ttl: float) -> None:
    """Work by the asynchronous client."""
    async with AsyncClient(url, agent=name) as client:
        board = client.session(session)

        async def called(task: Any) -> None:
            print(task.seq, flush=True)
            if task.item["work"] == "slow":
                await board.state.wait("go", wait=600)

        worker = board.requests.worker(called, match, ttl=ttl)
        told(worker)
        await worker.run()


def told(worker: Any) -> None:
    """Print a line when the worker is stopped."""
    stop = worker.stop

    def stopped() -> None:
        print("stopping", flush=True)
        stop()

    worker.stop = stopped


if __name__ == "__main__":
    url, session, name, kind, wanted, *rest = sys.argv[1:]
    chosen = ({"work": wanted}, float(rest[0]) if rest else 60.0)
    if kind == "sync":
        work(url, session, name, *chosen)
    else:
        asyncio.run(work_async(url, session, name, *chosen))
    print("ended", flush=True)
