"""Threads for tests: checkpoints put one after another, and the saver's view of them."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from agent_blackboard.langgraph import BlackboardSaver


def config(thread_id: Any = "t", checkpoint_id: str | None = None, checkpoint_ns: str | None = "") -> RunnableConfig:
    named = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    return {"configurable": {name: value for name, value in named.items() if value is not None}}


def checkpoint(values: dict[str, Any], versions: dict[str, Any] | None = None, id: str | None = None) -> Checkpoint:
    made = empty_checkpoint()
    made["id"] = id or str(uuid6())
    made["channel_values"] = values
    made["channel_versions"] = dict.fromkeys(values, 1) if versions is None else versions
    return made


def metadata(**more: Any) -> CheckpointMetadata:
    return {"source": "loop", "step": 0, "parents": {}, **more}  # type: ignore[typeddict-item]


def put(
    saver: BlackboardSaver,
    values: dict[str, Any],
    parent: RunnableConfig | None = None,
    versions: dict[str, Any] | None = None,
    changed: dict[str, Any] | None = None,
    id: str | None = None,
    **more: Any,
) -> RunnableConfig:
    """Put a checkpoint; `changed` are the new versions, all unless given."""
    made = checkpoint(values, versions, id)
    return saver.put(
        config() if parent is None else parent,
        made,
        metadata(**more),
        made["channel_versions"] if changed is None else changed,
    )


def chain(saver: BlackboardSaver, count: int, parent: RunnableConfig | None = None) -> list[RunnableConfig]:
    """Put checkpoints one after another, `n` counting them and the metadata too."""
    made: list[RunnableConfig] = []
    for step in range(count):
        made.append(put(saver, {"n": step}, parent, {"n": step + 1}, step=step))
        parent = made[-1]
    return made


def found(saver: BlackboardSaver, config: RunnableConfig) -> CheckpointTuple:
    read = saver.get_tuple(config)
    assert read is not None
    return read


def values(saver: BlackboardSaver, config: RunnableConfig) -> dict[str, Any]:
    return found(saver, config).checkpoint["channel_values"]


def ids(tuples: Any) -> list[str]:
    return [one.config["configurable"]["checkpoint_id"] for one in tuples]


def id_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["checkpoint_id"])
