"""Cases that each client library and generation runs alike."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from typing import Any
from urllib.parse import unquote

import pytest
from fastmcp import Client as FastClient

from clients import IS_RECENT, Client, Connect, ProtocolError, Result
from server import Board, Server, png, png_url

TOOLS = [
    "board_overview", "read_log", "append_items", "add_screenshot", "get_screenshot", "render_prompt", "search_board",
    "get_state", "set_state", "add_to_state", "transact", "remember", "recall", "ask_person", "answer_question",
    "list_open_questions", "claim_request", "finish_request", "review_request", "send_message", "attention",
    "wait_for_change", "checkpoint_board", "compare_board", "restore_board",
]  # fmt: skip
WORKER = [
    "board_overview", "read_log", "append_items", "get_state", "set_state", "remember", "ask_person", "claim_request",
    "finish_request", "send_message", "attention",
]  # fmt: skip
ASKER = [
    "board_overview", "read_log", "get_screenshot", "answer_question", "list_open_questions", "finish_request",
    "review_request", "send_message", "attention", "wait_for_change",
]  # fmt: skip
READING = [
    "board_overview", "read_log", "get_screenshot", "render_prompt", "search_board", "get_state", "recall",
    "list_open_questions", "wait_for_change", "compare_board",
]  # fmt: skip


def example(tool: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the example in a tool's description."""
    return dict(json.loads(tool["description"].partition("Example: ")[2]))


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


async def ok(client: Client, tool: str, **arguments: Any) -> Result:
    result = await client.call(tool, arguments)
    assert not result.failed, result
    return result


async def test_a_client_connects_and_is_told_what_to_do(connect: Connect, server: Server) -> None:
    async with connect(f"{server.url}/mcp") as client:
        assert "board_overview" in client.instructions
        assert len(client.instructions.split()) <= 120
        assert client.generation == {"mcp2": "2026-07-28", "fastmcp4": "2026-07-28"}.get(
            connect.__name__, client.generation
        )


async def test_all_tools_are_listed_in_one_order(connect: Connect, server: Server) -> None:
    async with connect(f"{server.url}/mcp") as client:
        tools = await client.tools()
        assert names(tools) == TOOLS
        assert tools == await client.tools()
    for tool in tools:
        assert tool["annotations"]["openWorldHint"] is False, tool["name"]
        assert tool["annotations"].get("readOnlyHint", False) is (tool["name"] in READING), tool["name"]
        assert tool["inputSchema"]["type"] == "object"
        assert tool.get("outputSchema") is None, tool["name"]
        chars = (tool.get("_meta") or {}).get("anthropic/maxResultSizeChars")
        assert (chars == 500_000) is (tool["name"] in READING), tool["name"]
    writing = [tool for tool in tools if tool["name"] not in READING]
    # A tool that writes destroys, by the protocol's default.
    assert [tool["name"] for tool in writing if tool["annotations"].get("destructiveHint", True)] == ["restore_board"]
    first = [tool["name"] for tool in tools if (tool.get("_meta") or {}).get("anthropic/alwaysLoad")]
    assert first == ["board_overview"]


@pytest.mark.parametrize(("chosen", "expected"), [("all", TOOLS), ("worker", WORKER), ("asker", ASKER)])
async def test_an_address_chooses_a_set_of_tools(
    connect: Connect, server: Server, chosen: str, expected: list[str]
) -> None:
    async with connect(f"{server.url}/mcp?tools={chosen}") as client:
        assert names(await client.tools()) == expected
        for missing in set(TOOLS) - set(expected):
            with pytest.raises(ProtocolError):
                await client.call(missing, {})


async def test_every_tool_does_what_its_example_says(connect: Connect, server: Server, board: Board) -> None:
    async with connect(f"{server.url}/mcp") as client:
        for tool in await client.tools():
            name, arguments = tool["name"], example(tool)
            arguments["session"] = board.session
            if "agent" in tool["inputSchema"]["properties"]:
                arguments["agent"] = "Worker"
            if name == "add_screenshot":
                arguments["image"] = png_url(9)
            elif name in ("ask_person", "attention"):
                arguments["wait_s"] = 0
            elif name == "finish_request":
                claim = {"session": board.session, "agent": "Worker", "seq": arguments["seq"]}
                arguments["fence"] = (await ok(client, "claim_request", **claim)).facts["fence"]
            elif name == "review_request":
                del arguments["fence"]
                arguments["seq"] = board.post("requests?review=true", {"request": "a draft"})
                board.ask("PUT", f"/requests/{arguments['seq']}/done", {"result": "draft"})
            elif name == "wait_for_change":
                arguments["after"] = board.revision() - 1
                arguments["on"] = ["requests"]
                board.post("requests", {"request": "one more", "kind": "other"})
            result = await client.call(name, arguments)
            assert not result.failed, (name, arguments, result)
            assert result.text, name
    assert board.entries("requests")[6]["done"]["result"] == {"total": 12}
    assert board.entries("questions")[3]["item"]["answer"] == "a.xlsx"


async def test_every_resource_and_template_is_read(connect: Connect, server: Server, board: Board) -> None:
    agent = {"X-Agent-ID": "Worker"}
    board.ask("POST", "/agents/Worker/memory", [{"note": "mine"}])
    async with connect(f"{server.url}/mcp?session={board.session}", headers=agent) as client:
        listed = await client.resources()
        parts = [resource["uri"].removeprefix(f"blackboard://{board.session}/") for resource in listed]
        assert parts == ["prompt", "questions", "requests", "trajectories", "screenshots", "state",
                         "agents/Worker/memory", "agents/Worker/messages", "agents/Worker/attention"]  # fmt: skip
        for resource in listed:
            content = await client.read(resource["uri"])
            assert content["uri"] == resource["uri"]
            assert content["mimeType"] == resource["mimeType"]
            own, marked, data = content["text"].partition("\n<board-data-")
            assert board.session in own
            assert marked
            if resource["mimeType"] == "text/plain":
                json.loads(data.split("\n")[1])
        values = {"{session}": board.session, "{seq}": "2", "{+path}": "tasks/t1", "{agent}": "Worker"}
        templates = await client.templates()
        assert len(templates) == 11
        for template in templates:
            uri = template["uriTemplate"]
            for name, value in values.items():
                uri = uri.replace(name, value)
            content = await client.read(uri)
            assert content.get("text") or content.get("blob"), uri
        image = await client.read(f"blackboard://{board.session}/screenshots/2")
        assert image["mimeType"] == "image/png"


async def test_a_resource_that_is_not_there_is_an_error(connect: Connect, server: Server, board: Board) -> None:
    async with connect(f"{server.url}/mcp") as client:
        for rest in ("state/nothing", "screenshots/99", "nothing", "prompt/x"):
            with pytest.raises(ProtocolError) as refused:
                await client.read(f"blackboard://{board.session}/{rest}")
            assert refused.value.code in (-32002, -32602)


async def test_a_session_with_any_name_is_listed_and_read(connect: Connect, server: Server) -> None:
    any_names = [
        "a:b",
        "u:p@host",
        "A B",
        "ü日本",
        "50%",
        "[x",
        "a?b",
        "a#b",
        "a\\b",
        "a|b^c",
        "<x>",
        "Aa",
        "127.1",
        "x:9999999",
    ]
    for name in any_names:
        server.board(name).ask("PUT", "/state", {"key of it": {"a%2Fb": name}})
    async with connect(f"{server.url}/mcp") as client:
        prompts = {unquote(resource["name"]): resource["uri"] for resource in await client.resources()}
        for name in any_names:
            uri = prompts[f"{name}: prompt"]
            assert "Request History" in (await client.read(uri))["text"]
            value = await client.read(uri.removesuffix("prompt") + "state/key%20of%20it")
            _, mark, data, *_ = value["text"].split("\n")
            assert mark.startswith("<board-data-")
            assert json.loads(data) == {"a%2Fb": name}


async def test_every_prompt_is_listed_and_made(connect: Connect, server: Server, board: Board) -> None:
    async with connect(f"{server.url}/mcp") as client:
        prompts = await client.prompts()
        assert names(prompts) == ["brief_me", "hand_over", "answer_questions"]
        for prompt in prompts:
            arguments = {"session": board.session}
            if any(argument["name"] == "to" for argument in prompt["arguments"]):
                arguments["to"] = "the night shift"
            text = await client.prompt(prompt["name"], arguments)
            assert "question 4?" in text
            assert re.search(r"<board-data-(\w+)>.*</board-data-\1>", text, re.DOTALL)
            assert ("the night shift" in text) is ("to" in arguments)
        with pytest.raises(ProtocolError):
            await client.prompt("nothing", {"session": board.session})
        with pytest.raises(ProtocolError):
            await client.prompt("brief_me", {"session": "no-such-session"})


async def test_arguments_are_completed(connect: Connect, server: Server, board: Board) -> None:
    board.ask("POST", "/agents/Worker/memory", [{"note": "mine"}])
    here = {"session": board.session}
    async with connect(f"{server.url}/mcp") as client:
        assert board.session in await client.complete("brief_me", "session", board.session[:5])
        assert await client.complete("brief_me", "session", "no-such") == []
        assert await client.complete("hand_over", "to", "Wo", **here) == ["Worker"]
        seqs = "blackboard://{session}/screenshots/{seq}"
        assert await client.complete(seqs, "seq", "", **here) == ["3", "2", "1"]
        paths = "blackboard://{session}/state/{+path}"
        assert await client.complete(paths, "path", "ta", **here) == ["tasks"]
        assert await client.complete(paths, "path", "tasks/", **here) == ["tasks/t1"]
    async with connect(f"{server.url}/mcp?session={board.session}") as client:
        assert await client.complete(paths, "path", "") == ["tasks", "done"]


async def test_a_screenshot_comes_as_an_image(connect: Connect, server: Server, board: Board) -> None:
    async with connect(f"{server.url}/mcp?session={board.session}") as client:
        result = await ok(client, "get_screenshot", seq=3)
        assert result.images == [("image/png", png(3))]
        assert "page 3" in result.text
        large = {"metadata": "large", "image_path": "", "image_str": png_url(5, 1500)}
        seq = board.post("screenshots", large)
        ((media_type, scaled),) = (await ok(client, "get_screenshot")).images
        assert media_type in ("image/png", "image/jpeg", "image/webp")
        assert len(scaled) > 100
        assert scaled != png(5, 1500)
        assert (await ok(client, "get_screenshot", seq=seq, full=True)).images == [("image/png", png(5, 1500))]
        added = await ok(client, "add_screenshot", image=png_url(77), metadata={"of": "the client"})
        assert (await ok(client, "get_screenshot", seq=added.facts["seqs"][0])).images == [("image/png", png(77))]


async def test_a_failure_is_a_result_that_says_what_to_do(connect: Connect, server: Server, board: Board) -> None:
    async with connect(f"{server.url}/mcp") as client:
        here = {"session": board.session}
        for tool, arguments, code, failed in [
            ("read_log", {"session": "no-such-session", "log": "questions"}, "session-not-found", True),
            ("remember", {**here, "item": "a note"}, "agent-required", True),
            # Another was first: an answer like "not yet".
            ("set_state", {**here, "path": "done", "value": 1, "expected_tag": "absent"}, "precondition-failed", False),
            ("finish_request", {**here, "agent": "Worker", "seq": 1, "fence": 1}, "stale-fence", False),
        ]:
            result = await client.call(tool, arguments)
            assert result.failed is failed, (tool, result)
            assert result.facts["error"] == code
            assert result.facts["next"]
            assert result.structured is None


async def test_ufo_gets_every_fact(server: Server, session: str) -> None:
    """UFO passes on what fastmcp makes of structured content, without what the tool's schema does not have."""
    async with FastClient(f"{server.url}/mcp?session={session}&agent=LinuxAgent&tools=worker&structured=1") as client:
        appended = await client.call_tool("append_items", {"log": "requests", "items": [{"n": 2**60, "cents": 1}]})
        assert appended.data == {"log": "requests", "appended": 1, "seqs": [1], "revision": 1}
        claimed = await client.call_tool("claim_request", {"wait_s": 0})
        assert claimed.data == claimed.structured_content
        assert claimed.data["board_data"]["request"] == {"n": str(2**60), "cents": 1}


async def test_content_is_structured_where_asked_for(connect: Connect, server: Server, board: Board) -> None:
    """The SDKs check each result against the tool's schema."""
    async with connect(f"{server.url}/mcp?session={board.session}&agent=Worker&structured=1") as client:
        for tool in await client.tools():
            assert tool["outputSchema"]["type"] == "object", tool["name"]
        for tool, arguments in [
            ("board_overview", {}),
            ("append_items", {"log": "requests", "items": [{"cents": 1}]}),
            ("read_log", {"log": "requests"}),
            ("get_state", {}),
            ("render_prompt", {}),
            ("search_board", {"q": "no such words"}),
            ("claim_request", {"wait_s": 0}),
            ("finish_request", {"seq": 1, "fence": 1}),
        ]:
            result = await client.call(tool, arguments)
            assert not result.failed, (tool, result)
            assert result.structured, tool


async def test_an_unknown_tool_is_an_error_of_the_protocol(connect: Connect, server: Server) -> None:
    async with connect(f"{server.url}/mcp") as client:
        with pytest.raises(ProtocolError) as refused:
            await client.call("no_such_tool", {})
        assert refused.value.code == -32602


async def test_a_wait_for_a_change_is_ended_by_the_change(connect: Connect, server: Server, board: Board) -> None:
    async with connect(f"{server.url}/mcp?session={board.session}") as client:
        waiting = asyncio.create_task(client.call("wait_for_change", {"on": ["trajectories"], "wait_s": 50}))
        await server.watchers(1)
        board.post("requests", {"request": "nothing that is waited for"})
        board.post("trajectories", {"step": 7, "text": "by curl"})
        result = await waiting
        assert not result.failed
        assert "by curl" in result.text
        assert "nothing that is waited for" not in result.text


async def test_a_wait_for_a_request_is_ended_by_a_request(connect: Connect, server: Server, session: str) -> None:
    board = server.board(session)
    board.post("trajectories", {"step": 1})
    async with connect(f"{server.url}/mcp?session={session}") as client:
        arguments = {"agent": "Worker", "match": {"kind": "sum"}, "wait_s": 50}
        waiting = asyncio.create_task(client.call("claim_request", arguments))
        await server.watchers(1)
        board.post("requests", {"kind": "other"})
        seq = board.post("requests", {"kind": "sum", "of": [1, 2]})
        result = await waiting
        assert result.facts["claimed"] is True
        assert (result.facts["seq"], result.facts["request"]["of"]) == (seq, [1, 2])
    assert board.entries("requests")[1]["claim"]["agent"] == "Worker"


async def test_a_wait_for_an_answer_is_ended_by_the_answer(connect: Connect, server: Server, session: str) -> None:
    async with connect(f"{server.url}/mcp?session={session}") as client:
        waiting = asyncio.create_task(client.call("ask_person", {"agent": "W", "question": "Which?", "wait_s": 50}))
        await server.watchers(1)
        board = server.board(session)
        board.answer(1, "this one")
        assert (await waiting).facts == {"seq": 1, "answered": True, "answer": "this one"}
        again = await ok(client, "ask_person", seq=1, wait_s=0)
        assert again.facts["answer"] == "this one"


async def test_a_wait_without_a_change_says_not_yet(connect: Connect, server: Server, session: str) -> None:
    board = server.board(session)
    board.post("trajectories", {"step": 1})
    async with connect(f"{server.url}/mcp?session={session}") as client:
        here = {"agent": "Worker", "wait_s": 0}
        assert (await ok(client, "claim_request", **here)).facts["claimed"] is False
        assert (await ok(client, "wait_for_change", wait_s=0)).facts["changed"] is False
        asked = await ok(client, "ask_person", question="Which?", **here)
        assert asked.facts["answered"] is False
        for result in (asked, await ok(client, "claim_request", **here), await ok(client, "wait_for_change", wait_s=0)):
            assert "not yet" in result.facts["next"]
        board.post("requests", {"request": "held"})
        await ok(client, "claim_request", agent="Other")
        nothing = (await ok(client, "claim_request", **here)).facts
        assert nothing["claimed"] is False
        assert nothing["newest_held"]["by"] == "Other"
        assert nothing["newest_held"]["until"]


async def test_a_long_wait_tells_its_progress(connect: Connect, server: Server, session: str) -> None:
    board = server.board(session)
    board.post("trajectories", {"step": 1})
    told: asyncio.Queue[float] = asyncio.Queue()

    async def progress(so_far: float, _: float | None, __: str | None) -> None:
        await told.put(so_far)

    async with connect(f"{server.url}/mcp?session={session}") as client:
        waiting = asyncio.create_task(client.call("wait_for_change", {"wait_s": 50}, progress))
        first = await told.get()
        assert not waiting.done()
        board.post("trajectories", {"step": 2})
        assert "step" in (await waiting).text
        assert first > 0


async def test_a_client_that_left_claims_nothing(connect: Connect, server: Server, session: str) -> None:
    board = server.board(session)
    board.post("trajectories", {"step": 1})
    async with connect(f"{server.url}/mcp?session={session}") as client:
        waiting = asyncio.create_task(client.call("claim_request", {"agent": "Gone", "wait_s": 50}))
        await server.watchers(1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await server.watchers(0)
    board.post("requests", {"request": "for somebody else"})
    async with connect(f"{server.url}/mcp?session={session}") as client:
        assert (await ok(client, "claim_request", agent="Here", wait_s=0)).facts["claimed"] is True


async def test_a_client_works_over_a_host_name(
    connect: Connect, server: Server, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo

    def resolved(host: Any, *arguments: Any, **named: Any) -> Any:
        is_ours = host in ("board.example", b"board.example", "foreign.example", b"foreign.example")
        return resolve("127.0.0.1" if is_ours else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    async with connect(f"http://board.example:{server.port}/mcp?session={board.session}") as client:
        waiting = asyncio.create_task(client.call("wait_for_change", {"wait_s": 50}))
        await server.watchers(1)
        board.post("trajectories", {"step": 8, "text": "by name"})
        assert "by name" in (await waiting).text
    with pytest.raises(BaseException):  # noqa: B017 -- each library has its own
        async with connect(f"http://foreign.example:{server.port}/mcp") as client:
            await client.tools()


async def test_a_token_is_needed_where_there_are_tokens(connect: Connect, guarded: Server) -> None:
    for token in (None, "bb_" + "x" * 43):
        with pytest.raises(BaseException):  # noqa: B017 -- each library has its own
            async with connect(f"{guarded.url}/mcp", token) as client:
                await client.tools()
    async with connect(f"{guarded.url}/mcp", guarded.admin) as client:
        assert names(await client.tools()) == TOOLS


async def test_a_key_makes_a_write_happen_once(connect: Connect, server: Server, session: str) -> None:
    async with connect(f"{server.url}/mcp?session={session}") as client:
        once = {"log": "requests", "items": [{"request": "once"}], "idempotency_key": "key-1"}
        first = await ok(client, "append_items", **once)
        again = await ok(client, "append_items", **once)
        assert again.facts == {**first.facts, "replayed": True}
        other = await client.call("append_items", {**once, "items": [{"request": "twice"}]})
        assert other.failed
        assert other.facts["error"] == "idempotency-key-reused"
    assert len(server.board(session).entries("requests")) == 1


async def test_numbers_stay_exact(connect: Connect, server: Server, session: str) -> None:
    number = 12345678901234567890123
    async with connect(f"{server.url}/mcp?session={session}") as client:
        await ok(client, "append_items", log="requests", items=[{"n": number, "x": 1.0}])
        await ok(client, "set_state", path="big", value={"n": number, "x": 1.0})
        assert str(number) in (await ok(client, "get_state", path="big")).text
        claimed = await ok(client, "claim_request", agent="W")
        assert '"n": 12345678901234567890123' in claimed.text.replace('"n":1', '"n": 1')
        await ok(client, "finish_request", agent="W", seq=1, fence=claimed.facts["fence"], result=number)
    board = server.board(session)
    assert '"n":12345678901234567890123,"x":1.0' in board.ask("GET", "/requests").text.replace(": ", ":").replace(
        ", ", ","
    )
    assert board.ask("GET", "/state/big/n").text.strip() == str(number)
    assert board.ask("GET", "/state/big/x").text.strip() == "1.0"
    assert board.entries("requests")[0]["done"]["result"] == number


@pytest.mark.skipif(not IS_RECENT, reason="hosts of 2026-07-28 ask their user between two calls")
@pytest.mark.parametrize("said", ["a.xlsx", None])
async def test_a_host_asks_its_own_user(connect: Connect, server: Server, session: str, said: str | None) -> None:
    if connect.__name__ == "mcp2_legacy":
        pytest.skip("an older generation")
    asked: list[str] = []

    def person(message: str) -> str | None:
        asked.append(message)
        return said

    async with connect(f"{server.url}/mcp?session={session}", person=person) as client:
        result = await ok(client, "ask_person", agent="W", question="Which file?", ask_here=True, wait_s=50)
    assert asked == ["Which file?"]
    assert result.facts.get("answer") == said
    (entry,) = server.board(session).entries("questions")
    # Who declines leaves the question to others.
    assert entry["item"].get("answer") == said


@pytest.mark.skipif(not IS_RECENT, reason="the newer SDK follows resources")
async def test_a_client_follows_a_resource(server: Server, board: Board) -> None:
    from clients import mcp2

    uri = f"blackboard://{board.session}/questions"
    async with mcp2(f"{server.url}/mcp") as client:
        async with client.inner.listen(resource_subscriptions=[uri]) as subscription:
            await server.watchers(1)
            board.post("requests", {"request": "another log"})
            board.post("questions", {"question": "new?"})
            event = await anext(aiter(subscription))
            assert event.uri == uri
