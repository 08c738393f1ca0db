"""Logs: the verbs that the four logs, the memories and the messages have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, cast

from typing_extensions import TypedDict, Unpack

from .._wire import WAIT_PIECE, ReadOptions, WriteOptions, json_text, unchanged
from ..errors import ConditionNotMet, PreconditionFailed, SessionNotFound, UnsupportedValue
from ..values import Appended, Entry, Members, Page, Written, appended, checked_tag, entry, written

if TYPE_CHECKING:
    from .session import AsyncSession

PAGE = 200
PAGE_MAX = 1000
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
NDJSON = "application/x-ndjson"


class Filters(TypedDict, total=False):
    """Filters of a log's entries."""

    steps: Iterable[int | float]
    status: str
    of_agent: str
    """The agent that wrote the entry, or the item's `agent` where it has none."""
    trajectory_key: str
    contains: str
    pending: bool
    in_review: bool
    """Requests that wait for a verdict."""
    unacked: bool
    """Messages that their agent has not acknowledged."""
    keys: Iterable[str]
    """The only members that are shown."""
    images: Literal["inline", "url", "none"]
    at: int | str | None
    min_revision: int | None
    agent: str | None
    timeout: float | None


class AsyncLog:
    """A log of a session."""

    def __init__(self, session: AsyncSession, path: str) -> None:
        self.session = session
        self.path = path

    async def append(self, item: Mapping[str, Any] | str, **options: Unpack[WriteOptions]) -> Appended:
        """Append an item; text becomes `{"text": …}`. The receipt's `seq` is the entry's number."""
        return await self._append(dict(item) if isinstance(item, Mapping) else item, {}, options)

    async def extend(self, items: Iterable[Mapping[str, Any] | str], **options: Unpack[WriteOptions]) -> Appended:
        """Append items by one commit, all or none."""
        if isinstance(items, (str, bytes, Mapping)):
            raise UnsupportedValue("extend takes several items; use append for one")
        return await self._append([dict(item) if isinstance(item, Mapping) else item for item in items], {}, options)

    async def append_value(self, key: str, value: Any, **options: Unpack[WriteOptions]) -> Appended:
        """Append `add_trajectories(key, value)`: an object gets the member `key`, another value becomes `value`."""
        item = {"key": key, "value": value}
        if isinstance(value, Mapping):
            item = dict(value) if "key" in value else {"key": key, **value}
        return await self._append(item, {}, options)

    async def _append(self, body: Any, params: Mapping[str, Any], options: WriteOptions) -> Appended:
        return appended(await self.session.request("POST", self.path, json=body, params=params, **options))

    async def page(
        self,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        latest: int | None = None,
        **filters: Unpack[Filters],
    ) -> Page:
        """One page of entries, at most 1,000 and 100 where no `limit` is given."""
        own = {"after": after, "before": before, "limit": limit, "order": order, "latest": latest}
        params, options = _split(filters)
        answer = await self.session.read(self.path, {**own, **params}, **options)
        raw = answer.json()
        entries = [entry(part) for part in raw["entries"]]
        return Page(entries, raw.get("next"), raw["more"], raw["count"], raw["revision"], answer.etag)

    async def entries(
        self,
        *,
        after: int = 0,
        limit: int | None = None,
        order: Literal["asc", "desc"] = "asc",
        **filters: Unpack[Filters],
    ) -> AsyncIterator[Entry]:
        """All entries, oldest first, read page by page; with `order="desc"` newest first. No session: no entries."""
        left = limit
        cursor: int | None = after or None
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE_MAX)
            try:
                if order == "asc":
                    page = await self.page(after=cursor, limit=size, **filters)
                else:
                    page = await self.page(before=cursor, limit=size, order="desc", **filters)
            except SessionNotFound:
                return
            for found in page.entries:
                yield found
            left = None if left is None else left - len(page.entries)
            cursor = page.next
            if not page.more:
                return

    async def items(self, **filters: Unpack[Filters]) -> AsyncIterator[dict[str, Any]]:
        """The items of all entries, oldest first."""
        async for found in self.entries(**filters):
            yield found.item

    async def latest(self, n: int = 1, **filters: Unpack[Filters]) -> list[Entry]:
        """The last `n` entries, oldest first; none where there is no session."""
        try:
            return (await self.page(latest=n, **filters)).entries
        except SessionNotFound:
            return []

    async def get(self, seq: int, **options: Unpack[ReadOptions]) -> Entry:
        """One entry with its tag. Raises EntryNotFound."""
        answer = await self.session.read(f"{self.path}/{int(seq)}", **options)
        return entry(answer.json(), answer.etag)

    async def count(self) -> int:
        """The number of entries."""
        try:
            return (await self.page(limit=1, keys=[])).count
        except SessionNotFound:
            return 0

    async def follow(self, after: int = 0, **filters: Unpack[Filters]) -> AsyncIterator[Entry]:
        """Entries after a seq as they come, without end.

        Raises ConnectionFailed after 25 s without contact, or the client's `timeout` if that is longer.
        """
        params, options = _split(filters)
        rest = WriteOptions(agent=options.get("agent"), timeout=options.get("timeout"))
        while True:
            asked = {**params, "after": after, "limit": PAGE}
            try:
                answer = await self.session.request("GET", self.path, params=asked, wait=WAIT_PIECE, **rest)
            except SessionNotFound:
                with suppress(ConditionNotMet):
                    await self.session.until("", "exists", WAIT_PIECE)
                continue
            page = answer.json()
            for raw in page["entries"]:
                yield entry(raw)
            after = page.get("next") or after

    async def put(self, seq: int, item: Mapping[str, Any], **options: Unpack[WriteOptions]) -> Written:
        """Replace an entry's item; its seq stays."""
        return await self._write("PUT", seq, dict(item), None, options)

    async def patch(self, seq: int, merge: Mapping[str, Any], **options: Unpack[WriteOptions]) -> Written:
        """Merge into an entry's item (RFC 7396)."""
        return await self._write("PATCH", seq, dict(merge), MERGE, options)

    async def json_patch(
        self, seq: int, operations: Iterable[Mapping[str, Any]], **options: Unpack[WriteOptions]
    ) -> Written:
        """Change an entry's item by a JSON Patch (RFC 6902)."""
        return await self._write("PATCH", seq, [dict(part) for part in operations], JSON_PATCH, options)

    async def _write(self, method: str, seq: int, body: Any, kind: str | None, options: WriteOptions) -> Written:
        path = f"{self.path}/{int(seq)}"
        return written(await self.session.request(method, path, json=body, media_type=kind, **options))

    async def update(
        self, seq: int, change: Callable[[dict[str, Any]], Mapping[str, Any]], **options: Unpack[WriteOptions]
    ) -> Entry:
        """Read an entry, call `change` with its item, and write the result unless it was changed meanwhile.

        It is repeated until it succeeds or the client's time limit has passed; then PreconditionFailed is raised.
        UnexpectedAnswer is raised where a proxy changes tags so that no try succeeds.
        """
        tries = self.session.state.tries(options)
        found = await self.get(seq)
        tag = checked_tag(found.etag)
        while True:
            try:
                receipt = await self.put(seq, change(found.item), **unchanged(options, tag))
            except PreconditionFailed as refused:
                await tries.pause(refused)
                found = await self._present(seq, refused)
                tag = checked_tag(found.etag, tag)
            else:
                return await self.get(seq, min_revision=receipt.revision)

    async def _present(self, seq: int, refused: PreconditionFailed) -> Entry:
        """The present entry: that of the 412 if it has one, else a new read."""
        if refused.etag is not None and isinstance(refused.current, dict):
            return entry(Members(refused.current), refused.etag)
        return await self.get(seq, min_revision=refused.revision)

    async def remove(self, seq: int, **options: Unpack[WriteOptions]) -> Written:
        """Delete an entry. Raises EntryNotFound."""
        return written(await self.session.request("DELETE", f"{self.path}/{int(seq)}", **options))

    async def replace_all(self, items: Iterable[Mapping[str, Any]], **options: Unpack[WriteOptions]) -> Appended:
        """Replace all entries by one commit."""
        text = "".join(json_text(dict(item)) + "\n" for item in items)
        answer = await self.session.request("PUT", self.path, content=text.encode(), media_type=NDJSON, **options)
        return appended(answer)

    async def clear(self, **options: Unpack[WriteOptions]) -> int:
        """Delete all entries; their number."""
        return await self._delete({}, options)

    async def delete_steps(self, steps: Iterable[int | float], **options: Unpack[WriteOptions]) -> int:
        """Delete the entries with these steps; their number."""
        wanted = list(steps)
        return await self._delete({"steps": wanted}, options) if wanted else 0

    async def keep(self, n: int, **options: Unpack[WriteOptions]) -> int:
        """Delete all but the newest `n` entries; the number of those deleted."""
        return await self._delete({"keep": n}, options)

    async def _delete(self, params: Mapping[str, Any], options: WriteOptions) -> int:
        answer = await self.session.request("DELETE", self.path, params=params, **options)
        return int(answer.json()["deleted"])


class AsyncMemory(AsyncLog):
    """The memory of an agent."""

    async def cost(self) -> dict[str, Any]:
        """The total cost of the steps, and their number: `total_cost`, `steps`."""
        return dict((await self.session.read(f"{self.path}/cost")).json())


def _split(filters: Filters) -> tuple[dict[str, Any], ReadOptions]:
    """Filters as parameters, and the options of the read."""
    params: dict[str, Any] = dict(filters)
    options = {name: params.pop(name) for name in ("at", "min_revision", "agent", "timeout") if name in params}
    if "of_agent" in params:
        params["agent"] = params.pop("of_agent")
    return params, cast("ReadOptions", options)
