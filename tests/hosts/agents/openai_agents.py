"""OpenAI Agents SDK."""

import asyncio
import os
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp


async def main() -> None:
    set_tracing_disabled(disabled=True)
    token = os.environ["BLACKBOARD_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    params = {"url": os.environ["BOARD_URL"], "headers": headers}
    # 5 seconds are less than a wait; a connection that breaks ends its session, and a retry opens one.
    server = MCPServerStreamableHttp(
        params, name="blackboard", client_session_timeout_seconds=60, cache_tools_list=True, max_retry_attempts=3
    )
    async with server:
        # The SDK leaves the server's instructions to the caller.
        instructions = f"You are a worker.\n{server.session.instructions}"
        agent = Agent(name="worker", model="scripted", instructions=instructions, mcp_servers=[server])
        result = await Runner.run(agent, sys.argv[1], max_turns=100)
    print(result.final_output)


asyncio.run(main())
