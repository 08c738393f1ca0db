"""Workers through the client: many requests, failures, cancellations, lost claims, stops and kills."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from network import Gateway, http

from agent_blackboard import (
    AsyncClient,
    AsyncRequests,
    AsyncTask,
    Client,
    RequestCancelled,
    RequestFailed,
    Requests,
    StaleFence,
    Task,
    UnsupportedValue,
)

LONG = 60.0
"""The limit of what takes a moment, in seconds."""
WORKER = Path(__file__).with_name("worker.py")


def eventually(holds: Callable[[], Any]) -> Any:
    """What a function returns as soon as it is true."""
    deadline = time.monotonic() + LONG
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not become true"
        time.sleep(0.01)
    return found


@pytest.fixture
def function(request: pytest.FixtureRequest) -> Callable[[Callable[[Any], Any]], Any]:
    """Makes a worker's function of the kind that the client takes; the asynchronous one blocks in a thread."""
    is_async = "[async" in request.node.name

    def made(work: Callable[[Any], Any]) -> Any:
        async def called(task: Any) -> Any:
            return await asyncio.to_thread(work, task)

        return called if is_async else work

    return made


@contextmanager
def running(worker: Any) -> Iterator[None]:
    """Runs a worker in a thread, and stops it."""
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(worker.run)
        try:
            yield
        finally:
            worker.stop()
        run.result(LONG)


def test_a_worker_goes_on_after_a_failing_task(session: Any, function: Any, caplog: pytest.LogCaptureFixture) -> None:
    session.requests.submit({"n": 0}, attempts=1)
    session.requests.extend({"n": number} for number in (1, 2))

    def divide(task: Any) -> Any:
        return 6 // task.item["n"] if task.item["n"] < 2 else None

    with caplog.at_level(logging.WARNING, "agent_blackboard"):
        session.requests.work(function(divide), wait=0)
    entries = list(session.requests.entries())
    assert entries[0].failure["reason"] == "ZeroDivisionError: integer division or modulo by zero"
    assert entries[1].done["result"] == 6
    assert "result" not in entries[2].done
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["request 1 failed"]


def test_a_failed_attempt_pauses_and_is_remembered(session: Any, function: Any) -> None:
    session.requests.submit({"n": 1}, attempts=3)
    seen: list[list[str]] = []

    def work(task: Any) -> int:
        seen.append([attempt["reason"] for attempt in task.past_attempts])
        if len(seen) < 3:
            raise OSError(f"no paper, {len(seen)}")
        return len(seen)

    begun = time.monotonic()
    with running(session.requests.worker(function(work))):
        assert session.requests.wait(1, wait=LONG).done["result"] == 3
    assert time.monotonic() - begun > 2.5, "pauses of 1 s and 2 s"
    assert seen == [[], ["OSError: no paper, 1"], ["OSError: no paper, 1", "OSError: no paper, 2"]]
    assert [attempt["outcome"] for attempt in session.requests.get(1).past_attempts] == ["failed", "failed"]


def test_a_paused_request_shows_when_it_can_be_claimed(session: Any, function: Any) -> None:
    session.requests.submit({"n": 1})

    def work(task: Any) -> None:
        task_error = ValueError(f"not {task.item}")
        raise task_error

    session.requests.work(function(work), wait=0)
    assert "not_before" in session.requests.get(1).raw
    assert session.requests.claim_next() is None


def test_a_result_that_cannot_be_sent_fails_the_request(session: Any, function: Any) -> None:
    session.requests.submit({"n": 1}, attempts=1)
    session.requests.work(function(lambda _: object()), wait=0)
    assert "UnsupportedValue" in session.requests.get(1).failure["reason"]
    session.requests.submit({"n": 2}, attempts=1)

    def work(_: Any) -> None:
        raise ValueError("\udc80" + "x" * 5000)

    session.requests.work(function(work), wait=0)
    assert session.requests.get(2).failure["reason"] == "ValueError: ?" + "x" * (2000 - len("ValueError: ?"))


def test_a_worker_stops_at_once_while_it_waits(session: Any, function: Any) -> None:
    session.requests.submit({"n": 1})
    worker = session.requests.worker(function(lambda _: None))
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(worker.run)
        session.requests.wait(1, wait=LONG)
        begun = time.monotonic()
        worker.stop()
        run.result(LONG)
        assert time.monotonic() - begun < 15, "the wait for a claim takes 25 s"
    session.requests.submit({"n": 2})
    assert session.requests.claim_next().seq == 2
    stopped = session.requests.worker(function(lambda _: None))
    stopped.stop()
    stopped.run()
    with pytest.raises(TypeError, match="tll"):
        session.requests.worker(function(lambda _: None), tll=30)


def test_a_stop_lets_the_task_at_hand_end(session: Any, function: Any) -> None:
    session.requests.extend([{"n": 1}, {"n": 2}])
    begun, go_on = threading.Event(), threading.Event()

    def work(_: Any) -> bool:
        begun.set()
        return go_on.wait(LONG)

    worker = session.requests.worker(function(work))
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(worker.run)
        begun.wait(LONG)
        worker.stop()
        assert not run.done()
        go_on.set()
        run.result(LONG)
    assert session.requests.get(1).done["result"] is True
    assert session.requests.get(2).claim is None


def test_a_cancelled_task_knows_it_and_ends_cancelled(session: Any, url: str, session_name: str) -> None:
    session.requests.extend([{"n": 1}, {"n": 2}])
    with Client(url, agent="boss") as boss:
        with session.requests.next() as task:
            assert not task.cancelled
            boss.session(session_name).requests.cancel(1, "not needed")
            eventually(lambda: task.cancelled)
            assert not task.lost
            assert task.entry.cancel["reason"] == "not needed"
            task.fail("stopped")
        found = session.requests.wait(1, "cancelled", wait=LONG)
        assert (found.cancelled["agent"], found.cancelled["reason"]) == ("boss", "not needed")
        with session.requests.next() as task:
            boss.session(session_name).requests.cancel(2)
            eventually(lambda: task.cancelled)
        assert session.requests.get(2).done is not None


def test_a_worker_ends_a_cancelled_task_and_goes_on(url: str, session_name: str) -> None:
    with Client(url, agent="A") as client, Client(url, agent="boss") as boss:
        requests = client.session(session_name).requests
        requests.extend([{"n": 1}, {"n": 2}])

        def work(task: Any) -> None:
            if task.item["n"] == 1:
                eventually(lambda: task.cancelled)
                raise RuntimeError("stopped")

        with running(requests.worker(work)):
            requests.wait(1, "claimed", wait=LONG)
            boss.session(session_name).requests.cancel(1, "not needed")
            with pytest.raises(RequestCancelled, match="request 1 was cancelled: not needed") as cancelled:
                requests.wait(1, wait=LONG)
            requests.wait(2, wait=LONG)
        assert cancelled.value.entry.past_attempts[0]["reason"] == "RuntimeError: stopped"


async def test_a_coroutine_is_cancelled_with_its_request(url: str, session_name: str) -> None:
    async with AsyncClient(url, agent="A") as client, AsyncClient(url, agent="B") as other:
        requests, others = client.session(session_name).requests, other.session(session_name).requests
        await requests.extend([{"n": 1}, {"n": 2}, {"n": 3}])
        ends: list[str] = []

        async def work(task: Any) -> None:
            if task.seq == 3:
                return
            try:
                await asyncio.Event().wait()
            finally:
                ends.append(f"{task.seq} lost" if task.lost else f"{task.seq} cancelled")

        worker = requests.worker(work)
        run = asyncio.create_task(worker.run())
        await requests.wait(1, "claimed", wait=LONG)
        await others.cancel(1, "not needed")
        await requests.wait(2, "claimed", wait=LONG)
        await requests.release(2)
        await others.claim(2)
        await requests.wait(3, wait=LONG)
        worker.stop()
        await run
        assert ends == ["1 cancelled", "2 lost"]
        assert (await requests.get(1)).cancelled["reason"] == "not needed"
        assert (await requests.get(2)).claim["agent"] == "B"


@pytest.mark.parametrize("has_begun", [True, False])
async def test_a_cancelled_run_gives_its_task_back(has_begun: bool, url: str, session_name: str) -> None:
    """Also one whose claim is won, and whose answer has not come yet."""
    async with AsyncClient(url, agent="A") as client:
        requests = client.session(session_name).requests
        await requests.submit({"n": 1})
        begun = asyncio.Event()

        async def work(_: Any) -> None:
            begun.set()
            await asyncio.Event().wait()

        run = asyncio.create_task(requests.work(work))
        await requests.wait(1, "claimed", wait=LONG)
        if has_begun:
            await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        found = await requests.get(1)
        assert found.claim is None
        assert found.past_attempts[0]["outcome"] == "released"


def test_a_worker_survives_a_lost_claim(url: str, session_name: str, caplog: pytest.LogCaptureFixture) -> None:
    with Client(url, agent="A") as client, Client(url, agent="B") as other:
        session, others = client.session(session_name), other.session(session_name)
        session.requests.extend([{"n": 1}, {"n": 2}])

        def work(task: Any) -> str:
            if task.seq == 1:
                session.requests.release(1)
                others.requests.claim(1)
                eventually(lambda: task.lost)
                assert task.cancelled
                with pytest.raises(StaleFence):
                    session.trajectories.append({"step": 1}, **task.guard)
            return "mine"

        session.requests.work(work, wait=0)
        assert session.requests.get(1).claim["agent"] == "B"
        assert session.requests.get(2).done["result"] == "mine"
        assert "the claim on request 1 was lost" in caplog.text


def test_a_worker_ends_its_tasks_itself_if_it_wants(session: Any, url: str, session_name: str) -> None:
    with Client(url, agent="A") as client:
        own = client.session(session_name)
        own.requests.extend([{"n": 1}, {"n": 2}, {"n": 3}])

        def work(task: Any) -> str:
            if task.seq == 1:
                with task.finishing("with a step") as t:
                    t.append("trajectories", {"step": 1})
            elif task.seq == 2:
                task.fail("no paper", retry_in="1h")
            else:
                task.finish("itself")
            return "too late"

        own.requests.work(work, wait=0)
        entries = list(own.requests.entries())
        assert [entry.done and entry.done["result"] for entry in entries] == ["with a step", None, "itself"]
        assert entries[1].past_attempts[0]["reason"] == "no paper"
        assert "not_before" in entries[1].raw


def test_a_worker_goes_on_over_cuts_and_lost_answers(url: str, session_name: str) -> None:
    """Waits are cut after 0.3 s, and the answer to each third claim is lost."""
    claims = [0]

    def lost(line: str, answer: bytes) -> bool:
        is_claim = "/requests/claim" in line and b" 200 " in answer.split(b"\r\n")[0]
        claims[0] += is_claim
        return is_claim and claims[0] % 3 == 1

    cut = http("502 Bad Gateway", "text/html", b"<html></html>")
    with Gateway(url, limit=0.3, cut=cut, lost=lost) as gateway, Client(url) as direct:
        requests = direct.session(session_name).requests
        with Client(gateway.url, agent="A") as client:
            worker = client.session(session_name).requests.worker(lambda task: task.item["n"])
            with running(worker):
                eventually(lambda: gateway.cuts)
                requests.extend({"n": number} for number in range(6))
                for seq in range(1, 7):
                    assert requests.wait(seq, wait=LONG).done["result"] == seq - 1
        assert not any(entry.past_attempts for entry in requests.entries())


@pytest.mark.parametrize("tag", [b"", b'"changed"'])
def test_a_worker_works_behind_a_proxy_without_tags(tag: bytes, url: str, session_name: str) -> None:
    def edit(head: bytes) -> bytes:
        return re.sub(rb"(?im)^(blackboard-)?etag: .*$", lambda found: (found[1] or b"") + b"etag: " + tag, head)

    with Gateway(url, edit=edit) as gateway, Client(gateway.url, agent="A") as client:
        requests = client.session(session_name).requests
        requests.submit({"n": 1})
        requests.work(lambda _: time.sleep(0.5), wait=0)
        assert requests.wait(1, wait=LONG).done is not None
        assert len(gateway.seen) < 20


def test_a_worker_goes_on_over_a_stop_of_the_server(server: Any, make_client: Any, function: Any) -> None:
    requests = make_client(server.url, agent="A").session("s").requests
    requests.submit({"n": 1})
    with running(requests.worker(function(lambda _: None))):
        requests.wait(1, wait=LONG)
        server.kill()
        server.start()
        requests.submit({"n": 2})
        requests.wait(2, wait=LONG)


def test_a_worker_stops_while_the_server_is_away(server: Any, make_client: Any, function: Any) -> None:
    requests = make_client(server.url, agent="A").session("s").requests
    requests.submit({"n": 1})
    with running(requests.worker(function(lambda _: None))):
        requests.wait(1, wait=LONG)
        server.kill()


def start(url: str, session: str, name: str, kind: str, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WORKER, url, session, name, kind, *options], stdout=subprocess.PIPE, text=True
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_worker(kind: str, number: int, url: str, session_name: str) -> None:
    with Client(url) as client:
        requests = client.session(session_name).requests
        # One waits for work, one has it, and one is asked twice.
        requests.extend([{"work": "quick"}, {"work": "slow"}])
        idle = start(url, session_name, "idle", kind, "quick")
        busy = start(url, session_name, "busy", kind, "slow")
        assert (line(idle), line(busy)) == ("1", "2")
        requests.wait(1, wait=LONG)
        idle.send_signal(number)
        busy.send_signal(number)
        assert idle.wait(LONG) == 0
        requests.submit({"work": "slow"})
        client.session(session_name).state.set("go", True)
        assert busy.communicate(timeout=LONG)[0] == "stopping\nended\n"
        assert busy.returncode == 0
        entries = list(requests.entries())
        assert [entry.done is not None for entry in entries] == [True, True, False]
        client.session(session_name).state.delete("go")
        twice = start(url, session_name, "twice", kind, "slow")
        assert line(twice) == "3"
        twice.send_signal(number)
        assert line(twice) == "stopping"
        twice.send_signal(number)
        assert twice.wait(LONG) != 0
        found = requests.get(3)
        assert found.claim is None
        assert found.past_attempts[0]["outcome"] == "released"


def test_a_killed_workers_task_is_taken_up_by_another(url: str, session_name: str) -> None:
    with Client(url, agent="B") as client:
        requests = client.session(session_name).requests
        requests.submit({"work": "slow"}, attempts=2)
        killed = start(url, session_name, "killed", "sync", "slow", "2")
        assert line(killed) == "1"
        killed.kill()
        killed.wait(LONG)
        seen: list[Any] = []
        with running(requests.worker(lambda task: seen.extend(task.past_attempts))):
            requests.wait(1, wait=LONG)
        assert [(attempt["agent"], attempt["outcome"]) for attempt in seen] == [("killed", "lapsed")]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_worker_started_again_takes_up_its_claims(kind: str, url: str, session_name: str) -> None:
    with Client(url, agent="W") as client, Client(url, agent="B") as other:
        board, others = client.session(session_name), other.session(session_name).requests
        requests = board.requests
        requests.submit({"work": "slow"})
        renewed = requests.claim(1, ttl="10m").raw["claim"]
        requests.submit({"work": "slow"}, attempts=1)
        killed = start(url, session_name, "W", kind, "slow", "600")
        assert line(killed) == "2"
        killed.kill()
        killed.wait(LONG)
        requests.extend([{"work": "slow"}, {"work": "slow"}])
        others.claim(3, ttl="10m")
        again = start(url, session_name, "W", kind, "slow", "20")
        assert line(again) == "4", "it has looked for earlier claims"
        # The claim of a worker that lives: it is renewed before half a ttl is over, and looked at before the other.
        requests.claim(1, ttl="20m", claim=1, fence=renewed["fence"])
        board.state.set("go", True)
        assert line(again) == "2"
        assert requests.wait(2, wait=LONG).past_attempts[0]["outcome"] == "released"
        again.send_signal(signal.SIGTERM)
        assert again.wait(LONG) == 0
        held = [requests.get(seq) for seq in (1, 3)]
        assert [(entry.claim["agent"], entry.past_attempts) for entry in held] == [("W", []), ("B", [])]
        assert held[0].claim["fence"] == renewed["fence"]


def test_the_types_are_those_of_the_kind_of_client() -> None:
    for kind, task, result in ((Requests, Task, Any), (AsyncRequests, AsyncTask, Awaitable[Any])):
        for call in (kind.worker, kind.work):
            assert get_type_hints(call)["function"] == Callable[[task], result]


def test_a_wait_ends_with_the_reason_of_a_failure(session: Any) -> None:
    session.requests.extend([{"n": 1}, {"n": 2}, {"n": 3}])
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(session.requests.wait, 1, wait=LONG)
        session.requests.claim(1)
        session.requests.fail(1, reason="no paper", retry_in="1h")
        session.requests.cancel(1)
        with pytest.raises(RequestCancelled, match="no reason given") as ended:
            waiting.result(LONG)
        assert (ended.value.reason, ended.value.entry.seq) == (None, 1)
    four = session.requests.submit({"n": 4}, attempts=1).seq
    session.requests.claim(four)
    session.requests.fail(four, reason={"code": 7})
    for until in ("done", "cancelled"):
        with pytest.raises(RequestFailed) as failed:
            session.requests.wait(four, until, wait=LONG)
    assert str(failed.value) == "request 4 has failed: {'code': 7}"
    assert not isinstance(failed.value, TimeoutError)
    assert (failed.value.reason, failed.value.entry.failure["reason"]) == ({"code": 7}, {"code": 7})
    for until in ("ended", "failed"):
        assert session.requests.wait(four, until, wait=LONG).failure is not None
    session.requests.retry(four, deadline="1h")
    assert "deadline" in session.requests.get(four).raw


def test_a_request_has_a_priority_and_times(session: Any) -> None:
    from datetime import datetime, timedelta, timezone

    late = datetime.now(timezone.utc) + timedelta(hours=1)
    session.requests.submit({"n": 1})
    session.requests.submit({"n": 2}, priority=5, deadline=timedelta(hours=2))
    session.requests.submit({"n": 3}, priority=9, not_before=late)
    assert session.requests.claim_next().seq == 2
    assert session.requests.claim_next().seq == 1
    assert session.requests.claim_next() is None
    assert session.requests.get(3).raw["not_before"][:19] == late.isoformat()[:19]
    assert session.requests.get(3).raw["priority"] == 9
    with pytest.raises(UnsupportedValue, match="time zone"):
        session.requests.submit({"n": 4}, deadline=datetime(2100, 1, 1))


def test_a_result_is_reviewed_by_another_agent(session: Any, url: str, session_name: str) -> None:
    session.requests.submit({"n": 1}, review=True, attempts=2)
    with Client(url, agent="critic") as client:
        critic = client.session(session_name).requests
        for accept in (False, True):
            with session.requests.next() as task:
                task.finish("draft")
            (found,) = session.requests.entries(in_review=True)
            assert found.in_review["result"] == "draft"
            critic.verdict(1, accept, fence=found.in_review["fence"], reason="too short")
        assert session.requests.wait(1, wait=LONG).done["verdict"]["agent"] == "critic"
    assert session.requests.get(1).past_attempts[0]["reason"] == "too short"


def test_a_transaction_has_terms_and_verdicts(session: Any) -> None:
    with session.transaction() as t:
        t.append("requests", {"n": 1}, priority=7, review=True).append("requests", {"n": 2}).cancel(2, "no")
        t.done(1, result="so")
    assert session.requests.get(1).raw["priority"] == 7
    assert session.requests.get(2).cancelled["reason"] == "no"
    with session.transaction(agent="critic") as t:
        t.verdict(1, True)
    assert session.requests.get(1).done["verdict"]["agent"] == "critic"


def test_former_names_warn_and_work(session: Any) -> None:
    session.requests.extend([{"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}])
    with session.requests.next() as task, pytest.warns(DeprecationWarning, match="use finish"):
        task.done(1)
    with session.requests.next() as task, pytest.warns(DeprecationWarning, match="use fail"):
        task.failed("no")
    session.requests.claim(3)
    with pytest.warns(DeprecationWarning, match="use fail"):
        session.requests.failed(3, reason="no")
    with pytest.warns(DeprecationWarning, match="use finish"):
        session.requests.done(3)
    assert session.requests.get(1).done["result"] == 1


def test_a_question_offers_options(session: Any) -> None:
    options = ["Oslo", "Rome"]
    assert session.questions.ask("Where to?", wait="50ms", default="Rome", options=options) == "Rome"
    assert session.questions.get(1).item["options"] == options
    session.questions.post("Where to?", options=options, strict_options=True)
    assert session.questions.get(2).item["strict_options"] is True
    with pytest.raises(UnsupportedValue, match="several"):
        session.questions.post("Where to?", options="Oslo")
