"""Pydantic AI."""

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset


async def answered(message: str, *_: object) -> dict[str, str]:
    """The user's answer to a question with `ask_here`."""
    print(message)
    return {"answer": "green"}


async def main() -> None:
    token = os.environ["BLACKBOARD_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # By default there are no instructions, and the second rejection of a tool ends the run.
    board = MCPToolset(
        os.environ["BOARD_URL"],
        headers=headers,
        include_instructions=True,
        tool_error_behavior="failed",
        elicitation_handler=answered,
    )
    agent = Agent("openai:scripted", instructions="You are a worker.", toolsets=[board])
    result = await agent.run(sys.argv[1])
    print(result.output)


asyncio.run(main())
