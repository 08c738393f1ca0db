"""Recipes for Pydantic AI and agno, run unchanged and with a tool."""

from __future__ import annotations

from typing import Any

import pytest
from agno.agent import Agent
from pydantic_ai.models.function import FunctionModel

from agent_blackboard import Client

from ..snippets import run_page
from .scripted import Counting, counted


@pytest.fixture
def page(url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The namespace of the section after its run on boards of its own."""
    monkeypatch.setenv("BLACKBOARD_URL", url)
    monkeypatch.setenv("BLACKBOARD_TOKEN", "the server needs none")
    monkeypatch.setenv("AGNO_TELEMETRY", "false")
    with Client(url) as client:
        for session in ("trip-1", "trip-2"):
            client.session(session).delete()
    only = ("Conversations of Pydantic AI",)
    return run_page("frameworks.md", only=only, model=FunctionModel(counted), scripted=Counting())


def test_the_section_runs(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest, url: str) -> None:
    request.getfixturevalue("page")
    wanted = ["heard 1: In which city is the Golden Gate Bridge?", "heard 2: In which state is that?"]
    assert capsys.readouterr().out.splitlines() == wanted * 2
    with Client(url) as client:
        for session in ("trip-1", "trip-2"):
            board = client.session(session)
            assert board.memory("guide").count() == 4
            first, second = board.audit()
            assert second["revision"] == first["revision"] + 1


def test_a_call_of_agno_stays_with_its_result(page: dict[str, Any], url: str, session_name: str) -> None:
    def look() -> str:
        """Look out of the window."""
        return "sunny"

    page["guide"] = Agent(model=Counting(), tools=[look])
    with Client(url) as client:
        memory = client.session(session_name).memory("guide")
        assert page["ask"](memory, "Hello") == "heard 1: Hello"
        assert page["ask"](memory, "How is the weather?") == "heard 2: How is the weather?"
        assert page["ask"](memory, "And now?") == "heard 3: And now?"
        roles = [item["role"] for item in memory.items()]
        assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant"]
        assert client.session(session_name).describe()["revision"] == 3
