"""Snippets of the guide to CrewAI, run unchanged, beside a person who answers."""

from __future__ import annotations

import threading

import pytest

from agent_blackboard import Client

from ..snippets import run_page


def test_the_page_runs(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)

    def answer() -> None:
        with Client(url) as client:
            questions = client.session("crewai:invitation-7").questions
            for entry in questions.follow():
                questions.answer(entry.seq, "Yes")
                return

    person = threading.Thread(target=answer, daemon=True)
    person.start()
    run_page("crewai.md")
    person.join(60)
    assert not person.is_alive()
    out = capsys.readouterr().out.splitlines()
    wanted = ["2 sections", "outline ['id', 'sections']", "write ['text']", "False", "Tea at four: Yes"]
    assert [line for line in out if line in wanted] == wanted
