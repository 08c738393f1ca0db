"""Snippets of the guide to LangGraph, run unchanged."""

from __future__ import annotations

import pytest

from ..snippets import run_page


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)
    run_page("langgraph.md")
