"""Waits behind proxies that cut requests, and over answers that are lost."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from network import Gateway, Scripted, http

from agent_blackboard import (
    Client,
    ConditionImpossible,
    ConditionNotMet,
    ConnectionFailed,
    EntryNotFound,
    RevisionNotReached,
    WaitTimedOut,
)

LIMIT = 0.3
"""The time that a proxy here gives a wait, in seconds; the client asks for waits of 25 s."""
PAGE = b"<html>The server did not answer in time</html>"
CUTS = {
    "504": http("504 Gateway Time-out", "text/html", PAGE),
    "503": http("503 Service Unavailable", "text/html", PAGE),
    "502": http("502 Bad Gateway", "text/html", PAGE),
    "broken": b"",
}


@pytest.fixture(params=list(CUTS))
def gateway(request: pytest.FixtureRequest, url: str) -> Iterator[Gateway]:
    """A proxy that cuts every wait after 0.3 s."""
    with Gateway(url, limit=LIMIT, cut=CUTS[request.param]) as gateway:
        yield gateway


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait is asked in pieces of 0.2 s."""
    for package in ("_async", "_sync"):
        for module in ("waits", "logs"):
            monkeypatch.setattr(f"agent_blackboard.{package}.{module}.WAIT_PIECE", 0.2)


@contextmanager
def later(gateway: Gateway, cuts: int, act: Callable[[], object]) -> Iterator[None]:
    """Do something in another thread, once the proxy has cut so many requests more."""
    until = gateway.cuts + cuts

    def run() -> None:
        while gateway.cuts < until:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


def waits(line: str) -> list[str]:
    """The waits that a request asks for."""
    return [part.removeprefix("wait=") for part in line.split(" ")[1].split("?")[-1].split("&") if "wait=" in part]


def test_waits_go_on_over_a_proxy_that_cuts_them(
    make_client: Any, gateway: Gateway, url: str, session_name: str
) -> None:
    session = make_client(gateway.url, agent="A").session(session_name)
    with Client(url, agent="B") as direct:
        other = direct.session(session_name)
        with later(gateway, 1, lambda: other.state.set("ready", 1)):
            assert session.state.wait("ready", equals=1, wait=60) == 1
        with later(gateway, 1, lambda: other.questions.answer(1, "The third")):
            assert session.questions.ask("Which one?", wait=60) == "The third"
        submitted = session.requests.submit({"n": 1}).seq
        with later(gateway, 1, lambda: (other.requests.claim(submitted), other.requests.finish(submitted))):
            assert session.requests.wait(submitted, wait=60).done is not None
        session.agents.put("Host", {})
        with later(gateway, 1, lambda: other.agents.set_status("Host", "PENDING")):
            assert session.agents.wait_status("Host", "PENDING", wait=60)["status"] == "PENDING"
        with later(gateway, 1, lambda: other.trajectories.append({"step": 1})):
            assert next(session.trajectories.follow()).item == {"step": 1}
        tag = session.request("GET", "trajectories").etag
        with later(gateway, 1, lambda: other.trajectories.append({"step": 2})):
            changed = session.request("GET", "trajectories", headers={"If-None-Match": tag}, wait=60)
        assert changed.json()["count"] == 2


def test_a_worker_waits_behind_a_proxy_that_cuts_it(
    make_client: Any, gateway: Gateway, url: str, session_name: str
) -> None:
    session = make_client(gateway.url, agent="A").session(session_name)
    with Client(url) as direct:
        requests = direct.session(session_name).requests
        with later(gateway, 2, lambda: requests.submit({"n": 1})):
            with session.requests.next({"n": 1}, wait=60) as task:
                assert task.seq == 1
        assert [entry.done is not None for entry in requests.entries()] == [True]
    assert session.requests.claim_next(wait=2 * LIMIT) is None


def test_a_wait_that_is_cut_ends_at_its_own_time(make_client: Any, gateway: Gateway, session_name: str) -> None:
    session = make_client(gateway.url).session(session_name)
    session.state.set("n", 1)
    begun = time.monotonic()
    with pytest.raises(TimeoutError) as late:
        session.state.wait("n", equals=2, wait=5 * LIMIT)
    assert isinstance(late.value, ConditionNotMet)
    assert late.value.current == 1
    assert gateway.cuts > 0
    with pytest.raises(TimeoutError) as late:
        session.request("GET", "trajectories", params={"min_revision": 99}, wait=5 * LIMIT)
    assert isinstance(late.value, RevisionNotReached)
    assert time.monotonic() - begun > 10 * LIMIT


def test_a_wait_over_502s_alone_is_a_timeout_in_the_end(make_client: Any, url: str, session_name: str) -> None:
    with Gateway(url, own=lambda _, __: CUTS["502"]) as gateway:
        client = make_client(gateway.url, agent="A", timeout=1)
        begun = time.monotonic()
        with pytest.raises(TimeoutError) as late:
            client.session(session_name).state.wait("n", wait=1)
        assert isinstance(late.value, WaitTimedOut)
        assert isinstance(late.value, ConnectionFailed)
        assert late.value.__cause__.status == 502
        with pytest.raises(WaitTimedOut) as late:
            client.session(session_name).requests.claim_next(wait=0.1)
        assert late.value.idempotency_key
        assert time.monotonic() - begun > 1


def test_a_server_that_stays_away_ends_a_follower(make_client: Any, session_name: str, short_pieces: None) -> None:
    with Scripted(lambda _: CUTS["502"]) as server:
        with pytest.raises(ConnectionFailed):
            next(make_client(server.url, timeout=0.2).session(session_name).trajectories.follow())


def test_a_client_without_retries_asks_once(make_client: Any, url: str, session_name: str) -> None:
    with Gateway(url, own=lambda _, __: CUTS["502"]) as gateway:
        with pytest.raises(Exception, match="502"):
            make_client(gateway.url, retry=False).session(session_name).state.wait("n", wait=60)
        assert len(gateway.seen) == 1


def test_a_claim_whose_answer_was_lost_is_the_one_returned(make_client: Any, url: str, session_name: str) -> None:
    def is_claim(line: str, answer: bytes) -> bool:
        return "/claim" in line and b" 200 " in answer.split(b"\r\n")[0]

    for losses in (1, 3):
        name, left = f"{session_name}-{losses}", [losses]

        def lost(line: str, answer: bytes, left: list[int] = left) -> bool:
            left[0] -= is_claim(line, answer)
            return is_claim(line, answer) and left[0] >= 0

        with Gateway(url, limit=LIMIT, cut=CUTS["504"], lost=lost) as gateway, Client(url) as direct:
            requests = direct.session(name).requests
            requests.submit({"n": 0})
            with later(gateway, 2, lambda requests=requests: requests.extend([{"n": 1}, {"n": 1}])):
                task = make_client(gateway.url, agent="A").session(name).requests.claim_next({"n": 1}, wait=60)
            assert left[0] < 0
            claims = [entry.claim for entry in requests.entries()]
        assert task.seq == 2
        assert [claim and claim["fence"] for claim in claims] == [None, task.fence, None]


def test_a_claim_lost_at_the_waits_end_is_returned(make_client: Any, url: str, session_name: str) -> None:
    left = [1]

    def lost(line: str, answer: bytes) -> bool:
        is_claim = "/claim" in line and b" 200 " in answer.split(b"\r\n")[0]
        if is_claim and left[0]:
            left[0] = 0
            time.sleep(2 * LIMIT)
            return True
        return False

    with Gateway(url, lost=lost) as gateway, Client(url) as direct:
        direct.session(session_name).requests.extend([{"n": 1}, {"n": 2}])
        task = make_client(gateway.url, agent="A").session(session_name).requests.claim_next(wait=LIMIT)
        assert task.seq == 1
        assert direct.session(session_name).requests.get(2).claim is None


def test_a_long_wait_is_asked_in_pieces(make_client: Any, url: str, session_name: str, short_pieces: None) -> None:
    with Gateway(url) as gateway, Client(url) as direct:
        session = make_client(gateway.url, agent="A").session(session_name)
        other = direct.session(session_name)
        session.trajectories.append({"step": 1})
        tag = session.request("GET", "trajectories").etag
        begun = time.monotonic()
        with pytest.raises(ConditionNotMet):
            session.state.wait("n", wait=0.7)
        assert session.requests.claim_next(wait=0.7) is None
        page = session.request("GET", "trajectories", params={"after": 1}, wait=0.7)
        assert (page.status, page.json()["entries"]) == (200, [])
        events = session.request("GET", "events", params={"after": 1}, headers={"Accept": "application/json"}, wait=0.7)
        assert events.json()["events"] == []
        assert session.request("GET", "trajectories", headers={"If-None-Match": tag}, wait=0.7).status == 304
        assert time.monotonic() - begun > 2.8
        asked = [wait for line in gateway.seen for wait in waits(line)]
        assert len(asked) > 6
        assert all(wait == "0s" or int(wait.removesuffix("ms")) <= 200 for wait in asked)
        with ThreadPoolExecutor(1) as thread:
            claimed = thread.submit(session.requests.claim_next, wait=60)
            seen = len(gateway.seen)
            while len(gateway.seen) < seen + 3:
                time.sleep(0.01)
            other.requests.submit({"n": 1})
            assert claimed.result().seq == 1
        session.state.set("gone", 1)
        with ThreadPoolExecutor(1) as thread:
            gone = thread.submit(session.state.wait, "gone", "absent", wait=60)
            time.sleep(0.5)
            other.state.delete("gone")
            assert gone.result() is None


def test_a_piece_is_at_most_25_s(make_client: Any, url: str, session_name: str) -> None:
    with Gateway(url, limit=LIMIT) as gateway, Client(url) as direct:
        session = make_client(gateway.url).session(session_name)
        for wait in (600, float("inf"), "2h"):
            with later(gateway, 2, lambda wait=wait: direct.session(session_name).state.set("n", str(wait))):
                assert session.state.wait("n", equals=str(wait), wait=wait) == str(wait)
        assert {wait for line in gateway.seen for wait in waits(line)} == {"25s"}


def test_a_condition_that_can_come_true_no_more_ends_the_wait(make_client: Any) -> None:
    body = b'{"code":"condition-not-met","status":412,"detail":"the request failed: no disk","current":{"seq":1}}'
    answer = http("412 Precondition Failed", "application/problem+json", body, None, "blackboard-revision: 3")
    with Scripted(lambda _: answer) as server:
        with pytest.raises(ConditionImpossible, match="no disk") as refused:
            make_client(server.url).session("s").requests.wait(1, wait=600)
        assert len(server.seen) == 2
    assert not isinstance(refused.value, TimeoutError)
    assert (refused.value.code, refused.value.current) == ("condition-not-met", {"seq": 1})
    assert (refused.value.status, refused.value.revision) == (412, 3)


def test_a_wait_goes_on_over_a_stop_of_the_server(make_client: Any, server: Any) -> None:
    session = make_client(server.url).session("s")
    session.state.set("n", 1)
    with ThreadPoolExecutor(2) as thread:
        ready = thread.submit(session.state.wait, "n", equals=2, wait=120)
        claimed = thread.submit(make_client(server.url, agent="A").session("s").requests.claim_next, wait=120)
        for stop in (server.stop, server.kill):
            before = server.requests()
            with Client(server.url) as other:
                other.session("s").describe()
            while server.requests() == before:
                time.sleep(0.01)
            stop()
            server.start()
        with Client(server.url) as other:
            other.session("s").state.set("n", 2)
            other.session("s").requests.submit({"n": 1})
        assert ready.result() == 2
        assert claimed.result().seq == 1


def test_a_wait_for_what_is_deleted_ends(make_client: Any, url: str, session_name: str) -> None:
    with Gateway(url, limit=LIMIT) as gateway, Client(url) as direct:
        session = make_client(gateway.url).session(session_name)
        seq = session.questions.post("Which one?").seq
        with later(gateway, 2, lambda: direct.session(session_name).questions.remove(seq)):
            with pytest.raises(EntryNotFound):
                session.questions.wait_answered(seq, 60)


def test_a_page_of_events_is_waited_for_over_cuts(make_client: Any, url: str, session_name: str) -> None:
    with Gateway(url, limit=LIMIT, cut=CUTS["504"]) as gateway, Client(url) as direct:
        session = make_client(gateway.url).session(session_name)
        session.state.set("n", 1)
        with later(gateway, 2, lambda: direct.session(session_name).state.set("n", 2)):
            page = session.request(
                "GET", "events", params={"after": 1}, headers={"Accept": "application/json"}, wait=60
            )
        assert [event["revision"] for event in page.json()["events"]] == [2]


def test_an_idle_stream_that_is_cut_again_and_again_goes_on(make_client: Any) -> None:
    cuts = []

    def answer(_: str) -> bytes:
        cuts.append(time.monotonic())
        if cuts[-1] - cuts[0] < 4:
            time.sleep(0.5)
            return http("200 OK", "text/event-stream", b": nothing yet\n\n")
        return http("200 OK", "text/event-stream", b'id: 7\nevent: appended\ndata: {"revision":7,"changes":[]}\n\n')

    with Scripted(answer) as server:
        assert next(make_client(server.url, timeout=3).session("s").events(after=6)).revision == 7
