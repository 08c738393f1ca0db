"""Snippets of the guide and of the README, run unchanged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

import snippets

from agent_blackboard import Client


def test_the_guides_snippets_run_as_they_stand(server: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server.url  # type: ignore[attr-defined]
    monkeypatch.chdir(tmp_path)
    names = snippets.run_page("python.md", instead=("http://127.0.0.1:8733", url))
    assert isinstance(names["client"], Client)
    assert names["image"] == names["gif"]
    assert "tasks/t1" in names["changes"] or names["changes"]
    names["client"].close()


@pytest.mark.parametrize("page", ["events", "history", "prompts", "questions", "tasks", "writes"])
def test_the_snippets_of_a_noun_run_as_they_stand(page: str, server: object) -> None:
    url = server.url  # type: ignore[attr-defined]
    snippets.run_page(f"{page}.md", instead=("http://127.0.0.1:8733", url))


def test_the_snippet_of_the_readme_runs_as_it_stands(url: str, session_name: str) -> None:
    page = "../../README.md"
    names = snippets.run_page(
        page,
        instead=(
            '"http://127.0.0.1:8733", agent="AppAgent").session("demo"',
            f'"{url}", agent="AppAgent").session("{session_name}"',
        ),
    )
    assert names["session"].state["counters/printed"] == 1
    names["session"].client.close()
