"""Threads: the operations of the saver, each on the session of a thread, as exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._wire import path
from ..errors import NoBlob, SessionNotFound, UnsupportedValue
from . import names, records
from .caches import Cache
from .chains import Record
from .display import Display, answers
from .display.interrupts import At, Task
from .display.steps import Step
from .errors import TooManyConflicts
from .exchange import Exchange
from .sessions import TRIES_MAX, Operation, Sessions
from .values import Packed, Reference, Values, pack

RECORDS_MAX = 1000
"""The number of records and of latest checkpoints that are kept in memory."""


@dataclass(frozen=True)
class Address:
    """A checkpoint's thread, session and namespace, with its id where a config names one."""

    thread_id: str
    session: str
    checkpoint_ns: str
    checkpoint_id: str | None

    @property
    def namespace(self) -> str:
        """The state path of the namespace's checkpoints."""
        return path("checkpoints", names.key(self.checkpoint_ns))

    @property
    def latest(self) -> str:
        """The state path of the id of the namespace's latest checkpoint."""
        return path("latest", names.key(self.checkpoint_ns))

    def entry(self, checkpoint_id: str) -> str:
        """The state path of a checkpoint."""
        return path("checkpoints", names.key(self.checkpoint_ns), names.key(checkpoint_id))

    def at(self, checkpoint_id: str) -> At:
        """A checkpoint of the namespace."""
        return self.session, self.checkpoint_ns, checkpoint_id


@dataclass(frozen=True)
class Found:
    """A checkpoint that a listing has found; its values are not loaded yet."""

    address: Address
    entry: Record


class Threads:
    """The threads of a saver, with the display of them unless it is switched off."""

    def __init__(self, prefix: str, sessions: Sessions, display: Display | None = None) -> None:
        self.prefix = names.checked_prefix(prefix)
        self.sessions = sessions
        self.display = display
        self.values = Values()
        self._records: Cache[tuple[str, str], Record] = Cache(RECORDS_MAX)
        self._latest: Cache[tuple[str, str], str] = Cache(RECORDS_MAX)

    def address(self, config: RunnableConfig) -> Address:
        """The address in a config. Raises UnsupportedValue where it names no thread."""
        named = config.get("configurable", {})
        if named.get("thread_id") is None:
            raise UnsupportedValue("the config has no configurable thread_id")
        thread_id = str(named["thread_id"])
        checkpoint_id = named.get("checkpoint_id")
        return Address(
            thread_id, self.session(thread_id), named.get("checkpoint_ns") or "", checkpoint_id and str(checkpoint_id)
        )

    def session(self, thread_id: str) -> str:
        """The session of a thread."""
        return names.thread_session(self.prefix, str(thread_id))

    def put(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Exchange[RunnableConfig]:
        """Store a checkpoint: first the blobs that are new, then all else in one commit."""
        address = self.address(config)
        told = get_checkpoint_metadata(config, metadata)
        parent = yield from self._parent(address, checkpoint, new_versions)
        step = self._step(address, checkpoint, told, new_versions)
        try:
            yield from self._put(serde, address, checkpoint, told, new_versions, parent, step)
        except NoBlob:
            # A blob that was known to be there has been deleted since: its thread was pruned or deleted.
            self.forget(address.session)
            yield from self._put(serde, address, checkpoint, told, new_versions, None, step)
        return records.config(address.thread_id, address.checkpoint_ns, checkpoint["id"])

    def _parent(
        self, address: Address, checkpoint: Checkpoint, new_versions: ChannelVersions
    ) -> Exchange[Record | None]:
        """The record of the parent, where some channel has not changed since."""
        if address.checkpoint_id is None or checkpoint["channel_versions"].keys() <= new_versions.keys():
            return None
        where = address.entry(address.checkpoint_id)
        known = self._records.get((address.session, where))
        if known is None:
            read = yield from self.sessions.read(address.session, f"{where}/record")
            known = None if read is None else read.value
        return known

    def _step(
        self, address: Address, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> Step | None:
        """A checkpoint as people see it."""
        if self.display is None:
            return None
        above = address.checkpoint_id
        record = None if above is None else self._records.get((address.session, address.entry(above)))
        return self.display.step(address.at(checkpoint["id"]), (above, record), checkpoint, metadata, new_versions)

    def _put(
        self,
        serde: SerializerProtocol,
        address: Address,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        parent: Record | None,
        step: Step | None,
    ) -> Exchange[None]:
        references, packed = _channels(serde, checkpoint, new_versions, parent)
        made, further = records.record(serde, checkpoint, metadata, address.checkpoint_id, references)
        yield from self._store(address.session, [*packed, *further])
        where = address.entry(checkpoint["id"])
        operations: list[Operation] = [{"put": f"{where}/record", "value": made}]
        run_id = metadata.get("run_id")
        if isinstance(run_id, str):
            operations.append({"put": path("runs", names.key(run_id)), "value": True})
        yield from self._commit_newest(address, checkpoint["id"], operations, step)
        self._records.put((address.session, where), made)
        if self.display is not None:
            yield from self.display.interrupts.ask_deferred(address.at(checkpoint["id"]))

    def _store(self, session: str, packed: Sequence[Packed]) -> Exchange[None]:
        try:
            yield from self.values.store(session, packed)
        except SessionNotFound:
            # The server makes no session by its first write.
            yield from self.sessions.make(session)
            yield from self.values.store(session, packed)

    def _commit_newest(
        self, address: Address, checkpoint_id: str, operations: list[Operation], step: Step | None
    ) -> Exchange[None]:
        """Commit a checkpoint, and the namespace's latest id where it is the newest."""
        known = (address.session, address.latest)
        newest = self._latest.get(known) or (yield from self._read_latest(address))
        for _ in range(TRIES_MAX):
            same = {"path": address.latest, **({"absent": True} if newest is None else {"equals": newest})}
            newer = newest is None or checkpoint_id > newest
            moved = [{"put": address.latest, "value": checkpoint_id}] if newer else []
            conditions, shown = yield from self._shown(address, checkpoint_id, step, newer=newer)
            # What people look at comes first, as the page lists it.
            all_of_it = [*shown, *operations, *moved, *self._named(address)]
            if (yield from self.sessions.commit(address.session, [same, *conditions], all_of_it)):
                self._latest.put(known, checkpoint_id if newest is None or newer else newest)
                if self.display is not None and step is not None:
                    self.display.stored(address.at(checkpoint_id), address.checkpoint_id, step, newer=newer)
                return
            newest = yield from self._read_latest(address)
            if self.display is not None:
                yield from self.display.refused(address.session)
        raise TooManyConflicts(f"thread {address.thread_id!r} was written by others {TRIES_MAX} times in a row")

    def _shown(
        self, address: Address, checkpoint_id: str, step: Step | None, *, newer: bool
    ) -> Exchange[tuple[list[dict[str, Any]], list[Operation]]]:
        """The conditions and operations by which a checkpoint's commit shows it."""
        if self.display is None or step is None:
            return [], []
        record = f"{address.entry(checkpoint_id)}/record"
        at = address.at(checkpoint_id)
        return (yield from self.display.put(at, address.checkpoint_id, step, newer=newer, record=record))

    def _read_latest(self, address: Address) -> Exchange[str | None]:
        read = yield from self.sessions.read(address.session, address.latest)
        known = (address.session, address.latest)
        if read is None:
            self._latest.drop(known)
            return None
        self._latest.put(known, read.value)
        return str(read.value)

    def _named(self, address: Address) -> list[Operation]:
        """The thread's id, where the session's name does not tell it."""
        if names.thread_of(self.prefix, address.session) is not None:
            return []
        return [{"put": "thread", "value": names.escaped(address.thread_id)}]

    def put_writes(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        pairs: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Exchange[None]:
        """Store the writes of a task in one commit, after the blobs that are new."""
        address = self.address(config)
        if address.checkpoint_id is None:
            raise UnsupportedValue("the config of a write has no checkpoint_id")
        task = None
        if self.display is not None:
            at = address.at(address.checkpoint_id)
            task = self.display.write(at, address.thread_id, task_id, task_path, pairs)
        made, packed = records.writes(serde, pairs, task_path)
        yield from self._store(address.session, packed)
        where = f"{address.entry(address.checkpoint_id)}/writes/{path(names.key(task_id))}"
        try:
            yield from self._put_writes(address, where, made, task)
        except NoBlob:
            self.forget(address.session)
            yield from self._store(address.session, packed)
            yield from self._put_writes(address, where, made, task)

    def _put_writes(
        self, address: Address, where: str, made: Mapping[str, Record], task: Task | None
    ) -> Exchange[None]:
        same: dict[str, Any] = {"path": where, "absent": True}
        all_of_it = dict(made)
        if task is not None:
            task.stored = self._records.get((address.session, self._entry(address))) is not None
        for number in range(TRIES_MAX):
            # A task that has an answer has written its interrupt before.
            if number > 0 or (task is not None and task.answers):
                read = yield from self.sessions.read(address.session, where)
                same = {"path": where, **({"absent": True} if read is None else {"etag": read.etag})}
                all_of_it = dict(made) if read is None else records.merged(read.value, made)
                if read is not None and all_of_it == read.value:
                    yield from self._ask(address, task)
                    return
                if task is not None:
                    task.repeated = True
            conditions, shown = yield from self._asked(task)
            operations = [*shown, {"put": where, "value": all_of_it}, *self._named(address)]
            if (yield from self.sessions.commit(address.session, [same, *conditions], operations)):
                if self.display is not None and task is not None:
                    self.display.interrupts.committed(task)
                    yield from self._ask_late(address, task)
                return
        raise TooManyConflicts(f"thread {address.thread_id!r} was written by others {TRIES_MAX} times in a row")

    def _entry(self, address: Address) -> str:
        return address.entry(address.checkpoint_id or "")

    def _asked(self, task: Task | None) -> Exchange[tuple[list[dict[str, Any]], list[Operation]]]:
        """The conditions and operations by which a task's commit asks and closes questions."""
        if self.display is None or task is None:
            return [], []
        return (yield from self.display.interrupts.written(task))

    def _ask(self, address: Address, task: Task | None) -> Exchange[None]:
        """Ask what was written before: by a killed process, or by a try whose answer was lost."""
        if self.display is None or task is None or not task.raised:
            return
        if task.stored:
            yield from self.display.interrupts.ask(task)
        else:
            self.display.interrupts.committed(task)
            yield from self._ask_late(address, task)

    def _ask_late(self, address: Address, task: Task) -> Exchange[None]:
        """Ask what a task has deferred, where its checkpoint was stored meanwhile, or by another process."""
        if self.display is None or task.stored or not task.raised:
            return
        where = self._entry(address)
        stored = self._records.get((address.session, where)) is not None
        if stored or (yield from self.sessions.read(address.session, f"{where}/record")) is not None:
            yield from self.display.interrupts.ask_deferred(task.at)

    def get(self, serde: SerializerProtocol, config: RunnableConfig) -> Exchange[CheckpointTuple | None]:
        """The checkpoint of a config, or the namespace's latest."""
        address = self.address(config)
        found = yield from self._find(address)
        if found is None:
            return None
        read = yield from self.load(serde, found)
        if self.display is not None:
            paths = [write.get("path", "") for _, write in records.ordered(found.entry.get("writes", {}))]
            written = [(task, at, *rest) for at, (task, *rest) in zip(paths, read.pending_writes or [], strict=True)]
            self.display.load(address.at(read.checkpoint["id"]), read.checkpoint, written)
        return read

    def _find(self, address: Address) -> Exchange[Found | None]:
        for _ in range(TRIES_MAX):
            checkpoint_id = address.checkpoint_id or (yield from self._read_latest(address))
            if checkpoint_id is None:
                return None
            read = yield from self.sessions.read(address.session, address.entry(checkpoint_id))
            if read is not None and "record" in read.value:
                self._records.put((address.session, address.entry(checkpoint_id)), read.value["record"])
                return Found(address, read.value)
            if address.checkpoint_id:
                return None
        raise TooManyConflicts(f"the latest checkpoint of {address.thread_id!r} was deleted {TRIES_MAX} times in a row")

    def load(self, serde: SerializerProtocol, found: Found) -> Exchange[CheckpointTuple]:
        """The tuple of a checkpoint, its values read."""
        address = found.address
        return (
            yield from records.checkpoint_tuple(
                self.values, address.session, serde, address.thread_id, address.checkpoint_ns, found.entry
            )
        )

    def addresses(self, config: RunnableConfig | None) -> Exchange[list[Address]]:
        """The thread of a config, or all threads."""
        if config is not None and config.get("configurable", {}).get("thread_id") is not None:
            return [self.address(config)]
        found = []
        for session in (yield from self.sessions.names(self.prefix)):
            thread_id = names.thread_of(self.prefix, session)
            if thread_id is None:
                read = yield from self.sessions.read(session, "thread")
                thread_id = None if read is None else names.unescaped(str(read.value))
            if thread_id is not None and self.session(thread_id) == session:
                found.append(Address(thread_id, session, "", None))
        return found

    def select(
        self,
        serde: SerializerProtocol,
        address: Address,
        checkpoint_ns: str | None,
        before: str | None,
        filter: Mapping[str, Any] | None,
    ) -> Exchange[list[Found]]:
        """The checkpoints of a thread that match, the newest first."""
        found: list[Found] = []
        for namespace, entries in (yield from self.namespaces(address.session, checkpoint_ns)).items():
            here = Address(address.thread_id, address.session, namespace, None)
            for checkpoint_id, entry in entries.items():
                meant = address.checkpoint_id in (None, checkpoint_id) and (before is None or checkpoint_id < before)
                if meant and "record" in entry and (yield from self._matches(serde, address, entry, filter)):
                    found.append(Found(here, {**entry, "id": checkpoint_id}))
        return sorted(found, key=lambda part: str(part.entry["id"]), reverse=True)

    def _matches(
        self,
        serde: SerializerProtocol,
        address: Address,
        entry: Record,
        filter: Mapping[str, Any] | None,
    ) -> Exchange[bool]:
        if not filter:
            return True
        told = yield from records.metadata(self.values, address.session, serde, entry["record"])
        return all(told.get(name) == value for name, value in filter.items())

    def namespaces(self, session: str, checkpoint_ns: str | None = None) -> Exchange[dict[str, dict[str, Record]]]:
        """The entries of a session by namespace and id, of one namespace or all."""
        where = "checkpoints" if checkpoint_ns is None else path("checkpoints", names.key(checkpoint_ns))
        read = yield from self.sessions.read(session, where)
        if read is None:
            return {}
        return entries(read.value) if checkpoint_ns is None else {checkpoint_ns: _by_text(read.value)}

    def delta_history(
        self, serde: SerializerProtocol, config: RunnableConfig, channels: Iterable[str]
    ) -> Exchange[dict[str, DeltaChannelHistory]]:
        """The writes to some channels since their last stored values, and these, above a checkpoint."""
        address = self.address(config)
        stored = (yield from self.namespaces(address.session, address.checkpoint_ns)).get(address.checkpoint_ns, {})
        above = _ancestors(stored, address.checkpoint_id or max(_recorded(stored), default=""))
        result: dict[str, DeltaChannelHistory] = {}
        for channel in channels:
            history: DeltaChannelHistory = {"writes": []}
            for entry in above:
                tasks = _only(entry.get("writes", {}), channel)
                older = yield from records.pending(self.values, address.session, serde, tasks)
                history["writes"] = older + history["writes"]
                if channel in entry["record"]["values"]:
                    reference = entry["record"]["values"][channel]
                    history["seed"] = yield from self.values.load(address.session, serde, reference)
                    break
            result[channel] = history
        if self.display is not None and address.checkpoint_id is not None:
            self.display.seen(address.at(address.checkpoint_id), result)
        return result

    def interrupts(self, config: RunnableConfig) -> Exchange[dict[str, Any]]:
        """The pending interrupts of a thread."""
        return (yield from self._visible().interrupts.pending(self.address(config).session))

    def answers(self, config: RunnableConfig, raised: Iterable[Any], wait: float) -> Exchange[dict[str, Any] | None]:
        """The values that answer interrupts of a thread."""
        address = self.address(config)
        asked = self._visible().interrupts
        return (yield from answers.answers(asked, address.session, address.thread_id, raised, wait))

    def ask_again(self, config: RunnableConfig, raised: Iterable[Any], problem: str) -> Exchange[None]:
        """Ask interrupts of a thread once more."""
        for interrupt in raised:
            asked = self._visible().interrupts
            yield from answers.ask_again(asked, self.address(config).session, interrupt, problem)

    def _visible(self) -> Display:
        if self.display is None:
            raise UnsupportedValue("the saver shows no questions; make it with visible=True")
        return self.display

    def delete(self, thread_id: str) -> Exchange[None]:
        """Delete a thread with its session."""
        session = self.session(thread_id)
        yield from self.sessions.delete(session)
        self.forget(session)

    def copy(self, source: str, target: str) -> Exchange[None]:
        """Copy a thread by a fork of its session."""
        session = self.session(target)
        yield from self.sessions.fork(self.session(source), session)
        self.forget(session)
        if named := self._named(Address(str(target), session, "", None)):
            yield from self.sessions.commit(session, [], named)
        if self.display is not None:
            yield from self.display.copied(session, str(target))

    def forget(self, session: str) -> None:
        """Forget what is known of a session."""
        self.values.forget(session)
        self._records.drop_where(lambda known: known[0] == session)
        self._latest.drop_where(lambda known: known[0] == session)
        if self.display is not None:
            self.display.forget(session)


def entries(checkpoints: Mapping[str, Mapping[str, Record]]) -> dict[str, dict[str, Record]]:
    """The state's checkpoints by namespace and id."""
    return {names.text_of(namespace): _by_text(stored) for namespace, stored in checkpoints.items()}


def _by_text(stored: Mapping[str, Record]) -> dict[str, Record]:
    return {names.text_of(key): entry for key, entry in stored.items()}


def _recorded(stored: Mapping[str, Record]) -> list[str]:
    return [checkpoint_id for checkpoint_id, entry in stored.items() if "record" in entry]


def _ancestors(stored: Mapping[str, Record], checkpoint_id: str) -> list[Record]:
    """The entries above a checkpoint, the nearest first."""
    found: dict[str, Record] = {}
    entry = stored.get(checkpoint_id, {})
    while "record" in entry:
        parent = entry["record"]["parent"]
        entry = stored.get(parent, {})
        if "record" not in entry or parent in found:
            break
        found[parent] = entry
    return list(found.values())


def _only(tasks: Mapping[str, Mapping[str, Record]], channel: str) -> dict[str, dict[str, Record]]:
    """The writes to one channel."""
    return {
        task: {index: write for index, write in made.items() if write["channel"] == channel}
        for task, made in tasks.items()
    }


def _channels(
    serde: SerializerProtocol, checkpoint: Checkpoint, new_versions: ChannelVersions, parent: Record | None
) -> tuple[dict[str, Reference], list[Packed]]:
    """The references of a checkpoint's values, and the values that are not stored yet.

    A channel with the version that it has in the parent has the parent's value, whether the caller gave it or not.
    """
    references: dict[str, Reference] = {}
    packed: list[Packed] = []
    versions = checkpoint["channel_versions"]
    if parent is not None:
        old = parent["checkpoint"].get("channel_versions", {})
        for channel, reference in parent["values"].items():
            if channel in versions and channel not in new_versions and old.get(channel) == versions[channel]:
                references[channel] = reference
    for channel, value in checkpoint["channel_values"].items():
        if channel not in references:
            packed.append(pack(serde, value, f"channel {channel!r}"))
            references[channel] = packed[-1].reference
    return references, packed
