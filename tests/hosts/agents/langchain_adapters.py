"""LangChain with the package langchain-mcp-adapters, which needs mcp below 2."""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    token = os.environ["BLACKBOARD_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    board = {"transport": "streamable_http", "url": os.environ["BOARD_URL"], "headers": headers}
    tools = await MultiServerMCPClient({"blackboard": board}).get_tools()
    # Without it the end of a connection in a call ends the run.
    errors = ToolErrorMiddleware(lambda error, _: f"{type(error).__name__}: look at the board before you call again")
    agent = create_agent(
        "openai:scripted", tools, system_prompt="You are a worker. Look at the board first.", middleware=[errors]
    )
    messages = [{"role": "user", "content": sys.argv[1]}]
    result = await agent.ainvoke({"messages": messages}, {"recursion_limit": 200})
    print(result["messages"][-1].content)


asyncio.run(main())
