"""Wrong addresses and tokens, and foreign servers: each a clear exception, and no write is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_blackboard import IncompatibleServer, Unauthorized, ufo
from agent_blackboard.ufo import Blackboard

from ..network import Scripted, http


def test_a_wrong_token_is_raised_and_the_writes_wait_for_the_right_one(
    on_own_server: Any, outbox: Path, session_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = on_own_server.token("--name", "t", "--scopes", "read,write", "--anyway")
    ufo.configure(token="wrong")
    board = Blackboard()
    for _ in range(2):
        with pytest.raises(Unauthorized):
            board.add_requests("a")
        with pytest.raises(Unauthorized):
            board.is_empty()

    async def inside() -> None:
        board.add_requests("b")
        await asyncio.sleep(0)

    asyncio.run(inside())
    assert ufo.pending() == 3
    ufo.close()
    ufo.configure(token=token)
    board = Blackboard()
    assert ufo.flush(30)
    assert board.requests.list_content == [{"text": "a"}, {"text": "a"}, {"text": "b"}]


@pytest.mark.parametrize("page", [b"<html>hello</html>", b"{}"])
def test_a_server_that_is_none_of_ours_is_told(page: bytes, outbox: Path) -> None:
    with Scripted(lambda line: http("200 OK", "text/html", page)) as other:
        ufo.configure(url=other.url, outbox=outbox)
        board = Blackboard()
        with pytest.raises(IncompatibleServer, match="not a Blackboard server"):
            board.add_requests("a")
        with pytest.raises(IncompatibleServer):
            board.is_empty()
        assert ufo.pending() == 1


def test_a_server_of_another_version_is_told(outbox: Path) -> None:
    def answer(line: str) -> bytes:
        if line.startswith("GET / "):
            return http("200 OK", "application/json", b'{"name":"blackboard","version":"7.1.0"}')
        return http("404 Not Found", "application/problem+json", b'{"code":"route-not-found","title":"no route"}')

    with Scripted(answer) as other:
        ufo.configure(url=other.url, outbox=outbox)
        with pytest.raises(IncompatibleServer, match=r"Blackboard 7\.1\.0"):
            Blackboard().add_requests("a")


def test_a_proxys_page_is_a_server_that_is_away(outbox: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Scripted(lambda line: http("502 Bad Gateway", "text/html", b"<html>502</html>")) as proxy:
        ufo.configure(url=proxy.url, outbox=outbox, block_max=0.3)
        board = Blackboard()
        board.add_requests("a")
        assert board.requests.list_content == [{"text": "a"}]
        assert "is away" in caplog.text


def test_a_truncated_answer_is_a_server_that_is_away(outbox: Path) -> None:
    with Scripted(lambda line: http("200 OK", "application/json", b'{"questions":[', 500)) as cut:
        ufo.configure(url=cut.url, outbox=outbox, block_max=0.3)
        board = Blackboard()
        board.add_requests("a")
        assert board.requests.list_content == [{"text": "a"}]
        assert ufo.pending() == 1


def test_an_address_that_is_none_is_told_at_once() -> None:
    ufo.configure(url="htp://nowhere")
    with pytest.raises(ValueError, match="address must be like"):
        Blackboard()
