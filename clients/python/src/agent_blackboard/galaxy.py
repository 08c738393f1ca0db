"""Observer of UFO³'s Galaxy: mirrors constellations, tasks, devices and agents from its event bus to a board.

Galaxy is not imported: events are read by their attributes. Nothing raises into the bus. Values of the state are
coalesced, items of the logs keep their order, and what waits for the server is bounded.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import math
import uuid
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timezone
from enum import Enum
from typing import Any

from typing_extensions import Self

from . import (
    AsyncClient,
    BadRequest,
    BlackboardError,
    Conflict,
    Forbidden,
    TooLarge,
    Unprocessable,
    UnsupportedValue,
    path,
)
from ._adapters.clients import LoopClients

__all__ = ["BlackboardObserver"]

logger = logging.getLogger(__name__)

VALUE_CHARS_MAX = 64 * 1024
"""Characters of one value of the state: a task, a device, a member of a constellation."""
ITEM_CHARS_MAX = 16 * 1024
"""Characters of one item of a log."""
TEXT_CHARS_MAX = 8 * 1024
"""Characters of one text in them."""
MEMBERS_MAX = 1000
"""Members of one object or array; tasks of one constellation."""
DEPTH_MAX = 16
"""Levels of one value."""
PATHS_MAX = 20_000
"""State paths that the observer mirrors."""
BATCH_GROUPS_MAX = 200
"""Changes in one transaction."""
BATCH_BYTES_MAX = 1024 * 1024
"""Bytes of one transaction, unless a single change has more."""
WRITE_SECONDS = 10.0
"""The time limit of one transaction with its retries."""
PAUSE_MAX = 30.0
"""Seconds between two tries while the server is away."""
KEY_CHARS_MAX = 256
"""Characters of an id of Galaxy in a state path."""
STATUSES = frozenset({"ERROR", "FINISH", "CONTINUE", "FAIL", "PENDING", "CONFIRM", "SCREENSHOT"})
"""Statuses of an agent that every board knows."""
KNOWN = frozenset({"event_type", "source_id", "timestamp", "data"})
"""Members of each event, which are read for themselves."""
CONSTELLATIONS = frozenset({"constellation", "old_constellation", "new_constellation"})
"""Members of an event's data that are whole constellations: the state shows them."""
CLIPPED = "…"
REFUSALS = (BadRequest, Conflict, Forbidden, TooLarge, Unprocessable, UnsupportedValue)
"""Answers that stay the same however often a change is sent; after all others it is sent again."""

_Operation = dict[str, Any]
_Group = list[_Operation]
"""Operations that stand or fall together."""


class BlackboardObserver:
    """Mirror of a Galaxy's events on one board; subscribe it to the event bus.

    State below `root`: `constellations/ID` with `tasks/ID` and `dependencies/ID`, `devices/ID`, `agents/NAME`. Each
    event that a person would follow is an item of `trajectories`; an agent's responses are its memory, and its status
    is set. Members of an event that the observer does not know are kept there too, and so are events of other kinds.
    Tasks are no entries of `requests`, since these could be claimed and done a second time.

    `on_event` takes a copy of the event and waits at most `wait` seconds until it is written; not at all while earlier
    ones are not written. Meanwhile values of the state are kept as their latest, and up to `queue_max` items of logs;
    of more, the oldest are dropped and counted in `lost`. A failure is logged once, and so is the recovery.
    """

    def __init__(
        self,
        session: str,
        client: AsyncClient | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        root: str = "galaxy",
        wait: float = 0.2,
        queue_max: int = 1000,
        constellations_max: int = 50,
    ) -> None:
        """Mirror to the session of this name.

        The address and the token are given here, by BLACKBOARD_URL and BLACKBOARD_TOKEN, or by a `client`, which
        belongs to one event loop and stays the caller's to close.

        `root` is a state path, which the observer alone should write. The board shows the last `constellations_max`
        constellations; earlier ones are deleted from the state.
        """
        if queue_max < 1 or constellations_max < 1 or not wait >= 0 or not root:
            raise ValueError("queue_max and constellations_max are at least 1, wait is not negative, root not empty")
        self._name = session
        self._clients = LoopClients(client, url, token)
        self._mirror = _Mirror(root, constellations_max)
        self._trail: deque[_Group] = deque()
        self._queue_max = queue_max
        self._wait = wait
        self._batches: deque[_Batch] = deque()
        self._task: asyncio.Task[None] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._healthy = True
        self._behind = False
        self._closed = False
        self._unreported = 0
        self.lost = 0
        """Items of logs that were dropped: the queue was full, or the server refused them."""
        self.refused = 0
        """Values of the state that the server refused."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def on_event(self, event: Any) -> None:
        """Take an event of the bus. Never raises; a cancellation of the caller passes, and the event is kept."""
        if self._closed:
            return
        try:
            self._take(event)
            task = self._writer()
            if not self._behind and self._wait > 0 and task.get_loop() is asyncio.get_running_loop():
                await asyncio.wait({task}, timeout=self._wait)
                self._behind = not task.done()
        except Exception:
            logger.warning("an event of Galaxy was not mirrored: %s", type(event).__name__, exc_info=True)

    async def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything is written, at most `timeout` seconds; returns whether it is."""
        if self._is_done():
            return True
        task = self._writer()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        await asyncio.wait({task}, timeout=timeout)
        return self._is_done()

    async def close(self, timeout: float = 5.0) -> None:
        """Take no more events, write those taken within `timeout` seconds, and close connections of its own."""
        self._closed = True
        if not await self.flush(timeout):
            logger.warning("closed before all events of Galaxy were written to %s", self._name)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._clients.aclose()

    def _take(self, event: Any) -> None:
        kind = _text(getattr(event.event_type, "value", event.event_type))
        item = {"event": kind, "at": _instant(getattr(event, "timestamp", None))}
        if hasattr(event, "task_id"):
            self._take_task(kind, event, item)
        elif hasattr(event, "constellation_id"):
            self._take_constellation(event, item)
        elif hasattr(event, "device_id"):
            self._take_device(kind, event, item)
        elif hasattr(event, "agent_name"):
            self._take_agent(kind, event, item)
        else:
            data = plain(getattr(event, "data", None), ITEM_CHARS_MAX)
            self._follow([_append("trajectories", _with_rest({**item, "data": data}, _unknown(event)))])

    def _take_task(self, kind: str, event: Any, item: dict[str, Any]) -> None:
        data = _data(event)
        owner = data.get("constellation_id")
        constellation = "none" if owner is None else _text(owner)
        if data.get("constellation") is not None:
            self._mirror.constellation(constellation, data["constellation"])
        changes = {"task_id": _text(event.task_id), "status": _text(event.status)}
        outcome = {"result": getattr(event, "result", None), "error": getattr(event, "error", None)}
        known = self._mirror.task(constellation, changes["task_id"])
        when = {"task_started": "execution_start_time", "task_completed": "execution_end_time"}
        moment = {**when, "task_failed": "execution_end_time"}.get(kind)
        if data.get("constellation") is None and moment is not None:
            changes[moment] = item["at"]
        told = {name: value for name, value in outcome.items() if value is not None}
        self._mirror.set_task(constellation, changes["task_id"], {**known, **changes, **_plain_members(told)})
        shown = {
            **item,
            "key": constellation,
            **changes,
            "name": known.get("name"),
            "device": known.get("target_device_id"),
        }
        rest = _but(data, {"constellation_id", "constellation"})
        rest.update(_unknown(event, "task_id", "status", "result", "error"))
        self._follow([_append("trajectories", _with_rest({**shown, **told}, rest))])

    def _take_constellation(self, event: Any, item: dict[str, Any]) -> None:
        data = _data(event)
        name, state = _text(event.constellation_id), _text(event.constellation_state)
        shown = data.get("new_constellation", data.get("constellation"))
        members = {"state": state}
        if "statistics" in data:
            members["statistics"] = data["statistics"]
        self._mirror.constellation(name, shown, members)
        told = {**item, "key": name, "constellation_id": name, "state": state}
        rest = _but(data, CONSTELLATIONS)
        rest.update(_unknown(event, "constellation_id", "constellation_state"))
        self._follow([_append("trajectories", _with_rest(told, rest))])

    def _take_device(self, kind: str, event: Any, item: dict[str, Any]) -> None:
        name, status = _text(event.device_id), _text(event.device_status)
        rest = {**_data(event), **_unknown(event, "device_id", "device_status", "device_info", "all_devices")}
        self._mirror.devices(event.all_devices or {})
        device = {**(event.device_info or {}), "device_id": name, "status": status}
        # A change of the status alone has no item, so the state keeps the rest.
        told = _with_rest(device, rest) if kind == "device_status_changed" else device
        self._mirror.device(name, told)
        if kind != "device_status_changed":
            shown = {**item, "key": name, "device_id": name, "status": status}
            self._follow([_append("trajectories", _with_rest(shown, rest))])

    def _take_agent(self, kind: str, event: Any, item: dict[str, Any]) -> None:
        name, output = _text(event.agent_name), event.output_data or {}
        told = {"agent": name, "agent_type": event.agent_type, "output_type": event.output_type}
        status = _text(output.get("status") or "").upper()
        self._mirror.agent(name, {**told, "event": kind, "at": item["at"], **({"status": status} if status else {})})
        rest = {**_data(event), **_unknown(event, "agent_name", "agent_type", "output_type", "output_data")}
        if kind == "agent_response" and _is_name(name):
            group = [_append(f"agents/{name}/memory", _with_rest({**item, **told, **output}, rest))]
            if status in STATUSES:
                # From any status an agent may go to CONTINUE, and from there to any other.
                group += [{"status": name, "value": value} for value in dict.fromkeys(("CONTINUE", status))]
            self._follow(group)
        else:
            shown = {**item, "key": name, **told, **output}
            self._follow([_append("trajectories", _with_rest(shown, rest))])

    def _follow(self, group: _Group) -> None:
        if len(self._trail) >= self._queue_max:
            self._trail.popleft()
            self._lose(1)
        self._trail.append(group)

    def _lose(self, count: int) -> None:
        self.lost += count
        self._unreported += count

    def _is_done(self) -> bool:
        return not (self._batches or self._trail or self._mirror.dirty)

    def _writer(self) -> asyncio.Task[None]:
        """The task that writes; a new one where the last one has ended, or its loop has."""
        if self._task is None or self._task.done() or self._task.get_loop().is_closed():
            self._task = asyncio.get_running_loop().create_task(self._write(), name="agent_blackboard.galaxy")
        return self._task

    async def _write(self) -> None:
        pause = 0.5
        while not self._is_done():
            if not self._batches:
                self._batches.append(self._next_batch())
            batch = self._batches[0]
            try:
                client = self._clients.current()
                limit = min(client.timeout, WRITE_SECONDS)
                session = client.session(self._name)
                await session.transact(batch.operations, idempotency_key=batch.key, timeout=limit)
            except REFUSALS as error:
                self._batches.popleft()
                self._refuse(batch, error)
            except Exception as error:  # noqa: BLE001 - a mirror must not end for any failure; `_complain` logs it
                self._complain(error)
                await self._pause(pause)
                pause = min(2 * pause, PAUSE_MAX)
            else:
                self._batches.popleft()
                pause = 0.5
                self._recover()
        self._behind = False

    def _next_batch(self) -> _Batch:
        """The changes that come next: values of the state first, then items of logs in order."""
        groups: list[_Group] = []
        size = 0
        if self._unreported:
            lost = {"event": "events_lost", "at": _instant(None), "count": self._unreported}
            groups.append([_append("trajectories", lost)])
            self._unreported = 0
        while len(groups) < BATCH_GROUPS_MAX and size < BATCH_BYTES_MAX:
            if self._mirror.dirty:
                group = self._mirror.take()
            elif self._trail:
                group = self._trail.popleft()
            else:
                break
            groups.append(group)
            size += len(json.dumps(group))
        return _Batch(groups)

    def _refuse(self, batch: _Batch, error: BlackboardError) -> None:
        """Try the changes of a refused batch one by one; drop a single one."""
        if len(batch.groups) > 1:
            self._batches.extendleft(_Batch([group]) for group in reversed(batch.groups))
            return
        first = batch.groups[0][0]
        logger.log(
            logging.WARNING if self.lost + self.refused == 0 else logging.DEBUG,
            "the board %s rejected a change of Galaxy (%s): %s",
            self._name,
            first.get("append") or first.get("put"),
            error,
        )
        if "put" in first:
            self.refused += 1
            self._mirror.forget(first["put"])
        else:
            self.lost += 1

    def _complain(self, error: Exception) -> None:
        if self._healthy:
            unknown = not isinstance(error, BlackboardError)
            logger.warning("events of Galaxy wait for the board %s: %s", self._name, error, exc_info=unknown)
        self._healthy = False

    def _recover(self) -> None:
        if not self._healthy:
            logger.info("events of Galaxy are written to the board %s again", self._name)
        self._healthy = True

    async def _pause(self, seconds: float) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._wake}, timeout=seconds)


class _Batch:
    """One transaction; its key makes a repeat harmless."""

    def __init__(self, groups: list[_Group]) -> None:
        self.groups = groups
        self.operations = [operation for group in groups for operation in group]
        self.key = uuid.uuid4().hex


class _Mirror:
    """The values that the board should show, by state path, and the paths whose values are not on their way yet."""

    def __init__(self, root: str, constellations_max: int) -> None:
        self._root = root
        self._constellations_max = constellations_max
        self._values: dict[str, Any] = {}
        self._constellations: OrderedDict[str, None] = OrderedDict()
        self.dirty: OrderedDict[str, None] = OrderedDict()

    def constellation(self, name: str, shown: Any, members: Mapping[str, Any] | None = None) -> None:
        """Show a constellation, or some members of it: tasks and dependencies have a path each."""
        self._admit(name)
        parts = _members(shown) if shown is not None else {}
        for kind in ("tasks", "dependencies"):
            if isinstance(parts.get(kind), Mapping):
                wanted = {_text(key): _plain_members(_members(part)) for key, part in _first(parts[kind].items())}
                self._replace(self._at("constellations", name, kind), wanted)
        rest = {key: value for key, value in parts.items() if key not in ("tasks", "dependencies")}
        for key, value in {**rest, **(members or {})}.items():
            self._set(self._at("constellations", name, key), plain(value, VALUE_CHARS_MAX))

    def task(self, constellation: str, name: str) -> dict[str, Any]:
        """The task as it is shown; an empty object where it is not."""
        return dict(self._values.get(self._at("constellations", constellation, "tasks", name)) or {})

    def set_task(self, constellation: str, name: str, value: dict[str, Any]) -> None:
        """Show a task."""
        self._admit(constellation)
        self._set(self._at("constellations", constellation, "tasks", name), value)

    def devices(self, all_devices: Mapping[Any, Any]) -> None:
        """Show exactly these devices, unless there are none."""
        if all_devices:
            wanted = {_text(key): _plain_members(_members(value)) for key, value in _first(all_devices.items())}
            self._replace(self._at("devices"), wanted)

    def device(self, name: str, value: Mapping[str, Any]) -> None:
        """Show a device."""
        self._set(self._at("devices", name), _plain_members(value))

    def agent(self, name: str, value: Mapping[str, Any]) -> None:
        """Show the last output of an agent."""
        self._set(self._at("agents", name), _plain_members(value))

    def take(self) -> _Group:
        """The operations that show the next of the paths as it should be."""
        place, _ = self.dirty.popitem(last=False)
        if place in self._values:
            return [{"put": place, "value": self._values[place]}]
        # A deletion of an absent path would refuse the whole transaction.
        return [{"put": place, "value": None}, {"delete": place}]

    def forget(self, place: str) -> None:
        """Take a path as not shown, so that its next value is written even if it is the same."""
        self._values.pop(place, None)

    def _at(self, *keys: str) -> str:
        return f"{self._root}/{path(*map(_key, keys))}"

    def _admit(self, name: str) -> None:
        self._constellations[name] = None
        self._constellations.move_to_end(name)
        while len(self._constellations) > self._constellations_max or (
            len(self._values) > PATHS_MAX and len(self._constellations) > 1
        ):
            oldest, _ = self._constellations.popitem(last=False)
            self._remove(self._at("constellations", oldest))

    def _remove(self, place: str) -> None:
        below = f"{place}/"
        for known in [known for known in self._values if known.startswith(below) or known == place]:
            del self._values[known]
            self.dirty.pop(known, None)
        for known in [known for known in self.dirty if known.startswith(below)]:
            del self.dirty[known]
        self.dirty[place] = None

    def _replace(self, place: str, wanted: Mapping[str, Any]) -> None:
        places = {f"{place}/{path(_key(key))}": value for key, value in wanted.items()}
        for known in [known for known in self._values if known.startswith(f"{place}/") and known not in places]:
            self._remove(known)
        for known, value in places.items():
            self._set(known, value)

    def _set(self, place: str, value: Any) -> None:
        if place in self._values and self._values[place] == value:
            return
        if place not in self._values and len(self._values) >= PATHS_MAX:
            return
        self._values[place] = value
        self.dirty[place] = None


def plain(value: Any, chars_max: int) -> Any:
    """A copy of any Python value as JSON, with at most about `chars_max` characters; the rest becomes `…`."""
    return _plain(value, [chars_max], DEPTH_MAX)


def _plain(value: Any, left: list[int], levels: int) -> Any:
    left[0] -= 8
    if left[0] <= 0:
        return CLIPPED
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, left, levels)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (Mapping, list, tuple, set, frozenset)) or _has_members(value):
        return _collection(value, left, levels - 1) if levels > 0 else CLIPPED
    return _clipped(_text(value), left)


def _collection(value: Any, left: list[int], levels: int) -> Any:
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(part, left, levels) for part in _first(value)]
    members = {}
    for key, part in _first(_members(value).items()):
        if left[0] <= 0:
            members[CLIPPED] = CLIPPED
            break
        members[_clipped(_text(key), left)] = _plain(part, left, levels)
    return members


def _plain_members(value: Mapping[str, Any]) -> dict[str, Any]:
    copy = plain(value, VALUE_CHARS_MAX)
    return copy if isinstance(copy, dict) else {}


def _has_members(value: Any) -> bool:
    if isinstance(value, type):
        return False
    return dataclasses.is_dataclass(value) or hasattr(value, "to_dict") or hasattr(value, "model_dump")


def _members(value: Any) -> Mapping[Any, Any]:
    """The members of an object of Galaxy: a mapping, what its own conversion gives, or its fields."""
    if isinstance(value, Mapping):
        return value
    for name in ("to_dict", "model_dump"):
        convert = getattr(value, name, None)
        if callable(convert) and not isinstance(value, type):
            members = convert()
            return members if isinstance(members, Mapping) else {"value": members}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {"value": _text(value)}


def _data(event: Any) -> Mapping[Any, Any]:
    """The data of an event; one that is no mapping is a member of that name."""
    data = getattr(event, "data", None)
    if isinstance(data, Mapping):
        return data
    return {} if data is None else {"data": data}


def _unknown(event: Any, *known: str) -> dict[str, Any]:
    """The members of an event but for these and those of each event."""
    members = getattr(event, "__dict__", None)
    if members is None:
        members = _members(event) if dataclasses.is_dataclass(event) else {}
    return {name: value for name, value in _but(members, {*KNOWN, *known}).items() if name[:1] != "_"}


def _but(members: Mapping[Any, Any], names: Iterable[str]) -> dict[Any, Any]:
    return {name: value for name, value in members.items() if name not in names}


def _with_rest(item: Mapping[str, Any], rest: Mapping[Any, Any]) -> dict[Any, Any]:
    """An item with the rest of its event's members; those whose names it has stand below `data`."""
    shown = {name: _shown(value) for name, value in rest.items()}
    taken = {name: value for name, value in shown.items() if name in item}
    return {**item, **({"data": taken} if taken else {}), **_but(shown, taken)}


def _shown(value: Any) -> Any:
    """A copy of an unknown value; one that cannot be copied must not cost its event."""
    try:
        return plain(value, ITEM_CHARS_MAX)
    except Exception as error:  # noqa: BLE001 - the value's own methods may raise anything
        return f"{type(value).__name__}: not shown, {type(error).__name__}"


def _key(name: str) -> str:
    """An id as a key of the state, which is not empty, `.` or `..`."""
    return name[:KEY_CHARS_MAX] if name.strip(".") else f"{name[:KEY_CHARS_MAX]}_"


def _first(parts: Iterable[Any]) -> list[Any]:
    return list(parts)[:MEMBERS_MAX]


def _number(value: int | float) -> Any:
    if isinstance(value, int):
        return int(value) if value.bit_length() <= 64 else f"an integer of {value.bit_length()} bits"
    return float(value) if math.isfinite(value) else str(value)


def _text(value: Any) -> str:
    if isinstance(value, Enum):
        text = str(value.value)
    elif isinstance(value, str):
        text = str(value)
    elif isinstance(value, (datetime, date, time)):
        text = value.isoformat()
    elif isinstance(value, BaseException):
        text = f"{type(value).__name__}: {value}"
    elif isinstance(value, (bytes, bytearray, memoryview)):
        text = f"{len(value)} bytes"
    else:
        text = str(value)
    return text.encode("utf-8", "replace").decode()


def _clipped(text: str, left: list[int]) -> str:
    room = max(min(TEXT_CHARS_MAX, left[0]), 0)
    left[0] -= min(len(text), room)
    return text if len(text) <= room else f"{text[:room]}{CLIPPED}"


def _instant(timestamp: Any) -> str:
    """A time of Galaxy, in seconds since 1970, as RFC 3339 in UTC; now where it is none."""
    try:
        moment = datetime.fromtimestamp(timestamp, timezone.utc)
    except (TypeError, ValueError, OverflowError, OSError):
        moment = datetime.now(timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_name(name: str) -> bool:
    sound = name not in ("", ".", "..") and "/" not in name and len(name.encode()) <= 256
    return sound and not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in name)


def _append(log: str, item: Mapping[str, Any]) -> _Operation:
    copy = plain(item, ITEM_CHARS_MAX)
    return {"append": log, "item": {key: value for key, value in copy.items() if value is not None}}
