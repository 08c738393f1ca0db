"""The session's methods against a real server."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents.memory import Session, SessionSettings

from agent_blackboard import (
    AsyncClient,
    ConnectionFailed,
    IncompatibleServer,
    ItemTooLarge,
    NoBlob,
    UnsupportedValue,
    errors,
)
from agent_blackboard.openai_agents import BlackboardSession


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def call(number: int) -> Any:
    return {"type": "function_call", "call_id": f"c{number}", "name": "look", "arguments": "{}"}


def output(number: int) -> Any:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": str(number)}


def reasoning(number: int) -> Any:
    return {"type": "reasoning", "id": f"rs{number}", "summary": []}


def said(text: str) -> Any:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


TWO_AT_ONCE = [user("a"), call(1), call(2), output(1), output(2), user("b")]


@pytest.fixture
async def session(url: str, session_name: str) -> AsyncIterator[BlackboardSession]:
    session = BlackboardSession(session_name, url=url)
    yield session
    await session.close()


async def test_items_come_back_as_they_were_added(session: BlackboardSession) -> None:
    assert isinstance(session, Session)
    assert await session.get_items() == []
    first = [user("日本 \u0001 ' \" \\ 🙂"), {"type": "reasoning", "summary": [], "encrypted_content": None, "n": 1.5}]
    await session.add_items(first)
    await session.add_items([user("again")])
    assert await session.get_items() == [*first, user("again")]


async def test_each_call_of_add_items_is_one_commit(session: BlackboardSession, url: str) -> None:
    async with AsyncClient(url) as client:
        for number in range(1, 4):
            await session.add_items(TWO_AT_ONCE)
            assert (await client.session(session.board).describe())["revision"] == number
        await session.add_items([])
        assert (await client.session(session.board).describe())["revision"] == 3


async def test_a_limit_gives_the_latest_items(session: BlackboardSession) -> None:
    items = [user(str(number)) for number in range(5)]
    await session.add_items(items)
    assert await session.get_items(2) == items[-2:]
    assert await session.get_items(limit=5) == await session.get_items(limit=99) == items
    assert await session.get_items(0) == await session.get_items(-1) == []


@pytest.mark.parametrize("given", [SessionSettings(limit=2), {"limit": 2}])
async def test_the_settings_limit_holds_unless_another_is_given(url: str, session_name: str, given: Any) -> None:
    session = BlackboardSession(session_name, url=url, session_settings=given)
    items = [user(str(number)) for number in range(5)]
    await session.add_items(items)
    assert await session.get_items() == items[-2:]
    assert await session.get_items(3) == items[-3:]
    await session.close()


async def test_unknown_settings_are_refused(session_name: str) -> None:
    with pytest.raises(TypeError, match="limitt"):
        BlackboardSession(session_name, session_settings={"limitt": 1})


async def test_a_limit_never_parts_a_call_from_its_output(session: BlackboardSession) -> None:
    items = [*TWO_AT_ONCE, call(3), user("c"), call(1), output(1), output(3)]
    await session.add_items(items)
    begins = {limit: len(items) - len(await session.get_items(limit)) for limit in range(1, len(items) + 1)}
    assert begins == {1: 6, 2: 6, 3: 6, 4: 6, 5: 6, 6: 5, 7: 1, 8: 1, 9: 1, 10: 1, 11: 0}


async def test_a_limit_never_parts_reasoning_from_what_follows_it(session: BlackboardSession) -> None:
    first = [user("a"), reasoning(1), reasoning(2), call(1), call(2), output(1), output(2), reasoning(3), said("b")]
    items = [*first, user("c"), said("plain"), user("d"), said("e"), reasoning(4), said("f"), said("g")]
    await session.add_items(items)
    begins = {limit: len(items) - len(await session.get_items(limit)) for limit in range(1, len(items) + 1)}
    with_tools = dict.fromkeys(range(10, 16), 1)
    assert begins == {1: 13, 2: 13, 3: 13, 4: 12, 5: 11, 6: 10, 7: 9, 8: 7, 9: 7, **with_tools, 16: 0}


async def test_an_output_without_any_call_does_not_widen_the_window(session: BlackboardSession) -> None:
    items = [user("a"), call(1), output(1), output(9)]
    await session.add_items(items)
    assert await session.get_items(1) == items[-1:]
    assert await session.get_items(2) == items[-3:]
    assert await session.get_items() == items


async def test_an_approval_stays_with_its_request(session: BlackboardSession) -> None:
    request = {"type": "mcp_approval_request", "id": "r", "name": "n", "arguments": "", "server_label": "s"}
    answer = {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True}
    await session.add_items([user("a"), request, answer])  # type: ignore[list-item]
    assert await session.get_items(1) == [request, answer]
    assert await session.pop_item() == answer
    assert await session.get_items() == [user("a")]


async def test_pop_item_gives_the_latest_item_until_none_is_left(session: BlackboardSession) -> None:
    assert await session.pop_item() is None
    await session.add_items([user("a"), call(1)])
    assert [await session.pop_item() for _ in range(3)] == [call(1), user("a"), None]
    await session.add_items([user("b")])
    assert await session.get_items() == [user("b")]


async def test_pop_item_takes_the_call_with_its_output_by_one_commit(session: BlackboardSession, url: str) -> None:
    await session.add_items(TWO_AT_ONCE)
    assert await session.pop_item() == user("b")
    assert await session.pop_item() == output(2)
    async with AsyncClient(url) as client:
        assert (await client.session(session.board).describe())["revision"] == 3
    assert await session.get_items() == [user("a"), call(1), output(1)]
    assert [await session.pop_item() for _ in range(3)] == [output(1), user("a"), None]
    await session.add_items([call(1), output(1)])
    assert [await session.pop_item() for _ in range(2)] == [output(1), None]


async def test_pop_item_leaves_no_reasoning_without_what_follows_it(session: BlackboardSession, url: str) -> None:
    before = [user("a"), reasoning(1), call(1), call(2), output(2), output(1)]
    await session.add_items([*before, reasoning(2), reasoning(3), said("b"), said("c")])
    assert [await session.pop_item() for _ in range(2)] == [said("c"), said("b")]
    assert await session.get_items() == before
    async with AsyncClient(url) as client:
        assert (await client.session(session.board).describe())["revision"] == 3
    assert await session.pop_item() == output(1)
    assert await session.get_items() == [user("a"), reasoning(1), call(2), output(2)]
    assert await session.pop_item() == output(2)
    assert await session.get_items() == [user("a")]
    await session.add_items([reasoning(4)])
    assert await session.pop_item() == reasoning(4)


async def test_an_output_without_any_call_is_popped_alone(session: BlackboardSession) -> None:
    await session.add_items([user("a"), call(1), output(9)])
    assert await session.pop_item() == output(9)
    assert await session.get_items() == [user("a"), call(1)]


async def test_items_popped_at_once_are_popped_once_each(session: BlackboardSession) -> None:
    items = [
        user("first"),
        *[part for number in range(6) for part in (call(number), output(number), user(str(number)))],
    ]
    await session.add_items(items)
    popped = await asyncio.gather(*[session.pop_item() for _ in range(14)])
    kept = [item for item in items if item.get("type") != "function_call"]
    assert sorted(map(str, filter(None, popped))) == sorted(map(str, kept))
    assert await session.get_items() == []


async def test_pairs_added_while_others_are_popped_stay_whole(session: BlackboardSession) -> None:
    async def add(number: int) -> None:
        await session.add_items([call(number), output(number)])

    popped, *_ = await asyncio.gather(
        asyncio.gather(*[session.pop_item() for _ in range(10)]), *[add(number) for number in range(20)]
    )
    left = await session.get_items()
    calls = [item["call_id"] for item in left if item["type"] == "function_call"]  # type: ignore[typeddict-item]
    outputs = [item["call_id"] for item in left if item["type"] == "function_call_output"]  # type: ignore[typeddict-item]
    assert calls == outputs
    assert len(left) == 2 * (20 - len([item for item in popped if item is not None]))


async def test_clear_session_deletes_all_items(session: BlackboardSession) -> None:
    await session.clear_session()
    await session.add_items(TWO_AT_ONCE)
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([user("anew")])
    assert await session.get_items() == [user("anew")]


async def test_histories_of_many_pages_are_read_as_of_one_revision(session: BlackboardSession) -> None:
    items = [user(str(number)) for number in range(2500)]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(1200) == items[-1200:]
    reads, _ = await asyncio.gather(
        asyncio.gather(*[session.get_items() for _ in range(3)]),
        asyncio.gather(*[session.add_items([call(number), output(number)]) for number in range(10)]),
    )
    for read in reads:
        assert read[:2500] == items
        assert len(read) % 2 == 0


@pytest.mark.parametrize(
    "session_id",
    ["", ".", "..", "%", "%41", "a/b", "../../etc", "a:b?c#d&e=f", "\x00\n", "é☃", "\ud800", "x" * 400, "é" * 200],
)
async def test_any_text_is_a_session_id(url: str, session_id: str) -> None:
    session = BlackboardSession(session_id, url=url)
    await session.clear_session()
    await session.add_items([user(repr(session_id))])
    other = BlackboardSession(session_id + "'", url=url)
    await other.clear_session()
    assert await other.get_items() == []
    assert await BlackboardSession(session_id, url=url).get_items() == [user(repr(session_id))]
    await session.close()
    await other.close()


async def test_a_legal_id_is_the_name_of_the_board(session: BlackboardSession, session_name: str) -> None:
    assert session.board == session_name


async def test_a_board_named_by_a_digest_keeps_the_id(url: str) -> None:
    session_id = "long/" * 100
    session = BlackboardSession(session_id, url=url)
    assert session.board == "%." + hashlib.sha256(session_id.encode()).hexdigest()
    await session.add_items([user("a")])
    async with AsyncClient(url) as client:
        assert await client.session(session.board).state.get("session_id") == session_id.replace("/", "%2F")
    await session.close()


async def test_conversations_of_two_agents_share_a_board(session: BlackboardSession, url: str) -> None:
    other = BlackboardSession(session.session_id, url=url, agent="Planner")
    await session.add_items([user("a")])
    await other.add_items([user("b")])
    await other.clear_session()
    assert await other.get_items() == []
    assert await session.get_items() == [user("a")]
    await other.close()


async def test_long_strings_are_kept_once_as_blobs(session: BlackboardSession, url: str) -> None:
    picture = "data:image/png;base64," + "A" * (3 << 20)
    shot = {"type": "computer_call_output", "call_id": "c1", "output": {"type": "input_image", "image_url": picture}}
    items: list[Any] = [{"type": "computer_call", "call_id": "c1", "id": "i"}, shot]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(1) == items
    async with AsyncClient(url) as client:
        assert (await client.session(session.board).describe())["bytes"] < 10_000
        stored = [entry.item async for entry in client.session(session.board).memory("conversation").entries()]
    assert stored[1]["output"]["image_url"]["string"] == len(picture)
    assert await session.pop_item() == shot
    assert await session.get_items() == []


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (["text"], UnsupportedValue),
        ([None], UnsupportedValue),
        ([{"n": float("nan")}], UnsupportedValue),
        ([{"s": "\ud800"}], UnsupportedValue),
        ([{"s": "\ud800" * 70_000}], UnsupportedValue),
        ([{"o": object()}], UnsupportedValue),
        ([{"image": {"$blob": "a" * 64, "string": 3}}], UnsupportedValue),
        ([{"image": {"$blob": "a" * 64}}], NoBlob),
        ([{"parts": ["x" * 60_000] * 20}], ItemTooLarge),
    ],
)
async def test_a_bad_item_is_refused_and_nothing_is_written(
    session: BlackboardSession, items: list[Any], problem: type[Exception]
) -> None:
    with pytest.raises(problem):
        await session.add_items([user("a"), *items])
    assert await session.get_items() == []


async def test_nesting_beyond_the_bound_is_refused(session: BlackboardSession) -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"deep": deep}
    with pytest.raises(UnsupportedValue, match="128 levels"):
        await session.add_items([deep])


async def test_a_cancelled_caller_learns_so_after_the_write(session: BlackboardSession) -> None:
    adding = asyncio.ensure_future(session.add_items([user("a")]))
    await asyncio.sleep(0)
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert await session.get_items() == [user("a")]


async def test_a_cancelled_write_that_fails_is_a_cancellation(session_name: str) -> None:
    session = BlackboardSession(session_name, AsyncClient("http://127.0.0.1:9", retry=False))
    adding = asyncio.ensure_future(session.add_items([user("a")]))
    await asyncio.sleep(0)
    adding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await adding


async def test_a_given_client_stays_open(url: str, session_name: str) -> None:
    async with AsyncClient(url) as client:
        session = BlackboardSession(session_name, client)
        await session.add_items([user("a")])
        await session.close()
        assert await session.get_items() == [user("a")]
    with pytest.raises(ValueError, match="either"):
        BlackboardSession(session_name, client, url=url)


async def test_the_address_comes_from_the_environment(
    url: str, session_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLACKBOARD_URL", url)
    session = BlackboardSession(session_name)
    await session.add_items([user("a")])
    assert await session.get_items() == [user("a")]
    await session.close()


def test_one_session_serves_several_event_loops(url: str, session_name: str) -> None:
    session = BlackboardSession(session_name, url=url)
    for number in range(3):
        asyncio.run(session.add_items([user(str(number))]))
    assert asyncio.run(session.get_items(2)) == [user("1"), user("2")]


async def test_a_server_that_does_not_answer_is_a_clear_exception(session_name: str) -> None:
    session = BlackboardSession(session_name, AsyncClient("http://127.0.0.1:9", timeout=0.5))
    with pytest.raises(ConnectionFailed):
        await session.get_items()
    with pytest.raises(ConnectionFailed):
        await session.add_items([user("a")])
    with pytest.raises(ValueError, match="address"):
        await BlackboardSession(session_name, url="localhost").get_items()


async def test_a_server_of_another_kind_is_a_clear_exception(session_name: str) -> None:
    async def html(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>"
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(html, "127.0.0.1", 0)
    async with server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        session = BlackboardSession(session_name, url=address)
        for attempt in (session.get_items(), session.add_items([user("a")]), session.pop_item()):
            with pytest.raises((IncompatibleServer, errors.UnexpectedAnswer)):
                await attempt
        await session.close()
