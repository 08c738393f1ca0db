"""Scripted model: a state machine that knows only what a host shows to a model.

It sees names, descriptions, schemas, the instructions, and the texts under `next` in results. It chooses tools by their
words, and fills arguments from the schema, the example, and the facts of earlier results.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from clients import Client, Result, mcp2
from server import Server

STEPS_MAX = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with few sessions, so that a model finds its own in the overview."""
    with Server(tmp_path_factory.mktemp("server")) as server:
        yield server


def words(text: str) -> set[str]:
    """The words of a text, without their endings."""
    found = re.findall(r"[a-z]+", text.lower().replace("_", " "))
    return {word[:-1] if word.endswith("s") and len(word) > 3 else word for word in found}


def search(tools: list[dict[str, Any]], wanted: str, count: int) -> list[dict[str, Any]]:
    """A keyword search as hosts with many tools have it: the name counts twice, ties keep their order."""
    asked = words(wanted)

    def score(tool: dict[str, Any]) -> int:
        return 2 * len(asked & words(tool["name"])) + len(asked & words(tool["description"]))

    return [tool for tool in sorted(tools, key=score, reverse=True) if score(tool) > 0][:count]


class Model:
    """The state machine. `visible` are the tools that the host has shown so far."""

    def __init__(self, client: Client, everything: list[dict[str, Any]], visible: list[dict[str, Any]]) -> None:
        self.client = client
        self.everything = {tool["name"]: tool for tool in everything}
        self.visible = {tool["name"]: tool for tool in visible}
        self.known: dict[str, Any] = {"agent": "Scripted"}
        self.calls: list[str] = []

    def shown(self, text: str) -> None:
        """A host loads a tool that a text names."""
        for name in re.findall(r"\b[a-z][a-z_]+\b", text):
            if name in self.everything:
                self.visible.setdefault(name, self.everything[name])

    def choose(self, wanted: str) -> dict[str, Any]:
        for line in self.client.instructions.splitlines():
            if len(words(wanted) & words(line)) > 1:
                self.shown(line)
        found = search(list(self.visible.values()), wanted, 1)
        assert found, f"no tool for: {wanted}"
        return found[0]

    def arguments(self, tool: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        """The given arguments, those from earlier results, and from the example the other required ones."""
        schema = tool["inputSchema"]
        example = tool["description"].partition("Example: ")[2]
        sample = json.loads(example) if example else {}
        made = {name: self.known[name] for name in schema["properties"] if name in self.known}
        made.update(given)
        for name in schema.get("required", []):
            if name not in made:
                assert name in sample, f"{tool['name']} does not say what '{name}' is"
                made[name] = sample[name]
        unknown = set(made) - set(schema["properties"])
        assert not unknown, (tool["name"], unknown)
        return made

    async def act(self, wanted: str, **given: Any) -> Result:
        assert len(self.calls) < STEPS_MAX
        tool = self.choose(wanted)
        self.calls.append(tool["name"])
        result = await self.client.call(tool["name"], self.arguments(tool, given))
        assert not result.failed, (tool["name"], result)
        self.shown(result.text)
        return result

    def follow(self, result: Result, *names: str) -> dict[str, Any]:
        """The values that a result's hint gives for these arguments, as in "seq=7 and fence=41"."""
        hint = str(result.facts.get("next", ""))
        found = {name: re.search(rf"\b{name}=(\w+)", hint) for name in names}
        assert all(found.values()), (hint, names)
        return {name: int(match[1]) for name, match in found.items() if match}


async def work(model: Model, server: Server, session: str, first_looks: bool) -> None:
    """Finds the work, does it, asks a person, remembers, and finishes."""
    board = server.board(session)
    if first_looks:
        sessions = (await model.act("first call a session at a glance")).facts["sessions"]
        model.known["session"] = next(name for name in sessions if name == session)
        overview = await model.act("first call a session at a glance")
        assert "total of the invoices" in overview.text
    else:
        model.known["session"] = session
    claimed = await model.act("claim the next open task", wait_s=0)
    assert claimed.facts["claimed"] is True
    request = claimed.facts["request"]
    question = model.act("ask a person a question and wait for the answer", question=request["unclear"], wait_s=50)
    asking = asyncio.create_task(question)
    await server.watchers(1)
    board.answer(1, "EUR")
    currency = (await asking).facts["answer"]
    total = f"{sum(request['invoices'])} {currency}"
    step = {"step": 1, "text": f"summed to {total}"}
    await model.act("append items: record a step to trajectories", log="trajectories", items=[step])
    await model.act("remember: save a note to your own memory", item=f"invoices are in {currency}")
    ended = model.follow(claimed, "seq", "fence")
    done = await model.act("finish: end a request that you claimed with its result", **ended, result={"total": total})
    assert done.facts["done"] is True
    nothing = await model.act("claim the next open task", wait_s=0)
    assert nothing.facts["claimed"] is False
    assert "not yet" in nothing.facts["next"]

    (entry,) = board.entries("requests")
    assert entry["done"]["result"] == {"total": "60 EUR"}
    assert board.entries("agents/Scripted/memory")[0]["item"] == {"text": "invoices are in EUR"}
    assert board.entries("questions")[0]["item"]["answer"] == "EUR"


def put(server: Server, session: str) -> None:
    work = {"task": "total of the invoices", "invoices": [10, 20, 30], "unclear": "Which currency?"}
    server.board(session).post("requests", work)


@pytest.mark.parametrize("chosen", ["all", "worker"])
async def test_a_model_works_by_what_it_is_told(server: Server, session: str, chosen: str) -> None:
    put(server, session)
    async with mcp2(f"{server.url}/mcp?tools={chosen}") as client:
        tools = await client.tools()
        # The instructions name the tools of each step, in their order.
        steps = ["board_overview", "claim_request", "append_items", "remember", "ask_person", "finish_request"]
        places = [client.instructions.index(name) for name in steps]
        assert places == sorted(places)
        model = Model(client, tools, tools)
        await work(model, server, session, first_looks=True)
        assert [name for name in model.calls if name not in steps] == []


def others(count: int) -> list[dict[str, Any]]:
    """Tools of other servers, among them some about tasks and claims of another kind."""
    verbs = ["create", "list", "update", "delete", "get", "search", "assign", "close", "export", "send"]
    nouns = ["issue", "calendar event", "email", "invoice", "insurance claim", "task list", "customer", "deployment",
             "pull request", "file", "payment", "ticket", "webhook", "database row", "spreadsheet", "chat message",
             "project", "build job", "timer", "contact"]  # fmt: skip
    made = []
    for number in range(count):
        verb, noun = verbs[number % 10], nouns[number // 10 % 20]
        description = (
            f"{verb.capitalize()} a {noun} in the workspace of the company. Needs the identifier of the {noun}."
        )
        schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        made.append({"name": f"{verb}_{noun.replace(' ', '_')}", "description": description, "inputSchema": schema})
    return made


async def test_a_search_among_many_tools_is_enough(server: Server, session: str) -> None:
    put(server, session)
    async with mcp2(f"{server.url}/mcp") as client:
        everything = [*others(200), *await client.tools()]
        random.Random(22).shuffle(everything)
        found = search(everything, "claim task", 5)
        model = Model(client, everything, found)
        assert model.choose("claim the next open task")["name"] == "claim_request"
        assert "finish_request" not in model.visible
        await work(model, server, session, first_looks=False)
        # The hint of the claim's result, and the instructions, named the rest.
        assert model.calls == [
            "claim_request",
            "ask_person",
            "append_items",
            "remember",
            "finish_request",
            "claim_request",
        ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("claim task", "claim_request"),
        ("ask human", "ask_person"),
        ("wait for change", "wait_for_change"),
        ("remember note", "remember"),
        ("screenshot image", "get_screenshot"),
        ("shared state", "get_state"),
        ("open questions", "list_open_questions"),
        ("restore checkpoint", "restore_board"),
        ("blackboard overview", "board_overview"),
        ("find entries", "search_board"),
        ("finish request", "finish_request"),
        ("send message", "send_message"),
        ("attention: what concerns you", "attention"),
    ],
)
async def test_a_search_finds_the_tool(server: Server, wanted: str, expected: str) -> None:
    async with mcp2(f"{server.url}/mcp") as client:
        everything = [*others(200), *await client.tools()]
        random.Random(22).shuffle(everything)
        assert expected in [tool["name"] for tool in search(everything, wanted, 5)]


async def test_every_example_fits_its_schema(server: Server) -> None:
    types = {"string": str, "integer": int, "number": int | float, "array": list, "object": dict, "boolean": bool}
    async with mcp2(f"{server.url}/mcp") as client:
        for tool in await client.tools():
            schema = tool["inputSchema"]
            example = json.loads(tool["description"].partition("Example: ")[2])
            assert set(example) <= set(schema["properties"]), tool["name"]
            assert set(schema.get("required", [])) - {"session"} <= set(example) | {"then"}, tool["name"]
            for name, value in example.items():
                of = schema["properties"][name]
                assert value in of.get("enum", [value])
                if "type" in of:
                    kinds = [of["type"]] if isinstance(of["type"], str) else of["type"]
                    assert any(isinstance(value, types[kind]) for kind in kinds), (tool["name"], name)
