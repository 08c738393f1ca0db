"""agno."""

import asyncio
import os
import sys

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools


async def main() -> None:
    token = os.environ["BLACKBOARD_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with MCPTools(url=os.environ["BOARD_URL"], headers=headers, timeout_seconds=60) as board:
        instructions = f"You are a worker.\n{board.session.instructions}"
        agent = Agent(model=OpenAIChat(id="scripted"), instructions=instructions, tools=[board], telemetry=False)
        result = await agent.arun(sys.argv[1])
    print(result.content)


asyncio.run(main())
