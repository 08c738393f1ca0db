"""Event bus and events with Galaxy's interface, so that the tests need no checkout of it."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Protocol


class EventType(Enum):
    TASK_STARTED = "task_started"
    TASK_COMPLETED = "task_completed"
    TASK_FAILED = "task_failed"
    CONSTELLATION_STARTED = "constellation_started"
    CONSTELLATION_COMPLETED = "constellation_completed"
    CONSTELLATION_MODIFIED = "constellation_modified"
    AGENT_RESPONSE = "agent_response"
    AGENT_ACTION = "agent_action"
    DEVICE_CONNECTED = "device_connected"
    DEVICE_DISCONNECTED = "device_disconnected"
    DEVICE_STATUS_CHANGED = "device_status_changed"


@dataclass
class Event:
    event_type: EventType
    source_id: str
    timestamp: float
    data: Any


@dataclass
class TaskEvent(Event):
    task_id: str
    status: Any
    result: Any = None
    error: Exception | None = None


@dataclass
class ConstellationEvent(Event):
    constellation_id: str
    constellation_state: str
    new_ready_tasks: list[str] | None = None


@dataclass
class AgentEvent(Event):
    agent_name: str
    agent_type: str
    output_type: str
    output_data: Any


@dataclass
class DeviceEvent(Event):
    device_id: str
    device_status: str
    device_info: Any
    all_devices: Any


class Observer(Protocol):
    async def on_event(self, event: Any) -> None: ...


class EventBus:
    """Notifies all observers at once, and swallows what they raise, as Galaxy's bus does."""

    def __init__(self) -> None:
        self._observers: set[Observer] = set()
        self.raised: list[BaseException] = []

    def subscribe(self, observer: Observer, event_types: Any = None) -> None:
        self._observers.add(observer)

    async def publish_event(self, event: Event) -> None:
        told = await asyncio.gather(*(each.on_event(event) for each in self._observers), return_exceptions=True)
        self.raised += [error for error in told if error is not None]


class Status(Enum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Task:
    """A task that changes while it runs."""

    def __init__(self, task_id: str, device: str) -> None:
        self.task_id = task_id
        self.device = device
        self.status = Status.PENDING

    def to_dict(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "name": f"task {self.task_id}",
            "target_device_id": self.device,
            "status": self.status.value,
        }


class Constellation:
    """Tasks and what they depend on, under one id."""

    def __init__(self, constellation_id: str, *tasks: Task) -> None:
        self.constellation_id = constellation_id
        self.tasks = {task.task_id: task for task in tasks}
        pairs = [(first.task_id, second.task_id) for first, second in itertools.pairwise(tasks)]
        self.lines = {f"{first}-{second}": (first, second) for first, second in pairs}
        self.state = "created"

    def to_dict(self) -> dict[str, Any]:
        return {
            "constellation_id": self.constellation_id,
            "name": f"constellation {self.constellation_id}",
            "state": self.state,
            "tasks": {name: task.to_dict() for name, task in self.tasks.items()},
            "dependencies": {
                name: {"line_id": name, "from_task_id": line[0], "to_task_id": line[1]}
                for name, line in self.lines.items()
            },
            "created_at": datetime(2026, 1, 1, tzinfo=timezone.utc).isoformat(),
        }


class Galaxy:
    """Publisher of a run's events."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._clock = 1_767_225_600.0

    async def task(self, kind: str, constellation: Constellation, task: Task, **fields: Any) -> None:
        task.status = {"started": Status.RUNNING, "completed": Status.COMPLETED, "failed": Status.FAILED}[kind]
        data: dict[str, Any] = {"constellation_id": constellation.constellation_id}
        if kind == "completed":
            data |= {"newly_ready_tasks": [], "constellation": constellation}
        await self._publish(TaskEvent, f"task_{kind}", data, task.task_id, task.status, **fields)

    async def constellation(self, kind: str, constellation: Constellation, state: str, **data: Any) -> None:
        constellation.state = state
        shown = "new_constellation" if kind == "modified" else "constellation"
        data = {"total_tasks": len(constellation.tasks), shown: constellation, **data}
        await self._publish(ConstellationEvent, f"constellation_{kind}", data, constellation.constellation_id, state)

    async def device(self, kind: str, name: str, status: str, devices: dict[str, str]) -> None:
        every = {each: {"device_id": each, "status": shown, "os": "linux"} for each, shown in devices.items()}
        info = {"device_id": name, "status": status, "os": "linux"}
        await self._publish(DeviceEvent, f"device_{kind}", {}, name, status, info, every)

    async def agent(self, kind: str, name: str, output: Any) -> None:
        await self._publish(AgentEvent, f"agent_{kind}", {}, name, "constellation", kind, output)

    async def _publish(self, event: Any, kind: str, data: Any, *fields: Any, **more: Any) -> None:
        self._clock += 1.5
        await self._bus.publish_event(event(EventType(kind), "galaxy", self._clock, data, *fields, **more))
