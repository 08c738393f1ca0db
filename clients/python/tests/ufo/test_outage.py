"""Outages: servers that are down, hang or cut connections, and processes that end with a full outbox."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import Client, ConnectionFailed, ufo
from agent_blackboard.ufo import Blackboard, Memory, MemoryItem

from ..network import CuttingProxy, Listener

CALL_SECONDS_MAX = 20.0
"""`block_max`, and what a slow machine adds. A call without a bound would last until the server is back."""


class Hanging(Listener):
    """A server that takes connections and never answers."""

    def serve(self, connection: socket.socket) -> None:
        while connection.recv(4096):
            pass


class Timed:
    """The longest of some calls, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0

    def __call__(self, call: Callable[..., Any], *arguments: Any) -> Any:
        start = time.monotonic()
        try:
            return call(*arguments)
        finally:
            self.longest = max(self.longest, time.monotonic() - start)


def stored(url: str, session: str, log: str) -> list[dict[str, Any]]:
    """The items of a log on the server."""
    with Client(url) as client:
        return list(client.session(session).log(log).items())


async def test_a_server_away_in_the_middle_loses_nothing_and_stops_no_loop(on_own_server: Any) -> None:
    board, timed, gaps = Blackboard(), Timed(), [0.0]
    board.add_requests("known")

    async def beat() -> None:
        while True:
            start = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - start)

    beating = asyncio.create_task(beat())
    returning: asyncio.Task[None] | None = None
    for step in range(60):
        if step == 10:
            on_own_server.kill()
        if step == 40:
            returning = asyncio.create_task(asyncio.to_thread(on_own_server.start))
        assert not timed(board.is_empty)
        prompt = timed(board.blackboard_to_prompt)
        assert json.loads(prompt[3]["text"].partition("\n ")[2]) == [{"step": n} for n in range(step)]
        timed(board.add_trajectories, {"step": step})
        await asyncio.sleep(0.02)
    assert returning is not None
    await returning
    beating.cancel()
    assert ufo.flush(30)
    assert stored(on_own_server.url, board.session, "trajectories") == [{"step": step} for step in range(60)]
    assert board.trajectories.length == 60
    assert max(timed.longest, *gaps) < CALL_SECONDS_MAX


def test_calls_outside_a_loop_wait_for_a_server_that_starts_again(on_own_server: Any) -> None:
    board, timed = Blackboard(), Timed()
    board.add_requests("first")
    assert board.requests.length == 1
    on_own_server.kill()
    returning = threading.Thread(target=on_own_server.start)
    returning.start()
    timed(board.add_requests, "second")
    assert timed(lambda: board.requests.length) == 2
    returning.join()
    assert ufo.flush(30)
    assert timed.longest < CALL_SECONDS_MAX
    assert stored(on_own_server.url, board.session, "requests") == [{"text": "first"}, {"text": "second"}]


def test_reads_show_every_own_write_while_the_server_is_away(away: Any, caplog: pytest.LogCaptureFixture) -> None:
    board, memory = Blackboard(), Memory()
    board.trajectories.from_list_of_dicts([{"step": 1}, {"step": 2}, {"step": 3}])
    board.add_key_value("k", 1)
    assert board.get_value("k") == 1
    held = MemoryItem()
    held.set_value("a", 1)
    board.requests.add_memory_item(held)
    assert board.trajectories.length == 3
    with away():
        board.trajectories.content[0].set_value("a/~b", "x")
        board.trajectories.delete_memory_item(2)
        board.add_trajectories({"step": 4})
        board.trajectories.content[-1].set_value("late", True)
        held.set_value("a", 2)
        memory.add_memory_item(held)
        board.questions.load([held])
        held.set_value("a", 3)
        board.add_image("nope", {"metadata": "m", "saving reason": "r"})
        board.update_value("k", 2)
        expected = {
            "questions": [{"a": 3}],
            "requests": [{"a": 3}],
            "trajectories": [{"step": 1, "a/~b": "x"}, {"step": 3}, {"step": 4, "late": True}],
            "screenshots": [{"metadata": "m", "image_path": "nope", "image_str": ""}],
        }
        assert board.blackboard_to_dict() == expected
        assert board.get_value("k") == 2
        with pytest.raises(ConnectionFailed):
            board.save_to_file("never.json")
        with pytest.raises(ConnectionFailed):
            board.get_value("unknown")
        board.screenshots.clear()
        expected["screenshots"] = []
        assert board.blackboard_to_dict() == expected
        assert caplog.text.count("is away") == 1
        assert ufo.pending() > 0
    assert board.blackboard_to_dict() == expected
    assert board.get_value("k") == 2
    assert ufo.refused() == []
    assert "is back" in caplog.text


def test_a_whole_board_is_replaced_while_the_server_is_away(away: Any) -> None:
    board = Blackboard()
    board.add_requests("old")
    assert not board.is_empty()
    with away():
        board.blackboard_from_dict({"questions": [{"a": 1}], "trajectories": [{"b": 1}, {"b": 2}]})
        board.trajectories.content[1].set_value("b", 3)
        board.questions.clear()
        board.add_requests("new")
        expected = {
            "questions": [],
            "requests": [{"text": "new"}],
            "trajectories": [{"b": 1}, {"b": 3}],
            "screenshots": [],
        }
        assert board.blackboard_to_dict() == expected
    assert board.blackboard_to_dict() == expected


def test_a_read_raises_where_nothing_is_known_or_stale_reads_are_off(on_own_server: Any) -> None:
    ufo.configure(block_max=0.2)
    board = Blackboard()
    on_own_server.kill()
    with pytest.raises(ConnectionFailed, match="no answer is known yet"):
        board.is_empty()
    on_own_server.start()
    ufo.configure(stale_reads=False)
    board = Blackboard()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            assert board.is_empty()
            break
        except ConnectionFailed:
            time.sleep(0.1)
    on_own_server.kill()
    board.add_requests("kept")
    with pytest.raises(ConnectionFailed, match="may not be used; 1 writes"):
        board.is_empty()


def test_writes_beyond_what_is_kept_for_reads_are_sent_all_the_same(away: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_blackboard.ufo.channel.SINCE_BYTES_MAX", 1000)
    board = Blackboard()
    assert board.is_empty()
    with away():
        board.add_requests("x" * 900)
        assert board.requests.length == 1
        board.add_requests("y" * 900)
        with pytest.raises(ConnectionFailed):
            board.is_empty()
    assert board.requests.length == 2


def test_a_server_that_hangs_blocks_no_call_beyond_its_limit(
    outbox: Path, drop_in: None, caplog: pytest.LogCaptureFixture
) -> None:
    with Hanging() as hanging:
        ufo.configure(url=hanging.url, outbox=outbox, block_max=1.5)
        board, timed = Blackboard(), Timed()
        timed(board.add_requests, "a")
        timed(board.add_requests, "b")
        assert timed(lambda: board.requests.length) == 2
        assert 1 < timed.longest < CALL_SECONDS_MAX
        assert "is away" in caplog.text

        async def loop() -> float:
            start = time.monotonic()
            timed(board.add_requests, "c")
            await asyncio.sleep(0)
            assert not timed(board.is_empty)
            return time.monotonic() - start

        assert asyncio.run(loop()) < CALL_SECONDS_MAX
        assert ufo.pending() == 3


def test_a_connection_that_is_cut_at_random_doubles_and_loses_nothing(url: str, outbox: Path, drop_in: None) -> None:
    with CuttingProxy(url, 6000) as proxy:
        ufo.configure(url=proxy.url, outbox=outbox)
        board = Blackboard()
        for number in range(60):
            board.add_requests({"n": number})
        assert ufo.flush(30)
        assert proxy.cuts > 5
    assert stored(url, board.session, "requests") == [{"n": number} for number in range(60)]


def test_threads_keep_each_their_order(drop_in: None, url: str) -> None:
    board = Blackboard()

    def write(thread: int) -> None:
        for number in range(20):
            board.add_trajectories({"thread": thread, "n": number})
            assert board.trajectories.length > number

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = stored(url, board.session, "trajectories")
    for thread_number in range(6):
        assert [item["n"] for item in found if item["thread"] == thread_number] == list(range(20))


WRITER = """
import asyncio, os, signal
from agent_blackboard.ufo import Blackboard, MemoryItem

board = Blackboard()
item = MemoryItem()

async def main():
    for number in range(49):
        board.add_trajectories({"n": number})
        if number % 10 == 9:
            await asyncio.sleep(0)
    board.add_trajectories(item)
    item.set_value("last", True)
    print(board.session, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("named", [True, False])
def test_a_killed_process_leaves_its_writes_to_the_next_one(
    named: bool, server: Any, outbox: Path, run_python: Any, session_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.kill()
    settings = {"url": server.url, **({"session": session_name} if named else {})}
    written = run_python(WRITER, check=False, **settings)
    assert written.returncode == -9, written.stderr
    session = written.stdout.strip()
    (left,) = outbox.glob("*.v1.db")
    server.start()
    ufo.configure(**settings, outbox=outbox)
    Blackboard().add_requests("next")
    assert "that 1 ended processes left" in caplog.text
    assert ufo.flush(30)
    assert not left.exists()
    expected: list[dict[str, Any]] = [{"n": number} for number in range(49)]
    assert stored(server.url, session, "trajectories") == [*expected, {"last": True}]
    ufo.close()
    Blackboard()
    assert len(stored(server.url, session, "trajectories")) == 50


FORKING = """
import os, signal, sys
from agent_blackboard import ufo

ufo.process.EXIT_WAIT = 0.1
ufo.configure(block_max=0.1)
board = ufo.Blackboard()
board.add_requests("parent 1")
held = ufo.MemoryItem()
held.set_value("by", "parent")
board.questions.add_memory_item(held)
child = os.fork()
if child == 0:
    held.set_value("by", "child")
    board.add_requests("child")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
board.add_requests("parent 2")
print(board.session, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_forked_process_has_an_outbox_of_its_own(
    server: Any, outbox: Path, run_python: Any, session_name: str
) -> None:
    server.kill()
    done = run_python(FORKING, check=False, url=server.url, session=session_name)
    assert done.returncode == -9, done.stderr
    assert len(list(outbox.glob("*.v1.db"))) == 2
    server.start()
    assert (
        "True"
        in run_python(
            "from agent_blackboard import ufo\nufo.Blackboard()\nprint(ufo.flush(30))",
            url=server.url,
            session=session_name,
        ).stdout
    )
    found = [item["text"] for item in stored(server.url, session_name, "requests")]
    assert sorted(found) == ["child", "parent 1", "parent 2"]
    assert found.index("parent 1") < found.index("parent 2")
