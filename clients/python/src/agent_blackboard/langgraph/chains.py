"""Chains of checkpoints: which ancestors a checkpoint needs, so that its delta channels can be rebuilt.

A `DeltaChannel` stores no value but every so many updates; in between, its value is the nearest stored one above,
with the writes of all checkpoints from there on. `counters_since_delta_snapshot` in the metadata names the channels
that have such writes, and a stored snapshot is marked in its reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Record = dict[str, Any]

COUNTERS = "counters_since_delta_snapshot"


def delta_channels(records: Iterable[Record]) -> set[str]:
    """The names of the delta channels that some checkpoints of a namespace tell of."""
    found: set[str] = set()
    for record in records:
        found.update(record.get("metadata", {}).get(COUNTERS) or {})
        found.update(name for name, reference in record["values"].items() if reference.get("delta"))
    return found


def missing(record: Record, deltas: set[str]) -> set[str]:
    """The delta channels that a checkpoint has no value for, though they were written."""
    versions = record["checkpoint"].get("channel_versions", deltas)
    return {name for name in deltas if name in versions and name not in record["values"]}


def chain(records: Mapping[str, Record], checkpoint_id: str, deltas: set[str]) -> set[str]:
    """A checkpoint with the ancestors that it needs, as far as they exist."""
    needed = {checkpoint_id}
    wanted = missing(records[checkpoint_id], deltas)
    parent = str(records[checkpoint_id]["parent"])
    while wanted and parent in records and parent not in needed:
        needed.add(parent)
        wanted -= records[parent]["values"].keys()
        parent = str(records[parent]["parent"])
    return needed


def cut(records: Mapping[str, Record], doomed: set[str]) -> str | None:
    """The id of a checkpoint that would lose a part of its chain with the doomed ones; None where there is none."""
    deltas = delta_channels(records.values())
    for checkpoint_id, record in records.items():
        if checkpoint_id not in doomed and record["parent"] in doomed and missing(record, deltas):
            return checkpoint_id
    return None
