"""State through the client: values, paths, merges, conditions and updates."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

import agent_blackboard
from agent_blackboard import (
    Client,
    ConditionFailed,
    ConditionNotMet,
    InvalidName,
    NotAnObject,
    NotANumber,
    PathNotFound,
    PreconditionFailed,
    SessionNotFound,
    UnsupportedValue,
)


def test_values_are_set_read_and_deleted(session: Any) -> None:
    state = session.state
    receipt = state.set("tasks/t1", {"n": 1})
    found = state.read("tasks/t1")
    assert (found.value, found.etag, found.revision) == ({"n": 1}, receipt.etag, receipt.revision)
    assert state.get() == {"tasks": {"t1": {"n": 1}}}
    assert state.get("nothing") is None
    assert state.get("nothing", 7) == 7
    state.delete("tasks/t1")
    assert state.delete("tasks/t1", missing_ok=True) is None
    with pytest.raises(PathNotFound):
        state.delete("tasks/t1")


def test_a_path_is_subscripted(url: str, session_name: str) -> None:
    with Client(url) as client:
        state = client.session(session_name).state
        state["a/b"] = [1]
        assert state["a/b"] == [1]
        assert "a/b" in state
        assert "a/c" not in state
        del state["a/b"]
        with pytest.raises(LookupError):
            state["a/b"]


def test_keys_of_any_text_are_paths(session: Any) -> None:
    for key in ("a/b", "~", "~1", "ü 🙂", "%2F", "a b", "?x=1", "#", "...", "+"):
        path = agent_blackboard.path("keys", key)
        session.state.set(path, key)
        assert session.state.get(path) == key
    assert "a/b" in session.state.get("keys")
    for path in (".", "a/..", "a//b", "/a", "a/"):
        with pytest.raises(InvalidName):
            session.state.set(path, 1)


def test_a_value_is_merged_added_to_and_appended_to(session: Any) -> None:
    state = session.state
    state.merge("t", {"a": 1, "b": 2})
    state.merge("t", {"a": None})
    assert state.get("t") == {"b": 2}
    assert state.add("n", 2) == 2
    assert state.add("n", 0.5) == 2.5
    assert state.append("list", [1, {"x": 2}]) == [1, {"x": 2}]
    with pytest.raises(NotANumber):
        state.add("list", 1)
    with pytest.raises(NotAnObject):
        state.set("n/below", 1)


def test_a_conditional_write_shows_the_present_value(session: Any) -> None:
    receipt = session.state.set("x", {"v": 1}, if_none_match="*")
    session.state.set("x", {"v": 2}, if_match=receipt.etag)
    with pytest.raises(PreconditionFailed) as refused:
        session.state.set("x", {"v": 3}, if_match=receipt.etag)
    assert refused.value.current == {"v": 2}
    assert refused.value.etag == session.state.read("x").etag


def test_an_update_takes_the_default_where_there_is_nothing(session: Any) -> None:
    with pytest.raises(SessionNotFound):
        session.state.update("n", lambda value: value)
    default: list[int] = []
    assert session.state.update("list", lambda value: [*value, 1], default) == [1]
    assert session.state.update("list", lambda value: [*value, 2], default) == [1, 2]
    assert default == []
    with pytest.raises(PathNotFound):
        session.state.update("other", lambda value: value)


def test_8_times_25_increments_make_200(make_client: Any, url: str, session_name: str) -> None:
    client = make_client(url)
    begin = threading.Barrier(8)

    def increment(_: int) -> None:
        begin.wait()
        state = client.session(session_name).state
        for _ in range(25):
            state.update("n", lambda n: n + 1, 0, timeout=120)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(increment, range(8)))
    assert client.session(session_name).state.get("n") == 200


def test_an_update_ends_at_its_time_limit(session: Any, url: str, session_name: str) -> None:
    session.state.set("n", 0)
    with Client(url) as other:

        def change(value: int) -> int:
            other.session(session_name).state.add("n", 1)
            return value

        with pytest.raises(PreconditionFailed):
            session.state.update("n", change, timeout=0.2)


def test_a_wait_ends_when_the_value_is_there(session: Any, url: str, session_name: str) -> None:
    with ThreadPoolExecutor(1) as thread, Client(url) as other:
        assert session.state.wait("ready", "absent") is None
        waiting = thread.submit(session.state.wait, "ready", equals={"yes": True}, wait=30)
        other.session(session_name).state.set("ready", {"yes": False})
        other.session(session_name).state.set("ready", {"yes": True})
        assert waiting.result() == {"yes": True}
    assert session.state.wait("other", "absent", wait=1) is None
    with pytest.raises(TimeoutError) as late:
        session.state.wait("ready", "absent", wait="20ms")
    assert isinstance(late.value, ConditionNotMet)
    assert late.value.current == {"yes": True}


def test_a_value_with_a_ttl_goes_away(session: Any) -> None:
    session.state.set("x", 1, ttl=timedelta(milliseconds=200))
    assert session.state.wait("x", "absent", wait=30) is None


def test_durations_are_checked(session: Any) -> None:
    for wrong in (-1, float("nan"), "soon", True, None, "1.5s", float("inf")):
        with pytest.raises(UnsupportedValue):
            session.state.set("x", 1, ttl=wrong) if wrong is not None else session.state.wait("x", wait=wrong)
    assert not session.exists()


def test_a_transaction_commits_everything_at_once(session: Any) -> None:
    session.requests.append({"device": "linux"})
    session.questions.append({"question": "Go?"})
    with session.transaction() as t:
        t.require("x", absent=True).require_count("requests", 1).require_claimable(1).require_revision(2)
        t.append("trajectories", {"step": 1}).append("agents/AppAgent/memory", {"step": 1}).append("requests", "text")
        t.put("x", {"a": 1}, ttl="1h").merge("x", {"b": 2}).add("n", 3).put("gone", 1).delete("gone")
        t.claim_next({"device": "linux"}, ttl=30)
        t.answer(1, "yes").status("AppAgent", "PENDING")
    assert t.result.succeeded
    assert t.result.revision == 3
    assert session.describe()["revision"] == 3
    assert session.state.get() == {"x": {"a": 1, "b": 2}, "n": 3}
    fence = session.requests.get(1).claim["fence"]
    with session.transaction(if_match=None) as t:
        t.done(1, fence, {"ok": True}).claim(2)
    assert session.requests.get(1).raw["done"]["agent"] == "HostAgent"


def test_a_failed_condition_writes_nothing(session: Any) -> None:
    session.state.set("x", 1)
    with pytest.raises(ConditionFailed) as failed, session.transaction() as t:
        t.require("x", equals=2).put("y", 1)
    assert failed.value.revision == session.describe()["revision"]
    assert not t.result.succeeded
    result = session.transact([{"put": "y", "value": 1}], [{"path": "x", "equals": 2}], [{"put": "z", "value": 1}])
    assert not result.succeeded
    assert session.state.get() == {"x": 1, "z": 1}


def test_an_exception_in_the_block_sends_nothing(session: Any) -> None:
    with pytest.raises(RuntimeError), session.transaction() as t:
        t.put("x", 1)
        raise RuntimeError
    with session.transaction():
        pass
    with pytest.raises(ValueError, match="one of"), session.transaction() as t:
        t.require("x")
    assert not session.exists()
