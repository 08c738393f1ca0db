"""The memory service against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from agent_blackboard import AsyncClient, ConnectionFailed, ItemTooLarge, UnsupportedValue
from agent_blackboard.adk import BlackboardMemoryService


@pytest.fixture
async def service(url: str) -> AsyncIterator[BlackboardMemoryService]:
    async with BlackboardMemoryService(url=url) as service:
        yield service


@pytest.fixture
def user(session_name: str) -> dict[str, str]:
    return {"app_name": session_name, "user_id": "u"}


def content(text: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def said(text: str, **options: Any) -> Event:
    return Event(author=options.pop("author", "user"), content=content(text), **options)


async def found(service: BlackboardMemoryService, user: dict[str, str], query: str) -> list[Any]:
    return [memory.content.parts[0].text for memory in await memories(service, user, query) if memory.content.parts]


async def memories(service: BlackboardMemoryService, user: dict[str, str], query: str) -> list[MemoryEntry]:
    return (await service.search_memory(**user, query=query)).memories


async def test_a_session_is_found_by_its_words(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    event = said("My favourite colour is Teal", timestamp=0.0)
    silent = Event(author="agent", content=types.Content(parts=[types.Part(inline_data=types.Blob(data=b"a"))]))
    thought = Event(author="agent", content=types.Content(parts=[types.Part(text="teal?", thought=True)]))
    await service.add_session_to_memory(
        Session(**user, id="s/1", events=[event, Event(author="agent"), silent, thought])
    )
    (memory,) = await memories(service, user, "What colour did I like?")
    assert memory.content == event.content
    assert memory.author == "user"
    assert memory.timestamp == "1970-01-01T00:00:00+00:00"
    assert memory.custom_metadata == {"session_id": "s/1", "event_id": event.id}
    assert await found(service, user, "TEAL") == ["My favourite colour is Teal"]
    assert await found(service, user, "teal-") == ["My favourite colour is Teal"]
    assert await found(service, user, "magenta") == []
    assert await found(service, user, "") == await found(service, user, "?!* -") == []


async def test_what_shares_more_words_comes_first(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    texts = ["the disk of node 7", "the disk of node 7 is full", "a node", "lunch"]
    await service.add_events_to_memory(**user, events=[said(text) for text in texts])
    assert await found(service, user, "disk full node") == [texts[1], texts[0], texts[2]]


async def test_a_memory_is_found_by_its_text_alone(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    await service.add_events_to_memory(**user, events=[said("hello", author="Guide", id="teal")], session_id="magenta")
    for query in ("user", "guide", "teal", "magenta"):
        assert await found(service, user, query) == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Das Café in Zürich", "cafe ZURICH"),
        ("東京の天気は晴れ", "明日の天気"),
        ("私はPythonを使う", "python"),
        ("Привет, мир", "МИР"),
        ("สวัสดีชาวโลก", "สวัสดี"),
        ("猫", "猫"),
        ("snake_case", "snake_case"),
    ],
)
async def test_words_of_any_script_are_found(
    service: BlackboardMemoryService, user: dict[str, str], text: str, query: str
) -> None:
    await service.add_events_to_memory(**user, events=[said(text), said("something else")])
    assert await found(service, user, query) == [text]


async def test_a_session_added_again_is_remembered_once(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    session = Session(**user, id="s", events=[said("first word")])
    await service.add_session_to_memory(session)
    session.events.append(said("second word"))
    await service.add_session_to_memory(session)
    await asyncio.gather(*[service.add_session_to_memory(session) for _ in range(4)])
    await service.add_events_to_memory(**user, events=session.events, session_id="s")
    assert sorted(await found(service, user, "word")) == ["first word", "second word"]


async def test_users_and_apps_do_not_see_each_other(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    await service.add_events_to_memory(**user, events=[said("secret")], session_id="s")
    for other in (
        {**user, "user_id": "v"},
        {**user, "user_id": "u:s"},
        {**user, "user_id": ""},
        {**user, "app_name": "x"},
    ):
        assert await found(service, other, "secret") == []


async def test_entries_are_remembered_without_a_session(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    entry = MemoryEntry(content=content("likes tea"), author="me", timestamp="then", custom_metadata={"a": 1})
    await service.add_memory(**user, memories=[entry, MemoryEntry(id="x", content=content("likes rain"))])
    await service.add_memory(**user, memories=[MemoryEntry(id="x", content=content("again"))], custom_metadata={"b": 2})
    (memory,) = await memories(service, user, "tea")
    assert memory.model_dump(exclude={"id"}) == entry.model_dump(exclude={"id"})
    assert sorted(await found(service, user, "likes")) == ["likes rain", "likes tea"]
    assert await found(service, user, "again") == []


async def test_a_deleted_memory_stays_away(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    session = Session(**user, id="a:b/c", events=[said("word one"), said("word two")])
    await service.add_session_to_memory(session)
    (memory,) = await memories(service, user, "one")
    for nothing in (None, "", "x", "/", "x/1", "a/b/c", f"{memory.id}9", "é/²", "../1", "a:b/1"):
        await service.delete_memory(**user, memory_id=nothing)
    assert len(await found(service, user, "word")) == 2
    await service.delete_memory(**{**user, "user_id": "v"}, memory_id=memory.id)
    assert len(await found(service, user, "word")) == 2
    await service.delete_memory(**user, memory_id=memory.id)
    await service.delete_memory(**user, memory_id=memory.id)
    await service.add_session_to_memory(session)
    assert await found(service, user, "word") == ["word two"]


async def test_a_search_gives_at_most_ten(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    await service.add_events_to_memory(**user, events=[said(f"word {number}") for number in range(30)])
    assert len(await found(service, user, "word")) == 10
    query = " ".join(f"w{number}" for number in range(1000)) + " word" + "x" * 5000
    assert await found(service, user, query) == []


async def test_many_events_are_added_in_batches(
    service: BlackboardMemoryService, user: dict[str, str], url: str
) -> None:
    events = [said(f"word{number}") for number in range(1100)]
    await service.add_events_to_memory(**user, events=events, session_id="s")
    async with AsyncClient(url) as client:
        board = client.session(service.board_name(*user.values(), "s"))
        assert await board.trajectories.count() == 1100
        assert (await board.describe())["revision"] == 3
    assert await found(service, user, "word1099") == ["word1099"]


async def test_long_contents_are_kept_as_blobs(service: BlackboardMemoryService, user: dict[str, str]) -> None:
    event = said("a picture of teal")
    picture = types.Part(inline_data=types.Blob(data=bytes(range(256)) * 8192, mime_type="image/png"))
    event.content.parts.append(picture)  # type: ignore[union-attr]
    await service.add_events_to_memory(**user, events=[event])
    (memory,) = await memories(service, user, "teal")
    assert memory.content == event.content


async def test_bad_input_is_refused_and_nothing_is_written(
    service: BlackboardMemoryService, user: dict[str, str]
) -> None:
    with pytest.raises(UnsupportedValue):
        await service.add_events_to_memory(**user, events=[said("word")], custom_metadata={"n": float("nan")})
    many = Event(author="user", content=types.Content(parts=[types.Part(text="word " * 12_000)] * 20))
    with pytest.raises(ItemTooLarge):
        await service.add_events_to_memory(**user, events=[said("word"), many])
    assert await found(service, user, "word") == []


async def test_a_server_that_does_not_answer_is_a_clear_exception(user: dict[str, str]) -> None:
    async with AsyncClient("http://127.0.0.1:9", timeout=0.5) as client:
        service = BlackboardMemoryService(client)
        with pytest.raises(ConnectionFailed):
            await service.search_memory(**user, query="word")
        with pytest.raises(ConnectionFailed):
            await service.add_events_to_memory(**user, events=[said("word")])
