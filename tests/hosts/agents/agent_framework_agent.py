"""Microsoft Agent Framework."""

import asyncio
import os
import sys

from agent_framework import Agent, MCPStreamableHTTPTool
from agent_framework.openai import OpenAIChatClient


async def main() -> None:
    token = os.environ["BLACKBOARD_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    board = MCPStreamableHTTPTool(name="blackboard", url=os.environ["BOARD_URL"], static_headers=headers)
    # By default the model sees "Function failed." for any error, and may answer 40 times.
    invocation = {"include_detailed_errors": True, "max_iterations": 200}
    client = OpenAIChatClient(model="scripted", function_invocation_configuration=invocation)
    instructions = "You are a worker. Look at the board first."
    async with Agent(client=client, name="worker", instructions=instructions, tools=[board]) as agent:
        result = await agent.run(sys.argv[1])
    print(result.text)


asyncio.run(main())
