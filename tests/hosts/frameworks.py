"""Frameworks: a small agent each in `agents/`, as the framework's documents show it for streamable HTTP."""

from __future__ import annotations

import shutil
from pathlib import Path

from host import FOLDER, Host, Place


class Framework(Host):
    """Runs an agent, which has addresses and token from the environment, and the prompt as its argument."""

    def __init__(self, name: str, agent: str, packages: tuple[str, ...]) -> None:
        self.name, self.agent, self.pypi = name, FOLDER / "agents" / agent, packages  # type: ignore[misc]

    def command(self, place: Place, prompt: str) -> list[str]:
        return [self.program("python"), str(self.agent), prompt]

    def environment(self, place: Place) -> dict[str, str]:
        return {
            "BOARD_URL": place.board,
            "BLACKBOARD_TOKEN": place.token,
            "OPENAI_BASE_URL": f"{place.model}/v1",
            "OPENAI_API_KEY": "scripted",
            "GOOGLE_GEMINI_BASE_URL": place.model,
            "GOOGLE_API_KEY": "scripted",
        }


class NodeFramework(Framework):
    """An agent in JavaScript: it stands beside its packages, since imports are looked for there."""

    def __init__(self, name: str, agent: str, packages: tuple[str, ...]) -> None:
        super().__init__(name, agent, ())
        self.npm = packages  # type: ignore[misc]

    def write(self, place: Place) -> None:
        shutil.copy(self.agent, self.folder)

    def command(self, place: Place, prompt: str) -> list[str]:
        return ["node", str(self.folder / Path(self.agent).name), prompt]


LANGCHAIN = ("langchain==1.5.2", "langchain-openai==1.7.4")
# The package agent-framework brings forty more; its tools over MCP need the last two.
AGENT_FRAMEWORK = ("agent-framework-core==1.23.0", "agent-framework-openai==1.17.0", "mcp==2.3.0", "tenacity==9.1.4")

HOSTS = [
    Framework("openai-agents", "openai_agents.py", ("openai-agents==0.24.0",)),
    Framework("langchain-mcp-adapters", "langchain_adapters.py", (*LANGCHAIN, "langchain-mcp-adapters==0.3.2")),
    Framework("langchain-mcp", "langchain_mcp.py", (*LANGCHAIN, "langchain[mcp]==1.5.2")),
    Framework("adk", "adk.py", ("google-adk[mcp]==2.13.0",)),
    Framework("agent-framework", "agent_framework_agent.py", AGENT_FRAMEWORK),
    Framework("pydantic-ai", "pydantic_ai_agent.py", ("pydantic-ai-slim[openai,mcp]==2.66.0",)),
    Framework("agno", "agno_agent.py", ("agno[mcp,openai]==3.1.10",)),
    NodeFramework("ai-sdk", "ai_sdk.mjs", ("ai@7.0.173", "@ai-sdk/mcp@2.0.99", "@ai-sdk/openai-compatible@3.0.92")),
]
