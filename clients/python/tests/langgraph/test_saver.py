"""Sync methods of the saver; the conformance suite checks the async ones, which run the same exchanges."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from typing import Any, ClassVar

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from agent_blackboard import Answer, AsyncClient, Client, SessionExists, SessionNotFound, UnsupportedValue
from agent_blackboard.langgraph import BlackboardSaver, IncompatibleLayout

from .threads import chain, checkpoint, config, found, id_of, ids, metadata, put, values


def test_a_checkpoint_comes_back_as_it_was_put(saver: BlackboardSaver) -> None:
    kept = {"text": "a", "none": None, "bytes": b"\0\xff", "at": datetime.now(timezone.utc), "long": "x" * 5000}
    made = checkpoint(kept)
    stored = saver.put(config(), made, metadata(step=3, run_id="r"), made["channel_versions"])
    read = found(saver, stored)
    assert read.checkpoint == made
    assert read.metadata == {"source": "loop", "step": 3, "parents": {}, "run_id": "r"}
    assert (read.config, read.parent_config, read.pending_writes) == (stored, None, [])
    assert saver.get(config()) == made


def test_a_missing_thread_namespace_or_checkpoint_is_none(saver: BlackboardSaver) -> None:
    assert saver.get_tuple(config("none")) is None
    put(saver, {})
    assert saver.get_tuple(config(checkpoint_ns="child")) is None
    assert saver.get_tuple(config(checkpoint_id="none")) is None
    assert list(saver.list(config("none"))) == []


@pytest.mark.parametrize(
    "thread_id",
    ["", ".", "..", "a/b", "a%2Fb", "~", "ü 人", "\x00\n\x7f\x85", "\ud800", "x" * 300, "/" * 100, 7, "a~b", "a:b?c#d"],
    ids=ascii,
)
def test_any_text_is_a_thread(saver: BlackboardSaver, thread_id: Any) -> None:
    first = put(saver, {"n": 1}, config(thread_id))
    saver.put_writes(first, [("n", 2)], "task")
    assert values(saver, config(thread_id)) == {"n": 1}
    assert len(saver.session_name(thread_id).encode()) <= 256
    listed = list(saver.list(None))
    assert [one.config["configurable"]["thread_id"] for one in listed] == [str(thread_id)]
    saver.copy_thread(thread_id, f"{thread_id}2")
    assert {one.config["configurable"]["thread_id"] for one in saver.list(None)} == {str(thread_id), f"{thread_id}2"}
    saver.delete_thread(thread_id)
    assert saver.get_tuple(config(thread_id)) is None


def test_threads_with_alike_ids_are_apart(saver: BlackboardSaver) -> None:
    alike = [
        "a/b",
        "a%2Fb",
        "a%252Fb",
        "~a",
        "%7Ea",
        "x" * 300,
        "x" * 301,
        saver.session_name("x" * 300).split(":")[-1],
    ]
    assert len({saver.session_name(thread_id) for thread_id in alike}) == len(alike)


@pytest.mark.parametrize("text", ["a/b", "..", ":", "a~0b", "x" * 300, "\x01", "ü|child:1"], ids=ascii)
def test_any_text_is_a_namespace_a_task_and_an_id(saver: BlackboardSaver, text: str) -> None:
    stored = put(saver, {"n": 1}, config(checkpoint_ns=text), id=text, run_id=text)
    saver.put_writes(stored, [(text, text)], text, text)
    read = found(saver, config(checkpoint_ns=text))
    assert read.config["configurable"] == {"thread_id": "t", "checkpoint_ns": text, "checkpoint_id": text}
    assert read.pending_writes == [(text, text, text)]
    assert ids(saver.list(config(checkpoint_ns=text))) == [text]
    saver.delete_for_runs([text])
    assert saver.get_tuple(stored) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"$blob": "0" * 64},
        {"deep": {"$blob": "0" * 64}},
        datetime(2026, 1, 1, tzinfo=timezone.utc),
        {1: 2},
        1 << 70,
        {"big": "x" * 9000, "when": datetime(2026, 1, 1, tzinfo=timezone.utc)},
    ],
    ids=lambda odd: type(odd).__name__,
)
def test_metadata_that_is_no_plain_json_comes_back(saver: BlackboardSaver, odd: Any) -> None:
    stored = put(saver, {}, step=4, odd=odd, nested=[None, {"a": [True, 1.5]}])
    assert found(saver, stored).metadata == metadata(step=4, odd=odd, nested=[None, {"a": [True, 1.5]}])
    assert ids(saver.list(config(), filter={"odd": odd, "step": 4})) == [id_of(stored)]
    assert ids(saver.list(config(), filter={"odd": "other"})) == []


def test_deep_metadata_comes_back(saver: BlackboardSaver) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert found(saver, put(saver, {}, deep=deep)).metadata["deep"] == deep  # type: ignore[typeddict-item]


def test_channels_named_as_references_are_channels(saver: BlackboardSaver) -> None:
    kept = {"$blob": "0" * 64, "a/b": 2, "": 3, "~": 4}
    read = found(saver, put(saver, kept, versions={"$blob": "0" * 64, "a/b": 2, "": 2, "~": 2}))
    assert read.checkpoint["channel_values"] == kept
    assert read.checkpoint["channel_versions"]["$blob"] == "0" * 64


class Counting(Client):
    """A client that counts its requests."""

    requests: ClassVar[list[str]] = []

    def request(self, method: str, path: str, **options: Any) -> Answer:
        self.requests.append(method)
        return super().request(method, path, **options)


def test_a_channel_that_did_not_change_is_neither_serialized_nor_sent_again(
    url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Counting(url) as client:
        saver = BlackboardSaver(client, prefix=prefix)
        first = put(saver, {"doc": "x" * 5000, "n": 0})
        dumped: list[Any] = []
        dumps = saver.serde.dumps_typed
        monkeypatch.setattr(saver.serde, "dumps_typed", lambda value: dumped.append(value) or dumps(value))
        client.requests.clear()
        revision = client.session(saver.session_name("t")).describe()["revision"]
        second = put(saver, {"doc": "x" * 5000, "n": 1}, first, {"doc": 1, "n": 2}, {"n": 2})
        assert dumped == [1]
        third = put(saver, {"n": 2}, second, {"doc": 1, "n": 3}, {"n": 3})
        assert client.requests == ["GET", "POST", "POST"]
        assert client.session(saver.session_name("t")).describe()["revision"] == revision + 2
    for parent in (second, third):
        with BlackboardSaver(url=url, prefix=prefix) as other:
            assert values(other, parent)["doc"] == "x" * 5000, "a value that was not given is the parent's"
        with BlackboardSaver(url=url, prefix=prefix) as fresh:
            assert values(fresh, put(fresh, {"n": 3}, parent, {"doc": 1, "n": 4}, {"n": 4}))["doc"] == "x" * 5000


def test_a_blob_that_is_gone_is_sent_again(saver: BlackboardSaver, url: str, prefix: str) -> None:
    long = "x" * 5000
    first = put(saver, {"doc": long})
    with BlackboardSaver(url=url, prefix=prefix) as other:
        other.delete_thread("t")
        put(other, {"n": 1})
    second = put(saver, {"doc": long}, first, {"doc": 1}, {})
    assert values(saver, second) == {"doc": long}
    with BlackboardSaver(url=url, prefix=prefix) as other:
        other.delete_thread("t")
    saver.put_writes(second, [("doc", long)], "task")
    assert saver.get_tuple(second) is None, "writes alone are no checkpoint"
    put(saver, {"doc": long}, config(), id=id_of(second))
    assert found(saver, second).pending_writes == [("task", "doc", long)]


def test_the_latest_is_the_greatest_id_in_whatever_order(saver: BlackboardSaver, url: str, prefix: str) -> None:
    put(saver, {"n": 1}, id="b")
    put(saver, {"n": 2}, id="a")
    assert values(saver, config()) == {"n": 1}
    with BlackboardSaver(url=url, prefix=prefix) as other:
        put(other, {"n": 3}, id="d")
    put(saver, {"n": 4}, id="c")
    assert values(saver, config()) == {"n": 3}
    put(saver, {"n": 5}, id="d")
    assert values(saver, config()) == {"n": 5}
    assert ids(saver.list(config())) == ["d", "c", "b", "a"]


def test_the_first_write_of_an_index_stays_but_for_errors_and_interrupts(saver: BlackboardSaver) -> None:
    stored = put(saver, {})
    saver.put_writes(stored, [("a", 1), (ERROR, "e1")], "task")
    saver.put_writes(stored, [("a", 2), (ERROR, "e2"), ("b", 3), (INTERRUPT, "i")], "task")
    assert found(saver, stored).pending_writes == [
        ("task", INTERRUPT, "i"),
        ("task", ERROR, "e2"),
        ("task", "a", 1),
        ("task", "b", 3),
    ]


def test_writes_come_in_the_order_of_a_run(saver: BlackboardSaver) -> None:
    stored = put(saver, {})
    saver.put_writes(stored, [("c", number) for number in range(12)], "z", "~a")
    saver.put_writes(stored, [("c", "m")], "m", "~b")
    saver.put_writes(stored, [("c", "n")], "n")
    waiting = found(saver, stored).pending_writes or []
    assert [value for _, _, value in waiting] == ["n", *range(12), "m"]


def test_a_list_has_filters_a_bound_and_a_cursor(saver: BlackboardSaver) -> None:
    made = chain(saver, 5)
    put(saver, {}, config(checkpoint_ns="child"), step=2)
    newest = [id_of(one) for one in reversed(made)]
    assert ids(saver.list(config())) == newest
    assert len(list(saver.list(config(checkpoint_ns=None)))) == 6
    assert ids(saver.list(config(), limit=2)) == newest[:2]
    assert ids(saver.list(config(), limit=0)) == []
    assert ids(saver.list(config(), before=made[2])) == newest[3:]
    assert ids(saver.list(config(), before=made[4], limit=1)) == newest[1:2]
    assert ids(saver.list(config(), filter={"step": 3, "source": "loop"})) == newest[1:2]
    assert ids(saver.list(made[1])) == newest[3:4]
    assert len(list(saver.list(config(checkpoint_ns=None), filter={"step": 2}))) == 2
    read = next(iter(saver.list(config())))
    assert (read.checkpoint["channel_values"], read.parent_config) == ({"n": 4}, made[3])


def test_all_threads_are_listed_without_one(saver: BlackboardSaver, client: Client) -> None:
    for thread_id in ("a", "b", "x" * 300):
        put(saver, {}, config(thread_id))
    client.session(saver.session_name("other")).state.set("n", 1)
    listed = [one.config["configurable"]["thread_id"] for one in saver.list(None)]
    assert sorted(listed) == ["a", "b", "x" * 300]
    assert len(list(saver.list(None, limit=2))) == 2


def test_a_thread_is_deleted_whole(saver: BlackboardSaver, client: Client) -> None:
    stored = put(saver, {"n": 1})
    saver.put_writes(stored, [("n", 2)], "task")
    saver.delete_thread("t")
    saver.delete_thread("t")
    assert saver.get_tuple(stored) is None
    assert not client.session(saver.session_name("t")).exists()
    again = put(saver, {"n": 3})
    assert values(saver, config()) == {"n": 3}
    assert ids(saver.list(config())) == [id_of(again)]


def test_a_copy_is_a_fork_and_lives_on_its_own(saver: BlackboardSaver) -> None:
    made = chain(saver, 3)
    saver.put_writes(made[2], [("n", "x" * 5000)], "task")
    saver.copy_thread("t", "copy")
    assert ids(saver.list(config("copy"))) == ids(saver.list(config()))
    assert found(saver, config("copy")).pending_writes == [("task", "n", "x" * 5000)]
    saver.delete_thread("t")
    put(saver, {"n": 3}, config("copy", id_of(made[2])))
    assert [one.checkpoint["channel_values"]["n"] for one in saver.list(config("copy"))] == [3, 2, 1, 0]
    put(saver, {"n": 0})
    with pytest.raises(SessionExists):
        saver.copy_thread("t", "copy")
    with pytest.raises(SessionNotFound):
        saver.copy_thread("none", "copy2")


def test_runs_are_deleted_in_all_threads(saver: BlackboardSaver) -> None:
    first = put(saver, {"n": 0}, run_id="r1")
    second = put(saver, {"n": 1}, first, run_id="r2")
    saver.put_writes(second, [("n", 2)], "task")
    only = put(saver, {}, config("other"), run_id="r2")
    untouched = put(saver, {}, config("third"), run_id="r3")
    saver.delete_for_runs(["r2", "none"])
    assert ids(saver.list(config())) == [id_of(first)]
    assert values(saver, config()) == {"n": 0}, "the latest is the one before"
    assert saver.get_tuple(only) is None
    assert saver.get_tuple(untouched) is not None
    saver.delete_for_runs([])
    saver.delete_for_runs(["r2"])
    third = put(saver, {"n": 3}, first, run_id="r2")
    assert ids(saver.list(config())) == [id_of(third), id_of(first)]


def test_a_pruned_thread_has_the_latest_of_each_namespace(saver: BlackboardSaver, client: Client) -> None:
    made = chain(saver, 4)
    saver.put_writes(made[3], [("n", 9)], "task")
    saver.put_writes(config(checkpoint_id="0"), [("n", 9)], "task")
    saver.put_writes(config(checkpoint_id="z"), [("n", 9)], "task")
    child = put(saver, {}, config(checkpoint_ns="child"), run_id="r")
    saver.prune(["t", "none"])
    assert ids(saver.list(config())) == [id_of(made[3])]
    assert ids(saver.list(config(checkpoint_ns="child"))) == [id_of(child)]
    assert found(saver, config()).pending_writes == [("task", "n", 9)]
    state = client.session(saver.session_name("t")).state
    assert set(state.get("checkpoints/:")) == {id_of(made[3]), "z"}, "writes that wait for their checkpoint stay"
    assert state.get("runs") == {"r": True}
    revision = client.session(saver.session_name("t")).describe()["revision"]
    saver.prune(["t"])
    assert client.session(saver.session_name("t")).describe()["revision"] == revision
    assert values(saver, put(saver, {"n": 4}, made[3])) == {"n": 4}
    saver.prune(["t"], strategy="delete")
    assert list(saver.list(config(checkpoint_ns=None))) == []
    with pytest.raises(ValueError, match="keep_latest and delete"):
        saver.prune(["t"], strategy="all")


def test_writers_of_one_thread_lose_nothing(url: str, prefix: str) -> None:
    savers = [BlackboardSaver(url=url, prefix=prefix) for _ in range(4)]

    def write(saver: BlackboardSaver) -> None:
        for stored in chain(saver, 10):
            saver.put_writes(stored, [("n", 1)], "task")

    writers = [threading.Thread(target=write, args=(saver,)) for saver in savers]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    listed = list(savers[0].list(config()))
    assert len(listed) == 40
    assert all(one.pending_writes == [("task", "n", 1)] for one in listed)
    assert id_of(found(savers[1], config()).config) == max(ids(listed))
    for saver in savers:
        saver.close()


def test_an_encrypting_serializer_sees_every_value(saver: BlackboardSaver, url: str, prefix: str) -> None:
    class Cipher:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "flip", bytes(byte ^ 255 for byte in plaintext)

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return bytes(byte ^ 255 for byte in ciphertext)

    with BlackboardSaver(url=url, prefix=prefix, serde=EncryptedSerializer(Cipher())) as secret:
        stored = put(secret, {"a": "short", "b": "long" * 999})
        secret.put_writes(stored, [("a", "w")], "task")
        assert values(secret, stored) == {"a": "short", "b": "long" * 999}
        assert found(secret, stored).pending_writes == [("task", "a", "w")]
    with pytest.raises(NotImplementedError):
        saver.get_tuple(stored)


async def test_clients_of_the_caller_are_used_and_stay_open(url: str, prefix: str) -> None:
    with Client(url) as client:
        async with AsyncClient(url) as async_client:
            async with BlackboardSaver(client, async_client=async_client, prefix=prefix) as saver:
                stored = await saver.aput(config(), checkpoint({"n": 1}), metadata(), {"n": 1})
                assert values(saver, stored) == {"n": 1}
            assert (await async_client.server())["name"] == client.server()["name"] == "blackboard"


def test_a_config_without_a_thread_is_refused(saver: BlackboardSaver) -> None:
    with pytest.raises(UnsupportedValue, match="thread_id"):
        saver.get_tuple({"configurable": {}})
    with pytest.raises(UnsupportedValue, match="checkpoint_id"):
        saver.put_writes(config(), [("a", 1)], "task")
    for prefix in ("", "a/b", "x" * 200):
        with pytest.raises(UnsupportedValue, match="prefix"):
            BlackboardSaver(prefix=prefix)


def test_a_session_of_another_layout_is_left_alone(saver: BlackboardSaver, client: Client) -> None:
    state = client.session(saver.session_name("t")).state
    state.set("layout", 2)
    with pytest.raises(IncompatibleLayout):
        put(saver, {"n": 1})
    assert state.get() == {"layout": 2}


def test_sessions_have_a_short_history_bounded_logs_and_a_label(saver: BlackboardSaver, client: Client) -> None:
    put(saver, {"n": 1})
    described = client.session(saver.session_name("t")).describe()
    bounds = {"questions": 1000, "trajectories": 1000}
    assert described["settings"] == {"history": "1s", "max_items": bounds}
    assert described["labels"] == {"adapter": "langgraph"}
