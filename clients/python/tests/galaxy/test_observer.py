"""Mirror of Galaxy's events on a board."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timezone
from enum import IntEnum
from typing import Any

import pytest

from agent_blackboard import AsyncClient, AsyncSession
from agent_blackboard.galaxy import DEPTH_MAX, VALUE_CHARS_MAX, BlackboardObserver, plain

from .bus import (
    AgentEvent,
    Constellation,
    ConstellationEvent,
    DeviceEvent,
    Event,
    EventBus,
    EventType,
    Galaxy,
    Task,
    TaskEvent,
)


@pytest.fixture
async def board(url: str, session_name: str) -> AsyncIterator[AsyncSession]:
    async with AsyncClient(url) as client:
        yield client.session(session_name)


@pytest.fixture
async def observer(board: AsyncSession) -> AsyncIterator[BlackboardObserver]:
    async with BlackboardObserver(board.name, board.client, wait=30) as observer:
        yield observer


@pytest.fixture
def bus(observer: BlackboardObserver) -> EventBus:
    bus = EventBus()
    bus.subscribe(observer)
    return bus


@pytest.fixture
def galaxy(bus: EventBus) -> Galaxy:
    return Galaxy(bus)


async def told(board: AsyncSession, log: str = "trajectories") -> list[dict[str, Any]]:
    return [entry.item async for entry in board.log(log).entries()]


def events(items: list[dict[str, Any]]) -> list[str]:
    return [item["event"] for item in items]


async def test_a_run_of_a_constellation_is_shown_as_it_goes(
    board: AsyncSession, observer: BlackboardObserver, bus: EventBus, galaxy: Galaxy
) -> None:
    first, second = Task("t1", "linux"), Task("t2", "phone")
    constellation = Constellation("c1", first, second)
    await galaxy.constellation("started", constellation, "executing", assignment_strategy="round_robin")
    await galaxy.task("started", constellation, first)
    shown = await board.state.get("galaxy/constellations/c1")
    assert shown["state"] == "executing"
    assert shown["name"] == "constellation c1"
    assert shown["tasks"]["t1"] == {
        "task_id": "t1",
        "name": "task t1",
        "target_device_id": "linux",
        "status": "running",
        "execution_start_time": "2026-01-01T00:00:03.000Z",
    }
    assert shown["tasks"]["t2"]["status"] == "pending"
    assert shown["dependencies"] == {"t1-t2": {"line_id": "t1-t2", "from_task_id": "t1", "to_task_id": "t2"}}
    await galaxy.task("completed", constellation, first, result={"files": ["a.txt"]})
    await galaxy.task("started", constellation, second)
    await galaxy.task("failed", constellation, second, error=TimeoutError("no answer"))
    await galaxy.constellation("completed", constellation, "partially_failed", statistics={"total": 2})
    shown = await board.state.get("galaxy/constellations/c1")
    assert (shown["state"], shown["statistics"]) == ("partially_failed", {"total": 2})
    assert shown["tasks"]["t1"]["status"] == "completed"
    assert shown["tasks"]["t2"]["status"] == "failed"
    assert await told(board) == [
        {
            "event": "constellation_started",
            "at": "2026-01-01T00:00:01.500Z",
            "key": "c1",
            "constellation_id": "c1",
            "state": "executing",
            "total_tasks": 2,
            "assignment_strategy": "round_robin",
        },
        {
            "event": "task_started",
            "at": "2026-01-01T00:00:03.000Z",
            "key": "c1",
            "task_id": "t1",
            "status": "running",
            "execution_start_time": "2026-01-01T00:00:03.000Z",
            "name": "task t1",
            "device": "linux",
        },
        {
            "event": "task_completed",
            "at": "2026-01-01T00:00:04.500Z",
            "key": "c1",
            "task_id": "t1",
            "status": "completed",
            "name": "task t1",
            "device": "linux",
            "result": {"files": ["a.txt"]},
            "newly_ready_tasks": [],
        },
        {
            "event": "task_started",
            "at": "2026-01-01T00:00:06.000Z",
            "key": "c1",
            "task_id": "t2",
            "status": "running",
            "execution_start_time": "2026-01-01T00:00:06.000Z",
            "name": "task t2",
            "device": "phone",
        },
        {
            "event": "task_failed",
            "at": "2026-01-01T00:00:07.500Z",
            "key": "c1",
            "task_id": "t2",
            "status": "failed",
            "execution_end_time": "2026-01-01T00:00:07.500Z",
            "name": "task t2",
            "device": "phone",
            "error": "TimeoutError: no answer",
        },
        {
            "event": "constellation_completed",
            "at": "2026-01-01T00:00:09.000Z",
            "key": "c1",
            "constellation_id": "c1",
            "state": "partially_failed",
            "total_tasks": 2,
            "statistics": {"total": 2},
        },
    ]
    assert (bus.raised, observer.lost, observer.refused) == ([], 0, 0)


async def test_an_event_is_one_commit_of_what_changed(board: AsyncSession, galaxy: Galaxy) -> None:
    tasks = [Task(f"t{number}", "linux") for number in range(20)]
    constellation = Constellation("c1", *tasks)
    await galaxy.constellation("started", constellation, "executing")
    begun = (await board.describe())["revision"]
    await galaxy.task("completed", constellation, tasks[3])
    changes = [change async for change in board.diff(begun)]
    paths = {change["path"] for change in changes}
    assert (await board.describe())["revision"] == begun + 1
    assert paths == {"trajectories/2", "state/galaxy/constellations/c1/tasks/t3/status"}


async def test_an_edited_constellation_loses_its_removed_tasks(board: AsyncSession, galaxy: Galaxy) -> None:
    constellation = Constellation("c1", Task("t1", "a"), Task("t2", "b"), Task("t3", "c"))
    await galaxy.constellation("started", constellation, "executing")
    await galaxy.constellation("modified", Constellation("c1", Task("t1", "a"), Task("t4", "d")), "executing")
    shown = await board.state.get("galaxy/constellations/c1")
    assert list(shown["tasks"]) == ["t1", "t4"]
    assert list(shown["dependencies"]) == ["t1-t4"]


async def test_devices_are_those_of_the_registry(board: AsyncSession, galaxy: Galaxy) -> None:
    await galaxy.device("connected", "linux", "idle", {"linux": "idle", "phone": "disconnected"})
    await galaxy.device("status_changed", "linux", "busy", {"linux": "busy", "phone": "disconnected"})
    assert await board.state.get("galaxy/devices") == {
        "linux": {"device_id": "linux", "status": "busy", "os": "linux"},
        "phone": {"device_id": "phone", "status": "disconnected", "os": "linux"},
    }
    await galaxy.device("disconnected", "linux", "disconnected", {"linux": "disconnected"})
    assert list(await board.state.get("galaxy/devices")) == ["linux"]
    assert events(await told(board)) == ["device_connected", "device_disconnected"]


async def test_an_agent_s_responses_are_its_memory_and_its_status_follows(board: AsyncSession, galaxy: Galaxy) -> None:
    for status in ("START", "CONTINUE", "FINISH", "FAIL", "CONTINUE"):
        await galaxy.agent("response", "Weaver", {"thought": f"thought of {status}", "status": status})
        expected = status if status != "START" else "CONTINUE"
        assert (await board.agents.get("Weaver"))["status"] == expected
    await galaxy.agent("action", "Weaver", {"actions": [{"function": "build"}], "status": "FINISH"})
    memory = await told(board, "agents/Weaver/memory")
    assert [item["thought"] for item in memory][:2] == ["thought of START", "thought of CONTINUE"]
    assert len(memory) == 5
    assert (await told(board))[-1]["actions"] == [{"function": "build"}]
    assert (await board.state.get("galaxy/agents/Weaver"))["status"] == "FINISH"


async def test_any_id_has_a_place(board: AsyncSession, bus: EventBus, galaxy: Galaxy) -> None:
    for identifier in ("a/b~c", "..", "", "é\n", "x" * 5000, "\ud800"):
        constellation = Constellation(identifier, Task(identifier, identifier))
        await galaxy.constellation("started", constellation, "executing")
        await galaxy.task("completed", constellation, constellation.tasks[identifier])
        await galaxy.agent("response", identifier, {"status": "FINISH"})
        await galaxy.device("connected", identifier, "idle", {identifier: "idle"})
    shown = await board.state.get("galaxy/constellations")
    assert [len(each["tasks"]) for each in shown.values()] == [1] * 6
    assert len(await told(board)) == 6 * 3 + 5
    assert bus.raised == []


class Hostile:
    """An object that cannot be shown."""

    def to_dict(self) -> Any:
        raise RuntimeError("no dictionary")

    def __str__(self) -> str:
        raise RuntimeError("no text")


@dataclasses.dataclass
class LaterTask(TaskEvent):
    retries: int = 2


@dataclasses.dataclass
class LaterConstellation(ConstellationEvent):
    phase: str = "second"


@dataclasses.dataclass
class LaterDevice(DeviceEvent):
    battery: float = 0.5


@dataclasses.dataclass
class LaterAgent(AgentEvent):
    cost: float = 0.25


@dataclasses.dataclass
class Handover:
    """An event of a kind that no version of Galaxy had so far."""

    event_type: str
    source_id: str
    timestamp: float
    data: Any
    session_id: str = "s1"
    hops: tuple[str, ...] = ("a", "b")


async def test_unknown_members_of_events_are_kept(board: AsyncSession, bus: EventBus) -> None:
    more = {"trace": {"id": 7}, "status": "of the data", "hostile": Hostile()}
    start = ("galaxy", 1.0)
    await bus.publish_event(
        LaterTask(EventType.TASK_STARTED, *start, {"constellation_id": "c1", **more}, "t1", "running")
    )
    data = {**more, "new_constellation": Constellation("c1"), "inner_constellation": "c2"}
    await bus.publish_event(
        LaterConstellation(EventType.CONSTELLATION_MODIFIED, *start, data, "c1", "executing", ["t1"])
    )
    device = ("d1", "idle", {"device_id": "d1"}, {})
    await bus.publish_event(LaterDevice(EventType.DEVICE_CONNECTED, *start, more, *device))
    await bus.publish_event(LaterDevice(EventType.DEVICE_STATUS_CHANGED, *start, more, *device))
    agent = ("Weaver", "constellation", "response", {"status": "CONTINUE"})
    await bus.publish_event(LaterAgent(EventType.AGENT_RESPONSE, *start, more, *agent))
    await bus.publish_event(LaterAgent(EventType.AGENT_ACTION, *start, ["no", "mapping"], *agent))
    task, constellation, connected, action = await told(board)
    (response,) = await told(board, "agents/Weaver/memory")
    shown = await board.state.get("galaxy/devices/d1")
    for item in (task, connected, response, shown):
        assert (item["trace"], item["data"]) == ({"id": 7}, {"status": "of the data"})
        assert item["hostile"] == "Hostile: not shown, RuntimeError"
        assert item["status"] != "of the data"
    assert (task["retries"], constellation["phase"], connected["battery"]) == (2, "second", 0.5)
    assert (shown["battery"], response["cost"], action["cost"], action["data"]) == (0.5, 0.25, 0.25, ["no", "mapping"])
    assert constellation["new_ready_tasks"] == ["t1"]
    assert (constellation["inner_constellation"], constellation["status"]) == ("c2", "of the data")
    assert "new_constellation" not in constellation


async def test_events_of_unknown_kinds_are_kept_whole(board: AsyncSession, bus: EventBus, galaxy: Galaxy) -> None:
    await bus.publish_event(Handover("handover", "galaxy", 1.0, {"from": "a"}))  # type: ignore[arg-type]
    assert await told(board) == [
        {
            "event": "handover",
            "at": "1970-01-01T00:00:01.000Z",
            "data": {"from": "a"},
            "session_id": "s1",
            "hops": ["a", "b"],
        }
    ]
    constellation = Constellation("c1", Task("t1", "linux"))
    await galaxy.constellation("started", constellation, "executing")
    paused = TaskEvent("task_paused", "galaxy", 2.0, {"constellation_id": "c1"}, "t1", "paused")  # type: ignore[arg-type]
    await bus.publish_event(paused)
    shown = await board.state.get("galaxy/constellations/c1/tasks/t1")
    assert shown["status"] == "paused"
    assert "execution_end_time" not in shown, "a task of an unknown kind of event has not ended"
    assert (await told(board))[-1]["event"] == "task_paused"


async def test_no_event_raises_into_the_bus(
    board: AsyncSession, bus: EventBus, galaxy: Galaxy, caplog: pytest.LogCaptureFixture
) -> None:
    await bus.publish_event(Event(EventType.TASK_STARTED, "x", math.nan, {"hostile": Hostile()}))
    await bus.publish_event(object())  # type: ignore[arg-type]
    await bus.publish_event(Event(EventType.TASK_STARTED, "x", math.nan, {"fine": 1}))
    await galaxy.agent("response", "Weaver", None)
    assert bus.raised == []
    assert [item.get("data") for item in await told(board)] == [{"fine": 1}]
    assert "was not mirrored" in caplog.text


async def test_large_values_are_clipped_and_a_large_constellation_is_shown(
    board: AsyncSession, observer: BlackboardObserver, galaxy: Galaxy
) -> None:
    tasks = [Task(f"t{number}", "d" * 20_000) for number in range(300)]
    constellation = Constellation("c1", *tasks)
    await galaxy.constellation("started", constellation, "executing", notes="n" * 3_000_000)
    await galaxy.task("completed", constellation, tasks[0], result="r" * 3_000_000)
    shown = await board.state.get("galaxy/constellations/c1/tasks")
    assert len(shown) == 300
    assert len(shown["t0"]["result"]) < 10_000
    assert len(json.dumps(await told(board))) < 50_000
    assert (observer.lost, observer.refused) == (0, 0)


async def test_the_board_shows_the_last_constellations(board: AsyncSession) -> None:
    async with BlackboardObserver(board.name, board.client, root="a/mirror", constellations_max=3, wait=30) as observer:
        bus = EventBus()
        bus.subscribe(observer)
        for number in range(6):
            await Galaxy(bus).constellation("started", Constellation(f"c{number}", Task("t", "d")), "executing")
        assert list(await board.state.get("a/mirror/constellations")) == ["c3", "c4", "c5"]
        await Galaxy(bus).constellation("started", Constellation("c3", Task("t", "d")), "executing")
        await Galaxy(bus).constellation("started", Constellation("c6", Task("t", "d")), "executing")
        assert list(await board.state.get("a/mirror/constellations")) == ["c3", "c5", "c6"]


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def limits_of_waits(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The seconds that each later call of `asyncio.wait` may take."""
    limits: list[float | None] = []
    wait = asyncio.wait

    async def noted(futures: Any, *, timeout: float | None = None) -> Any:
        limits.append(timeout)
        return await wait(futures, timeout=timeout)

    monkeypatch.setattr(asyncio, "wait", noted)
    return limits


async def test_a_server_that_is_away_holds_up_nothing_and_loses_nothing(
    server: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    limits = limits_of_waits(monkeypatch)
    async with AsyncClient(server.url, timeout=2, connect_timeout=1) as client:
        board = client.session("run")
        async with BlackboardObserver(board.name, board.client, wait=0.2) as observer:
            bus = EventBus()
            bus.subscribe(observer)
            galaxy = Galaxy(bus)
            constellation = Constellation("c1", *(Task(f"t{number}", "linux") for number in range(100)))
            await galaxy.constellation("started", constellation, "executing")
            await observer.flush(30)
            await asyncio.to_thread(server.kill)
            limits.clear()
            for task in constellation.tasks.values():
                await galaxy.task("started", constellation, task)
                await galaxy.task("completed", constellation, task)
            assert limits.count(0.2) == 1, "only the first event waits for the server"
            await until(lambda: "wait for the board" in caplog.text)
            await asyncio.to_thread(server.start)
            assert await observer.flush(60)
        items = await told(board)
        assert [(item["event"], item.get("task_id")) for item in items[1:]] == [
            (kind, task_id) for task_id in constellation.tasks for kind in ("task_started", "task_completed")
        ]
        shown = await board.state.get("galaxy/constellations/c1/tasks")
        assert {task["status"] for task in shown.values()} == {"completed"}
    assert (observer.lost, observer.refused, bus.raised) == (0, 0, [])
    assert caplog.text.count("wait for the board") == 1
    assert caplog.text.count("are written to the board run again") == 1


async def test_of_more_than_the_queue_holds_the_oldest_are_dropped_and_counted(server: Any) -> None:
    async with AsyncClient(server.url, timeout=2, connect_timeout=1) as client:
        board = client.session("run")
        await asyncio.to_thread(server.kill)
        async with BlackboardObserver(board.name, board.client, wait=0, queue_max=10) as observer:
            bus = EventBus()
            bus.subscribe(observer)
            for number in range(50):
                await Galaxy(bus).agent("action", "Weaver", {"number": number})
            await asyncio.to_thread(server.start)
            assert await observer.flush(60)
        items = await told(board)
    assert observer.lost > 0
    assert sum(item["count"] for item in items if item["event"] == "events_lost") == observer.lost
    numbers = [item["number"] for item in items if item["event"] == "agent_action"]
    assert len(numbers) + observer.lost == 50
    assert numbers == sorted(numbers)
    assert numbers[-1] == 49


async def test_a_change_that_the_board_refuses_takes_no_other_with_it(
    board: AsyncSession, observer: BlackboardObserver, galaxy: Galaxy, caplog: pytest.LogCaptureFixture
) -> None:
    await board.state.set("galaxy/agents", "not an object")
    await galaxy.agent("response", "Weaver", {"status": "FINISH"})
    await galaxy.agent("response", "Weaver", {"status": "FAIL"})
    assert (observer.lost, observer.refused) == (0, 2)
    assert (await board.agents.get("Weaver"))["status"] == "FAIL"
    assert [item["status"] for item in await told(board, "agents/Weaver/memory")] == ["FINISH", "FAIL"]
    assert caplog.text.count("rejected a change of Galaxy") == 1
    await board.state.delete("galaxy/agents")
    await galaxy.agent("response", "Weaver", {"status": "FAIL"})
    assert (await board.state.get("galaxy/agents/Weaver"))["status"] == "FAIL"


async def test_items_beyond_a_session_s_budget_are_counted_as_lost(
    board: AsyncSession, observer: BlackboardObserver, galaxy: Galaxy
) -> None:
    await board.configure({"cost_max": 0})
    await board.memory("Other").append({"step": 1, "cost": 1})
    await galaxy.constellation("started", Constellation("c1", Task("t1", "d")), "executing")
    assert (await board.state.get("galaxy/constellations/c1"))["state"] == "executing"
    assert (observer.lost, observer.refused) == (1, 0)


async def test_a_token_of_another_agent_mirrors_what_it_may(server: Any) -> None:
    token = await asyncio.to_thread(server.token, "--name", "mirror", "--agent", "Mirror", "--anyway")
    async with AsyncClient(server.url, token) as client:
        board = client.session("run")
        async with BlackboardObserver(board.name, board.client, wait=30) as observer:
            bus = EventBus()
            bus.subscribe(observer)
            await Galaxy(bus).agent("response", "Weaver", {"status": "FINISH"})
            await Galaxy(bus).agent("action", "Weaver", {"actions": []})
        assert (await board.state.get("galaxy/agents/Weaver"))["event"] == "agent_action"
        assert events(await told(board)) == ["agent_action"]
        assert observer.lost == 1


async def test_a_closed_observer_takes_no_more_events(board: AsyncSession) -> None:
    observer = BlackboardObserver(board.name, board.client, wait=0)
    bus = EventBus()
    bus.subscribe(observer)
    await Galaxy(bus).agent("action", "Weaver", {"number": 1})
    await observer.close(30)
    await Galaxy(bus).agent("action", "Weaver", {"number": 2})
    await observer.close()
    assert [item["number"] for item in await told(board)] == [1]


async def test_closing_has_an_end_while_the_server_is_away(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = limits_of_waits(monkeypatch)
    async with AsyncClient("http://127.0.0.1:9", timeout=1) as nowhere:
        observer = BlackboardObserver("run", nowhere, wait=0)
        bus = EventBus()
        bus.subscribe(observer)
        await Galaxy(bus).agent("action", "Weaver", {"number": 1})
        assert not await observer.flush(0.2)
        limits.clear()
        await observer.close(0.3)
        assert limits.count(0.3) == 1
    assert "closed before all events" in caplog.text


def test_an_observer_goes_on_in_another_event_loop(url: str, session_name: str) -> None:
    observer = BlackboardObserver(session_name, url=url, wait=0)

    async def publish(number: int) -> None:
        bus = EventBus()
        bus.subscribe(observer)
        await Galaxy(bus).agent("action", "Weaver", {"number": number})

    async def finish() -> None:
        await publish(2)
        assert await observer.flush(30)
        await observer.close()
        async with AsyncClient(url) as client:
            assert [item["number"] for item in await told(client.session(session_name))] == [1, 2]

    asyncio.run(publish(1))
    asyncio.run(finish())


@pytest.mark.parametrize("options", [{"queue_max": 0}, {"constellations_max": 0}, {"wait": -1}, {"wait": math.nan}])
async def test_impossible_options_are_refused(board: AsyncSession, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        BlackboardObserver(board.name, board.client, **options)


class Level(IntEnum):
    LOW = 1


@dataclasses.dataclass
class Outcome:
    status: Level
    at: datetime


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"field": 1}


class Named:
    def to_dict(self) -> str:
        return "no mapping"


def test_any_value_becomes_json_within_its_bounds() -> None:
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    value = {
        1: Outcome(Level.LOW, at),
        "set": {1},
        "bytes": b"abc",
        "error": ValueError("bad"),
        "nan": math.nan,
        "huge": 10**400,
        "type": Model,
        "model": Model(),
        "named": Named(),
        "time": at.time(),
    }
    assert plain(value, 10_000) == {
        "1": {"status": 1, "at": "2026-01-01T00:00:00+00:00"},
        "set": [1],
        "bytes": "3 bytes",
        "error": "ValueError: bad",
        "nan": "nan",
        "huge": "an integer of 1329 bits",
        "type": str(Model),
        "model": {"field": 1},
        "named": {"value": "no mapping"},
        "time": "00:00:00",
    }
    cycle: list[Any] = []
    cycle.append(cycle)
    assert json.dumps(plain(cycle, 10_000)).count("[") == DEPTH_MAX
    wide = {f"{number}": "x" * 1000 for number in range(100_000)}
    assert len(json.dumps(plain(wide, VALUE_CHARS_MAX))) < 2 * VALUE_CHARS_MAX
