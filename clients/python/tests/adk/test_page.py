"""Snippets of the guide to ADK, run unchanged."""

from __future__ import annotations

import pytest
from google.genai import types

from ..snippets import run_page
from .scripted import ScriptedModel


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)
    run_page("adk.md", model=ScriptedModel(script=[types.Part(text="International orange.")]))
    assert capsys.readouterr().out.splitlines() == [
        "guide International orange.",
        "International orange.",
        "['user', 'guide']",
        "Which colour has the bridge?",
    ]
