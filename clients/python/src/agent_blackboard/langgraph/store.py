"""`BlackboardStore`: LangGraph's long-term memory on a Blackboard server.

The layout. All namespaces with the same first label share one session, `prefix` + that label, so a batch within them is
one commit and a search reads one document. The session's state is a tree:

    layout: 1
    store: {"items": {KEY: RECORD}, "spaces": {LABEL: {"items": …, "spaces": …}}}

The object `store` is the namespace of the first label; each further label is an object under `spaces`. A record is

    {"id": 53 random bits, "created_at", "updated_at", "value": {…}, "ttl": minutes, "index": as it was given}

- A value of more than 2 KiB, or one that the state would not give back as it was, is a blob, of up to 32 MiB, and the
  record has `"blob": {"$blob", …}` in place of the value. So the 16 MiB of a state have room for at least 7,000 items
  of one first label, and for 35,000 with values of 250 bytes.
- Keys and labels are percent-encoded where the state forbids a character. What is longer than 128 bytes is `~` and a
  hash there; the record has `namespace` and `key` then. Labels behind the 17th are one level, joined by `.`.
- Every put has another `id`. Writes are transactions that require the ids that were read, or absence; so `created_at`
  stays over changes, `update` loses nothing, and a refreshed time to live never brings an old value back.
- `ttl` is the `ttl` of the record's path: the server deletes the item, within a second.
- Words: the same transaction appends `{"step": id, "scopes", "text"}` to the log `trajectories`, which the server
  indexes; an entry counts while a record has its id. `scopes` has one word for each namespace above the item, so that
  one search is about one namespace. Texts of replaced and deleted items are deleted after the commit; what a killed
  process or an expired item leaves is deleted by a search that hits it, or by `sweep`.

The server retains one second of a session's history: what is replaced or deleted is gone.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)
from typing_extensions import Self

from .._async.client import AsyncClient
from .._sync.client import Client
from .._wire import Backoff
from .errors import TooManyConflicts
from .exchange import Connections, Exchange
from .filters import in_namespace, matches
from .items import Address, Found, Items, Namespace, Write
from .sessions import Sessions, Settings
from .words import query

PREFIX = "langgraph-store:"
"""The beginning of the names of the store's sessions."""
HISTORY = "1s"
"""The history of a session that the server retains."""
UPDATE_SECONDS = 60.0
"""The time within which an update is tried against other writers."""

Value = dict[str, Any]


class BlackboardStore(BaseStore):
    """A store on a Blackboard server, for sync and async graphs alike.

    `url` and `token` default to BLACKBOARD_URL and BLACKBOARD_TOKEN; or hand in a `Client`, an `AsyncClient` or both.
    `prefix` begins the names of the store's sessions; the prefix of one store must not begin that of another. `ttl` is
    LangGraph's TTLConfig: `default_ttl` in minutes and `refresh_on_read`.

    Methods raise the client's errors; UnsupportedValue (a ValueError) for a value that is no JSON object, ValueTooLarge
    for one of more than 32 MiB, SessionFull where the first label has no room. All values of a batch are checked before
    anything is sent. A refused commit has stored nothing.
    """

    supports_ttl = True
    __slots__ = ("_connections", "_items", "ttl_config")

    def __init__(
        self,
        client: Client | None = None,
        *,
        async_client: AsyncClient | None = None,
        url: str | None = None,
        token: str | None = None,
        prefix: str = PREFIX,
        ttl: TTLConfig | None = None,
    ) -> None:
        self.ttl_config = ttl
        self._connections = Connections(client, async_client, url, token)
        self._items = Items(prefix, Sessions(Settings(HISTORY, (("adapter", "langgraph-store"),))))

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

    def session_name(self, namespace: tuple[str, ...]) -> str:
        """The name of a namespace's session on the server."""
        return self._items.session(_checked(namespace))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations: first all reads, then of the puts to each key the last one. The results in order.

        The puts below one first label are one commit, unless they are more than 450 or 6 MiB.
        """
        return self._connections.run(_perform(self._items, list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        return await self._connections.arun(_perform(self._items, list(ops)))

    def update(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | None],
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> Value | None:
        """Read a value, call `change` with it, and write the result unless the item was changed meanwhile.

        `change` gets None where there is no item; the item is deleted where it returns None. It is called again after
        each write of another, for up to 60 s; then TooManyConflicts is raised. `ttl` and `index` stay as the item has
        them. Returns the new value.
        """
        under_way = _Change(self._items, namespace, key, ttl, self.ttl_config)
        while True:
            made = change(self._connections.run(under_way.read()))
            if self._connections.run(under_way.write(made)):
                return made
            time.sleep(under_way.pause())

    async def aupdate(
        self,
        namespace: tuple[str, ...],
        key: str,
        change: Callable[[Value | None], Value | Awaitable[Value | None] | None],
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> Value | None:
        """As `update`. `change` may be async."""
        under_way = _Change(self._items, namespace, key, ttl, self.ttl_config)
        while True:
            result = change(await self._connections.arun(under_way.read()))
            made = await result if inspect.isawaitable(result) else result
            if await self._connections.arun(under_way.write(made)):
                return made
            await asyncio.sleep(under_way.pause())

    def sweep(self) -> int:
        """Delete the texts that expired items have left in the index, namespaces without items, and empty sessions.

        Returns the number of texts. Not needed for expiry itself.
        """
        return self._connections.run(self._items.sweep())

    async def asweep(self) -> int:
        """As `sweep`."""
        return await self._connections.arun(self._items.sweep())


class _Change:
    """An update under way: the item as it was read, and the time that is left."""

    def __init__(self, items: Items, namespace: Namespace, key: str, ttl: float | NotProvided | None, config: Any):
        self._items = items
        self._address = Address(_checked(namespace, root=True), str(key))
        self._ttl = ttl
        self._default = (config or {}).get("default_ttl")
        self._before: Found | None = None
        self._backoff = Backoff()
        self._deadline = time.monotonic() + UPDATE_SECONDS

    def read(self) -> Exchange[Value | None]:
        """The value as it is now."""
        self._before = (yield from self._items.find([self._address])).get(self._address)
        return None if self._before is None else (yield from self._items.value(self._before))

    def write(self, value: Value | None) -> Exchange[bool]:
        """Write the new value; False where somebody has written since the value was read."""
        record = {} if self._before is None else self._before.record
        ttl = record.get("ttl", None if record else self._default) if self._ttl is NOT_PROVIDED else self._ttl
        write = _write(self._items, self._address, value, ttl, record.get("index"))
        return (yield from self._items.replace(self._before, write))

    def pause(self) -> float:
        """The seconds until the next try. Raises TooManyConflicts where there is no time for one."""
        pause = self._backoff.pause()
        if time.monotonic() + pause > self._deadline:
            raise TooManyConflicts(f"{self._address} was written by others for {UPDATE_SECONDS:.0f} s")
        return pause


def _perform(items: Items, ops: Sequence[Op]) -> Exchange[list[Result]]:
    """The operations of a batch."""
    gets: dict[int, tuple[GetOp, Address]] = {}
    puts: dict[Address, Write] = {}
    for number, op in enumerate(ops):
        if isinstance(op, GetOp):
            gets[number] = op, Address(_checked(op.namespace, empty=True), str(op.key))
        elif isinstance(op, PutOp):
            address = Address(_checked(op.namespace), str(op.key))
            puts[address] = _write(items, address, op.value, op.ttl, op.index)
        elif isinstance(op, SearchOp):
            _checked(op.namespace_prefix, empty=True)
        elif isinstance(op, ListNamespacesOp):
            for condition in op.match_conditions or ():
                _checked(condition.path, empty=True)
        else:
            raise ValueError(f"Unknown operation type: {type(op)}")
    results: list[Result] = [None] * len(ops)
    found = yield from items.find(address for _, address in gets.values())
    for number, (_, address) in gets.items():
        results[number] = None if address not in found else (yield from _item(items, found[address]))
    yield from items.refresh(found[where] for op, where in gets.values() if op.refresh_ttl and where in found)
    for number, op in enumerate(ops):
        if isinstance(op, SearchOp):
            results[number] = yield from _search(items, op)
        elif isinstance(op, ListNamespacesOp):
            results[number] = yield from _namespaces(items, op)
    yield from items.commit(list(puts.values()))
    return results


def _write(items: Items, address: Address, value: Any, ttl: Any, index: Any) -> Write:
    return Write(address, None) if value is None else items.written(address, value, ttl, index)


def _item(items: Items, found: Found) -> Exchange[Item | None]:
    value = yield from items.value(found)
    return None if value is None else Item(**_named(found, value))


def _named(found: Found, value: Value) -> dict[str, Any]:
    record = found.record
    times = {name: record[name] for name in ("created_at", "updated_at")}
    return {"namespace": found.address.namespace, "key": found.address.key, "value": value, **times}


def _search(items: Items, op: SearchOp) -> Exchange[list[SearchItem]]:
    """The items that a search finds. Values are loaded for the page that is returned; with a filter, all of them."""
    prefix = tuple(op.namespace_prefix)
    wanted = query(op.query) if op.query else None
    found: list[Found] = []
    for below in (yield from items.below(prefix)):
        found += below.items if wanted is None else (yield from items.rank(below, prefix, wanted))
    if wanted is not None:
        found.sort(key=lambda item: -(item.score or 0.0))
    page = slice(op.offset, op.offset + op.limit)
    loaded = []
    for item in found if op.filter else found[page]:
        value = yield from items.value(item)
        if value is not None and (not op.filter or matches(value, op.filter)):
            loaded.append((item, value))
    if op.filter:
        loaded = loaded[page]
    if op.refresh_ttl:
        yield from items.refresh(item for item, _ in loaded)
    return [SearchItem(**_named(item, value), score=item.score) for item, value in loaded]


def _namespaces(items: Items, op: ListNamespacesOp) -> Exchange[list[Namespace]]:
    """The namespaces that have an item and meet all conditions, sorted, cut to a depth, each one once."""
    conditions = op.match_conditions or ()
    roots = [tuple(where.path[:1]) for where in conditions if where.match_type == "prefix"]
    found = yield from items.below(next((root for root in roots if root not in ((), ("*",))), ()))
    there = {item.address.namespace for below in found for item in below.items}
    names = {name[: op.max_depth] for name in there if all(in_namespace(where, name) for where in conditions)}
    return sorted(names)[op.offset : op.offset + op.limit]


def _checked(namespace: Sequence[Any], *, empty: bool = False, root: bool = False) -> Namespace:
    """A namespace that LangGraph allows; `root`: where its first label is checked too. Raises InvalidNamespaceError."""
    if not namespace and not empty:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label:
            raise InvalidNamespaceError(f"A label is text that is not empty and has no period, not {label!r}")
    if root and namespace[0] == "langgraph":
        raise InvalidNamespaceError(f'Root label for namespace cannot be "langgraph". Got: {tuple(namespace)}')
    return tuple(namespace)
