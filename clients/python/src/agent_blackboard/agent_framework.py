"""Storage of Microsoft Agent Framework on a board: conversation history, agent sessions, workflow checkpoints.

Messages are items of a memory, one commit for each call. Sessions and checkpoints are blobs, each named by one value of
the state; their bytes are the framework's own encoding.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, ClassVar, cast

from agent_framework import (
    AgentSession,
    HistoryProvider,
    Message,
    SessionStore,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
)

# The framework exports no names for the encoding that every checkpoint storage shares.
from agent_framework._workflows._checkpoint_encoding import decode_checkpoint_value, encode_checkpoint_value

from . import (
    AgentNotFound,
    AsyncClient,
    AsyncLog,
    AsyncSession,
    BlobNotFound,
    InvalidName,
    PreconditionFailed,
    SessionNotFound,
    UnsupportedValue,
    WriteOptions,
)
from . import path as state_path
from ._adapters.clients import Connected, LoopClients
from ._adapters.entries import PAGE_MAX
from ._adapters.names import key_of, name_of, text_of
from ._adapters.strings import gathered, packed, store, unpacked
from ._wire import json_text

__all__ = ["BlackboardCheckpointStorage", "BlackboardHistoryProvider", "BlackboardSessionStore"]

logger = logging.getLogger(__name__)

TRIES_MAX = 100
"""Appends of one call, each refused because another writer was faster."""
JSON = "application/json"
"""Both a snapshot and the framework's encoding of a checkpoint; so a browser shows them."""
VAULT_HISTORY = 64
"""Revisions that a new board of sessions or checkpoints retains."""


class BlackboardHistoryProvider(Connected, HistoryProvider):
    """Conversation history as items of a memory on a board.

    Each conversation is a board of its own: `board` tells its name, which is `prefix` and the session's id where that
    is a legal name. Its messages are the memory of `agent` there, as `Message.to_dict` gives them. A call of
    `save_messages` is one commit, so that a tool call and its result are never parted; of two writers at once, one
    follows the other. Messages that the board has already, as when an agent gives the whole conversation again, are not
    stored twice. Strings of more than 64 Ki characters, such as pictures, are blobs, once a conversation.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "blackboard_history"

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        source_id: str = DEFAULT_SOURCE_ID,
        agent: str | None = None,
        prefix: str = "",
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        """Connect by `client`, which stays the caller's to close, or by `url` and `token` (BLACKBOARD_URL, …_TOKEN).

        `agent` owns the memory with the messages; its default is `source_id`. With `skip_excluded`, messages that a
        compaction marked as excluded are left out on reading. The other options are those of every HistoryProvider.
        """
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self._clients = LoopClients(client, url, token)
        self.agent = agent or source_id
        self.prefix = prefix
        self.skip_excluded = skip_excluded

    def board(self, session_id: str | None) -> str:
        """The name of the conversation's session on the server. Raises ValueError where the id is empty or None."""
        if not session_id:
            raise ValueError("the history of an agent needs a session with an id")
        return name_of(self.prefix + session_id)

    def _session(self, session_id: str | None) -> AsyncSession:
        return self._clients.current().session(self.board(session_id))

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """All messages of a conversation, in order; none where it has not begun.

        Raises ValueError where an item of the memory is no message, and the client's exceptions.
        """
        session = self._session(session_id)
        try:
            entries = [entry async for entry in session.memory(self.agent).entries()]
        except (SessionNotFound, AgentNotFound):
            return []
        items = await unpacked(session, [entry.item for entry in entries])
        messages = [_message(item, entry.seq) for item, entry in zip(items, entries, strict=True)]
        if self.skip_excluded:
            return [message for message in messages if not message.additional_properties.get("_excluded", False)]
        return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append the messages that the conversation does not have yet, all of them in one commit or none.

        Raises UnsupportedValue where a message holds no JSON, ItemTooLarge for one of more than 1 MiB without its long
        strings, BodyTooLarge for more than 8 MiB at once, and the client's other exceptions. After any of them but
        ConnectionFailed no message was written.
        """
        session = self._session(session_id)
        if not messages:
            return
        memory = session.memory(self.agent)
        blobs: list[dict[str, bytes]] = [{} for _ in messages]
        items = [packed(_item(message), own) for message, own in zip(messages, blobs, strict=True)]
        for tries in range(1, TRIES_MAX + 1):
            existing, count, condition = await _tail(memory, len(items))
            first = _first_unsaved(existing, count, items)
            if first == len(items):
                return
            await store(session, {digest: content for own in blobs[first:] for digest, content in own.items()})
            for own in blobs[first:]:
                own.clear()  # They are not uploaded a second time.
            try:
                await memory.extend(items[first:], **condition)
            except PreconditionFailed:
                if tries == TRIES_MAX:
                    raise
                continue  # Another writer was faster, so there may be another overlap.
            return

    async def clear(self, session_id: str | None) -> None:
        """Delete all messages of a conversation. The board's history keeps them until its retention ends."""
        with contextlib.suppress(SessionNotFound, AgentNotFound):
            await self._session(session_id).memory(self.agent).clear()


class BlackboardSessionStore(Connected, SessionStore):
    """Agent sessions as snapshots on one board.

    A snapshot replaces the former one as a whole, and the last writer wins, as with the framework's own stores. It is
    a blob of JSON with at most 32 MiB, named by the state at `sessions/ID`. Values of a type of your own need
    `register_state_type`.
    """

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        session: str = "agent-sessions",
        ttl: float | str | None = None,
        history: int | str | None = VAULT_HISTORY,
    ) -> None:
        """Keep snapshots in `session`. The connection is that of every class here.

        A snapshot expires `ttl` (seconds, or text such as "30d") after its last `set`. `history` is what a session made
        by this store retains of its past (a number of revisions, or text such as "1d"); None retains all.
        """
        super().__init__()
        self._clients = LoopClients(client, url, token)
        self._vault = _Vault(self._clients, session, "sessions", history)
        self.ttl = ttl

    async def get(self, session_id: str) -> AgentSession | None:
        """The stored session as a new object, or None. Raises ValueError where the snapshot cannot be read."""
        self.validate_session_id(session_id)
        record = await self._vault.record(session_id)
        if record is None:
            return None
        try:
            snapshot = json.loads(await self._vault.content(record))
            if snapshot["version"] != 1:
                raise ValueError(f"version {snapshot['version']!r} is unknown")
            return AgentSession.from_dict(snapshot["session"])
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the snapshot of session {session_id!r} cannot be restored: {error}") from error

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Store a snapshot of the session.

        Raises TypeError for a subclass of AgentSession, UnsupportedValue where the state holds a value that cannot be
        restored, BodyTooLarge beyond 32 MiB. Then the former snapshot stays.
        """
        self.validate_session_id(session_id)
        if type(session) is not AgentSession:
            raise TypeError(f"a {type(session).__name__} would be restored as an AgentSession")
        snapshot = {"version": 1, "session": session.to_dict()}
        try:
            text = json.dumps(snapshot, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_mapping)
            content = text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UnsupportedValue(f"the state of session {session_id!r} is not JSON: {error}") from error
        await self._vault.put(session_id, content, {}, ttl=self.ttl)

    async def delete(self, session_id: str) -> None:
        """Delete the snapshot, if there is one."""
        self.validate_session_id(session_id)
        await self._vault.delete(session_id)


class BlackboardCheckpointStorage(Connected):
    """Checkpoints of workflows on one board; it has the methods of the protocol `CheckpointStorage`.

    A checkpoint is a blob of the framework's encoding, at most 32 MiB, and becomes visible by one write to the state,
    at `checkpoints/ID`. There stand its workflow, time and predecessor for people and for `get_latest`.

    That encoding contains pickles. As FileCheckpointStorage does, loading restricts them to the framework's types,
    those of `allowed_checkpoint_types` (`"module:qualname"`) and of `register_checkpoint_type`. This is no security
    boundary: give write access to the session only to those who may run code in your program.
    """

    def __init__(
        self,
        client: AsyncClient | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        session: str = "workflow-checkpoints",
        allowed_checkpoint_types: Iterable[str] = (),
        history: int | str | None = VAULT_HISTORY,
    ) -> None:
        """Keep checkpoints in `session`. The connection is that of every class here.

        `history` is what a session made by this storage retains of its past, so that deleted checkpoints free their
        space (a number of revisions, or text such as "1d"); None retains all.
        """
        self._clients = LoopClients(client, url, token)
        self._vault = _Vault(self._clients, session, "checkpoints", history)
        self._allowed = frozenset(allowed_checkpoint_types)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a checkpoint and return its id; one with the same id is replaced.

        Raises WorkflowCheckpointException where it cannot be encoded or could not be loaded again, BodyTooLarge beyond
        32 MiB, and the client's other exceptions. Then no checkpoint was added.
        """
        identifier = checkpoint.checkpoint_id
        try:
            datetime.fromisoformat(_zoned(checkpoint.timestamp))
            encoded = encode_checkpoint_value(checkpoint.to_dict())
            decode_checkpoint_value(encoded, allowed_types=self._allowed)
            content = json.dumps(encoded, ensure_ascii=False, separators=(",", ":")).encode()
        except WorkflowCheckpointException:
            raise
        except Exception as error:
            raise WorkflowCheckpointException(f"checkpoint {identifier!r} cannot be encoded: {error}") from error
        members = {
            "workflow_name": checkpoint.workflow_name,
            "timestamp": checkpoint.timestamp,
            "iteration_count": checkpoint.iteration_count,
            "previous_checkpoint_id": checkpoint.previous_checkpoint_id,
        }
        await self._vault.put(identifier, content, members)
        return identifier

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """The checkpoint as a new object. Raises WorkflowCheckpointException where there is none, or it is damaged."""
        record = await self._vault.record(checkpoint_id)
        if record is None:
            raise WorkflowCheckpointException(f"no checkpoint has the id {checkpoint_id!r}")
        return await self._decoded(checkpoint_id, record)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """The checkpoints of a workflow in the order of their first `save`.

        One that cannot be decoded, such as one with a type that is not allowed, is left out with a warning in the log.
        """
        records = await self._records(workflow_name)
        found = await gathered(self._readable(key, record) for key, record in records.items())
        return [checkpoint for checkpoint in found if checkpoint is not None]

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete a checkpoint; returns False where there is none."""
        return await self._vault.delete(checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The workflow's checkpoint with the latest timestamp that can be decoded, or None."""
        records = await self._records(workflow_name)
        latest_first = sorted(records, key=lambda key: _moment(records[key].get("timestamp")), reverse=True)
        for key in latest_first:
            checkpoint = await self._readable(key, records[key])
            if checkpoint is not None:
                return checkpoint
        return None

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """The ids of a workflow's checkpoints in the order of their first `save`; no checkpoint is read."""
        return list(await self._records(workflow_name))

    async def _records(self, workflow_name: str) -> dict[str, dict[str, Any]]:
        records = await self._vault.records()
        return {key: record for key, record in records.items() if record.get("workflow_name") == workflow_name}

    async def _decoded(self, checkpoint_id: str, record: Mapping[str, Any]) -> WorkflowCheckpoint:
        try:
            encoded = json.loads(await self._vault.content(record))
        except (LookupError, ValueError) as error:
            raise WorkflowCheckpointException(f"checkpoint {checkpoint_id!r} is damaged: {error}") from error
        return WorkflowCheckpoint.from_dict(decode_checkpoint_value(encoded, allowed_types=self._allowed))

    async def _readable(self, checkpoint_id: str, record: Mapping[str, Any]) -> WorkflowCheckpoint | None:
        try:
            return await self._decoded(checkpoint_id, record)
        except WorkflowCheckpointException as error:
            logger.warning("checkpoint %r is left out: %s", checkpoint_id, error)
            return None


class _Vault:
    """Bytes by key: blobs of one session, each named by a value of its state below `kind`."""

    def __init__(self, clients: LoopClients, session: str, kind: str, history: int | str | None) -> None:
        self._clients = clients
        self._name = session
        self._kind = kind
        self._settings = None if history is None else {"history": history}

    @property
    def _session(self) -> AsyncSession:
        return self._clients.current().session(self._name)

    def _place(self, key: str) -> str:
        return state_path(self._kind, key_of(key))

    async def put(self, key: str, content: bytes, members: dict[str, Any], *, ttl: float | str | None = None) -> None:
        """Upload the blob, which is JSON, then name it in one commit: readers see the former bytes or these."""
        await self._prepare()
        blob = await self._session.blobs.put(content, JSON)
        record = {**members, "bytes": len(content), **blob.ref}
        await self._session.state.set(self._place(key), record, ttl=ttl)

    async def _prepare(self) -> None:
        """Make the session with its retention; one that exists keeps its settings."""
        if self._settings is None:
            return
        with contextlib.suppress(PreconditionFailed):
            await self._session.configure(self._settings, if_none_match="*")
        self._settings = None

    async def record(self, key: str) -> dict[str, Any] | None:
        """The value that names the blob of a key, or None."""
        return cast("dict[str, Any] | None", await self._session.state.get(self._place(key)))

    async def records(self) -> dict[str, dict[str, Any]]:
        """All values of the kind by key, in the order of their first writes."""
        found: dict[str, dict[str, Any]] = await self._session.state.get(self._kind, {})
        return {text_of(key): record for key, record in found.items() if isinstance(record, dict)}

    async def content(self, record: Mapping[str, Any]) -> bytes:
        """The bytes that a value names. Raises LookupError where it names none."""
        try:
            return await self._session.blobs.get(record["$blob"])
        except (BlobNotFound, InvalidName) as error:
            raise LookupError(str(error)) from error

    async def delete(self, key: str) -> bool:
        """Delete the value; its blob goes with the history that names it."""
        return await self._session.state.delete(self._place(key), missing_ok=True) is not None


def _item(message: Message) -> dict[str, Any]:
    """The message as JSON. Raises UnsupportedValue where it is none."""
    try:
        return cast("dict[str, Any]", json.loads(json_text(message.to_dict())))
    except RecursionError as error:
        raise UnsupportedValue("a message has too many levels") from error


def _message(item: dict[str, Any], seq: int) -> Message:
    try:
        return Message.from_dict(item)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"item {seq} of the memory is not a message: {error}") from error


async def _tail(memory: AsyncLog, wanted: int) -> tuple[list[dict[str, Any]], int, WriteOptions]:
    """The last items of a log, its length, and the condition under which both still hold at a write."""
    try:
        page = await memory.page(latest=min(wanted, PAGE_MAX))
    except (SessionNotFound, AgentNotFound):
        return [], 0, {"if_none_match": "*"}
    items = [entry.item for entry in page.entries]
    if wanted > PAGE_MAX and page.count > PAGE_MAX:
        items = [entry.item async for entry in memory.entries()][-wanted:]
    return items, page.count, {"if_match": page.etag}


def _first_unsaved(tail: Sequence[Mapping[str, Any]], count: int, items: Sequence[Mapping[str, Any]]) -> int:
    """The index of the first item that the log does not have: the rule of the framework's own providers.

    Items that repeat the whole log, or that begin with its end, are known. A single user message without an id is taken
    as said again, not as repeated. `tail` is the end of a log of `count` items: all of it, or as many as `items`.
    """
    known, given = [_identity(item) for item in tail], [_identity(item) for item in items]
    said_again = bool(tail) and tail[-1].get("role") == "user" and known[-1][0] != "id"
    if tail and count <= len(given):
        for start in range(len(given) - count + 1):
            if given[start : start + count] == known:
                if start == 0 and count == 1 and said_again:
                    break
                return start + count
    for overlap in range(min(len(known), len(given)), 0, -1):
        if known[-overlap:] == given[:overlap] and not (overlap == 1 and said_again):
            return overlap
    return 0


def _identity(item: Mapping[str, Any]) -> tuple[str, ...]:
    """A message's id, or its role and contents where it has none."""
    identifier = item.get("message_id")
    if identifier is not None:
        return ("id", str(identifier))
    return ("contents", str(item.get("role")), json.dumps(item.get("contents"), sort_keys=True))


def _moment(timestamp: Any) -> datetime:
    """The time of a checkpoint; one without an offset counts as UTC, anything else as the earliest."""
    try:
        moment = datetime.fromisoformat(_zoned(timestamp))
    except (TypeError, ValueError):
        moment = datetime.min
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _zoned(timestamp: str) -> str:
    """Python 3.10 reads no `Z`."""
    return re.sub("[Zz]$", "+00:00", timestamp)


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")
