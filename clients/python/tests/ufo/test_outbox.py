"""Outbox files: damage, full disks, those of other sessions, and their remaining writes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import BlackboardError, Client, ufo
from agent_blackboard.ufo import Blackboard
from agent_blackboard.ufo import outbox as files
from agent_blackboard.ufo.operation import append


def left_behind(outbox: Path, url: str, session: str, *texts: str, agent: str | None = None) -> Path:
    """The outbox of a process that ended with these appends to `requests` in it."""
    made = files.create(outbox, url, session, own=False)
    operations = [append("requests", "requests", text) for text in texts]
    for operation in operations:
        operation.agent = agent
    made.put(operations)
    made.close()
    return made.path


def made_at(whole: Path, first_digit: str) -> Path:
    """The path of an outbox with another first digit in its time, after the hashes of server and session."""
    server, session, time, rest = whole.name.split("-", 3)
    return whole.with_name(f"{server}-{session}-{first_digit}{time[1:]}-{rest}")


def test_a_damaged_outbox_is_put_aside(
    drop_in: None, url: str, outbox: Path, session_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = left_behind(outbox, url, session_name, *[f'{{"n":{number}}}' for number in range(200)])
    broken = made_at(whole, "0")
    data = bytearray(whole.read_bytes())
    data[len(data) // 2 :] = b"\xff" * (len(data) - len(data) // 2)
    broken.write_bytes(data)
    nothing = made_at(whole, "2")
    nothing.write_bytes(b"this is no database, and as long as a header of one" * 20)
    ufo.configure(session=session_name)
    board = Blackboard()
    assert ufo.flush(30)
    assert board.requests.list_content == [{"n": number} for number in range(200)]
    damaged = sorted(path.name for path in outbox.glob("*.damaged"))
    assert damaged == sorted(path.with_suffix(".damaged").name for path in (broken, nothing))
    assert caplog.text.count("an outbox cannot be read") == 2


def test_an_outbox_that_cannot_be_opened_is_left_alone(
    drop_in: None, url: str, outbox: Path, session_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = left_behind(outbox, url, session_name, "{}")
    folder = made_at(whole, "0")
    folder.mkdir()
    ufo.configure(session=session_name)
    assert Blackboard().requests.length == 1 or ufo.flush(30)
    assert folder.is_dir()
    assert "cannot be opened now" in caplog.text


def test_an_outbox_without_writes_is_deleted(drop_in: None, url: str, outbox: Path, session_name: str) -> None:
    outbox.mkdir()
    name = files._prefix(url, session_name)
    (outbox / f"{name}-0000000000000000001-1{files.SUFFIX}").touch()
    ufo.configure(session=session_name)
    assert Blackboard().is_empty()
    assert list(outbox.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_a_clear_error(drop_in: None, outbox: Path) -> None:
    outbox.write_text("a file")
    board = Blackboard()
    with pytest.raises(BlackboardError, match="set BLACKBOARD_OUTBOX to another directory"):
        board.add_requests("a")
    assert board.is_empty()


FULL = """
import resource
from agent_blackboard import BlackboardError, ufo

board = ufo.Blackboard()
board.add_requests("before")
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    board.add_requests("x" * 400_000)
except BlackboardError as error:
    print(error)
print(board.requests.list_content)
board.add_requests("after")
print(board.requests.list_content, ufo.pending())
"""


def test_a_full_disk_is_a_clear_error_and_nothing_is_written(url: str, run_python: Any) -> None:
    said, before, after = run_python(FULL, url=url).stdout.splitlines()
    assert said.startswith("the write is not stored: no outbox can be written in ")
    assert before == "[{'text': 'before'}]"
    assert after == "[{'text': 'before'}, {'text': 'after'}] 0"


def test_an_adopted_outbox_of_another_session_that_fails_delays_no_other(
    drop_in: None, url: str, outbox: Path, session_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = files.create(outbox, url, "other", own=True)
    stuck.put([append("requests", "requests", "{}")])
    stuck.close()
    with sqlite3.connect(stuck.path) as database:
        database.execute("UPDATE operation SET place = 'no JSON'")
    database.close()
    ufo.configure(session=session_name)
    board = Blackboard()
    board.add_requests("mine")
    assert board.requests.length == 1
    assert not ufo.flush(0.2)
    assert ufo.pending() == 1
    monkeypatch.setattr("agent_blackboard.ufo.process.EXIT_WAIT", 0.1)
    ufo.close()
    assert stuck.path.exists()


def test_a_batch_holds_a_transaction_of_one_agent_at_most(
    drop_in: None, url: str, outbox: Path, session_name: str, client: Client
) -> None:
    left_behind(outbox, url, session_name, '{"n":1}', '{"n":2}', agent="A")
    left_behind(outbox, url, session_name, *['{"n":3}'] * 1001, agent="B")
    ufo.configure(session=session_name)
    board = Blackboard()
    assert ufo.flush(30)
    assert board.requests.length == 1003
    assert client.session(session_name).describe()["revision"] == 3
    assert [client.session(session_name).requests.get(seq).agent for seq in (1, 2, 3)] == ["A", "A", "B"]


def test_the_outboxes_stand_in_the_users_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from agent_blackboard.ufo.settings import settings

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert settings().outbox_directory() == tmp_path / "agent-blackboard"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert settings().outbox_directory() == Path.home() / ".local" / "state" / "agent-blackboard"
