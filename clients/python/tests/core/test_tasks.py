"""Requests as tasks through the client: held, finished, failed, given back, renewed."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from agent_blackboard import (
    AgentRequired,
    AlreadyAnswered,
    AlreadyClaimed,
    AsyncClient,
    Client,
    ConditionNotMet,
    LeaseHeld,
    LeaseLost,
    StaleFence,
)


def test_a_request_is_held_and_finished_by_a_block(session: Any) -> None:
    session.requests.submit({"device": "windows"})
    session.requests.submit({"device": "linux"}, attempts=2)
    with session.requests.next({"device": "linux"}) as task:
        assert (task.seq, task.item, task.agent) == (2, {"device": "linux"}, "HostAgent")
        assert session.requests.get(2).claim["fence"] == task.fence
        session.trajectories.append({"step": 1}, **task.guard)
    assert session.requests.get(2).done["agent"] == "HostAgent"
    with session.requests.next({"device": "linux"}) as task:
        assert task is None


def test_a_result_is_kept(session: Any) -> None:
    session.requests.submit("one")
    with session.requests.next() as task:
        task.finish({"answer": 42})
    assert session.requests.wait(1, wait=1).done["result"] == {"answer": 42}


def test_an_exception_fails_the_request_until_its_attempts_are_spent(session: Any) -> None:
    session.requests.submit({"n": 1}, attempts=2)
    for _ in range(2):
        # The second attempt waits for the end of the pause.
        with pytest.raises(ZeroDivisionError), session.requests.next(wait=60) as task:
            assert task is not None
            1 / 0  # noqa: B018
    found = session.requests.wait(1, "failed", wait=1)
    assert found.failure["reason"] == "ZeroDivisionError: division by zero"
    session.requests.retry(1)
    with session.requests.next() as task:
        task.fail("no")
    with session.requests.next() as task:
        task.release()
    assert session.requests.get(1).claim is None


def test_a_failing_block_leaves_room_to_the_others(session: Any) -> None:
    session.requests.submit({"n": 1}, priority=1)
    session.requests.submit({"n": 2})
    for pause in (1, 2):
        with pytest.raises(ZeroDivisionError), session.requests.next({"n": 1}, wait=60):
            1 / 0  # noqa: B018
        failed = session.requests.get(1)
        ended = datetime.fromisoformat(failed.past_attempts[-1]["to"].replace("Z", "+00:00"))
        not_before = datetime.fromisoformat(failed.raw["not_before"].replace("Z", "+00:00"))
        assert (not_before - ended).total_seconds() == pause
    with session.requests.next() as task:
        assert task.seq == 2


def test_an_interrupt_gives_the_request_back(session: Any) -> None:
    session.requests.submit({"n": 1})
    with pytest.raises(KeyboardInterrupt), session.requests.next():
        raise KeyboardInterrupt
    assert session.requests.get(1).claim is None
    assert session.requests.get(1).done is None


async def test_a_cancelled_task_gives_the_request_back(url: str, session_name: str) -> None:
    async with AsyncClient(url, agent="A") as client:
        requests = client.session(session_name).requests
        await requests.submit({"n": 1})
        held = asyncio.Event()

        async def work() -> None:
            async with requests.next():
                held.set()
                await asyncio.Event().wait()

        working = asyncio.create_task(work())
        await held.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert (await requests.get(1)).claim is None


def test_a_claim_is_renewed_while_the_block_runs(session: Any, url: str, session_name: str) -> None:
    session.requests.submit({"n": 1})
    with session.requests.next(ttl=9) as task, Client(url, agent="B") as other:
        begun = session.requests.get(1).claim["expires_at"]
        for event in other.session(session_name).events(after=0):
            if session.requests.get(1).claim["expires_at"] > begun:
                break
            assert event.revision < 20
        with pytest.raises(AlreadyClaimed):
            other.session(session_name).requests.claim(1)
        assert not task.lost


def test_a_lost_claim_is_known_and_cannot_finish(session: Any, url: str, session_name: str) -> None:
    session.requests.submit({"n": 1})
    with pytest.raises(StaleFence), session.requests.next(ttl=30) as task:
        session.requests.release(1)
        with Client(url, agent="B") as other:
            other.session(session_name).requests.claim(1)
        assert not task.renew(30)
        assert task.lost
    with pytest.raises(RuntimeError), session.requests.next(ttl=30) as task:
        assert task is None
        raise RuntimeError


def test_a_claim_that_lapsed_is_lost_even_if_nobody_took_it(session: Any) -> None:
    session.requests.submit({"n": 1})
    task = session.requests.claim_next(ttl="100ms")
    session.requests.wait(1, "claimed", wait=1)
    for found in iter(lambda: session.requests.get(1), None):
        if found.claim is None:
            break
    assert not task.renew(30)
    task.release()
    assert session.requests.get(1).claim is None


def test_a_worker_waits_for_the_next_request(session: Any, url: str, session_name: str) -> None:
    assert session.requests.claim_next() is None
    assert session.requests.claim_next(wait="20ms") is None
    with ThreadPoolExecutor(1) as thread, Client(url) as other:
        waiting = thread.submit(session.requests.claim_next, {"n": 1}, wait=30)
        other.session(session_name).requests.submit({"n": 1})
        assert waiting.result().seq == 1
    assert session.requests.claim_next(wait="20ms") is None


def test_a_claim_needs_an_agent(make_client: Any, url: str, session_name: str) -> None:
    session = make_client(url).session(session_name)
    session.requests.submit({"n": 1})
    with pytest.raises(AgentRequired):
        session.requests.claim_next()
    assert session.requests.claim_next(agent="A").agent == "A"
    assert session.client.session(session_name, "B").client.agent == "B"


def test_requests_wait_for_each_other(session: Any) -> None:
    first = session.requests.submit({"n": 1}).seq
    second = session.requests.submit({"n": 2}, after=[first]).seq
    assert session.requests.claim_next({"n": 2}) is None
    session.requests.claim(first)
    session.requests.finish(first)
    assert session.requests.claim_next().seq == second


def test_a_question_is_answered_elsewhere(session: Any, url: str, session_name: str) -> None:
    with Client(url, agent="Ada") as person:
        answerer = threading.Thread(target=lambda: answer(person))

        def answer(client: Client) -> None:
            for asked in client.session(session_name).questions.follow():
                assert any(found.session == session_name for found in client.inbox())
                client.session(session_name).questions.answer(asked.seq, "The third, ü")
                return

        answerer.start()
        assert session.questions.ask("Which one?", wait=60) == "The third, ü"
        answerer.join()
    with pytest.raises(AlreadyAnswered):
        session.questions.answer(1, "The second")


def test_a_question_has_a_default_and_a_time_limit(session: Any) -> None:
    assert session.questions.ask({"question": "Go on?"}, wait="50ms", default="yes") == "yes"
    assert session.questions.get(1).item["expired"] is True
    with pytest.raises(TimeoutError) as late:
        session.questions.ask("And now?", wait="50ms")
    assert isinstance(late.value, ConditionNotMet)
    session.questions.skip(2)
    assert session.questions.wait_answered(2, 1).item["skipped"] is True


def test_a_lease_has_one_holder(make_client: Any, url: str, session_name: str) -> None:
    first = make_client(url, agent="A").session(session_name)
    second = make_client(url, agent="B").session(session_name)
    with first.lease("printer/2") as lease:
        lease.check()
        fence = lease.fence
        with pytest.raises(LeaseHeld) as held, second.lease("printer/2"):
            pass
        assert held.value.holder == "A"
        with pytest.raises(TimeoutError), second.lease("printer/2", wait="50ms"):
            pass
    with second.lease("printer/2", ttl=6, wait=30) as lease:
        assert lease.fence > fence
        # A renewal: nothing else is written.
        next(first.events(after=lease.fence))
        assert not lease.lost
    assert first.state.get("leases") == {}


def test_a_deleted_lease_is_lost(session: Any) -> None:
    with session.lease("l", ttl=1) as lease:
        session.state.set("leases/l", {"holder": "another"})
        session.state.wait("nothing", "absent", wait=1)
        while not lease.lost:
            list(session.state.get("leases"))
        with pytest.raises(LeaseLost):
            lease.check()
    assert session.state.get("leases/l") == {"holder": "another"}
    with pytest.raises(ValueError, match="at least"):
        session.lease("l", ttl=0.1)


def test_a_tasks_effect_and_end_are_one_commit(session: Any) -> None:
    session.requests.submit({"n": 1})
    before = session.describe()["revision"]
    with session.requests.next() as task, task.finishing({"ok": True}) as t:
        t.append("trajectories", {"step": 1}).put("x", 1)
    assert session.describe()["revision"] == before + 2
    assert session.requests.get(1).done["result"] == {"ok": True}
    with pytest.raises(StaleFence), task.finishing() as t:
        t.append("trajectories", {"step": 2})
    assert session.trajectories.count() == 1


def test_a_server_that_is_away_leaves_claim_and_lease_to_their_time_limits(make_client: Any, server: Any) -> None:
    session = make_client(server.url, agent="A", timeout=5).session("s")
    session.requests.submit({"n": 1})
    with pytest.raises(ZeroDivisionError), session.requests.next(ttl=60) as task, session.lease("l", ttl=1) as lease:
        server.kill()
        assert task.renew(60, 0.2)
        while not lease.lost:
            pass
        with pytest.raises(LeaseLost):
            lease.check()
        1 / 0  # noqa: B018
    server.start()
    assert session.requests.get(1).claim["agent"] == "A"


def test_a_worker_gives_up_where_no_session_comes(session: Any) -> None:
    assert session.requests.claim_next(wait="30ms") is None
    assert not session.exists()


def test_a_lease_that_was_deleted_is_released_without_a_word(session: Any) -> None:
    with session.lease("l", ttl=60):
        session.state.delete("leases/l")
    with session.lease("l", ttl=60) as lease:
        session.state.set("leases/l", "another's")
    assert lease.lost
    with pytest.raises(LeaseHeld) as held, session.lease("l"):
        pass
    assert held.value.holder is None
