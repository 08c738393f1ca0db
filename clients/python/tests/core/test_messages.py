"""Messages between agents, and the attention that waits for all that concerns one."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from network import CuttingProxy, Gateway, Scripted, http

from agent_blackboard import (
    Attention,
    Client,
    ConnectionFailed,
    EntryNotFound,
    Forbidden,
    UnsupportedValue,
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


@pytest.fixture
def other(url: str, session_name: str) -> Any:
    """The session by a direct connection of another agent."""
    with Client(url, agent="A") as client:
        yield client.session(session_name)


def texts(attention: Attention) -> list[str]:
    return [entry.item["text"] for entry in attention.messages.newest]


def until(holds: Any) -> None:
    while not holds():
        time.sleep(0.01)


@contextmanager
def started(function: Any, *arguments: Any, **named: Any) -> Any:
    """A call in another thread."""
    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(function, *arguments, **named)


def test_a_message_is_sent_read_and_acknowledged_once(session: Any) -> None:
    messages = session.messages("B ü")
    first = messages.send("hello", thread="t1")
    second = messages.send({"text": "again", "data": {"n": 1}}, reply_to=first.seq)
    assert (first.seq, second.seq) == (1, 2)
    assert [entry.item for entry in messages.unacked()] == [
        {"text": "hello", "thread": "t1"},
        {"text": "again", "data": {"n": 1}, "reply_to": 1},
    ]
    assert [entry.agent for entry in messages.entries()] == ["HostAgent", "HostAgent"]
    acked = messages.ack(1, agent="B ü")
    again = messages.ack(1, agent="B ü")
    assert acked.raw["acked_at"] == again.raw["acked_at"] == messages.get(1).acked_at
    assert (acked.revision, again.revision) == (3, 3)
    assert [entry.seq for entry in messages.unacked()] == [2]
    assert [entry.acked_at is None for entry in messages.entries()] == [False, True]
    with pytest.raises(EntryNotFound):
        messages.ack(9)


def test_messages_are_a_log(session: Any) -> None:
    messages = session.log("agents/B ü/messages")
    messages.send("one")
    messages.append("two")
    messages.patch(2, {"note": "kept"})
    assert messages.page(latest=1).entries[0].item == {"text": "two", "note": "kept"}
    assert messages.count() == 2
    assert list(session.agents.list()) == []
    assert session.prompt(include=["messages:B ü"]).text.count('"text"') == 2
    for name in ("agents/B", "agents/B/notes", "B/messages", "messages"):
        with pytest.raises(ValueError, match="a log must be questions"):
            session.log(name)
    with pytest.raises(UnsupportedValue):
        session.messages("")


def test_unacked_messages_come_page_by_page(session: Any) -> None:
    messages = session.messages("B")
    messages.extend(f"message {number}" for number in range(450))
    for found in messages.unacked(after=225, limit=5):
        messages.ack(found.seq)
    assert [found.seq for found in messages.unacked()] == [*range(1, 226), *range(231, 451)]


def test_a_transaction_sends_and_acknowledges(make_client: Any, url: str, session_name: str) -> None:
    session = make_client(url, agent="B").session(session_name)
    session.messages("B").extend(["do it", "and that"])
    with session.transaction() as t:
        t.ack(1).append("agents/A/messages", {"text": "done", "reply_to": 1})
        t.ack(2, "B")
    assert list(session.messages("B").unacked()) == []
    assert next(session.messages("A").unacked()).item == {"text": "done", "reply_to": 1}


def test_an_attention_has_all_that_waits(make_client: Any, url: str, session_name: str, other: Any) -> None:
    session = make_client(url, agent="B").session(session_name)
    assert session.attention("B") == Attention()
    other.messages("B").send("hello")
    other.requests.submit({"device": "linux"})
    other.requests.submit({"device": "mac"})
    asked = session.questions.post("Which one?").seq
    other.questions.answer(asked, "The third")
    held = other.requests.submit({"device": "tv"}).seq
    session.requests.claim(held)
    other.requests.cancel(held)
    judged = other.requests.submit({"device": "linux", "n": 2}, review=True).seq
    other.requests.finish(judged, other.requests.claim(judged).raw["claim"]["fence"])
    found = session.attention("B", match={"device": "linux"})
    counts = {name: (part["count"], [entry["seq"] for entry in part["newest"]]) for name, part in lists(found).items()}
    assert counts == {
        "messages": (1, [1]),
        "claimable": (1, [1]),
        "answers": (1, [asked]),
        "cancels": (1, [held]),
        "reviews": (1, [judged]),
    }
    assert texts(found) == ["hello"]
    assert found.answers.newest[0].item["answer"] == "The third"
    assert (found.cancels.newest[0].cancel or {})["agent"] == "A"
    assert (found.reviews.newest[0].in_review or {})["agent"] == "A"
    assert (found.paused, found.is_empty, found.next > 0) == (False, False, True)
    later = session.attention("B", after=found.next, match={"device": "linux"})
    assert [part["count"] for part in lists(later).values()] == [1, 0, 0, 1, 1]
    session.state.set("agents/B/paused", True)
    few = session.attention("B", include=["answers", "claimable"])
    assert (set(lists(few)), few.claimable.count, few.messages.count) == ({"answers", "claimable"}, 2, 0)
    assert few.paused


def lists(found: Attention) -> dict[str, Any]:
    """The lists of an attention as the server gave them."""
    return {name: part for name, part in found.raw.items() if isinstance(part, dict)}


def test_a_wait_for_attention_ends_by_a_message(make_client: Any, url: str, session_name: str, other: Any) -> None:
    """Also in a session that does not exist yet. What does not concern the agent ends no wait."""
    with Gateway(url) as gateway:
        session = make_client(gateway.url).session(session_name)
        with started(session.attention, "B", match={"device": "linux"}, wait=600) as waiting:
            until(lambda: any("until=exists" in line for line in gateway.seen))
            other.trajectories.append({"step": 1})
            other.requests.submit({"device": "mac"})
            other.messages("C").send("not for B")
            other.messages("B").send("hello")
            found = waiting.result()
    assert (texts(found), found.claimable.count) == (["hello"], 0)
    session = make_client(url).session(session_name)
    assert texts(session.attention("B", include=["messages"], wait=600)) == ["hello"]
    assert session.attention("B", include=iter(["reviews"]), wait=0.05).is_empty
    assert session.attention("C", after=4, include=["answers"], wait=0.05).next == 4


@pytest.mark.parametrize("cut", list(CUTS))
def test_attention_is_waited_for_over_cuts(make_client: Any, url: str, session_name: str, other: Any, cut: str) -> None:
    with Gateway(url, limit=LIMIT, cut=CUTS[cut]) as gateway:
        session = make_client(gateway.url).session(session_name)
        other.trajectories.append({"step": 1})
        with started(session.attention, "B", wait=600) as waiting:
            until(lambda: gateway.cuts >= 2)
            other.messages("B").send("one")
            assert texts(waiting.result()) == ["one"]
        follower = session.follow_attention("B")
        assert texts(next(follower)) == ["one"]
        cuts = gateway.cuts
        with started(next, follower) as coming:
            until(lambda: gateway.cuts >= cuts + 2)
            other.messages("B").send("two")
            assert texts(coming.result()) == ["one", "two"]
        follower.close()


def test_a_wait_without_a_server_is_a_timeout(make_client: Any, session_name: str) -> None:
    with Scripted(lambda _: CUTS["502"]) as server:
        session = make_client(server.url, timeout=0.2).session(session_name)
        with pytest.raises(WaitTimedOut):
            session.attention("B", wait=0.1)
        with pytest.raises(Exception, match="502"):
            session.attention("B")


def test_a_follower_is_held_while_messages_stay(make_client: Any, url: str, session_name: str, other: Any) -> None:
    """Neither what stays unacknowledged nor another's commit makes it ask again, and what goes away is no result."""
    with Gateway(url) as gateway:
        follower = make_client(gateway.url).session(session_name).follow_attention("B")
        other.messages("B").extend(["one", "two"])
        assert texts(next(follower)) == ["one", "two"]
        with started(next, follower) as coming:
            until(lambda: len(gateway.seen) >= 3)
            for number in range(30):
                other.state.set("n", number)
                other.messages("C").send("not for B")
            held = len(gateway.seen)
            other.messages("B").ack(1)
            until(lambda: len(gateway.seen) >= 4)
            other.messages("B").send("three")
            assert texts(coming.result()) == ["two", "three"]
        assert (held, len(gateway.seen)) == (3, 4)
        follower.close()


def test_a_follower_goes_on_over_pieces_that_end(
    make_client: Any, url: str, session_name: str, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece that ends without news is asked for again, whether something waits or nothing does."""
    for package in ("_async", "_sync"):
        for module in ("waits", "attention"):
            monkeypatch.setattr(f"agent_blackboard.{package}.{module}.WAIT_PIECE", 0.05)
    with Gateway(url) as gateway:
        follower = make_client(gateway.url).session(session_name).follow_attention("B")
        for sent in (["one"], ["one", "two"], ["three"]):
            if sent == ["three"]:
                other.messages("B").clear()
            with started(next, follower) as coming:
                seen = len(gateway.seen)
                until(lambda seen=seen: len(gateway.seen) >= seen + 4)
                other.messages("B").send(sent[-1])
                assert texts(coming.result()) == sent
        follower.close()


def test_a_follower_gives_answers_and_requests_once(make_client: Any, url: str, session_name: str, other: Any) -> None:
    session = make_client(url, agent="B").session(session_name)
    follower = session.follow_attention("B", match={"device": "linux"})
    other.requests.extend([{"device": "linux"}, {"device": "mac"}])
    found = next(follower)
    assert [entry.seq for entry in found.claimable.newest] == [1]
    asked = session.questions.post("Which one?").seq
    other.questions.answer(asked, "The third")
    found = next(follower)
    assert (found.claimable.count, [entry.item["answer"] for entry in found.answers.newest]) == (0, ["The third"])
    with session.requests.next({"device": "linux"}) as task:
        other.requests.cancel(task.seq)
        found = next(follower)
        assert ([entry.seq for entry in found.cancels.newest], found.answers.count) == ([1], 0)
        session.requests.claim(task.seq)
        other.messages("B").send("hello")
        found = next(follower)
        assert (texts(found), found.cancels.count) == (["hello"], 1)
    session.state.set("agents/B/paused", True)
    assert next(follower).paused
    follower.close()
    cursor = session.follow_attention("B", after=found.next, include=["answers", "reviews"])
    found = next(cursor)
    assert (found.paused, found.is_empty) == (True, True)
    judged = other.requests.submit({"n": 1}, review=True).seq
    for accept in (False, True):
        fence = other.requests.claim(judged).raw["claim"]["fence"]
        other.requests.finish(judged, fence)
        found = next(cursor)
        assert [entry.seq for entry in found.reviews.newest] == [judged]
        fence = (found.reviews.newest[0].in_review or {})["fence"]
        session.requests.verdict(judged, accept, fence=fence)
    cursor.close()


@pytest.mark.parametrize("change", ["removed", "changed"])
def test_a_follower_behind_a_proxy_that_spoils_tags_pauses(
    make_client: Any, url: str, session_name: str, other: Any, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("_async", "_sync"):
        monkeypatch.setattr(f"agent_blackboard.{package}.attention.AGAIN_SECONDS", 0.001)
    shown = {"removed": lambda _: b"", "changed": lambda line: line[:-1] + b';gzip"'}[change]

    def edit(head: bytes) -> bytes:
        lines = head.split(b"\r\n")
        tagged = [line for line in lines if line.lower().startswith((b"etag:", b"blackboard-etag:"))]
        kept = [line for line in lines if line not in tagged]
        return b"\r\n".join([*kept, *filter(None, map(shown, tagged))])

    with Gateway(url, edit=edit) as gateway:
        follower = make_client(gateway.url).session(session_name).follow_attention("B")
        other.messages("B").send("one")
        assert texts(next(follower)) == ["one"]
        with started(next, follower) as coming:
            until(lambda: len(gateway.seen) >= 6)
            other.messages("B").send("two")
            assert texts(coming.result()) == ["one", "two"]
        follower.close()


def test_each_message_is_sent_once_over_cut_connections(make_client: Any, server: Any) -> None:
    with CuttingProxy(server.url, 3000) as proxy, Client(server.url) as direct:
        messages = make_client(proxy.url, agent="A", timeout=120).session("s").messages("B")
        for number in range(60):
            sent = messages.send(f"message {number}", thread="t")
            if number % 3 == 0:
                messages.ack(sent.seq)
        assert proxy.cuts > 0
        found = list(direct.session("s").messages("B").entries())
        assert [entry.item["text"] for entry in found] == [f"message {number}" for number in range(60)]
        assert [entry.seq for entry in found if entry.acked_at is None] == [n + 1 for n in range(60) if n % 3]


def test_a_follower_goes_on_over_a_kill_of_the_server(make_client: Any, server: Any) -> None:
    session = make_client(server.url, agent="A", timeout=120).session("s")
    session.messages("B").send("one")
    follower = session.follow_attention("B")
    assert texts(next(follower)) == ["one"]
    with started(next, follower) as coming:
        for stop in (server.kill, server.stop):
            stop()
            server.start()
        session.messages("B").send("two")
        assert texts(coming.result()) == ["one", "two"]
    follower.close()


def test_a_server_that_stays_away_ends_a_follower_of_attention(
    make_client: Any, session_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("_async", "_sync"):
        for module in ("waits", "attention"):
            monkeypatch.setattr(f"agent_blackboard.{package}.{module}.WAIT_PIECE", 0.2)
    with Scripted(lambda _: CUTS["502"]) as server, pytest.raises(ConnectionFailed):
        next(make_client(server.url, timeout=0.2).session(session_name).follow_attention("B"))


def test_messages_are_their_agents_own(make_client: Any, server: Any) -> None:
    bound = ("--scopes", "read,write", "--agent")
    a, b = (
        make_client(server.url, server.token("--name", name, *bound, name, "--anyway")).session("s")
        for name in ("A", "B")
    )
    assert a.messages("B").send("from A").seq == 1
    for rejected in (
        lambda: list(a.messages("B").unacked()),
        lambda: a.messages("B").get(1),
        lambda: a.messages("B").ack(1),
        lambda: a.messages("B").patch(1, {"text": "x"}),
        lambda: a.attention("B"),
        lambda: next(a.follow_attention("B")),
    ):
        with pytest.raises(Forbidden):
            rejected()
    found = b.attention("B", wait=60)
    assert [(entry.agent, entry.item) for entry in found.messages.newest] == [("A", {"text": "from A"})]
    b.messages("B").ack(1)
    b.messages("A").send("from B", reply_to=1)
    assert (b.attention("B").is_empty, a.attention("A").messages.count) == (True, 1)
