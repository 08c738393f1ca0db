"""Rights of a token through the MCP door: exactly those over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from server import ELICITATION, TASKS, Board, Raw, Server, facts
from test_clients import READING, TOOLS, example

SECRET = "plugh7361"


@pytest.fixture
def shared(guarded: Server, session: str) -> Board:
    """A session in which another agent has a secret in its memory, and in a message."""
    board = guarded.board(session, guarded.admin).fill()
    board.ask("POST", "/agents/Other/memory", [{"note": SECRET}])
    board.ask("POST", "/agents/Other/messages", [{"text": SECRET}])
    return board


async def texts(raw: Raw, tool: str, arguments: dict[str, Any]) -> str:
    answer = await raw.ask("tools/call", {"name": tool, "arguments": arguments})
    return json.dumps(answer, ensure_ascii=False)


async def test_a_bound_token_names_no_agent(guarded: Server, shared: Board) -> None:
    token = guarded.token(f"bound-{shared.session}", "--agent", "Mine", "--sessions", shared.session)
    async with guarded.raw(token) as raw:
        for tool in (await raw.ask("tools/list"))["result"]["tools"]:
            assert "agent" not in tool["inputSchema"]["properties"], tool["name"]
            # The token has one session, which is the default.
            assert "session" not in tool["inputSchema"].get("required", []), tool["name"]
        assert not (await raw.call("remember", {"item": "mine"}))["isError"]
        refused = await raw.call("remember", {"item": "theirs", "agent": "Other"})
        assert refused["isError"]
        assert facts(await raw.call("append_items", {"log": "trajectories", "items": [{"step": 9}]}))["appended"] == 1
        assert shared.entries("trajectories")[-1]["agent"] == "Mine"
    async with guarded.raw(token, "?agent=Other", **{"X-Agent-ID": "Other"}) as raw:
        assert not (await raw.call("remember", {"item": "mine too"}))["isError"]
    assert len(shared.entries("agents/Mine/memory")) == 2
    assert len(shared.entries("agents/Other/memory")) == 1


async def test_another_agents_memory_shows_nowhere(guarded: Server, shared: Board) -> None:
    token = guarded.token(f"blind-{shared.session}", "--agent", "Mine", "--sessions", shared.session)
    before = shared.revision()
    shared.ask("POST", "/agents/Other/memory", [{"note": SECRET}])
    await shared.indexed(SECRET)
    shared.ask("POST", "/checkpoints", {"name": "here"})
    async with guarded.raw(token) as raw:
        for tool, arguments in [
            ("recall", {"of": "Other"}),
            ("recall", {}),
            ("attention", {"wait_s": 0}),
            ("attention", {"wait_s": 0, "agent": "Other"}),
            ("attention", {"wait_s": 0, "ack": [1]}),
            ("read_log", {"log": "messages"}),
            ("read_log", {"log": "messages", "of": "Other"}),
            ("read_log", {"log": "memory", "of": "Other"}),
            ("render_prompt", {"include": ["messages:Other"]}),
            ("search_board", {"q": SECRET, "log": "messages"}),
            ("wait_for_change", {"after": 0, "on": ["agents/Other/messages"], "wait_s": 0}),
            ("transact", {"then": [{"ack": 1, "agent": "Other"}]}),
            ("render_prompt", {"include": ["memory"]}),
            ("render_prompt", {"include": ["agents/Other/memory"]}),
            ("render_prompt", {"include": ["memory", "requests"], "by": "Other"}),
            ("search_board", {"q": SECRET}),
            ("search_board", {"q": SECRET, "log": "memory"}),
            ("wait_for_change", {"after": before - 2, "wait_s": 0}),
            ("wait_for_change", {"after": 0, "wait_s": 0}),
            ("wait_for_change", {"after": 0, "on": ["memory"], "wait_s": 0}),
            ("wait_for_change", {"after": 0, "on": ["agents/Other/memory"], "wait_s": 0}),
            ("board_overview", {}),
            ("compare_board", {"from": 1}),
            ("compare_board", {"from": before - 1, "to": "here"}),
            ("read_log", {"log": "agents/Other/memory"}),
            ("read_log", {"log": "memory"}),
            ("get_state", {"path": "agents/Other/memory"}),
            ("transact", {"then": [{"append": "agents/Other/memory", "item": {"x": 1}}]}),
            (
                "transact",
                {"if": [{"path": "nothing", "absent": True}], "then": [{"status": "Other", "value": "FINISH"}]},
            ),
            ("restore_board", {"at": before - 1}),
        ]:
            assert SECRET not in await texts(raw, tool, arguments), (tool, arguments)
        for method, params in [
            ("resources/read", {"uri": f"blackboard://{shared.session}/agents/Other/memory"}),
            ("resources/read", {"uri": f"blackboard://{shared.session}/agents/Other/messages"}),
            ("resources/read", {"uri": f"blackboard://{shared.session}/agents/Other/attention"}),
            ("resources/read", {"uri": f"blackboard://{shared.session}/agents%2FOther%2Fmemory"}),
            ("resources/read", {"uri": f"blackboard://{shared.session}/prompt"}),
            ("prompts/get", {"name": "brief_me", "arguments": {"session": shared.session}}),
            ("prompts/get", {"name": "hand_over", "arguments": {"session": shared.session, "to": "Other"}}),
        ]:
            assert SECRET not in json.dumps(await raw.ask(method, params)), params
        assert facts(await raw.call("recall", {"of": "Other"}))["error"] == "forbidden"
        # Anyone may send a message, and it is the other's alone.
        sent = await raw.call("send_message", {"to": "Other", "item": "hello"})
        assert not sent["isError"]
        refused = await raw.call("restore_board", {"at": before - 1})
        assert facts(refused)["error"] == "forbidden"
    assert len(shared.entries("agents/Other/memory")) == 2
    messages = shared.entries("agents/Other/messages")
    assert [(message.get("agent"), message.get("acked_at")) for message in messages] == [(None, None), ("Mine", None)]
    reader = guarded.token(f"seeing-{shared.session}", "--agent", "Mine", "--scopes", "read,memory:read")
    async with guarded.raw(reader, f"?session={shared.session}") as raw:
        assert SECRET in await texts(raw, "recall", {"of": "Other"})
        assert SECRET in await texts(raw, "read_log", {"log": "messages", "of": "Other"})
        assert SECRET in await texts(raw, "search_board", {"q": SECRET})


async def test_another_agents_memory_is_not_followed(guarded: Server, shared: Board) -> None:
    token = guarded.token(f"deaf-{shared.session}", "--agent", "Mine", "--sessions", shared.session)
    base = f"blackboard://{shared.session}"
    own = [f"{base}/agents/Other/{part}?after=0" for part in ("memory", "messages", "attention")]
    uris = [*own, f"{base}/questions?after=0"]
    params = {"notifications": {"resourceSubscriptions": uris}}
    told: list[str] = []
    async with guarded.raw(token) as raw:
        answer = await raw.client.send(raw.request("subscriptions/listen", params), stream=True)
        async for line in answer.aiter_lines():
            if "notifications/resources/updated" in line:
                told.append(json.loads(line[5:])["params"]["uri"])
                shared.ask("POST", "/agents/Other/memory", [{"note": SECRET}])
                shared.ask("POST", "/agents/Other/messages", [{"text": SECRET}])
                shared.post("questions", {"question": "another?"})
            if len(told) == 3:
                break
        await answer.aclose()
    assert set(told) == {uris[-1]}


async def test_a_reading_token_sees_no_tool_that_writes(guarded: Server, shared: Board) -> None:
    token = guarded.token(f"reader-{shared.session}", "--scopes", "read", "--sessions", shared.session)
    before = shared.revision()
    async with guarded.raw(token) as raw:
        tools = (await raw.ask("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in tools] == READING
        for name in sorted(set(TOOLS) - set(READING)):
            answer = await raw.ask("tools/call", {"name": name, "arguments": {}})
            assert "error" in answer or answer["result"]["isError"], name
        assert not (await raw.call("read_log", {"log": "questions"})).get("isError")
        # A task's cancel is a write too.
        for method in ("tasks/cancel", "tasks/update"):
            encoded = "question." + _unpadded(shared.session) + ".1"
            await raw.ask(method, {"taskId": encoded, "inputResponses": {}}, capabilities=TASKS)
    assert shared.revision() == before


def _unpadded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def test_a_writing_token_reads_nothing(guarded: Server, shared: Board) -> None:
    """The scope `write` alone shows no present value, as over HTTP."""
    token = guarded.token(f"writer-{shared.session}", "--scopes", "write", "--sessions", shared.session)
    shared.ask("PUT", "/state/hidden", ["a hidden value"])
    async with guarded.raw(guarded.admin) as raw:
        tools = (await raw.ask("tools/list"))["result"]["tools"]
    async with guarded.raw(token) as raw:
        for tool in tools:
            arguments = example(tool)
            known = tool["inputSchema"]["properties"]
            arguments.update({name: value for name, value in {"agent": "W", "wait_s": 0}.items() if name in known})
            said = await texts(raw, tool["name"], arguments)
            for present in ("question 1?", "work 1", "hidden", "page 1", "t1"):
                assert present in json.dumps(arguments) or present not in said, (tool["name"], said)
        for method, params in [
            *(("resources/read", {"uri": f"blackboard://{shared.session}/{path}"}) for path in ("prompt", "state")),
            ("prompts/get", {"name": "brief_me", "arguments": {}}),
        ]:
            answer = await raw.ask(method, params)
            assert "error" in answer or answer["status"] == 403, answer


async def test_a_foreign_session_does_not_exist(guarded: Server, shared: Board, session: str) -> None:
    own = f"own-{session}"
    guarded.board(own, guarded.admin).post("requests", {"request": "ours"})
    token = guarded.token(f"narrow-{session}", "--sessions", own)
    before = shared.revision()
    async with guarded.raw(token) as raw:
        listed = (await raw.ask("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed] == TOOLS
        for tool in listed:
            arguments = {**example(tool), "session": shared.session}
            if "agent" in tool["inputSchema"]["properties"]:
                arguments["agent"] = "W"
            result = await raw.call(tool["name"], arguments)
            assert result["isError"], tool["name"]
            assert facts(result)["error"] == "session-not-found", (tool["name"], result)
            missing = await raw.call(tool["name"], {**arguments, "session": "no-such-session"})
            assert str(result).replace(shared.session, "X") == str(missing).replace("no-such-session", "X")
        for part in ("prompt", "questions", "state", "screenshots/1", "agents/Other/memory"):
            assert "error" in await raw.ask("resources/read", {"uri": f"blackboard://{shared.session}/{part}"})
        assert "error" in await raw.ask("prompts/get", {"name": "brief_me", "arguments": {"session": shared.session}})
        for method in ("tasks/get", "tasks/cancel"):
            answer = await raw.ask(method, {"taskId": f"question.{_unpadded(shared.session)}.1"}, capabilities=TASKS)
            assert "error" in answer
        reference = {"type": "ref/resource", "uri": "blackboard://{session}/state/{+path}"}
        for argument, context in [("session", None), ("path", shared.session), ("agent", shared.session)]:
            params: dict[str, Any] = {"ref": reference, "argument": {"name": argument, "value": ""}}
            if context:
                params["context"] = {"arguments": {"session": context}}
            values = (await raw.ask("completion/complete", params))["result"]["completion"]["values"]
            assert values == ([own] if argument == "session" else [])
        assert shared.session not in json.dumps(await raw.ask("resources/list")).replace(own, "")
    assert shared.revision() == before


async def test_the_list_of_sessions_shows_those_of_the_token(guarded: Server, shared: Board, session: str) -> None:
    for number in (1, 2):
        guarded.board(f"team-{session}-{number}", guarded.admin).post("questions", {"question": f"of team {number}?"})
    token = guarded.token(f"team-{session}", "--sessions", f"team-{session}-*")
    async with guarded.raw(token) as raw:
        assert facts(await raw.call("board_overview"))["sessions"] == [f"team-{session}-1", f"team-{session}-2"]
        text = (await raw.call("list_open_questions"))["content"][0]["text"]
        assert "of team 2?" in text
        assert "question 1?" not in text


async def test_a_default_session_comes_from_the_address(guarded: Server, shared: Board) -> None:
    async with guarded.raw(guarded.admin, f"?session={shared.session}") as raw:
        for tool in (await raw.ask("tools/list"))["result"]["tools"]:
            assert "session" not in tool["inputSchema"].get("required", []), tool["name"]
        assert "question 1?" in (await raw.call("read_log", {"log": "questions"}))["content"][0]["text"]
    async with guarded.raw(guarded.admin) as raw:
        required = {tool["name"]: tool["inputSchema"].get("required", [])
                    for tool in (await raw.ask("tools/list"))["result"]["tools"]}  # fmt: skip
        free = {name for name, names in required.items() if "session" not in names}
        assert free == {"board_overview", "search_board", "list_open_questions"}
        missing = await raw.call("read_log", {"log": "questions"})
        assert missing["isError"]
        assert "session" in facts(missing)["detail"]


async def test_a_state_is_bound_to_its_token(guarded: Server, shared: Board) -> None:
    tokens = [guarded.token(f"state-{number}-{shared.session}", "--agent", "Mine") for number in (1, 2)]
    ask = {"name": "ask_person", "arguments": {"question": "Which?", "ask_here": True}}
    async with guarded.raw(tokens[0], f"?session={shared.session}") as raw:
        first = (await raw.ask("tools/call", ask, capabilities=ELICITATION))["result"]
    said = {"inputResponses": {"answer": {"action": "accept", "content": {"answer": "evil"}}}}
    again = {**ask, **said, "requestState": first["requestState"]}
    for token in (tokens[1], guarded.admin):
        async with guarded.raw(token, f"?session={shared.session}") as raw:
            answer = await raw.ask("tools/call", again, capabilities=ELICITATION)
            assert answer["result"]["isError"]
    assert "answer" not in shared.entries("questions")[-1]["item"]
    async with guarded.raw(tokens[0], f"?session={shared.session}") as raw:
        assert not (await raw.ask("tools/call", again, capabilities=ELICITATION))["result"]["isError"]


async def test_a_revoked_worker_claims_nothing(guarded: Server, shared: Board) -> None:
    async with revocable(guarded, shared, "claim_request", {"match": {"kind": "never"}}) as call:
        shared.post("requests", {"kind": "never"})
        assert '"claimed\\": true' not in await call
    assert "claim" not in shared.entries("requests")[-1]


async def test_a_revoked_watcher_sees_nothing(guarded: Server, shared: Board) -> None:
    async with revocable(guarded, shared, "wait_for_change", {}) as call:
        shared.ask("PUT", "/state/marker", [SECRET])
        assert SECRET not in await call


async def test_a_revoked_agent_gets_no_message(guarded: Server, shared: Board) -> None:
    async with revocable(guarded, shared, "attention", {"after": shared.revision()}) as call:
        shared.post("agents/Mine/messages", SECRET)
        assert SECRET not in await call


async def test_a_revoked_asker_gets_no_answer(guarded: Server, shared: Board) -> None:
    async with revocable(guarded, shared, "ask_person", {"question": "Wait?"}) as call:
        shared.answer(5, SECRET)
        assert SECRET not in await call


@asynccontextmanager
async def revocable(
    guarded: Server, board: Board, tool: str, arguments: dict[str, Any]
) -> AsyncIterator[asyncio.Task[str]]:
    """A call that waits while its token is revoked."""
    name = f"revoked-{tool}-{board.session}"
    token = guarded.token(name, "--agent", "Mine", "--sessions", board.session)
    async with guarded.raw(token) as raw:
        call = asyncio.create_task(texts(raw, tool, {**arguments, "wait_s": 50}))
        await guarded.watchers(1)
        guarded.revoke(name)
        yield call


async def test_a_revoked_follower_hears_nothing(guarded: Server, shared: Board) -> None:
    name = f"revoked-follower-{shared.session}"
    token = guarded.token(name, "--sessions", shared.session)
    params = {"notifications": {"resourceSubscriptions": [f"blackboard://{shared.session}/questions"]}}
    async with guarded.raw(token) as raw:
        answer = await raw.client.send(raw.request("subscriptions/listen", params), stream=True)
        await guarded.watchers(1)
        guarded.revoke(name)
        shared.post("questions", {"question": "heard?"})
        told = ""
        async with asyncio.timeout(30):
            async for line in answer.aiter_lines():
                told += line
                if "resources/updated" in line:
                    break
        await answer.aclose()
    assert "resources/updated" not in told


async def test_an_expired_worker_claims_nothing(guarded: Server, shared: Board) -> None:
    name = f"expiring-{shared.session}"
    token = guarded.token(name, "--agent", "Mine", "--sessions", shared.session, "--expires", "8s")
    async with guarded.raw(token) as raw:
        call = asyncio.create_task(texts(raw, "claim_request", {"match": {"kind": "never"}, "wait_s": 50}))
        await guarded.watchers(1)
        while "unauthorized" not in await texts(raw, "board_overview", {}):
            pass
        shared.post("requests", {"kind": "never"})
        assert '"claimed\\": true' not in await call
    assert "claim" not in shared.entries("requests")[-1]
