"""Snippets of the guide to UFO, run unchanged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent_blackboard import StaleFence

from ..snippets import run_page


def test_the_guides_snippets_run_as_they_stand(drop_in: None, url: str, tmp_path: Path) -> None:
    page = Path(__file__).parents[4] / "docs" / "guide" / "ufo.md"
    names = run_page(page.name, instead=("http://127.0.0.1:8733", url))
    assert names["board"].get_value("word/result") == "saved"
    assert names["ufo"].refused() == []


def test_the_agent_of_the_guide_runs_as_it_stands(drop_in: None, url: str) -> None:
    names = run_page("agents.md", instead=("http://127.0.0.1:8733", url))
    board = names["board"]
    assert board.agents.get("Travel")["status"] == "FINISH"
    assert [entry.item["step"] for entry in board.trajectories.entries()] == [1, 2]
    assert board.memory("Travel").cost()["total_cost"] == 0.01
    board.requests.submit({"agent": "Travel", "request": "Book another"})
    with ThreadPoolExecutor() as threads:
        first = threads.submit(names["work"], task := board.requests.claim_next({"agent": "Travel"}))
        question = next(board.questions.follow(after=1))
        board.requests.release(task.seq)
        second = threads.submit(names["work"], board.requests.claim_next({"agent": "Travel"}))
        board.questions.answer(question.seq, "Rome")
        assert isinstance(first.exception(), StaleFence)
        second.result()
    assert board.requests.get(task.seq).done["result"] == {"city": "Rome"}
    assert (board.questions.count(), board.memory("Travel").count()) == (2, 2)
    names["client"].close()
