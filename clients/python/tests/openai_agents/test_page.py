"""Snippets of the guide to the OpenAI Agents SDK, run unchanged."""

from __future__ import annotations

import pytest
from agents.testing import ScriptedModel, assistant_message

from ..snippets import run_page


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)
    model = ScriptedModel([[assistant_message("San Francisco")], [assistant_message("California")]])
    run_page("openai-agents.md", model=model)
    answer, count, *entries = capsys.readouterr().out.splitlines()
    assert (answer, count) == ("California", "4")
    assert [entry.split()[-1] for entry in entries] == ["user", "assistant"]
