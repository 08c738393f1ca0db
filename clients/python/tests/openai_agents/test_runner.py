"""The SDK's own runner with its scripted model over a session on the board."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SessionSettings, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agent_blackboard.openai_agents import BlackboardSession


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def agent(model: ScriptedModel, **options: Any) -> Agent:
    return Agent(name="guide", model=model, tools=[weather], **options)


async def run(how: str, agent: Agent, text: str, **options: Any) -> Any:
    if how == "run":
        return await Runner.run(agent, text, **options)
    if how == "run_sync":
        return await asyncio.to_thread(lambda: _run_sync(agent, text, **options))
    result = Runner.run_streamed(agent, text, **options)
    async for _ in result.stream_events():
        pass
    return result


def _run_sync(agent: Agent, text: str, **options: Any) -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return Runner.run_sync(agent, text, **options)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.mark.parametrize("how", ["run", "run_sync", "run_streamed"])
async def test_a_run_goes_on_where_the_last_one_ended(url: str, session_name: str, how: str) -> None:
    session = BlackboardSession(session_name, url=url)
    model = ScriptedModel(
        [
            [function_call("weather", {"city": "Rome"}, call_id="c1")],
            [assistant_message("It is sunny.")],
            [assistant_message("You asked about Rome.")],
        ]
    )
    first = await run(how, agent(model), "How is Rome?", session=session)
    assert first.final_output == "It is sunny."
    again = BlackboardSession(session_name, url=url)
    second = await run(how, agent(model), "Which city?", session=again)
    assert second.final_output == "You asked about Rome."
    kinds = [item.get("type") or item.get("role") for item in await session.get_items()]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user", "message"]
    assert len(model.calls[-1].input) == 5
    await session.close()
    await again.close()


async def test_a_limited_run_gives_the_model_whole_pairs(url: str, session_name: str) -> None:
    session = BlackboardSession(session_name, url=url)
    model = ScriptedModel(
        [
            [function_call("weather", {"city": "Rome"}, call_id="c1")],
            [assistant_message("It is sunny.")],
            [assistant_message("Yes.")],
        ]
    )
    await Runner.run(agent(model), "How is Rome?", session=session)
    config = RunConfig(session_settings=SessionSettings(limit=2))
    await Runner.run(agent(model), "Sure?", session=session, run_config=config)
    given = [item.get("type") or item.get("role") for item in model.calls[-1].input]
    assert given == ["function_call", "function_call_output", "message", "user"]
    await session.close()


async def test_an_approved_call_is_saved_with_its_output_once(url: str, session_name: str) -> None:
    @function_tool(needs_approval=True)
    def delete(name: str) -> str:
        """Delete a file."""
        return f"{name} is deleted"

    session = BlackboardSession(session_name, url=url)
    model = ScriptedModel(
        [
            [
                function_call("weather", {"city": "Rome"}, call_id="c1"),
                function_call("delete", {"name": "a"}, call_id="c2"),
            ],
            [assistant_message("Done.")],
        ]
    )
    guide = Agent(name="guide", model=model, tools=[weather, delete])
    result = await Runner.run(guide, "Delete a", session=session)
    state = result.to_state()
    state.approve(result.interruptions[0])
    restored = BlackboardSession(session_name, url=url)
    result = await Runner.run(guide, state, session=restored)
    assert result.final_output == "Done."
    items: list[Any] = await restored.get_items()
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(outputs) == ["c1", "c2"]
    await session.close()
    await restored.close()


async def test_a_failing_board_stops_the_run_with_its_exception(session_name: str, url: str) -> None:
    session = BlackboardSession(session_name, url=url, agent="a/\x00b")
    with pytest.raises(Exception, match="invalid-name"):
        await Runner.run(agent(ScriptedModel([[assistant_message("no")]])), "Hello", session=session)
    await session.close()
