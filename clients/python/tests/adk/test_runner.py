"""ADK's own runner with a scripted model over the three services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.errors import StaleSessionError
from google.adk.models import LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.tools import ToolContext, load_memory
from google.genai import types

from agent_blackboard.adk import BlackboardArtifactService, BlackboardMemoryService, BlackboardSessionService

from .scripted import ScriptedModel


def text(words: str) -> types.Part:
    return types.Part(text=words)


def call(name: str, **args: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


async def keep(note: str, tool_context: ToolContext) -> dict[str, Any]:
    """Keep a note: in the state, for the user, and as a file."""
    tool_context.state["note"] = note
    tool_context.state["user:last"] = note
    tool_context.state["temp:now"] = note
    version = await tool_context.save_artifact("note.txt", types.Part(text=note))
    return {"version": version}


class Services:
    def __init__(self, url: str) -> None:
        self.sessions = BlackboardSessionService(url=url)
        self.artifacts = BlackboardArtifactService(url=url)
        self.memory = BlackboardMemoryService(url=url)

    def runner(self, app: str, agent: Any) -> Runner:
        return Runner(
            app_name=app,
            agent=agent,
            session_service=self.sessions,
            artifact_service=self.artifacts,
            memory_service=self.memory,
            auto_create_session=True,
        )

    async def close(self) -> None:
        for service in (self.sessions, self.artifacts, self.memory):
            await service.close()


@pytest.fixture
async def services(url: str) -> AsyncIterator[Services]:
    services = Services(url)
    yield services
    await services.close()


def content(words: str) -> types.Content:
    return types.Content(role="user", parts=[text(words)])


async def run(runner: Runner, words: str, session_id: str = "s") -> list[Any]:
    events = [event async for event in runner.run_async(user_id="u", session_id=session_id, new_message=content(words))]
    return [event.content.parts[0].text for event in events if event.content and event.content.parts]


async def test_a_conversation_with_tools_goes_on_in_another_process(
    services: Services, url: str, session_name: str
) -> None:
    model = ScriptedModel(script=[call("keep", note="buy milk"), text("kept")])
    runner = services.runner(session_name, LlmAgent(name="guide", model=model, tools=[keep]))
    assert (await run(runner, "Please keep: buy milk"))[-1] == "kept"
    session = await services.sessions.get_session(app_name=session_name, user_id="u", session_id="s")
    assert session is not None
    assert session.state == {"note": "buy milk", "user:last": "buy milk"}
    assert [event.author for event in session.events] == ["user", "guide", "guide", "guide"]
    place = {"app_name": session_name, "user_id": "u", "session_id": "s"}
    assert await services.artifacts.load_artifact(**place, filename="note.txt") == text("buy milk")

    others = Services(url)
    model = ScriptedModel(script=[text("milk")])
    runner = others.runner(session_name, LlmAgent(name="guide", model=model, instruction="Note: {note}", tools=[keep]))
    assert await run(runner, "What was it?") == ["milk"]
    assert len(model.requests[0].contents) == 5
    assert "Note: buy milk" in str(model.requests[0].config.system_instruction)
    await others.close()


async def test_former_sessions_are_remembered(services: Services, session_name: str) -> None:
    model = ScriptedModel(
        script=[text("Teal is fine."), call("load_memory", query="colour"), text("teal")], requests=[]
    )
    runner = services.runner(session_name, LlmAgent(name="guide", model=model, tools=[load_memory]))
    await run(runner, "My colour is teal", "one")
    session = await services.sessions.get_session(app_name=session_name, user_id="u", session_id="one")
    assert session is not None
    await services.memory.add_session_to_memory(session)
    assert (await run(runner, "Which colour?", "two"))[-1] == "teal"
    assert any("My colour is teal" in content.model_dump_json() for content in model.requests[-1].contents)


async def test_branches_at_once_share_a_session(services: Services, session_name: str) -> None:
    def agent(name: str) -> LlmAgent:
        return LlmAgent(name=name, model=ScriptedModel(script=[text(f"{name} is done")]), output_key=f"temp:{name}")

    branches = ParallelAgent(name="all", sub_agents=[agent(f"b{number}") for number in range(4)])
    last = LlmAgent(name="last", model=ScriptedModel(script=[text("end")]), instruction="{temp:b0} {temp:b3}")
    runner = services.runner(session_name, SequentialAgent(name="root", sub_agents=[branches, last]))
    assert sorted(await run(runner, "Go")) == [*[f"b{number} is done" for number in range(4)], "end"]
    session = await services.sessions.get_session(app_name=session_name, user_id="u", session_id="s")
    assert session is not None
    assert len(session.events) == 6
    assert session.state == {}


async def test_of_two_runs_on_one_session_the_stale_one_stops(services: Services, session_name: str) -> None:
    class Slow(ScriptedModel):
        waiting: Any = None
        go_on: Any = None

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            self.waiting.set()
            await self.go_on.wait()
            yield LlmResponse(content=types.Content(role="model", parts=[text("late")]))

    slow = Slow(script=[], waiting=asyncio.Event(), go_on=asyncio.Event())
    late = asyncio.ensure_future(run(services.runner(session_name, LlmAgent(name="guide", model=slow)), "first"))
    await asyncio.wait({late, asyncio.ensure_future(slow.waiting.wait())}, return_when=asyncio.FIRST_COMPLETED)
    assert not late.done()
    quick = ScriptedModel(script=[text("quick")])
    assert await run(services.runner(session_name, LlmAgent(name="guide", model=quick)), "second") == ["quick"]
    slow.go_on.set()
    with pytest.raises(StaleSessionError):
        await late
    session = await services.sessions.get_session(app_name=session_name, user_id="u", session_id="s")
    assert session is not None
    said = [event.content.parts[0].text for event in session.events if event.content and event.content.parts]
    assert said == ["first", "second", "quick"]


async def test_a_rewind_takes_events_and_artifacts_back(services: Services, session_name: str) -> None:
    script = [call("keep", note="one"), text("kept"), call("keep", note="two"), text("kept")]
    runner = services.runner(session_name, LlmAgent(name="guide", model=ScriptedModel(script=script), tools=[keep]))
    await run(runner, "Keep one")
    await run(runner, "Keep two")
    place = {"app_name": session_name, "user_id": "u", "session_id": "s"}
    session = await services.sessions.get_session(**place)
    assert session is not None
    assert session.state["note"] == "two"
    await runner.rewind_async(user_id="u", session_id="s", rewind_before_invocation_id=session.events[-1].invocation_id)
    session = await services.sessions.get_session(**place)
    assert session is not None
    assert session.state["note"] == "one"
    assert await services.artifacts.load_artifact(**place, filename="note.txt") == text("one")
    await runner.rewind_async(user_id="u", session_id="s", rewind_before_invocation_id=session.events[0].invocation_id)
    assert await services.artifacts.load_artifact(**place, filename="note.txt") is None


def test_the_runner_without_async_may_run_again_and_again(url: str, session_name: str) -> None:
    services = Services(url)
    model = ScriptedModel(script=[text("a"), text("b"), text("c")])
    runner = services.runner(session_name, LlmAgent(name="guide", model=model))
    for words in ("one", "two", "three"):
        list(runner.run(user_id="u", session_id="s", new_message=content(words)))
    assert len(model.requests[-1].contents) == 5
