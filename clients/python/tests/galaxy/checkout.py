"""Check of the observer against Galaxy's own classes from a UFO checkout: bus, orchestrator, device manager, agent.

    python clients/python/tests/galaxy/checkout.py --checkout /tmp/UFO --url http://127.0.0.1:8733

runs from the repository's root with the packages of `requirements/checkout.txt`, and prints a line a check. It ends
with a status other than 0 at the first check that fails. Replaced are the connections to devices, and packages that no
check reaches. The checkout is only read.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from agent_blackboard import AsyncClient
from agent_blackboard.galaxy import BlackboardObserver

TASKS = 40
AWAY_URL = "http://127.0.0.1:9"


def imported(checkout: Path) -> None:
    """Make the checkout's packages importable, with stubs for what is not installed."""
    sys.path[:0] = [str(checkout), str(Path(__file__).parents[1] / "checkout")]
    import platform_stubs

    platform_stubs.STUBBED |= {"matplotlib", "networkx", "numpy"}
    platform_stubs.install()
    os.chdir(tempfile.mkdtemp())  # Galaxy writes its logs below the working directory.
    Path("config").symlink_to(checkout / "config")


async def devices_of(count: int) -> Any:
    """Galaxy's device manager with connected devices, whose answers are made here."""
    from galaxy.client.device_manager import ConstellationDeviceManager
    from galaxy.core.types import ExecutionResult

    manager = ConstellationDeviceManager()

    async def connect(device: Any, message_processor: Any = None) -> None:
        manager.device_registry.update_device_status(device.device_id, type(device.status).CONNECTED)

    async def send(device_id: str, request: Any) -> Any:
        if request.task_id == "task_7":
            return ExecutionResult(request.task_id, "failed", error="the window is closed")
        if request.task_id == "task_9":
            raise ConnectionError("the device is gone")
        return ExecutionResult(request.task_id, "completed", {"device": device_id, "shot": "A" * 200_000})

    async def nothing(*args: Any, **kwargs: Any) -> Any:
        return {}

    manager.connection_manager.connect_to_device = connect
    manager.connection_manager.send_task_to_device = send
    manager.connection_manager.request_device_info = nothing
    manager.heartbeat_manager.start_heartbeat = lambda *args: None
    for number in range(count):
        await manager.register_device(f"device_{number}", "ws://none", "linux", ["shell"], {"room": number})
    return manager


def constellation_of(count: int) -> Any:
    """Galaxy's constellation: each task depends on the one half its number."""
    from galaxy.constellation import TaskConstellation, TaskStar, TaskStarLine

    constellation = TaskConstellation(name="checked")
    for number in range(1, count + 1):
        target = f"device_{number % 4}"
        constellation.add_task(TaskStar(f"task_{number}", f"name {number}", "do it", target_device_id=target))
        if number > 1:
            constellation.add_dependency(
                TaskStarLine.create_unconditional(f"task_{number // 2}", f"task_{number}", "after it")
            )
    return constellation


async def run(observer: BlackboardObserver) -> tuple[Any, Any, float]:
    """Run a constellation by Galaxy's orchestrator, with an agent's events; the time it took, in seconds."""
    from galaxy.constellation import TaskConstellationOrchestrator
    from galaxy.core.events import AgentEvent, ConstellationEvent, EventType, get_event_bus

    bus = get_event_bus()
    bus.subscribe(observer)
    begun = time.monotonic()
    try:
        manager = await devices_of(4)
        constellation = constellation_of(TASKS)
        output = {"thought": "split it", "status": "CONTINUE", "constellation": None}
        kinds = ("constellation", "response")
        await bus.publish_event(
            AgentEvent(EventType.AGENT_RESPONSE, "w", time.time(), {}, "constellation_agent", *kinds, output)
        )
        await TaskConstellationOrchestrator(manager).orchestrate_constellation(constellation)
        edited = {"old_constellation": constellation, "new_constellation": constellation, "modification_type": "none"}
        await bus.publish_event(
            ConstellationEvent(
                EventType.CONSTELLATION_MODIFIED, "w", time.time(), edited, constellation.constellation_id, "completed"
            )
        )
        return constellation, manager, time.monotonic() - begun
    finally:
        bus.unsubscribe(observer)


async def check_mirror(url: str) -> None:
    """The board shows what Galaxy's objects have at the end, and the events in their order."""
    name = f"galaxy-{uuid.uuid4().hex[:8]}"
    async with AsyncClient(url) as client, BlackboardObserver(name, client) as observer:
        constellation, manager, took = await run(observer)
        assert await observer.flush(30)
        board = client.session(name)
        shown = await board.state.get(f"galaxy/constellations/{constellation.constellation_id}")
        assert {key: task["status"] for key, task in shown["tasks"].items()} == {
            key: task.status.value for key, task in constellation.tasks.items()
        }
        assert shown["tasks"]["task_7"]["status"] == "failed"
        assert set(shown["dependencies"]) == set(constellation.dependencies)
        assert shown["statistics"]["total_tasks"] == TASKS
        devices = await board.state.get("galaxy/devices")
        assert {key: device["status"] for key, device in devices.items()} == {
            key: device.status.value for key, device in manager.get_all_devices().items()
        }
        items = [entry.item async for entry in board.trajectories.entries()]
        begun = [item["task_id"] for item in items if item["event"] == "task_started"]
        ended = [item["task_id"] for item in items if item["event"] in ("task_completed", "task_failed")]
        assert sorted(begun) == sorted(ended) == sorted(constellation.tasks)
        assert all(begun.index(f"task_{n // 2}") < begun.index(f"task_{n}") for n in range(2, TASKS + 1))
        assert [item["thought"] for item in await _items(board.memory("constellation_agent"))] == ["split it"]
        assert (observer.lost, observer.refused) == (0, 0)
        described = await board.describe()
        print(
            f"mirror: {len(items)} items, {described['revision']} commits, {described['bytes']} bytes on the board,"
            f" the run took {took:.2f} s"
        )


async def _items(log: Any) -> list[dict[str, Any]]:
    return [entry.item async for entry in log.entries()]


async def check_away() -> None:
    """A server that is away holds the run up by no more than the first wait."""
    async with AsyncClient(AWAY_URL, timeout=2) as client:
        observer = BlackboardObserver("away", client)
        _, _, took = await run(observer)
        assert took < 10
        await observer.close(0.1)
        print(f"away: the run took {took:.2f} s")


async def check_all(url: str) -> None:
    await check_mirror(url)
    await check_away()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--url", required=True)
    options = parser.parse_args()
    imported(options.checkout.resolve())
    asyncio.run(check_all(options.url))


if __name__ == "__main__":
    main()
