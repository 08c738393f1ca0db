"""The session service against a real server."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from agent_blackboard import (
    AsyncClient,
    ConnectionFailed,
    IncompatibleServer,
    ItemTooLarge,
    Unauthorized,
    UnexpectedAnswer,
    UnsupportedValue,
    ValueRefused,
)
from agent_blackboard.adk import BlackboardSessionService


@pytest.fixture
async def service(url: str) -> AsyncIterator[BlackboardSessionService]:
    async with BlackboardSessionService(url=url) as service:
        yield service


@pytest.fixture
def ids(session_name: str) -> dict[str, str]:
    return {"app_name": session_name, "user_id": "u", "session_id": "s"}


def said(text: str, author: str = "user", **options: Any) -> Event:
    return Event(author=author, content=types.Content(role=author, parts=[types.Part(text=text)]), **options)


def changing(delta: dict[str, Any]) -> Event:
    return Event(author="agent", actions=EventActions(state_delta=delta))


def texts(session: Session | None) -> list[Any]:
    assert session is not None
    return [event.content.parts[0].text for event in session.events if event.content and event.content.parts]


async def test_a_session_comes_back_as_it_was_left(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    made = await service.create_session(**ids, state={"a": 1, "app:b": [2], "user:c": {"d": None}, "temp:e": 5})
    assert (made.app_name, made.user_id, made.id) == tuple(ids.values())
    assert made.state == {"a": 1, "app:b": [2], "user:c": {"d": None}}
    assert made.events == []
    event = said(
        "hello", invocation_id="i", branch="x.y", custom_metadata={"k": [1, None]}, long_running_tool_ids={"t"}
    )
    event.content.parts.append(  # type: ignore[union-attr]
        types.Part(function_call=types.FunctionCall(id="f", name="look", args={"at": {"x": 1.5}}))
    )
    event.actions = EventActions(state_delta={"a": 2, "f": {"$": [None]}}, artifact_delta={"file": 3}, escalate=True)
    assert await service.append_event(made, event) is event
    found = await service.get_session(**ids)
    assert found == made
    assert found is not None
    assert found.events == [event]
    assert found.state == {"a": 2, "f": {"$": [None]}, "app:b": [2], "user:c": {"d": None}}
    assert found.last_update_time == event.timestamp


async def test_a_session_without_an_id_is_given_one(service: BlackboardSessionService, session_name: str) -> None:
    made = [await service.create_session(app_name=session_name, user_id="u") for _ in range(2)]
    assert len({session.id for session in made}) == 2
    assert (await service.create_session(app_name=session_name, user_id="u", session_id="")).id


async def test_a_session_is_made_once(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    made = await asyncio.gather(*[service.create_session(**ids) for _ in range(5)], return_exceptions=True)
    assert sorted(type(result) is Session for result in made) == [False] * 4 + [True]
    assert all(isinstance(result, Session | AlreadyExistsError) for result in made)


async def test_what_does_not_exist_is_none(service: BlackboardSessionService, ids: dict[str, str], url: str) -> None:
    assert await service.get_session(**ids) is None
    assert (await service.list_sessions(app_name=ids["app_name"])).sessions == []
    assert await service.get_user_state(app_name=ids["app_name"], user_id="u") == {}
    await service.delete_session(**ids)
    async with AsyncClient(url) as client:
        await client.session(service.board_name(*ids.values())).state.set("of_somebody_else", 1)
    assert await service.get_session(**ids) is None
    assert (await service.list_sessions(app_name=ids["app_name"])).sessions == []
    with pytest.raises(SessionNotFoundError):
        await service.append_event(Session(id="s", app_name=ids["app_name"], user_id="u"), said("a"))


async def test_a_deleted_session_takes_no_event(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    session = await service.create_session(**ids, state={"user:kept": 1})
    await service.append_event(session, said("a"))
    await service.delete_session(**ids)
    assert await service.get_session(**ids) is None
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, said("b"))
    assert await service.get_session(**ids) is None
    anew = await service.create_session(**ids)
    assert (anew.events, anew.state) == ([], {"user:kept": 1})
    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("c"))
    assert texts(await service.get_session(**ids)) == []


async def test_scopes_of_the_state_reach_as_far_as_they_say(
    service: BlackboardSessionService, session_name: str
) -> None:
    app = {"app_name": session_name}
    first = await service.create_session(**app, user_id="u", session_id="1")
    delta = {"mine": 1, "user:ours": {"n": [1, {"m": None}]}, "app:all": None, "temp:now": 9}
    event = await service.append_event(first, changing(dict(delta)))
    assert first.state == delta
    assert "temp:now" not in event.actions.state_delta
    stored = await service.get_session(**app, user_id="u", session_id="1")
    assert stored is not None
    assert stored.state == {"mine": 1, "user:ours": {"n": [1, {"m": None}]}, "app:all": None}
    sibling = await service.create_session(**app, user_id="u", session_id="2", state={"user:more": True})
    assert sibling.state == {"user:ours": {"n": [1, {"m": None}]}, "user:more": True, "app:all": None}
    stranger = await service.create_session(**app, user_id="v", session_id="3")
    assert stranger.state == {"app:all": None}
    assert (await service.create_session(app_name=session_name + "2", user_id="u")).state == {}
    assert await service.get_user_state(**app, user_id="u") == {"ours": {"n": [1, {"m": None}]}, "more": True}


async def test_a_value_of_the_state_is_replaced_not_merged(
    service: BlackboardSessionService, ids: dict[str, str]
) -> None:
    session = await service.create_session(**ids, state={"a": {"old": 1}, "user:a": {"old": 1}})
    await service.append_event(session, changing({"a": {"new": None}, "user:a": {}, "b": None}))
    found = await service.get_session(**ids)
    assert found is not None
    assert found.state == {"a": {"new": None}, "b": None, "user:a": {}}


async def test_any_text_is_a_key_of_the_state(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    keys = ["", ".", "..", "a/b", "~", "~1", "%", "%41", "%2E", "é\n", "a.b", "user:", "user:a/b", "app:..", "x" * 999]
    state = {key: number for number, key in enumerate(keys)}
    session = await service.create_session(**ids)
    await service.append_event(session, changing(dict(state)))
    found = await service.get_session(**ids)
    assert found is not None
    assert found.state == session.state == state
    assert await service.get_user_state(app_name=ids["app_name"], user_id="u") == {"": 11, "a/b": 12}


async def test_values_without_json_are_stored_as_text(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    session = await service.create_session(
        **ids, state={"set": {1}, "bytes": b"\xff", "call": len, "part": types.Part()}
    )
    assert session.state["set"] == [1]
    assert session.state["bytes"] == "_w=="
    assert isinstance(session.state["call"], str)
    found = await service.get_session(**ids)
    assert found is not None
    assert found.state == session.state


async def test_lists_are_by_user_and_by_time(service: BlackboardSessionService, session_name: str) -> None:
    app = {"app_name": session_name}
    for number, user in enumerate(["u", "v", "u", "w:x"]):
        session = await service.create_session(**app, user_id=user, session_id=f"{number}", state={"user:n": number})
        await service.append_event(session, said("a", timestamp=100.0 - number))
    listed = (await service.list_sessions(**app)).sessions
    assert [(session.user_id, session.id) for session in listed] == [("w:x", "3"), ("u", "2"), ("v", "1"), ("u", "0")]
    assert [session.state for session in listed] == [{"user:n": 3}, {"user:n": 2}, {"user:n": 1}, {"user:n": 2}]
    assert all(session.events == [] for session in listed)
    assert [session.id for session in (await service.list_sessions(**app, user_id="u")).sessions] == ["2", "0"]
    assert [session.id for session in (await service.list_sessions(**app, user_id="w:x")).sessions] == ["3"]
    assert (await service.list_sessions(**app, user_id="w")).sessions == []
    await service.append_event(listed[0], said("b"))


@pytest.mark.parametrize(
    "text", [".", "..", "a/b", ":", "a:b:c:d", "%", "%3A", "\x00\r\n\x7f\x85", "é☃", "\udc80", "long " * 100, "é" * 200]
)
async def test_any_text_is_an_id(service: BlackboardSessionService, session_name: str, text: str) -> None:
    app, user, identity = f"{session_name}{text}", f"{text}", f"{text}"
    made = await service.create_session(
        app_name=app, user_id=user, session_id=identity, state={"app:a": 1, "user:b": 2}
    )
    await service.append_event(made, changing({"user:c": 3}))
    found = await service.get_session(app_name=app, user_id=user, session_id=identity)
    assert found == made
    listed = (await service.list_sessions(app_name=app)).sessions
    assert [(one.app_name, one.user_id, one.id) for one in listed] == [(app, user, identity)]
    assert listed[0].state == {"app:a": 1, "user:b": 2, "user:c": 3}
    assert len(service.board_name(app, user, identity).encode()) <= 256
    assert await service.get_session(app_name=app, user_id=user, session_id=identity + "'") is None


async def test_ids_that_could_be_mixed_up_are_different_boards(service: BlackboardSessionService) -> None:
    names = {
        service.board_name(*ids) for ids in [("a:b", "c"), ("a", "b:c"), ("a", "b", "c"), ("a%3Ab", "c"), ("a", "")]
    }
    assert len(names) == 5


async def test_a_stale_writer_is_refused_and_has_written_nothing(url: str, ids: dict[str, str]) -> None:
    async with BlackboardSessionService(url=url) as one, BlackboardSessionService(url=url) as other:
        await one.create_session(**ids, state={"n": 0})
        mine, theirs = await one.get_session(**ids), await other.get_session(**ids)
        assert mine is not None
        assert theirs is not None
        await one.append_event(mine, said("first"))
        event = said("stale", actions=EventActions(state_delta={"n": 1, "app:n": 1, "user:n": 1}))
        with pytest.raises(StaleSessionError):
            await other.append_event(theirs, event)
        assert theirs.events == []
        await one.append_event(mine, said("second"))
        found = await other.get_session(**ids)
        assert found is not None
        assert texts(found) == ["first", "second"]
        assert found.state == {"n": 0}
        await other.append_event(found, said("third"))
        with pytest.raises(StaleSessionError):
            await one.append_event(mine, said("stale"))
        assert texts(await one.get_session(**ids)) == ["first", "second", "third"]


async def test_of_writers_at_once_exactly_one_wins_each_round(url: str, ids: dict[str, str]) -> None:
    async with BlackboardSessionService(url=url) as maker:
        await maker.create_session(**ids)
    services = [BlackboardSessionService(url=url) for _ in range(4)]
    for number in range(10):
        sessions = [await service.get_session(**ids) for service in services]
        results = await asyncio.gather(
            *[
                service.append_event(session, said(f"{number}"))
                for service, session in zip(services, sessions, strict=True)
                if session is not None
            ],
            return_exceptions=True,
        )
        assert sum(isinstance(result, Event) for result in results) == 1
        assert sum(isinstance(result, StaleSessionError) for result in results) == 3
    assert texts(await services[0].get_session(**ids)) == [str(number) for number in range(10)]
    for service in services:
        await service.close()


async def test_branches_that_share_a_session_object_take_turns(
    service: BlackboardSessionService, ids: dict[str, str]
) -> None:
    session = await service.create_session(**ids)
    await asyncio.gather(*[service.append_event(session, said(str(number))) for number in range(20)])
    found = await service.get_session(**ids)
    assert found is not None
    assert found.events == session.events
    assert sorted(map(int, texts(found))) == list(range(20))


async def test_a_session_made_by_hand_is_current_if_its_last_event_is(
    service: BlackboardSessionService, ids: dict[str, str]
) -> None:
    session = await service.create_session(**ids)
    by_hand = Session(id="s", app_name=ids["app_name"], user_id="u")
    await service.append_event(by_hand, said("a"))
    with pytest.raises(StaleSessionError):
        await service.append_event(Session(id="s", app_name=ids["app_name"], user_id="u"), said("b"))
    restored = Session.model_validate_json(by_hand.model_dump_json())
    await service.append_event(restored, said("b"))
    copied = copy.deepcopy(restored)
    await service.append_event(copied, said("c"))
    with pytest.raises(StaleSessionError):
        await service.append_event(restored, said("d"))
    with pytest.raises(StaleSessionError):
        await service.append_event(session, said("d"))
    assert texts(await service.get_session(**ids)) == ["a", "b", "c"]


async def test_other_writers_of_the_board_make_no_session_stale(
    service: BlackboardSessionService, ids: dict[str, str], url: str
) -> None:
    session = await service.create_session(**ids)
    async with AsyncClient(url) as client:
        board = client.session(service.board_name(*ids.values()))
        await board.questions.append({"question": "Go on?"})
        await board.state.set("values/from_a_person", 1)
    await service.append_event(session, said("a"))
    found = await service.get_session(**ids)
    assert found is not None
    assert found.state == {"from_a_person": 1}


async def test_a_partial_event_is_not_stored(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    session = await service.create_session(**ids)
    event = said("par", partial=True)
    assert await service.append_event(session, event) is event
    assert session.events == []
    assert texts(await service.get_session(**ids)) == []


async def test_recent_events_are_by_number_and_time(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    session = await service.create_session(**ids)
    for number in range(6):
        await service.append_event(session, said(str(number), timestamp=float(number)))

    async def recent(**options: Any) -> list[Any]:
        found = await service.get_session(**ids, config=GetSessionConfig(**options))
        assert found is not None
        await service.append_event(copy.deepcopy(found), said("x", partial=True))
        return texts(found)

    assert await recent() == ["0", "1", "2", "3", "4", "5"]
    assert await recent(num_recent_events=0) == []
    assert await recent(num_recent_events=2) == ["4", "5"]
    assert await recent(num_recent_events=99) == ["0", "1", "2", "3", "4", "5"]
    assert await recent(after_timestamp=3.0) == ["3", "4", "5"]
    assert await recent(after_timestamp=0.0) == ["0", "1", "2", "3", "4", "5"]
    assert await recent(after_timestamp=1.0, num_recent_events=2) == ["4", "5"]
    trimmed = await service.get_session(**ids, config=GetSessionConfig(num_recent_events=1))
    assert trimmed is not None
    await service.append_event(trimmed, said("6"))


async def test_a_reader_sees_events_and_state_of_one_commit(
    service: BlackboardSessionService, ids: dict[str, str]
) -> None:
    session = await service.create_session(**ids, state={"n": 0})

    async def write() -> None:
        for number in range(1, 31):
            await service.append_event(session, changing({"n": number}))

    writing = asyncio.ensure_future(write())
    while not writing.done():
        found = await service.get_session(**ids)
        assert found is not None
        assert found.state["n"] == len(found.events)
    await writing


async def test_images_and_long_texts_are_kept_as_blobs(service: BlackboardSessionService, ids: dict[str, str]) -> None:
    session = await service.create_session(**ids)
    event = said("look " * 20_000)
    picture = types.Blob(mime_type="image/png", data=bytes(range(256)) * 8192)
    event.content.parts.append(types.Part(inline_data=picture))  # type: ignore[union-attr]
    await service.append_event(session, event)
    found = await service.get_session(**ids)
    assert found is not None
    assert found.events == [event]


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (changing({"n": float("nan")}), UnsupportedValue),
        (changing({"s": "\ud800"}), UnsupportedValue),
        (changing({str(n): n for n in range(901)}), UnsupportedValue),
        (changing({"n": 10**5000}), (UnsupportedValue, ValueRefused, ValueError)),
        (changing({"list": ["x" * 60_000] * 20}), ItemTooLarge),
        (said("\ud800"), (UnsupportedValue, ValueError)),
    ],
)
async def test_a_bad_event_is_refused_and_nothing_is_written(
    service: BlackboardSessionService, ids: dict[str, str], event: Event, problem: Any
) -> None:
    session = await service.create_session(**ids)
    with pytest.raises(problem):
        await service.append_event(session, event)
    assert session.events == []
    assert session.state == {}
    assert await service.get_session(**ids) == session
    await service.append_event(session, said("a"))


async def test_an_event_survives_the_death_of_the_server(server: Any, ids: dict[str, str]) -> None:
    async with BlackboardSessionService(url=server.url) as service:
        session = await service.create_session(**ids)

        reached = {number: asyncio.Event() for number in (10, 25)}

        async def write() -> None:
            for number in range(40):
                if number in reached:
                    reached[number].set()
                await service.append_event(session, changing({"n": number, "user:n": number, "app:n": number}))

        writing = asyncio.ensure_future(write())
        for event in reached.values():
            await event.wait()
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await writing
        found = await service.get_session(**ids)
        assert found == session
        assert found is not None
        assert [event.actions.state_delta["n"] for event in found.events] == list(range(40))
        assert found.state == {"n": 39, "user:n": 39, "app:n": 39}


async def test_a_change_that_its_writer_could_not_finish_is_done_once_by_the_next_reader(
    service: BlackboardSessionService, ids: dict[str, str], url: str
) -> None:
    await service.create_session(**ids)
    noted = {"app": {"a": 1}, "user": {"b": 2}}
    async with AsyncClient(url) as client:
        board = client.session(service.board_name(*ids.values()))
        app = client.session(service.board_name(ids["app_name"]))
        await board.state.set("noted/c1", noted)
        found = await service.get_session(**ids)
        assert found is not None
        assert found.state == {"app:a": 1, "user:b": 2}
        assert await board.state.get("noted/c1") is None
        # It died after the change and before it had forgotten the note; meanwhile another writer was there.
        await app.state.set("values/a", "newer")
        await board.state.set("noted/c1", noted)
        found = await service.get_session(**ids)
        assert found is not None
        assert found.state == {"app:a": "newer", "user:b": 2}


async def test_a_note_that_cannot_be_done_leaves_the_session_readable(
    service: BlackboardSessionService, ids: dict[str, str], url: str, caplog: pytest.LogCaptureFixture
) -> None:
    session = await service.create_session(**ids)
    async with AsyncClient(url) as client:
        await client.session(service.board_name(ids["app_name"])).state.set("values", "no object")
        with pytest.raises(Exception, match="not-an-object"):
            await service.append_event(session, changing({"app:a": 1, "b": 2}))
        assert len(session.events) == 1
        await client.session(service.board_name(ids["app_name"])).state.set("values", {})
        await service.append_event(session, said("a"))
        await client.session(service.board_name(ids["app_name"])).state.set("values", {"x": {"$blob": 1}})
        board = client.session(service.board_name(*ids.values()))
        await board.state.set("noted/bad", {"app": {"a/b": {"$blob": "0"}, "": 1}})
    with caplog.at_level(logging.WARNING):
        found = await service.get_session(**ids)
    assert found is not None
    assert found.state["app:a"] == 1
    assert "was not changed" in caplog.text


async def test_the_in_memory_service_gives_the_same(service: BlackboardSessionService, session_name: str) -> None:
    async def play(service: Any) -> list[Any]:
        results: list[Any] = []
        first = await service.create_session(
            app_name=session_name, user_id="u", session_id="1", state={"a": 1, "user:b": 2}
        )
        for number in range(4):
            delta = {"a": number, "app:c": [number], "temp:d": number}
            await service.append_event(
                first, said(str(number), id=str(number), timestamp=number, actions={"state_delta": delta})
            )
        await service.create_session(app_name=session_name, user_id="v", session_id="2")
        results.append(first)
        for user, identity in (("u", "1"), ("v", "2"), ("w", "3")):
            results.append(await service.get_session(app_name=session_name, user_id=user, session_id=identity))
        config = GetSessionConfig(num_recent_events=3, after_timestamp=2)
        results.append(await service.get_session(app_name=session_name, user_id="u", session_id="1", config=config))
        results.append(await service.get_user_state(app_name=session_name, user_id="u"))
        listed = (await service.list_sessions(app_name=session_name)).sessions
        results.append([(session.id, session.state) for session in listed])
        return [
            result.model_dump(exclude={"last_update_time"} if result.id == "2" else None)
            if isinstance(result, Session)
            else result
            for result in results
        ]

    assert await play(service) == await play(InMemorySessionService())


def test_one_service_serves_several_event_loops(url: str, ids: dict[str, str]) -> None:
    service = BlackboardSessionService(url=url)
    session = asyncio.run(service.create_session(**ids))
    asyncio.run(service.append_event(session, said("a")))
    assert texts(asyncio.run(service.get_session(**ids))) == ["a"]


async def test_a_given_client_stays_open(url: str, ids: dict[str, str]) -> None:
    async with AsyncClient(url) as client:
        async with BlackboardSessionService(client) as service:
            await service.create_session(**ids)
        assert await service.get_session(**ids) is not None


async def test_a_server_that_does_not_answer_is_a_clear_exception(ids: dict[str, str]) -> None:
    async with AsyncClient("http://127.0.0.1:9", timeout=0.5) as client:
        service = BlackboardSessionService(client)
        for attempt in (service.get_session(**ids), service.create_session(**ids)):
            with pytest.raises(ConnectionFailed):
                await attempt


async def test_a_server_of_another_kind_is_a_clear_exception(ids: dict[str, str]) -> None:
    async def html(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>"
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(html, "127.0.0.1", 0)
    async with server, AsyncClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
        service = BlackboardSessionService(client)
        for attempt in (service.get_session(**ids), service.create_session(**ids), service.list_sessions(app_name="a")):
            with pytest.raises((IncompatibleServer, UnexpectedAnswer)):
                await attempt


async def test_a_wrong_token_is_a_clear_exception(server: Any, ids: dict[str, str]) -> None:
    token = server.token("--name", "t", "--anyway")
    async with BlackboardSessionService(url=server.url, token=token) as service:
        await service.create_session(**ids)
    async with BlackboardSessionService(url=server.url, token=token[:-1] + "~") as service:
        with pytest.raises(Unauthorized):
            await service.get_session(**ids)
        with pytest.raises(Unauthorized):
            await service.create_session(**ids)
