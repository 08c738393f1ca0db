"""Events through the client: each commit once, over restarts, cut connections and gaps."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from network import CuttingProxy

from agent_blackboard import Client, ConnectionFailed, HistoryGap


def test_every_commit_is_one_event(session: Any) -> None:
    session.trajectories.append({"step": 1})
    session.state.set("tasks/t1", 1)
    session.requests.append({"a": 1}, agent="B")
    events = session.events(after=0)
    found = [next(events) for _ in range(3)]
    events.close()
    assert [event.revision for event in found] == [1, 2, 3]
    assert (found[2].agent, found[2].kind) == ("B", "appended")
    trimmed = session.events(after=0, on=["requests"])
    assert next(trimmed).revision == 3
    trimmed.close()


def test_events_wait_for_the_session_and_begin_now(session: Any, url: str, session_name: str) -> None:
    with ThreadPoolExecutor(1) as thread, Client(url) as other:
        events = session.events(after=0)
        coming = thread.submit(next, events)
        other.session(session_name).trajectories.append({"step": 1})
        assert coming.result().revision == 1
        events.close()


def test_events_go_on_over_restarts_and_cut_connections(make_client: Any, server: Any) -> None:
    writer = make_client(server.url, timeout=120).session("s")
    writer.trajectories.append({"step": 1})
    seen: list[int] = []

    def read() -> None:
        with CuttingProxy(server.url, 6000) as proxy, Client(proxy.url, timeout=120) as client:
            for event in client.session("s").events(after=0):
                seen.append(event.revision)
                if event.revision == 60:
                    return

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(2, 61):
        writer.trajectories.append({"step": step, "text": "x" * 100})
        if step == 30:
            server.kill()
            server.start()
    reader.join(120)
    assert seen == list(range(1, 61))


def test_a_gap_is_said(session: Any) -> None:
    session.trajectories.append({"step": 1})
    session.trajectories.append({"step": 2})
    session.purge()
    head = session.describe()["revision"]
    with pytest.raises(HistoryGap) as gap:
        next(session.events(after=0))
    assert (gap.value.revision, gap.value.oldest_revision) == (head, session.describe()["oldest_revision"])
    events = session.events(after=0, on_gap="resync")
    assert (next(events).kind, session.trajectories.append({"step": 3}).revision) == ("resync", head + 1)
    assert next(events).revision == head + 1
    events.close()


def test_a_server_that_stays_away_ends_the_events(make_client: Any, server: Any) -> None:
    session = make_client(server.url, timeout=5).session("s")
    session.trajectories.append({"step": 1})
    events = session.events(after=0)
    assert next(events).revision == 1
    server.kill()
    with pytest.raises(ConnectionFailed):
        next(events)


def test_notices_tell_of_all_sessions_and_of_gaps(make_client: Any, server: Any) -> None:
    client = make_client(server.url, timeout=60)
    session = client.session("s")
    notices = client.notices()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, notices)
        while not coming.done():
            session.trajectories.append({"step": 1})
        assert coming.result().session == "s"
        assert "appended" in coming.result().kinds
        server.kill()
        server.start()
        gaps = thread.submit(lambda: next(notice for notice in notices if notice.session is None))
        assert gaps.result().kinds == []
    notices.close()
