"""Logs through the client: appends, pages, filters and changes of entries."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from agent_blackboard import (
    ArrayRequired,
    EntryNotFound,
    IdempotencyKeyReused,
    InvalidParameter,
    PreconditionFailed,
    StaleFence,
    UnsupportedValue,
)


def test_an_append_says_where_the_entry_is(session: Any) -> None:
    first = session.trajectories.append({"step": 1, "thought": "ü 🙂"})
    both = session.trajectories.extend([{"step": 2}, "a text"])
    assert (first.seq, first.seqs, both.seqs, both.revision) == (1, [1], [2, 3], 2)
    found = session.trajectories.get(1)
    assert (found.seq, found.revision, found.agent, found.item) == (1, 1, "HostAgent", {"step": 1, "thought": "ü 🙂"})
    assert found.etag == first.entry_etags[0]
    assert session.trajectories.latest(1)[0].item == {"text": "a text"}
    assert session.trajectories.count() == 3


def test_a_log_of_no_session_is_empty(session: Any) -> None:
    assert list(session.requests.entries()) == []
    assert session.requests.latest(3) == []
    assert session.requests.count() == 0
    assert not session.exists()


def test_entries_come_page_by_page_in_either_order(session: Any) -> None:
    session.trajectories.extend({"step": number} for number in range(450))
    assert [found.item["step"] for found in session.trajectories.entries()] == list(range(450))
    assert [found.seq for found in session.trajectories.entries(order="desc")] == list(range(450, 0, -1))
    assert [found.seq for found in session.trajectories.entries(after=440, limit=5)] == [441, 442, 443, 444, 445]
    assert [found.seq for found in session.trajectories.entries(order="desc", limit=2)] == [450, 449]


def test_filters_select_and_trim_the_items(session: Any) -> None:
    log = session.trajectories
    log.append({"step": 1, "status": "FAIL", "a,b": 1})
    log.append({"step": 2, "note": "Straße"}, agent="AppAgent")
    assert list(log.items(status="FAIL", keys=["a,b"])) == [{"a,b": 1}]
    assert list(log.items(keys=[])) == [{}, {}]
    assert list(log.items(steps=[2.0])) == [{"step": 2, "note": "Straße"}]
    assert list(log.items(of_agent="AppAgent")) == [{"step": 2, "note": "Straße"}]
    assert list(log.items(contains="STRASSE")) == [{"step": 2, "note": "Straße"}]
    assert list(log.items(at=1)) == [{"step": 1, "status": "FAIL", "a,b": 1}]
    assert log.page(latest=1, min_revision=2).entries[0].seq == 2


def test_an_entry_is_replaced_patched_updated_and_removed(session: Any) -> None:
    log = session.trajectories
    log.append({"step": 1, "a": 1})
    log.put(1, {"step": 1, "b": 2})
    log.patch(1, {"b": None, "c": [3]})
    log.json_patch(1, [{"op": "add", "path": "/c/-", "value": 4}])
    assert log.get(1).item == {"step": 1, "c": [3, 4]}
    assert log.update(1, lambda item: {**item, "n": len(item["c"])}).item == {"step": 1, "c": [3, 4], "n": 2}
    log.remove(1)
    with pytest.raises(EntryNotFound):
        log.get(1)


def test_an_update_of_an_entry_repeats_until_nobody_was_in_between(session: Any) -> None:
    log = session.trajectories
    log.append({"n": 0})
    seen = itertools.count()

    def change(item: dict[str, Any]) -> dict[str, Any]:
        if next(seen) < 2:
            log_of_another.patch(1, {"m": item["n"]})
        return {**item, "n": item["n"] + 1}

    log_of_another = session.client.session(session.name).trajectories
    if type(log).__name__ == "Blocking":
        pytest.skip("a nested call would wait for the loop that it runs on")
    assert log.update(1, change).item == {"n": 1, "m": 0}


def test_a_log_is_replaced_kept_short_and_cleared(session: Any) -> None:
    log = session.memory("App Agent %2F ü")
    assert log.replace_all([{"step": number, "cost": 0.5} for number in range(6)]).seqs == [1, 2, 3, 4, 5, 6]
    assert log.cost() == {"total_cost": 3.0, "steps": 6}
    assert log.delete_steps([0, 3]) == 2
    assert log.delete_steps([]) == 0
    assert log.keep(3) == 1
    assert [found.item["step"] for found in log.entries()] == [2, 4, 5]
    assert log.clear() == 3
    assert session.log("agents/App Agent %2F ü/memory").count() == 0


def test_a_log_is_found_by_its_name(session: Any) -> None:
    session.log("requests").append("open it")
    assert session.requests.count() == 1
    with pytest.raises(ValueError, match="a log must be questions"):
        session.log("steps")


def test_a_trajectory_has_a_key(session: Any) -> None:
    session.trajectories.append_value("k", {"a": 1})
    session.trajectories.append_value("k", 7)
    session.trajectories.append_value("k", {"key": "own"})
    assert list(session.trajectories.items()) == [{"key": "k", "a": 1}, {"key": "k", "value": 7}, {"key": "own"}]
    assert list(session.trajectories.items(trajectory_key="own")) == [{"key": "own"}]


def test_a_repeat_under_one_key_writes_once(session: Any) -> None:
    first = session.trajectories.append({"step": 1}, idempotency_key="k-1")
    again = session.trajectories.append({"step": 1}, idempotency_key="k-1")
    assert (first.replayed, again.replayed, again.seq) == (False, True, first.seq)
    with pytest.raises(IdempotencyKeyReused):
        session.trajectories.append({"step": 2}, idempotency_key="k-1")
    assert session.trajectories.count() == 1


def test_a_write_under_a_tag_or_a_claim_that_is_gone_is_refused(session: Any) -> None:
    receipt = session.requests.append({"do": "it"})
    session.requests.append({"do": "more"}, if_match=receipt.etag)
    with pytest.raises(PreconditionFailed) as refused:
        session.requests.append({"do": "most"}, if_match=receipt.etag)
    assert refused.value.status == 412
    assert refused.value.etag not in (None, receipt.etag)
    with pytest.raises(StaleFence):
        session.trajectories.append({"step": 1}, claim=1, fence=77)


def test_new_entries_are_followed(session: Any) -> None:
    session.trajectories.extend([{"step": 1}, {"step": 2}])
    followed = session.trajectories.follow()
    assert [next(followed).seq, next(followed).seq] == [1, 2]
    session.trajectories.append({"step": 3})
    assert next(followed).item == {"step": 3}
    followed.close()


def test_a_value_that_is_no_json_is_refused_before_it_is_sent(session: Any) -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in (float("nan"), "\ud800", {1, 2}, circle, b"bytes", object()):
        with pytest.raises(UnsupportedValue, match="not JSON"):
            session.trajectories.append({"value": value})
    assert not session.exists()


def test_the_servers_refusals_name_the_part(session: Any) -> None:
    with pytest.raises(InvalidParameter, match="limit"):
        session.trajectories.page(limit=100_000)
    with pytest.raises(ArrayRequired) as refused:
        session.request("PUT", "trajectories", json={"a": 1})
    assert refused.value.code == "array-required"
    assert refused.value.instance.startswith("urn:uuid:")
    assert "array-required" in str(refused.value)


def test_a_write_without_a_key_leaves_none_behind(session: Any) -> None:
    session.request("PUT", "state/x", json=1, keyed=False)
    session.request("PUT", "state/x", json=1, keyed=False)
    assert session.describe()["revision"] == 1
    session.request("PUT", "state/x", json=1)
    assert session.describe()["revision"] == 2
