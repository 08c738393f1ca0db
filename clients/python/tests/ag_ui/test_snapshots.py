"""Snapshots of AG-UI threads on a board, beside the framework's store in memory."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import httpx
import pytest
from agent_framework import Agent, BaseChatClient, ChatResponse, ChatResponseUpdate, Message, ResponseStream
from agent_framework.ag_ui import add_agent_framework_fastapi_endpoint
from agent_framework_ag_ui import AGUIThreadSnapshot, AGUIThreadSnapshotStore, InMemoryAGUIThreadSnapshotStore
from fastapi import FastAPI

from agent_blackboard import (
    AsyncClient,
    AsyncSession,
    BodyTooLarge,
    ConditionFailed,
    ConnectionFailed,
    ItemTooLarge,
    UnsupportedValue,
)
from agent_blackboard.ag_ui import BlackboardThreadSnapshotStore

Script = Callable[[AGUIThreadSnapshotStore, str], Awaitable[Any]]


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(url) as client:
        yield client


@pytest.fixture
def store(client: AsyncClient, session_name: str) -> BlackboardThreadSnapshotStore:
    return BlackboardThreadSnapshotStore(client, prefix=f"ag-ui-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def board(client: AsyncClient, store: BlackboardThreadSnapshotStore) -> AsyncSession:
    return client.session(store.board("ann", "t1"))


def said(*texts: str, **members: Any) -> AGUIThreadSnapshot:
    messages = [{"id": f"m{n}", "role": "user", "content": text} for n, text in enumerate(texts)]
    return AGUIThreadSnapshot(messages=messages, **members)


async def saves_and_gets(store: AGUIThreadSnapshotStore, scope: str) -> Any:
    seen: list[Any] = [await store.get(scope=scope, thread_id="t1")]
    for snapshot in (
        said("hello", state={"n": 1, "deep": [{"a": None}]}, interrupt=[{"id": "i1"}], session_state={"s": "é🙂"}),
        said("hello", "again"),
        said(),
        said(state={}, interrupt=[], session_state={}),
    ):
        await store.save(scope=scope, thread_id="t1", snapshot=snapshot)
        snapshot.messages.append({"id": "changed since"})
        first, second = [await store.get(scope=scope, thread_id="t1") for _ in range(2)]
        assert first is not None
        assert second is not None
        assert first.messages is not second.messages
        seen.append(first)
    seen.append(await store.get(scope=scope, thread_id="t2"))
    seen.append(await store.get(scope=scope + "2", thread_id="t1"))
    return seen


async def deletes(store: AGUIThreadSnapshotStore, scope: str) -> Any:
    keys = [(scope, "t1"), (scope, "t2"), (scope + ":", "t1"), (scope + "2", "t1"), (scope, "t1:x")]

    async def left() -> list[bool]:
        return [await store.get(scope=key[0], thread_id=key[1]) is not None for key in keys]

    for key in keys:
        await store.save(scope=key[0], thread_id=key[1], snapshot=said("hello"))
    seen: list[Any] = [await left()]
    for _ in range(2):
        seen += [await store.delete(scope=scope, thread_id="t1"), await left()]
    await store.save(scope=scope, thread_id="t1", snapshot=said("anew"))
    seen.append(await store.get(scope=scope, thread_id="t1"))
    for cleared in (scope, scope, None):
        await store.clear(scope=cleared)
        seen.append(await left())
    return seen


async def keys_that_are_none(store: AGUIThreadSnapshotStore, scope: str) -> Any:
    seen = []
    for key in ({"scope": "", "thread_id": "t"}, {"scope": "s", "thread_id": ""}, {"scope": None, "thread_id": "t"}):
        for call in (store.get, store.delete, lambda **key: store.save(snapshot=said(), **key)):
            try:
                await call(**key)  # type: ignore[arg-type]
            except (TypeError, ValueError) as error:
                seen.append(type(error))
    return seen


@pytest.mark.parametrize("script", [saves_and_gets, deletes, keys_that_are_none])
async def test_a_board_does_what_the_store_in_memory_does(script: Script, store: BlackboardThreadSnapshotStore) -> None:
    assert isinstance(store, AGUIThreadSnapshotStore)
    assert await script(store, "ann") == await script(InMemoryAGUIThreadSnapshotStore(), "ann")


@pytest.mark.parametrize("identifier", ["a/b", "é%20 ?#", "..", "a\nb", "x" * 500])
async def test_any_text_is_an_id(store: BlackboardThreadSnapshotStore, identifier: str) -> None:
    await store.save(scope=identifier, thread_id=identifier, snapshot=said("hello"))
    assert await store.get(scope=identifier, thread_id=identifier) == said("hello")
    await store.clear(scope=identifier)
    assert await store.get(scope=identifier, thread_id=identifier) is None


async def test_a_save_is_one_commit_that_shows_new_messages(
    store: BlackboardThreadSnapshotStore, board: AsyncSession
) -> None:
    await store.save(scope="ann", thread_id="t1", snapshot=said("tea", state={"cups": 1}))
    await store.save(scope="ann", thread_id="t1", snapshot=said("tea", "at four", state={"cups": 2}))
    await store.save(scope="ann", thread_id="t1", snapshot=said("coffee", "at four", state={"cups": 2}))
    logged = [item["content"] async for item in board.trajectories.items()]
    assert logged == ["tea", "at four", "coffee"]
    described = await board.describe()
    assert described["revision"] == 3
    assert await board.state.get("thread/state/cups") == 2
    assert await board.state.get("thread/id") == "t1"


async def test_a_long_string_is_a_blob_that_is_sent_once(
    store: BlackboardThreadSnapshotStore, board: AsyncSession
) -> None:
    picture = "A" * 3_000_000
    for turn in range(3):
        await store.save(scope="ann", thread_id="t1", snapshot=said(picture, state={"turn": turn}))
    assert (await board.describe())["revision"] == 4
    found = await store.get(scope="ann", thread_id="t1")
    assert found == said(picture, state={"turn": 2})


@pytest.mark.parametrize(
    ("snapshot", "error"),
    [
        (said("hello", state={"n": float("nan")}), UnsupportedValue),
        (said("\ud800"), UnsupportedValue),
        (said(object()), UnsupportedValue),  # type: ignore[arg-type]
        (said(["x" * 1000] * 1200), ItemTooLarge),  # type: ignore[arg-type]
        (said("hello", state={"lines": ["x" * 1000] * 9000}), BodyTooLarge),
    ],
    ids=["nan", "surrogate", "object", "message", "snapshot"],
)
async def test_what_cannot_be_stored_leaves_the_former_one(
    store: BlackboardThreadSnapshotStore, snapshot: AGUIThreadSnapshot, error: type[Exception]
) -> None:
    await store.save(scope="ann", thread_id="t1", snapshot=said("former"))
    with pytest.raises(error):
        await store.save(scope="ann", thread_id="t1", snapshot=snapshot)
    assert await store.get(scope="ann", thread_id="t1") == said("former")


async def test_many_new_messages_are_one_commit(store: BlackboardThreadSnapshotStore, board: AsyncSession) -> None:
    snapshot = said(*(f"message {n}" for n in range(1500)))
    await store.save(scope="ann", thread_id="t1", snapshot=snapshot)
    assert await store.get(scope="ann", thread_id="t1") == snapshot
    assert (await board.describe())["revision"] == 1
    (last,) = await board.trajectories.latest(1)
    assert last.item["content"] == "message 1499"
    assert await board.trajectories.count() == 900


async def test_concurrent_writers_lose_no_message(store: BlackboardThreadSnapshotStore, board: AsyncSession) -> None:
    texts = [f"said {n}" for n in range(30)]
    await asyncio.gather(*(store.save(scope="ann", thread_id="t1", snapshot=said(text)) for text in texts))
    logged = [item["content"] async for item in board.trajectories.items()]
    assert sorted(logged) == sorted(texts)
    found = await store.get(scope="ann", thread_id="t1")
    assert found == said(logged[-1])


async def test_a_writer_that_always_loses_gives_up(
    store: BlackboardThreadSnapshotStore, board: AsyncSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_blackboard.ag_ui.TRIES_MAX", 3)
    transact = AsyncSession.transact

    async def overtaken(session: AsyncSession, *arguments: Any, **options: Any) -> Any:
        await board.state.set("thread", {"messages": [str(uuid.uuid4())]})
        return await transact(session, *arguments, **options)

    monkeypatch.setattr(AsyncSession, "transact", overtaken)
    with pytest.raises(ConditionFailed, match="3 times"):
        await store.save(scope="ann", thread_id="t1", snapshot=said("hello"))


async def test_what_is_no_snapshot_on_the_board_is_an_error(
    store: BlackboardThreadSnapshotStore, board: AsyncSession
) -> None:
    for value in ("text", {"messages": 1}, [], {}):
        await board.state.set("thread", value)
        with pytest.raises(ValueError, match="no snapshot"):
            await store.get(scope="ann", thread_id="t1")
    await store.save(scope="ann", thread_id="t1", snapshot=said("hello"))
    assert await store.get(scope="ann", thread_id="t1") == said("hello")


async def test_settings_are_those_of_a_new_board(client: AsyncClient, session_name: str) -> None:
    prefix = f"chat-{uuid.uuid4().hex[:8]}"
    for ttl in ("30d", "1d"):
        store = BlackboardThreadSnapshotStore(client, prefix=prefix, settings={"ttl": ttl})
        board = client.session(store.board("ann", "t1"))
        await board.state.delete("thread", missing_ok=True)
        await store.save(scope="ann", thread_id="t1", snapshot=said("hello"))
        assert (await board.describe())["settings"]["ttl"] == "30d"


async def test_a_server_that_is_away_is_an_error() -> None:
    async with AsyncClient("http://127.0.0.1:9", timeout=0.2) as client:
        with pytest.raises(ConnectionFailed):
            await BlackboardThreadSnapshotStore(client).get(scope="ann", thread_id="t1")


async def test_a_killed_server_loses_and_doubles_no_message(server: Any) -> None:
    async with BlackboardThreadSnapshotStore(url=server.url) as store:
        texts: list[str] = []
        for number in range(30):
            if number % 10 == 5:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            texts.append(f"said {number}")
            await store.save(scope="ann", thread_id="t1", snapshot=said(*texts))
        session = store._session("ann", "t1")
        assert [item["content"] async for item in session.trajectories.items()] == texts
        assert await store.get(scope="ann", thread_id="t1") == said(*texts)


class Parrot(BaseChatClient):
    """A model that says all it has heard, unless it has an answer."""

    ANSWER = ""

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, options: Any, **kwargs: Any) -> Any:
        heard = self.ANSWER or "heard: " + " | ".join(message.text for message in messages if message.role == "user")

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=[{"type": "text", "text": heard}])

        async def respond() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [heard])])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else respond()


def application(store: AGUIThreadSnapshotStore) -> FastAPI:
    app = FastAPI()
    add_agent_framework_fastapi_endpoint(
        app,
        Agent(client=Parrot(), name="parrot"),
        "/agent",
        snapshot_store=store,
        snapshot_scope_resolver=lambda request: "ann",
    )
    return app


async def events_of(app: FastAPI, *messages: str) -> list[dict[str, Any]]:
    """The events of a run, without the ids that are made anew in each."""
    sent = [{"id": f"u{text}", "role": "user", "content": text} for text in messages]
    body = {"threadId": "t1", "runId": "r1", "state": {}, "messages": sent, "tools": [], "context": []}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        answer = await http.post("/agent", json={**body, "forwardedProps": {}}, timeout=60)
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    for event in events:
        event.pop("messageId", None)
        for message in event.get("messages", []):
            message.pop("id", None)
    return events


async def test_an_endpoint_answers_as_over_the_store_in_memory(store: BlackboardThreadSnapshotStore) -> None:
    async def conversation(used: AGUIThreadSnapshotStore) -> list[Any]:
        # Each run is an application of its own, as after a restart. The last one asks for the thread as it stands.
        return [await events_of(application(used), *messages) for messages in (["one"], ["one", "two"], [])]

    over_board = await conversation(store)
    assert over_board == await conversation(InMemoryAGUIThreadSnapshotStore())
    hydrated = next(event for event in over_board[2] if event["type"] == "MESSAGES_SNAPSHOT")
    contents = [message["content"] for message in hydrated["messages"]]
    assert contents == ["one", "heard: one", "two", "heard: one | two"]
