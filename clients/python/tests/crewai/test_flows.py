"""Flows of CrewAI whose states are on a board, beside the same flows over SQLiteFlowPersistence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crewai.flow.flow import Flow, listen, start
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from crewai.flow.persistence.base import FlowPersistence
from crewai.flow.persistence.factory import set_flow_persistence_factory
from pydantic import BaseModel

from agent_blackboard import Session
from agent_blackboard.crewai import BlackboardFlowPersistence

from .review import CHAPTERS, Review, writing

FLOWS = Path(__file__).with_name("review.py")


class Counter(BaseModel):
    id: str = ""
    value: int = 0


def counting(persistence: FlowPersistence, flow: str) -> Any:
    """The flow of CrewAI's guide, run, continued by its id, and forked."""

    @persist(persistence)
    class Counting(Flow[Counter]):
        @start()
        def increment(self) -> int:
            self.state.value += 1
            return self.state.value

        @listen(increment)
        def double(self, value: int) -> int:
            self.state.value = value * 2
            return self.state.value

    def run(**given: Any) -> Any:
        counted = Counting(suppress_flow_events=True)
        return counted.kickoff(**given), counted.state.id == flow, counted.state.value

    seen = [run(inputs={"id": flow}), run(inputs={"id": flow}), run(inputs={"id": flow, "value": 10})]
    seen += [run(restore_from_state_id=flow), run(restore_from_state_id="no flow"), run()]
    return seen, persistence.load_state(flow)


def one_method(persistence: FlowPersistence, flow: str) -> Any:
    """A flow of which one method is stored."""

    class Partly(Flow[dict[str, Any]]):
        @persist(persistence)
        @start()
        def begin(self) -> None:
            self.state["runs"] = self.state.get("runs", 0) + 1

        @listen(begin)
        def end(self) -> None:
            self.state["ended"] = True

    seen = []
    for _ in range(2):
        run = Partly(persistence=persistence, suppress_flow_events=True)
        run.kickoff(inputs={"id": flow})
        seen.append((dict(run.state), persistence.load_state(flow)))
    return seen


def reviewed(persistence: FlowPersistence, flow: str) -> Any:
    """A flow that pauses for feedback, and goes on with it as another object."""
    paused = Review(persistence=persistence, suppress_flow_events=True).kickoff(inputs={"id": flow})
    seen = [type(paused).__name__, persistence.load_state(flow)]
    resumed = Review.from_pending(flow, persistence, suppress_flow_events=True)
    asked = resumed.pending_feedback
    assert asked is not None
    seen += [asked.method_name, asked.method_output, asked.message, asked.metadata]
    seen += [resumed.resume("Yes"), dict(resumed.state), persistence.load_pending_feedback(flow)]
    with pytest.raises(ValueError, match="No pending feedback"):
        Review.from_pending(flow, persistence)
    return seen


@pytest.mark.parametrize("script", [counting, one_method, reviewed])
def test_a_flow_over_a_board_runs_as_over_sqlite(
    script: Callable[[FlowPersistence, str], Any],
    persistence: BlackboardFlowPersistence,
    sqlite: SQLiteFlowPersistence,
    session_name: str,
) -> None:
    assert script(persistence, session_name) == script(sqlite, session_name)


def test_a_killed_flow_goes_on_in_another_process(
    url: str, persistence: BlackboardFlowPersistence, board: Session, session_name: str
) -> None:
    killed = subprocess.run(
        [sys.executable, FLOWS, url, session_name, "2"], capture_output=True, text=True, timeout=300, check=False
    )
    assert killed.returncode == -9, killed.stderr
    before = persistence.load_state(session_name)
    assert before is not None
    assert len(before["chapters"]) == 2
    flow = writing(persistence)
    flow.kickoff(inputs={"id": session_name})
    assert flow.state.chapters[:2] == before["chapters"]
    assert [chapter.split(",")[0] for chapter in flow.state.chapters] == [f"chapter {n}" for n in range(CHAPTERS)]
    assert persistence.load_state(session_name) == flow.state.model_dump()
    steps = list(board.trajectories.items())
    assert [step["method"] for step in steps] == ["first", "second", "first", "second", "third", "fourth"]
    assert [step["changed"].keys() & {"chapters"} for step in steps] == [
        {"chapters"},
        {"chapters"},
        set(),
        set(),
        {"chapters"},
        {"chapters"},
    ]


def test_a_killed_server_loses_and_doubles_no_step(server: Any, session_name: str) -> None:
    with BlackboardFlowPersistence(url=server.url) as persistence:
        for number in range(30):
            if number % 10 == 5:
                server.kill()
                server.start()
            persistence.save_state(session_name, f"m{number}", {"id": session_name, "number": number})
        steps = list(persistence._session(session_name).trajectories.items())
    assert [step["method"] for step in steps] == [f"m{number}" for number in range(30)]


def test_a_board_is_the_default_where_an_application_says_so(
    persistence: BlackboardFlowPersistence, session_name: str
) -> None:
    set_flow_persistence_factory(lambda: persistence)
    try:

        @persist()
        class Single(Flow[dict[str, Any]]):
            @start()
            def only(self) -> None:
                self.state["done"] = True

        Single(suppress_flow_events=True).kickoff(inputs={"id": session_name})
    finally:
        set_flow_persistence_factory(None)
    assert persistence.load_state(session_name) == {"id": session_name, "done": True}


def test_a_state_that_cannot_be_stored_fails_its_flow(
    persistence: BlackboardFlowPersistence, session_name: str
) -> None:
    @persist(persistence)
    class Broken(Flow[dict[str, Any]]):
        @start()
        def only(self) -> None:
            self.state["value"] = float("nan")

    with pytest.raises(RuntimeError, match="persistence failed: the value is not JSON"):
        Broken(suppress_flow_events=True).kickoff(inputs={"id": session_name})
