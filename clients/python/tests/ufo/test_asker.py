"""Questions on the board: answered by a person elsewhere, or expired."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_blackboard import Client, ItemTooLarge, UnsupportedValue, ufo
from agent_blackboard.errors import Problem
from agent_blackboard.ufo import Blackboard, question_asker


def person(url: str, session: str, act: Callable[[Any, int], Any]) -> threading.Thread:
    """A person with a client of their own, who waits for the first question and acts on it."""

    def run() -> None:
        with Client(url) as client:
            questions = client.session(session).questions
            for entry in questions.follow():
                act(questions, entry.seq)
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_an_agent_goes_on_with_the_answer_of_a_person_elsewhere(drop_in: None, url: str) -> None:
    board = Blackboard()
    board.add_requests("r")
    answering = person(url, board.session, lambda questions, seq: questions.answer(seq, "The third"))
    answer = question_asker("Which quarter?", 1)
    answering.join()
    assert answer == "The third"
    pair = {"question": "Which quarter?", "answer": answer}
    board.add_questions(pair)
    assert board.questions.list_content == [pair]
    board.add_questions(pair)
    board.add_questions("other")
    assert board.questions.length == 3


def test_a_skipped_question_has_no_answer_though_there_is_a_default(drop_in: None, url: str) -> None:
    ufo.configure(ask_default="As you like")
    board = Blackboard()
    board.add_requests("r")
    skipping = person(url, board.session, lambda questions, seq: questions.skip(seq))
    assert question_asker("Which?") == ""
    skipping.join()


@pytest.mark.parametrize(("default", "answer"), [("As you like", "As you like"), (None, "")])
def test_after_the_time_limit_the_default_is_the_answer(default: str | None, answer: str, drop_in: None) -> None:
    ufo.configure(ask_wait=0.5, ask_default=default)
    board = Blackboard()
    assert question_asker("Which?") == answer
    (asked,) = board.questions.list_content
    assert asked == {"question": "Which?", "answer": default, "expired": True}


def test_a_question_is_asked_and_answered_through_an_outage(on_own_server: Any, session_name: str) -> None:
    on_own_server.kill()
    returning = threading.Thread(target=on_own_server.start)
    returning.start()

    def bounce(questions: Any, seq: int) -> None:
        returning.join()
        on_own_server.kill()
        on_own_server.start()
        questions.answer(seq, "yes")

    answering = person(on_own_server.url, session_name, bounce)
    assert question_asker("Go on?") == "yes"
    answering.join()


def test_a_server_that_stays_away_gives_the_default(on_own_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_blackboard.ufo.asker.AFTER", 0.1)
    ufo.configure(ask_wait=0.2, ask_default="As you like", block_max=0.1)
    on_own_server.kill()
    assert question_asker("Which?") == "As you like"
    Blackboard().add_questions({"question": "Which?", "answer": "As you like"})
    assert ufo.pending() == 1
    on_own_server.start()
    assert ufo.flush(30)
    # On a busy machine a read may take longer than the calls were to wait for a server that is away.
    ufo.configure(block_max=None)
    deadline = time.monotonic() + 30
    while "answer" not in (found := Blackboard().questions.list_content[0]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found["answer"] == "As you like"


def test_a_question_that_the_server_refuses_is_raised(drop_in: None) -> None:
    with pytest.raises(ItemTooLarge):
        question_asker("x" * (2 << 20))
    ufo.configure(ask_default="x" * (65 << 10))
    with pytest.raises(UnsupportedValue):
        question_asker("Which?")
    with pytest.raises(UnsupportedValue):
        question_asker("\ud800")


def test_a_question_that_is_deleted_is_raised(drop_in: None, url: str) -> None:
    board = Blackboard()
    board.add_requests("r")
    deleting = person(url, board.session, lambda questions, seq: questions.remove(seq))
    with pytest.raises(Problem):
        question_asker("Which?")
    deleting.join()
