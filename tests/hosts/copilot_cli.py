"""GitHub Copilot CLI, without a terminal and without signing in: `copilot -p`, with a provider of one's own."""

from __future__ import annotations

import json
from typing import Any

from conversation import Call, Conversation
from host import Host, Place, save

VERSION = "1.0.102"


class CopilotCli(Host):
    """With a model that it does not know, by Chat Completions. `--allow-tool` allows the server's tools."""

    name = "copilot-cli"
    npm = (f"@github/copilot@{VERSION}", f"@github/copilot-linux-x64@{VERSION}")

    def write(self, place: Place) -> None:
        server: dict[str, Any] = {"type": "http", "url": place.board, "tools": ["*"]}
        if place.token:
            server["headers"] = {"Authorization": "Bearer ${BLACKBOARD_TOKEN}"}
        save(place.home / ".copilot" / "mcp-config.json", {"mcpServers": {"blackboard": server}})

    def command(self, place: Place, prompt: str) -> list[str]:
        # The program of the platform's package: the other one starts it.
        program = self.folder / "node_modules/@github/copilot-linux-x64/copilot"
        output = ["-i"] if self.terminal else ["--output-format", "json", "-p"]
        return [str(program), "--allow-tool", "blackboard", *output, prompt]

    def environment(self, place: Place) -> dict[str, str]:
        return {
            "BLACKBOARD_TOKEN": place.token,
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{place.model}/v1",
            "COPILOT_PROVIDER_API_KEY": "no-secret",
            "COPILOT_MODEL": "scripted",
        }


class CopilotCliClaude(CopilotCli):
    """With a model that it knows, by the Messages API: tools are deferred, and instructions are asked for."""

    name = "copilot-cli-claude"

    def command(self, place: Place, prompt: str) -> list[str]:
        return [*super().command(place, prompt), "--allow-all-mcp-server-instructions"]

    def environment(self, place: Place) -> dict[str, str]:
        provider = {"COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_PROVIDER_BASE_URL": place.model}
        return super().environment(place) | provider | {"COPILOT_MODEL": "claude-sonnet-4.6"}

    def search(self, tool: str, seen: Conversation) -> Call | None:
        return Call("tool_search_tool", json.dumps({"pattern": f"{tool}$"}), search=True)


class CopilotCliOnTerminal(CopilotCli):
    """The interactive mode: the folder is trusted by file; a person answers the question of `ask_here`."""

    name = "copilot-cli-terminal"
    terminal = True
    think_s = 3.0

    def write(self, place: Place) -> None:
        super().write(place)
        save(place.home / ".copilot" / "config.json", {"trustedFolders": [str(place.work)]})

    def keys(self, screen: str) -> tuple[str, ...]:
        return ("green", "\r") if "Whichsize?answer" in screen and "decline" in screen else ()


HOSTS = [CopilotCli(), CopilotCliClaude(), CopilotCliOnTerminal()]
