"""Memory service: what was said in former sessions, found by its words through the server's search.

Remembered events are trajectories on boards of their own, one for each session. A deleted memory leaves an entry
without content, so that adding its session again does not bring it back.
"""

from __future__ import annotations

import contextlib
import json
import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types
from pydantic_core import to_jsonable_python
from typing_extensions import override

from .. import AsyncSession, ConditionFailed, ConnectionFailed, EntryNotFound, Problem, SessionNotFound
from .._adapters.names import SEPARATOR
from .._adapters.strings import gathered, packed, store, unpacked
from .service import Service

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions import Session

LOG: Final = "trajectories"
UNNAMED: Final = "%-"
"""The last part of the name of a board with memories of no session; no id is escaped so."""
RESULTS_MAX: Final = 10
"""Memories that a search gives."""
WORDS_MAX: Final = 16
"""Words of a query that are looked up, the longest ones."""
WORD_MAX: Final = 64
"""Characters of a word that are looked up."""
INDEX_SECONDS: Final = 3.0
"""The longest wait for the index after a write, in seconds."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(rf"([{_UNSPACED}]+)|((?:(?![{_UNSPACED}])\w)+)")
HITS_MAX: Final = 100
"""Hits that are considered for each word."""
CANDIDATES_MAX: Final = 40
"""Entries that are read for one search."""
BATCH_MAX: Final = 500
"""Entries that one commit adds."""
BATCH_CHARS_MAX: Final = 2 << 20
"""Characters of JSON that one commit adds, where it has more than one entry."""


class BlackboardMemoryService(Service, BaseMemoryService):
    """Memories on boards `adk-memory:APP:USER:SESSION`.

    Events with text are remembered, each once however often its session is added. Adding is done when a search finds
    what was added, or after 3 s. A search gives the memories that share the most words with the query, best first, at
    most 10; a word is found without regard to case and accents.
    """

    PREFIX = "adk-memory"

    @override
    async def add_session_to_memory(self, session: Session) -> None:
        """Remember the events of a session that are not remembered yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, session_id=session.id, events=session.events
        )

    @override
    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember events, in order. More than 500, or of more than 2 Mi characters, take several commits."""
        metadata = {} if session_id is None else {"session_id": session_id}
        items = []
        for event in events:
            if event.content is not None and _text(event.content).strip():
                at = datetime.fromtimestamp(event.timestamp, timezone.utc).isoformat()
                entry = MemoryEntry(id=event.id, content=event.content, author=event.author, timestamp=at)
                items.append(_item(entry, {**(custom_metadata or {}), **metadata, "event_id": event.id}))
        await self._add((app_name, user_id), session_id, items)

    @override
    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember entries of no session. One with the id of an entry that is there already is passed over."""
        items = [_item(memory, {**(custom_metadata or {}), **memory.custom_metadata}) for memory in memories]
        await self._add((app_name, user_id), None, items)

    @override
    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The memories that share the most words with the query."""
        words = sorted(_words(query), key=lambda word: (-len(word), word))[:WORDS_MAX]
        scores: dict[tuple[str, int], tuple[int, float]] = {}
        for hits in await gathered(self._hits(word, app_name, user_id) for word in words):
            for hit in hits:
                found, score = scores.get((hit["session"], hit["seq"]), (0, 0.0))
                scores[hit["session"], hit["seq"]] = (found + 1, score + hit["score"])
        best = sorted(scores, key=lambda place: scores[place], reverse=True)[:CANDIDATES_MAX]
        entries = await gathered(self._entry(name, seq) for name, seq in best)
        # The search looks at all of an entry, also at its author and metadata; a memory is found by its text.
        ranked = [(sum(word in _folded(_text(entry.content)) for word in words), entry) for entry in entries if entry]
        ranked.sort(key=lambda pair: -pair[0])
        return SearchMemoryResponse(memories=[entry for shared, entry in ranked if shared][:RESULTS_MAX])

    @override
    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete the memory of an id that a search gave; nothing where there is none."""
        part, _, seq = (memory_id or "").rpartition("/")
        if not part or SEPARATOR in part or not (seq.isascii() and seq.isdecimal()):
            return
        log = self._clients.current().session(f"{self.board_name(app_name, user_id)}{SEPARATOR}{part}").trajectories
        try:
            found = await log.get(int(seq))
            await log.put(int(seq), {"id": found.item.get("id"), "deleted": True})
        except (SessionNotFound, EntryNotFound):
            return

    async def _add(self, user: tuple[str, str], session_id: str | None, items: list[dict[str, Any]]) -> None:
        if not items:
            return
        name = self.board_name(*user) + SEPARATOR + UNNAMED
        board = self._clients.current().session(name if session_id is None else self.board_name(*user, session_id))
        blobs: dict[str, bytes] = {}
        small = [packed(item, blobs) for item in items]
        await store(board, blobs)
        while True:
            count = await board.trajectories.count()
            known = {entry.item.get("id") async for entry in board.trajectories.entries(keys=["id"])}
            batch = _batch(item for item in small if item["id"] not in known)
            if not batch:
                return
            try:
                async with board.transaction() as commit:
                    commit.require_count(LOG, count)
                    for item in batch:
                        commit.append(LOG, item)
            except ConditionFailed:
                continue  # Another writer was faster; it may have added the same.
            await self._indexed(board, commit.result.revision if commit.result else 0)

    async def _indexed(self, board: AsyncSession, revision: int) -> None:
        """Wait until a search finds a commit. It is kept in any case."""
        client = self._clients.current().with_options(timeout=INDEX_SECONDS)
        with contextlib.suppress(Problem, ConnectionFailed):
            async for _ in client.search("a", session=board.name, limit=1, min_revision=revision):
                return

    async def _hits(self, word: str, app_name: str, user_id: str) -> list[dict[str, Any]]:
        prefix = self.board_name(app_name, user_id) + SEPARATOR
        search = self._clients.current().search(f'"{word}"', prefix=prefix, log=LOG, limit=HITS_MAX)
        return [hit async for hit in search]

    async def _entry(self, name: str, seq: int) -> MemoryEntry | None:
        board = self._clients.current().session(name)
        try:
            item = (await unpacked(board, [(await board.trajectories.get(seq)).item]))[0]
        except (SessionNotFound, EntryNotFound):
            return None
        if "content" not in item:
            return None
        return MemoryEntry(
            id=f"{name.rpartition(SEPARATOR)[2]}/{seq}",
            content=types.Content.model_validate_json(json.dumps(item["content"])),
            author=item.get("author"),
            timestamp=item.get("timestamp"),
            custom_metadata=item.get("custom_metadata", {}),
        )


def _item(entry: MemoryEntry, metadata: Mapping[str, object]) -> dict[str, Any]:
    return {
        "id": entry.id or uuid.uuid4().hex,
        "author": entry.author,
        "timestamp": entry.timestamp,
        "content": entry.content.model_dump(mode="json", exclude_none=True),
        "custom_metadata": to_jsonable_python(dict(metadata), serialize_unknown=True),
    }


def _batch(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many items, each of an id of its own, as one commit may have."""
    batch: dict[str, dict[str, Any]] = {}
    size = 0
    for item in items:
        size += len(json.dumps(item))
        if batch and (size > BATCH_CHARS_MAX or len(batch) == BATCH_MAX):
            break
        batch.setdefault(item["id"], item)
    return list(batch.values())


def _text(content: types.Content) -> str:
    """The text of a content, without a model's thoughts."""
    return "\n".join(part.text for part in content.parts or [] if part.text and not part.thought)


def _folded(text: str) -> str:
    """A text without case and accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


def _words(query: str) -> set[str]:
    """The words of a query; of scripts without spaces between words, each pair of characters."""
    words = set()
    for run, letters in _RUN.findall(_folded(query)):
        pairs = {run[index : index + 2] for index in range(max(len(run) - 1, 1))} if run else {letters[:WORD_MAX]}
        words |= pairs
    return words
