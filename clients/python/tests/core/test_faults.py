"""Faults under many processes: every write stored once, every request done once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from network import CuttingProxy

from agent_blackboard import Client

WRITER = Path(__file__).with_name("writer.py")
WRITERS = [f"w{number}" for number in range(8)]
EACH = 125
WRITE_SECONDS_MAX = 600
"""The limit of a process of writers or workers, which takes seconds on an idle machine."""


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, WRITER, *arguments], stdout=subprocess.PIPE, text=True)


def check_all_written(url: str) -> None:
    """Every item is there once, and each writer's in its order."""
    with Client(url) as client:
        items = list(client.session("s").trajectories.items())
    for name in WRITERS:
        assert [item["step"] for item in items if item["writer"] == name] == list(range(EACH))
    assert len(items) == 1000


def test_1000_writes_from_eight_processes_outlive_the_servers_kills(server: Any) -> None:
    writers = [start("write", server.url, "s", name, str(EACH)) for name in WRITERS]
    with Client(server.url, timeout=120) as client:
        for done in (150, 450, 750):
            while client.session("s").trajectories.count() < done:
                time.sleep(0.02)
            server.kill()
            server.start()
    assert [writer.wait(WRITE_SECONDS_MAX) for writer in writers] == [0] * 8
    check_all_written(server.url)


def test_1000_writes_from_eight_processes_outlive_cut_connections(server: Any) -> None:
    with CuttingProxy(server.url, 20_000) as proxy:
        writers = [start("write", proxy.url, "s", name, str(EACH)) for name in WRITERS]
        assert [writer.wait(WRITE_SECONDS_MAX) for writer in writers] == [0] * 8
        assert proxy.cuts > 20
    check_all_written(server.url)


def test_eight_workers_do_200_requests_once_though_two_are_killed(server: Any) -> None:
    with Client(server.url, agent="Host") as client:
        board = client.session("s")
        board.requests.extend({"n": number} for number in range(200))
        workers = [start("work", server.url, "s", name) for name in WRITERS]
        for victim in workers[:2]:
            assert victim.stdout is not None
            for _ in range(3):
                victim.stdout.readline()
            victim.kill()
        taken = [worker.communicate(timeout=WRITE_SECONDS_MAX)[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [-9, -9, 0, 0, 0, 0, 0, 0]
        assert len(taken) == 8
        done = Counter(item["did"] for item in board.trajectories.items())
        assert all(entry.done for entry in board.requests.entries())
    assert done == Counter(range(200))
