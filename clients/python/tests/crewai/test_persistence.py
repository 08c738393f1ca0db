"""The methods of CrewAI's FlowPersistence on a board, beside those of SQLiteFlowPersistence."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import Any

import pytest
from crewai.flow.async_feedback import PendingFeedbackContext
from crewai.flow.persistence import SQLiteFlowPersistence
from crewai.flow.persistence.base import FlowPersistence
from pydantic import BaseModel, ConfigDict

from agent_blackboard import (
    Client,
    ConditionFailed,
    ConnectionFailed,
    ItemTooLarge,
    Session,
    UnsupportedValue,
)
from agent_blackboard.crewai import BlackboardFlowPersistence

Script = Callable[[FlowPersistence, str], Any]


class Point(BaseModel):
    x: int
    at: datetime.datetime


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    id: str = "f"
    held: Any = None


class Thing:
    def __str__(self) -> str:
        return "a thing"


def context(flow: str, method: str = "draft", **members: Any) -> PendingFeedbackContext:
    return PendingFeedbackContext(
        flow_id=flow,
        flow_class="tests.Review",
        method_name=method,
        method_output={"body": "Tea at four"},
        message="May this be printed?",
        **members,
    )


def saves_and_loads(persistence: FlowPersistence, flow: str) -> Any:
    seen: list[Any] = [persistence.load_state(flow)]
    for state in ({"id": flow, "n": 1}, {"id": flow, "n": 2, "more": [1, {"a": None}]}, {"id": flow}, {}):
        persistence.save_state(flow, "method", state)
        seen.append(persistence.load_state(flow))
    seen.append(persistence.load_state(flow + "'s neighbour"))
    return seen


def values_of_all_types(persistence: FlowPersistence, flow: str) -> Any:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    persistence.save_state(
        flow,
        "method",
        {
            "id": flow,
            "model": Point(x=1, at=at),
            "set": {1},
            "tuple": (1, 2),
            "day": at.date(),
            "price": decimal.Decimal("1.10"),
            "path": PurePosixPath("a/b"),
            "uuid": uuid.UUID(int=7),
            "thing": Thing(),
            "bytes": b"x",
            7: "a key that is no text",
            "large": 12345678901234567890123,
            "float": 0.1,
            "text": "é\n🙂",
            "": "",
            "a/b~c": {"$blob": "no digest"},
        },
    )
    return persistence.load_state(flow)


def models(persistence: FlowPersistence, flow: str) -> Any:
    persistence.save_state(flow, "method", Holder(id=flow, held={"at": datetime.date(2026, 1, 2)}))
    first = persistence.load_state(flow)
    persistence.save_state(flow, "method", Holder(id=flow, held=Thing()))
    return first, persistence.load_state(flow)


def feedback(persistence: FlowPersistence, flow: str) -> Any:
    seen: list[Any] = [persistence.load_pending_feedback(flow)]
    persistence.clear_pending_feedback(flow)
    asked = context(flow, emit=["yes", "no"], default_outcome="no", metadata={"room": 7}, trace_context=(1, 2))
    for state in ({"id": flow, "n": 1}, Holder(id=flow, held=2)):
        persistence.save_pending_feedback(flow, asked, state)
        seen.append(persistence.load_pending_feedback(flow)[0])  # type: ignore[index]
        seen.append(persistence.load_pending_feedback(flow)[1] == asked)  # type: ignore[index]
        seen.append(persistence.load_state(flow))
    persistence.save_state(flow, "later", {"id": flow, "n": 3})
    seen += [persistence.load_state(flow), persistence.load_pending_feedback(flow)[0]]  # type: ignore[index]
    persistence.clear_pending_feedback(flow)
    seen += [persistence.load_pending_feedback(flow), persistence.load_state(flow)]
    return seen


@pytest.mark.parametrize("script", [saves_and_loads, values_of_all_types, models, feedback])
def test_a_board_does_what_sqlite_does(
    script: Script, persistence: BlackboardFlowPersistence, sqlite: SQLiteFlowPersistence, session_name: str
) -> None:
    assert script(persistence, session_name) == script(sqlite, session_name)


@pytest.mark.parametrize("flow", ["a:b", "a/b", "é%20 ?#", "..", "x" * 500])
def test_any_text_is_a_flow_s_id(persistence: BlackboardFlowPersistence, client: Client, flow: str) -> None:
    persistence.save_state(flow, "method", {"id": flow})
    assert persistence.load_state(flow) == {"id": flow}
    assert client.session(persistence.board(flow)).state.get("flow/id") == flow


def test_a_save_is_one_commit_that_shows_what_changed(
    persistence: BlackboardFlowPersistence, board: Session, session_name: str
) -> None:
    persistence.save_state(session_name, "outline", {"id": session_name, "title": "Tea", "draft": 1, "same": [1]})
    persistence.save_state(session_name, "write", {"id": session_name, "title": "Tea", "draft": True, "same": [1]})
    persistence.save_state(session_name, "check", {"id": session_name, "title": "Tea at four", "same": [1]})
    steps = list(board.trajectories.items())
    assert steps == [
        {"method": "outline", "changed": {"id": session_name, "title": "Tea", "draft": 1, "same": [1]}},
        {"method": "write", "changed": {"draft": True}},
        {"method": "check", "changed": {"title": "Tea at four"}, "removed": ["draft"]},
    ]
    assert board.describe()["revision"] == 3
    assert board.state.get("flow") == {
        "id": session_name,
        "method": "check",
        "state": {"id": session_name, "title": "Tea at four", "same": [1]},
    }
    first = next(board.trajectories.entries())
    assert board.state.get("flow/state/draft", at=first.revision) == 1


def test_a_pause_asks_on_the_board_until_it_is_cleared(
    persistence: BlackboardFlowPersistence, board: Session, session_name: str
) -> None:
    persistence.save_pending_feedback(session_name, context(session_name, emit=["yes", "no"]), {"id": session_name})
    (question,) = board.questions.entries(pending=True)
    assert question.item == {
        "question": "May this be printed?",
        "options": ["yes", "no"],
        "asked_by": "crewai",
        "method": "draft",
        "output": {"body": "Tea at four"},
    }
    board.questions.post("Somebody else's question")
    persistence.save_pending_feedback(session_name, context(session_name, "check"), {"id": session_name})
    assert [entry.seq for entry in board.questions.entries(pending=True)] == [2, 3]
    board.questions.answer(3, "yes")
    persistence.clear_pending_feedback(session_name)
    assert [entry.seq for entry in board.questions.entries(pending=True)] == [2]
    assert board.questions.get(3).item["answer"] == "yes"
    assert board.questions.get(1).item["skipped"] is True


def test_a_long_string_is_a_blob_that_is_sent_once(
    persistence: BlackboardFlowPersistence, board: Session, session_name: str
) -> None:
    picture = "A" * 3_000_000
    state = {"id": session_name, "picture": picture, "n": 0}
    persistence.save_state(session_name, "draw", state)
    before = board.describe()["revision"]
    for n in range(3):
        persistence.save_state(session_name, "count", {**state, "n": n + 1})
    assert board.describe()["revision"] == before + 3
    assert board.state.get("flow/state/picture")["string"] == len(picture)
    assert persistence.load_state(session_name) == {**state, "n": 3}
    persistence.save_pending_feedback(session_name, context(session_name, metadata={"picture": picture}), state)
    assert persistence.load_pending_feedback(session_name)[1].metadata == {"picture": picture}  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (float("nan"), UnsupportedValue),
        ("\ud800", UnsupportedValue),
        ({"$blob": "0" * 64, "string": 1}, UnsupportedValue),
        (["x" * 1000] * 1200, ItemTooLarge),
    ],
    ids=["nan", "surrogate", "reference", "large"],
)
def test_what_cannot_be_stored_leaves_the_former_state(
    persistence: BlackboardFlowPersistence, board: Session, session_name: str, value: Any, error: type[Exception]
) -> None:
    persistence.save_state(session_name, "first", {"id": session_name, "value": "former"})
    with pytest.raises(error):
        persistence.save_state(session_name, "second", {"id": session_name, "value": value})
    assert persistence.load_state(session_name) == {"id": session_name, "value": "former"}
    assert board.trajectories.count() == 1


def test_a_state_with_too_many_levels_is_an_error(persistence: BlackboardFlowPersistence, session_name: str) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    with pytest.raises(UnsupportedValue, match="levels"):
        persistence.save_state(session_name, "method", deep)
    with pytest.raises(ValueError, match="object, not a list"):
        persistence.save_state(session_name, "method", [])  # type: ignore[arg-type]


def test_concurrent_writers_lose_nothing(persistence: BlackboardFlowPersistence, session_name: str) -> None:
    def save(number: int) -> None:
        persistence.save_state(session_name, f"m{number}", {"id": session_name, "number": number})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(save, range(40)))
    session = persistence._session(session_name)
    items = list(session.trajectories.items())
    assert sorted(item["method"] for item in items) == sorted(f"m{number}" for number in range(40))
    # What the items say of the changes gives the state.
    made: dict[str, Any] = {}
    for item in items:
        made |= item["changed"]
    assert made == persistence.load_state(session_name)


def test_a_writer_that_always_loses_gives_up(
    persistence: BlackboardFlowPersistence, board: Session, session_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_blackboard.crewai.TRIES_MAX", 3)
    transact = Session.transact

    def overtaken(session: Session, *arguments: Any, **options: Any) -> Any:
        board.state.set("flow/state", {"faster": str(uuid.uuid4())})
        return transact(session, *arguments, **options)

    monkeypatch.setattr(Session, "transact", overtaken)
    with pytest.raises(ConditionFailed, match="3 times"):
        persistence.save_state(session_name, "method", {"id": session_name})


def test_what_is_no_flow_on_the_board_is_an_error(
    persistence: BlackboardFlowPersistence, board: Session, session_name: str
) -> None:
    board.state.set("flow", {"state": ["no object"]})
    with pytest.raises(ValueError, match="but a list"):
        persistence.load_state(session_name)
    for pending in ({"state": {}}, {"state": {}, "context": {}}, {"state": {}, "context": 1}):
        board.state.set("pending_feedback", pending)
        with pytest.raises(ValueError, match="cannot be restored"):
            persistence.load_pending_feedback(session_name)
    persistence.save_state(session_name, "method", {"id": session_name})
    assert persistence.load_state(session_name) == {"id": session_name}


def test_a_server_that_is_away_is_an_error() -> None:
    with Client("http://127.0.0.1:9", timeout=0.2) as client, pytest.raises(ConnectionFailed):
        BlackboardFlowPersistence(client=client).load_state("f")


def test_settings_are_those_of_a_new_board(client: Client, session_name: str) -> None:
    persistence = BlackboardFlowPersistence(client=client, prefix="flows", settings={"ttl": "30d"})
    assert persistence.board(session_name).startswith("flows:")
    persistence.save_state(session_name, "method", {"id": session_name})
    board = client.session(persistence.board(session_name))
    assert board.describe()["settings"]["ttl"] == "30d"
    other = BlackboardFlowPersistence(client=client, prefix="flows", settings={"ttl": "1d"})
    board.state.delete("flow")
    other.save_state(session_name, "method", {"id": session_name})
    assert board.describe()["settings"]["ttl"] == "30d"


def test_a_flow_s_json_has_no_secret_and_connects_again(url: str, session_name: str) -> None:
    with BlackboardFlowPersistence(url=url, token="a secret") as persistence:  # type: ignore[arg-type]
        persistence.save_state(session_name, "method", {"id": session_name})
        saved = persistence.model_dump(mode="json")
        assert "secret" not in json.dumps(saved) + repr(persistence)
    with BlackboardFlowPersistence.model_validate(saved) as again:
        assert again.load_state(session_name) == {"id": session_name}
    with Client(url) as client, pytest.raises(ValueError, match="already"):
        BlackboardFlowPersistence(client=client, url=url)
