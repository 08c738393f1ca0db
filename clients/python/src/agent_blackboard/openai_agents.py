"""Session of the OpenAI Agents SDK on a board: a conversation that outlives its process and is shared by many.

The items of a conversation are a memory on a board of the conversation's own, kept as the SDK gives them. `add_items`
is one commit. A tool call and its output are never parted, neither by a limit nor by `pop_item`; nor is an item of the
model from the reasoning before it. The Responses API takes none without the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from agents.memory import SessionSettings

from . import AsyncClient, AsyncSession, EntryNotFound, PreconditionFailed, SessionNotFound, UnsupportedValue
from ._adapters.clients import LoopClients
from ._adapters.entries import PAGE_MAX, newest_first
from ._adapters.names import DIGEST, key_of, name_of
from ._adapters.strings import packed, store, unpacked

if TYPE_CHECKING:
    from agents import TResponseInputItem

__all__ = ["BlackboardSession"]

T = TypeVar("T")
AGENT: Final = "conversation"
"""Owner of the memory that has the items."""


class BlackboardSession:
    """A conversation's history as the memory of `agent` on a board.

    The board is named by `session_id`: `board` tells its name, which is the id itself where that is a legal name. Its
    address and token are given here, by BLACKBOARD_URL and BLACKBOARD_TOKEN, or by a `client`, which belongs to one
    event loop and stays the caller's to close. Sessions of one id in several processes are one conversation.

    `limit` of `get_items` and of `session_settings` reads the latest items, and goes on back to the call of each output
    among them, and to the reasoning of the answer that they begin in. Strings of more than 64 Ki characters, such as
    screenshots, are kept as blobs.

    Every method raises the client's exceptions. A write that raises one other than ConnectionFailed was not done. One
    that raises ConnectionFailed was done whole or not at all.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        client: AsyncClient | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        agent: str = AGENT,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.board = name_of(session_id)
        self.agent = agent
        given = session_settings
        self.session_settings = given if isinstance(given, SessionSettings) else SessionSettings().resolve(given)
        self._clients = LoopClients(client, url, token)
        self._unnamed = self.board.startswith(DIGEST)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The conversation, oldest item first; with a limit its latest items, and what they cannot be without."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        session, window = self._session(), _Window(limit)
        try:
            async for entry in newest_first(session, session.memory(self.agent), limit or PAGE_MAX):
                if window.take(entry.item):
                    break
        except SessionNotFound:
            return []
        return cast("list[TResponseInputItem]", await unpacked(session, window.taken()))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items by one commit, all or none. Raises UnsupportedValue for an item that is no JSON object."""
        blobs: dict[str, bytes] = {}
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                raise UnsupportedValue(f"item {index} is not a JSON object but of type {type(item).__name__}")
        made = [packed(item, blobs) for item in items]
        if made:
            await _settled(self._add(made, blobs))

    async def _add(self, items: list[dict[str, Any]], blobs: dict[str, bytes]) -> None:
        session = self._session()
        if self._unnamed:  # The name is a digest, so the board keeps the id.
            await session.state.set("session_id", key_of(self.session_id))
            self._unnamed = False
        await store(session, blobs)
        await session.memory(self.agent).extend(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; None where there is none.

        With the output of a tool its call goes too, and with an item of the model the reasoning that was for it alone,
        by the same commit.
        """
        return await _settled(self._pop())

    async def _pop(self) -> TResponseInputItem | None:
        session = self._session()
        while True:
            try:
                page = await session.memory(self.agent).page(order="desc", limit=2)
                if not page.entries:
                    return None
                newest, last = page.entries[0], [entry.item for entry in page.entries]
                items = await unpacked(session, [newest.item])
                if _tie(newest.item)[1] or _without(last, 0) != last[1:]:
                    await self._drop(session, page.etag)
                else:
                    await session.memory(self.agent).remove(newest.seq)
            except SessionNotFound:
                return None
            except (EntryNotFound, PreconditionFailed):
                continue  # Another writer was faster, so the latest item is another one.
            return cast("TResponseInputItem", items[0])

    async def _drop(self, session: AsyncSession, etag: str | None) -> None:
        """Replace the log by one without its last item and what cannot be without that."""
        log = session.memory(self.agent)
        items = [entry.item async for entry in newest_first(session, log)]
        tie, is_output = _tie(items[0])
        rest = items[1:] if is_output else _without(items, 0)
        call = next((index for index, item in enumerate(rest) if is_output and _tie(item) == (tie, False)), None)
        if call is not None:
            rest = _without(rest, call)
        await log.replace_all(reversed(rest), if_match=etag)

    async def clear_session(self) -> None:
        """Delete all items. The board, with what else it has, stays."""
        await _settled(self._clear())

    async def _clear(self) -> None:
        try:
            await self._session().memory(self.agent).clear()
        except SessionNotFound:
            return

    async def close(self) -> None:
        """Close the connections of the running event loop; a client that was given stays open."""
        await self._clients.aclose()

    def _session(self) -> AsyncSession:
        return self._clients.current().session(self.board)


class _Window:
    """The latest items of a conversation, gathered backwards until no call is parted from its output.

    Nor does it begin behind a reasoning item of the same answer of the model. So items are taken beyond the window as
    far as the answer goes back, and belong to it from its first reasoning item on.
    """

    def __init__(self, limit: int | None, orphans: frozenset[str] = frozenset()) -> None:
        self._limit = limit
        self._orphans = orphans
        self._items: list[dict[str, Any]] = []
        self._open: set[str] = set()
        self._size: int | None = None

    def take(self, item: dict[str, Any]) -> bool:
        """Put an item before the others; whether the window is complete then."""
        if self._size is None:
            self._items.append(item)
            tie, is_output = _tie(item)
            if tie is not None and tie not in self._orphans:
                (self._open.add if is_output else self._open.discard)(tie)
            if self._limit is not None and len(self._items) >= self._limit and not self._open:
                self._size = len(self._items)
        elif _is_models(item):
            self._items.append(item)
            if _is_reasoning(item):
                self._size = len(self._items)
        return self._size is not None and not _is_models(item)

    def taken(self) -> list[dict[str, Any]]:
        """The items, oldest first. Outputs that have no call at all do not widen the window."""
        if self._limit is None or self._size is not None or not self._open:
            return self._items[: self._size][::-1]
        narrower = _Window(self._limit, self._orphans | self._open)
        for item in self._items:
            if narrower.take(item):
                break
        return narrower.taken()


def _without(items: list[dict[str, Any]], index: int) -> list[dict[str, Any]]:
    """Items, newest first, without one of them, and without the reasoning before it that was for it alone."""
    end = index + 1
    if _is_models(items[index]) and not _is_reasoning(items[index]):
        after = items[index - 1] if index else None
        if after is None or not _is_models(after) or _is_reasoning(after):
            while end < len(items) and _is_reasoning(items[end]):
                end += 1
    return items[:index] + items[end:]


def _is_reasoning(item: dict[str, Any]) -> bool:
    return item.get("type") == "reasoning"


def _is_models(item: dict[str, Any]) -> bool:
    """Whether the item is the model's: neither a message to it nor an output or approval of a call."""
    return item.get("role") not in ("user", "system", "developer") and not _tie(item)[1]


def _tie(item: dict[str, Any]) -> tuple[str | None, bool]:
    """The id that a call and its output have in common, if any, and whether the item is the output."""
    kind = item.get("type")
    if kind == "mcp_approval_request":
        tie, is_output = item.get("id"), False
    elif kind == "mcp_approval_response":
        tie, is_output = item.get("approval_request_id"), True
    else:
        tie, is_output = item.get("call_id"), isinstance(kind, str) and kind.endswith("_output")
    return (tie, is_output) if isinstance(tie, str) else (None, False)


async def _settled(write: Coroutine[Any, Any, T]) -> T:
    """The result of a write, which goes on to its end although the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # It has been looked at: the caller gets the cancellation.
        raise
