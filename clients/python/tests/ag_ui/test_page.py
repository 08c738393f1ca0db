"""Snippets of the guide to AG-UI threads, run unchanged."""

from __future__ import annotations

import pytest

from ..snippets import run_page
from .test_snapshots import Parrot


class Guide(Parrot):
    """A model that knows one answer."""

    ANSWER = "San Francisco"


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)
    run_page("ag-ui.md", model=Guide())
    hydrated, members, question, answer = capsys.readouterr().out.splitlines()
    assert hydrated == "True"
    assert {"'scope'", "'id'", "'messages'"} <= set(members.strip("[]").split(", "))
    assert question == "user In which city is the Golden Gate Bridge?"
    assert answer == "assistant San Francisco"
