"""`BlackboardSaver`: checkpoints of LangGraph's graphs on a Blackboard server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import Self

from .._async.client import AsyncClient
from .._sync.client import Client
from . import retention
from .display import ENTRIES_MAX, Display
from .display.answers import WAIT_SECONDS
from .exchange import Connections
from .sessions import Sessions, Settings
from .threads import Threads

PREFIX = "langgraph:"
"""The beginning of the names of the threads' sessions."""
AGENT = "langgraph"
"""The writer of what is shown, where neither the saver nor its client names one."""
HISTORY = "1s"
"""The age up to which the server retains the history of a thread, so that what is deleted frees its space."""


class BlackboardSaver(BaseCheckpointSaver[int]):
    """A checkpoint saver on a Blackboard server, for sync and async graphs alike.

    `url` and `token` default to BLACKBOARD_URL and BLACKBOARD_TOKEN; or hand in a `Client`, an `AsyncClient` or both.
    A thread is the session `prefix` + its id. `history` is the `settings.history` of sessions that are made here.
    `serde` serializes values of channels and writes; ids, versions and metadata that are plain JSON stay readable.

    `visible` shows the thread on its board: steps, values and interrupts, as JSON. The default is to show it unless
    `serde` is another one than LangGraph's own, as values that are encrypted must not stand beside it in clear. `agent`
    is the author of what is shown; the default is the client's agent, or `langgraph`.

    Methods raise the client's errors, ValueTooLarge, and UnsupportedValue where a config names no thread. A
    refused call has stored nothing.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        async_client: AsyncClient | None = None,
        url: str | None = None,
        token: str | None = None,
        prefix: str = PREFIX,
        history: int | str = HISTORY,
        serde: SerializerProtocol | None = None,
        visible: bool | None = None,
        agent: str | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._connections = Connections(client, async_client, url, token)
        shown = serde is None or type(serde) is JsonPlusSerializer if visible is None else visible
        author = agent or getattr(client or async_client, "agent", None) or AGENT
        bounds = (("questions", ENTRIES_MAX), ("trajectories", ENTRIES_MAX)) if shown else ()
        settings = Settings(history, (("adapter", "langgraph"),), bounds)
        sessions = Sessions(settings, keyed=False, agent=author)
        self._threads = Threads(prefix, sessions, Display(sessions, author) if shown else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Close the connections of the sync methods that were made here."""
        self._connections.close()

    async def aclose(self) -> None:
        """Close the connections that were made here, those of this event loop included."""
        await self._connections.aclose()

    def session_name(self, thread_id: str) -> str:
        """The name of a thread's session on the server."""
        return self._threads.session(thread_id)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the latest one of its namespace; None where there is none."""
        return self._connections.run(self._threads.get(self.serde, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await self._connections.arun(self._threads.get(self.serde, config))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint in one commit, after the blobs that are new; returns its config."""
        return self._connections.run(self._threads.put(self.serde, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        return await self._connections.arun(self._threads.put(self.serde, config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task in one commit, after the blobs that are new. A repeat changes nothing."""
        self._connections.run(self._threads.put_writes(self.serde, config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await self._connections.arun(self._threads.put_writes(self.serde, config, writes, task_id, task_path))

    def interrupts(self, config: RunnableConfig) -> dict[str, Any]:
        """The pending interrupts of a thread by id: node, namespace, checkpoint and the beginning of the question."""
        return self._connections.run(self._threads.interrupts(config))

    async def ainterrupts(self, config: RunnableConfig) -> dict[str, Any]:
        """As `interrupts`."""
        return await self._connections.arun(self._threads.interrupts(config))

    def answers(
        self, config: RunnableConfig, interrupts: Iterable[Any], *, wait: float = WAIT_SECONDS
    ) -> dict[str, Any] | None:
        """Wait until the questions of interrupts are answered; returns the mapping for `Command(resume=…)`.

        It has no interrupt whose answer the graph has taken already, and is None where that happened during the wait.
        Raises ConditionNotMet, a TimeoutError, after `wait` seconds.
        """
        return self._connections.run(self._threads.answers(config, interrupts, wait))

    async def aanswers(
        self, config: RunnableConfig, interrupts: Iterable[Any], *, wait: float = WAIT_SECONDS
    ) -> dict[str, Any] | None:
        """As `answers`."""
        return await self._connections.arun(self._threads.answers(config, interrupts, wait))

    def ask_again(self, config: RunnableConfig, interrupts: Iterable[Any], problem: str) -> None:
        """Ask the questions of interrupts once more, saying why the last answer was not taken."""
        self._connections.run(self._threads.ask_again(config, interrupts, problem))

    async def aask_again(self, config: RunnableConfig, interrupts: Iterable[Any], problem: str) -> None:
        """As `ask_again`."""
        await self._connections.arun(self._threads.ask_again(config, interrupts, problem))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The writes of which some delta channels are made at a checkpoint, in one read of its namespace."""
        return self._connections.run(self._threads.delta_history(self.serde, config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        return await self._connections.arun(self._threads.delta_history(self.serde, config, channels))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with its session; nothing where there is none."""
        self._connections.run(self._threads.delete(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await self._connections.arun(self._threads.delete(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of some runs in all threads, with their writes: one commit a thread.

        Raises DeltaChainBroken before anything is deleted where a checkpoint of another run is made of their writes.
        """
        self._connections.run(retention.delete_runs(self._threads, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await self._connections.arun(retention.delete_runs(self._threads, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread by a fork of its session, with all its checkpoints and writes.

        Raises SessionNotFound where there is no source, SessionExists where there is a target.
        """
        self._connections.run(self._threads.copy(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await self._connections.arun(self._threads.copy(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads, one commit each.

        `keep_latest` keeps the latest checkpoint of each namespace, and of its ancestors those that its delta
        channels are made of; `delete` deletes the threads. Raises ValueError for another strategy.
        """
        retention.checked_strategy(strategy)
        for thread_id in thread_ids:
            self._connections.run(retention.prune(self._threads, thread_id, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        retention.checked_strategy(strategy)
        for thread_id in thread_ids:
            await self._connections.arun(retention.prune(self._threads, thread_id, strategy))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread that match, the newest first; without a thread, of all threads one by one.

        `filter` compares members of the metadata. A config without `checkpoint_ns` is about all namespaces.
        """
        left = _limit(limit)
        for address in self._connections.run(self._threads.addresses(config)):
            if left <= 0:
                return
            wanted = self._threads.select(self.serde, address, _namespace(config), _id(before), filter)
            for found in self._connections.run(wanted):
                if left <= 0:
                    return
                left -= 1
                yield self._connections.run(self._threads.load(self.serde, found))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        left = _limit(limit)
        for address in await self._connections.arun(self._threads.addresses(config)):
            if left <= 0:
                return
            wanted = self._threads.select(self.serde, address, _namespace(config), _id(before), filter)
            for found in await self._connections.arun(wanted):
                if left <= 0:
                    return
                left -= 1
                yield await self._connections.arun(self._threads.load(self.serde, found))


def _limit(limit: int | None) -> float:
    return float("inf") if limit is None else limit


def _namespace(config: RunnableConfig | None) -> str | None:
    return None if config is None else config.get("configurable", {}).get("checkpoint_ns")


def _id(config: RunnableConfig | None) -> str | None:
    return None if config is None else config.get("configurable", {}).get("checkpoint_id")
