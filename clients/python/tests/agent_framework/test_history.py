"""Conversation history of Microsoft Agent Framework on a board."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FileHistoryProvider,
    HistoryProvider,
    Message,
    ResponseStream,
)

# The rule that the framework's own providers follow, against which ours is compared.
from agent_framework._sessions import filter_new_messages

from agent_blackboard import AsyncClient, BodyTooLarge, ConnectionFailed, ItemTooLarge, UnsupportedValue
from agent_blackboard.agent_framework import BlackboardHistoryProvider, _first_unsaved


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(url) as client:
        yield client


@pytest.fixture
def provider(client: AsyncClient) -> BlackboardHistoryProvider:
    return BlackboardHistoryProvider(client)


class Parrot(BaseChatClient):
    """A model that tells what it was given."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        said = " | ".join(message.text for message in messages)

        async def respond() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [f"heard: {said}"])])

        return respond()


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def dicts(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in messages]


async def revision(client: AsyncClient, name: str) -> int:
    return int((await client.session(name).describe())["revision"])


async def test_an_agent_remembers_the_turn_before(
    client: AsyncClient, provider: BlackboardHistoryProvider, session_name: str
) -> None:
    agent = Agent(client=Parrot(), name="parrot", context_providers=[provider])
    await agent.run("one", session=AgentSession(session_id=session_name))
    answer = await agent.run("two", session=AgentSession(session_id=session_name))
    assert answer.text == "heard: one | heard: one | two"
    kept = await provider.get_messages(session_name)
    assert [(message.role, message.text) for message in kept] == [
        ("user", "one"),
        ("assistant", "heard: one"),
        ("user", "two"),
        ("assistant", "heard: one | heard: one | two"),
    ]
    assert await revision(client, session_name) == 2


async def test_one_call_is_one_commit_with_a_call_and_its_result(
    client: AsyncClient, provider: BlackboardHistoryProvider, session_name: str
) -> None:
    messages = [
        Message("user", ["weather?"], message_id="m1", author_name="Ada", additional_properties={"lang": "en"}),
        Message("assistant", [Content.from_function_call("c1", "weather", arguments={"city": "Köln"})]),
        Message("tool", [Content.from_function_result("c1", result={"degrees": 21.5})]),
    ]
    await provider.save_messages(session_name, messages)
    assert await revision(client, session_name) == 1
    assert dicts(await provider.get_messages(session_name)) == dicts(messages)
    entries = [entry async for entry in client.session(session_name).memory("blackboard_history").entries()]
    assert [entry.item for entry in entries] == dicts(messages)
    assert {entry.revision for entry in entries} == {1}


async def test_a_conversation_that_has_not_begun_is_empty(
    client: AsyncClient, provider: BlackboardHistoryProvider, session_name: str
) -> None:
    assert await provider.get_messages(session_name) == []
    await provider.save_messages(session_name, [])
    await provider.clear(session_name)
    assert await provider.get_messages(session_name) == []
    assert not await client.session(session_name).exists()


async def test_a_cleared_conversation_begins_again(provider: BlackboardHistoryProvider, session_name: str) -> None:
    await provider.save_messages(session_name, [Message("user", ["one"])])
    await provider.clear(session_name)
    assert await provider.get_messages(session_name) == []
    await provider.save_messages(session_name, [Message("user", ["one"])])
    assert texts(await provider.get_messages(session_name)) == ["one"]


async def test_two_providers_of_a_conversation_keep_memories_of_their_own(
    client: AsyncClient, provider: BlackboardHistoryProvider, session_name: str
) -> None:
    audit = BlackboardHistoryProvider(client, source_id="audit", agent="auditor", load_messages=False)
    await provider.save_messages(session_name, [Message("user", ["one"])])
    await audit.save_messages(session_name, [Message("user", ["two"])])
    assert texts(await provider.get_messages(session_name)) == ["one"]
    assert texts(await audit.get_messages(session_name)) == ["two"]
    assert await client.session(session_name).memory("auditor").count() == 1


async def test_a_provider_connects_by_itself(url: str, session_name: str) -> None:
    async with BlackboardHistoryProvider(url=url) as provider:
        await provider.save_messages(session_name, [Message("user", ["one"])])
        assert texts(await provider.get_messages(session_name)) == ["one"]
    with pytest.raises(ValueError, match="either"):
        BlackboardHistoryProvider(AsyncClient(url), url=url)


async def test_excluded_messages_are_left_out_if_wanted(client: AsyncClient, session_name: str) -> None:
    provider = BlackboardHistoryProvider(client, skip_excluded=True)
    excluded = Message("user", ["old"], additional_properties={"_excluded": True})
    await provider.save_messages(session_name, [excluded, Message("user", ["new"])])
    assert texts(await provider.get_messages(session_name)) == ["new"]


async def test_an_item_that_is_no_message_is_named(
    client: AsyncClient, provider: BlackboardHistoryProvider, session_name: str
) -> None:
    await client.session(session_name).memory("blackboard_history").append({"contents": 5})
    with pytest.raises(ValueError, match="item 1 of the memory is not a message"):
        await provider.get_messages(session_name)


@pytest.mark.parametrize("session_id", [None, ""])
async def test_a_session_without_an_id_has_no_history(provider: BlackboardHistoryProvider, session_id: Any) -> None:
    with pytest.raises(ValueError, match="session with an id"):
        await provider.get_messages(session_id)
    with pytest.raises(ValueError, match="session with an id"):
        await provider.save_messages(session_id, [Message("user", ["one"])])


async def test_any_id_is_a_conversation_of_its_own(client: AsyncClient, session_name: str) -> None:
    provider = BlackboardHistoryProvider(client, prefix=f"{session_name}:")
    identifiers = ["a/b", "a\nb", "~x", "é" * 200, "..", "\ud800", "a b?#%2F", "x" * 256, "a%2Fb"]
    for identifier in identifiers:
        await provider.save_messages(identifier, [Message("user", [f"of {identifiers.index(identifier)}"])])
    for index, identifier in enumerate(identifiers):
        assert texts(await provider.get_messages(identifier)) == [f"of {index}"]
    assert provider.board("plain é") == f"{session_name}:plain é"


def said(random_source: random.Random, length: int) -> list[Message]:
    """Messages of few kinds, so that they repeat."""

    def one() -> Message:
        identifier = random_source.choice([None, None, "i", "j"])
        role = random_source.choice(["user", "assistant"])
        return Message(role, [random_source.choice(["a", "b"])], message_id=identifier)

    return [one() for _ in range(length)]


def test_the_overlap_is_found_as_the_framework_finds_it() -> None:
    source = random.Random(7)
    for _ in range(4000):
        existing = said(source, source.randrange(0, 6))
        incoming = said(source, source.randrange(0, 6))
        if source.random() < 0.5:
            incoming = existing[source.randrange(0, 6) :] + incoming
        tail = dicts(existing)[-len(incoming) :] if incoming else []
        first = _first_unsaved(tail, len(existing), dicts(incoming))
        assert dicts(incoming[first:]) == dicts(filter_new_messages(existing, incoming))


async def test_calls_store_what_the_file_provider_stores(
    provider: BlackboardHistoryProvider, session_name: str, tmp_path: Path
) -> None:
    files = FileHistoryProvider(tmp_path)
    source = random.Random(11)
    for _ in range(40):
        known = await files.get_messages(session_name)
        messages = known[source.randrange(0, 4) :] if source.random() < 0.4 else []
        messages = [*messages, *said(source, source.randrange(0, 3))]
        for each in (files, provider):
            await each.save_messages(session_name, messages)
    assert dicts(await provider.get_messages(session_name)) == dicts(await files.get_messages(session_name))


async def test_a_long_conversation_given_whole_is_stored_once(
    provider: BlackboardHistoryProvider, session_name: str
) -> None:
    messages = [Message("user", [f"{number}"]) for number in range(1205)]
    await provider.save_messages(session_name, messages[:1200])
    await provider.save_messages(session_name, messages)
    assert texts(await provider.get_messages(session_name)) == texts(messages)


async def test_of_writers_at_once_none_is_lost_or_parted(
    provider: BlackboardHistoryProvider, session_name: str
) -> None:
    turns = [[Message("user", [f"q{turn}"]), Message("assistant", [f"a{turn}"])] for turn in range(12)]
    await asyncio.gather(*(provider.save_messages(session_name, turn) for turn in turns))
    kept = texts(await provider.get_messages(session_name))
    assert sorted(kept) == sorted(text for turn in turns for text in texts(turn))
    assert all(answer == f"a{question[1:]}" for question, answer in zip(kept[::2], kept[1::2], strict=True))


async def test_a_killed_server_loses_and_doubles_no_message(server: Any) -> None:
    begun = asyncio.Event()

    async def write(provider: HistoryProvider, number: int) -> None:
        for turn in range(10):
            pair = [Message("user", [f"q{turn}"]), Message("assistant", [f"a{turn}"])]
            await provider.save_messages(f"s{number}", pair)
            if turn == 2:
                begun.set()

    async with AsyncClient(server.url, timeout=60) as client:
        provider = BlackboardHistoryProvider(client)
        writers = [asyncio.create_task(write(provider, number)) for number in range(4)]
        await begun.wait()
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await asyncio.gather(*writers)
        expected = [text for turn in range(10) for text in (f"q{turn}", f"a{turn}")]
        for number in range(4):
            assert texts(await provider.get_messages(f"s{number}")) == expected


def picture(size: int, media_type: str = "image/png") -> Content:
    return Content.from_data(random.Random(size).randbytes(size), media_type)


async def test_pictures_are_blobs_stored_once(
    client: AsyncClient, provider: BlackboardHistoryProvider, session_name: str
) -> None:
    messages = [Message("user", ["see", picture(2_000_000)]), Message("user", ["again", picture(2_000_000)])]
    await provider.save_messages(session_name, messages)
    assert dicts(await provider.get_messages(session_name)) == dicts(messages)
    described = await client.session(session_name).describe()
    assert described["bytes"] < 3_000_000
    item = (await client.session(session_name).memory("blackboard_history").get(1)).item
    blob = await client.session(session_name).blobs.get(item["contents"][1]["uri"]["$blob"])
    assert blob.decode() == picture(2_000_000).uri


async def test_a_picture_within_a_tool_result_comes_back(
    provider: BlackboardHistoryProvider, session_name: str
) -> None:
    result = Content.from_function_result("c1", result=[Content.from_text("done"), picture(90_000)])
    await provider.save_messages(session_name, [Message("tool", [result])])
    kept = await provider.get_messages(session_name)
    assert dicts(kept) == dicts([Message("tool", [result])])
    assert kept[0].contents[0].items[1].uri == picture(90_000).uri


async def test_a_long_text_comes_back_exactly(provider: BlackboardHistoryProvider, session_name: str) -> None:
    message = Message("user", ["\r\n é 😀" * 500_000], additional_properties={"notes": ["y" * 70_000, "\0"]})
    await provider.save_messages(session_name, [message])
    assert dicts(await provider.get_messages(session_name)) == [message.to_dict()]


async def test_a_picture_given_again_is_the_same_message(
    provider: BlackboardHistoryProvider, session_name: str
) -> None:
    messages = [Message("user", ["see", picture(90_000)]), Message("assistant", ["a picture"])]
    await provider.save_messages(session_name, messages)
    await provider.save_messages(session_name, [*messages, Message("user", ["and now?"])])
    assert texts(await provider.get_messages(session_name)) == ["see", "a picture", "and now?"]


async def test_a_message_beyond_the_bounds_is_refused_with_all_of_its_call(
    provider: BlackboardHistoryProvider, session_name: str
) -> None:
    await provider.save_messages(session_name, [Message("user", ["one"])])
    with pytest.raises(ItemTooLarge):
        await provider.save_messages(
            session_name, [Message("assistant", ["two"]), Message("user", ["x" * 60_000] * 18)]
        )
    with pytest.raises(BodyTooLarge):
        await provider.save_messages(session_name, [Message("user", [f"{n}" + "x" * 60_000]) for n in range(150)])
    with pytest.raises(BodyTooLarge):
        await provider.save_messages(session_name, [Message("user", ["x" * (33 << 20)])])
    assert texts(await provider.get_messages(session_name)) == ["one"]


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), "\ud800", nested(200), nested(5000)], ids=["nan", "surrogate", "depth", "abyss"]
)
async def test_a_message_that_is_no_json_is_refused_before_anything_is_sent(
    client: AsyncClient, provider: BlackboardHistoryProvider, session_name: str, value: Any
) -> None:
    message = Message("user", ["one"], additional_properties={"value": value})
    with pytest.raises(UnsupportedValue):
        await provider.save_messages(session_name, [message])
    assert not await client.session(session_name).exists()


async def test_keys_of_any_type_are_text_as_in_json(provider: BlackboardHistoryProvider, session_name: str) -> None:
    message = Message("user", [Content.from_function_call("c1", "f", arguments={1: "a", "b": "c"})])
    for _ in range(2):
        await provider.save_messages(session_name, [message, Message("assistant", ["done"])])
    kept = await provider.get_messages(session_name)
    assert len(kept) == 2
    assert kept[0].contents[0].arguments == {"1": "a", "b": "c"}


async def test_a_server_that_is_away_is_an_error_and_no_empty_history(session_name: str) -> None:
    async with AsyncClient("http://127.0.0.1:9", timeout=0.5) as nowhere:
        provider = BlackboardHistoryProvider(nowhere)
        with pytest.raises(ConnectionFailed):
            await provider.get_messages(session_name)
        with pytest.raises(ConnectionFailed):
            await provider.save_messages(session_name, [Message("user", ["one"])])
