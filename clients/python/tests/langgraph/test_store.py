"""`BlackboardStore` beside LangGraph's InMemoryStore, and the guarantees that a store of many processes adds."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from agent_blackboard import BlackboardError, Client, NotFound, SessionFull, UnsupportedValue
from agent_blackboard.langgraph import BlackboardStore, TooManyConflicts, ValueTooLarge
from agent_blackboard.langgraph import items as items_module
from agent_blackboard.langgraph import store as store_module
from agent_blackboard.langgraph.items import SearchUnavailable
from agent_blackboard.langgraph.words import query

DAY = 24 * 60.0
"""A time to live that no test lives to see, in minutes."""


@pytest.fixture
def prefix(session_name: str) -> str:
    return f"{session_name[:100]}:"


@pytest.fixture
def store(url: str, prefix: str) -> Iterator[BlackboardStore]:
    with BlackboardStore(url=url, prefix=prefix) as store:
        yield store


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client


def revision(client: Client, store: BlackboardStore, root: str) -> int:
    return int(client.session(store.session_name((root,))).describe()["revision"])


def texts(client: Client, store: BlackboardStore, root: str) -> list[str]:
    return [str(item["text"]) for item in client.session(store.session_name((root,))).trajectories.items()]


# Against InMemoryStore

LABELS = ["a", "b", "a/b", "~", "~0", "%", "%2F", ":", "*x", "x y", "日本", "\x01", "\ud800", "é" * 90, "~" + "0" * 64]
KEYS = ["", ".", "..", "a.b", ":", "::", "\x00", "k" * 300, "/", "~1", "spaces", "items", "\udfff\ud800", "🦜"]
LEAVES: list[Any] = [None, True, False, 0, 1, 1.0, -2.5, 10**30, "", "1", "red", "blue", "🦜", "x" * 3000]


def some_value(chance: random.Random, depth: int = 0, names: tuple[str, ...] = ("x", "y", "$blob")) -> Any:
    kind = chance.random()
    if depth > 2 or kind < 0.6:
        return chance.choice(LEAVES)
    if kind < 0.8:
        return [some_value(chance, depth + 1, names) for _ in range(chance.randrange(3))]
    return {chance.choice(names): some_value(chance, depth + 1, names) for _ in range(chance.randrange(3))}


def some_filter(chance: random.Random) -> dict[str, Any] | None:
    if chance.random() < 0.5:
        return None
    compared = {chance.choice(["$eq", "$ne"]): chance.choice(LEAVES)}
    wanted = chance.choice([some_value(chance, names=("x", "y")), compared, {"x": 1}])
    return {chance.choice(["x", "y"]): wanted}


def some_op(chance: random.Random, namespaces: list[tuple[str, ...]]) -> Op:
    namespace = chance.choice(namespaces)
    kind = chance.random()
    if kind < 0.4:
        value = {name: some_value(chance) for name in ("x", "y") if chance.random() < 0.8}
        return PutOp(namespace, chance.choice(KEYS), value)
    if kind < 0.55:
        return PutOp(namespace, chance.choice(KEYS), None)
    if kind < 0.7:
        return GetOp(namespace, chance.choice(KEYS))
    if kind < 0.85:
        return SearchOp(namespace[: chance.randrange(len(namespace) + 1)], some_filter(chance), limit=10_000)
    part = namespace[: chance.randrange(len(namespace) + 1)]
    ends = tuple(chance.choice([label, "*"]) for label in chance.choice(namespaces)[-1:])
    conditions = [MatchCondition("prefix", tuple(chance.choice([label, label, "*"]) for label in part))]
    conditions += [MatchCondition("suffix", ends)] if chance.random() < 0.5 else []
    depth, limit, offset = chance.choice([None, 1, 2]), chance.choice([1, 100]), chance.randrange(2)
    return ListNamespacesOp(tuple(conditions), depth, limit, offset)


def plain(op: Op, result: Any) -> Any:
    """A result without times, and without the order of different namespaces."""
    if isinstance(op, GetOp):
        return None if result is None else (result.namespace, result.key, result.value)
    if isinstance(op, SearchOp):
        found: dict[Any, list[Any]] = {}
        for item in result:
            found.setdefault(item.namespace, []).append((item.key, item.value, item.score))
        return found
    return result


@pytest.mark.parametrize("seed", range(4))
async def test_operations_have_the_results_of_langgraphs_own_store(store: BlackboardStore, seed: int) -> None:
    chance = random.Random(seed)
    model = InMemoryStore()
    roots = chance.sample(LABELS, 2)
    namespaces = [(chance.choice(roots), *chance.choices(LABELS, k=chance.choice([0, 1, 2, 19]))) for _ in range(6)]
    for number in range(30):
        ops = [some_op(chance, namespaces) for _ in range(chance.randrange(1, 7))]
        # The model lists namespaces that were only read, or have no item any more.
        ops.sort(key=lambda op: not isinstance(op, ListNamespacesOp))
        for namespace in [name for name, held in model._data.items() if not held]:
            del model._data[namespace]
        got = await store.abatch(ops) if number % 2 else store.batch(ops)
        expected = model.batch(ops)
        for op, ours, theirs in zip(ops, got, expected, strict=True):
            assert plain(op, ours) == plain(op, theirs), op
    await store.aclose()


@pytest.mark.parametrize("operator", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"])
def test_operators_compare_as_langgraphs_own_store_does(store: BlackboardStore, operator: str) -> None:
    model = InMemoryStore()
    for number, value in enumerate([0, 1, 1.5, "2", True, 10**20]):
        for each in (store, model):
            each.put(("numbers",), str(number), {"n": value, "in": {"n": value}})
    for operand in (1, "1", 1.5, 2, 1e20):
        for wanted in ({"n": {operator: operand}}, {"in": {"n": {operator: operand}}}, {"n": {operator: 1, "$ne": 0}}):
            keys = [item.key for item in store.search(("numbers",), filter=wanted)]
            assert keys == [item.key for item in model.search(("numbers",), filter=wanted)]


def test_an_item_without_a_number_is_in_no_order(store: BlackboardStore) -> None:
    store.batch([PutOp(("n",), str(i), {"n": value}) for i, value in enumerate([None, "x", [], {}, 5])])
    store.put(("n",), "none", {})
    assert [item.key for item in store.search(("n",), filter={"n": {"$gt": 1}})] == ["4"]


def test_a_filter_with_an_unknown_operator_is_refused(store: BlackboardStore) -> None:
    store.put(("n",), "k", {"n": 1})
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(("n",), filter={"n": {"$near": 1}})


def test_pages_of_a_search_are_parts_of_the_whole(store: BlackboardStore) -> None:
    store.batch([PutOp(("a", str(i % 3)), str(i), {"i": i, "even": i % 2 == 0}) for i in range(20)])
    for wanted in (None, {"even": True}):
        whole = store.search(("a",), filter=wanted, limit=100)
        assert len(whole) == (20 if wanted is None else 10)
        for offset, limit in [(0, 3), (3, 3), (9, 5), (30, 5), (0, 0)]:
            assert store.search(("a",), filter=wanted, offset=offset, limit=limit) == whole[offset : offset + limit]


# Batches


def test_reads_of_a_batch_come_before_its_puts_and_the_last_put_of_a_key_counts(
    store: BlackboardStore, client: Client
) -> None:
    store.put(("a",), "k", {"n": 0})
    before = revision(client, store, "a")
    got, nothing, found, second, names = store.batch([
        GetOp(("a",), "k"),
        PutOp(("a",), "k", {"n": 1}),
        SearchOp(("a",)),
        PutOp(("a",), "k", {"n": 2}),
        ListNamespacesOp(),
    ])  # fmt: skip
    assert (got.value, nothing, second, names) == ({"n": 0}, None, None, [("a",)])  # type: ignore[union-attr]
    assert [item.value for item in found] == [{"n": 0}]  # type: ignore[union-attr]
    assert store.get(("a",), "k").value == {"n": 2}  # type: ignore[union-attr]
    assert revision(client, store, "a") == before + 2  # The write, and the deletion of the old text.


def test_a_batch_of_puts_below_one_label_is_one_commit(store: BlackboardStore, client: Client) -> None:
    store.put(("a",), "first", {})
    before = revision(client, store, "a")
    store.batch([PutOp(("a", str(i % 7)), str(i), {"i": i}) for i in range(400)])
    assert revision(client, store, "a") == before + 1
    assert len(store.search(("a",), limit=1000)) == 401


def test_a_batch_beyond_one_commit_is_several(store: BlackboardStore) -> None:
    store.batch([PutOp(("a",), str(i), {"text": f"{i} " + "long " * 40_000}) for i in range(35)])
    assert len(store.search(("a",), limit=1000)) == 35


def test_a_change_keeps_the_time_of_creation_and_the_place(store: BlackboardStore) -> None:
    store.put(("a",), "first", {"n": 1})
    store.put(("a",), "second", {"n": 1})
    made = store.get(("a",), "first")
    store.put(("a",), "first", {"n": 2})
    changed = store.get(("a",), "first")
    assert made is not None
    assert changed is not None
    assert changed.created_at == made.created_at
    assert changed.updated_at > made.updated_at
    assert [item.key for item in store.search(("a",))] == ["first", "second"]


# Bad input


@pytest.mark.parametrize(
    "value", [{"x": float("nan")}, {"x": {1, 2}}, {"x": "\ud800"}, {1: "x"}, {"x": [{None: 1}]}, ["x"], {"x": b"x"}]
)
def test_a_value_that_is_no_json_object_is_refused_and_nothing_of_its_batch_is_written(
    store: BlackboardStore, value: Any
) -> None:
    with pytest.raises(UnsupportedValue):
        store.batch([PutOp(("a",), "good", {"n": 1}), PutOp(("a",), "bad", value)])
    assert store.search(()) == []


def test_a_value_beyond_the_bounds_is_refused_and_nothing_of_its_batch_is_written(store: BlackboardStore) -> None:
    with pytest.raises(ValueTooLarge, match="32 MiB"):
        store.batch([PutOp(("a",), "good", {"n": 1}), PutOp(("b",), "bad", {"x": "x" * (32 << 20)})])
    assert store.search(()) == []


def test_a_commit_beyond_the_bounds_is_refused_whole(store: BlackboardStore) -> None:
    with pytest.raises(ValueTooLarge):
        store.put(("a",), "k", {"x": 1}, index=["x" * 100] * 100_000)
    assert store.search(()) == []


@pytest.mark.parametrize("value", [{"x": "x" * 3_000_000}, {"$blob": "0" * 64}, {"x": {"$blob": 1}}, {"n": 10**100}])
def test_a_long_or_strange_value_comes_back_as_it_was(store: BlackboardStore, url: str, value: Any) -> None:
    store.put(("a",), "k", value)
    with BlackboardStore(url=url, prefix=store.session_name(("a",))[:-1]) as other:
        found = other.get(("a",), "k")
    assert found is not None
    assert found.value == value


def test_a_deep_value_comes_back_as_it_was(store: BlackboardStore) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = {"x": [deep]}
    store.put(("a", *"b" * 60), "k", deep)
    found = store.get(("a", *"b" * 60), "k")
    assert found is not None
    assert found.value == deep


@pytest.mark.parametrize("namespace", [("a.b",), ("a", ""), ("a", 1), ()])
async def test_a_namespace_that_langgraph_forbids_is_refused(store: BlackboardStore, namespace: Any) -> None:
    for call in (lambda: store.put(namespace, "k", {}), lambda: store.batch([PutOp(namespace, "k", {})])):
        with pytest.raises(InvalidNamespaceError):
            call()
    with pytest.raises(InvalidNamespaceError):
        await store.aupdate(namespace, "k", lambda _: {})
    with pytest.raises(InvalidNamespaceError):
        store.update(("langgraph",), "k", lambda _: {})


def test_an_empty_namespace_has_no_item(store: BlackboardStore) -> None:
    assert store.get((), "k") is None


def test_an_operation_of_another_kind_is_refused(store: BlackboardStore) -> None:
    with pytest.raises(ValueError, match="Unknown operation"):
        store.batch(["get"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="match type"):
        store.put(("a",), "k", {})
        store.batch([ListNamespacesOp((MatchCondition("infix", ("a",)),))])  # type: ignore[arg-type]


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_ttl_that_is_none_is_refused(store: BlackboardStore, ttl: Any) -> None:
    with pytest.raises(UnsupportedValue, match="ttl"):
        store.put(("a",), "k", {}, ttl=ttl)
    assert store.search(()) == []


@pytest.mark.parametrize("prefix", ["", "a/b", "x" * 200])
def test_a_prefix_that_no_session_can_have_is_refused(prefix: str) -> None:
    with pytest.raises(UnsupportedValue):
        BlackboardStore(prefix=prefix)


def another(server: Any, directory: Path, *options: str) -> Any:
    """A server with options of its own."""
    directory.mkdir()
    return type(server)(directory, *options)


def test_a_session_without_room_refuses_an_item_whole(server: Any, tmp_path: Path) -> None:
    small = another(server, tmp_path / "small", "--session-bytes-max", "64KiB")
    try:
        with BlackboardStore(url=small.url) as store:
            store.put(("a",), "first", {"n": 1})
            with pytest.raises(SessionFull):
                store.batch([PutOp(("a",), str(i), {"x": "x" * 1000}) for i in range(100)])
            assert [item.key for item in store.search(("a",), limit=1000)] == ["first"]
            assert [item.key for item in store.search(("a",), query="1")] == ["first"]
    finally:
        small.stop()


# Words


async def test_a_query_finds_items_with_its_words_the_best_first(store: BlackboardStore) -> None:
    likes = {"a": "Ann likes apples", "b": "Ben likes apples and pears", "c": "Cleo likes plums", "d": "Größe: 42"}
    await store.abatch([PutOp(("memories", key), key, {"note": {"text": text}}) for key, text in likes.items()])
    store.put(("memories", "x"), "x", {"n": 1234567})

    def keys(query: str, *prefix: str, **further: Any) -> list[str]:
        return [item.key for item in store.search(("memories", *prefix), query=query, **further)]

    assert keys("What about pears, or APPLES?") == ["b", "a"]
    assert keys("apples", "a") == ["a"]
    assert keys('"apples and pears"') == ["b"]
    assert keys("like* -apples") == ["c"]
    assert keys('apples -"and pears"') == ["a"]
    assert keys("GROßE") == keys("Größe 42!") == ["d"]
    assert keys("1234567") == ["x"]
    assert keys("likes", limit=1, offset=1, filter={"note": {"text": likes["b"]}}) == []
    assert keys("likes", filter={"note": {"text": likes["b"]}}) == ["b"]
    assert keys('?! -- " * ²') == keys("-apples") == keys("w" * 5000) == keys("note") == keys("\ud800x") == []
    assert len(keys(" ".join(f"word{i}" for i in range(100)) + " apples")) == 0
    assert len(keys("")) == 5
    scores = [item.score for item in await store.asearch((), query="apples pears")]
    assert scores == sorted(scores, reverse=True)
    assert None not in scores
    await store.aclose()


def test_a_query_sees_what_was_written_before_it(store: BlackboardStore) -> None:
    for number in range(10):
        store.put(("a", "b"), "k", {"text": f"version{number}"})
        assert len(store.search(("a", "b"), query=f"version{number}")) == 1
        assert store.search(("a",), query=f"version{number - 1}") == []
    store.delete(("a", "b"), "k")
    assert store.search(("a",), query="version9") == []


def test_index_says_which_texts_are_searched(store: BlackboardStore) -> None:
    store.put(("a",), "none", {"text": "apple"}, index=False)
    store.put(("a",), "one", {"text": "apple", "more": [{"t": "pear"}, {"t": "plum"}]}, index=["more[*].t"])
    store.put(("a",), "all", {"text": "apple"}, index=["$"])
    store.put(("a",), "nothing", {"text": "apple"}, index=["elsewhere"])
    store.update(("a",), "none", lambda value: {**(value or {}), "n": 1})
    assert [item.key for item in store.search(("a",), query="apple")] == ["all"]
    assert [item.key for item in store.search(("a",), query="plum")] == ["one"]


def test_a_word_that_is_found_often_is_read_page_by_page(
    store: BlackboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_module, "STEPS_MAX", 50)
    store.batch([PutOp(("a", "b"), str(i), {"text": f"apple {'pear' if i == 7 else ''}"}) for i in range(120)])
    found = store.search(("a", "b"), query="apple pear", limit=1000)
    assert (len(found), found[0].key) == (120, "7")


def test_texts_that_a_killed_process_left_are_found_by_nobody_and_deleted(
    store: BlackboardStore, client: Client
) -> None:
    store.put(("a", "b"), "k", {"text": "apple"})
    session = client.session(store.session_name(("a",)))
    left = next(iter(session.trajectories.items()))
    session.trajectories.extend([{**left, "step": 1}, {**left, "step": 2}])
    assert [item.key for item in store.search(("a", "b"), query="apple")] == ["k"]
    assert texts(client, store, "a") == ["apple"]


@pytest.mark.parametrize(
    ("text", "terms", "without"),
    [
        ("pip install --upgrade", ('"pip"', '"install"', '"--upgrade"'), ()),
        ('-a b -"c d" -é', ('"b"',), ('-"a"', '-"c d"', '-"é"')),
        ('"x"-y -5 - z', ('"x"', '"-y"', '"-5"', '"z"'), ()),
    ],
)
def test_a_minus_excludes_as_on_the_server(text: str, terms: tuple[str, ...], without: tuple[str, ...]) -> None:
    assert (query(text).terms, query(text).without) == (terms, without)


def test_deep_namespaces_are_told_apart_by_words_too(store: BlackboardStore) -> None:
    deep = tuple(f"l{i}" for i in range(40))
    store.put((*deep, "x"), "1", {"text": "apple"})
    store.put((*deep, "y"), "2", {"text": "apple"})
    for prefix, keys in [(deep, ["1", "2"]), ((*deep, "y"), ["2"]), (deep[:17], ["1", "2"]), ((*deep, "z"), [])]:
        assert [item.key for item in store.search(prefix, query="apple")] == keys
        assert [item.key for item in store.search(prefix)] == keys
    assert store.list_namespaces(prefix=deep[:20]) == [(*deep, "x"), (*deep, "y")]


def test_a_server_without_an_index_says_so(server: Any, tmp_path: Path) -> None:
    off = another(server, tmp_path / "off", "--search", "off")
    try:
        with BlackboardStore(url=off.url) as store:
            store.put(("a",), "k", {"text": "apple"})
            with pytest.raises(SearchUnavailable, match="--search off"):
                store.search(("a",), query="apple")
            assert len(store.search(("a",))) == 1
    finally:
        off.stop()


# Times to live


def test_an_item_expires_and_a_sweep_deletes_what_is_left_of_it(store: BlackboardStore, client: Client) -> None:
    session = client.session(store.session_name(("a",)))
    store.put(("a", "b"), "k", {"text": "apple"}, ttl=0.001)
    store.put(("a",), "stays", {"text": "apple"})
    session.state.wait("store/spaces/b/items/k", "absent", wait=20)
    assert store.get(("a", "b"), "k") is None
    assert store.list_namespaces() == [("a",)]
    assert len(texts(client, store, "a")) == 2
    assert store.sweep() == 1
    assert texts(client, store, "a") == ["apple"]
    assert session.state["store"].keys() == {"spaces", "items"}
    assert session.state["store/spaces"] == {}
    store.delete(("a",), "stays")
    assert store.sweep() == 0
    assert not session.exists()
    assert store.sweep() == 0


async def test_a_sweep_goes_through_all_sessions(store: BlackboardStore, client: Client) -> None:
    store.batch([PutOp((root, "x", "y"), str(i), {"text": "apple"}) for root in "abc" for i in range(3)])
    session = client.session(store.session_name(("b",)))
    del session.state["store/spaces/x/spaces/y/items/1"]
    assert await store.asweep() == 1
    assert len(texts(client, store, "b")) == 2
    assert len(store.search(("b", "x"), query="apple")) == 2
    await store.aclose()


def test_a_read_begins_the_ttl_anew_unless_it_is_told_not_to(url: str, prefix: str, client: Client) -> None:
    with BlackboardStore(url=url, prefix=prefix, ttl={"default_ttl": DAY}) as store:
        store.put(("a",), "k", {"text": "apple" * 1000})
        store.put(("a",), "for ever", {}, ttl=None)
        made = revision(client, store, "a")
        assert store.get(("a",), "k") is not None
        assert revision(client, store, "a") == made + 1
        assert len(store.search(("a",))) == 2
        assert revision(client, store, "a") == made + 2
        store.get(("a",), "for ever")
        store.get(("a",), "k", refresh_ttl=False)
        store.search(("a",), refresh_ttl=False)
        store.search(("a",), filter={"x": 1})
        assert revision(client, store, "a") == made + 2
    with BlackboardStore(url=url, prefix=prefix, ttl={"refresh_on_read": False}) as store:
        store.get(("a",), "k")
        assert revision(client, store, "a") == made + 2


def test_a_refresh_does_not_bring_back_what_was_deleted_or_changed(store: BlackboardStore) -> None:
    store.batch([PutOp(("a",), key, {"n": 1}, ttl=DAY) for key in ("deleted", "changed", "same")])

    def meanwhile() -> None:
        store.delete(("a",), "deleted")
        store.put(("a",), "changed", {"n": 2}, ttl=DAY)

    found = list(interrupted(store, store._items.find(addresses("deleted", "changed", "same")), lambda: None).values())
    interrupted(store, store._items.refresh(found), meanwhile, times=1)
    assert {item.key: item.value["n"] for item in store.search(("a",))} == {"changed": 2, "same": 1}


def test_an_update_keeps_the_ttl_and_a_put_without_one_ends_it(store: BlackboardStore, client: Client) -> None:
    record = client.session(store.session_name(("a",))).state
    store.put(("a",), "k", {"n": 1}, ttl=DAY)
    store.update(("a",), "k", lambda value: {"n": 2})
    assert record["store/items/k"]["ttl"] == DAY
    store.update(("a",), "k", lambda value: {"n": 3}, ttl=1)
    assert record["store/items/k"]["ttl"] == 1
    store.put(("a",), "k", {"n": 4})
    assert "ttl" not in record["store/items/k"]


# Other writers


def addresses(*keys: str) -> list[items_module.Address]:
    return [items_module.Address(("a",), key) for key in keys]


def interrupted(store: BlackboardStore, exchange: Any, meanwhile: Callable[[], object], times: int = 1000) -> Any:
    """Run an exchange, and something else before each of its first transactions."""

    def watched() -> Any:
        left = times
        step, told = exchange.send, None
        while True:
            try:
                request = step(told)
            except StopIteration as end:
                return end.value
            if request.path.endswith("/transactions") and left > 0:
                left -= 1
                meanwhile()
            try:
                step, told = exchange.send, (yield request)
            except BlackboardError as error:
                step, told = exchange.throw, error

    return store._connections.run(watched())


def increment(value: dict[str, Any] | None) -> dict[str, Any]:
    return {"n": (value or {"n": 0})["n"] + 1}


def test_updates_of_threads_lose_nothing(url: str, prefix: str) -> None:
    def work() -> None:
        with BlackboardStore(url=url, prefix=prefix) as store:
            for _ in range(25):
                store.update(("counters",), "visits", increment)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with BlackboardStore(url=url, prefix=prefix) as store:
        assert [item.value for item in store.search(("counters",))] == [{"n": 200}]
        assert [item.key for item in store.search(("counters",), query="200")] == ["visits"]


async def test_updates_of_tasks_lose_nothing_and_may_be_async(store: BlackboardStore) -> None:
    async def later(value: dict[str, Any] | None) -> dict[str, Any]:
        await asyncio.sleep(0)
        return increment(value)

    async def work(change: Any) -> None:
        for _ in range(25):
            await store.aupdate(("counters", "x"), "visits", change)

    await asyncio.gather(*[work(change) for change in (increment, later) * 2])
    found = await store.aget(("counters", "x"), "visits")
    assert found is not None
    assert found.value == {"n": 100}
    await store.aclose()


def test_an_update_may_make_and_delete_an_item(store: BlackboardStore) -> None:
    assert store.update(("a",), "k", lambda value: value) is None
    assert store.update(("a",), "k", increment) == {"n": 1}
    assert store.update(("a",), "k", lambda _: None) is None
    assert store.get(("a",), "k") is None


def test_an_update_that_always_comes_too_late_ends_and_has_written_nothing(
    store: BlackboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "UPDATE_SECONDS", 0.1)

    def late(value: dict[str, Any] | None) -> dict[str, Any]:
        store.put(("a",), "k", {"by": "another"})
        return {"by": "me"}

    with pytest.raises(TooManyConflicts):
        store.update(("a",), "k", late)
    assert [item.value for item in store.search(("a",))] == [{"by": "another"}]


def test_a_put_wins_over_a_writer_who_is_always_faster(store: BlackboardStore, url: str, prefix: str) -> None:
    with BlackboardStore(url=url, prefix=prefix) as other:
        write = store._items.written(addresses("k")[0], {"by": "me"}, None, None)
        interrupted(store, store._items.commit([write]), lambda: other.put(("a",), "k", {"by": "another"}))
        assert [item.value for item in store.search(("a",))] == [{"by": "me"}]


def test_a_deletion_goes_with_the_item_that_another_deleted(store: BlackboardStore) -> None:
    store.put(("a",), "k", {})
    write = items_module.Write(addresses("k")[0], None)
    interrupted(store, store._items.commit([write]), lambda: store.delete(("a",), "k"), times=1)
    assert store.search(("a",)) == []


def test_a_value_whose_blob_was_deleted_is_uploaded_again(store: BlackboardStore, client: Client) -> None:
    long = {"text": "apple " * 1000}
    store.put(("a",), "k", long)
    client.session(store.session_name(("a",))).delete()
    assert store.search(("a",)) == []
    store.put(("a",), "k", long)
    assert [item.value for item in store.search(("a",), query="apple")] == [long]


def test_a_blob_that_goes_while_it_is_read_is_read_anew(
    store: BlackboardStore, url: str, prefix: str, client: Client
) -> None:
    store.put(("a",), "k", {"text": "apple " * 1000})
    with BlackboardStore(url=url, prefix=prefix) as other:
        found = other._connections.run(other._items.find(addresses("k")))[addresses("k")[0]]
        client.session(store.session_name(("a",))).delete()
        assert other._connections.run(other._items.value(found)) is None
        store.put(("a",), "k", {"n": 1})
        assert other._connections.run(other._items.value(found)) == {"n": 1}


def test_items_outlive_the_server_and_another_process_sees_them(server: Any) -> None:
    with BlackboardStore(url=server.url) as store:
        store.put(("a", "b"), "k", {"text": "apple"})
        server.kill()
        server.start()
        assert store.get(("a", "b"), "k") is not None
        store.put(("a", "b"), "k", {"text": "pear"})
        with BlackboardStore(Client(server.url)) as other:
            assert [item.key for item in other.search((), query="pear apple")] == ["k"]
            other.close()


def test_a_prefix_of_sessions_is_a_store_of_its_own(store: BlackboardStore, url: str, prefix: str) -> None:
    store.put(("a",), "k", {})
    with BlackboardStore(url=url, prefix="other-" + prefix[:50]) as other:
        assert other.get(("a",), "k") is None
        assert other.list_namespaces() == []


async def test_one_store_serves_async_calls_and_a_missing_session_is_empty(store: BlackboardStore) -> None:
    async with store:
        assert await store.aget(("a",), "k") is None
        assert await store.asearch(("a",), query="apple") == []
        await store.adelete(("a",), "k")
        await store.aput(("a",), "k", {"n": 1}, ttl=DAY)
        assert await store.alist_namespaces(suffix=("a",)) == [("a",)]
        assert [item.value for item in await store.asearch(())] == [{"n": 1}]


def test_a_session_that_goes_during_a_search_is_empty(store: BlackboardStore, client: Client) -> None:
    store.put(("a", "b"), "k", {"text": "apple"})
    below = store._connections.run(store._items.below(("a", "b")))
    client.session(store.session_name(("a",))).delete()
    ranked = store._connections.run(store._items.rank(below[0], ("a", "b"), query("apple")))
    assert ranked == []
    with pytest.raises(NotFound):
        client.session(store.session_name(("a",))).describe()
