"""Disk space of a thread on the server, before and after pruning."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from agent_blackboard.langgraph import BlackboardSaver

from ..conftest import Server
from .threads import config, ids, put, values

MB = 1_000_000
SETTLE_SECONDS = 60
"""The longest time that the server may take for its background work."""


def taken(data: Path) -> int:
    """The bytes of all files of a data directory, the write-ahead log included, but for its caches.

    The search index has a log of its own, of up to 4 MiB. It is longer the slower the writes come, as each look of the
    indexer is a transaction.
    """
    sizes = []
    for file in data.rglob("*"):
        if file.relative_to(data).parts[0] == "cache":
            continue
        try:
            sizes.append(file.stat().st_size if file.is_file() else 0)
        except FileNotFoundError:
            continue
    return sum(sizes)


def falls_below(measure: Callable[[], int], limit: int) -> int:
    deadline = time.monotonic() + SETTLE_SECONDS
    while (size := measure()) >= limit and time.monotonic() < deadline:
        time.sleep(0.2)
    return size


def test_a_thousand_checkpoints_store_an_unchanged_channel_once_and_pruning_frees_the_rest(server: Server) -> None:
    document = "0123456789abcdef" * (MB // 16)
    with BlackboardSaver(url=server.url) as saver:
        parent = put(saver, {"document": document, "n": 0}, step=0)
        most = 0
        for step in range(1, 1000):
            changed = {"n": step + 1}
            parent = put(
                saver, {"document": document, "n": step}, parent, {"document": 1, **changed}, changed, step=step
            )
            most = max(most, taken(server.data)) if step % 50 == 0 else most
        most = max(most, taken(server.data))
        assert len(ids(saver.list(config()))) == 1000
        saver.prune(["t"])
        left = falls_below(lambda: taken(server.data), 2 * MB)
        assert values(saver, config()) == {"document": document, "n": 999}
    server.stop()
    stopped = taken(server.data)
    print(f"at most {most} bytes while 1,000 checkpoints were put, {left} after pruning, {stopped} when stopped")
    assert most < 5 * MB
    assert left < 2 * MB
    assert stopped < 2 * MB
