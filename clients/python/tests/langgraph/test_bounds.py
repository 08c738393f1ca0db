"""Checkpoints beyond a limit: a clear exception, and nothing written partly."""

from __future__ import annotations

from typing import Any

import pytest

from agent_blackboard import Client, SessionFull, UnexpectedAnswer
from agent_blackboard.langgraph import BlackboardSaver, ValueTooLarge

from ..conftest import Server
from .threads import chain, config, found, id_of, ids, put, values

MIB = 1 << 20


def test_a_value_beyond_a_blob_is_refused_before_anything_is_sent(saver: BlackboardSaver, client: Client) -> None:
    with pytest.raises(ValueTooLarge, match=r"channel 'big'.*32 MiB"):
        put(saver, {"short": "x" * 5000, "big": "x" * (33 * MIB)})
    assert not client.session(saver.session_name("t")).exists()
    stored = put(saver, {"n": 1})
    revision = client.session(saver.session_name("t")).describe()["revision"]
    with pytest.raises(ValueTooLarge, match="write to channel 'big'"):
        saver.put_writes(stored, [("a", "x" * 5000), ("big", b"x" * (33 * MIB))], "task")
    assert client.session(saver.session_name("t")).describe()["revision"] == revision
    assert found(saver, config()).pending_writes == []


def test_a_value_of_32_mib_fits(saver: BlackboardSaver) -> None:
    full = b"x" * (32 * MIB)
    assert values(saver, put(saver, {"full": full})) == {"full": full}


@pytest.mark.parametrize("size", [7 * MIB, 9 * MIB])
def test_metadata_beyond_a_body_is_refused_whole(saver: BlackboardSaver, client: Client, size: int) -> None:
    first = put(saver, {"n": 0})
    revision = client.session(saver.session_name("t")).describe()["revision"]
    with pytest.raises(ValueTooLarge):
        put(saver, {"n": 1, "long": "x" * 5000}, first, note="x" * size)
    with pytest.raises(ValueTooLarge):
        saver.put_writes(first, [("n" * 1000, number) for number in range(size // 1000)], "task")
    assert client.session(saver.session_name("t")).describe()["revision"] == revision
    assert ids(saver.list(config())) == [id_of(first)]


def test_many_writes_of_one_task_are_one_commit(saver: BlackboardSaver, client: Client) -> None:
    stored = put(saver, {"n": 0})
    revision = client.session(saver.session_name("t")).describe()["revision"]
    saver.put_writes(stored, [("n", number) for number in range(5000)], "task")
    assert client.session(saver.session_name("t")).describe()["revision"] == revision + 1
    assert [value for _, _, value in found(saver, stored).pending_writes or []] == list(range(5000))


def test_a_full_thread_refuses_the_next_checkpoint_and_has_room_after_pruning(saver: BlackboardSaver) -> None:
    stored: list[Any] = []
    with pytest.raises(SessionFull):
        for number in range(4):
            parent = stored[-1] if stored else config()
            stored.append(put(saver, {"n": number}, parent, note="x" * (6 * MIB)))
    assert len(stored) == 2
    assert ids(saver.list(config())) == [id_of(stored[1]), id_of(stored[0])]
    assert values(saver, config()) == {"n": 1}
    saver.prune(["t"])
    put(saver, {"n": 2}, stored[1], note="x" * (6 * MIB))
    assert values(saver, config()) == {"n": 2}


def test_a_value_that_cannot_be_serialized_is_refused_before_anything_is_sent(
    saver: BlackboardSaver, client: Client
) -> None:
    with pytest.raises(TypeError):
        put(saver, {"long": "x" * 5000, "odd": object()})
    assert not client.session(saver.session_name("t")).exists()


def test_a_server_that_makes_no_sessions_by_writing_is_written_all_the_same(tmp_path: Any) -> None:
    server = Server(tmp_path, "--auto-create", "false")
    try:
        with BlackboardSaver(url=server.url) as saver:
            made = chain(saver, 3, put(saver, {"long": "x" * 5000}))
            saver.put_writes(config("new", "1"), [("long", "x" * 5000)], "task")
            saver.put_writes(config("newer", "1"), [("n", 1)], "task")
            assert len(ids(saver.list(config()))) == 4
            saver.prune(["none", "t"])
            assert ids(saver.list(config())) == [id_of(made[-1])]
    finally:
        server.stop()


def test_a_server_that_is_none_is_told(server: Server) -> None:
    class Other(Client):
        def request(self, method: str, path: str, **options: Any) -> Any:
            raise UnexpectedAnswer("a page of HTML", 200)

    saver = BlackboardSaver(Other(server.url))
    with pytest.raises(UnexpectedAnswer):
        put(saver, {"n": 1})
