"""Kills of a graph's process, which resumes, and of the server, which loses no checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import Client
from agent_blackboard.langgraph import BlackboardSaver

from ..conftest import Server
from .threads import config, found, id_of, put

JOKE = Path(__file__).with_name("joke.py")
DOOMED = Path(__file__).with_name("doomed.py")
EXAMPLE = Path(__file__).parents[4] / "examples" / "langgraph_mail.py"
JOKED = "cats: why? Because. Ha!"


@pytest.mark.parametrize(
    ("graph", "deadly", "ran", "final"),
    [
        ("chain", "improve_joke", ["generate_joke", "improve_joke", "improve_joke", "polish_joke"], JOKED),
        ("chain", "polish_joke", ["generate_joke", "improve_joke", "polish_joke", "polish_joke"], JOKED),
        (
            "parallel",
            "call_poem",
            ["aggregator", "call_joke", "call_poem", "call_poem", "call_story"],
            "a joke of cats, a story of cats, a poem of cats",
        ),
    ],
)
def test_a_killed_graph_goes_on_where_it_was(
    url: str, prefix: str, tmp_path: Path, graph: str, deadly: str, ran: list[str], final: str
) -> None:
    file = tmp_path / "ran"
    command = [sys.executable, str(JOKE), url, prefix, str(file), graph, deadly]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() == final
    nodes = file.read_text().split()
    assert nodes == ran if graph == "chain" else sorted(nodes) == ran


@pytest.mark.parametrize(("deadly", "when"), [(4, "never"), (16, "before"), (17, "never"), (19, "before")])
def test_the_example_ends_right_after_a_kill(url: str, client: Client, deadly: int, when: str) -> None:
    thread = f"doomed-{deadly}-{when}"
    command = [sys.executable, str(DOOMED), str(EXAMPLE), thread]
    done = threading.Event()
    answering = threading.Thread(target=say_yes, args=(client, f"langgraph:{thread}", done))
    answering.start()
    environment = {**os.environ, "BLACKBOARD_URL": url}
    try:
        killed = subprocess.run([*command, str(deadly), when], capture_output=True, env=environment, timeout=120)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        again = [*command, "0", when]
        ended = subprocess.run(again, capture_output=True, text=True, env=environment, timeout=120)
    finally:
        done.set()
        answering.join(60)
    assert ended.stdout.endswith("Sent to: Ann, Ben, Cem\n"), ended.stderr
    asked = client.session(f"langgraph:{thread}").questions.latest(10)
    assert [entry.item["answer"] for entry in asked] == ["yes"] * 3


def say_yes(client: Client, name: str, done: threading.Event) -> None:
    """Answer each question of a session."""
    while not done.wait(0.05):
        for entry in client.inbox():
            if entry.session == name:
                client.session(name).questions.answer(entry.seq, "yes")


def test_a_killed_server_has_every_checkpoint_that_it_confirmed_and_no_half_one(server: Server) -> None:
    confirmed: list[list[Any]] = [[] for _ in range(4)]
    failures: list[BaseException] = []
    done = threading.Event()

    def write(number: int) -> None:
        parent, thread_id = config(f"t{number}"), f"t{number}"
        try:
            with BlackboardSaver(url=server.url) as saver:
                step = 0
                while step < 40 or not done.is_set():
                    parent = put(saver, {"n": step, "doc": f"{step}" * 2000}, parent, {"n": step + 1, "doc": step + 1})
                    saver.put_writes(parent, [("n", step), ("doc", f"w{step}" * 1000)], "task")
                    confirmed[number].append(parent)
                    step += 1
                assert id_of(found(saver, config(thread_id)).config) == id_of(parent)
        except BaseException as failure:
            failures.append(failure)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for kills in range(3):
        while min(map(len, confirmed)) < 10 * (kills + 1) and not failures:
            done.wait(0.01)
        server.kill()
        server.start()
    done.set()
    for writer in writers:
        writer.join(60)
    assert failures == []
    with BlackboardSaver(url=server.url) as saver:
        for number, made in enumerate(confirmed):
            stored = list(saver.list(config(f"t{number}")))
            assert [one.config for one in reversed(stored)] == made
            for step, one in enumerate(reversed(stored)):
                assert one.checkpoint["channel_values"] == {"n": step, "doc": f"{step}" * 2000}
                assert one.pending_writes == [("task", "n", step), ("task", "doc", f"w{step}" * 1000)]
                assert one.parent_config == (made[step - 1] if step else None)
