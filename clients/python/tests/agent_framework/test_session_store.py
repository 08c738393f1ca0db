"""Agent sessions of Microsoft Agent Framework on a board."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    FileSessionStore,
    InMemoryHistoryProvider,
    Message,
    SessionStore,
    register_state_type,
)

from agent_blackboard import AsyncClient, BodyTooLarge, UnsupportedValue
from agent_blackboard.agent_framework import BlackboardSessionStore


class Basket:
    """A type of an application's own, registered as the framework asks."""

    def __init__(self, goods: list[str]) -> None:
        self.goods = goods

    def to_dict(self) -> dict[str, Any]:
        return {"goods": self.goods}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Basket":
        return cls(data["goods"])


register_state_type(Basket, type_id="blackboard.tests.basket")


class OwnSession(AgentSession):
    pass


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(url) as client:
        yield client


@pytest.fixture
def store(client: AsyncClient, session_name: str) -> BlackboardSessionStore:
    return BlackboardSessionStore(client, session=session_name)


def a_session(identifier: str = "s1", **state: Any) -> AgentSession:
    session = AgentSession(session_id=identifier)
    session.state.update(state)
    return session


@pytest.mark.parametrize("kind", ["memory", "file", "board"])
async def test_every_store_of_the_framework_behaves_alike(
    kind: str, store: BlackboardSessionStore, tmp_path: Path
) -> None:
    used: SessionStore = {"memory": SessionStore(), "file": FileSessionStore(tmp_path), "board": store}[kind]
    assert await used.get("s1") is None
    session = a_session("inner", count=1, turns=[Message("user", ["hello"])], basket=Basket(["tea"]))
    session.service_session_id = (
        {"conversation": "c1"} if kind == "memory" else MappingProxyType({"conversation": "c1"})
    )
    await used.set("s1", session)
    session.state["count"] = 2
    first, second = await used.get("s1"), await used.get("s1")
    assert first is not None
    assert second is not None
    assert first is not second
    assert (first.session_id, first.service_session_id) == ("inner", {"conversation": "c1"})
    assert first.state["count"] == 1
    assert first.state["turns"][0].text == "hello"
    assert first.state["basket"].goods == ["tea"]
    await used.set("s1", session)
    assert (await used.get("s1")).state["count"] == 2  # type: ignore[union-attr]
    assert (await used.get("s/2")) is None
    await used.delete("s1")
    await used.delete("s1")
    assert await used.get("s1") is None
    with pytest.raises(ValueError, match="non-empty"):
        await used.get("")
    with pytest.raises(ValueError, match="non-empty"):
        await used.set("", session)
    with pytest.raises(ValueError, match="non-empty"):
        await used.delete("")


async def test_an_agent_goes_on_in_another_process(store: BlackboardSessionStore, client: AsyncClient) -> None:
    from .test_history import Parrot

    def agent() -> Agent:
        return Agent(client=Parrot(), name="parrot", context_providers=[InMemoryHistoryProvider()])

    session = a_session()
    await agent().run("one", session=session)
    await store.set("chat", session)
    restored = await store.get("chat")
    answer = await agent().run("two", session=restored)
    assert answer.text == "heard: one | heard: one | two"


@pytest.mark.parametrize("identifier", ["a/b~c", "é%20 ?#", "a\nb", "..", "x" * 2000])
async def test_any_id_is_a_key(store: BlackboardSessionStore, identifier: str) -> None:
    await store.set(identifier, a_session(mark=identifier))
    found = await store.get(identifier)
    assert found is not None
    assert found.state == {"mark": identifier}
    await store.delete(identifier)
    assert await store.get(identifier) is None


async def test_a_subclass_is_refused(store: BlackboardSessionStore) -> None:
    with pytest.raises(TypeError, match="OwnSession"):
        await store.set("s1", OwnSession(session_id="s1"))
    assert await store.get("s1") is None


@pytest.mark.filterwarnings("ignore:AgentSession state value")
@pytest.mark.parametrize(
    "value", [object(), float("inf"), "\ud800", b"bytes"], ids=["object", "inf", "surrogate", "bytes"]
)
async def test_a_state_that_cannot_be_restored_leaves_the_former_one(store: BlackboardSessionStore, value: Any) -> None:
    await store.set("s1", a_session(value="former"))
    with pytest.raises(UnsupportedValue, match="s1"):
        await store.set("s1", a_session(value=value))
    found = await store.get("s1")
    assert found is not None
    assert found.state == {"value": "former"}


async def test_a_state_beyond_the_bounds_leaves_the_former_one(store: BlackboardSessionStore) -> None:
    await store.set("s1", a_session(value="former"))
    with pytest.raises(BodyTooLarge):
        await store.set("s1", a_session(value="x" * (33 << 20)))
    found = await store.get("s1")
    assert found is not None
    assert found.state == {"value": "former"}


async def test_a_snapshot_that_is_none_is_an_error(
    store: BlackboardSessionStore, client: AsyncClient, session_name: str
) -> None:
    board = client.session(session_name)
    for content in (b"no json", b'{"version":9}', b"[]", b'{"version":1,"session":{}}'):
        blob = await board.blobs.put(content)
        await board.state.set("sessions/s1", blob.ref)
        with pytest.raises(ValueError, match="session 's1' cannot be restored"):
            await store.get("s1")


async def test_a_snapshot_is_readable_json_and_expires(client: AsyncClient, session_name: str) -> None:
    store = BlackboardSessionStore(client, session=session_name, ttl=3600, history=None)
    await store.set("s1", a_session(value="é"))
    board = client.session(session_name)
    record = await board.state.get("sessions/s1")
    assert json.loads(await board.blobs.get(record["$blob"]))["session"]["state"] == {"value": "é"}
    await BlackboardSessionStore(client, session=session_name, ttl=0.2, history=None).set("s1", a_session())
    await board.state.wait("sessions/s1", "absent", wait=60)
    assert await store.get("s1") is None
    assert "history" not in (await board.describe())["settings"]


async def test_a_board_that_exists_keeps_its_settings(client: AsyncClient, session_name: str) -> None:
    board = client.session(session_name)
    await board.configure({"history": "1d"})
    await BlackboardSessionStore(client, session=session_name).set("s1", a_session())
    assert (await board.describe())["settings"]["history"] == "1d"


async def test_a_new_board_retains_little_history(
    store: BlackboardSessionStore, client: AsyncClient, session_name: str
) -> None:
    for turn in range(3):
        await store.set("s1", a_session(turn=turn))
    described = await client.session(session_name).describe()
    assert described["settings"]["history"] == 64
    # One commit for the settings, and two for each snapshot: its blob and the value that names it.
    assert described["revision"] == 7
