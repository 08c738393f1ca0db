"""Records of checkpoints: a checkpoint, its metadata and its pending writes as they stand in the state, and back.

Members that are plain JSON stand as they are, for people and for filters; the others of a mapping are serialized
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, CheckpointMetadata, CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._wire import json_bytes
from . import names
from .chains import Record
from .errors import ValueTooLarge
from .exchange import Exchange
from .values import Packed, Reference, Values, is_plain, pack

RECORD_BYTES_MAX = 7 << 20
"""The longest record of a checkpoint, and of a task's writes, in bytes of JSON; a body has at most 8 MiB."""


def record(
    serde: SerializerProtocol,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    parent: str | None,
    references: Mapping[str, Reference],
) -> tuple[Record, list[Packed]]:
    """The record of a checkpoint whose values are stored already or in `references`, and what else is to be stored.

    Raises ValueTooLarge.
    """
    skeleton = {name: value for name, value in checkpoint.items() if name != "channel_values"}
    made: Record = {"parent": parent, "values": dict(references)}
    packed: list[Packed] = []
    for name, mapping in (("checkpoint", skeleton), ("metadata", metadata)):
        made[name] = {key: value for key, value in mapping.items() if is_plain({key: value})}
        if rest := {key: value for key, value in mapping.items() if key not in made[name]}:
            packed.append(pack(serde, rest, f"the {name}"))
            made[f"{name}_packed"] = packed[-1].reference
    return _bounded(made, "the checkpoint without its long values"), packed


def metadata(values: Values, session: str, serde: SerializerProtocol, made: Record) -> Exchange[CheckpointMetadata]:
    """The metadata of a record."""
    return cast(CheckpointMetadata, (yield from _mapping(values, session, serde, made, "metadata")))


def checkpoint(values: Values, session: str, serde: SerializerProtocol, made: Record) -> Exchange[Checkpoint]:
    """The checkpoint of a record, with its values."""
    skeleton = yield from _mapping(values, session, serde, made, "checkpoint")
    channels = {}
    for channel, reference in made["values"].items():
        channels[channel] = yield from values.load(session, serde, reference)
    return cast(Checkpoint, {**skeleton, "channel_values": channels})


def _mapping(
    values: Values, session: str, serde: SerializerProtocol, made: Record, name: str
) -> Exchange[dict[str, Any]]:
    plain = dict(made[name])
    if f"{name}_packed" in made:
        plain |= yield from values.load(session, serde, made[f"{name}_packed"])
    return plain


def writes(
    serde: SerializerProtocol, pairs: Sequence[tuple[str, Any]], task_path: str
) -> tuple[dict[str, Record], list[Packed]]:
    """The writes of a task by their index, and what is to be stored. Errors, interrupts and the like are below 0.

    Raises ValueTooLarge.
    """
    made: dict[str, Record] = {}
    stored: list[Packed] = []
    for position, (channel, value) in enumerate(pairs):
        packed = pack(serde, value, f"the write to channel {channel!r}")
        stored.append(packed)
        path = {"path": task_path} if task_path else {}
        made[str(WRITES_IDX_MAP.get(channel, position))] = {"channel": channel, **path, **packed.reference}
    return _bounded(made, "the writes without their long values"), stored


def _bounded(made: Record, name: str) -> Record:
    size = len(json_bytes(made))
    if size > RECORD_BYTES_MAX:
        raise ValueTooLarge(f"{name} has {size} bytes of JSON; the limit is {RECORD_BYTES_MAX} (7 MiB)")
    return made


def merged(present: Mapping[str, Record], new: Mapping[str, Record]) -> dict[str, Record]:
    """The writes of a task after a further call: a first write of its index stays, unless it is below 0."""
    return {**new, **present, **{index: write for index, write in new.items() if int(index) < 0}}


def ordered(tasks: Mapping[str, Mapping[str, Record]]) -> list[tuple[str, Record]]:
    """The writes of a checkpoint in the order in which a run applies them: by path of the task, task and index."""
    found = [
        (write.get("path", ""), names.text_of(task), int(index), write)
        for task, made in tasks.items()
        for index, write in made.items()
    ]
    return [(task, write) for _, task, _, write in sorted(found, key=lambda part: part[:3])]


def pending(
    values: Values, session: str, serde: SerializerProtocol, tasks: Mapping[str, Mapping[str, Record]]
) -> Exchange[list[PendingWrite]]:
    """The pending writes of a checkpoint."""
    found: list[PendingWrite] = []
    for task, write in ordered(tasks):
        found.append((task, write["channel"], (yield from values.load(session, serde, write))))
    return found


def config(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    """The config of a checkpoint."""
    named = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    return {"configurable": named}


def checkpoint_tuple(
    values: Values, session: str, serde: SerializerProtocol, thread_id: str, checkpoint_ns: str, entry: Record
) -> Exchange[CheckpointTuple]:
    """A checkpoint with all that belongs to it. `entry` has the record and the writes."""
    made = entry["record"]
    loaded = yield from checkpoint(values, session, serde, made)
    told = yield from metadata(values, session, serde, made)
    waiting = yield from pending(values, session, serde, entry.get("writes", {}))
    parent = None if made["parent"] is None else config(thread_id, checkpoint_ns, made["parent"])
    return CheckpointTuple(config(thread_id, checkpoint_ns, loaded["id"]), loaded, told, parent, waiting)
