"""Google's Agent Development Kit."""

import asyncio
import os
import sys

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams


async def main() -> None:
    token = os.environ["BLACKBOARD_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    board = McpToolset(connection_params=StreamableHTTPConnectionParams(url=os.environ["BOARD_URL"], headers=headers))
    agent = LlmAgent(
        name="worker", model="gemini-scripted", instruction="You are a worker. Look at the board first.", tools=[board]
    )
    async with InMemoryRunner(agent=agent) as runner:
        await runner.run_debug(sys.argv[1])


asyncio.run(main())
