"""LangChain with its own module langchain.mcp, which needs FastMCP 4 and so mcp 2."""

import asyncio
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain.mcp import MCPAdapter
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command


async def main() -> None:
    token = os.environ["BLACKBOARD_TOKEN"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    client = Client(StreamableHttpTransport(os.environ["BOARD_URL"], headers=headers))
    async with MCPAdapter(client) as board:
        tools, instructions = await board.list_tools(), board.client.instructions
    # From here each call has a connection of its own. Without the middleware one that breaks ends the run.
    errors = ToolErrorMiddleware(lambda error, _: f"{type(error).__name__}: look at the board before you call again")
    agent = create_agent(
        "openai:scripted",
        tools,
        system_prompt=f"You are a worker.\n{instructions}",
        middleware=[errors],
        checkpointer=InMemorySaver(),
    )
    settings = {"recursion_limit": 200, "configurable": {"thread_id": "1"}}
    result = await agent.ainvoke({"messages": [{"role": "user", "content": sys.argv[1]}]}, settings)
    # A question with `ask_here` is an interrupt of the graph, and the user's answer resumes it.
    while "__interrupt__" in result:
        asked = result["__interrupt__"][0].value["requests"]
        print(*(request["message"] for request in asked))
        answers = {request["key"]: {"action": "accept", "content": {"answer": "green"}} for request in asked}
        result = await agent.ainvoke(Command(resume={"responses": answers}), settings)
    print(result["messages"][-1].content)


asyncio.run(main())
