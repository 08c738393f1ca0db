"""Ends of requests by one tool, and verdicts."""

from __future__ import annotations

from typing import Any

from server import Server, facts


async def test_a_request_is_cancelled_and_tried_again(server: Server, session: str) -> None:
    board = server.board(session)
    board.post("requests", {"request": "draw the chart"})
    async with server.raw(query=f"?session={session}&agent=Host") as raw:
        ended = await raw.call("finish_request", {"seq": 1, "outcome": "cancelled", "reason": "no longer needed"})
        assert facts(ended)["cancelled"] is True
        assert board.entries("requests")[0]["cancelled"]["reason"] == "no longer needed"
        again = facts(await raw.call("finish_request", {"seq": 1, "outcome": "retry"}))
        assert again["claimable_again"] is True
        assert facts(await raw.call("claim_request", {"wait_s": 0}))["seq"] == 1


async def test_a_worker_learns_that_its_request_was_cancelled(server: Server, session: str) -> None:
    server.board(session).post("requests", {"request": "draw the chart"})
    async with server.raw(query=f"?session={session}&agent=Worker") as raw:
        fence = facts(await raw.call("claim_request"))["fence"]
        told = facts(await raw.call("finish_request", {"agent": "Host", "seq": 1, "outcome": "cancelled"}))
        assert (told["cancelled"], "its holder" in told["next"]) == (False, True)
        hint = facts(await raw.call("claim_request", {"seq": 1}))["next"]
        assert f"fence={fence} and outcome=failed" in hint
        failed = facts(await raw.call("finish_request", {"seq": 1, "fence": fence, "outcome": "failed"}))
        assert (failed["failed"], failed["claimable_again"]) == (True, False)


async def test_a_failed_attempt_says_whether_there_is_another(server: Server, session: str) -> None:
    server.board(session).ask("POST", "/requests?attempts=2", {"request": "draw the chart"})
    async with server.raw(query=f"?session={session}&agent=Worker") as raw:
        for claimable in (True, False):
            fence = facts(await raw.call("claim_request"))["fence"]
            end = {"seq": 1, "fence": fence, "outcome": "failed", "reason": "no printer"}
            assert facts(await raw.call("finish_request", end))["claimable_again"] is claimable
        again = facts(await raw.call("finish_request", {"seq": 1, "outcome": "retry", "deadline": "1h"}))
        assert again["claimable_again"] is True


async def test_an_argument_of_another_outcome_is_told(server: Server, session: str) -> None:
    board = server.board(session)
    board.post("requests", {"request": "draw the chart"})
    before = board.revision()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"reason": "x"}, "reason"),
        ({"outcome": "failed", "result": 1}, "result"),
        ({"outcome": "cancelled", "fence": 1}, "fence"),
        ({"outcome": "cancelled", "result": 1}, "result"),
        ({"outcome": "retry", "reason": "x"}, "reason"),
        ({"outcome": "retry", "fence": 1}, "fence"),
        ({"retry_in": "1s"}, "retry_in"),
        ({"deadline": "1s"}, "deadline"),
        ({"outcome": "cancel"}, "outcome"),
        ({"outcome": "retry", "deadline": "soon"}, "deadline"),
        ({"failed": True}, "failed"),
    ]
    async with server.raw(query=f"?session={session}&agent=Host") as raw:
        for arguments, name in cases:
            result = await raw.call("finish_request", {"seq": 1, **arguments})
            assert result["isError"], arguments
            assert f"/{name}" in facts(result)["detail"], (arguments, result)
            assert facts(result)["next"]
        # What is done cannot be tried again.
        board.ask("PUT", "/requests/1/done", {})
        assert facts(await raw.call("finish_request", {"seq": 1, "outcome": "retry"}))["error"]
    assert board.revision() == before + 1


async def test_a_verdict_takes_the_present_fence(server: Server, session: str) -> None:
    board = server.board(session)
    board.ask("POST", "/requests?review=true", {"request": "draw the chart"})
    async with server.raw(query=f"?session={session}&agent=Worker") as raw:
        # Nothing waits for a verdict yet.
        assert (await raw.call("review_request", {"agent": "Host", "seq": 1, "accept": True}))["isError"]
        fence = facts(await raw.call("claim_request"))["fence"]
        done = facts(await raw.call("finish_request", {"seq": 1, "fence": fence, "result": "a chart"}))
        assert (done.get("done"), done["in_review"]) == (None, True)
        own = await raw.call("review_request", {"seq": 1, "accept": True})
        assert facts(own)["error"] == "forbidden"
        rejected = {"agent": "Host", "seq": 1, "accept": False, "reason": "no unit"}
        assert facts(await raw.call("review_request", rejected))["claimable_again"] is True
        again = facts(await raw.call("claim_request"))
        assert again["past_attempts"][-1]["reason"] == "no unit"
        await raw.call("finish_request", {"seq": 1, "fence": again["fence"], "result": "a chart in EUR"})
        stale = {"agent": "Host", "seq": 1, "accept": True, "fence": fence}
        assert facts(await raw.call("review_request", stale))["error"] == "stale-fence"
        for _ in range(2):
            accepted = facts(await raw.call("review_request", {"agent": "Host", "seq": 1, "accept": True}))
            assert accepted["done"] is True
    (entry,) = board.entries("requests")
    assert entry["done"]["result"] == "a chart in EUR"
