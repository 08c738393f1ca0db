"""Items of a store: their places in sessions, and the exchanges that read, write and rank them.

The layout is drawn in `store.py`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from .._wire import duration, json_bytes, path
from ..errors import (
    BlackboardError,
    InvalidParameter,
    NoBlob,
    NotFound,
    PreconditionFailed,
    RouteNotFound,
    SessionNotFound,
    UnsupportedValue,
)
from . import names
from .errors import TooManyConflicts, ValueTooLarge
from .exchange import Exchange, Request
from .sessions import TRIES_MAX, Operation, Sessions, place
from .values import BLOB_MAX, Blob, Packed, Values, is_plain
from .words import SCOPES_MAX, Query, entry, scope

VALUE_INLINE_MAX = 2048
"""The longest value that stands in the state, in bytes of JSON."""
PART_BYTES_MAX = 128
"""The longest label or key that is a key of the state, in bytes; a longer one is a hash there."""
LEVELS_MAX = 16
"""The labels of a namespace, behind the first one, that are levels of the state; those after them are one level."""
PUTS_MAX = 450
"""The writes of one commit; a transaction has at most 1,000 operations."""
COMMIT_BYTES_MAX = 6 << 20
"""The bytes of one commit; a body has at most 8 MiB."""
READS_MAX = 4
"""The items of one namespace that are read one by one; for more of them the namespace is read."""
CONDITIONAL_TRIES = 10
"""The tries after which a put no longer waits for its turn: the last write wins."""
TTL_MINUTES_MAX = 36_500 * 24 * 60
"""The longest time to live, in minutes."""
HITS_MAX = 1000
"""The hits of one term that are ranked, the best ones."""
INDEX_WAIT = 30.0
"""The longest time for which a search waits until its index has what was written before it, in seconds."""
STEPS_MAX = 1000
"""The entries of a page of the log, and the numbers in one deletion."""

Namespace = tuple[str, ...]
Record = dict[str, Any]


class SearchUnavailable(BlackboardError):
    """A search by words on a server that keeps no index of words."""


@dataclass(frozen=True)
class Address:
    """The namespace and the key of an item."""

    namespace: Namespace
    key: str

    @property
    def path(self) -> str:
        """The state path of the item in its session."""
        return path(*_node(self.namespace), "items", _part(self.key))


@dataclass(frozen=True)
class Found:
    """A stored item: its address, its session, and its record in the state. The value may be a blob."""

    address: Address
    session: str
    record: Record
    score: float | None = None

    @property
    def id(self) -> int:
        """The number of the write that made the record; every put has another one."""
        return int(self.record["id"])

    @property
    def same(self) -> dict[str, Any]:
        """The condition that nobody has written the item since."""
        return {"path": f"{self.address.path}/id", "equals": self.id}


@dataclass(frozen=True)
class Below:
    """The items below a prefix that are in one session, as they were at a revision."""

    session: str
    revision: int
    items: list[Found]


@dataclass(frozen=True)
class Write:
    """A put that was checked, or a deletion: then there is no record."""

    address: Address
    record: Record | None
    packed: Packed | None = None
    text: Record | None = None

    def operations(self, before: Found | None) -> list[Operation]:
        """The operations on the item and on the log of texts."""
        if self.record is None:
            return [{"delete": self.address.path}]
        made = self.record if before is None else {**self.record, "created_at": before.record["created_at"]}
        put = _put(self.address, made)
        return [put] if self.text is None else [put, {"append": "trajectories", "item": self.text}]

    def condition(self, before: Found | None) -> dict[str, Any]:
        """The condition that nobody has written the item since."""
        return {"path": self.address.path, "absent": True} if before is None else before.same


class Items:
    """The items of a store."""

    def __init__(self, prefix: str, sessions: Sessions) -> None:
        self.prefix = names.checked_prefix(prefix)
        self.sessions = sessions
        self.values = Values()

    def session(self, namespace: Namespace) -> str:
        """The session of a namespace."""
        return names.thread_session(self.prefix, namespace[0])

    def written(self, address: Address, value: Any, ttl: float | None, index: Any) -> Write:
        """The put of a value. Raises UnsupportedValue for one that is no JSON object, ValueTooLarge for a long one."""
        if not isinstance(value, Mapping):
            raise UnsupportedValue(f"the value of an item is a mapping, not {type(value).__name__}")
        value = dict(value)
        content = json_bytes(value)
        _check_keys(value)
        if len(content) > BLOB_MAX:
            raise ValueTooLarge(f"{address} has a value of {len(content)} bytes; the limit is {BLOB_MAX} (32 MiB)")
        now = datetime.now(timezone.utc).isoformat()
        record: Record = {"id": secrets.randbits(53), "created_at": now, "updated_at": now}
        if ttl is not None:
            record["ttl"] = _minutes(ttl)
        if index is not None:
            record["index"] = index
        if self._is_hashed(address):
            record["namespace"] = [names.escaped(label) for label in address.namespace]
            record["key"] = names.escaped(address.key)
        text = None if index is False else entry(record["id"], address.namespace, value, index)
        if len(content) <= VALUE_INLINE_MAX and is_plain(value):
            return Write(address, {**record, "value": value}, None, text)
        sha256 = hashlib.sha256(content).hexdigest()
        record["blob"] = {"type": "json", "$blob": sha256, "bytes": len(content)}
        return Write(address, record, Packed(record["blob"], Blob(sha256, content)), text)

    def _is_hashed(self, address: Address) -> bool:
        """Whether the item's place does not tell its names."""
        parts = (*_node(address.namespace), _part(address.key))
        whole = names.thread_of(self.prefix, self.session(address.namespace)) is not None
        return not whole or any(part.startswith("~") for part in parts)

    def find(self, addresses: Iterable[Address]) -> Exchange[dict[Address, Found]]:
        """The items of some addresses, without those that are not there."""
        wanted: dict[Namespace, list[Address]] = {}
        for address in dict.fromkeys(addresses):
            wanted.setdefault(address.namespace, []).append(address)
        found: dict[Address, Found] = {}
        for namespace, group in wanted.items():
            if namespace:
                found.update((yield from self._find(namespace, group)))
        return found

    def _find(self, namespace: Namespace, addresses: list[Address]) -> Exchange[dict[Address, Found]]:
        session = self.session(namespace)
        records: dict[Address, Record] = {}
        if len(addresses) <= READS_MAX:
            for address in addresses:
                read = yield from self.sessions.read(session, address.path)
                if read is not None:
                    records[address] = read.value
        else:
            node = yield from self.sessions.read(session, path(*_node(namespace), "items"))
            there = {} if node is None else node.value
            parts = {address: _part(address.key) for address in addresses}
            records = {address: there[part] for address, part in parts.items() if part in there}
        return {address: Found(address, session, record) for address, record in records.items()}

    def below(self, prefix: Namespace) -> Exchange[list[Below]]:
        """The items below a prefix, by session. An empty prefix is above all sessions of the store."""
        sessions = [self.session(prefix)] if prefix else (yield from self.sessions.names(self.prefix))
        above = prefix[: LEVELS_MAX + 1]
        found = []
        for session in sessions:
            read = yield from self.sessions.read(session, path(*_node(above)))
            if read is not None:
                root = above or (names.thread_of(self.prefix, session) or "",)
                walked = [Found(address, session, record) for address, record in _walk(read.value, root)]
                inside = [item for item in walked if item.address.namespace[: len(prefix)] == prefix]
                found.append(Below(session, read.revision or 0, inside))
        return found

    def value(self, item: Found) -> Exchange[dict[str, Any] | None]:
        """The value of an item, made anew each time; None where the item was deleted meanwhile."""
        current: Found | None = item
        for _ in range(TRIES_MAX):
            if current is None:
                return None
            record = current.record
            if "value" in record:
                value: dict[str, Any] = record["value"]
                return value
            try:
                content: dict[str, Any] = yield from self.values.load(item.session, _Json(), record["blob"])
            except NotFound:
                # Written since it was read, and its blob is deleted: read it again.
                current = (yield from self.find([item.address])).get(item.address)
            else:
                return content
        raise TooManyConflicts(f"{item.address} was written {TRIES_MAX} times while it was read")

    def commit(self, writes: Sequence[Write]) -> Exchange[None]:
        """Write: the blobs first, then one commit for a session, or several where there are too many writes for one.

        A put is repeated against other writers, and in the end wins over them.
        """
        sessions: dict[str, list[Write]] = {}
        for write in writes:
            sessions.setdefault(self.session(write.address.namespace), []).append(write)
        for session, group in sessions.items():
            yield from self.values.store(session, _blobs(group))
        for session, group in sessions.items():
            for chunk in _chunks(group):
                yield from self._commit_all(session, chunk)

    def _commit_all(self, session: str, writes: list[Write]) -> Exchange[None]:
        for number in range(TRIES_MAX):
            found = yield from self.find([write.address for write in writes])
            present = [(write, found.get(write.address)) for write in writes]
            if (yield from self._try(session, present, firm=number >= CONDITIONAL_TRIES)):
                return
        raise TooManyConflicts(f"session {session!r} was written by others {TRIES_MAX} times in a row")

    def replace(self, before: Found | None, write: Write) -> Exchange[bool]:
        """Write an item that nobody has written since it was read; False where somebody has."""
        session = self.session(write.address.namespace)
        yield from self.values.store(session, _blobs([write]))
        return (yield from self._try(session, [(write, before)], firm=False))

    def _try(self, session: str, pairs: Sequence[tuple[Write, Found | None]], *, firm: bool) -> Exchange[bool]:
        """One transaction. Where it is firm, puts have no condition."""
        pairs = [(write, before) for write, before in pairs if write.record is not None or before is not None]
        operations = [operation for write, before in pairs for operation in write.operations(before)]
        conditions = [write.condition(before) for write, before in pairs if not firm or write.record is None]
        if not operations:
            return True
        try:
            done = yield from self.sessions.commit(session, conditions, operations)
        except NoBlob:
            # A blob that was known to be there has been deleted since: nothing named it for an hour.
            yield from self.values.store(session, _blobs([write for write, _ in pairs]), every=True)
            done = yield from self.sessions.commit(session, conditions, operations)
        if done:
            yield from self._drop_texts(session, [before.id for _, before in pairs if before is not None])
        return done

    def refresh(self, items: Iterable[Found]) -> Exchange[None]:
        """Begin the times to live anew, one commit a session. One that was written meanwhile needs none."""
        sessions: dict[str, dict[Address, Found]] = {}
        for item in items:
            if "ttl" in item.record:
                sessions.setdefault(item.session, {})[item.address] = item
        for session, group in sessions.items():
            all_of_it = list(group.values())
            for begin in range(0, len(all_of_it), PUTS_MAX):
                yield from self._refresh(session, all_of_it[begin : begin + PUTS_MAX])

    def _refresh(self, session: str, items: list[Found]) -> Exchange[None]:
        while items:
            puts = [_put(item.address, item.record) for item in items]
            # A reference may name a blob that is deleted: then its item was written meanwhile.
            with suppress(NoBlob):
                if (yield from self.sessions.commit(session, [item.same for item in items], puts)):
                    return
            present = yield from self.find([item.address for item in items])
            left = [item for item in items if item.address in present and present[item.address].id == item.id]
            items = left if len(left) < len(items) else []

    def _drop_texts(self, session: str, ids: Sequence[int]) -> Exchange[None]:
        """Delete the texts of records that are gone. A search or a sweep deletes those that are left behind."""
        for begin in range(0, len(ids), STEPS_MAX):
            steps = ",".join(map(str, ids[begin : begin + STEPS_MAX]))
            try:
                yield Request("DELETE", f"{place(session)}/trajectories", params={"steps": steps})
            except BlackboardError:
                return  # The write is done; its caller must not take it for refused.

    def rank(self, below: Below, prefix: Namespace, query: Query) -> Exchange[list[Found]]:
        """The items with a term of a query and none that it excludes, each with its score, the best first."""
        scores = yield from self._hits(below, prefix, query)
        steps = yield from self._steps(below.session, sorted(scores))
        by_id = {step: scores[seq] for seq, (step, _) in steps.items()}
        if len(prefix) <= SCOPES_MAX:
            present = {item.id for item in below.items}
            stale = [step for step, made in steps.values() if step not in present and made <= below.revision]
            yield from self._drop_texts(below.session, stale)
        found = [replace(item, score=by_id[item.id]) for item in below.items if item.id in by_id]
        return sorted(found, key=lambda item: -(item.score or 0.0))

    def _hits(self, below: Below, prefix: Namespace, query: Query) -> Exchange[dict[int, float]]:
        """The scores of entries by their numbers: a search for each term, added up as BM25 does."""
        scores: dict[int, float] = {}
        within = [scope(prefix[:SCOPES_MAX])] if len(prefix) > 1 else []
        for term in query.terms if below.items else ():
            try:
                hits = yield from self._term(below, " ".join([term, *query.without, *within]))
            except InvalidParameter:
                continue  # The server finds no letter or digit in the term.
            except SessionNotFound:
                return {}
            except RouteNotFound as error:
                raise SearchUnavailable("search is off on the server (--search off)") from error
            for hit in hits:
                scores[hit["seq"]] = scores.get(hit["seq"], 0.0) + hit["score"]
        return scores

    def _term(self, below: Below, text: str) -> Exchange[list[dict[str, Any]]]:
        """The best hits of one search, of an index that has the session's revision."""
        hits: list[dict[str, Any]] = []
        after = None
        while len(hits) < HITS_MAX:
            where = {"session": below.session, "log": "trajectories", "min_revision": below.revision}
            params = {"q": text, **where, "limit": 100, "after": after}
            page = (yield Request("GET", "/v1/search", params=params, wait=INDEX_WAIT)).json()
            hits += page["hits"]
            after = page["next"]
            if after is None:
                break
        return hits

    def _steps(self, session: str, seqs: Sequence[int]) -> Exchange[dict[int, tuple[int, int]]]:
        """Of some entries of the log, by their numbers in ascending order: the ids of their records, and revisions."""
        found: dict[int, tuple[int, int]] = {}
        wanted = deque(seqs)
        while wanted:
            page = yield from self._page(session, wanted[0] - 1, wanted[-1] + 1)
            shown = {entry["seq"]: (entry["item"].get("step", 0), entry["revision"]) for entry in page["entries"]}
            reached = page["next"] if page["more"] else wanted[-1]
            while wanted and wanted[0] <= reached:
                seq = wanted.popleft()
                if seq in shown:
                    found[seq] = shown[seq]
        return found

    def _page(self, session: str, after: int, before: int | None = None) -> Exchange[dict[str, Any]]:
        params = {"after": after, "before": before, "limit": STEPS_MAX, "keys": "step"}
        page: dict[str, Any] = (yield Request("GET", f"{place(session)}/trajectories", params=params)).json()
        return page

    def sweep(self) -> Exchange[int]:
        """Delete what deleted and expired items have left behind: texts, namespaces, sessions. The number of texts."""
        total = 0
        for session in (yield from self.sessions.names(self.prefix)):
            with suppress(SessionNotFound):
                total += yield from self._sweep(session)
        return total

    def _sweep(self, session: str) -> Exchange[int]:
        tag = (yield Request("GET", place(session))).etag
        read = yield from self.sessions.read(session, path(*_node(())))
        root = {} if read is None else read.value
        present = {record["id"] for _, record in _walk(root, ("",))}
        if read is None or not present:
            with suppress(PreconditionFailed):
                yield from self.sessions.delete(session, tag)
            return 0
        stale = yield from self._stale(session, present, read.revision or 0)
        yield from self._drop_texts(session, stale)
        empty = [{"path": path(*keys), "equals": node} for keys, node in _empty(root, _node(()))][:PUTS_MAX]
        if empty:
            yield from self.sessions.commit(session, empty, [{"delete": test["path"]} for test in empty])
        return len(stale)

    def _stale(self, session: str, present: set[int], revision: int) -> Exchange[list[int]]:
        """The ids of texts whose records are gone."""
        stale = []
        after, more = 0, True
        while more:
            page = yield from self._page(session, after)
            for shown in page["entries"]:
                step = shown["item"].get("step")
                if step not in present and shown["revision"] <= revision:
                    stale.append(step)
            after, more = page["next"], page["more"]
        return stale


def _node(namespace: Namespace) -> list[str]:
    """The keys of a namespace in the state of its session."""
    labels = namespace[1:]
    further = [".".join(labels[LEVELS_MAX:])] if len(labels) > LEVELS_MAX else []
    keys = ["store"]
    for label in (*labels[:LEVELS_MAX], *further):
        keys += ["spaces", _part(label)]
    return keys


def _part(text: str) -> str:
    """A key of the state for a label or a key: `~` and a hash for a long one, so `:` goes before another `~`."""
    plain = names.key(text)
    if len(plain.encode()) > PART_BYTES_MAX:
        return names.hashed(text)
    return f":{plain}" if plain.startswith("~") else plain


def _walk(node: Mapping[str, Any], above: Namespace) -> Iterator[tuple[Address, Record]]:
    """The items of a namespace and those below it, in the order in which they were made."""
    for part, record in node.get("items", {}).items():
        if "key" in record:
            yield Address(tuple(map(names.unescaped, record["namespace"])), names.unescaped(record["key"])), record
        else:
            yield Address(above, names.text_of(part)), record
    for part, below in node.get("spaces", {}).items():
        text = names.text_of(part)
        labels = text.split(".") if len(above) > LEVELS_MAX else [text]
        yield from _walk(below, (*above, *labels))


def _empty(node: Mapping[str, Any], keys: list[str]) -> Iterator[tuple[list[str], Any]]:
    """The topmost namespaces that have no item, with their keys."""
    for part, below in node.get("spaces", {}).items():
        here = [*keys, "spaces", part]
        if any(_walk(below, ("",))):
            yield from _empty(below, here)
        else:
            yield here, below


def _put(address: Address, record: Record) -> Operation:
    put = {"put": address.path, "value": record}
    return {**put, "ttl": duration(record["ttl"] * 60)} if "ttl" in record else put


def _blobs(writes: Iterable[Write]) -> list[Packed]:
    return [write.packed for write in writes if write.packed is not None]


def _chunks(writes: Iterable[Write]) -> Iterator[list[Write]]:
    """Writes in groups that one commit takes."""
    chunk: list[Write] = []
    total = 0
    for write in writes:
        size = len(json_bytes(write.operations(None)))
        if chunk and (len(chunk) == PUTS_MAX or total + size > COMMIT_BYTES_MAX):
            yield chunk
            chunk, total = [], 0
        chunk.append(write)
        total += size
    if chunk:
        yield chunk


def _minutes(ttl: Any) -> float:
    """A time to live. Raises UnsupportedValue for one that the server does not take."""
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl <= TTL_MINUTES_MAX:
        raise UnsupportedValue(f"a ttl is more than 0 and at most {TTL_MINUTES_MAX} minutes, not {ttl!r}")
    return ttl


def _check_keys(value: Any) -> None:
    """Raises UnsupportedValue for a key that is no text: JSON would make it one."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            for key in part:
                if not isinstance(key, str):
                    raise UnsupportedValue(f"the keys of a value are text, not {key!r}")
            left.extend(part.values())
        elif isinstance(part, (list, tuple)):
            left.extend(part)


class _Json:
    """The serializer of blobs: plain JSON, of which nothing is revived."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        return "json", json_bytes(value)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return json.loads(data[1])
